"""The chip that layers are made for, and the arithmetic of a run.

Source: docs/layers.md, "The chip and the arithmetic of a run".
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

from device.layer_limits import LayerLimits, known_limits


@dataclass(frozen=True, slots=True)
class Dev:
    """What a chip can do, and the arithmetic chosen for this run.

    `device` is the number that `set_device` takes. Models use the names in capitals.
    Source: docs/layers.md, "The chip and the arithmetic of a run".
    """

    device: int
    name: str
    limits: LayerLimits
    WEIGHT_DEPTH: int
    MAX_CHANNELS: int
    MAX_POOL: int
    MAX_AVG_POOL: int
    MAX_POOL_DILATION: int
    FULL_ACC_BITS: int
    WIDE_LAYER_RESOLUTION_BITS: int
    WEIGHT_INPUTS: int
    simulate: bool
    round_avg: bool
    WEIGHT_BITS: int = 8
    DATA_BITS: int = 8
    ACTIVATION_BITS: int = 8
    FC_ACTIVATION_BITS: int = 16


@functools.cache
def device_class(limits: LayerLimits) -> type[Dev]:
    """Return the class of a chip, such as DevAI85: called with `simulate` and `round_avg`.

    Calling it raises AssertionError for `round_avg` on a chip that cannot round averages.
    """

    def initialize(self: Any, simulate: bool, round_avg: bool) -> None:
        message = f"{limits.name} cannot round in average pooling"
        require(limits.rounds_averages or not round_avg, message)
        Dev.__init__(
            self,
            limits.number,
            limits.name,
            limits,
            WEIGHT_DEPTH=limits.weight_depth,
            MAX_CHANNELS=limits.max_channels,
            MAX_POOL=limits.max_pool,
            MAX_AVG_POOL=limits.max_average_pool,
            MAX_POOL_DILATION=limits.max_pool_dilation,
            FULL_ACC_BITS=limits.accumulator_bits,
            WIDE_LAYER_RESOLUTION_BITS=limits.wide_bits,
            WEIGHT_INPUTS=limits.weight_inputs,
            simulate=simulate,
            round_avg=round_avg,
        )

    members = {"__init__": initialize, "__module__": __name__, "__doc__": f"{limits.name}."}
    return type(f"DevAI{limits.number}", (Dev,), members)


DEVICE_CLASSES = {cls.__name__: cls for cls in map(device_class, known_limits())}
globals().update(DEVICE_CLASSES)  # where pickle looks for them

chosen: Dev | None = None
"""The chip of layers that are made from now on; also available as `ai8x.dev`."""


def set_device(device: int | str, simulate: bool, round_avg: bool, verbose: bool = True) -> None:
    """Choose the chip, integer simulation and the rounding of average pooling.

    `device` is the number or the name of a chip: 85 or "MAX78000". Layers made before keep their
    arithmetic. Raises ValueError for another `device`, and AssertionError for `round_avg` on a
    chip that cannot round averages (AI84).
    """
    global chosen
    limits = _limits_named(device)
    chosen = device_class(limits)(simulate, round_avg)  # type: ignore[call-arg, arg-type]
    if verbose:
        print(f"Configuring device: {chosen.name}, simulate={simulate}.")


def _limits_named(device: int | str) -> LayerLimits:
    devices = known_limits()
    for limits in devices:
        if device == limits.number or str(device).upper() == limits.name:
            return limits
    *others, last = (_number_and_name(limits) for limits in devices)
    raise ValueError(f"device {device} is unknown; choose {', '.join(others)} or {last}")


def _number_and_name(limits: LayerLimits) -> str:
    """Return "85 (MAX78000)", or the number alone if the name only repeats it."""
    number = str(limits.number)
    return number if limits.name.endswith(number) else f"{number} ({limits.name})"


def chosen_chip() -> Dev:
    """Return the chip chosen by `set_device`."""
    require(chosen is not None, "call ai8x.set_device(device, simulate, round_avg) first")
    assert chosen is not None
    return chosen


def require(condition: bool, message: str) -> None:
    """Raise AssertionError with `message` unless `condition` holds (also under python -O)."""
    if not condition:
        raise AssertionError(message)
