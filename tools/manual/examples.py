"""Worked examples of the manual's hardware pages: small networks, taken through the network loader.

Their words and results are what the pages show.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from ai8xtools.synthesis.layout import InputPort
from ai8xtools.synthesis.options import EncodeOptions, PlaceOptions, ResolveOptions
from ai8xtools.synthesis.pipeline import Synthesis, synthesize
from ai8xtools.synthesis.program import Block, Program, Write
from device import CHIPS, MAX78000, MAX78002, Chip
from tools.manual.markdown import hexadecimal, table, word

Array = NDArray[np.int64]

_DATA = np.array([1, 2, 3, -128])
_WEIGHTS = (100, -128)
_COLUMN_WORDS = 4
"""Words of a kernel column that is written plainly; the last one stores it."""


@dataclass(frozen=True)
class Example:
    """A network with its weights (one array for each layer that has some), biases and sample."""

    layers: Sequence[Mapping[str, Any]]
    sample: Array
    weights: Sequence[Array] = ()
    biases: Sequence[Array] = ()
    chip: Chip = MAX78000
    port: InputPort = InputPort.MEMORY
    options: EncodeOptions = field(default_factory=lambda: EncodeOptions(express=False))

    def run(self) -> Synthesis:
        """Take the network through the loader."""
        with tempfile.TemporaryDirectory() as name:
            return self._run(Path(name))

    def _run(self, folder: Path) -> Synthesis:
        described = {"arch": "test", "dataset": "example", "layers": [*map(dict, self.layers)]}
        (folder / "example.yaml").write_text(yaml.safe_dump(described), encoding="utf-8")
        np.save(folder / "sample.npy", self.sample)
        named: dict[str, Any] = {}
        for option, arrays in (("weight_input", self.weights), ("bias_input", self.biases)):
            if arrays:
                named[option] = str(folder / f"{option}.npy")
                with Path(named[option]).open("wb") as file:
                    for array in arrays:
                        np.save(file, array[None] if array.ndim > 1 and len(arrays) == 1 else array)
        resolving = ResolveOptions(
            sample_input=str(folder / "sample.npy"), input_port=self.port, **named
        )
        return synthesize(str(folder / "example.yaml"), self.chip, resolving, self.options)


def _output(example: Example) -> Array:
    """Return the result of the last layer [channel, row, column]."""
    done = example.run()
    return done.activations.outputs[len(example.layers) - 1]


def _text(values: Array) -> str:
    return ", ".join(map(str, values.reshape(-1).tolist()))


# Kernels


def _columns(program: Program) -> Iterator[str]:
    """Yield the bytes of each column, k0 to k8."""
    for words in program.kernels[0].words.reshape(-1, _COLUMN_WORDS).tolist():
        data = words[0].to_bytes(1, "big") + b"".join(w.to_bytes(4, "big") for w in words[1:3])
        yield data.hex(" ").upper()


def _many_passes() -> Array:
    """Kernels of 66 channels to three, of which those of processor 0 are not zero."""
    weights = np.zeros((3, 66, 1, 1), np.int64)
    weights[:, 0, 0, 0], weights[:, 36, 0, 0] = (-100, 67, 33), (37, 3, 69)
    return weights


def _series(*shape: int, first: int = 1) -> Array:
    return np.arange(first, first + np.prod(shape)).reshape(shape)


def kernels() -> str:
    """Return the bytes in kernel memory for some layers."""
    rows = []
    for title, example in _KERNELS.items():
        rows.append([title, "<br>".join(f"`{c}`" for c in _columns(example().run().program))])
    return table(["layer", "columns"], rows)


def _one(
    keys: Mapping[str, Any], shape: tuple[int, ...], weights: Array, chip: Chip = MAX78000
) -> Example:
    """Return a single layer from processor 0 on."""
    channels = shape[0]
    processors = (1 << min(channels, 36)) - 1
    layer = {"processors": processors, "out_offset": 0x2000, "pad": 0, **keys}
    return Example([layer], np.ones(shape, np.int64), [weights], chip=chip)


_NIBBLES = np.array(
    [[-8, 2, 3, 4, 5, 6, 7, 0, 1], [2, 3, 4, 5, 6, 7, 0, 1, 2], [3, 4, 5, 6, 7, 0, 1, 2, 3]]
)
_KERNELS: dict[str, Callable[[], Example]] = {
    "3x3, 8 bits, 1 to 2 channels: 1 to 9; 11 to 19": lambda: _one(
        {"op": "Conv2d", "kernel_size": "3x3"},
        (1, 4, 4),
        np.stack([_series(1, 3, 3), _series(1, 3, 3, first=11)]),
    ),
    "Conv1d of 3 taps, 8 bits, 1 to 4: (1, 2, 3), (4, 5, 6), (7, 8, 9), (10, 11, -12)": lambda: (
        _one(
            {"op": "Conv1d", "kernel_size": 3},
            (1, 8),
            np.array([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, -12]).reshape(4, 1, 3),
        )
    ),
    "3x3, 4 bits, 1 to 3: (-8, 2, 3, 4, 5, 6, 7, 0, 1), (2, 3, 4, 5, 6, 7, 0, 1, 2), "
    "(3, 4, 5, 6, 7, 0, 1, 2, 3)": lambda: _one(
        {"op": "Conv2d", "kernel_size": "3x3", "quantization": 4},
        (1, 4, 4),
        _NIBBLES.reshape(3, 1, 3, 3),
    ),
    "1x1, 8 bits, 66 to 3 in two passes of 36; processor 0 has channels 0 and 36: "
    "(-100, 37), (67, 3), (33, 69)": lambda: _one(
        {"op": "Conv2d", "kernel_size": "1x1"}, (66, 2, 2), _many_passes()
    ),
    "flattened, 4 bits, 1 channel of 3 pixels to 3: (1, 2, 3), (4, 5, 6), (7, -8, -7)": lambda: (
        _one(
            {"op": "Linear", "flatten": True, "quantization": 4},
            (1, 1, 3),
            np.array([[1, 2, 3], [4, 5, 6], [7, -8, -7]]),
        )
    ),
    "MAX78002, calcx4, 1x1, 8 bits, 1 to 8: 1 to 7, -8": lambda: _one(
        {"op": "Conv2d", "kernel_size": "1x1", "calcx4": True},
        (1, 2, 2),
        np.array([1, 2, 3, 4, 5, 6, 7, -8]).reshape(8, 1, 1, 1),
        MAX78002,
    ),
}


def kernel_write() -> str:
    """Return how a column is written in both forms."""
    layer = {
        "op": "Conv2d",
        "processors": 1 << 17,
        "output_processors": 1,
        "out_offset": 0x2000,
        "pad": 0,
    }
    rows: list[list[object]] = []
    for chip in CHIPS:
        for form in ("plain", "packed"):
            options = EncodeOptions(PlaceOptions(weight_start=4), express=form == "packed")
            example = Example(
                [layer], np.ones((1, 4, 4), np.int64), [_series(1, 1, 3, 3)], (), chip,
                options=options,
            )  # fmt: skip
            (block,) = example.run().program.kernels
            stores = [f"0x01 to {word(block.address | 1)} (byte)"] if options.express else []
            stores += [
                f"{word(int(value))} to {word(block.address + 4 * i)}"
                for i, value in enumerate(block.words)
            ]
            rows.append([chip.name, form, "<br>".join(stores)])
    return table(["", "form", "stores"], rows)


# Arithmetic


def shifts() -> str:
    """Return results of a 1x1 convolution with shifts, biases and activations."""
    cases: list[tuple[str, dict[str, Any], tuple[int, ...]]] = [
        ("shift 0", {}, ()),
        ("shift +1", {"output_shift": 1}, ()),
        ("shift +7", {"output_shift": 7}, ()),
        ("shift -1", {"output_shift": -1}, ()),
        ("shift -7", {"output_shift": -7}, ()),
        ("bias 5 and -7", {}, (5, -7)),
        ("bias 5 and -7, shift +1", {"output_shift": 1}, (5, -7)),
        ("ReLU", {"activate": "ReLU"}, ()),
        ("Abs", {"activate": "Abs"}, ()),
        ("32-bit output", {"output_width": 32}, ()),
        ("32-bit output, bias 5 and -7", {"output_width": 32}, (5, -7)),
    ]
    rows = []
    for title, keys, bias in cases:
        layer = {
            "op": "Conv2d", "kernel_size": "1x1", "pad": 0, "processors": 1,
            "out_offset": 0x2000, **keys,
        }  # fmt: skip
        weights = np.array(_WEIGHTS).reshape(2, 1, 1, 1)
        biases = [np.array(bias)] if bias else []
        out = _output(Example([layer], _DATA.reshape(1, 2, 2), [weights], biases))
        rows.append([title, *map(_text, out)])
    header = [f"input {_text(_DATA)}", *(f"weight {w}" for w in _WEIGHTS)]
    return table(header, rows)


def pooling() -> str:
    """Return results of pooling."""
    image = np.array([[0, 0, -1, -2], [0, 3, 0, -1], [5, 6, 7, 8], [-9, -9, -9, -8]])
    cases: list[tuple[str, dict[str, Any], bool]] = [
        ("maximum 2x2, stride 2", {"max_pool": 2, "pool_stride": 2}, False),
        ("maximum 2x2, stride 1", {"max_pool": 2, "pool_stride": 1}, False),
        ("average 2x2, stride 2", {"avg_pool": 2, "pool_stride": 2}, False),
        ("the same with rounding", {"avg_pool": 2, "pool_stride": 2}, True),
        ("stride 2 alone", {"pool_stride": 2}, False),
    ]
    rows = []
    for title, keys, rounding in cases:
        layer = {"op": "Passthrough", "processors": 1, "out_offset": 0x2000, **keys}
        options = EncodeOptions(average_rounding=rounding)
        rows.append([title, _text(_output(Example([layer], image[None], options=options)))])
    lines = "; ".join(_text(row) for row in image)
    return table([f"rows {lines}", "result"], rows)


def combining() -> str:
    """Return results of combining two and three operands."""
    operands = np.array([[1, 2, 3, 4], [100, -100, 127, -128], [50, -50, 1, -1]])
    rows = []
    for kind in ("add", "sub", "or", "xor"):
        results = []
        for count in (2, 3):
            layer = {
                "op": kind, "operands": count, "processors": 1, "out_offset": 0x2000,
            }  # fmt: skip
            sample = operands[:count].reshape(count, 2, 2)
            results.append(_text(_output(Example([layer], sample))))
        rows.append([kind, *results])
    first, second, third = map(_text, operands)
    return table([f"operands {first}; {second}; {third}", "first two", "all three"], rows)


# Words


def complete_program() -> Example:
    """Return the network whose words the manual shows completely."""
    layer = {
        "op": "Conv2d", "kernel_size": "3x3", "pad": 1, "activate": "ReLU", "processors": 1,
        "in_offset": 0, "out_offset": 0x2000,
    }  # fmt: skip
    weights = np.stack([_series(1, 3, 3), 20 * _series(1, 3, 3, first=-4)])
    return Example([layer], _series(1, 4, 4) * 10 - 80, [weights], [np.array([5, -7])])


def program() -> str:
    """Return every word of a small program, and its result."""
    done = complete_program().run()
    code = done.program
    lines = ["```", f"{'address':12}{'word':12}{'register':10} fields"]
    lines += ["# initialization", *_register_lines(code, code.init)]
    lines += ["# kernels", *_memory_lines((b.address, b.words.tolist()) for b in code.kernels)]
    biases = ((b.address, [int(v) for v in b.values]) for b in code.biases)
    lines += ["# biases", *_memory_lines(biases)]
    lines += ["# layer 0", *_register_lines(code, code.configure)]
    lines += ["# input", *_memory_lines((b.address, b.words.tolist()) for b in code.inputs)]
    lines += ["# start", *_register_lines(code, code.start)]
    expected = zip(code.expected.addresses.tolist(), code.expected.values.tolist(), strict=True)
    words = [value for _, value in sorted(expected)]
    first = int(code.expected.addresses.min())
    lines += ["# the result, after the interrupt", *_memory_lines([(first, words)]), "```"]
    return "\n".join(lines)


def _register_lines(code: Program, blocks: Sequence[Block]) -> Iterator[str]:
    """Yield address, word, name and fields that are not zero of each register that is written."""
    from ai8xtools.emulator.words.addresses import AddressMap  # knows what stands where

    registers = AddressMap(code.chip).registers
    for step in (step for block in blocks for step in block.steps):
        if isinstance(step, Write) and not step.skipped:
            register = registers.get(step.address)
            fields = register.unpack(step.value) if register else {}
            text = ", ".join(f"{k}={_short(v)}" for k, v in fields.items() if v)
            name = register.name if register else "AON_CTL"
            yield f"{word(step.address)}  {word(step.value)}  {name:10} {text}".rstrip()


def _short(value: int) -> str:
    return str(value) if value < 64 else hexadecimal(value)


def _memory_lines(runs: Any) -> Iterator[str]:
    """Yield the words of runs of successive addresses, four in a line."""
    for address, values in runs:
        for i in range(0, len(values), _COLUMN_WORDS):
            words = " ".join(word(value) for value in values[i : i + _COLUMN_WORDS])
            yield f"{word(address + 4 * i)}  {words}"


def streaming_example(chip: Chip) -> Example:
    """Return the three streaming layers whose registers the manual shows."""
    base = {"op": "Conv2d", "kernel_size": "3x3", "pad": 1, "streaming": True}
    pooled = {**base, "max_pool": 2, "pool_stride": 2}
    layers = [
        {**base, "activate": "ReLU", "processors": 7, "out_offset": 0x2000},
        {**pooled, "activate": "ReLU", "processors": (1 << 64) - 1, "out_offset": 0x4000},
        {**pooled, "processors": (1 << 32) - 1, "out_offset": 0x6000},
    ]
    kernels = [np.ones(s, np.int64) for s in ((128, 3, 3, 3), (32, 128, 3, 3), (8, 32, 3, 3))]
    return Example(layers, np.ones((3, 8, 32), np.int64), kernels, (), chip, InputPort.FIFO)


def streaming() -> str:
    """Return the registers of three streaming layers on both chips."""
    layers: dict[str, list[dict[str, int]]] = {}
    for chip in CHIPS:
        example = streaming_example(chip)
        code = example.run().program
        layers[chip.name] = [_layer_words(code, i) for i in range(len(example.layers))]
    names = dict.fromkeys(n for words in layers.values() for layer in words for n in layer)
    header = ["register", *(f"{chip}, layer {i}" for chip in layers for i in range(3))]
    rows = (
        [name, *(word(one[name]) if name in one else "" for w in layers.values() for one in w)]
        for name in names
    )
    return table(header, rows)


def _layer_words(code: Program, layer: int) -> dict[str, int]:
    """Return the registers of a layer in group 0 that are not zero, by name."""
    names = {
        0x50000000 + code.chip.layer_address(0, layer, n): n for n in code.chip.layer_registers
    }
    steps = (step for block in code.configure for step in block.steps)
    return {
        names[step.address]: step.value
        for step in steps
        if isinstance(step, Write) and step.address in names and not step.skipped
    }


TABLES: dict[str, Callable[[], str]] = {
    "example-kernels": kernels,
    "example-kernel-write": kernel_write,
    "example-shifts": shifts,
    "example-pooling": pooling,
    "example-combining": combining,
    "example-program": program,
    "example-streaming": streaming,
}
