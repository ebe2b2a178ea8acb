"""Checkpoints of BitNetMCU: weights and clip scalars by layer, read as data.

They say nothing of encodings: these come from the hyperparameters they were trained with.
Source: docs/low-bit.md, "Networks trained elsewhere".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ai8xtools.checkpoint import Checkpoint, read_checkpoint
from ai8xtools.commands.lowbit.files import KEY, Trained, trained_of
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.quantization.lowbit import proportional

Arrays = Mapping[str, NDArray[Any]]
_IMAGE = 256
_SCALES = {"2bitsym": 0.5, "FP130": 0.125}
"""What files without clip scalars were trained with, where it is not 0.25."""


def read_any(path: str, policy: str | None, encodings: tuple[str, ...]) -> Trained:
    """Return a network of train.py, or one of BitNetMCU.

    `policy` is the file of its hyperparameters, `encodings` those of its dense layers, one for all
    or one for each; both are for networks of BitNetMCU only. Raises InputError (E726).
    """
    checkpoint = read_checkpoint(path, bare=True)
    if KEY in checkpoint.extras or not _is_foreign(checkpoint):
        if policy is not None or encodings:
            raise _refusal("the checkpoint itself says how the network was trained", path,
                           "Leave --qat-policy and --encoding out.")  # fmt: skip
        return trained_of(checkpoint, path)
    return _trained(checkpoint.state_dict, policy, encodings, path)


def _is_foreign(checkpoint: Checkpoint) -> bool:
    shapes = [value.ndim for name, value in checkpoint.state_dict.items() if _is_weight(name)]
    return checkpoint.arch is None and bool(shapes) and set(shapes) <= {2, 4}


def _is_weight(name: str) -> bool:
    return name == "weight" or name.endswith(".weight")


def _trained(state: Arrays, policy: str | None, encodings: tuple[str, ...], path: str) -> Trained:
    from ai8xtools.training.lowbit.recipe import Recipe, checked, read_recipe

    weights = {name.removesuffix("weight"): value for name, value in state.items()
               if _is_weight(name)}  # fmt: skip
    convs = [name for name, value in weights.items() if value.ndim == 4]
    dense = [name for name, value in weights.items() if value.ndim == 2]
    _check_form(weights, convs, dense, path)
    recipe = Recipe() if policy is None else read_recipe(policy)
    names = encodings or recipe.encodings or (recipe.encoding,)
    if len(names) == 1:
        # its networks with convolutions have two bits behind them whatever QuantType says
        first = "2bitsym" if convs and not encodings else names[0]
        names = (first, *names * (len(dense) - 1))
    recipe = replace(
        recipe,
        model="ai85cnnbit" if convs else "ai85fcbit",
        encodings=names,
        widths=tuple(len(weights[name]) for name in dense[:-1]),
        cnn_width=len(weights[convs[0]]) if convs else recipe.cnn_width,
    )
    checked(recipe, path)
    tensors: dict[str, NDArray[Any]] = {}
    quantscale = None if policy is None else recipe.quantscale
    for own, name, encoding in (
        *((f"convs.{i}", name, "8bit") for i, name in enumerate(convs)),
        *((f"layers.{i}", name, names[i]) for i, name in enumerate(dense)),
    ):
        tensors[f"{own}.weight"] = np.asarray(weights[name], np.float32)
        tensors[f"{own}.s"] = _clip(state, name, encoding, quantscale, path)
    classes = tuple(map(str, range(len(weights[dense[-1]]))))
    return Trained(recipe, classes, tensors)


def _clip(
    state: Arrays, name: str, encoding: str, quantscale: float | None, path: str
) -> NDArray[np.float32]:
    """Return the clip scalar of a layer; where the file has none, that of `prop`."""
    if f"{name}s" not in state:
        weights = np.asarray(state[f"{name}weight"])
        scale = quantscale or _SCALES.get(encoding, 0.25)
        return np.array(proportional(weights, scale), np.float32)
    clip = np.asarray(state[f"{name}s"], np.float32)
    if clip.size != 1:
        raise _refusal(f"{name}s has {clip.size} values: WScale is PerOutput, which the engine "
                       "does not have", path, "Train with WScale PerTensor.")  # fmt: skip
    return clip.reshape(())


def _check_form(weights: Arrays, convs: list[str], dense: list[str], path: str) -> None:
    """Raise InputError unless these are layers one behind the other, as the engine has them."""
    inputs = _IMAGE
    if convs:
        shapes = {weights[name].shape for name in convs}
        channels = len(weights[convs[0]])
        if len(convs) != 3 or shapes != {(channels, 1, 3, 3)}:
            listing = ", ".join("x".join(map(str, weights[name].shape)) for name in convs)
            raise _refusal(f"its convolutions are {listing}; known are three of Nx1x3x3", path,
                           "Train ai85cnnbit instead.")  # fmt: skip
        inputs = 4 * channels
    sizes = [inputs, *(len(weights[name]) for name in dense)] if dense else []
    for name, (expected, _) in zip(dense, pairwise(sizes), strict=True):
        if weights[name].shape[1] != expected:
            raise _refusal(f"{name}weight has {weights[name].shape[1]} inputs, {expected} are in "
                           "front of it", path, "Train it on pictures of 16x16.")  # fmt: skip
    if not dense:
        raise _refusal("it has no fully connected layer", path, "Train ai85fcbit instead.")


def _refusal(message: str, path: str, remedy: str) -> InputError:
    return InputError("E726", message, path, remedy)
