"""Reading the header of a low-bit network: sizes and packed weights under the format's names.

Headers of other tools say nothing of activations: theirs are of eight bits, shifted with rounding.
Source: docs/low-bit.md, "The header".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ai8xtools.diagnostics import Diagnostic, DiagnosticError, Place
from ai8xtools.quantization.lowbit import BY_IDENTIFIER, packed_words
from ai8xtools.reading import MIB, read_text
from ai8xtools.software.lowbit.network import Dense, DepthwiseChain, LowBitNetwork, Rule, Windows

MAX_BYTES = 16 * MIB
_DEFINITION = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)(?:[ \t]+(\S+))?[ \t\r]*$", re.MULTILINE)
_ARRAY = re.compile(
    r"\b(u?int(?:8|16|32)_t)\s+(\w+)_weights\s*\[\s*\w*\s*\]\s*=\s*\{([^{}]*)\}\s*;", re.ASCII
)
_LAYER = re.compile(r"L(s?\d{1,4})_(\w+)", re.ASCII)
_MAX_SIDE = 1 << 16
_REMEDY = "Write it again with quantize.py CHECKPOINT MODEL.h --device BITNET."


class _Header:
    """The definitions and arrays of a header."""

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        self.layers: dict[str, dict[str, str]] = {}
        self.model: dict[str, str] = {}
        for name, value in _DEFINITION.findall(text):
            if match := _LAYER.fullmatch(name):
                self.layers.setdefault(match[1], {})[match[2]] = value
            else:
                self.model[name] = value
        self.arrays = {name: (kind, numbers) for kind, name, numbers in _ARRAY.findall(text)}

    def refuse(self, message: str) -> DiagnosticError:
        """Return the error of this file."""
        return DiagnosticError(Diagnostic("E726", message, Place(str(self.path)), _REMEDY))

    def number(self, layer: str, key: str, default: int | None = None) -> int:
        """Return a size or code of a layer; raises DiagnosticError (E726)."""
        name = f"L{layer}_{key}"
        text = self.layers[layer].get(key)
        if text is None and default is not None:
            return default
        return self._whole(name, text)

    def setting(self, name: str, default: int) -> int:
        """Return a number that is about the whole network."""
        return self._whole(name, self.model[name]) if name in self.model else default

    def _whole(self, name: str, text: str | None) -> int:
        if text is None or not re.fullmatch(r"\d{1,6}", text, re.ASCII):
            raise self.refuse(f"{name} is {text or 'missing'}; it must be a whole number")
        return int(text)

    def array(self, layer: str, kind: str, count: int) -> NDArray[np.int64]:
        """Return the numbers of a layer's array; raises DiagnosticError (E726)."""
        name = f"L{layer}_weights"
        if f"L{layer}" not in self.arrays:
            raise self.refuse(f"the array {name} is missing or not complete")
        type_name, text = self.arrays[f"L{layer}"]
        words = [word for word in re.split(r"[\s,\\]+", text) if word]
        limits = np.iinfo(kind)
        try:
            values = [int(word.rstrip("uUlL"), 0) for word in words]
        except ValueError:
            raise self.refuse(f"{name} holds something other than numbers") from None
        if type_name != f"{np.dtype(kind).name}_t":
            raise self.refuse(f"{name} is of type {type_name}, not {np.dtype(kind).name}_t")
        if len(values) != count:
            raise self.refuse(f"{name} has {len(values)} numbers, its layer needs {count}")
        if values and not limits.min <= min(values) <= max(values) <= limits.max:
            raise self.refuse(f"{name} holds numbers beyond {limits.min} to {limits.max}")
        return np.array(values, np.int64)


def read_header(path: str) -> LowBitNetwork:
    """Return the network of a header; raises DiagnosticError (E726), OSError."""
    file = Path(path)
    try:
        header = _Header(file, read_text(file, MAX_BYTES))
    except UnicodeDecodeError:
        raise DiagnosticError(
            Diagnostic("E726", "it is not a text", Place(path), _REMEDY)
        ) from None
    numbers = [number for number in header.layers if "active" in header.layers[number]]
    if not numbers:
        raise header.refuse("it has no layer: no L1_active or the like")
    convolutions = [n for n in numbers if "kernel_size" in header.layers[n]]
    pools = [n for n in numbers if "pool_size" in header.layers[n]]
    windows = [n for n in numbers if n.startswith("s")]
    dense = [n for n in numbers if n not in (*convolutions, *pools, *windows)]
    if not dense:
        raise header.refuse("it has no fully connected layer")
    stem: DepthwiseChain | Windows | None = None
    inputs = header.number(dense[0], "inputs", header.number(dense[0], "incoming_weights"))
    if convolutions:
        stem = _chain(header, convolutions, pools)
        inputs = 4 * stem.channels
    elif windows:
        stem = _windows(header, windows)
        inputs = len(stem.positions) * stem.layers[-1][0].outputs
    layers = []
    for number in dense:
        layers.append(_dense(header, number, inputs))
        inputs = layers[-1].outputs
    name = next((key[6:] for key in header.model if key.startswith("MODEL_")), "model")
    rules = [_rule(header, number) for number in (dense[0], *windows[:1])]
    return LowBitNetwork(
        stem, tuple(layers), rules[0], rules[-1], header.setting("FINE_LEVELS", 0) == 1, name
    )


def fields_of(rule: Rule) -> Mapping[str, int]:
    """Return how a rule stands in a header."""
    kinds = {"shift": 0, "max": 1, "reciprocal": 16 + rule.bits}
    return {
        "act_bits": 4 if rule.limit == 15 else 8,
        "act_rule": kinds[rule.kind],
        "act_round": int(rule.rounds),
        "act_group": rule.group,
    }


def _rule(header: _Header, number: str) -> Rule:
    bits, code = header.number(number, "act_bits", 8), header.number(number, "act_rule", 0)
    if bits not in (4, 8):
        raise header.refuse(f"L{number}_act_bits is {bits}; it must be 4 or 8")
    if not (code in (0, 1) or 18 <= code <= 24):
        raise header.refuse(f"L{number}_act_rule is {code}; it must be 0, 1 or 18 to 24")
    rounds = header.number(number, "act_round", 1) == 1
    group, limit = header.number(number, "act_group", 1), 15 if bits == 4 else 127
    if code >= 18:
        return Rule("reciprocal", code - 16, rounds, limit, group)
    return Rule("max" if code == 1 and bits == 4 else "shift", 0, rounds, limit, group)


def _dense(header: _Header, number: str, inputs: int, sets: int = 1) -> Dense:
    """Return a layer with as many inputs; its rows may have codes for more, to fill a word."""
    identifier, outputs = (
        header.number(number, key) for key in ("bitperweight", "outgoing_weights")
    )
    stated = header.number(number, "incoming_weights")
    encoding = BY_IDENTIFIER.get(identifier)
    if encoding is None:
        identifiers = ", ".join(map(str, sorted(BY_IDENTIFIER)))
        raise header.refuse(
            f"L{number}_bitperweight is {identifier}; known encodings are {identifiers}"
        )
    if not (0 < outputs < _MAX_SIDE and 0 < inputs < _MAX_SIDE):
        raise header.refuse(f"L{number} has {inputs} inputs and {outputs} outputs")
    count = packed_words(inputs, outputs, encoding)
    if stated < inputs or count != packed_words(stated, outputs, encoding):
        raise header.refuse(
            f"L{number}_incoming_weights is {stated}, but the layer in front has {inputs} outputs"
        )
    kind = "uint16" if encoding.name == "Ternary" else "uint32"
    words = header.array(number, kind, sets * count).astype(kind)
    return Dense(int(number.lstrip("s")), encoding, inputs, outputs, words)


def _chain(header: _Header, convolutions: list[str], pools: list[str]) -> DepthwiseChain:
    channels = header.number(convolutions[0], "out_channels")
    if len(convolutions) != 3 or len(pools) != 2:
        raise header.refuse(
            f"it has {len(convolutions)} convolutions and {len(pools)} poolings; known is a chain "
            "of three 3x3 convolutions of each channel, with pooling behind the last two"
        )
    for number in convolutions:
        if header.number(number, "kernel_size") != 3 or header.number(number, "padding", 0):
            raise header.refuse(f"L{number}: only 3x3 kernels without padding are known")
        if header.number(number, "out_channels") != channels or not 0 < channels < 4096:
            raise header.refuse(f"L{number}_out_channels is not that of L{convolutions[0]}")
    kernels = [
        header.array(number, "int8", 9 * channels).astype(np.int8).reshape(-1, 3, 3)
        for number in convolutions
    ]
    first, second, third = map(int, convolutions)
    return DepthwiseChain(
        (first, second, third), (kernels[0], kernels[1], kernels[2]), (int(pools[0]), int(pools[1]))
    )


def _windows(header: _Header, numbers: list[str]) -> Windows:
    stride, shared = header.setting("WINDOW_STRIDE", 0), header.setting("WINDOWS_SHARED", 1) == 1
    if stride not in (2, 4, 8):
        raise header.refuse(f"WINDOW_STRIDE is {stride}; it must be 2, 4 or 8")
    count = len(Windows(stride, (), shared).positions)
    return Windows(stride, tuple(_rows(header, numbers, 1 if shared else count)), shared)


def _rows(header: _Header, numbers: list[str], sets: int) -> Iterator[tuple[Dense, ...]]:
    inputs = 64
    for number in numbers:
        whole = _dense(header, number, inputs, sets)
        parts = np.split(whole.words, sets)
        yield tuple(
            Dense(whole.identifier, whole.encoding, inputs, whole.outputs, part) for part in parts
        )
        inputs = whole.outputs
