"""Which function of Arm's library computes a step, or why none does.

Source: docs/cmsis-nn.md, "Functions".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import assert_never

import numpy as np

from ai8xtools.software.cmsis.orders import interleaved
from ai8xtools.software.graph import (
    Combine,
    Convolution,
    Copy,
    Elements,
    Insert,
    Pool,
    Roll,
    Size,
    Step,
    StepGraph,
    Windows,
    sources_of,
)
from ai8xtools.software.kernels.call import BIAS, BUFFER, DATA, NOTHING, RESULT, WEIGHTS, KernelCall
from ai8xtools.values import frozen

_LONGEST = 65535
"""The library counts in 16 bits."""
_BIAS_SHIFT = 7
_WORD = 2
"""Bytes of a number of the buffers of the library."""


@frozen
class Choice:
    """By target of the step: the calls, and the reasons why other steps have kernels of ours."""

    calls: Mapping[int, KernelCall]
    reasons: Mapping[int, str]


def choose_calls(graph: StepGraph, *, interleaving: bool = False) -> Choice:
    """Return the calls of Arm's functions for the steps of a graph that they can compute.

    With `interleaving` fully connected layers of 8 bits take the weights of `_opt`.
    """
    calls: dict[int, KernelCall] = {}
    reasons: dict[int, str] = {}
    for step in graph.steps:
        call = _call(step, graph, interleaving)
        if isinstance(call, str):
            reasons[step.target] = call
        else:
            calls[step.target] = call
    return Choice(calls, reasons)


def _call(step: Step, graph: StepGraph, interleaving: bool) -> KernelCall | str:
    match step:
        case Convolution():
            if (refused := _own_sums(step)) is not None:
                return refused
            return _linear(step, interleaving) if _is_linear(step) else _convolution(step)
        case Pool():
            return _pooling(step, graph)
        case Combine() | Elements():
            return "the library has no element-wise operations"
        case Windows():
            return "the library pools within the data only"
        case Copy():
            return "the library neither concatenates nor copies"
        case Insert() | Roll():
            return "the library has no rolling buffer"
        case _:
            assert_never(step)


def _own_sums(step: Convolution) -> str | None:
    """Return why the library cannot compute the sums of a layer, or not what follows them."""
    counts = step.weights[0].size, step.channels, step.filters, *step.in_size, *step.out_size
    reasons = {
        "the library has no transposed convolution": step.transposed,
        "the library has no grouped convolution": step.groups > 1 and not step.depthwise,
        "the library has no dilation": step.dilation != 1,
        "the library has no absolute value": step.absolute,
        "the library limits results to 8 bits, or to 0 by ReLU": step.low not in (-128, 0),
        "the library does not crop": min(step.pad) < 0,
        "the library has no ReLU of 32 bits": step.limited,
        "results of 32 bits follow from fully connected layers only": step.wide
        and not _is_linear(step),
        "the library shifts to the right only": step.right < 0,
        "the library takes biases of 8 bits": _bias(step) is None,
        "the library counts in 16 bits": max(counts) > _LONGEST,
    }
    return next((reason for reason, true in reasons.items() if true), None)


def _is_linear(step: Convolution) -> bool:
    """Whether a step is a fully connected layer: its only pixel is the first of the data."""
    return step.linear and step.pad == (0, 0)


def _bias(step: Convolution) -> np.ndarray[tuple[int], np.dtype[np.int8]] | None:
    """Return the initial sums, without half of the last place, in units of 128."""
    half = 0 if step.wide else (1 << max(step.right, 0)) >> 1
    bias, rest = np.divmod(step.start - half, 1 << _BIAS_SHIFT)
    if rest.any() or bias.min() < -128 or bias.max() > 127:
        return None
    return bias.astype(np.int8)


def _linear(step: Convolution, interleaving: bool) -> KernelCall:
    """Return the call of a fully connected layer; results of 32 bits have no `_opt`."""
    wide = step.wide
    plain = "arm_fully_connected_q7_opt" if interleaving else "arm_fully_connected_q7"
    weights = step.weights.reshape(step.filters, -1)
    return KernelCall(
        function="arm_fully_connected_q7_q31" if wide else plain,
        arguments=(DATA, WEIGHTS, step.channels, step.filters, _BIAS_SHIFT,
                   0 if wide else step.right, BIAS, RESULT, BUFFER),
        weights=interleaved(weights, 8) if interleaving and not wide else weights.reshape(-1),
        bias=_bias(step),
        buffer_bytes=_WORD * step.channels,
        relu=_relu(step),
        wide=wide,
    )  # fmt: skip


def _convolution(step: Convolution) -> KernelCall:
    """Return the call of a convolution: where everything is square, that of the short form."""
    pairs = step.kernel, step.in_size, step.out_size, step.pad, step.stride
    square = all(_square(pair) for pair in pairs)
    name = _depthwise_name(square) if step.depthwise else _name(step, square)
    in_size, kernel, pad, stride, out_size = (
        _pair(pair, short=square)
        for pair in (step.in_size, step.kernel, step.pad, step.stride, step.out_size)
    )
    order = (1, 2, 3, 0) if step.depthwise else (0, 2, 3, 1)
    return KernelCall(
        function=name,
        arguments=(DATA, *in_size, step.channels, WEIGHTS, step.filters, *kernel, *pad, *stride,
                   BIAS, _BIAS_SHIFT, step.right, RESULT, *out_size, BUFFER, NOTHING),
        weights=np.ascontiguousarray(step.weights.transpose(order)).reshape(-1),
        bias=_bias(step),
        buffer_bytes=2 * _WORD * step.channels * step.kernel[0] * step.kernel[1],
        relu=_relu(step),
    )  # fmt: skip


def _depthwise_name(square: bool) -> str:
    return f"arm_depthwise_separable_conv_HWC_q7{'' if square else '_nonsquare'}"


def _name(step: Convolution, square: bool) -> str:
    """Return the convolution; the fast one works in rows of padding, so it needs as many.

    It takes as many below the data, too: windows of other rows end within it.
    """
    if not square:
        return "arm_convolve_HWC_q7_basic_nonsquare"
    pad, inner = step.pad[0], step.out_size[0] - 2 * step.pad[0]
    end = (pad + inner - 1) * step.stride[0] - pad + step.kernel[0]
    even = step.channels % 4 == 0 and step.filters % 2 == 0
    fast = even and inner >= 0 and end <= step.in_size[0]
    return f"arm_convolve_HWC_q7_{'fast' if fast else 'basic'}"


def _relu(step: Convolution) -> str | None:
    """Return the function that makes negative results zero; the shorter one counts in 16 bits."""
    if step.low != 0:
        return None
    size = step.filters * step.out_size[0] * step.out_size[1]
    return "arm_relu_q7" if size <= _LONGEST else "arm_relu32_q7"


def _pooling(step: Pool, graph: StepGraph) -> KernelCall | str:
    """Return the call of maximum pooling."""
    if step.kind.averages:
        return "the library averages rows before columns on some cores, which rounds twice"
    if step.dilation != (1, 1) and step.window != (1, 1):
        return "the library has no dilation"
    if max(*step.in_size, *step.out_size) > _LONGEST:
        return "the library counts in 16 bits"
    windows = _square(step.window) and _square(step.stride)
    images = windows and _square(step.in_size) and _square(step.out_size)
    window, pad, stride = (_pair(p, short=windows) for p in (step.window, (0, 0), step.stride))
    in_size, out_size = (_pair(p, short=images) for p in (step.in_size, step.out_size))
    name = f"arm_maxpool{'' if windows else '_nonsquare'}_q7_HWC{'' if images else '_nonsquare'}"
    spared = images and not _dies(step, graph)  # the library's function destroys its data
    return KernelCall(
        function=name,
        arguments=(DATA, *in_size, step.channels, *window, *pad, *stride, *out_size, NOTHING,
                   RESULT),
        copied=graph.tensors[step.source].size_bytes if spared else 0,
        status=False,
    )  # fmt: skip


def _dies(step: Pool, graph: StepGraph) -> bool:
    """Whether only this step reads its data."""
    readers = Counter(source for one in graph.steps for source in sources_of(one))
    kept = {graph.input, graph.kept, *graph.outputs}
    return readers[step.source] == 1 and step.source not in kept


def _square(pair: Size) -> bool:
    return pair[0] == pair[1]


def _pair(pair: Size, *, short: bool) -> tuple[int, ...]:
    """Return rows and columns as the library takes them: columns first, or one number for both."""
    return pair[:1] if short else pair[::-1]
