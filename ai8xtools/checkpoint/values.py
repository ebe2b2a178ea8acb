"""The contents of a checkpoint as plain Python values and numpy arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any, Literal, TypeAlias, cast

from numpy.typing import NDArray

from ai8xtools.values import frozen

Array: TypeAlias = NDArray[Any]
# Scalars, text, bytes, lists, tuples, dictionaries with scalar keys, arrays, class references.
Value: TypeAlias = Any
Container: TypeAlias = Literal["zip", "legacy", "safetensors"]

NETWORK = "qformat"
"""The entry with the steps of a network of 16 or 8 bits."""


@frozen
class ClassReference:
    """The name of a class that a checkpoint mentions (`optimizer_type`); inert, never imported."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


@frozen
class Checkpoint:
    """A whole checkpoint: every top-level entry, in the order of the file.

    Tensors are numpy arrays of the stored dtype and shape (bfloat16: widened to float32, which is
    exact). Arrays that were read are views of the file's bytes and read-only.
    Source: docs/checkpoints.md, "What is read".
    """

    entries: Mapping[str, Value]
    container: Container = field(default="zip", compare=False)

    @property
    def state_dict(self) -> dict[str, Array]:
        """Parameters and buffers by name; their order numbers the layers."""
        return cast("dict[str, Array]", self.entries["state_dict"])

    @property
    def epoch(self) -> int | None:
        """Number of the last completed epoch, from 0; None where the file does not give it."""
        return self.entries.get("epoch")

    @property
    def arch(self) -> str | None:
        """Name of the model; None where the file does not give it."""
        return self.entries.get("arch")

    @property
    def extras(self) -> dict[str, Value]:
        """Scores and notes (`best_top1`, `clipping_method`); empty where the file has none."""
        return self.entries.get("extras") or {}

    @property
    def is_calibrated(self) -> bool:
        """Whether quantize.py chose the shifts by samples, for weights as training left them."""
        return bool(self.extras.get("clipping_method") == "CALIBRATION")

    @property
    def network(self) -> Value:
        """Steps and formats of a network of 16 or 8 bits; None in other checkpoints."""
        return self.entries.get(NETWORK)

    @property
    def masks(self) -> dict[str, Value] | None:
        """`compression_sched.masks_dict`: one entry per trained parameter; None if absent."""
        schedule = self.entries.get("compression_sched")
        masks = schedule.get("masks_dict") if isinstance(schedule, dict) else None
        return masks if isinstance(masks, dict) else None

    def with_entries(self, **changes: Value) -> Checkpoint:
        """Return a copy with top-level entries replaced in place, or added at the end."""
        return replace(self, entries={**self.entries, **changes})
