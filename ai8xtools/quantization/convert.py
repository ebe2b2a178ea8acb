"""Quantization of a whole checkpoint.

Source: docs/quantization.md, "Ranges"; docs/checkpoints.md, "What quantization changes".
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, assert_never

import numpy as np

from ai8xtools.checkpoint import Array, Checkpoint
from ai8xtools.checkpoint.generations import (
    RANGE,
    THRESHOLD,
    exponent,
    limited_shift,
    refuse_inconsistent,
)
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.quantization.arithmetic import (
    BIAS_UNIT,
    LARGEST,
    Float32s,
    largest_magnitude,
    magnitude_within_deviations,
    mean_channel_magnitude,
    quantile,
    quantize_bias,
    quantize_weights,
    shift_of_range,
)
from ai8xtools.quantization.doubts import (
    lost_layers,
    refuse_other_ranges,
    refuse_quantized,
    warnings_of,
    weight_names,
)
from ai8xtools.quantization.options import (
    ClipMethod,
    LayerIntegers,
    QuantizationOptions,
    check_bits,
)
from ai8xtools.quantization.report import Conversion, TensorReport, measure
from ai8xtools.values import frozen

DEFAULT_BITS = 8
BIAS_BITS = 8  # what the accelerator has, whatever the width of the weights


@frozen
class Quantized:
    """The quantized checkpoint, a report on each tensor, and warnings."""

    checkpoint: Checkpoint
    tensors: tuple[TensorReport, ...]
    warnings: tuple[str, ...]


def quantize_checkpoint(checkpoint: Checkpoint, options: QuantizationOptions) -> Quantized:
    """Return the checkpoint with integer weights and biases (stored as float32) and output shifts.

    Every tensor named `weight` is quantized together with its bias, in the order of the file. All
    else is kept, order and dtypes included. Raises InputError E701 (impossible bits), E516
    (asymmetric quantization), E705 (nothing to quantize, not numbers, or too large ones).
    """
    return _Conversion(checkpoint, options).run()


def bits_by_layer(checkpoint: Checkpoint, options: QuantizationOptions) -> dict[str, int]:
    """Return the weight bits that each layer gets, by its name without the prefix `module.`.

    Raises InputError E701 for impossible bits, E705 for tensors that cannot be quantized.
    """
    conversion = _Conversion(checkpoint, options)
    layer_bits = options.layer_bits
    bits: dict[str, int] = {}
    for index, name in enumerate(weight_names(checkpoint)):
        if layer_bits is None or index < len(layer_bits):
            layer = conversion.layer(name, None if layer_bits is None else layer_bits[index])
            bits.setdefault(layer.name.removeprefix("module."), layer.bits)
    return bits


@frozen
class _Range:
    """The scale of a layer: parameters times `scale` lie within -1..1; `shift` is log2 of it."""

    scale: np.float32
    shift: np.float32 | None
    stored_quantile: bool


@frozen
class _Layer:
    """A layer of the original: `conv1.op.weight` is of layer conv1, `fc.weight` (2020) of fc."""

    name: str
    weight_name: str
    bias_name: str
    weights: Float32s
    biases: Float32s | None
    stored_bits: float | None  # what the file says: None absent, 0 unknown
    bits: int  # what they shall have


@frozen
class _Stored:
    """A layer as it goes into the checkpoint; `shift` None leaves the output shift as it is."""

    weights: Float32s
    bias: Float32s | None
    bias_bits: int
    shift: float | None


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
        self._other_bits: list[str] = []
        self._limited: list[str] = []

    def run(self) -> Quantized:
        refuse_quantized(self._checkpoint)
        refuse_inconsistent(self._original)
        refuse_other_ranges(self._original, self._options)
        for name in self._original:
            if "." in name:
                self._convert(name)
        if not self._weights_seen:
            raise InputError(
                "E705", "no layer has weights (tensors named weight): nothing to quantize",
                remedy="Give the checkpoint of a network that computes with its weights; one that "
                "only pools or returns its input needs --device MCU.",
            )  # fmt: skip
        changes: dict[str, Any] = {"state_dict": self._state}
        if self._masks is not None:
            schedule = self._checkpoint.entries["compression_sched"]
            changes["compression_sched"] = {**schedule, "masks_dict": self._masks}
        changes["extras"] = {**self._checkpoint.extras, **self._method()}
        warnings = warnings_of(self._checkpoint, self._options)
        warnings += lost_layers(self._original, self._state)
        if self._other_bits:
            warnings.append(
                f"{', '.join(self._other_bits)}: the file goes on naming other bits, as other "
                "tools write it; train.py -8 trusts it and will be wrong. Train with a QAT policy "
                "that has these bits, or add --calibrate"
            )
        if self._limited:
            warnings.append(
                f"{', '.join(self._limited)}: the output shift is limited to what the accelerator "
                "holds, so that the network does not compute what it was trained for"
            )
        return Quantized(
            self._checkpoint.with_entries(**changes), tuple(self._reports), tuple(warnings)
        )

    def _method(self) -> dict[str, Any]:
        """Return the notes about the method that go into `extras`."""
        if self._options.calibration is not None:
            return {"clipping_method": "CALIBRATION", **self._options.calibration.notes}
        match self._options.clip_method:
            case None:
                return {"clipping_method": "MAX_BIT_SHIFT"}
            case ClipMethod.SCALE:
                return {"clipping_method": "SCALE", "clipping_scale": self._options.scale}
            case ClipMethod.STDDEV:
                return {"clipping_method": "STDDEV", "clipping_nstds": self._options.stddev}
            case ClipMethod.MAX | ClipMethod.AVGMAX:
                return {"clipping_method": str(self._options.clip_method)}
            case _:
                assert_never(self._options.clip_method)

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
                        "E516",
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
        layer_bits = self._options.layer_bits
        if layer_bits is not None and index >= len(layer_bits):
            return
        layer = self.layer(name, layer_bits[index] if layer_bits is not None else None)
        calibration = self._options.calibration
        chosen = calibration and calibration.layers.get(layer.name.removeprefix("module."))
        stored = self._calibrated(layer, chosen) if chosen else self._rounded(layer)
        self._state[name] = stored.weights
        if chosen:
            self._state[f"{layer.name}.weight_bits"] = _single(chosen.bits)
        elif not layer.stored_bits:
            self._state[f"{layer.name}.weight_bits"] = _single(DEFAULT_BITS)
            if layer.stored_bits is None and self._masks is not None:
                self._masks[f"{layer.name}.weight_bits"] = _single(DEFAULT_BITS)
        named = int(self._state[f"{layer.name}.weight_bits"].item())
        if named != layer.bits and not chosen:
            self._other_bits.append(f"{layer.name} ({layer.bits} bits, named {named})")
        if stored.bias is not None:
            self._state[layer.bias_name] = stored.bias
            self._state[f"{layer.name}.bias_bits"] = _single(stored.bias_bits)
        if stored.shift is not None:
            self._state[f"{layer.name}.output_shift"] = _single(stored.shift)
            if self._masks is not None:
                self._masks[f"{layer.name}.output_shift"] = _single(stored.shift)

    def layer(self, weight_name: str, bits: int | None) -> _Layer:
        """Collect the tensors of a layer; bits come from the description, checkpoint, option, or
        are 8.
        """
        operation = weight_name.removesuffix(".weight")
        name = operation.rpartition(".")[0] or operation
        bias_name = f"{operation}.bias"
        bias = self._original.get(bias_name)
        stored_bits = self._single(f"{name}.weight_bits")
        if bits is None and stored_bits:
            bits = check_bits(stored_bits, f"{name}.weight_bits")
        return _Layer(
            name=name,
            weight_name=weight_name,
            bias_name=bias_name,
            weights=_float32(weight_name, self._original[weight_name]),
            biases=None if bias is None else _float32(bias_name, bias),
            stored_bits=stored_bits,
            bits=bits or self._options.default_bits or DEFAULT_BITS,
        )

    def _rounded(self, layer: _Layer) -> _Stored:
        """Return the layer scaled by the range of its parameters and rounded."""
        scaling = self._range(layer)
        shift = None if scaling.shift is None else self._output_shift(layer, float(-scaling.shift))
        applied = (self._single(f"{layer.name}.output_shift") or 0.0) if shift is None else shift
        how = Conversion(
            factor=np.float32(2 ** (layer.bits - 1)) * scaling.scale,
            bits=layer.bits,
            shift=int(applied),
            gain=float(scaling.scale) * 2.0**applied,
            stored_quantile=scaling.stored_quantile,
        )
        integers = quantize_weights(layer.weights, scaling.scale, layer.bits)
        self._reports.append(measure(layer.weight_name, layer.weights, integers, how))
        if layer.biases is None:
            return _Stored(integers, None, layer.bits, shift)
        held = BIAS_BITS if self._has_range(layer) else layer.bits
        bias = quantize_bias(layer.biases, scaling.scale, layer.bits, held)
        steps = bias / np.float32(2.0 ** (layer.bits - 8) * BIAS_UNIT)
        how = replace(how, bits=held)
        self._reports.append(measure(layer.bias_name, layer.biases, steps, how))
        return _Stored(integers, bias, held, shift)

    def _output_shift(self, layer: _Layer, shift: float) -> float:
        """Return the shift that also divides the output by the range of the layer's activations."""
        if f"{layer.name}.{THRESHOLD}" not in self._original:
            return shift
        total = int(shift) - exponent(self._original, layer.name, THRESHOLD)
        held = limited_shift(total, layer.bits)
        if held != total:
            self._limited.append(f"{layer.name} ({total}, limit {held})")
        return float(held)

    def _calibrated(self, layer: _Layer, chosen: LayerIntegers) -> _Stored:
        """Return the layer with the integers that calibration chose."""
        how = Conversion(
            factor=np.float32(2.0 ** (chosen.bits - 1 - chosen.shift)),
            bits=chosen.bits,
            shift=chosen.shift,
            gain=1.0,
        )
        self._reports.append(measure(layer.weight_name, layer.weights, chosen.weights, how))
        bias = None
        if layer.biases is not None and chosen.bias is not None:
            how = replace(how, bits=BIAS_BITS)
            self._reports.append(measure(layer.bias_name, layer.biases, chosen.bias, how))
            bias = chosen.bias * np.float32(2.0 ** (chosen.bits - 8) * BIAS_UNIT)
        return _Stored(chosen.weights, bias, BIAS_BITS, float(chosen.shift))

    def _range(self, layer: _Layer) -> _Range:
        """Return the scale by the chosen method."""
        options, weights = self._options, layer.weights
        match options.clip_method:
            case None:
                return self._power_of_two(layer)
            case ClipMethod.SCALE:
                scale = np.float32(options.scale)
            case ClipMethod.STDDEV:
                scale = magnitude_within_deviations(weights, options.stddev)
            case ClipMethod.MAX:
                scale = largest_magnitude(weights)
            case ClipMethod.AVGMAX:
                scale = mean_channel_magnitude(weights)
            case _:
                assert_never(options.clip_method)
        return _Range(scale, None, False)

    def _power_of_two(self, layer: _Layer) -> _Range:
        """Return the scale that quantization-aware training uses."""
        if self._has_range(layer):
            shift = np.float32(-exponent(self._original, layer.name, RANGE))
            return _Range(np.exp2(shift), shift, True)
        parts = [layer.weights] if layer.biases is None else [layer.weights, layer.biases]
        parameters = np.abs(np.concatenate([part.ravel() for part in parts]))
        q = self._single(f"{layer.name}.shift_quantile")
        if q is not None and not 0 <= q <= 1:
            raise InputError("E705", f"{layer.name}.shift_quantile is {q:g}, not in 0..1")
        largest = quantile(parameters, np.float32(1 if q is None else q))
        shift = shift_of_range(largest, layer.bits)
        return _Range(np.exp2(shift), shift, q is not None)

    def _has_range(self, layer: _Layer) -> bool:
        """Whether the file says which range the weights have, and that the bias has 8 bits."""
        return f"{layer.name}.{RANGE}" in self._original

    def _single(self, name: str) -> float | None:
        """Return a bookkeeping number of the checkpoint, None if absent."""
        tensor = self._original.get(name)
        if tensor is None:
            return None
        if tensor.size != 1:
            raise InputError("E705", f"{name} has {tensor.size} elements; it is a single number")
        return float(tensor.item())


def _float32(name: str, tensor: Array) -> Float32s:
    if not tensor.size or not tensor.shape or tensor.dtype.kind not in "fiu":
        raise InputError(
            "E705", f"{name} of shape {tensor.shape} and type {tensor.dtype} cannot be quantized"
        )
    largest = float(np.abs(tensor).max())
    if not largest <= LARGEST:  # which is true for NaN, too
        raise InputError(
            "E705",
            f"{name} holds a value of magnitude {largest:g}; possible are numbers up to 2^60",
            remedy="Training diverged: train again with a smaller learning rate.",
        )
    return tensor.astype(np.float32)


def _single(value: float | np.float32) -> Float32s:
    return np.array([value], np.float32)
