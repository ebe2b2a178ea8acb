"""How the sample reaches the program: arrays, words made from few, loops that push them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ai8xtools.synthesis.check import check_chip_options
from ai8xtools.synthesis.encode.data import fifo_streams, input_blocks
from ai8xtools.synthesis.layout import InputPort, Progression
from ai8xtools.synthesis.options import EncodeOptions, ResolveOptions
from ai8xtools.synthesis.program import FifoStream, InputBlock
from ai8xtools.synthesis.resolve.sample import progressing
from ai8xtools.synthesis.words import phase_words
from device import MAX78000
from tests.synthesis.networks import build, describe, mask, sample, weights
from tests.synthesis.programs import emit, program, store, words
from tests.synthesis.stages import check

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
    assert [(d.code, str(d.place)) for d in found] == [("E095", "option --synthesize-input")]


def test_compiled_loop_makes_the_words(tmp_path: Path) -> None:
    pytest.importorskip("unicorn", reason="needs the emulator (extra `emulator`)")
    from ai8xtools.emulator import compare, run_loader

    every = words(*made_words([1, 0xFFFE, 0x1234], 0x8003, 0xFFFF, 12))
    stream = FifoStream(0, APB + 8, APB + 4, 1, every, 3, 0x8003, 0xFFFF)
    made = program(inputs=(), fifo=(stream,))
    files = emit(made)
    assert files["sampledata.h"].count("0x") == 3
    record = run_loader(store(files, tmp_path / "net"), "MAX78000")
    wanted = {k: (w.words, w.control, w.pushes) for k, w in phase_words(made).items()}
    assert compare(record.effect(), wanted, record.addresses) == []


def test_split_image_comes_with_the_rows_around_each_part(tmp_path: Path) -> None:
    data = sample(1, 8, 10)
    network, _ = build(
        tmp_path, describe({**CONV, "processors": 1, "data_format": "CHW", "in_offset": 0x100}),
        data, [weights(2, 1, 3, 3)], input_split=4,
    )  # fmt: skip
    assert [d.code for d in check(network)] == ["W380"]
    blocks = list(input_blocks(network, APB, fixed=False))
    assert [block.address for block in blocks] == [0x50400100 + 0x800 * i for i in range(4)]
    assert {block.number for block in blocks} == {0}
    padded = np.pad(data[0], ((1, 1), (0, 0)))
    for part, block in enumerate(blocks):
        found = np.frombuffer(block.words.astype("<u4").tobytes(), np.int8)
        assert found.tolist() == padded[2 * part : 2 * part + 4].reshape(-1).tolist()
    fixed = list(input_blocks(network, APB, fixed=True))
    assert fixed[1].address == blocks[1].address and fixed[1].words[1] == 0xAAAAAAAA


def test_parts_of_an_image_share_an_array() -> None:
    parts = tuple(InputBlock(n, 0x50400000 + a, words(a, n)) for n, a in ((0, 0), (0, 8), (4, 16)))
    files = emit(program(inputs=parts))
    assert files["sampledata.h"].count("#define SAMPLE_INPUT_") == 2
    main = files["main.c"]
    assert main.count("[] = SAMPLE_INPUT_") == 2
    for copy in ("0x50400000, input_0, 2", "0x50400008, input_0 + 2, 2", "0x50400010, input_4, 2"):
        assert f"memcpy32((uint32_t *) {copy});" in main


def test_a_second_of_sound_is_loaded_as_keyword_spotters_store_it(tmp_path: Path) -> None:
    """Sample t is step t // 128 of channel t % 128: the formula that published programs use."""
    data = sample(128, 128)
    layer = {"op": "conv1d", "kernel_size": 1, "pad": 0, "processors": mask(64), "in_dim": 128,
             "in_channels": 128}  # fmt: skip
    network, _ = build(tmp_path, describe(layer), data, [weights(64, 128, 1)])
    loaded = np.zeros(16 * 1024, np.int8)
    for block in input_blocks(network, APB, fixed=False):
        instance = next(i for i in range(16) if MAX78000.data_address(i) == block.address - APB)
        content = block.words.astype("<u4").view(np.int8)
        loaded[1024 * instance : 1024 * instance + len(content)] = content
    sound = data.T.reshape(-1)
    time = np.arange(128 * 128)
    row, column = time // 128, time % 128
    place = 1024 * (column % 64 // 4) + 4 * (2 * row + (column >= 64)) + column % 4
    assert np.array_equal(loaded[place], sound)
