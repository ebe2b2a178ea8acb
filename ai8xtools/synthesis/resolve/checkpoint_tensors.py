"""Weights, biases and shifts from a quantized checkpoint.

A layer takes the tensors that its key `weights` names, else the next ones of the file.
Source: docs/writing-a-network.md, "Files of samples and weights".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ai8xtools.checkpoint import Checkpoint, CheckpointError, read_checkpoint
from ai8xtools.checkpoint.generations import FINAL_SCALE, exponent, unknown_entries
from ai8xtools.diagnostics import (
    Diagnostic,
    Place,
    Severity,
    refused,
)
from ai8xtools.synthesis.facts import Fact, effects
from ai8xtools.synthesis.options import ResolveOptions
from ai8xtools.synthesis.parse import Description, LayerDescription
from ai8xtools.synthesis.resolve.copying import added_copies, copying_layers, identity
from ai8xtools.synthesis.resolve.integers import complain_unquantized, fit, scaled_bias, truncated
from ai8xtools.synthesis.resolve.naming import paired
from ai8xtools.synthesis.resolve.tensors import (
    BINARY,
    DEFAULT_BITS,
    Complain,
    LayerTensors,
    bias_is_dropped,
    shape_weights,
)
from ai8xtools.values import frozen
from device import Chip


@frozen
class _Key:
    """A weight tensor's names: of its layer, of itself, of its bias."""

    layer: str
    weight: str
    bias: str
    is_batch_norm: bool

    @property
    def names(self) -> tuple[str, ...]:
        """What a description may call the layer."""
        whole = self.weight.removesuffix(".weight")
        return (whole,) if self.is_batch_norm else (self.layer, whole)


def _weight_keys(state: Mapping[str, Any]) -> Iterator[_Key]:
    """Yield the weight tensors in file order."""
    for name in state:
        parts = name.rsplit(".", 2)
        if len(parts) > 1 and parts[-1] == "weight":
            op = parts[1] if len(parts) == 3 else ""
            yield _Key(parts[0], name, name.removesuffix("weight") + "bias", op == "bn")


def tensors_from_checkpoint(
    description: Description,
    layers: list[LayerDescription],
    chip: Chip | None,
    options: ResolveOptions,
    problems: list[Diagnostic],
) -> dict[int, LayerTensors]:
    """Return the tensors of the layers that take some, by layer index.

    Raises DiagnosticError without a checkpoint, CheckpointError for a file that cannot be read;
    complaints about tensors go to `problems`.
    """
    if options.checkpoint_file is None:
        raise refused(
            "E201",
            f"no checkpoint is given, but arch is '{description.get('arch')}'",
            description.place_of("arch"),
            "Add --checkpoint-file with the quantized checkpoint of this network.",
        )
    checkpoint = options.tensors or read_checkpoint(options.checkpoint_file)
    place = Place(file=options.checkpoint_file)
    if checkpoint.network is not None:
        raise refused(
            "E247",
            "it holds a whole network of 16 or 8 bits, which no description changes",
            place,
            "Leave --config-file and --model out, with --device MCU or CMSIS-NN.",
        )
    _check_arch(description, checkpoint, place, problems)
    _check_entries(checkpoint, place, problems)
    by_layer: dict[int, LayerTensors] = {}
    used: list[tuple[LayerDescription, str, NDArray[Any]]] = []
    keys = [
        key
        for key in _weight_keys(checkpoint.state_dict)
        if not (key.is_batch_norm and options.ignore_bn)
    ][options.skip_checkpoint_layers :]
    stored = [np.asarray(checkpoint.state_dict[key.weight]) for key in keys]
    added = added_copies(layers, stored)
    problems += [_left_out(key.weight, place) for n, key in enumerate(keys) if n in added]
    keys = [key for n, key in enumerate(keys) if n not in added]
    copying = copying_layers(layers, [values.shape for values in stored])
    for layer in layers:
        if layer.index in copying:
            by_layer[layer.index] = identity(layer)
            problems.append(_copied(layer, place))
    layers = [layer for layer in layers if layer.index not in copying]
    for layer, number in paired(layers, [key.names for key in keys], place, problems):
        key = keys[number]
        used.append((layer, key.weight, np.asarray(checkpoint.state_dict[key.weight])))
        tensors = _CheckpointLayer(checkpoint.state_dict, key, layer, place, problems).read(chip)
        if tensors is None:
            continue
        if checkpoint.is_calibrated:
            tensors = replace(tensors, sum_exponent=tensors.shift)
        if bias_is_dropped(layer, options):
            tensors = replace(tensors, bias=None)
        by_layer[layer.index] = tensors
    problems += complain_unquantized(used, place)
    return by_layer


def _left_out(name: str, place: Place) -> Diagnostic:
    return Diagnostic(
        "N249",
        f"'{name}' only copies, and the description has no layer for it; it is left out",
        place,
        "Name the tensors of each layer with the key 'weights' if it is meant.",
        Severity.NOTICE,
    )


def _copied(layer: LayerDescription, place: Place) -> Diagnostic:
    complaint = layer.error(
        "N248",
        f"{place} has no weights for it; it copies what it reads, as the weights of all others fit",
        "op",
        remedy="Use the checkpoint of this description if that is not meant.",
    )
    return replace(complaint, severity=Severity.NOTICE)


def _check_entries(checkpoint: Checkpoint, place: Place, problems: list[Diagnostic]) -> None:
    """Warn of what a later version of QAT may have put into the file."""
    unknown = unknown_entries(checkpoint.state_dict)
    if unknown:
        problems.append(
            Diagnostic(
                "W243",
                f"{', '.join(unknown)}: unknown to this version, and ignored",
                place,
                "The network may not compute what it was trained for; use a version that knows it.",
                Severity.WARNING,
            )
        )


def _check_arch(
    description: Description, checkpoint: Checkpoint, place: Place, problems: list[Diagnostic]
) -> None:
    if checkpoint.arch is None:
        problems.append(
            Diagnostic(
                "W252",
                "the checkpoint does not name its architecture",
                place,
                None,
                Severity.WARNING,
            )
        )
    elif "arch" in description and checkpoint.arch.lower() != description.get("arch").lower():
        problems.append(
            Diagnostic(
                "E202",
                f"'arch' is '{description.get('arch')}', "
                f"but the checkpoint {place} is of '{checkpoint.arch}'",
                description.place_of("arch"),
                "Use the checkpoint of this network or correct 'arch'.",
                effects=effects(blocks=Fact.TENSORS),
            )
        )


class _CheckpointLayer:
    """Converts one weight tensor with its companions."""

    def __init__(
        self,
        state: Mapping[str, Any],
        key: _Key,
        layer: LayerDescription,
        place: Place,
        problems: list[Diagnostic],
    ) -> None:
        self.state = state
        self.key = key
        self.layer = layer
        self.place = place
        self.problems = problems
        self.problem = Complain(layer, problems, str(place), key.weight)

    def read(self, chip: Chip | None) -> LayerTensors | None:
        """Return the layer's tensors, or None after a complaint."""
        weights = self._integers(self.key.weight)
        if weights is None:
            return None
        if weights.ndim == 1 or self.key.is_batch_norm:
            self.problem(
                "E203",
                "the checkpoint holds batch normalization or another one-dimensional weight here",
                "op",
                remedy="Fold batch normalization with batchnormfuser.py before quantizing.",
            )
            return None
        shaped = shape_weights(weights, self.layer, self.problem, flip=True)
        bits = self._bits(weights, chip)
        if shaped is None or bits is None:
            return None
        shift = self._scalar(f"{self.key.layer}.output_shift", 0)
        scale = self._final_scale()
        names = self.key.weight, self.key.bias
        return LayerTensors(shaped, self._bias(), bits, shift, *names, scale)

    def _final_scale(self) -> int:
        """Return the exponent of the scale that software applies to the layer's output."""
        try:
            return exponent(self.state, self.key.layer, FINAL_SCALE)
        except CheckpointError as refusal:
            self.problem(refusal.code, refusal.message, "op")
            return 0

    def _integers(self, name: str) -> NDArray[np.int64] | None:
        return truncated(np.asarray(self.state[name]), name, self.problem)

    def _scalar(self, name: str, default: int) -> int:
        if name not in self.state:
            return default
        value = np.asarray(self.state[name])
        if value.size != 1 or not np.isfinite(value).all():
            self.problem("E205", f"'{name}' has {value.size} elements, expected one number", "op")
            return default
        if value.dtype.kind == "f" and (value % 1).any():
            self.problem("E205", f"'{name}' is {value.item()}, expected a whole number", "op")
            return default
        return int(value.reshape(-1)[0])

    def _stated_bits(self) -> int:
        """Return the bits of a weight by the checkpoint, where 0 is the same as nothing."""
        return self._scalar(f"{self.key.layer}.weight_bits", DEFAULT_BITS) or DEFAULT_BITS

    def _bits(self, weights: NDArray[np.int64], chip: Chip | None) -> int | None:
        """Bits of a weight: from the description, else from the checkpoint.

        The reference tool goes by the values of some weights. It knows only layers that name their
        processors, so that others are free of this: there a bias keeps its size whatever weights
        it stands beside.
        """
        stated = self._stated_bits()
        explicit = self.layer.get("quantization")
        if explicit is not None and 0 < stated < explicit:
            self._warn_of_wider(stated, explicit)
        if explicit is None and "processors" in self.layer:
            explicit = self._guessed(weights, chip)
            if explicit is not None:
                self._warn_of_guess(weights, stated, explicit)
        bits = explicit or stated
        if bits not in (1, 2, 4, 8, BINARY):
            self.problem("E224", f"weight_bits is {bits}, expected 1, 2, 4 or 8", "op")
            return None
        return bits if fit(weights, bits, self.problem) else None

    def _guessed(self, weights: NDArray[np.int64], chip: Chip | None) -> int | None:
        """Return the bits that the reference tool gives weights for their values alone."""
        binary = chip is not None and chip.has_binary_weights
        if binary and (np.abs(weights) == 1).all():
            return BINARY
        return None if weights.any() else 1

    def _warn_of_guess(self, weights: NDArray[np.int64], stated: int, guessed: int) -> None:
        """Warn of a result, or a bias, that is larger because of that."""
        bias = np.asarray(self.state.get(self.key.bias, 0))
        fractions = (np.asarray(self.state[self.key.weight]) % 1).any()  # of which more is said
        if stated not in (2, 4, 8) or fractions or not (weights.any() or bias.any()):
            return
        kind, which = ("binary", "-1 or +1") if guessed == BINARY else ("1-bit", "zero")
        what = "the result" if weights.any() else "the bias"
        complaint = self.layer.error(
            "W234",
            f"weights that are all {which} count as {kind} ones, as in the reference tool; those "
            f"of the checkpoint have {stated} bits: {what} counts {1 << stated - 1} times what it "
            f"should (tensor '{self.key.weight}' of {self.place})",
            "op",
            remedy=f"Set quantization: {stated}.",
        )  # fmt: skip
        self.problems.append(replace(complaint, severity=Severity.WARNING))

    def _warn_of_wider(self, stated: int, explicit: int) -> None:
        """Warn of weights that the description takes for greater numbers than they are."""
        complaint = self.layer.error(
            "W234",
            f"'quantization' is {explicit}, but the checkpoint's weights have {stated} bits: "
            f"they count 1/{1 << (explicit - stated)} of what they should (tensor "
            f"'{self.key.weight}' of {self.place})",
            "quantization", "op",
            remedy=f"Set quantization: {stated}, or leave the key out.",
        )  # fmt: skip
        self.problems.append(replace(complaint, severity=Severity.WARNING))

    def _bias(self) -> NDArray[np.int64] | None:
        """Bias in units of 128: what the file holds, divided by the weights' scale."""
        if self.key.bias not in self.state:
            return None
        value = self._integers(self.key.bias)
        if value is None:
            return None
        return scaled_bias(value, self._stated_bits(), self.key.bias, self.problem)
