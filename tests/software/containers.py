"""Containers of random layers, of every kind that readers compute."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ai8xtools.quantization.lowbit import ENCODINGS, SIGNED
from ai8xtools.quantization.lowbit import pack as pack_codes
from ai8xtools.software.container import run, unpack
from ai8xtools.software.container.execute import bytes_of
from ai8xtools.software.container.pack import Builder, Seal, pack
from ai8xtools.software.container.programs import Code
from ai8xtools.software.container.records import ROUNDED, Container, Element, Follow, Op, Vectors

KINDS = (Element.INT8, Element.INT16)
_SAMPLES = 2


class Growing:
    """A chain of random layers: the last tensor and its shape."""

    def __init__(self, seed: int, kind: Element, shape: tuple[int, int, int]) -> None:
        self.random = np.random.default_rng(seed)
        self.builder = Builder()
        self.kind, self.shape = kind, shape
        self.last = self.builder.activation(kind, shape)

    def integers(self, bits: int, *shape: int) -> NDArray[np.int64]:
        """Return random integers of all sizes."""
        half = 1 << (bits - 1)
        return self.random.integers(-half, half, shape)

    def step(self, op: Op, inputs: list[int], shape: tuple[int, int, int], **more: object) -> None:
        """Add a layer whose output has this shape."""
        kind = more.pop("kind", self.kind)
        made = self.builder.activation(kind, shape)  # type: ignore[arg-type]
        self.builder.layer(op, inputs, made, **more)  # type: ignore[arg-type]
        self.last, self.shape = made, shape

    def sums(self, op: Op, filters: int, kernel: tuple[int, int] = (1, 1), groups: int = 1,
             bits: int = 8, **more: object) -> None:  # fmt: skip
        """Add a layer with weights; the output has the shape that its geometry gives."""
        rows, columns, channels = self.shape
        inputs, size = channels // groups, (1, 1)
        if op == Op.FC:
            inputs = rows * columns * channels
        elif op == Op.CONV_TRANSPOSED:
            size = 2 * rows, 2 * columns
        else:
            stride, pad = more.get("stride", (1, 1)), more.get("pad", (0, 0))
            apart = more.get("dilation", (1, 1))
            size = tuple(
                (self.shape[i] + 2 * pad[i] - (kernel[i] - 1) * apart[i] - 1) // stride[i] + 1  # type: ignore[index]
                for i in (0, 1)
            )  # type: ignore[assignment]
        weights = self.builder.weights(
            self.integers(bits, filters, *kernel, inputs), bits, rows=op == Op.FC
        )
        bias = self.builder.bias(self.integers(16, filters), 16)
        reach = (kernel[0] * kernel[1] * inputs).bit_length() // 2
        shift = more.pop("out_shift", bits - 1 + reach)
        self.step(op, [self.last], (*size, filters), weights=weights, bias=bias, kernel=kernel,
                  groups=groups, bias_shift=3, out_shift=shift, **more)  # fmt: skip

    def container(self, seal: Seal | None = None) -> Container:
        """Return the container, with outputs that Python computes."""
        made = unpack(pack(self.builder.container(None, seal)))
        given, output = made.tensors[0], made.tensors[made.layers[-1].output]
        samples = [self.integers(Element(given.type).bits, *given.shape) for _ in range(_SAMPLES)]
        outputs = [run(made, sample, seal and seal.key) for sample in samples]
        vectors = Vectors(
            tuple(bytes_of(given, sample) for sample in samples),
            tuple(bytes_of(output, values) for values in outputs),
        )
        return self.builder.container(vectors, seal)


def convolutions(grow: Growing) -> None:
    """Strides, padding, dilation, groups, D, shifts to the left, results of 32 bits."""
    grow.sums(Op.CONV, 6, (3, 3), pad=(1, 1), follow=Follow.RELU)
    grow.sums(Op.CONV, 4, (3, 2), groups=2, stride=(2, 1), factor=3, follow=Follow.ABS)
    grow.sums(Op.DEPTHWISE, 4, (3, 3), groups=4, pad=(2, 2), dilation=(2, 2), bits=16, out_shift=18)
    grow.sums(Op.CONV, 5, out_shift=-2)
    grow.sums(Op.CONV_TRANSPOSED, 3, (3, 3), stride=(2, 2), pad=(1, 1))
    grow.sums(Op.FC, 7, bits=16, out_shift=20)
    grow.sums(Op.FC, 5, out_shift=0, kind=Element.INT32)


def pooling(grow: Growing) -> None:
    """Maxima and means of both kinds."""
    rows, columns, channels = grow.shape
    grow.step(Op.MAXPOOL, [grow.last], (rows - 1, columns - 2, channels), kernel=(2, 3))
    rows, columns, _ = grow.shape
    grow.step(Op.AVGPOOL, [grow.last], ((rows - 3) // 2 + 1, columns - 2, channels), kernel=(2, 2),
              dilation=(2, 2), stride=(2, 1))  # fmt: skip
    grow.step(Op.AVGPOOL, [grow.last], (grow.shape[0] - 1, grow.shape[1], channels), kernel=(2, 1),
              follow=ROUNDED)  # fmt: skip


def joining(grow: Growing) -> None:
    """Element by element, concatenation, reshaping."""
    first, shape = grow.last, grow.shape
    made = []
    for op in (Op.ADD, Op.SUB, Op.XOR, Op.OR):
        grow.sums(Op.CONV, shape[2], (3, 3), pad=(1, 1))
        grow.step(op, [first, grow.last, *made], shape)
        made.append(grow.last)
    grow.step(Op.CONCAT, [*made, first], (*shape[:2], 5 * shape[2]), follow=Follow.ABS)
    grow.step(Op.COPY, [grow.last], (1, 1, 5 * shape[0] * shape[1] * shape[2]))


_NAMED = {one.name: one for one in (*ENCODINGS.values(), *SIGNED.values())}


def packed(grow: Growing) -> None:
    """Fully connected layers with weights of few bits."""
    rows, columns, channels = grow.shape
    inputs = rows * columns * channels
    for number, name in enumerate(("4bitsym", "Ternary", "2bitsym", "Binary", "FP130", "8bit",
                                   "NF4", "NF2", "4bit")):  # fmt: skip
        outputs = 13 + number
        weights = few_bits(grow, name, outputs, inputs)
        grow.step(Op.FC, [grow.last], (1, 1, outputs), kind=Element.INT8, weights=weights,
                  follow=Follow.SHIFT_NORM)  # fmt: skip
        inputs = outputs


def few_bits(
    grow: Growing, name: str, outputs: int, inputs: int, kernel: tuple[int, int] = (1, 1)
) -> int:
    """Add random packed weights of an encoding."""
    encoding = _NAMED[name]
    codes = grow.random.integers(0, len(encoding.values), (outputs, inputs))
    return grow.builder.packed(pack_codes(codes, encoding), inputs, encoding, kernel)


def windows(grow: Growing) -> None:
    """Convolutions with weights of few bits, pooling with padding, softmax."""
    channels = grow.shape[2]
    for name, pad in (("4bit", (1, 1)), ("Ternary", (0, 1)), ("NF2", (1, 0)), ("8bit", (0, 0)),
                      ("2bit", (1, 1)), ("1bit", (1, 1))):  # fmt: skip
        weights = few_bits(grow, name, channels, 9 * channels, (3, 3))
        size = tuple(grow.shape[i] + 2 * pad[i] - 2 for i in (0, 1))
        grow.step(Op.CONV, [grow.last], (*size, channels), weights=weights, kernel=(3, 3), pad=pad,
                  out_shift=6)  # fmt: skip
    grow.step(Op.DEPTHWISE, [grow.last], (*grow.shape[:2], channels),
              weights=few_bits(grow, "4bitsym", channels, 4, (2, 2)), kernel=(2, 2), pad=(1, 1),
              dilation=(2, 2), groups=channels, out_shift=3)  # fmt: skip
    rows, columns, _ = grow.shape
    grow.step(Op.AVGPOOL, [grow.last], (rows, columns // 2 + 1, channels), kernel=(3, 2),
              pad=(1, 1), stride=(1, 2))  # fmt: skip
    rows, columns, _ = grow.shape
    grow.step(Op.MAXPOOL, [grow.last], ((rows - 1) // 2 + 1, columns, channels), kernel=(3, 3),
              pad=(1, 1), stride=(2, 1))  # fmt: skip
    rows, columns, _ = grow.shape
    grow.step(Op.AVGPOOL, [grow.last], (rows // 2 + 1, columns, channels), kernel=(2, 3),
              pad=(1, 1), stride=(2, 1), follow=ROUNDED)  # fmt: skip
    rows, columns, _ = grow.shape
    weights = few_bits(grow, "4bit", 9, rows * columns * channels)
    grow.step(Op.FC, [grow.last], (1, 1, 9), kind=Element.INT8, follow=Follow.SHIFT_NORM,
              weights=weights)  # fmt: skip
    grow.step(Op.SOFTMAX, [grow.last], (1, 1, 9), kind=Element.INT8)


def programs(grow: Growing) -> None:
    """Expressions with every instruction, broadcast operands, and runs that are copied."""
    (rows, columns, channels), first = grow.shape, grow.last
    shape = (rows, columns, channels)
    grow.sums(Op.FC, channels, out_shift=9)
    pool = grow.builder.bias(grow.integers(32, 256 + rows * channels), 32)
    c = Code
    words = [
        (c.LOAD, 0), (c.LOAD, 1), (c.MUL, 0), (c.NUMBER | 5 << 8, 7), (c.ADD, 0), (c.SHIFT, 9),
        (c.LOAD, 1), (c.NUMBER | 4 << 8, 90), (c.MIN, 0), (c.FLOOR, 0), (c.LOOK, 3), (c.ROOT, 0),
        (c.NUMBER, 255 + rows * channels), (c.MAX, 0), (c.END, 0),
    ]  # fmt: skip
    grow.step(Op.ELEMENTS, [first, grow.last], shape, weights=pool, kind=Element.INT32,
              program=[word for pair in words for word in pair])  # fmt: skip
    wide = grow.last
    small = [word for pair in ((c.LOAD, 0), (c.SHIFT, 24), (c.END, 0)) for word in pair]
    grow.step(Op.ELEMENTS, [wide], shape, program=small)
    size = rows * columns * channels
    pieces = [2, 0xFFFD, 1, 2, columns, 1, 0, channels, 0, 3, 0, 5, 0,
              0, size - 4, 1, 4, 0, 9, 9, 5 * columns, 0, 0, 0]  # fmt: skip
    grow.step(Op.GATHER, [first, grow.last], (rows + 3, columns, channels), program=pieces)


RECIPES: dict[str, tuple[Callable[[Growing], None], tuple[int, int, int]]] = {
    "convolutions": (convolutions, (9, 8, 4)),
    "pooling": (pooling, (9, 8, 3)),
    "joining": (joining, (4, 5, 3)),
    "packed": (packed, (2, 3, 5)),
    "windows": (windows, (9, 8, 5)),
    "programs": (programs, (3, 4, 5)),
}


def made(
    recipe: str, kind: Element = Element.INT8, seed: int = 1, seal: Seal | None = None
) -> bytes:
    """Return the bytes of a container with test vectors."""
    layers, shape = RECIPES[recipe]
    grow = Growing(seed, kind, shape)
    layers(grow)
    return pack(grow.container(seal))
