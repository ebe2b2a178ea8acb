"""Memory profiles of microcontrollers: a small YAML file each, shipped or the user's own.

Source: docs/software.md, "Profiles".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from difflib import get_close_matches
from itertools import pairwise
from math import isfinite
from pathlib import Path
from typing import Any

import yaml

from ai8xtools.diagnostics import Diagnostic, DiagnosticError, Place, refuse_errors
from ai8xtools.reading import read_text
from ai8xtools.reading.yaml_errors import context_of, explained, remedy_of
from ai8xtools.software.cores import CORES
from ai8xtools.software.kernels import Core
from ai8xtools.values import frozen
from ai8xtools.values.estimate import Estimate

FOLDER = Path(__file__).resolve().parent / "profiles"
_UNITS = {"K": 1 << 10, "M": 1 << 20}
_SIZES = ("flash", "l1", "l2", "l3", "stack")
_NUMBERS = ("dma", "t_dma")
_RATES = ("bw21", "bw31")
_MEASURES = ("mhz", "pj_per_cycle", "pj_spread")
_LARGEST_MEASURE = 1e5
_CYCLES_FACTOR = 1.05
"""How many times as many cycles an inference may take as estimated."""
_WORDS = {
    "core": (*CORES,),
    "mul": ("none", "1cycle", "n"),
    "simd": ("none", "dsp"),
    "l3_writable": ("true", "false"),
    "weights": ("flash", "l3"),
}
_REQUIRED = ("core", "flash", "l1")
_STACK = 1 << 10
_LARGEST = 1 << 32
_SLOWEST, _FASTEST = 1e-6, 1e6
_MAX_BYTES = 1 << 16
_FURTHER = re.compile("l(0|[4-9]|[1-9][0-9]+)(_writable)?|bw[4-9][0-9]*")
"""Keys of levels behind the third."""


@frozen
class Profile:
    """Memories of a microcontroller in bytes; `l1` is read at full speed, `stack` is part of it.

    `dma` are channels that copy while the core computes, 0 for none. A copy takes `t_dma` cycles
    and time for its bytes: `bw21` of them a cycle between L2 and L1, `bw31` between L3 and L1. With
    `weights_in_l3` weights are there even if they fit the flash, which the core reads in place.
    `mhz` is its clock and `pj_per_cycle` the energy of a cycle in picojoules, 0 if not known; it
    may be `pj_spread` times itself more, or so many times less. `places` tell where the user gave
    values.
    """

    name: str
    core: Core
    flash: int
    l1: int
    l2: int = 0
    l3: int = 0
    stack: int = _STACK
    l3_writable: bool = False
    weights_in_l3: bool = False
    dma: int = 0
    bw21: float = 4.0
    bw31: float = 1.0
    t_dma: int = 20
    mhz: float = 0
    pj_per_cycle: float = 0
    pj_spread: float = 0.3
    places: Mapping[str, Place] = field(default_factory=dict, compare=False)

    def place(self, key: str) -> Place:
        """Return where the user gave a value: in a file or as an option; else the profile's."""
        return self.places.get(key, Place(option="--mcu"))

    @property
    def power(self) -> Mapping[str, float]:
        """What is known of clock and energy, by its keys."""
        return {key: getattr(self, key) for key in _MEASURES if self.mhz}

    @property
    def ahead(self) -> bool:
        """Whether copies go on while the core computes."""
        return bool(self.dma)

    def resized(self, sizes: Mapping[str, int]) -> Profile:
        """Return the profile with sizes that options gave; what an option made l3 can be written.

        Raises DiagnosticError (E904) if an option makes a level no larger than a nearer one. A
        level of the profile that is no larger than one that an option gave is left out.
        """
        if not sizes:
            return self
        places = {**self.places, **{key: Place(option=f"--{key}") for key in sizes}}
        changed: dict[str, Any] = {**sizes, "places": places}
        profile = replace(self, **changed)
        if "l3" in sizes:
            profile = replace(profile, l3_writable=True)
        nearest = profile.l1
        for key in ("l2", "l3"):
            level = getattr(profile, key)
            if level and level <= nearest:
                if key in sizes:
                    raise DiagnosticError(_too_near(key, level, nearest, places[key]))
                unused: dict[str, Any] = {key: 0}
                profile, level = replace(profile, **unused), 0
            nearest = level or nearest
        return profile

    def exceeded(self, flash: int, ram: int) -> list[Diagnostic]:
        """Return an error (E905) if a program without a plan of its memory is too large."""
        needs = (("flash", flash, self.flash), ("RAM", ram, self.l1))
        return [
            Diagnostic(
                "E905",
                f"{self.name} has {available:,} bytes of {kind}, {needed:,} are needed",
                Place(option="--mcu"),
                "Choose narrower layers, fewer bits or a larger microcontroller.",
            )
            for kind, needed, available in needs
            if needed > available
        ]

    def milliseconds(self, cycles: float) -> float | None:
        """Return the time of cycles; None if the clock is not known."""
        return cycles / self.mhz / 1e3 if self.mhz else None

    def joules(self, cycles: float) -> Estimate | None:
        """Return the energy of cycles; None if that of one is not known."""
        factor = (1 + self.pj_spread) * _CYCLES_FACTOR
        energy = cycles * self.pj_per_cycle / 1e12
        return Estimate.of(energy, (1.0, 1 / factor, factor)) if self.pj_per_cycle else None

    @property
    def leveled(self) -> bool:
        """Whether there is more memory than L1."""
        return self.l2 > 0 or self.l3 > 0


def _too_near(key: str, size: int, nearer: int, place: Place) -> Diagnostic:
    """A level is no larger than one that is nearer."""
    return Diagnostic("E904", f"{key} has {size} bytes, a nearer level {nearer}: levels further "
                      "away are larger", place, f"Make {key} larger, or leave it out.")  # fmt: skip


UNLIMITED = 1 << 32
"""Bytes of a memory whose size is not known: all that a core can address."""
ANY = Profile("any Cortex-M4", CORES["cortex-m4"], UNLIMITED, UNLIMITED)
"""Any microcontroller with this core."""
PORTABLE = Profile("any core", Core("portable", simd=False, multiplier=True), UNLIMITED, UNLIMITED)
"""Any core of 32 bits or more: C without instructions of one."""


def names() -> tuple[str, ...]:
    """Return the names of the profiles that are shipped."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.yaml")))


def read_profile(name: str) -> Profile:
    """Return the profile of a name, or of a file if it ends in .yaml or .yml.

    Raises DiagnosticError (E903) with all names, the nearest first, or (E904) with lines and
    columns.
    """
    if name.endswith((".yaml", ".yml")):
        return _parsed(Path(name), Path(name).stem)
    profiles = names()
    if name.lower() not in profiles:
        near = get_close_matches(name.lower(), profiles, 3)
        others = [one for one in profiles if one not in near]
        raise DiagnosticError(
            Diagnostic("E903", f"no microcontroller {name!r} is known", Place(option="--mcu"),
                       f"Choose {', '.join([*near, *others])}, or write a profile of your own "
                       "(.yaml): core, flash, l1.")
        )  # fmt: skip
    return _parsed(FOLDER / f"{name.lower()}.yaml", name.lower())


def _parsed(path: Path, name: str) -> Profile:
    try:
        text = read_text(path, _MAX_BYTES)
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except OSError as exc:
        raise DiagnosticError(
            Diagnostic("E904", f"it cannot be read: {exc.strerror}", Place(str(path)), _REMEDY)
        ) from None
    except yaml.MarkedYAMLError as exc:
        mark = exc.problem_mark
        place = Place(str(path), mark.line + 1 if mark else None, mark.column + 1 if mark else None)
        problem = exc.problem or "it cannot be read"
        better = explained(problem, text, mark.line, mark.column) if mark else None
        context = context_of(exc)
        where = f" ({context})" if context else ""
        explanation, remedy = better or (f"{problem}{where}", remedy_of(problem))
        raise DiagnosticError(
            Diagnostic("E904", f"it is not YAML: {explanation}", place, remedy)
        ) from None
    except (UnicodeDecodeError, RecursionError, yaml.YAMLError):
        raise DiagnosticError(
            Diagnostic("E904", "it is not YAML text", Place(str(path)), _REMEDY)
        ) from None
    if not isinstance(root, yaml.MappingNode):
        raise DiagnosticError(Diagnostic("E904", "it has no keys", Place(str(path), 1, 1), _REMEDY))
    reader = _Reader(path)
    values, places = reader.values(root)
    if path.parent == FOLDER:
        places = {}
    refuse_errors(reader.problems)
    return Profile(
        name,
        _core(values),
        values["flash"],
        values["l1"],
        values.get("l2", 0),
        values.get("l3", 0),
        values.get("stack", _STACK),
        values.get("l3_writable") == "true",
        values.get("weights") == "l3",
        **{key: values[key] for key in (*_NUMBERS, *_RATES, *_MEASURES) if key in values},
        places=places,
    )


_REMEDY = "docs/software.md lists the keys of a profile."


def _core(values: Mapping[str, Any]) -> Core:
    """Return the core; a profile may say that it lacks what others of its kind have."""
    core = CORES[values["core"]]
    simd = core.simd and values.get("simd", "dsp") == "dsp"
    multiplier = core.multiplier and values.get("mul") != "none"
    helium = core.helium and "simd" not in values
    return replace(core, simd=simd, multiplier=multiplier, helium=helium)


class _Reader:
    """Reads the keys of a profile and collects all that is wrong with them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.problems: list[Diagnostic] = []

    def values(self, root: yaml.MappingNode) -> tuple[dict[str, Any], dict[str, Place]]:
        """Return the values by key, and their places."""
        values: dict[str, Any] = {}
        nodes: dict[str, yaml.Node] = {}
        for key, value in root.value:
            if not isinstance(key, yaml.ScalarNode) or not isinstance(value, yaml.ScalarNode):
                name = repr(str(key.value)) if isinstance(key, yaml.ScalarNode) else "one"
                self._complain(
                    key, f"keys and values are words or numbers, {name} is a list or mapping"
                )
                continue
            name = str(key.value)
            if name in nodes:
                self._complain(key, f"{name!r} is given twice")
            nodes[name] = value
            values |= dict(self._value(name, key, value))
        for name in _REQUIRED:
            if name not in nodes:
                self._complain(root, f"{name!r} is missing")
        if not self.problems:
            self._contradictions(values, nodes)
        return values, {name: self._place(node) for name, node in nodes.items()}

    def _place(self, node: yaml.Node) -> Place:
        mark = node.start_mark
        return Place(str(self.path), mark.line + 1, mark.column + 1)

    def _complain(self, node: yaml.Node, message: str, remedy: str = _REMEDY) -> None:
        """A memory profile is refused."""
        self.problems.append(Diagnostic("E904", message, self._place(node), remedy))

    def _value(
        self, name: str, key: yaml.ScalarNode, node: yaml.ScalarNode
    ) -> Iterator[tuple[str, Any]]:
        text = str(node.value)
        if name in _WORDS:
            if text not in _WORDS[name]:
                self._complain(node, f"{name} {text!r} is not one of {', '.join(_WORDS[name])}")
                return
            yield name, text
        elif name in _SIZES or name in _NUMBERS:
            number = _number(text)
            if number is None:
                self._complain(node, f"{name} {text!r} is not a number such as 2048 or 64K")
            elif number > _LARGEST:
                self._complain(node, f"{name} is {text}; cores address {_LARGEST:,} bytes")
            elif number < 0 or (number == 0 and name in _REQUIRED):
                self._complain(node, f"{name} is {number}; it must be positive")
            else:
                yield name, number
        elif name in _MEASURES:
            measure = _rate(text)
            if measure is None or not 0 < measure <= _LARGEST_MEASURE:
                self._complain(node, f"{name} {text!r} is no number above 0 and up to "
                               f"{_LARGEST_MEASURE:g}")  # fmt: skip
            else:
                yield name, measure
        elif name in _RATES:
            rate = _rate(text)
            if rate is not None and rate > 0 and not _SLOWEST <= rate <= _FASTEST:
                self._complain(node, f"{name} is {text}; it can be {_SLOWEST:g} to {_FASTEST:g}",
                               "Write bytes per cycle, such as 4 or 0.5.")  # fmt: skip
            elif rate is None:
                self._complain(node, f"{name} {text!r} is not a number such as 4 or 0.5")
            elif rate <= 0:
                self._complain(node, f"{name} is {text}; a memory must transfer bytes",
                               "Write bytes per cycle, such as 4 or 0.5.")  # fmt: skip
            else:
                yield name, rate
        else:
            self._complain(key, *_unknown(name))

    def _contradictions(self, values: Mapping[str, Any], nodes: Mapping[str, yaml.Node]) -> None:
        """Complain about values that cannot be true together."""
        core = CORES[values["core"]]
        if values.get("simd") == "dsp" and not core.simd:
            self._complain(nodes["simd"], f"{core.name} has no DSP instructions")
        if values.get("mul") in ("1cycle", "n") and not core.multiplier:
            self._complain(nodes["mul"], f"{core.name} has no multiplier")
        if values.get("stack", 0) >= values["l1"]:
            stated = getattr(nodes.get("stack"), "value", values["stack"])
            self._complain(
                nodes["stack"],
                f"a stack of {values['stack']} bytes (stack: {stated}) leaves no room in l1, with "
                f"{values['l1']} bytes",
                "State a smaller stack, or all bytes of l1.",
            )
        for key, memory in (("bw21", "l2"), ("bw31", "l3"), ("l3_writable", "l3")):
            if key in values and not values.get(memory):
                self._complain(nodes[key], f"{key} is given for {memory}, which has no bytes")
        if values.get("weights") == "l3" and not values.get("l3"):
            self._complain(nodes["weights"], "weights cannot be in l3, which has no bytes")
        if "t_dma" in values and not values.get("dma"):
            self._complain(nodes["t_dma"], "t_dma is given for dma, which has no channels")
        self._order(values, nodes)

    def _order(self, values: Mapping[str, Any], nodes: Mapping[str, yaml.Node]) -> None:
        """Complain about levels that are in the wrong order."""
        sizes = [key for key in ("l1", "l2", "l3") if values.get(key)]
        for near, far in pairwise(sizes):
            if values[far] <= values[near]:
                self._complain(nodes[far], f"{far} has {values[far]} bytes, {near} {values[near]}: "
                               "levels further away are larger",
                               f"Make {far} larger than {near}, or leave it out.")  # fmt: skip
        if "bw21" in values and values.get("bw31", 0) > values["bw21"]:
            self._complain(nodes["bw31"], f"bw31 is {values['bw31']}, bw21 {values['bw21']}: "
                           "levels further away are slower", "Exchange l2 and l3.")  # fmt: skip


def _unknown(name: str) -> tuple[str, str]:
    """Return the error for an unknown key of a profile, and the remedy."""
    if _FURTHER.fullmatch(name):
        return (
            f"{name!r}: a profile has up to three levels of memory, l1 to l3",
            "State the level that matters behind l2 as l3, with the bw31 of the slowest on the way "
            "to it.",
        )
    keys = (*_SIZES, *_NUMBERS, *_RATES, *_MEASURES, *_WORDS)
    near = get_close_matches(name.lower(), keys, 1)
    return (
        f"unknown key {name!r}",
        f"Did you mean {near[0]!r}?" if near else f"Keys are {', '.join(keys)}.",
    )


def _rate(text: str) -> float | None:
    """Return the number of a text such as 0.5."""
    try:
        rate = float(text)
    except ValueError:
        return None
    return rate if isfinite(rate) else None


def _number(text: str) -> int | None:
    """Return the number of a text such as 64K."""
    unit = _UNITS.get(text[-1:].upper(), 1)
    digits = text[:-1] if unit > 1 else text
    try:
        return int(digits, 0) * unit
    except ValueError:
        return None
