"""The chip that layers are made for, and the arithmetic of a run (spec/training.md 1.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from device import CHIPS


@dataclass(frozen=True, slots=True)
class Dev:
    """What a chip can do, and the arithmetic chosen for this run (spec/training.md 1.1)."""

    device: int
    name: str
    WEIGHT_DEPTH: int
    MAX_CHANNELS: int
    MAX_POOL: int
    MAX_AVG_POOL: int
    MAX_POOL_DILATION: int
    simulate: bool = False
    round_avg: bool = False
    WEIGHT_BITS: int = 8
    DATA_BITS: int = 8
    ACTIVATION_BITS: int = 8
    FULL_ACC_BITS: int = 30
    FC_ACTIVATION_BITS: int = 16
    WIDE_LAYER_RESOLUTION_BITS: int = 15
    WEIGHT_INPUTS: int = 256


_CHIPS: dict[int, dict[str, Any]] = {
    84: {
        "name": "AI84",
        "FULL_ACC_BITS": 8,
        "WIDE_LAYER_RESOLUTION_BITS": 8,
        "WEIGHT_INPUTS": 64,
        "WEIGHT_DEPTH": 128,
        "MAX_CHANNELS": 1024,
        "MAX_POOL": 16,
        "MAX_AVG_POOL": 4,
        "MAX_POOL_DILATION": 1,
    },
} | {
    chip.die: {
        "name": chip.name,
        "WEIGHT_DEPTH": chip.kernel_columns_first,
        "MAX_CHANNELS": chip.max_channels,
        "MAX_POOL": chip.max_pool,
        "MAX_AVG_POOL": chip.max_pool,
        "MAX_POOL_DILATION": chip.max_pool_dilation,
    }
    for chip in CHIPS
}


class DevAI84(Dev):
    """The predecessor AI84, which only rounds averages toward zero."""

    def __init__(self, simulate: bool, round_avg: bool) -> None:
        require(not round_avg, "AI84 cannot round in average pooling")
        super().__init__(84, simulate=simulate, round_avg=round_avg, **_CHIPS[84])


class DevAI85(Dev):
    """MAX78000."""

    def __init__(self, simulate: bool, round_avg: bool) -> None:
        super().__init__(85, simulate=simulate, round_avg=round_avg, **_CHIPS[85])


class DevAI87(Dev):
    """MAX78002."""

    def __init__(self, simulate: bool, round_avg: bool) -> None:
        super().__init__(87, simulate=simulate, round_avg=round_avg, **_CHIPS[87])


_CLASSES = {84: DevAI84, 85: DevAI85, 87: DevAI87}

chosen: Dev | None = None
"""The chip of the layers to be made; `ai8x.dev` is another name for it."""


def set_device(device: int | str, simulate: bool, round_avg: bool, verbose: bool = True) -> None:
    """Choose the chip, integer simulation and the rounding of average pooling.

    `device` is 84, 85, 87 or a name: "MAX78000". Layers made before keep their arithmetic. Raises
    ValueError for another `device` and AssertionError for `round_avg` on AI84.
    """
    global chosen
    device = {chip["name"]: die for die, chip in _CHIPS.items()}.get(str(device).upper(), device)
    if not isinstance(device, int) or device not in _CLASSES:
        raise ValueError(f"device {device} is unknown; choose 84, 85 (MAX78000) or 87 (MAX78002)")
    chosen = _CLASSES[device](simulate, round_avg)
    if verbose:
        print(f"Configuring device: {chosen.name}, simulate={simulate}.")


def chosen_chip() -> Dev:
    """Return the chip chosen by `set_device`."""
    require(chosen is not None, "call ai8x.set_device(device, simulate, round_avg) first")
    assert chosen is not None
    return chosen


def require(condition: bool, message: str) -> None:
    """Raise AssertionError with `message` unless `condition` holds (also under python -O)."""
    if not condition:
        raise AssertionError(message)
