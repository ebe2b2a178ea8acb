"""Data memory as layers see it: bytes, and what became of them.

For each byte it is known whether it was ever written, which layer wrote it last, and whether
anything has read it since; so it shows when data is lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ai8xtools.emulator.state.memory import INSTANCES, Memory

Integers = NDArray[np.int64]

OUTSIDE = -1
"""In place of a layer: what the core or the FIFOs wrote."""
_PRIVATE_WORDS = 0x80000  # data memory of a stream between two layers, per instance


@dataclass
class DataMemory:
    """Bytes a layer reads from or writes to, [instance, byte].

    `written` is which were ever written. `writer` holds the layer that wrote each byte last, or
    OUTSIDE. `readers` maps a layer to the processors that have read its output, each with the layer
    that did. `spread` holds the layers whose last words may be surplus. A memory that is `private`
    belongs to a stream between two layers, whose addresses go round in a ring; it has no `writer`.

    """

    data: NDArray[np.uint8]
    written: NDArray[np.bool_]
    writer: NDArray[np.int16]
    private: bool = False
    readers: dict[int, dict[int, int]] = field(default_factory=dict)
    spread: set[int] = field(default_factory=set)

    @classmethod
    def of(cls, memory: Memory) -> DataMemory:
        """Return the data memory of an accelerator at the start of a run."""
        writer = np.full(memory.data_written.shape, OUTSIDE, np.int16)
        return cls(memory.data_bytes, memory.data_written, writer)

    @classmethod
    def for_stream(cls) -> DataMemory:
        """Return the memory between two streaming layers, as large as any ring may be."""
        shape = (INSTANCES, cls.stream_bytes())
        nobody = np.zeros((0, 0), np.int16)
        return cls(np.zeros(shape, np.uint8), np.zeros(shape, np.bool_), nobody, private=True)

    @staticmethod
    def stream_bytes() -> int:
        """Return the bytes of an instance of the memory between two streaming layers."""
        return 4 * _PRIVATE_WORDS

    def read(self, instance: Integers, offset: Integers) -> NDArray[np.int8]:
        """Return signed bytes; offsets wrap at the end of the instance."""
        return self.data[instance, offset].view(np.int8)

    def writers(
        self, reader: int, processors: Sequence[int], instance: Integers, offset: Integers
    ) -> NDArray[np.int16]:
        """Return who wrote the bytes [processor, ...] last; note that layer `reader` reads them."""
        writers = self.writer[instance, offset]
        for processor, own in zip(processors, writers, strict=True):
            for layer in np.unique(own).tolist():
                self.readers.setdefault(layer, {})[processor] = reader
        return writers

    def lost(self, instance: Integers, offset: Integers, layer: int) -> dict[int, int]:
        """Return whose output goes when `layer` writes there though nothing has read any of it.

        Layers by number, with the bytes that they lose.
        """
        numbers, counts = np.unique(self.writer[instance, offset], return_counts=True)
        return {
            number: count
            for number, count in zip(numbers.tolist(), counts.tolist(), strict=True)
            if number not in (OUTSIDE, layer) and number not in self.readers
        }

    def write(
        self, instance: Integers, offset: Integers, values: NDArray[np.uint8], layer: int
    ) -> None:
        """Store bytes that `layer` writes; offsets wrap at the end of the instance."""
        offset = offset % self.data.shape[1]
        self.data[instance, offset] = values
        self.written[instance, offset] = True
        if not self.private:
            self.writer[instance, offset] = layer
