"""The graph of operators: what it computes, what its passes keep, and which doors land on it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ai8xtools.frontends.graph import kernels, passes
from ai8xtools.frontends.graph.execute import value_of
from ai8xtools.frontends.graph.maps import PASSES
from ai8xtools.frontends.graph.nodes import (
    Graph,
    Node,
    ShapeError,
    check,
    constant,
    graph_of,
    make,
    rewritten,
    shape_of,
)
from ai8xtools.frontends.graph.operators import (
    BatchNormalization,
    Clip,
    Concat,
    Conv,
    ConvTranspose,
    Each,
    Function,
    Gemm,
    Input,
    Operator,
    Pad,
    Pool,
    Reduce,
    Reduction,
    Reshape,
    Slice,
    Transpose,
)
from ai8xtools.frontends.onnx import layers

RANDOM = np.random.default_rng(5)
ONES, NONE = (1, 1), ((0, 0), (0, 0))


def normal(*shape: int) -> NDArray[np.float64]:
    return RANDOM.normal(size=shape)


def fixed(*shape: int) -> Node:
    return constant(normal(*shape))


def windows() -> Any:
    """Sizes, strides, pads, dilations and forms of pooling at which windows hang over the edges."""
    for kernel, stride, pad, dilation in np.ndindex(3, 3, 2, 2):
        yield kernel + 1, stride + 1, min(pad, (kernel + 1) // 2), dilation + 1


@pytest.mark.parametrize(("kernel", "stride", "pad", "dilation"), [*windows()])
def test_windows_are_those_of_torch(kernel: int, stride: int, pad: int, dilation: int) -> None:
    import torch
    from torch.nn import functional

    x, size, both = normal(1, 4, 8, 9), (kernel, kernel), (stride, stride)
    pads, dilations = ((pad, pad),) * 2, (dilation, dilation)
    data = torch.from_numpy(x)
    weights, back = normal(6, 2, *size), normal(4, 3, *size)
    found = [
        value_of(Conv(both, pads, dilations, 2), [x, weights]),
        value_of(ConvTranspose(both, pads, dilations, (0, 0), 2), [x, back]),
    ]
    wanted = [
        functional.conv2d(data, torch.from_numpy(weights), None, stride, pad, dilation, 2),
        functional.conv_transpose2d(
            data, torch.from_numpy(back), None, stride, pad, 0, 2, dilation
        ),
    ]
    for ceil in (False, True):
        found.append(value_of(Pool(False, size, both, pads, dilations, ceil), [x]))
        wanted.append(functional.max_pool2d(data, kernel, stride, pad, dilation, ceil))
        for counted in (False, True):
            found.append(value_of(Pool(True, size, both, pads, ONES, ceil, counted), [x]))
            wanted.append(functional.avg_pool2d(data, kernel, stride, pad, ceil, counted))
    for ours, theirs in zip(found, wanted, strict=True):
        assert ours is not None
        np.testing.assert_allclose(ours, theirs.numpy(), atol=1e-12)


def plain(x: Node) -> Node:
    """A network with something for each pass to do."""
    channels = make("pad", Pad(((0, 0), (0, 0), (1, 0), (0, 2)), 0.5), x)
    around = make("around", Pad(((0, 0), (0, 0), (1, 0), (0, 2))), channels)
    first = make("conv", Conv(ONES, ((1, 1), (0, 0)), ONES), around, fixed(6, 3, 3, 3))
    variance = constant(np.abs(normal(6)) + 0.5)
    norm = make("norm", BatchNormalization(1e-3), first, fixed(6), fixed(6), fixed(6), variance)
    back = make("back", ConvTranspose((2, 2), NONE, ONES, (0, 0), 2), norm, fixed(6, 2, 2, 2))
    scaled = make("scaled", Each(Function.SUB), fixed(4, 1, 1), back)
    slanted = make("slanted", Each(Function.PRELU), scaled, fixed(4, 1, 1))
    largest = make("largest", Each(Function.MAX), make("abs", Each(Function.ABS), slanted), scaled)
    size = largest.shape[2:]
    shuffled = make("apart", Reshape((1, 2, 2, *size)), largest)
    shuffled = make("together", Reshape((1, 4, *size)),
                    make("turned", Transpose((0, 2, 1, 3, 4)), shuffled))  # fmt: skip
    shuffled = make("limited", Each(Function.MAX), shuffled, constant(np.array(-0.5)))
    last = make("last", Transpose((0, 2, 3, 1)), shuffled)
    last = make("less", Each(Function.MIN), make("neg", Each(Function.NEG), last), fixed(4))
    columns = make("columns", Reduce(Reduction.MEAN, (2,), False), shuffled)
    rows = make("rows", Reduce(Reduction.MEAN, (2,), True), columns)
    flat = make("flat", Reshape((1, 4)), rows)
    whole = make("whole", Reshape((1, 4 * size[0] * size[1])), last)
    moved = make("moved", Each(Function.ADD), shuffled, fixed(4, 1, 1))
    ones = make("ones", Conv(ONES, NONE, ONES), moved, fixed(3, 4, 1, 1))
    ones = make("mean", Reduce(Reduction.MEAN, (2, 3), False), make("r", Clip(0.0, np.inf), ones))
    ones = make("fc", Gemm(), make("more", Each(Function.MUL), ones, fixed(3)), fixed(2, 3))
    wide = make("wide", Gemm(), whole, fixed(5, 4 * size[0] * size[1]), fixed(5))
    halved = make("halved", Each(Function.DIV), wide, constant(np.array(2.0)))
    return make("joined", Concat(1), flat, halved, ones)


def whole(x: Node) -> Node:
    """A network of whole numbers with something for each pass to do."""
    around = make("around", Pad(((0, 0), (0, 0), (1, 1), (1, 1))), x)
    conv = make("conv", Conv(ONES, NONE, ONES), around, constant(normal(4, 3, 3, 3).round(1)))
    gain = constant(np.abs(normal(4)) + 0.5)
    norm = make("norm", BatchNormalization(0.0), conv, gain, fixed(4), fixed(4), gain)
    scaled = make("scaled", Each(Function.MUL), norm, constant(np.arange(-1.0, 3).reshape(4, 1, 1)))
    pooled = make("pooled", Pool(False, (2, 2), (2, 2), NONE, ONES), scaled)
    rounded = make("part", Each(Function.DIV), pooled, constant(np.array(512.0)))
    rounded = make("half", Each(Function.ADD), constant(np.array(0.5)), rounded)
    limited = make("limit", Clip(-128.0, 127.0), make("floor", Each(Function.FLOOR), rounded))
    apart = make("apart", Reshape((1, 2, 2, 3, 3)), limited)
    apart = make("turned", Transpose((0, 2, 1, 3, 4)), apart)
    limited = make("together", Reshape((1, 4, 3, 3)), apart)
    again = make("again", BatchNormalization(0.0), limited, gain, fixed(4), fixed(4), gain)
    pooled = make("pooled", Pool(True, (2, 2), ONES, NONE, ONES), again)
    size = make("floor", Each(Function.FLOOR), make("abs", Each(Function.ABS), pooled))
    average = make("average", Each(Function.MUL), make("sign", Each(Function.SIGN), pooled), size)
    rows = make("rows", Slice((0, 0, 0, 0), (1, 1, 2, 1), (1, 4, 1, 2)), average)
    pixels = make("pixels", Slice((0, 0, 0, 0), (1, 1, 1, 2), (1, 4, 1, 1)), rows)
    relu = make("relu", Each(Function.MAX), pixels, constant(np.array(0.0)))
    last = make("last", Transpose((0, 2, 3, 1)), relu)
    flat = make("flat", Reshape((1, 4)), make("more", Each(Function.FLOOR), last))
    mean = make("mean", Reduce(Reduction.MEAN, (2,), True), average)
    mean = make("flat", Reshape((1, 4)), make("mean", Reduce(Reduction.MEAN, (3,), True), mean))
    turned = make("turned", Transpose((0, 2, 3, 1)), average)
    fc = make("fc", Gemm(), make("flat", Reshape((1, 16)), turned), fixed(2, 16), fixed(2))
    return make("joined", Concat(1), flat, mean, fc)


@pytest.mark.parametrize(  # the first two of PASSES are for what others make
    ("build", "rules"), [(plain, PASSES[2:]), (whole, layers.PASSES)]
)
def test_each_pass_keeps_what_is_computed_and_does_something(build: Any, rules: Any) -> None:
    x = make("x", Input((1, 3, 6, 6)))
    last = build(x)
    graph = graph_of(x, [last], [last])
    sample = normal(*graph.input.shape)
    (wanted,) = passes.results(graph, sample)
    assert wanted is not None
    done: set[Any] = set()
    for rule in rules:
        before, graph = graph, rewritten(graph, rule)
        check(graph)
        (found,) = passes.results(graph, sample)
        assert found is not None
        np.testing.assert_allclose(found, wanted, atol=1e-9)
        assert graph.nodes != before.nodes or rule in done, rule.__name__
        done.add(rule)
    left = {type(node.operator) for node in graph.nodes} | {
        node.operator.function for node in graph.nodes if isinstance(node.operator, Each)
    }
    assert not left & {Function.DIV, Function.NEG, Function.MAX, Function.PRELU, Function.SIGN,
                       Transpose}  # fmt: skip


@pytest.mark.parametrize("depthwise", [False, True])
def test_kernels_become_those_of_the_chip(depthwise: bool) -> None:
    """Of all sides up to 5, paddings up to 2, dilations and groups; what cannot be stays as it
    was.
    """
    rules = (kernels.channel_sections, kernels.dense_groups(depthwise=depthwise),
             kernels.square_kernels)  # fmt: skip
    x = make("x", Input((1, 4, 9, 8)))
    squares = 0
    for rows, columns, top, bottom, side in np.ndindex(5, 5, 3, 3, 3):
        if (rows * 7 + columns * 3 + top + bottom + side) % 4:
            continue
        groups, stride = (1, 2, 4)[(rows + top) % 3], 1 + (columns + side) % 2
        dilation = 1 + (rows < 3 and columns < 3 and top == side)
        conv = Conv((stride, stride), ((top, bottom), (side, side)), (dilation,) * 2, groups)
        weights = fixed(4, 4 // groups, rows + 1, columns + 1)
        graph = graph_of(x, [], [make("conv", conv, x, weights, fixed(4))])
        made = [n for n in passes.improved(graph, rules).nodes if isinstance(n.operator, Conv)]
        sizes = {n.inputs[1].shape[2:] for n in made}
        squares += sizes <= {(1, 1), (3, 3)}
        assert sizes <= {(1, 1), (3, 3), (rows + 1, columns + 1)}
    assert squares > 50
    parts = [make("part", Slice((0, at, 0, 0), ONES * 2, (1, 2, 9, 8)), x) for at in (2, 0)]
    swapped = passes.improved(graph_of(x, [], [make("swap", Concat(1), *parts)]), rules)
    assert [n.operator.moves for n in swapped.nodes if isinstance(n.operator, Conv)] == [True] * 2


@pytest.mark.parametrize(
    ("kernel", "pads", "strides", "dilations", "channels"),
    [
        ((7, 7), ((3, 3), (3, 3)), (1, 1), (1, 1), [8, 18]),
        ((7, 7), ((3, 3), (3, 3)), (2, 2), (1, 1), [8, 18]),
        ((7, 7), ((6, 6), (6, 6)), (1, 1), (1, 1), [8, 18]),
        ((7, 1), ((3, 3), (0, 0)), (1, 1), (1, 1), [4, 6]),
        ((1, 7), ((0, 0), (3, 3)), (1, 1), (1, 1), [4, 6]),
        ((6, 6), ((2, 3), (3, 2)), (1, 1), (1, 1), [8, 18]),
        ((10, 4), ((4, 5), (1, 2)), (2, 2), (1, 1), [4, 12, 16, 20]),
        ((11, 11), ((2, 2), (2, 2)), (4, 4), (1, 1), [8, 18, 32, 50]),
        ((4, 4), ((1, 2), (1, 2)), (1, 1), (1, 1), [8]),
        ((7, 7), ((6, 6), (6, 6)), (1, 1), (2, 2), [8, 18, 18, 32, 32]),
        ((3, 3), ((4, 4), (4, 4)), (1, 1), (4, 4), [8, 18, 18]),
        ((3, 3), ((0, 1), (0, 1)), (2, 2), (1, 1), [2]),
        ((2, 2), ((0, 0), (0, 0)), (2, 2), (1, 1), []),
        ((16,), ((0, 0),), (4,), (1,), [4]),
        ((17,), ((2, 2),), (1,), (2,), [4]),
    ],
)
def test_large_kernels_read_copies(
    kernel: Any, pads: Any, strides: Any, dilations: Any, channels: Any
) -> None:
    """As few channels of copies as are needed, layer by layer; each pass proves its results."""
    x = make("x", Input((1, 2, 12, 14)[: len(kernel) + 2] if len(kernel) == 2 else (1, 2, 40)))
    node = make("conv", Conv(strides, pads, dilations), x, fixed(3, 2, *kernel), fixed(3))
    made = [n for n in passes.improved(graph_of(x, [], [node]), [kernels.square_kernels]).nodes
            if isinstance(n.operator, Conv)]  # fmt: skip
    largest = (9,) if len(kernel) == 1 else (3, 3)
    for one in made:
        assert isinstance(one.operator, Conv) and len(set(one.operator.pads)) == 1
        assert one.inputs[1].shape[2:] == largest and one.operator.pads[0] <= (2, 2)
    copies = [one.shape[1] for one in made if isinstance(one.operator, Conv) and one.operator.moves]
    assert copies == channels


def test_a_pass_that_changes_something_is_told() -> None:
    def forgetful(node: Node, _readers: Any) -> Node:
        return node.inputs[0] if isinstance(node.operator, Clip) else node

    x = make("x", Input((1, 2, 3, 3)))
    last = make("relu", Clip(0.0, np.inf), x)
    with pytest.raises(passes.DepartsError, match="forgetful"):
        passes.improved(graph_of(x, [last], [last]), [forgetful])


def test_what_several_read_is_not_folded() -> None:
    x = make("x", Input((1, 2, 4, 4)))
    conv = make("conv", Conv(ONES, NONE, ONES), x, fixed(2, 2, 3, 3))
    scaled = make("scaled", Each(Function.MUL), conv, constant(np.array(-1.0)))
    graph = graph_of(x, [scaled], [make("sum", Each(Function.ADD), conv, scaled)])
    assert scaled in passes.improved(graph, PASSES).nodes


@pytest.mark.parametrize(
    ("operator", "shapes"),
    [
        (Each(Function.ADD), [(1, 3, 4), (1, 2, 4)]),
        (Conv(ONES, NONE, ONES), [(1, 3, 4, 4), (2, 2, 3, 3)]),
        (Conv(ONES, NONE, ONES), [(1, 3, 2, 2), (2, 3, 3, 3)]),
        (Gemm(), [(1, 3), (2, 4)]),
        (Reshape((1, 5)), [(1, 2, 3)]),
        (Transpose((0, 1, 1)), [(1, 2, 3)]),
        (Concat(1), [(1, 2, 3), (1, 2, 4)]),
        (Pool(False, (4,), (1,), ((0, 0),), (1,)), [(1, 2, 3)]),
    ],
)
def test_operands_that_do_not_fit_are_told(operator: Operator, shapes: list[Any]) -> None:
    with pytest.raises(ShapeError):
        shape_of(operator, shapes)


def test_a_graph_whose_shapes_or_order_are_wrong_is_told() -> None:
    x = make("x", Input((1, 2, 3)))
    wrong = Node("wrong", Clip(0.0, 1.0), (x,), (1, 2, 4))
    right = make("right", Clip(0.0, 1.0), x)
    for graph in (Graph(x, (x, wrong), (wrong,)), Graph(x, (right, x), (right,)),
                  Graph(x, (x,), (right,))):  # fmt: skip
        with pytest.raises(ShapeError):
            check(graph)


def test_constants_are_computed_where_they_are_made() -> None:
    whole = make("", Slice((0, 1), (1, 2), (2, 2)), constant(np.arange(8).reshape(2, 4)))
    quotient = make("", Each(Function.DIV), whole, constant(np.array(2)))
    assert quotient.constant is not None and quotient.constant.tolist() == [[0, 1], [2, 3]]
