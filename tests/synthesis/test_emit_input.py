"""How the sample reaches the program: arrays, words made from few, loops that push them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from device import MAX78000
from synthesis.check import check, check_chip_options
from synthesis.encode.data import fifo_streams
from synthesis.network import InputPort, Progression
from synthesis.options import EncodeOptions, ResolveOptions
from synthesis.program import FifoStream
from synthesis.resolve.sample import progressing
from synthesis.words import phase_words
from tests.synthesis.networks import build, describe, mask, sample, weights
from tests.synthesis.programs import emit, program, store, words

APB = 0x50000000
CONV = {"op": "conv2d", "kernel_size": "3x3", "pad": 1, "processors": mask(3)}


def made_words(first: list[int], step: int, limit: int, count: int) -> list[int]:
    """The rule as the specification states it: word k is word k - M plus N, cut."""
    found = list(first)
    while len(found) < count:
        found.append(found[len(found) - len(first)] + step & limit)
    return found


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_sample_follows_the_progression(channels: int) -> None:
    data = sample(channels, 4, 6)
    limit = (1 << 8 * channels) - 1
    result = progressing(data, Progression(8, 0x01FFFF3, limit))

    def as_words(values: np.ndarray[Any, Any]) -> list[int]:
        rows = values.reshape(channels, -1).T.tolist()
        return [sum((byte & 0xFF) << 8 * lane for lane, byte in enumerate(row)) for row in rows]

    assert result.shape == data.shape and result.min() >= -128 and result.max() <= 127
    assert as_words(result) == made_words(as_words(data)[:8], 0x01FFFF3, limit, 24)


def test_network_simulates_what_the_program_pushes(tmp_path: Path) -> None:
    data = sample(3, 4, 4)
    network, _ = build(
        tmp_path, describe({**CONV, "data_format": "HWC"}), data, [weights(2, 3, 3, 3)],
        input_port=InputPort.FIFO, synthesize_input=0x010203, synthesize_words=4,
    )  # fmt: skip
    assert list(check(network)) == []
    (stream,) = fifo_streams(network, APB)
    pixels = (network.sample.reshape(3, -1) & 0xFF).astype(np.uint32)
    assert stream.words.tolist() == (pixels[0] | pixels[1] << 8 | pixels[2] << 16).tolist()
    assert stream.stored.tolist() == stream.words[:4].tolist()
    assert (stream.step, stream.mask) == (0x010203, 0xFFFFFF)
    assert not np.array_equal(network.sample, data)


def test_made_input_needs_a_fifo() -> None:
    found = check_chip_options(MAX78000, ResolveOptions(synthesize_input=1), EncodeOptions())
    assert [(d.code, str(d.place)) for d in found] == [("E084", "option --synthesize-input")]


def test_compiled_loop_makes_the_words(tmp_path: Path) -> None:
    pytest.importorskip("unicorn", reason="needs the emulator (requirements-emulator.txt)")
    from emulator import compare, run_loader

    every = words(*made_words([1, 0xFFFE, 0x1234], 0x8003, 0xFFFF, 12))
    stream = FifoStream(0, APB + 8, APB + 4, 1, every, 3, 0x8003, 0xFFFF)
    made = program(inputs=(), fifo=(stream,))
    files = emit(made)
    assert files["sampledata.h"].count("0x") == 3
    record = run_loader(store(files, tmp_path / "net"), "MAX78000")
    wanted = {k: (w.words, w.control, w.pushes) for k, w in phase_words(made).items()}
    assert compare(record.effect(), wanted, record.addresses) == []
