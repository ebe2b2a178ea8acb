"""Axes, parts and joins."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ai8xtools.frontends.graph.nodes import Node as Result
from ai8xtools.frontends.graph.operators import (
    Concat,
    Foreign,
    Reshape,
    Slice,
    Transpose,
    repeated,
)
from ai8xtools.frontends.modules.calls import Call, handles, listed, operand


@handles("permute transpose swapaxes")
def _permute(call: Call) -> Result:
    axes = len(call.shape)
    order = list(range(axes))
    if call.name == "permute":
        stated = call.settings.get("dims") or call.args[1:]
        order = [int(n) % axes for n in listed(list(stated))]
    else:
        a, b = (int(n) % axes for n in (*call.args[1:], *call.settings.values())[:2])
        order[a], order[b] = order[b], order[a]
    return call.make(Transpose(tuple(order)), call.data)


@handles("flip", "dims")
def _flip(call: Call) -> Result:
    shape = call.data.shape
    stated = listed([call.settings.get("dims"), *call.args[1:]])
    axes = {int(n) % len(shape) for n in stated if n is not None}
    if 0 in axes:
        return call.foreign("flip of the batch")
    start = tuple(n - 1 if axis in axes else 0 for axis, n in enumerate(shape))
    steps = tuple(-1 if axis in axes else 1 for axis in range(len(shape)))
    return call.make(Slice(start, steps, shape), call.data)


@handles("cat concat concatenate", "dim")
def _cat(call: Call) -> Result:
    parts = [operand(one) for one in call.args[0]]
    return call.make(Concat(int(call.get("dim", 0)) % len(call.shape)), *parts)


_SIZES = ("size", "chunks", "split_size", "split_sizes", "split_size_or_sections")


@handles("stack", "dim")
def _stack(call: Call) -> Result:
    axis = int(call.get("dim", 0)) % len(call.shape)
    parts = [operand(one) for one in call.args[0]]
    apart = [call.make(Reshape((*one.shape[:axis], 1, *one.shape[axis:])), one) for one in parts]
    return call.make(Concat(axis), *apart)


@handles("expand expandas repeat tile")
def _repeat(call: Call) -> Result:
    data, shape = call.data, call.shape
    if len(shape) > len(data.shape):
        data = call.make(Reshape((*(1,) * (len(shape) - len(data.shape)), *data.shape)), data)
    return data if data.shape == shape else call.make(repeated(data.shape, shape), data)


@handles("getattr")
def _transposed(call: Call) -> Result:
    """Return what an attribute of data is."""
    axes = range(len(call.shape))
    orders = {"mT": (*axes[:-2], *axes[:-3:-1]), "T": tuple(reversed(axes))}
    return call.make(Transpose(orders[call.args[1]]), call.data) if call.args[1] in orders else (
        call.foreign(call.name))  # fmt: skip


@handles("chunk split splitwithsizes tensorsplit unbind", "size dim")
def _split(call: Call) -> Any:
    size = next((call.get(name) for name in _SIZES if call.get(name) is not None), None)
    shape = call.data.shape
    axis = int(call.get("dim", 0)) % len(shape)
    many = shape[axis]
    if call.name == "chunk" and size is not None:
        size = -(-many // int(size))
    if isinstance(size, int) and call.name in ("chunk", "split"):
        sizes = [min(size, many - at) for at in range(0, many, size)]
    elif isinstance(size, list) and call.name.startswith("split"):
        sizes = size
    else:
        return call.foreign(call.name)
    parts = []
    for number, count in enumerate(sizes):
        start = tuple(sum(sizes[:number]) if n == axis else 0 for n in range(len(shape)))
        counts = tuple(count if n == axis else size for n, size in enumerate(shape))
        parts.append(call.make(Slice(start, (1,) * len(shape), counts), call.data))
    return parts


@handles("getitem")
def _getitem(call: Call) -> Result:
    whole, index = call.args[0], call.args[1]
    if not isinstance(whole, Result):
        if isinstance(index, int) and index >= len(whole):  # of a maximum
            return call.make(Foreign("indices", call.shape), whole[0])
        part: Result = whole[index]
        return part
    if type(whole.operator) is Foreign:  # no layer
        return call.make(replace(whole.operator, shape=call.shape), whole)
    indices = index if isinstance(index, list) else [index]
    if Ellipsis in indices:
        at = indices.index(Ellipsis)
        missing = len(whole.shape) - len([one for one in indices if one is not None]) + 1
        indices = [*indices[:at], *[slice(None)] * missing, *indices[at + 1 :]]
    parts = [one for one in indices if one is not None]
    if not all(isinstance(one, int | slice) for one in parts):
        return call.foreign("an index of values")
    ranges = [
        range(n)[one] if isinstance(one, slice) else [range(n)[one]]
        for n, one in zip(whole.shape, [*parts, *[slice(None)] * len(whole.shape)], strict=False)
    ]
    cut = Slice(tuple(r[0] if len(r) else 0 for r in ranges),
                tuple(r.step if isinstance(r, range) else 1 for r in ranges),
                tuple(map(len, ranges)))  # fmt: skip
    return call.make(Reshape(call.shape), call.make(cut, whole))


@handles("slice select", "dim index")
def _along(call: Call) -> Result:
    """Return a part along one axis, as exported programs write indices."""
    whole = slice(call.get("start"), call.get("end"), call.get("step"))
    axis = int(call.get("dim", 0)) % len(call.data.shape)
    index = [slice(None)] * axis + [call.get("index", whole)]
    return _getitem(replace(call, args=[call.data, index]))


@handles("channelshuffle pixelshuffle pixelunshuffle", "factor")
def _shuffle(call: Call) -> Result:
    batch, channels, *size = call.data.shape
    if call.name == "pixelunshuffle":
        factor = int(call.get("downscale_factor", call.get("factor", 1)))
        rows, columns = (n // factor for n in size)
        parts = call.make(Reshape((batch, channels, rows, factor, columns, factor)), call.data)
        return call.make(Reshape(call.shape), call.make(Transpose((0, 1, 3, 5, 2, 4)), parts))
    if call.name == "channelshuffle":
        groups = int(call.get("groups", call.get("factor", 1)))
        parts = call.make(Reshape((batch, groups, channels // groups, *size)), call.data)
        order = (0, 2, 1, *range(3, 3 + len(size)))
    else:
        factor = int(call.get("upscale_factor", call.get("factor", 1)))
        outputs = channels // factor**2
        parts = call.make(Reshape((batch, outputs, factor, factor, *size)), call.data)
        order = (0, 1, 4, 2, 5, 3)
    return call.make(Reshape(call.shape), call.make(Transpose(order), parts))
