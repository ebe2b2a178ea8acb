"""The policy of an architecture search.

Source: docs/architecture-search.md, "The policy".
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from ai8xtools.training.policies.complaints import Complaints, shown
from ai8xtools.training.policies.yaml_file import read_section

_CODE = "E604"
Teacher = Literal["full_model", "prev_stage_model"]
_STAGES = ("elastic_kernel", "elastic_depth", "elastic_width")
_SECTIONS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(_STAGES, ("leveling", "num_epochs")),
    "kd_params": ("teacher_model", "distill_loss", "student_loss", "temperature"),
    "evolution_search": (
        "population_size", "prob_mutation", "ratio_mutation", "ratio_parent", "num_iter",
        "samples", "constraints",
    ),
}  # fmt: skip
_CONSTRAINTS = (
    "min_num_weights", "max_num_weights", "width_options", "max_cycles", "max_kernel_columns",
    "max_data_bytes",
)  # fmt: skip
_TOP = ("start_epoch", "validation_freq", *_SECTIONS)


@dataclass(frozen=True, slots=True)
class StagePolicy:
    """How long a stage lasts: `epochs` for each of its levels, or with all levels open at once."""

    leveling: bool
    epochs: int


@dataclass(frozen=True, slots=True)
class TeacherPolicy:
    """The teacher of elastic stages: the whole network before the first, or before each stage."""

    teacher: Teacher
    distill_weight: float
    student_weight: float
    temperature: float


@dataclass(frozen=True, slots=True)
class Constraints:
    """Limits of the chosen network; None: no limit besides the chip's. `widths` () means all."""

    min_weights: int = 0
    max_weights: int | None = None
    widths: tuple[int, ...] = ()
    max_cycles: int | None = None
    max_kernel_columns: int | None = None
    max_data_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class EvolutionPolicy:
    """An evolution: networks of a generation, how they descend from the best of the last one.

    `parents` and `mutations` are shares of the population; the rest are crossings. `samples` of
    the validation set judge a network, None: all.
    """

    population: int
    probability: float
    mutations: float
    parents: float
    generations: int
    samples: int | None
    constraints: Constraints


@dataclass(frozen=True, slots=True)
class SearchPolicy:
    """When the stages of an elastic training begin, and how networks are looked for after it."""

    start_epoch: int
    validation_freq: int
    kernel: StagePolicy | None
    depth: StagePolicy | None
    width: StagePolicy | None
    teacher: TeacherPolicy | None
    evolution: EvolutionPolicy | None


def read_search_policy(path: str) -> SearchPolicy:
    """Return the policy in a YAML file; InputError E604 with line, key, value, what is allowed."""
    complaints = Complaints(_CODE, path)
    top = _Section(complaints, "", read_section(complaints), _TOP)
    kernel, depth, width = (_stage(top, name) for name in _STAGES)
    policy = SearchPolicy(
        top.whole("start_epoch", 0),
        top.whole("validation_freq", 1, default=1),
        kernel,
        depth,
        width,
        _teacher(top),
        _evolution(top),
    )
    if not any(name in top.values for name in _STAGES):
        top.refuse(f"it holds none of {', '.join(_STAGES)}; the network would not be elastic")
    complaints.refuse()
    return policy


class _Section:
    """The keys of one level of the file. What is wrong is noted; a default takes its place."""

    def __init__(
        self, complaints: Complaints, name: str, values: dict[str, Any], allowed: tuple[str, ...]
    ) -> None:
        self.complaints, self._name, self.values = complaints, name, values
        for key in [key for key in values if key not in allowed]:
            self._refuse_unknown(key, allowed)

    def _refuse_unknown(self, key: Any, allowed: tuple[str, ...]) -> None:
        homes = [name for name, keys in _SECTIONS.items() if key in keys]
        homes += ["evolution_search: constraints"] if key in _CONSTRAINTS else []
        homes += ["the top level"] if key in _TOP else []
        where = f"in {self._name}" if self._name else "at the top level"
        if homes:
            what = f"unknown key {shown(key)} {where}"
            self.refuse(what, key, f"It belongs to {', '.join(homes)}.")
        else:
            self.complaints.unknown(self.values, key, allowed, self._name or "the policy")

    def refuse(self, message: str, key: str | None = None, remedy: str | None = None) -> None:
        """Complain about a key, or about the section."""
        self.complaints.add(message, self.values, key, remedy)

    def section(self, name: str, allowed: tuple[str, ...]) -> _Section | None:
        """Return the section of a key; None without it, or where something else stands."""
        if name not in self.values:
            return None
        full, values = f"{self._name}: {name}" if self._name else name, self.values[name]
        if not isinstance(values, dict):
            written = self.complaints.written(self.values, name)
            self.refuse(f"{full} must hold {', '.join(allowed)}, not {written}", name)
            return None
        return _Section(self.complaints, full, values, allowed)

    def whole(self, key: str, least: int, default: int | None = None) -> int:
        """Return a whole number; without a default the key is needed."""
        value = self.values.get(key, default)
        if type(value) is not int or value < least:
            self.wrong(key, f"a whole number from {least}")
            return least
        return value

    def optional(self, key: str, least: int) -> int | None:
        """Return a whole number, None without the key."""
        return self.whole(key, least) if self.values.get(key) is not None else None

    def number(self, key: str, least: float, most: float, default: float) -> float:
        """Return a number of an interval."""
        value = self.values.get(key, default)
        if type(value) not in (int, float) or not least <= value <= most:
            limit = f"from {least:g}" if most == math.inf else f"from {least:g} to {most:g}"
            self.wrong(key, f"a number {limit}")
            return default
        return float(value)

    def wrong(self, key: str, expected: str) -> None:
        """Complain about the value of a key."""
        name = f"{self._name}: {key}" if self._name else key
        self.complaints.wrong(self.values, key, expected, name=name)


def _stage(parent: _Section, name: str) -> StagePolicy | None:
    section = parent.section(name, _SECTIONS[name])
    if section is None:
        return None
    leveling = section.values.get("leveling", False)
    if not isinstance(leveling, bool):
        section.wrong("leveling", "true or false")
    return StagePolicy(bool(leveling), section.whole("num_epochs", 1))


def _teacher(parent: _Section) -> TeacherPolicy | None:
    section = parent.section("kd_params", _SECTIONS["kd_params"])
    if section is None:
        return None
    names: tuple[Teacher, ...] = get_args(Teacher)
    teacher_model = section.values.get("teacher_model")
    teacher = next((name for name in names if name == teacher_model), None)
    if teacher is None:
        section.wrong("teacher_model", " or ".join(names))
        teacher = names[0]
    distill = section.number("distill_loss", 0, math.inf, 0.5)
    student = section.number("student_loss", 0, math.inf, 0.5)
    temperature = section.number("temperature", 0, 1e9, 1.0)
    if temperature == 0:
        section.wrong("temperature", "a number above 0")
    if distill == student == 0:
        section.refuse("kd_params: distill_loss and student_loss are 0, nothing would be learned")
    return TeacherPolicy(teacher, distill, student, temperature)


def _evolution(parent: _Section) -> EvolutionPolicy | None:
    section = parent.section("evolution_search", _SECTIONS["evolution_search"])
    if section is None:
        return None
    parents = section.number("ratio_parent", 0, 1, 0.25)
    population = section.whole("population_size", 2, default=50)
    if round(parents * population) < 1:
        section.wrong("ratio_parent", f"at least one of {population}, as share of them")
    return EvolutionPolicy(
        population,
        section.number("prob_mutation", 0, 1, 0.1),
        section.number("ratio_mutation", 0, 1, 0.5),
        parents,
        section.whole("num_iter", 1, default=10),
        section.optional("samples", 1),
        _constraints(section),
    )


def _constraints(parent: _Section) -> Constraints:
    section = parent.section("constraints", _CONSTRAINTS)
    if section is None:
        return Constraints()
    widths = section.values.get("width_options") or []
    if not isinstance(widths, list) or any(type(w) is not int or w < 1 for w in widths):
        section.wrong("width_options", "a list of whole numbers from 1")
        widths = []
    least = section.whole("min_num_weights", 0, default=0)
    most = section.optional("max_num_weights", 1)
    if most is not None and most < least:
        section.refuse(
            f"evolution_search: constraints: max_num_weights is {most}, below min_num_weights, "
            f"{least}",
            "max_num_weights",
        )
    return Constraints(
        least, most, tuple(widths),
        section.optional("max_cycles", 1),
        section.optional("max_kernel_columns", 1),
        section.optional("max_data_bytes", 1),
    )  # fmt: skip
