"""Words of small networks, encoded by hand through the register declarations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ai8xtools.emulator import Accelerator, NetworkRun, Writes
from device import MAX78000, Chip
from device.chip import DEFAULT_APB_BASE, GROUPS


class Words:
    """Collects bus writes; `run` executes them."""

    def __init__(self, chip: Chip = MAX78000) -> None:
        self.chip = chip
        self.rows: list[tuple[int, int, int]] = []

    def word(self, offset: int, value: int) -> None:
        self.rows.append((4, DEFAULT_APB_BASE + offset, value & 0xFFFFFFFF))

    def control(self, register: str, group: int = 0, **fields: int) -> None:
        word = self.chip.control_registers[register].pack(**fields)
        self.word(self.chip.control_address(group, register), word)

    def layer(self, layer: int, register: str, group: int | None = None, **fields: int) -> None:
        """Write a layer register, in all groups unless one is given."""
        self.layer_word(layer, register, self.chip.layer_registers[register].pack(**fields), group)

    def layer_word(self, layer: int, register: str, word: int, group: int | None = None) -> None:
        """Write a whole layer register, in all groups unless one is given."""
        for g in range(GROUPS) if group is None else (group,):
            self.word(self.chip.layer_address(g, layer, register), word)

    def kernel_bytes(self, processor: int, values: Sequence[int], first_column: int = 0) -> None:
        """Load signed bytes in the order of the kernel stream (byte 8 of a column comes first)."""
        data = np.array(values, np.int8).view(np.uint8)
        data = np.concatenate([data, np.zeros(-len(data) % 9, np.uint8)])
        for i, column in enumerate(data.reshape(-1, 9)[:, ::-1]):
            address = self.chip.kernel_address(processor, first_column + i)
            raw = column.tobytes()
            for part, piece in enumerate((raw[:1], raw[1:5], raw[5:])):
                self.word(address + 4 * part, int.from_bytes(piece, "big"))

    def bias(self, values: Sequence[int], group: int = 0) -> None:
        for i, value in enumerate(values):
            self.word(self.chip.bias_address(group, i), value & 0xFF)

    def pixels(self, image: np.ndarray, word: int = 0) -> None:
        """Place an image [channel, row, column] as HWC data from processor 0 on."""
        channels = image.reshape(len(image), -1)
        for quad in range(-(-len(image) // 4)):
            for x in range(channels.shape[1]):
                lanes = [int(v) & 0xFF for v in channels[4 * quad : 4 * quad + 4, x]]
                value = sum(lane << 8 * i for i, lane in enumerate(lanes))
                self.word(self.chip.data_address(quad, 4 * (word + x)), value)

    def run(self) -> tuple[NetworkRun, Accelerator]:
        accelerator = Accelerator(self.chip)
        accelerator.write(Writes.of(self.rows))
        return accelerator.run(), accelerator


def one_by_one(
    image: np.ndarray,
    weights: np.ndarray,
    *,
    out_word: int = 0x800,
    post: dict[str, int] | None = None,
    lctl: dict[str, int] | None = None,
) -> Words:
    """Return the words of a 1x1 convolution on MAX78000: weights [output, channel], 8 bit."""
    words = Words()
    outputs, channels = weights.shape
    rows, columns = image.shape[1:]
    words.layer(0, "RCNT", last=rows - 1)
    words.layer(0, "CCNT", last=columns - 1)
    words.layer(0, "ONED", kernel_length=1)
    words.layer(0, "WPTR_BASE", pointer=out_word)
    words.layer(0, "WPTR_TOFFS", words=1)
    words.layer(0, "WPTR_MOFFS", words=0x2000)
    words.layer(0, "LCTL", always=1, max_pool=1, shared_output=1, **(lctl or {}))
    words.layer(0, "LCTL2", last_output=8 * (outputs - 1))
    words.layer(0, "MCNT", first=0, last=8 * (outputs - 1))
    mask = (1 << channels) - 1
    words.layer(0, "ENA", group=0, processors=mask, kernels=mask)
    shared = {field: value for field, value in (post or {}).items() if "bias" not in field}
    words.layer(0, "POST", **shared)
    words.layer(0, "POST", group=0, **(post or {}))
    for channel in range(channels):
        words.kernel_bytes(channel, weights[:, channel].tolist())
    words.pixels(image)
    return words
