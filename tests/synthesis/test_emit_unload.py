"""Which byte of the result comes from which byte of data memory."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ai8xtools.synthesis.emit.unload import UnloadRun, chunks, layer_offsets, unload_code
from ai8xtools.synthesis.program import UnloadLayer, UnloadPiece

BASE = 0x50400000


def pieces(lanes: list[tuple[int, ...]], step: int, pixels: int) -> tuple[UnloadPiece, ...]:
    """Return one piece per instance, with the lanes it uses."""
    found, channel = [], 0
    for instance, used in enumerate(lanes):
        found.append(UnloadPiece(BASE + 0x8000 * instance, used, channel, step * 4))
        channel += len(used)
    return tuple(found)


def layer(width: int, lanes: list[tuple[int, ...]], step: int, pixels: int) -> UnloadLayer:
    channels = sum(map(len, lanes))
    return UnloadLayer(width, channels, pixels, pieces(lanes, step, pixels))  # type: ignore[arg-type]


def sources(layers: list[UnloadLayer], **unroll: int) -> list[int]:
    """Carry out the runs; return the address each byte of the result comes from (0: none)."""
    code = unload_code(layers, unroll.get("wide", 8), unroll.get("narrow", 1))
    result = [0] * code.size_bytes
    for output in code.outputs:
        for run in output.runs:
            assert sum(c.loops * c.bodies for c in run.chunks) == run.reads
            carry_out(run, result)
    return result


def carry_out(run: UnloadRun, result: list[int]) -> None:
    target = run.target
    for read in range(run.reads):
        word = run.address + 4 * run.step_words * read
        for position, lane in enumerate(run.lanes):
            if run.width == 32:
                for byte in range(4):
                    result[target] = word + 4 * lane + byte
                    target += 1
            else:
                at = target + run.plane * position if run.plane > 1 else target
                assert result[at] == 0, "written twice"
                result[at] = word + lane
                target += run.plane == 1
        target += run.width == 8 and run.plane > 1


def expected(layers: list[UnloadLayer]) -> list[int]:
    """The layout as the specification states it, byte by byte."""
    result: list[int] = []
    for one in layers:
        if one.width == 32:
            result += [0] * (-len(result) % 4)
            for piece in one.pieces:
                for pixel in range(one.pixels):
                    for lane in piece.lanes:
                        word = piece.address + pixel * piece.stride_bytes + 4 * lane
                        result += range(word, word + 4)
        else:
            planes = np.zeros((one.channels, one.pixels), int)
            for piece in one.pieces:
                for position, lane in enumerate(piece.lanes):
                    pixels = piece.address + np.arange(one.pixels) * piece.stride_bytes
                    planes[piece.channel + position] = pixels + lane
            result += planes.reshape(-1).tolist()
    return result


lane_lists = st.lists(
    st.sets(st.integers(0, 3), min_size=1).map(lambda s: tuple(sorted(s))), min_size=1, max_size=6
)
layers = st.builds(
    layer, st.sampled_from([8, 32]), lane_lists, st.sampled_from([1, 2, 4, 8]), st.integers(1, 20)
)


@given(st.lists(layers, min_size=1, max_size=3), st.integers(0, 9), st.integers(0, 9))
def test_every_byte_comes_from_its_place(some: list[UnloadLayer], wide: int, narrow: int) -> None:
    assert sources(some, wide=wide, narrow=narrow) == expected(some)


def test_ten_channels_of_one_pixel_deliver_ten_bytes() -> None:
    code = unload_code([layer(8, [(0, 1, 2, 3)] * 2 + [(0, 1)], 1, 1)], 8, 1)
    assert code.size_bytes == 10
    assert [run.reads for run in code.outputs[0].runs] == [2, 1]


def test_map_that_starts_in_lane_two_fills_plane_zero() -> None:
    found = sources([layer(8, [(2, 3), (0, 1, 2, 3)], 1, 4)])
    assert found[0] == BASE + 2
    assert found[8] == BASE + 0x8000


def test_words_of_several_pixels_skip_unused_lanes() -> None:
    found = sources([layer(32, [(0, 1)], 4, 2)])
    assert found[::4] == [BASE, BASE + 4, BASE + 16, BASE + 20]


def test_words_behind_bytes_start_at_a_multiple_of_four() -> None:
    both = [layer(8, [(0, 1)], 1, 3), layer(32, [(0,)], 1, 1)]
    assert layer_offsets(both) == (0, 8, 12)


@pytest.mark.parametrize(
    ("reads", "unroll", "loops"),
    [
        (10, 8, [(1, 8), (1, 2)]),
        (16, 8, [(2, 8)]),
        (3, 8, [(1, 3)]),
        (5, 1, [(5, 1)]),
        (6, 0, [(1, 6)]),
    ],
)
def test_runs_are_cut_as_the_unroll_option_says(
    reads: int, unroll: int, loops: list[tuple[int, int]]
) -> None:
    run = UnloadRun(32, BASE, (0,), 1, reads, 0, 1)
    assert [(chunk.loops, chunk.bodies) for chunk in chunks(run, unroll)] == loops
