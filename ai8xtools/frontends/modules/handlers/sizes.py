"""Enlargement and borders."""

from __future__ import annotations

from dataclasses import replace

from ai8xtools.frontends.graph.nodes import Node as Result
from ai8xtools.frontends.graph.operators import Foreign, Pad, Pads, Resize, cropped
from ai8xtools.frontends.modules.calls import Call, Shape, handles


@handles("interpolate upsample upsamplenearest",
         "size scale_factor mode align_corners recompute_scale_factor")  # fmt: skip
def _interpolate(call: Call) -> Result:
    mode = call.get("mode", "nearest")
    if mode in ("bilinear", "linear"):
        along = "align_corners" if call.get("align_corners", False) else "half_pixel"
        result = call.foreign(f"{call.name} by mode {mode}")
        assert isinstance(result.operator, Foreign)
        operator = replace(result.operator, plain_name="linearinterpolation",
                           settings=(("coordinates", along),))  # fmt: skip
        return call.make(operator, call.data)
    if mode not in ("nearest", "nearest-exact"):
        return call.foreign(f"{call.name} by mode {mode}")
    factors = call.get("scale_factor", call.get("scale_factors"))
    places: list[Shape] = [tuple(range(n)) for n in call.shape[:2]]
    for axis, (n, m) in enumerate(zip(call.data.shape[2:], call.shape[2:], strict=True)):
        factor = factors[axis] if isinstance(factors, list | tuple) else factors
        scale = n / m if factor is None else 1 / float(factor)
        half = 0.5 if mode == "nearest-exact" else 0.0
        places.append(tuple(min(int((i + half) * scale), n - 1) for i in range(m)))
    return call.make(Resize(tuple(places)), call.data)


_MODES = {"constant": "constant", "zeros": "constant", "reflect": "reflect", "replicate": "edge",
          "circular": "wrap"}  # fmt: skip


@handles("pad", "pad mode value")
def _pad(call: Call) -> Result:
    flat, axes = list(call.get("pad")), len(call.data.shape)
    pairs = [(flat[2 * n], flat[2 * n + 1]) for n in range(len(flat) // 2)]
    pads = tuple(([(0, 0)] * axes + pairs[::-1])[-axes:])
    return padded(call, call.data, pads, call.get("mode", "constant"), call.get("value", 0))


@handles("zeropad constantpad reflectionpad replicationpad circularpad")
def _pad_module(call: Call) -> Result:
    kinds = {"reflectionpad": "reflect", "replicationpad": "replicate", "circularpad": "circular"}
    settings = {"pad": call.get("padding"), "mode": kinds.get(call.name, "constant"),
                "value": call.get("value", 0)}  # fmt: skip
    return _pad(Call(call.place, call.name, call.args, settings, call.shape))


def padded(call: Call, data: Result, pads: Pads, mode: str, value: float = 0) -> Result:
    """Return data with a border, or what stands for a border of another kind."""
    if mode not in _MODES:
        return call.foreign(f"padding by {mode}")
    if min(map(min, pads)) < 0:
        cut, pads = cropped(data.shape, pads)
        data = call.make(cut, data)
    if not any(map(any, pads)):
        return data
    return call.make(Pad(pads, float(value), _MODES[mode]), data)
