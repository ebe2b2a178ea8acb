"""Checkpoints of low-bit networks: written by train.py, read as data by quantize.py.

Source: docs/low-bit.md, "Training".
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ai8xtools.checkpoint import Checkpoint, atomic, read_checkpoint
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.values import frozen

if TYPE_CHECKING:
    from torch.nn import Module

    from ai8xtools.training.lowbit.network import LowBitNetwork
    from ai8xtools.training.lowbit.recipe import Recipe
    from ai8xtools.training.lowbit.teacher import Teacher

KEY = "lowbit"
TEACHER = "lowbit_teacher"
VERSION = 1


@frozen
class Trained:
    """A trained network: recipe, names of the classes, tensors by name."""

    recipe: Recipe
    classes: tuple[str, ...]
    state: Mapping[str, NDArray[Any]]


def save(path: Path, network: LowBitNetwork, recipe: Recipe, classes: tuple[str, ...]) -> None:
    """Write a checkpoint, completely or not at all."""
    plain = {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in asdict(recipe).items()
    }
    content = {
        "epoch": recipe.epochs - 1,
        "arch": recipe.model,
        "state_dict": network.state_dict(),
        "extras": {KEY: {"version": VERSION, "recipe": plain, "classes": list(classes)}},
    }
    _write(path, content)


def save_teacher(path: Path, teacher: Teacher, classes: tuple[str, ...]) -> None:
    """Write the teacher of low-bit networks."""
    content = {
        "epoch": 0,
        "arch": TEACHER,
        "state_dict": teacher.state_dict(),
        "extras": {TEACHER: {"classes": list(classes)}},
    }
    _write(path, content)


def read_teacher(path: str, classes: tuple[str, ...]) -> Teacher | LowBitNetwork:
    """Return a teacher, a float or a low-bit network; InputError (E726) if the file holds none of
    these classes."""
    from ai8xtools.training.lowbit.teacher import Teacher

    checkpoint = read_checkpoint(path)
    extras = checkpoint.entries.get("extras")
    if isinstance(extras, dict) and KEY in extras:
        trained = trained_of(checkpoint, path)
        _check_classes(trained.classes, classes, path)
        return network_of(trained, len(classes), path)
    record = extras.get(TEACHER) if isinstance(extras, dict) else None
    if isinstance(record, dict):
        _check_classes(tuple(map(str, record.get("classes", ()))), classes, path)
    first = np.shape(checkpoint.state_dict.get("body.0.weight", ()))
    teacher = Teacher(len(classes), max(first[:1], default=0) or 1)
    load(teacher, checkpoint.state_dict, path, f"a teacher of {len(classes)} classes")
    return teacher


def _check_classes(own: tuple[str, ...], classes: tuple[str, ...], path: str) -> None:
    """Raise InputError (E726) unless a teacher knows the classes in question."""
    if own != classes:
        raise InputError("E726", f"this teacher was trained for the classes {', '.join(own)}",
                         path, f"Take one for the classes {', '.join(classes)}.")  # fmt: skip


def load(network: Module, tensors: Mapping[str, Any], path: str | None, what: str) -> None:
    """Load tensors that have the names and shapes of a network; else InputError (E726)."""
    import torch

    _check_shapes(network.state_dict(), tensors, path, what)
    network.load_state_dict({k: torch.from_numpy(np.array(v)) for k, v in tensors.items()})


def _write(path: Path, content: dict[str, Any]) -> None:
    import torch

    content["state_dict"] = {name: value.cpu() for name, value in content["state_dict"].items()}
    buffer = io.BytesIO()
    torch.save(content, buffer)
    atomic.write_bytes(path, buffer.getvalue())


def _check_shapes(
    expected: Mapping[str, Any], tensors: Mapping[str, Any], path: str | None, what: str
) -> None:
    """Raise InputError (E726) unless tensors have the names and shapes that are expected."""
    expected_shapes = {name: tuple(value.shape) for name, value in expected.items()}
    shapes = {name: tuple(value.shape) for name, value in tensors.items()}
    if expected_shapes != shapes:
        name = min(key for key, _ in expected_shapes.items() ^ shapes.items())
        raise InputError("E726", f"the tensor {name} does not fit {what}", path,
                         "Train the network again.")  # fmt: skip


def read(path: str) -> Trained:
    """Return what a checkpoint holds; InputError (E726) if it is not of a low-bit network."""
    return trained_of(read_checkpoint(path), path)


def trained_of(checkpoint: Checkpoint, path: str) -> Trained:
    """Return what a checkpoint that was read from `path` holds, as `read`."""
    from ai8xtools.training.lowbit.recipe import recipe_of

    record = checkpoint.entries.get("extras")
    record = record.get(KEY) if isinstance(record, dict) else None
    if not isinstance(record, dict) or record.get("version") != VERSION:
        raise InputError("E726", "this is no checkpoint of a low-bit network", path,
                         "Train one with train.py --model ai85fcbit.")  # fmt: skip
    recipe, classes = record.get("recipe"), record.get("classes")
    if not isinstance(recipe, dict) or not isinstance(classes, list):
        raise InputError("E726", "its recipe is damaged", path, "Train it again.")
    tensors = {name: np.asarray(value) for name, value in checkpoint.state_dict.items()}
    return Trained(recipe_of(recipe, path), tuple(map(str, classes)), tensors)


def network_of(trained: Trained, classes: int, path: str | None = None) -> LowBitNetwork:
    """Return the network as torch module; InputError (E726) for tensors that do not fit."""
    from ai8xtools.training.lowbit.network import LowBitNetwork

    network = LowBitNetwork(trained.recipe.architecture(classes))
    load(network, trained.state, path, "the recipe")
    return network
