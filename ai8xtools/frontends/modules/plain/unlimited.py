"""A network of ai8x layers as its formulas say, without the limits of the chip."""

from __future__ import annotations

import functools
from typing import Any

from torch import fx

import ai8x
from ai8xtools.frontends.accelerator.lowering import Limits
from ai8xtools.frontends.modules.tracing import Node


class Recorded(fx.Interpreter):
    """Computes a network and keeps the results of all nodes."""

    def __init__(self, network: Any) -> None:
        super().__init__(network)
        self.values: dict[Node, Any] = {}

    def run_node(self, n: Node) -> Any:
        """Compute a node."""
        result = self.values[n] = super().run_node(n)
        return result


def set_limits(layer: Any, limits: Limits) -> None:
    """Let the result of a layer have limits of its own, such as 0 and 6: the clamp of the chip has
    to come to stand there.
    """
    layer.limits = limits


def limits_of(layer: Any) -> Limits | None:
    """Return the limits of a layer's own; None for one without."""
    limits: Limits | None = getattr(layer, "limits", None)
    return limits


class Unlimited(fx.Interpreter):
    """Computes a network of ai8x layers without the chip's clamps."""

    def call_module(self, target: Any, args: Any, kwargs: Any) -> Any:
        """Compute a layer: pooling, operator, activation."""
        module: Any = self.module.get_submodule(target)
        limits = limits_of(module)
        if isinstance(module, ai8x.Eltwise):
            x = functools.reduce(module.f, args)
            return x if limits is None else x.clamp(*limits)
        if not isinstance(module, ai8x.QuantizationAwareModule):
            return super().call_module(target, args, kwargs)
        (x,) = args
        x = x if module.pool is None else module.pool(x)
        if module.op is None:
            return x
        x = module.op(x)
        if module.bn is not None:
            x = module.bn(x) * (1 if module.has_thresholds else 0.25)
        if limits is not None:
            return x.clamp(*limits)
        if module.rectifies:
            return x.clamp(min=0)
        return x.abs() if module.takes_magnitudes else x


class RecordedUnlimited(Recorded, Unlimited):
    """Computes without clamps and keeps the results."""
