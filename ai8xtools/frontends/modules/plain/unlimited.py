"""A network of ai8x layers as its formulas say, without the limits of the chip."""

from __future__ import annotations

import functools
from typing import Any

from torch import fx

import ai8x
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


def set_limit(layer: Any, limit: float) -> None:
    """Let the result of a rectified layer have a limit of its own, such as 6: the clamp of the chip
    has to come to stand there.
    """
    layer.upper_limit = limit


def limit_of(layer: Any) -> float | None:
    """Return the limit of a layer's own; None for one without."""
    limit: float | None = getattr(layer, "upper_limit", None)
    return limit


class Unlimited(fx.Interpreter):
    """Computes a network of ai8x layers without the chip's clamps."""

    def call_module(self, target: Any, args: Any, kwargs: Any) -> Any:
        """Compute a layer: pooling, operator, activation."""
        module: Any = self.module.get_submodule(target)
        if isinstance(module, ai8x.Eltwise):
            return functools.reduce(module.f, args)
        if not isinstance(module, ai8x.QuantizationAwareModule):
            return super().call_module(target, args, kwargs)
        (x,) = args
        x = x if module.pool is None else module.pool(x)
        if module.op is None:
            return x
        x = module.op(x)
        if module.bn is not None:
            x = module.bn(x) * (1 if module.has_thresholds else 0.25)
        if module.rectifies:
            return x.clamp(min=0, max=limit_of(module))
        return x.abs() if module.takes_magnitudes else x


class RecordedUnlimited(Recorded, Unlimited):
    """Computes without clamps and keeps the results."""
