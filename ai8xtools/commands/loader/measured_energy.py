"""Files of --energy-calibration: lines of a power monitor, or of any other meter.

Source: docs/energy.md, "Calibration".
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ai8xtools.diagnostics.errors import InputError
from ai8xtools.reading import source_text
from ai8xtools.synthesis.measured_energy import Measurement, Phase
from device.energy import Counts

_AGREEMENT = 0.02
"""How far a line's energy may be from power times time."""
_MONITOR, _METER, _COUNTS = 12, 3, 4
_LEAST, _MOST, _MOST_COUNTED = 1e-12, 1e6, 2**53


def read_measurements(path: str) -> tuple[Measurement, ...]:
    """Read lines of numbers with commas: 12 of the vendor's power monitor, 3 of any meter (active
    and idle watts, seconds of an inference), each after 4 counts if of another network.

    Raises InputError E073 for other lines, with their number.
    """
    lines = [line.partition("#")[0].strip() for line in source_text(Path(path)).splitlines()]
    measurements = tuple(
        _measurement(line, f"{path}:{number}") for number, line in enumerate(lines, 1) if line
    )
    if not measurements:
        raise _refused("it has no line of numbers", path)
    return measurements


def _measurement(line: str, place: str) -> Measurement:
    try:
        numbers = [float(word) for word in line.split(",")]
    except ValueError:
        raise _refused("these are no numbers with commas", place) from None
    counts = None
    if len(numbers) in (_COUNTS + _METER, _COUNTS + _MONITOR):
        whole, numbers = numbers[:_COUNTS], numbers[_COUNTS:]
        if not all(0 < one <= _MOST_COUNTED and one.is_integer() for one in whole):
            raise _refused("counts are whole numbers above 0", place)
        counts = Counts(*map(int, whole))
    if len(numbers) not in (_METER, _MONITOR):
        raise _refused(f"{len(numbers)} numbers", place)
    if not all(_LEAST <= one <= _MOST for one in numbers):
        raise _refused(f"all numbers must be above 0, from {_LEAST:g} to {_MOST:g}", place)
    if len(numbers) == _METER:
        active, idle, seconds = numbers
        return Measurement(
            _positive(Phase((active - idle) * seconds, seconds), place), counts=counts
        )
    weights, entry, both = (_phase(numbers[at : at + 4], place) for at in (0, 4, 8))
    alone = Phase(both.joules - entry.joules, both.seconds - entry.seconds)
    return Measurement(_positive(alone, place), weights, entry, counts)


def _phase(numbers: Sequence[float], place: str) -> Phase:
    joules, seconds, idle, active = numbers
    expected = (active - idle) * seconds
    if abs(joules - expected) > _AGREEMENT * abs(expected):
        what = f"energy {joules:g} J is not (active - idle) x time = {expected:g} J"
        raise _refused(what, place)
    return _positive(Phase(joules, seconds), place)


def _positive(phase: Phase, place: str) -> Phase:
    if phase.joules <= 0 or phase.seconds <= 0:
        raise _refused("what was measured is not above what it includes", place)
    return phase


def _refused(what: str, place: str) -> InputError:
    return InputError(
        "E073", f"{what}; this is no line of a power monitor", place,
        "Lines have 12 numbers (energy, time, idle and active power of weights, input, input and "
        "inference) or 3 (active and idle power, time of an inference), in J, s and W.",
    )  # fmt: skip
