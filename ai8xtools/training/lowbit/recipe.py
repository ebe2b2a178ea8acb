"""The policy of a low-bit training: our keys, and the hyperparameters of BitNetMCU as they are.

Source: docs/low-bit.md, "Training".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from ai8xtools.quantization.lowbit import ENCODINGS, TRAINING_ONLY
from ai8xtools.training.lowbit.activations import ActivationRule
from ai8xtools.training.lowbit.network import LowBitArchitecture
from ai8xtools.training.lowbit.normalized import ENGINE, NORMS
from ai8xtools.training.policies.complaints import Complaints, closest, shown
from ai8xtools.training.policies.yaml_file import read_section
from ai8xtools.values import frozen

CODE = "E604"
_STEMS = {"ai85fcbit": "dense", "ai85cnnbit": "cnn", "ai85winbit": "windows"}
MODELS = tuple(_STEMS)
_STRIDES = {4: 8, 9: 4, 25: 2}
_MOST_WIDTH = 4096


@frozen
class Recipe:
    """The settings of a training run, with the names of its YAML file.

    `model` is ai85fcbit, ai85cnnbit or ai85winbit. `encoding` is that of all dense layers,
    `encodings` those of each, `window_encoding` those of windows ("": as `encoding`). `act_bits`
    are 8 or 4, `act_mantissa` none, max or recip and its bits. `windows` are 4, 9 or 25.
    Deformed copies are fresh, or taken from a pool of `augmentation_pool` copies of each picture.
    With `teacher_epochs` a float network is trained first, whose logits have the part
    `distillation` in the loss. With `average` above 0 the result is a moving average of the
    weights.
    """

    model: str = "ai85fcbit"
    encoding: str = "4bitsym"
    encodings: tuple[str, ...] = ()
    window_encoding: str = ""
    widths: tuple[int, ...] = (64, 64, 64)
    cnn_width: int = 64
    windows: int = 25
    window_widths: tuple[int, ...] = (32, 8)
    shared: bool = True
    shared_scale: bool = True
    act_bits: int = 8
    act_mantissa: str = "none"
    act_round: bool = True
    clip: str = "octav"
    quantscale: float = 0.25
    clip_until_epoch: int = 60
    clip_init: bool = True
    epochs: int = 60
    batch_size: int = 128
    lr: float = 0.001
    scheduler: str = "Cosine"
    lr_decay: float = 0.1
    step_size: int = 10
    halve_lr_epoch: int = -1
    optimizer: str = "Adam"
    muon_lr: float = 0.01
    muon_momentum: float = 0.95
    muon_head: bool = False
    augmentation: bool = True
    augmentation_copies: int = 1
    rotation1: float = 10.0
    rotation2: float = 10.0
    elastic: float = 0.0
    augmentation_pool: int = 0
    label_smoothing: float = 0.0
    norm: str = ENGINE
    per_output: bool = False
    lambda_l1: float = 0.0005
    prune_epoch: int = -1
    prune_groupstoprune: int = 32
    prune_totalgroups: int = 96
    teacher_epochs: int = 0
    teacher_width: int = 32
    distillation: float = 0.9
    temperature: float = 2.0
    average: float = 0.0
    dropout: float = 0.0

    def architecture(self, classes: int) -> LowBitArchitecture:
        """Return the network for these classes."""
        limit = 15 if self.act_bits == 4 else 127
        rule = ActivationRule(*_kind(self.act_mantissa), self.act_round, limit)
        count = len(self.widths) + 1
        return LowBitArchitecture(
            _STEMS[self.model],
            self.widths,
            classes,
            self.encodings or (self.encoding,) * count,
            self.cnn_width,
            _STRIDES[self.windows],
            self.window_widths,
            self.shared,
            self.window_encoding or self.encoding,
            rule,
            rule,
            self.shared_scale,
            self.norm,
            self.per_output,
            self.prune_totalgroups if self.prune_epoch >= 0 else 0,
            self.dropout,
        )


def _kind(mantissa: str) -> tuple[str, int]:
    """Return kind and bits of a rule."""
    if mantissa.startswith("recip"):
        return "reciprocal", int(mantissa.removeprefix("recip"))
    return ("max" if mantissa == "max" else "shift"), 0


_OTHER_NAMES = {
    "QuantType": "encoding", "NormType": "norm", "maxw_algo": "clip",
    "maxw_quantscale": "quantscale", "maxw_update_until_epoch": "clip_until_epoch",
    "num_epochs": "epochs", "learning_rate": "lr", "elastictransformprobability": "elastic",
}  # fmt: skip
_WIDTHS = ("network_width1", "network_width2", "network_width3")
_MODELS = {"FCMNIST": "ai85fcbit", "CNNMNIST": "ai85cnnbit"}
_IGNORED = (
    "dataset", "runtag", "act_pow2", "act_pow2_round", "first_layer_act_bits",
    "table_scale", "gpu_aug_interp", "pool_seed", "WScale",
    "act_group",
)  # fmt: skip


_ONLY: dict[str, Any] = {"first_layer_act_bits": 8}
"""Keys with the only value that this training can honour."""


def passed_over(path: str) -> tuple[str, ...]:
    """Return the keys of a policy that change nothing here."""
    section = read_section(Complaints(CODE, path))
    return tuple(key for key in section if key in _IGNORED and key not in (*_ONLY, "WScale"))


def read_recipe(path: str, model: str | None = None) -> Recipe:
    """Return what a policy says; InputError (E604) names all keys that cannot be used.

    `model` is that of the command line.
    """
    complaints = Complaints(CODE, path)
    return _recipe(read_section(complaints), complaints, model)


def recipe_of(content: Mapping[str, Any], path: str) -> Recipe:
    """Return the recipe in the mapping of a checkpoint; raises as `read_recipe`."""
    return _recipe(content, Complaints(CODE, path), None)


def _recipe(content: Mapping[str, Any], complaints: Complaints, model: str | None) -> Recipe:
    names = tuple(field.name for field in fields(Recipe))
    allowed = (*names, *_OTHER_NAMES, *_WIDTHS, *_IGNORED)
    entries = complaints.keys(content, allowed, "the policy", names)
    values: dict[str, Any] = {}
    for key in (key for key in entries if key in names or key in _OTHER_NAMES):
        name = _OTHER_NAMES.get(key, key)
        kind = next(str(field.type) for field in fields(Recipe) if field.name == name)
        try:
            values[name] = _READERS[kind](entries[key])
        except (TypeError, ValueError):
            complaints.wrong(content, key, _EXPECTED[kind])
    if "WScale" in entries:
        values["per_output"] = entries["WScale"] == "PerOutput"
        if entries["WScale"] not in ("PerTensor", "PerOutput"):
            complaints.wrong(content, "WScale", "PerTensor or PerOutput")
    for key, only in _ONLY.items():
        if entries.get(key, only) != only:
            complaints.wrong(content, key, str(only), remedy="Nothing else is trained here.")
    widths = [entries[key] for key in _WIDTHS if key in entries]
    for key in (key for key in _WIDTHS if key in entries and not _is_width(entries[key])):
        complaints.wrong(content, key, f"a number up to {_MOST_WIDTH}")
    if widths:
        values.setdefault("widths", tuple(width for width in widths if width))
    for other, own in _OTHER_NAMES.items():
        if other in entries and own in entries:
            complaints.add(f"{other} and {own} say the same", content, other, "Leave one out.")
    named = values.get("model", MODELS[0])
    if named not in (*MODELS, *_MODELS):
        complaints.add(f"model is {shown(named)}", content, "model",
                       _one_of(named, (*MODELS, *_MODELS)))  # fmt: skip
    complaints.refuse()
    values["model"] = model or _MODELS.get(named, named)
    return _checked(Recipe(**values), content, complaints)


def _is_width(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_WIDTH


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _yes(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not -1 <= value <= 1_000_000:
        raise TypeError
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise TypeError
    return float(value)


def _numbers(value: Any) -> tuple[int, ...]:
    if not isinstance(value, list | tuple):
        raise TypeError
    return tuple(map(_whole, value))


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        raise TypeError
    return tuple(map(_text, value))


_READERS: dict[str, Callable[[Any], Any]] = {
    "str": _text, "bool": _yes, "int": _whole, "float": _number,
    "tuple[int, ...]": _numbers, "tuple[str, ...]": _texts,
}  # fmt: skip
_EXPECTED = {
    "str": "a name", "bool": "true or false", "int": "a whole number from 0", "float": "a number",
    "tuple[int, ...]": "a list of whole numbers", "tuple[str, ...]": "a list of names",
}  # fmt: skip


def checked(recipe: Recipe, path: str) -> Recipe:
    """Return a recipe; InputError for what does not go together."""
    return _checked(recipe, {}, Complaints(CODE, path))


def _checked(recipe: Recipe, section: Mapping[str, Any], complaints: Complaints) -> Recipe:
    names = (*ENCODINGS, *TRAINING_ONLY, "BinaryBalanced")
    choices: dict[str, tuple[Any, ...]] = {
        "model": MODELS, "encoding": names, "clip": ("octav", "octav_cb", "prop"),
        "scheduler": ("Cosine", "StepLR", "CosineWarmRestarts"), "optimizer": ("Adam", "Muon"),
        "act_bits": (8, 4), "windows": tuple(_STRIDES), "norm": NORMS,
    }  # fmt: skip
    choices["act_mantissa"] = ("none", "max", *(f"recip{n}" for n in range(2, 17)))
    for key, allowed in choices.items():
        value = getattr(recipe, key)
        if value not in allowed:
            complaints.add(f"{_written(key, section)} is {shown(value)}", section,
                           _written(key, section), _one_of(value, allowed))  # fmt: skip
    for name in (*recipe.encodings, *filter(None, (recipe.window_encoding,))):
        if name not in names:
            complaints.add(f"encodings: {shown(name)} is not known", section, "encodings",
                           _one_of(name, names))  # fmt: skip
    if recipe.encodings and len(recipe.encodings) != len(recipe.widths) + 1:
        fault = f"encodings has {len(recipe.encodings)} names for {len(recipe.widths) + 1} layers"
        complaints.add(fault, section, "encodings", "Name one for each layer, or a single one.")
    sizes = {
        "widths": recipe.widths, "window_widths": recipe.window_widths or (0,),
        "cnn_width": (recipe.cnn_width,), "batch_size": (recipe.batch_size,),
        "epochs": (recipe.epochs,), "teacher_width": (recipe.teacher_width,),
    }  # fmt: skip
    if not (recipe.lr > 0 and recipe.muon_lr > 0 and recipe.quantscale > 0):
        fault = f"lr is {recipe.lr:g}, muon_lr {recipe.muon_lr:g}, quantscale {recipe.quantscale:g}"
        complaints.add(f"{fault}; all must be above 0", section, _written("lr", section),
                       "A usual learning rate is lr: 0.002.")  # fmt: skip
    _check_ranges(recipe, section, complaints)
    _check_together(recipe, section, complaints)
    for key, numbers in sizes.items():
        if not all(1 <= number <= _MOST_WIDTH for number in numbers):
            fault = shown(numbers[0] if len(numbers) == 1 else [*numbers])
            complaints.add(
                f"{_written(key, section)} is not from 1 to {_MOST_WIDTH}, but {fault}",
                section,
                _written(key, section),
                "Every number must be in these limits.",
            )
    complaints.refuse()
    return recipe


_RANGES: dict[str, tuple[float, float]] = {
    "augmentation_pool": (-1, 64), "augmentation_copies": (0, 64), "teacher_epochs": (0, 1000),
    "label_smoothing": (0, 1), "distillation": (0, 1), "temperature": (0.01, 100),
    "elastic": (0, 1), "step_size": (0, 1_000_000), "clip_until_epoch": (0, 1_000_000),
    "average": (0, 0.99999), "dropout": (0, 0.9), "rotation1": (0, 180), "rotation2": (0, 180),
    "lr_decay": (0, 1), "lambda_l1": (0, 1000), "muon_momentum": (0, 0.99999),
}  # fmt: skip


def _check_together(recipe: Recipe, section: Mapping[str, Any], complaints: Complaints) -> None:
    """Complain of what needs another key, or excludes it."""
    if recipe.norm == ENGINE and recipe.per_output:
        complaints.add(
            "one scale for each output (WScale: PerOutput) needs a norm", section, "WScale",
            f"Choose a NormType: {', '.join(NORMS[1:])}. The engine has one scale for a layer.",
        )  # fmt: skip
    if recipe.norm != ENGINE and (recipe.model == "ai85winbit" or recipe.act_bits != 8):
        complaints.add(
            f"the norm {recipe.norm} is for dense layers with activations of 8 bits", section,
            _written("norm", section), f"Use norm: {ENGINE}.",
        )  # fmt: skip
    if recipe.prune_epoch < 0:
        return
    if recipe.prune_epoch >= recipe.epochs:
        fault = f"prune_epoch is {recipe.prune_epoch}, behind the last epoch"
        complaints.add(fault, section, "prune_epoch", f"It is below epochs, {recipe.epochs}.")
    total, pruned = recipe.prune_totalgroups, recipe.prune_groupstoprune
    if not recipe.widths or total < 1 or recipe.widths[0] % total or not 0 <= pruned < total:
        width = recipe.widths[0] if recipe.widths else 0
        complaints.add(
            f"{pruned} of {total} groups of {width} outputs cannot be pruned", section,
            "prune_epoch",
            "prune_totalgroups divides the first width; prune_groupstoprune is below it.",
        )  # fmt: skip


def _check_ranges(recipe: Recipe, section: Mapping[str, Any], complaints: Complaints) -> None:
    for key, (least, most) in _RANGES.items():
        if not least <= getattr(recipe, key) <= most:
            name = _written(key, section)
            complaints.add(f"{name} is not from {least:,} to {most:,}", section, name)


def _one_of(value: Any, allowed: tuple[Any, ...]) -> str:
    """Return a remedy that lists what is allowed, and names what was probably meant."""
    near = closest(str(value), map(str, allowed))
    meant = f"Did you mean '{near}'? " if near else ""
    return f"{meant}Use one of {', '.join(map(str, allowed))}."


def _written(key: str, section: Mapping[str, Any]) -> str:
    """Return the name under which a key stands in the file."""
    return next((other for other, own in _OTHER_NAMES.items() if own == key and other in section),
                key)  # fmt: skip
