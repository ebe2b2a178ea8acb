"""Integer weights, biases and shifts for the layers of a description.

From a quantized checkpoint, or from NumPy files when the description says `arch: test`.
Source: spec/network-description.md section 1.5, spec/numerics.md section 4.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from checkpoint import Checkpoint, read_checkpoint
from device import Chip
from diagnostics import Diagnostic, DiagnosticError, Place, Severity
from synthesis.network import Operator
from synthesis.options import ResolveOptions
from synthesis.parse import Description, LayerDescription
from synthesis.parse.rules import kernel, layer_index, operation

BINARY = -1
DEFAULT_BITS = 8
_RANKS = {Operator.LINEAR: 2, Operator.CONV1D: 3, Operator.CONV2D: 4, Operator.CONVTRANSPOSE2D: 4}


@dataclass(frozen=True, slots=True)
class LayerTensors:
    """What one layer takes from the weights file.

    `weights`: int8 [out, in/groups, rows, columns] as the operator uses them; `bias`: int64 in
    units of 128, or None; `bits`: 8, 4, 2, 1 or -1; `shift`: the file's output shift.
    """

    weights: NDArray[np.int8]
    bias: NDArray[np.int64] | None
    bits: int
    shift: int


def takes_weights(layer: LayerDescription) -> bool:
    """Whether the layer takes the next tensor of the weights file."""
    return (
        operation(layer)[0] is not Operator.NONE
        and not layer.get("bypass", False)
        and "weight_source" not in layer
    )


def layer_tensors(
    description: Description, chip: Chip, options: ResolveOptions, problems: list[Diagnostic]
) -> dict[int, LayerTensors]:
    """Return the tensors by layer index; complaints go to `problems`.

    Raises DiagnosticError (or CheckpointError) when the file cannot be read at all.
    """
    wanted = [layer for layer in description.layers if takes_weights(layer)]
    if description.get("arch") == "test":
        found = _from_numpy(description, wanted, options, problems)
    else:
        found = _from_checkpoint(description, wanted, chip, options, problems)
    if len(found) < len(wanted) and not problems:
        missing = wanted[len(found)]
        problems.append(
            missing.error(
                "E210",
                f"the weights file has tensors for {len(found)} layers, "
                f"the description needs {len(wanted)}",
                "op",
                remedy="Remove layers from the description or use the network's own checkpoint.",
            )
        )
    for layer in description.layers:
        source = layer_index(layer.get("weight_source", -1), description)
        if "weight_source" in layer and source in found:
            bits = layer.get("quantization", DEFAULT_BITS)
            found[layer.index] = LayerTensors(
                found[source].weights, found[source].bias, bits, found[source].shift
            )
    return found


def _dropped(layer: LayerDescription, options: ResolveOptions) -> bool:
    return options.no_bias is None or layer.index in options.no_bias


# Checkpoints


@dataclass(frozen=True, slots=True)
class _Key:
    """A weight tensor's names: of its layer, of itself, of its bias."""

    layer: str
    weight: str
    bias: str
    is_batch_norm: bool


def _weight_keys(state: Mapping[str, Any]) -> Iterator[_Key]:
    """Yield the weight tensors in file order; names do not matter, order does."""
    for name in state:
        parts = name.rsplit(".", 2)
        if len(parts) > 1 and parts[-1] == "weight":
            op = parts[1] if len(parts) == 3 else ""
            yield _Key(parts[0], name, name.removesuffix("weight") + "bias", op == "bn")


def _from_checkpoint(
    description: Description,
    wanted: list[LayerDescription],
    chip: Chip,
    options: ResolveOptions,
    problems: list[Diagnostic],
) -> dict[int, LayerTensors]:
    if options.checkpoint_file is None:
        raise DiagnosticError(
            Diagnostic(
                "E201",
                f"no checkpoint is given, but arch is '{description.get('arch')}'",
                description.place_of("arch"),
                "Add --checkpoint-file with the quantized checkpoint of this network.",
            )
        )
    checkpoint = read_checkpoint(options.checkpoint_file)
    place = Place(file=options.checkpoint_file)
    _check_arch(description, checkpoint, place, problems)
    found: dict[int, LayerTensors] = {}
    layers = iter(wanted)
    skip = options.skip_checkpoint_layers
    for key in _weight_keys(checkpoint.state_dict):
        if key.is_batch_norm and options.ignore_bn:
            continue
        if skip:
            skip -= 1
            continue
        layer = next(layers, None)
        if layer is None:
            break
        tensors = _CheckpointLayer(checkpoint.state_dict, key, layer, place, problems).read(chip)
        if tensors is None:
            continue
        bias = None if _dropped(layer, options) else tensors.bias
        found[layer.index] = LayerTensors(tensors.weights, bias, tensors.bits, tensors.shift)
    return found


def _check_arch(
    description: Description, checkpoint: Checkpoint, place: Place, problems: list[Diagnostic]
) -> None:
    if checkpoint.arch is None:
        problems.append(
            Diagnostic(
                "W202",
                "the checkpoint does not name its architecture",
                place,
                None,
                Severity.WARNING,
            )
        )
    elif checkpoint.arch.lower() != str(description.get("arch")).lower():
        problems.append(
            Diagnostic(
                "E202",
                f"'arch' is '{description.get('arch')}', "
                f"but the checkpoint {place} is of '{checkpoint.arch}'",
                description.place_of("arch"),
                "Use the checkpoint of this network or correct 'arch'.",
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

    def problem(self, code: str, message: str, *keys: str, remedy: str | None = None) -> None:
        """Note a complaint about this tensor at the layer that it is for."""
        text = f"{message} (tensor '{self.key.weight}' of {self.place})"
        self.problems.append(self.layer.error(code, text, *keys, remedy=remedy))

    def read(self, chip: Chip) -> LayerTensors | None:
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
        return LayerTensors(shaped, self._bias(), bits, shift)

    def _integers(self, name: str) -> NDArray[np.int64] | None:
        value = np.asarray(self.state[name])
        if value.dtype.kind not in "fiub":
            self.problem("E204", f"'{name}' holds {value.dtype}, not numbers", "op")
            return None
        if value.dtype.kind == "f" and not np.isfinite(value).all():
            self.problem(
                "E204",
                f"'{name}' holds values that are not numbers (NaN or infinite)",
                "op",
                remedy="Training has diverged; train and quantize again.",
            )
            return None
        if value.size == 0 or np.abs(value).max() > 1 << 31:
            self.problem("E204", f"'{name}' is empty or holds values beyond 32 bits", "op")
            return None
        return (
            np.trunc(value).astype(np.int64) if value.dtype.kind == "f" else value.astype(np.int64)
        )

    def _scalar(self, name: str, default: int) -> int:
        if name not in self.state:
            return default
        value = np.asarray(self.state[name])
        if value.size != 1 or not np.isfinite(value).all():
            self.problem("E205", f"'{name}' has {value.size} elements, expected one number", "op")
            return default
        return int(value.reshape(-1)[0])

    def _bits(self, weights: NDArray[np.int64], chip: Chip) -> int | None:
        """Bits of a weight: from the description, else from the values and the checkpoint."""
        stated = self._scalar(f"{self.key.layer}.weight_bits", 0) or DEFAULT_BITS
        explicit = self.layer.get("quantization")
        if explicit is None:
            if chip.has_binary_weights and (np.abs(weights) == 1).all():
                return BINARY
            if not weights.any():
                return 1
        bits = explicit or stated
        if bits not in (1, 2, 4, 8, BINARY):
            self.problem("E206", f"weight_bits is {bits}, expected 1, 2, 4 or 8", "op")
            return None
        low, high = (-1, 1) if bits == BINARY else (-(1 << bits - 1), (1 << bits - 1) - 1)
        least, most = int(weights.min()), int(weights.max())
        if least < low or most > high or (bits == BINARY and (weights == 0).any()):
            self.problem(
                "E206",
                f"weights from {least} to {most} do not fit {abs(bits)} bits ({low} to {high})",
                "quantization",
                "op",
                remedy="Quantize the checkpoint with quantize.py, "
                "and give 'quantization' the width it was quantized to.",
            )
            return None
        return bits

    def _bias(self) -> NDArray[np.int64] | None:
        """Bias in units of 128: what the file holds, divided by the weights' scale."""
        if self.key.bias not in self.state:
            return None
        value = self._integers(self.key.bias)
        if value is None:
            return None
        stated = self._scalar(f"{self.key.layer}.weight_bits", 0) or DEFAULT_BITS
        bias = value.reshape(-1) // (1 << max(stated, 1) - 1)
        if bias.min() < -128 or bias.max() > 127:
            self.problem(
                "E207",
                f"the bias reaches from {bias.min()} to {bias.max()}, the limits are -128 and 127",
                "op",
                remedy="Quantize the checkpoint with quantize.py.",
            )
            return None
        return bias


def shape_weights(
    weights: NDArray[np.int64], layer: LayerDescription, problem: Any, *, flip: bool
) -> NDArray[np.int8] | None:
    """Bring a tensor to [out, in/groups, rows, columns]; complain if it is not the layer's kernel.

    `flip` turns a transposed convolution's tensor [in, out/groups, rows, columns] around, which
    NumPy test weights have already been.
    """
    operator, _ = operation(layer)
    rows, columns = kernel(layer)
    if weights.ndim != _RANKS[operator] and (operator, weights.ndim) not in (
        (Operator.CONV2D, 2),
        (Operator.LINEAR, 4),
    ):
        problem("E208", f"weights of shape {list(weights.shape)} do not belong to {operator}", "op")
        return None
    shape = (*weights.shape, 1, 1)[:4]
    if shape[2:] != (rows, columns):
        problem(
            "E208",
            f"weights have a {shape[2]}x{shape[3]} kernel, the description says {rows}x{columns}",
            "kernel_size",
            "op",
            remedy="Correct 'kernel_size' or 'op', or check that the layers are in the same order.",
        )
        return None
    shaped = weights.reshape(shape)
    if operator is Operator.CONVTRANSPOSE2D and flip:
        shaped = shaped[:, :, ::-1, ::-1].swapaxes(0, 1)
    if operator is Operator.CONVTRANSPOSE2D and layer.get("groups", 1) > 1:
        shaped = shaped.swapaxes(0, 1)
    return np.ascontiguousarray(shaped.clip(-128, 127).astype(np.int8))


# NumPy files


def _from_numpy(
    description: Description,
    wanted: list[LayerDescription],
    options: ResolveOptions,
    problems: list[Diagnostic],
) -> dict[int, LayerTensors]:
    dataset = str(description.get("dataset")).lower()
    name = description.get("weights") or f"weights_{dataset}"
    path = options.weight_input or f"tests/{name}.npy"
    place = description.place_of("weights", "dataset")
    arrays = _read_arrays(path, "test weights", place) if wanted else []
    if len(arrays) == 1:
        arrays = list(arrays[0])
    biases = _numpy_biases(description, options)
    found: dict[int, LayerTensors] = {}
    for position, (layer, array) in enumerate(zip(wanted, arrays, strict=False)):

        def problem(
            code: str, message: str, *keys: str, remedy: str | None = None, at: Any = layer
        ) -> None:
            problems.append(at.error(code, f"{message} (from {path})", *keys, remedy=remedy))

        bits = layer.get("quantization", DEFAULT_BITS)
        narrowed = _requantize(np.asarray(array), bits, problem)
        shaped = None
        if narrowed is not None:
            shaped = shape_weights(narrowed, layer, problem, flip=False)
        if shaped is None:
            continue
        bias = biases[position] if position < len(biases) else None
        if bias is not None and _dropped(layer, options):
            bias = None
        found[layer.index] = LayerTensors(shaped, bias, bits, 0)
    return found


def _numpy_biases(description: Description, options: ResolveOptions) -> list[NDArray[np.int64]]:
    name = description.get("bias")
    path = options.bias_input or (f"tests/bias_{name}.npy" if name else None)
    if path is None:
        return []
    arrays = _read_arrays(path, "test biases", description.place_of("bias"))
    for array in arrays:
        if array.size and (array.min() < -128 or array.max() > 127):
            raise DiagnosticError(
                Diagnostic(
                    "E207",
                    f"a bias reaches from {array.min()} to {array.max()}, "
                    "the limits are -128 and 127",
                    Place(file=path),
                )
            )
    return [array.reshape(-1).astype(np.int64) for array in arrays]


def _read_arrays(path: str, what: str, place: Place) -> list[NDArray[Any]]:
    """Read the consecutive integer arrays of a .npy file; nothing in it is ever unpickled."""
    arrays = []
    try:
        with Path(path).open("rb") as file:
            size = file.seek(0, 2)
            file.seek(0)
            while file.tell() < size:
                arrays.append(np.load(file, allow_pickle=False))
    except FileNotFoundError:
        raise DiagnosticError(
            Diagnostic(
                "E211",
                f"the {what} file '{path}' does not exist",
                place,
                "Files are looked up from the current folder; see --weight-input and --bias-input.",
            )
        ) from None
    except (ValueError, EOFError, OSError) as exc:
        raise DiagnosticError(
            Diagnostic(
                "E211",
                f"the {what} file is not a sequence of numeric NumPy arrays: {exc}",
                Place(file=path),
                "Write each array with numpy.save into one open file.",
            )
        ) from None
    if not arrays or any(a.dtype.kind not in "iu" or a.ndim == 0 or not a.size for a in arrays):
        raise DiagnosticError(
            Diagnostic("E211", f"the {what} file must hold arrays of integers", Place(file=path))
        )
    return arrays


def _requantize(weights: NDArray[Any], bits: int, problem: Any) -> NDArray[np.int64] | None:
    """Narrow test weights to the layer's width: drop low bits of the whole tensor."""
    weights = weights.astype(np.int64)
    least, most = int(weights.min()), int(weights.max())
    width = max((v + (v < 0)).__abs__().bit_length() for v in (least, most)) + 1
    if width > 8:
        problem("E206", f"weights from {least} to {most} do not fit 8 bits", "quantization", "op")
        return None
    if bits == BINARY:
        return np.where(weights >= 0, 1, -1)
    return weights >> max(width - bits, 0)
