"""From recorded words alone, the machine computes the expected words of the known answers.

A selection by feature; `make emulator-kat` runs all.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ai8xtools.emulator import RecordedWords, Writes
from ai8xtools.emulator.machine.accelerator import run_words
from ai8xtools.emulator.words.recording import read_words
from device import MAX78000
from device.chip import DEFAULT_APB_BASE
from tests.emulator.known_answers import answer

SELECTION = (
    "max78000-mnist",
    "max78000-cifar-10",
    "max78000-faceid",
    "max78002-mnist",
    "burnin_64x8x8",
    "conv1x1",
    "nonsquare",
    "conv1d-pool-9-q4",
    "pooling13x1s1",
    "opt-avg-pool-rounding-mnist",
    "mlpflatten768to100-quant4",
    "own-mixed-bits-q8421",
    "own-wide-output-multipass",
    "own-outprocessors-scattered",
    "own-passthrough-multipass-ai87",
    "eltwiseadd-5op-31ch",
    "upsample-nonsquare-pad1C",
    "depthwise-mixed-ai87",
    "bypass-depthwise3x4x4-ai87",
    "readahead-x4-multipass5-ai87",
    "fifostream-15ch-hwc",
    "own-fifo-stream-chw",
    "snoop-noskip-ai87",
    "snoop2-skip-ai87",
)


@pytest.mark.parametrize("name", SELECTION)
def test_words_give_the_expected_output(name: str, shared: Path) -> None:
    found = answer(shared / "kat" / "cases" / name)
    assert (found.wrong, found.error) == (0, "")
    assert found.words


def test_a_damaged_kernel_is_noticed(shared: Path) -> None:
    recording = read_words(shared / "kat" / "cases" / "max78000-mnist" / "golden.npz")
    writes = recording.writes
    kernels = np.flatnonzero(writes.address == DEFAULT_APB_BASE + MAX78000.kernel_address(0))
    value = writes.value.copy()
    value[kernels] ^= 0x01010101
    _, words = run_words(
        RecordedWords(Writes(writes.size, writes.address, value), recording.expected), MAX78000
    )
    assert recording.mismatches(words)
