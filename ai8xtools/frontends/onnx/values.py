"""The state of a graph's results while its nodes become layers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Weights = NDArray[np.float64]


@dataclass(slots=True)
class Tensors:
    """Weights and bias of a layer by their graph, and what follows the operator: 2^shift.

    `added`: the graph has no such layer; its kernels are one.
    """

    weights: Weights
    bias: Weights | None
    shift: int = 0
    rounded: bool = False
    added: bool = False


@dataclass(frozen=True, slots=True)
class Value:
    """A result: the layers that hold it, how they join, and what is left for the reader to do."""

    inputs: tuple[int, ...]
    shape: tuple[int, ...]
    join: Literal["elements", "channels"] | None = None
    pool: dict[str, Any] = field(default_factory=dict)
    taken: tuple[int, ...] | None = None
    flat: bool = False
    open: bool = False
    positive: bool = False
    averaged: bool = False
    dims: tuple[int, ...] | None = None


def dims(value: Value) -> dict[str, Any]:
    """Return the key that gives data another number of rows and columns."""
    if value.dims is None:
        return {}
    return {"in_dim": value.dims[0] if len(set(value.dims)) == 1 else list(value.dims)}
