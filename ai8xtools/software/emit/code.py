"""The values for the template of cnn.c that all plans have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from numpy.typing import NDArray

from ai8xtools.software.emit.expressions import Tables
from ai8xtools.software.graph import Convolution
from ai8xtools.software.kernels import Kernel
from ai8xtools.software.plan.plan import Plan
from ai8xtools.software.plan.task import Level, Spot

RUNTIME = Path(__file__).resolve().parent.parent / "runtime"
_MEMORIES = {Level.L1: "cnn_arena", Level.L2: "cnn_l2", Level.L3: "cnn_l3"}
"""The arrays of C that memories are."""
_ABSOLUTE, _WIDE, _LIMITED = 1, 2, 4


class Code(ABC):
    """Collects what cnn.c needs while a plan is described.

    `weights` are packed, `starts` what sums begin with, both by the number of their step; steps
    that have those of another are in `shared`. `tables` are constants of expressions by name. Of
    the run time `functions` are the kernels with their files, `helpers` further files. `counters`
    are those of rows that exist, by tensor.
    """

    template: ClassVar[str]
    caller: ClassVar[tuple[str, str]]
    """Names in C of the input and the output if they belong to the caller."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.graph = plan, plan.graph
        self.weights: dict[int, NDArray[Any]] = {}
        self.starts: dict[int, NDArray[Any]] = {}
        self.shared: dict[int, int] = {}
        self.functions: dict[str, str] = {}
        self.helpers = {"data.c"}
        self.tables: Tables = {}
        self.counters: dict[int, int] = {}

    @property
    @abstractmethod
    def title(self) -> str:
        """The plan in a line."""

    @property
    @abstractmethod
    def table_bytes(self) -> int:
        """Bytes of tables, without weights."""

    @abstractmethod
    def values(self) -> Mapping[str, Any]:
        """Return the values of the template."""

    def files(self) -> Mapping[str, str]:
        """Return further files that the plan needs."""
        return {}

    @property
    def flash_bytes(self) -> int:
        """Bytes of weights, of what sums begin with, and of tables, without code."""
        data = (*self.weights.values(), *self.starts.values(), *self.tables.values())
        return sum(one.nbytes for one in data) + self.table_bytes

    def use(self, kernel: Kernel) -> None:
        """Add a kernel and the files that it needs."""
        self.functions[kernel.function] = kernel.source
        self.helpers.update(kernel.helpers)

    def base(self, tensor: int) -> str:
        """Return where a tensor begins, as C writes it."""
        if (spot := self.plan.places.get(tensor)) is not None:
            return self.at(spot)
        source, target = self.caller
        if tensor == self.graph.input:
            return source
        outputs = self.plan.outputs
        offset = next(o.offset for o in outputs if o.tensor == tensor and not o.copied)
        return f"({target} + {offset})"

    def at(self, spot: Spot | None) -> str:
        """Return a place, as C writes it."""
        return "NULL" if spot is None else f"({_MEMORIES[spot.level]} + {spot.offset})"

    def common(self) -> dict[str, Any]:
        """Return the values for all templates."""
        kept = self.graph.kept
        return {
            "copies": [
                {"offset": o.offset, "base": self.base(o.tensor), "size": self.size(o.tensor)}
                for o in self.plan.outputs
                if o.copied
            ],
            "kept": None if kept is None else {"base": self.base(kept), "size": self.size(kept)},
        }

    def size(self, tensor: int) -> int:
        """Return the bytes of a tensor."""
        return self.graph.tensors[tensor].size_bytes


def flags_of(step: Convolution) -> int:
    """Return the flags of a convolution."""
    return _ABSOLUTE * step.absolute | _WIDE * step.wide | _LIMITED * step.limited


def value_kind(values: NDArray[Any]) -> str:
    """Return the type of numbers as templates name it: `i1` is a signed byte."""
    kind = values.dtype
    return f"{kind.kind}{kind.itemsize}"
