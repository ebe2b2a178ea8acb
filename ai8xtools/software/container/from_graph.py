"""From the steps of a network to a container, with the accelerator's arithmetic.

A step becomes a layer. Data are 8 bits with 7 behind the point, weights are stored with 8.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from ai8xtools.diagnostics.errors import InputError, ToolError
from ai8xtools.quantization.lowbit import SIGNED
from ai8xtools.software import elements
from ai8xtools.software.container.cipher import tagged
from ai8xtools.software.container.execute import bytes_of, run
from ai8xtools.software.container.pack import Builder, Seal, pack
from ai8xtools.software.container.programs import OPERANDS, Compiler, LengthError, runs
from ai8xtools.software.container.records import (
    NONE,
    ROUNDED,
    Container,
    Flag,
    Follow,
    Op,
    Vectors,
)
from ai8xtools.software.container.records import Element as Type
from ai8xtools.software.container.soundness import arena_bytes, intermediates, staging_bytes
from ai8xtools.software.container.unpack import unpack
from ai8xtools.software.graph import (
    Combine,
    Convolution,
    Copy,
    Element,
    Elements,
    Insert,
    Int8,
    Load,
    Piece,
    Pool,
    PoolKind,
    Roll,
    Size,
    Step,
    StepGraph,
    Windows,
)
from ai8xtools.software.graph import Tensor as Data
from ai8xtools.software.kernels.call import KernelCall
from ai8xtools.software.plan.planner import plan
from ai8xtools.software.plan.schemes import Scheme
from ai8xtools.software.profile import PORTABLE
from ai8xtools.synthesis.network import Combination

_DATA_FRACTION, _WEIGHT_FRACTION = 7, 7
_BIAS_SHIFT = 7
_PART = 12
"""Bits of a part of wide values that are summed."""
_NARROWEST, _WIDEST = -128, 127
_LONGEST = {"kernel": 255, "dimension": 0xFFFF, "listed": 0xFFFF}
_JOINS = {
    Combination.ADD: Op.ADD, Combination.SUB: Op.SUB, Combination.XOR: Op.XOR, Combination.OR: Op.OR
}  # fmt: skip


def container_of(
    graph: StepGraph, sample: NDArray[np.integer], expected: NDArray[np.integer],
    seal: Seal | None, units: Mapping[int, int] | None = None,
) -> bytes:  # fmt: skip
    """Return the file of a network that was lowered without fusing, with its sample as test vector.

    `sample` and `expected` are [channel, row, column]. Of a graph of operators `units` are the
    fraction bits of input and output by their tensors, all that is known of them.
    Raises InputError E924 for steps that containers have no layer for, ToolError E668 if the
    container computes something else.
    """
    builder = Lowering(graph, units).builder
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

    def __init__(self, graph: StepGraph, units: Mapping[int, int] | None) -> None:
        self.graph = graph
        self.builder = Builder()
        self.numbers: dict[int, int] = {}
        self._units = units
        self._point = _WEIGHT_FRACTION if units is None else 0
        self.fractions = {graph.input: _DATA_FRACTION} if units is None else {**units}
        if len(graph.outputs) != 1:
            self._refuse("the network", f"it has {len(graph.outputs)} outputs")
        self.numbers[graph.input] = self._activation(graph.input)
        for step in graph.steps:
            self._step(step)
        (output,) = graph.outputs
        if not graph.steps or graph.steps[-1].target != output:
            target = self._activation(output)
            self.builder.layer(Op.COPY, [self.numbers[output]], target)
        if len(self.builder.listed) > _LONGEST["listed"]:
            self._refuse("the network", "its input list is too long")

    def _refuse(self, name: str, reason: str) -> NoReturn:
        raise InputError(
            "E924",
            f"{name}: {reason}; containers have no layer for it",
            remedy="Leave out --container: the C project computes it.",
        )

    def _kind(self, tensor: int) -> Type:
        wide = self.graph.tensors[tensor].bytes_per_value == 4
        return Type.INT32 if wide else Type.INT8

    def _activation(self, tensor: int) -> int:
        one = self.graph.tensors[tensor]
        shape = (one.rows, one.columns, one.channels)
        if max(shape) > _LONGEST["dimension"]:
            self._refuse(one.name, f"it has {'x'.join(map(str, shape))} values")
        return self.builder.activation(self._kind(tensor), shape, self.fractions.get(tensor, 0))

    def _source(self, tensor: int, shape: tuple[int, int, int]) -> int:
        """Return the number of a tensor that has this shape: itself, or a copy."""
        one = self.graph.tensors[tensor]
        if (one.rows, one.columns, one.channels) == shape:
            return self.numbers[tensor]
        target = self.builder.activation(self._kind(tensor), shape, self._point)
        self.builder.layer(Op.COPY, [self.numbers[tensor]], target)
        return target

    def _step(self, step: Step) -> None:
        match step:
            case Convolution():
                self._convolution(step)
            case Pool():
                self._pool(step)
            case Combine():
                shape = (*step.size, step.channels)
                sources = [self._source(source, shape) for source in step.sources]
                self._result(step.target, step.sources[0])
                self.builder.layer(_JOINS[step.join], sources, self.numbers[step.target])
            case Copy():
                self._gathered(step)
            case Elements():
                self._elements(step)
            case Windows():
                self._windows(step)
            case Insert() | Roll():
                self._refuse(step.name, "it keeps data from one inference to the next")

    def _result(self, target: int, like: int, shift: int = 0) -> None:
        """Add the tensor of a result, with the fraction bits of another and more."""
        if self._units is None:
            fraction = self.fractions[like] + shift
            self.fractions[target] = min(max(fraction, _NARROWEST), _WIDEST)
        self.numbers[target] = self._activation(target)

    def _pool(self, step: Pool) -> None:
        source = self._source(step.source, (*step.in_size, step.channels))
        self._result(step.target, step.source)
        self._pooled(step, source, self.numbers[step.target], step.kind)

    def _pooled(
        self, step: Pool | Windows, source: int, target: int, kind: PoolKind, pad: Size = (0, 0)
    ) -> None:
        self._check_geometry(step.name, step.window, step.stride, pad, step.dilation)
        self._check_size(step.name, step.in_size, step.out_size, step.window, step.stride, pad,
                         step.dilation)  # fmt: skip
        if any(p and (d > 1 or 2 * p > w) for p, d, w in
               zip(pad, step.dilation, step.window, strict=True)):  # fmt: skip
            self._refuse(step.name, "windows begin further outside than half of them")
        self.builder.layer(
            Op.AVGPOOL if kind.averages else Op.MAXPOOL,
            [source],
            target,
            follow=ROUNDED if kind.rounds else Follow.NOTHING,
            kernel=step.window,
            stride=step.stride,
            pad=pad,
            dilation=step.dilation,
        )

    def _convolution(self, step: Convolution) -> None:
        full = step.linear and step.in_size == (1, 1)
        if step.channels > _LONGEST["dimension"]:
            self._refuse(step.name, f"it has {step.channels} inputs")
        if full:
            source, op = self.numbers[step.source], Op.FC
        else:
            source = self._source(step.source, (*step.in_size, step.channels))
            op = Op.DEPTHWISE if step.depthwise else Op.CONV
            op = Op.CONV_TRANSPOSED if step.transposed else op
        out_shift = 0 if step.wide else step.right
        self._result(step.target, step.source, _WEIGHT_FRACTION - out_shift)
        target = self.numbers[step.target]
        if step.limited:  # clipped to 8 bits, then stored with 32
            narrow = self.builder.activation(Type.INT8, (*step.out_size, step.filters))
        self._sums(
            step, op, source, narrow if step.limited else target, step.weights, step.kernel,
            (step.dilation, step.dilation), full=full, bits=_bits(step), groups=step.groups,
            follow=_follow(step), out_shift=out_shift,
        )  # fmt: skip
        if step.limited:
            self.builder.layer(Op.COPY, [narrow], target)

    def _sums(
        self, step: Convolution | Windows, op: Op, source: int, target: int, weights: Int8,
        kernel: Size, dilation: Size, *, full: bool = False, bits: int = 8, **more: Any,
    ) -> None:  # fmt: skip
        """Add sums of products; zeros beside the weights make up for one-sided padding."""
        spacing, pad = step.stride, step.pad
        if isinstance(step, Convolution) and step.transposed:
            spacing = step.spread
        elif not full:
            weights, pad = _evened(step, weights, kernel, dilation)
            kernel = weights.shape[2], weights.shape[3]
            self._check_size(step.name, step.in_size, step.out_size, kernel, spacing, pad, dilation)
        self._check_geometry(step.name, kernel, spacing, pad, dilation)
        stored = self.builder.weights(weights.transpose(0, 2, 3, 1), bits, self._point, rows=full)
        bias, bias_shift = self._bias(step) if isinstance(step, Convolution) else (NONE, 0)
        self.builder.layer(
            op, [source], target, weights=stored, bias=bias, bias_shift=bias_shift, kernel=kernel,
            stride=spacing, pad=pad, dilation=dilation, **more,
        )  # fmt: skip

    def _bias(self, step: Convolution) -> tuple[int, int]:
        """Return the tensor of biases, and their shift."""
        half = 0 if step.wide or step.right <= 0 else 1 << step.right >> 1
        values = step.start - half
        shift = 0 if (values % (1 << _BIAS_SHIFT)).any() else _BIAS_SHIFT
        values >>= shift
        if not values.any():
            return NONE, shift
        most = int(np.abs(values).max())
        if most >> 31:
            self._refuse(step.name, f"its bias reaches {most:,}")
        bits = next(bits for bits in (8, 16, 32) if most < 1 << (bits - 1))
        return self.builder.bias(values, bits, self._point), shift

    def _gathered(self, step: Copy) -> None:
        """Concatenate the sources; where it is not all of them in order, copy runs."""
        self._result(step.target, step.sources[0])
        target, output = self.graph.tensors[step.target], self.numbers[step.target]
        width = target.bytes_per_value
        if self._is_whole(step):
            joined = [
                self._source(one.source, (target.rows, target.columns, one.length // width))
                for one in step.pieces
            ]
            self.builder.layer(Op.CONCAT, joined, output)
            return
        sources = [*dict.fromkeys(piece.source for piece in step.pieces)]
        if len(sources) > OPERANDS:
            self._refuse(step.name, f"it copies of {len(sources)} results, more than {OPERANDS}")
        try:
            program = runs(step.pieces, width, sources, step.fill or 0)
        except LengthError as exc:
            self._refuse(step.name, str(exc))
        inputs = [self.numbers[one] for one in sources]
        self.builder.layer(Op.GATHER, inputs, output, program=program)

    def _is_whole(self, step: Copy) -> bool:
        """Whether all channels of each source follow each other in every pixel."""
        target = self.graph.tensors[step.target]
        pixel, end = target.channels * target.bytes_per_value, 0
        for piece in step.pieces:
            source = self.graph.tensors[piece.source]
            length = source.size_bytes // target.pixels
            whole = Piece(piece.source, 0, length, end, pixel, length, target.pixels)
            single = replace(whole, from_step=0, to_step=0)
            if source.pixels != target.pixels or piece not in (whole, single)[: target.pixels + 1]:
                return False
            end += length
        return end == pixel and step.fill is None

    def _elements(self, step: Elements) -> None:
        """Compute an expression of each element."""
        sources = [self._source(source, shape) for source, shape in
                   zip(step.sources, step.shapes, strict=True)]  # fmt: skip
        self._result(step.target, step.sources[0])
        self._expression(step.name, step.element, sources, self.numbers[step.target])

    def _expression(self, name: str, element: Element, sources: list[int], output: int) -> None:
        if len(sources) > OPERANDS:
            self._refuse(name, f"it computes with {len(sources)} results, more than {OPERANDS}")
        try:
            compiled = Compiler(element)
        except LengthError as exc:
            self._refuse(name, str(exc))
        constants = NONE
        if compiled.constants:
            constants = self.builder.bias(np.array(compiled.constants), 32)
        self.builder.layer(Op.ELEMENTS, sources, output, weights=constants,
                           program=compiled.words)  # fmt: skip

    def _windows(self, step: Windows) -> None:
        """Pool, or sum with weights of one; then compute the expression of each window."""
        source = self._source(step.source, (*step.in_size, step.channels))
        self._result(step.target, step.source)
        result = output = self.numbers[step.target]
        kind = self._kind(step.source)
        if step.element != Load(0):
            between = Type.INT32 if step.sums else kind
            result = self.builder.activation(between, (*step.out_size, step.channels))
        if not step.sums:
            self._pooled(step, source, result, PoolKind.MAX, step.pad)
        elif self.graph.tensors[step.source].bytes_per_value == 1:
            self._ones(step, source, result)
        else:
            self._sums_of_parts(step, source, result)
        if result != output:
            self._expression(step.name, step.element, [result], output)

    def _ones(self, step: Windows, source: int, result: int) -> None:
        ones = np.ones((step.channels, 1, *step.window), np.int8)
        op = Op.DEPTHWISE if step.channels > 1 else Op.CONV
        self._sums(step, op, source, result, ones, step.window, step.dilation,
                   groups=step.channels)  # fmt: skip

    def _sums_of_parts(self, step: Windows, source: int, result: int) -> None:
        """Sum values of 32 bits: their upper 8, and twice 12, by themselves."""
        upper, sums = elements.number(-1 << _PART), list[int]()
        whole: Element = elements.number(0)
        for shift in (2 * _PART, _PART, 0):
            part = elements.divided(Load(0), np.full((1, 1, 1), 1 << shift))
            if sums:
                above = elements.divided(Load(0), np.full((1, 1, 1), 1 << shift + _PART))
                part = elements.added(part, elements.times(above, upper))
            narrow = self.builder.activation(Type.INT16, (*step.in_size, step.channels))
            self._expression(step.name, part, [source], narrow)
            total = self.builder.activation(Type.INT32, (*step.out_size, step.channels))
            self._ones(step, narrow, total)
            scaled = elements.times(Load(len(sums)), elements.number(1 << shift))
            whole = elements.added(whole, scaled)
            sums.append(total)
        self._expression(step.name, whole, sums, result)

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


def _evened(
    step: Convolution | Windows, weights: Int8, kernel: Size, dilation: Size
) -> tuple[Int8, Size]:
    """Return weights and padding with as many zeros in front of them, or behind, that the padding
    on both sides makes the output of windows that are padded on one."""
    pads = [*step.pad]
    zeros = [(0, 0), (0, 0)]
    for axis, by in enumerate(step.stride):
        apart, count = dilation[axis], step.out_size[axis]
        reach = step.in_size[axis] + 2 * pads[axis] - (kernel[axis] - 1) * apart - 1
        front = max(0, -(-((count - 1) * by - reach) // apart))
        zeros.append((front, max(0, -(-(reach - count * by + 1) // apart))))
        pads[axis] += front * apart
    return np.pad(weights, zeros), (pads[0], pads[1])


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
