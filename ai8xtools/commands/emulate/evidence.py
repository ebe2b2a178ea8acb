"""What a PASS without an answer file rests on: how many samples, and which kernels they leave
untested.

Source: docs/emulator.md, "One sample".
"""

from __future__ import annotations

from collections.abc import Iterable

from ai8xtools.emulator import EmulatorError, NetworkRun
from ai8xtools.emulator.influence.kernels import kernel_influence
from ai8xtools.emulator.state.memory import Memory


def sample_evidence(
    memory: Memory | None, run: NetworkRun | None, results: Iterable[int], samples: int = 1
) -> str:
    """Say on how many samples a verdict rests, and which kernels had no influence on the first.

    `memory` is that of the accelerator before the run on it, `results` are the addresses of the
    words that the verdict depends on.
    """
    rests = "on one sample" if samples == 1 else f"on {samples} samples"
    if memory is None or run is None:
        return rests
    try:
        influence = kernel_influence(memory, run, results)
    except EmulatorError as error:
        return f"{rests}; what its kernels contribute is not known: {error.message}"
    (idle_bytes, every_byte), (idle_bits, every_bit) = influence.bytes, influence.bits
    if not every_byte:
        return rests
    return (
        f"{rests}; at least {idle_bytes:,} of {every_byte:,} kernel bytes and {idle_bits:,} of "
        f"{every_bit:,} kernel bits had no influence on {'it' if samples == 1 else 'the first'}"
    )
