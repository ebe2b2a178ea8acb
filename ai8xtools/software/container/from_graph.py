"""From the steps of a network to a container, with the accelerator's arithmetic.

A step becomes a layer. Data are 8 bits with 7 behind the point, weights are stored with 8.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from ai8xtools.diagnostics.errors import InputError, ToolError
from ai8xtools.quantization.lowbit import SIGNED
from ai8xtools.software.container.cipher import tagged
from ai8xtools.software.container.execute import bytes_of, run
from ai8xtools.software.container.pack import Builder, Seal, pack
from ai8xtools.software.container.records import (
    NONE,
    ROUNDED,
    Container,
    Element,
    Flag,
    Follow,
    Op,
    Vectors,
)
from ai8xtools.software.container.soundness import arena_bytes, intermediates, staging_bytes
from ai8xtools.software.container.unpack import unpack
from ai8xtools.software.graph import (
    Combine,
    Convolution,
    Copy,
    Insert,
    Pool,
    Roll,
    Size,
    Step,
    StepGraph,
)
from ai8xtools.software.graph import Tensor as Data
from ai8xtools.software.kernels.call import KernelCall
from ai8xtools.software.plan.planner import plan
from ai8xtools.software.plan.schemes import Scheme
from ai8xtools.software.profile import PORTABLE
from ai8xtools.synthesis.network import Combination

_DATA_FRACTION, _WEIGHT_FRACTION = 7, 7
_BIAS_SHIFT = 7
_NARROWEST, _WIDEST = -128, 127
_LONGEST = {"kernel": 255, "dimension": 0xFFFF, "selected": 1024}
_JOINS = {
    Combination.ADD: Op.ADD, Combination.SUB: Op.SUB, Combination.XOR: Op.XOR, Combination.OR: Op.OR
}  # fmt: skip


def container_of(
    graph: StepGraph, sample: NDArray[np.integer], expected: NDArray[np.integer], seal: Seal | None
) -> bytes:
    """Return the file of a network that was lowered without fusing, with its sample as test vector.

    `sample` and `expected` are [channel, row, column]. Raises InputError E924 for steps that
    containers have no layer for, ToolError E668 if the container computes something else.
    """
    builder = Lowering(graph).builder
    plain = unpack(pack(planned(builder.container())))
    pixels = np.ascontiguousarray(sample.transpose(1, 2, 0))
    result = run(plain, pixels)
    if not np.array_equal(result.ravel(), expected.transpose(1, 2, 0).ravel()):
        raise ToolError("E668", "the results of the container differ from those of the network",
                        remedy="Report this; nothing was written.")  # fmt: skip
    source, output = plain.tensors[0], plain.tensors[plain.layers[-1].output]
    vectors = Vectors((bytes_of(source, pixels),), (bytes_of(output, result),))
    blob = pack(planned(builder.container(vectors, seal)))
    return blob if seal is None else tagged(blob, seal.key)


def planned(container: Container) -> Container:
    """Return a container with a place in the arena for all that is neither input nor output."""
    inside = {*intermediates(container)}
    nothing = len(container.tensors)  # the input, which stands elsewhere
    sizes = (*(_rounded(one.size_bytes) for one in container.tensors), 0)
    steps = tuple(
        Copy(sources=tuple(one for one in container.inputs_of(layer) if one in inside),
             target=layer.output, layer=number, name=f"layer {number}", pieces=())
        for number, layer in enumerate(container.layers)
    )  # fmt: skip
    calls = {layer.output: KernelCall(function="", arguments=(),
                                      buffer_bytes=staging_bytes(container, layer))
             for layer in container.layers}  # fmt: skip
    tensors = tuple(Data(n, str(n), 1, 1, size) for n, size in enumerate(sizes))
    graph = StepGraph(name="container", tensors=tensors, steps=steps, input=nothing,
                      outputs=(steps[-1].target,))  # fmt: skip
    placed = plan(graph, PORTABLE.core, Scheme.RESIDENT, None, calls, outside=True)
    if not placed.arena_bytes:
        return container
    stored, layers = list(container.tensors), list(container.layers)
    for number in inside:
        stored[number] = replace(stored[number], arena=placed.places[number].offset)
    for (number, _), spot in placed.buffers.items():
        size = staging_bytes(container, layers[number])
        layers[number] = replace(layers[number], staging=spot.offset, staging_bytes=size)
    header = replace(container.header, flags=container.header.flags | Flag.PLAN,
                     arena_bytes=placed.arena_bytes)  # fmt: skip
    return replace(container, header=header, tensors=tuple(stored), layers=tuple(layers))


def memory_of(blob: bytes) -> int:
    """Return the bytes that firmware needs for a container: the arena and the output."""
    container = unpack(blob)
    return arena_bytes(container) + container.tensors[container.layers[-1].output].size_bytes


def _rounded(size: int) -> int:
    return -(-size // 16) * 16


class Lowering:
    """The layers of a container under construction; tensors by their number in the file."""

    def __init__(self, graph: StepGraph) -> None:
        self.graph = graph
        self.builder = Builder()
        self.numbers: dict[int, int] = {}
        self.fractions: dict[int, int] = {graph.input: _DATA_FRACTION}
        if len(graph.outputs) != 1:
            self._refuse("the network", f"it has {len(graph.outputs)} outputs")
        self.numbers[graph.input] = self._activation(graph.input)
        for step in graph.steps:
            self._step(step)
        (output,) = graph.outputs
        if not graph.steps or graph.steps[-1].target != output:
            source = graph.tensors[output]
            size = source.rows, source.columns
            self._copy(self.numbers[output], size, source.channels, self._kind(output))

    def _refuse(self, name: str, reason: str) -> NoReturn:
        raise InputError(
            "E924",
            f"{name}: {reason}; containers have no layer for it",
            remedy="Leave out --container: the C project computes it.",
        )

    def _kind(self, tensor: int) -> Element:
        wide = self.graph.tensors[tensor].bytes_per_value == 4
        return Element.INT32 if wide else Element.INT8

    def _activation(self, tensor: int) -> int:
        one = self.graph.tensors[tensor]
        shape = (one.rows, one.columns, one.channels)
        if max(shape) > _LONGEST["dimension"]:
            self._refuse(one.name, f"it has {'x'.join(map(str, shape))} values")
        return self.builder.activation(self._kind(tensor), shape, self.fractions[tensor])

    def _copy(self, source: int, size: Size, channels: int, kind: Element) -> int:
        """Add a layer that counts rows and columns anew, or widens values; return its output."""
        target = self.builder.activation(kind, (*size, channels), _DATA_FRACTION)
        self.builder.layer(Op.COPY, [source], target)
        return target

    def _source(self, tensor: int, size: Size) -> int:
        """Return the number of a tensor that has this size."""
        one = self.graph.tensors[tensor]
        if (one.rows, one.columns) == size:
            return self.numbers[tensor]
        return self._copy(self.numbers[tensor], size, one.channels, self._kind(tensor))

    def _step(self, step: Step) -> None:
        match step:
            case Convolution():
                self._convolution(step)
            case Pool():
                self._pool(step)
            case Combine():
                sources = [self._source(source, step.size) for source in step.sources]
                self._result(step.target, step.sources[0])
                self.builder.layer(_JOINS[step.join], sources, self.numbers[step.target])
            case Copy():
                self._gathered(step)
            case Insert() | Roll():
                self._refuse(step.name, "it keeps data from one inference to the next")

    def _result(self, target: int, like: int, shift: int = 0) -> None:
        """Add the tensor of a result, with the fraction bits of another and more."""
        fraction = self.fractions[like] + shift
        self.fractions[target] = min(max(fraction, _NARROWEST), _WIDEST)
        self.numbers[target] = self._activation(target)

    def _pool(self, step: Pool) -> None:
        self._check_geometry(step.name, step.window, step.stride, step.dilation)
        self._check_size(step.name, step.in_size, step.out_size, step.window, step.stride,
                         (0, 0), step.dilation)  # fmt: skip
        source = self._source(step.source, step.in_size)
        self._result(step.target, step.source)
        self.builder.layer(
            Op.AVGPOOL if step.kind.averages else Op.MAXPOOL,
            [source],
            self.numbers[step.target],
            follow=ROUNDED if step.kind.rounds else Follow.NOTHING,
            kernel=step.window,
            stride=step.stride,
            dilation=step.dilation,
        )

    def _convolution(self, step: Convolution) -> None:
        full = step.linear and step.in_size == (1, 1)
        if full:
            source, op = self.numbers[step.source], Op.FC
        else:
            source = self._source(step.source, step.in_size)
            op = Op.DEPTHWISE if step.depthwise else Op.CONV
            op = Op.CONV_TRANSPOSED if step.transposed else op
        spacing = step.spread if step.transposed else step.stride
        dilation = (step.dilation, step.dilation)
        self._check_geometry(step.name, step.kernel, spacing, step.pad, dilation)
        if step.channels > _LONGEST["dimension"]:
            self._refuse(step.name, f"it has {step.channels} inputs")
        if not full and not step.transposed:
            self._check_size(step.name, step.in_size, step.out_size, step.kernel, step.stride,
                             step.pad, dilation)  # fmt: skip
        out_shift = 0 if step.wide else step.right
        self._result(step.target, step.source, _WEIGHT_FRACTION - out_shift)
        target = self.numbers[step.target]
        if step.limited:  # clipped to 8 bits, then stored with 32
            narrow = self.builder.activation(Element.INT8, (*step.out_size, step.filters))
        self.builder.layer(
            op,
            [source],
            narrow if step.limited else target,
            follow=_follow(step),
            weights=self.builder.weights(
                step.weights.transpose(0, 2, 3, 1), _bits(step), _WEIGHT_FRACTION, rows=full
            ),
            bias=self._bias(step),
            kernel=step.kernel,
            stride=spacing,
            pad=step.pad,
            dilation=dilation,
            groups=step.groups,
            bias_shift=_BIAS_SHIFT,
            out_shift=out_shift,
        )
        if step.limited:
            self.builder.layer(Op.COPY, [narrow], target)

    def _bias(self, step: Convolution) -> int:
        half = 0 if step.wide or step.right <= 0 else 1 << step.right >> 1
        values, rest = np.divmod(step.start - half, 1 << _BIAS_SHIFT)
        assert not rest.any()
        if not values.any():
            return NONE
        most = int(np.abs(values).max())
        bits = next(bits for bits in (8, 16, 32) if most < 1 << (bits - 1))
        return self.builder.bias(values, bits, _DATA_FRACTION)

    def _gathered(self, step: Copy) -> None:
        """Concatenate the sources; where it is not all of them in order, select channels."""
        target = self.graph.tensors[step.target]
        size = target.rows, target.columns
        sources, channels = self._channels(step)
        whole = [n for n, one in enumerate(sources) for _ in range(self._per_pixel(one, size))]
        joined = [self._source_as(one, size) for one in sources]
        self._result(step.target, sources[0])
        output = self.numbers[step.target]
        if np.array_equal(channels, np.arange(len(whole))):
            self.builder.layer(Op.CONCAT, joined, output)
            return
        if len(whole) > _LONGEST["selected"]:
            self._refuse(step.name, f"it selects from {len(whole)} values")
        if len(joined) > 1:
            both = self.builder.activation(Element.INT8, (*size, len(whole)), _DATA_FRACTION)
            self.builder.layer(Op.CONCAT, joined, both)
            joined = [both]
        chosen = np.zeros((target.channels, 1, 1, len(whole)), np.int64)
        chosen[np.arange(target.channels), 0, 0, channels] = 1
        weights = self.builder.weights(chosen, 8)
        self.builder.layer(Op.CONV, joined, output, weights=weights)

    def _channels(self, step: Copy) -> tuple[list[int], NDArray[np.int64]]:
        """Return the sources of a copy, and which of their channels, counted on, its own are."""
        target = self.graph.tensors[step.target]
        size = target.rows, target.columns
        sources = list(dict.fromkeys(piece.source for piece in step.pieces))
        starts = dict(zip(sources, np.cumsum([0, *(self._per_pixel(s, size) for s in sources)]),
                          strict=False))  # fmt: skip
        origins = np.full(target.size_bytes, -1, np.int64)
        for piece in step.pieces:
            width = self._per_pixel(piece.source, size)
            for number in range(piece.count):
                to = piece.to_start + number * piece.to_step
                places = piece.from_start + number * piece.from_step + np.arange(piece.length)
                pixels = (to + np.arange(piece.length)) // target.channels
                if not np.array_equal(places // width, pixels):
                    self._refuse(step.name, "it moves values to other pixels")
                origins[to : to + piece.length] = starts[piece.source] + places % width
        rows = origins.reshape(target.pixels, target.channels)
        if (rows != rows[0]).any():
            self._refuse(step.name, "it takes other channels from other pixels")
        return sources, rows[0]

    def _per_pixel(self, tensor: int, size: Size) -> int:
        """Return the channels of a tensor that is taken for one of this size."""
        one = self.graph.tensors[tensor]
        if one.size_bytes % (size[0] * size[1]):
            self._refuse(one.name, "its values are cut into other pixels")
        return one.size_bytes // (size[0] * size[1])

    def _source_as(self, tensor: int, size: Size) -> int:
        """Return the number of a tensor whose values are counted in pixels of this size."""
        one = self.graph.tensors[tensor]
        if (one.rows, one.columns) == size:
            return self.numbers[tensor]
        channels = self._per_pixel(tensor, size)
        return self._copy(self.numbers[tensor], size, channels, self._kind(tensor))

    def _check_geometry(self, name: str, *pairs: Sequence[int]) -> None:
        if any(not 0 <= value <= _LONGEST["kernel"] for pair in pairs for value in pair):
            self._refuse(name, "its kernel, stride, padding or dilation exceeds 255")

    def _check_size(
        self, name: str, in_size: Size, out_size: Size, kernel: Size, stride: Size, pad: Size,
        dilation: Size,
    ) -> None:  # fmt: skip
        computed = tuple(
            (in_size[i] + 2 * pad[i] - (kernel[i] - 1) * dilation[i] - 1) // stride[i] + 1
            for i in (0, 1)
        )
        if computed != out_size:
            self._refuse(
                name, f"its output is {out_size[0]}x{out_size[1]}, not {computed[0]}x{computed[1]}"
            )


def _bits(step: Convolution) -> int:
    """Return with how many bits weights are stored: 8, or fewer if these were trained and packed
    words take less room."""
    low, high, size = step.weights.min(), step.weights.max(), step.weights[0].size
    for bits in SIGNED if step.weight_bits < 8 else ():
        half = 1 << (bits - 1)
        if -half <= low and high < half and size > -(-size * bits // 32) * 4:
            return bits
    return 8


def _follow(step: Convolution) -> Follow:
    if step.absolute:
        return Follow.ABS
    return Follow.RELU if step.low == 0 and (step.limited or not step.wide) else Follow.NOTHING
