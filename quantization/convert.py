"""Quantization of a whole checkpoint. Source: spec/training.md 3.2."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from checkpoint import Array, Checkpoint
from checkpoint.errors import InputError
from quantization.arithmetic import (
    BIAS_UNIT,
    Float32s,
    largest_magnitude,
    magnitude_within_deviations,
    mean_channel_magnitude,
    quantile,
    quantize_bias,
    quantize_weights,
    shift_of_range,
)
from quantization.options import ClipMethod, QuantizationOptions, check_bits
from quantization.report import TensorReport, measure

DEFAULT_BITS = 8


@dataclass(frozen=True, slots=True)
class Quantized:
    """The quantized checkpoint, what happened to each tensor, and what deserves attention."""

    checkpoint: Checkpoint
    tensors: tuple[TensorReport, ...]
    warnings: tuple[str, ...]


def quantize_checkpoint(checkpoint: Checkpoint, options: QuantizationOptions) -> Quantized:
    """Return the checkpoint with integer weights and biases (stored as float32) and output shifts.

    Every tensor named `weight` is quantized together with its bias, in the order of the file. All
    else is kept, order and dtypes included. Raises InputError E701 (impossible bits), E702
    (asymmetric quantization), E705 (nothing to quantize, or not numbers).
    """
    return _Conversion(checkpoint, options).run()


def weight_names(checkpoint: Checkpoint) -> list[str]:
    """Return the names of the tensors that count as the weights of a layer, in the file's order."""
    return [name for name in checkpoint.state_dict if name.endswith(".weight")]


@dataclass(frozen=True, slots=True)
class _Range:
    """The scale of a layer: parameters times `scale` lie within -1..1; `shift` is log2 of it."""

    scale: np.float32
    shift: np.float32 | None
    stored_quantile: bool


class _Conversion:
    """One pass over a checkpoint; the original is only read."""

    def __init__(self, checkpoint: Checkpoint, options: QuantizationOptions) -> None:
        self._checkpoint = checkpoint
        self._options = options
        self._original = checkpoint.state_dict
        self._state = self._original.copy()
        self._masks = None if checkpoint.masks is None else checkpoint.masks.copy()
        self._weights_seen = 0
        self._reports: list[TensorReport] = []

    def run(self) -> Quantized:
        for name in self._original:
            if "." in name:
                self._convert(name)
        if not self._weights_seen:
            raise InputError("E705", "the checkpoint holds no tensor named weight")
        changes: dict[str, Any] = {"state_dict": self._state}
        if self._masks is not None:
            schedule = self._checkpoint.entries["compression_sched"]
            changes["compression_sched"] = {**schedule, "masks_dict": self._masks}
        changes["extras"] = {**self._checkpoint.extras, **self._method()}
        return Quantized(
            self._checkpoint.with_entries(**changes),
            tuple(self._reports),
            tuple(_warnings(self._checkpoint)),
        )

    def _method(self) -> dict[str, Any]:
        """Return the notes about the method that go into `extras`."""
        match self._options.clip_method:
            case None:
                return {"clipping_method": "MAX_BIT_SHIFT"}
            case ClipMethod.SCALE:
                return {"clipping_method": "SCALE", "clipping_scale": self._options.scale}
            case ClipMethod.STDDEV:
                return {"clipping_method": "STDDEV", "clipping_nstds": self._options.stddev}
            case method:
                return {"clipping_method": str(method)}

    def _convert(self, name: str) -> None:
        match name.rpartition(".")[2]:
            case "weight":
                self._convert_weight(name)
            case "adjust_output_shift":
                self._state[name] = _single(0)
            case "quantize_activation":
                self._state[name] = _single(1)
            case "w_zero_point" | "b_zero_point":
                if self._original[name].any():
                    raise InputError(
                        "E702",
                        f"{name} is not zero; the accelerator multiplies symmetric integers only",
                        remedy="Train with symmetric quantization.",
                    )
                del self._state[name]
            case "base_b_q":
                del self._state[name]

    def _convert_weight(self, name: str) -> None:
        """Quantize one weight tensor and the bias beside it."""
        index = self._weights_seen
        self._weights_seen += 1
        operation = name.removesuffix(".weight")
        # `conv1.op.weight` belongs to layer conv1, the older `fc.weight` to layer fc.
        layer = operation.rpartition(".")[0] or operation
        layer_bits = self._options.layer_bits
        if layer_bits is not None and index >= len(layer_bits):
            return
        stored_bits = self._stored(f"{layer}.weight_bits")
        bits = self._bits(index, stored_bits, layer)
        weights = _float32(name, self._original[name])
        bias_name = f"{operation}.bias"
        bias = self._original.get(bias_name)
        biases = None if bias is None else _float32(bias_name, bias)
        found = self._range(layer, weights, biases, bits)

        self._state[name] = quantize_weights(weights, found.scale, bits)
        self._report(name, weights, self._state[name], found, bits)
        if not stored_bits:
            self._state[f"{layer}.weight_bits"] = _single(DEFAULT_BITS)
            if stored_bits is None and self._masks is not None:
                self._masks[f"{layer}.weight_bits"] = _single(DEFAULT_BITS)
        if biases is not None:
            stored = quantize_bias(biases, found.scale, bits)
            self._state[bias_name] = stored
            self._state[f"{layer}.bias_bits"] = _single(bits)
            integers = stored / np.float32(2.0 ** (bits - 8) * BIAS_UNIT)
            self._report(bias_name, biases, integers, found, bits)
        if found.shift is not None:
            self._state[f"{layer}.output_shift"] = _single(-found.shift)
            if self._masks is not None:
                self._masks[f"{layer}.output_shift"] = _single(-found.shift)

    def _bits(self, index: int, stored: float | None, layer: str) -> int:
        """Choose a layer's weight bits: description, checkpoint, command line, 8."""
        wanted = self._options.layer_bits[index] if self._options.layer_bits else None
        if wanted is not None:
            return wanted
        if stored:
            return check_bits(stored, f"{layer}.weight_bits")
        return self._options.default_bits or DEFAULT_BITS

    def _range(self, layer: str, weights: Float32s, biases: Float32s | None, bits: int) -> _Range:
        options = self._options
        match options.clip_method:
            case None:
                parts = [weights] if biases is None else [weights, biases]
                parameters = np.abs(np.concatenate([part.ravel() for part in parts]))
                stored = self._stored(f"{layer}.shift_quantile")
                if stored is not None and not 0 <= stored <= 1:
                    raise InputError("E705", f"{layer}.shift_quantile is {stored:g}, not in 0..1")
                largest = quantile(parameters, np.float32(1 if stored is None else stored))
                shift = shift_of_range(largest, bits)
                return _Range(np.exp2(shift), shift, stored is not None)
            case ClipMethod.SCALE:
                scale = np.float32(options.scale)
            case ClipMethod.STDDEV:
                scale = magnitude_within_deviations(weights, options.stddev)
            case ClipMethod.MAX:
                scale = largest_magnitude(weights)
            case ClipMethod.AVGMAX:
                scale = mean_channel_magnitude(weights)
        return _Range(scale, None, False)

    def _stored(self, name: str) -> float | None:
        """Return a bookkeeping number of the checkpoint, None if absent."""
        tensor = self._original.get(name)
        if tensor is None:
            return None
        if tensor.size != 1:
            raise InputError("E705", f"{name} has {tensor.size} elements; it is a single number")
        return float(tensor.item())

    def _report(
        self, name: str, before: Float32s, integers: Array, found: _Range, bits: int
    ) -> None:
        shift = None if found.shift is None else int(-found.shift)
        self._reports.append(
            measure(name, before, integers, found.scale, bits, shift, found.stored_quantile)
        )


def _float32(name: str, tensor: Array) -> Float32s:
    if not tensor.size or not tensor.shape or tensor.dtype.kind not in "fiu":
        raise InputError(
            "E705", f"{name} of shape {tensor.shape} and type {tensor.dtype} cannot be quantized"
        )
    return tensor.astype(np.float32)


def _single(value: float | np.float32) -> Float32s:
    return np.array([value], np.float32)


def _warnings(checkpoint: Checkpoint) -> list[str]:
    """Return what makes the result doubtful."""
    found = []
    if "extras" not in checkpoint.entries:
        found.append("No `extras` in checkpoint file.")
    weights = [checkpoint.state_dict[name] for name in weight_names(checkpoint)]
    integers = all(np.array_equal(w, np.rint(w)) for w in weights)
    if "clipping_method" in checkpoint.extras or (
        integers and any(np.abs(w).max() > 1 for w in weights)
    ):
        found.append("the checkpoint is already quantized; quantizing again destroys its weights")
    unfused = [k for k in checkpoint.state_dict if k.endswith(".running_mean")]
    if unfused:
        found.append(
            f"{unfused[0]}: batch normalization is not fused; use batchnormfuser.py before"
        )
    return found
