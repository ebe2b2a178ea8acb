"""softmax.c on the core it is made for, against published vectors."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("unicorn", reason="needs the emulator (extra `emulator`)")

from ai8xtools.emulator.cpu.core import MEMORY_BYTES, RAM, Core
from ai8xtools.emulator.firmware.bus import Bus
from ai8xtools.emulator.firmware.compiling import compile_project
from tests.synthesis.programs import emit, program, store

INPUT = RAM + MEMORY_BYTES // 2
OUTPUT = INPUT + 0x10000
MNIST = [-77992, 93377, 45484, 29850, -36248, -130974, -272399, 416616, -148783, 25073]
KWS = [
    23769, -155125, 24552, -36036, -54285, -73044, -43935, -33674, -32534, 28599, -50064, -127954,
    -95777, -43543, -81384, -116959, -98197, -78007, -92597, -114566, -64609,
]  # fmt: skip

# shift, outputs of the network, classes; the shift 0 is the function without shift
VECTORS = [
    (0, MNIST, [0, 0, 0, 0, 0, 0, 0, 32767, 0, 0]),
    (0, [-26608, 30558], [3640, 29127]),
    (0, KWS, [9517, 4, 9517, 594, 297, 148, 594, 594, 594, 9517, 297, 9, 37, 594, 74, 18, 37, 74,
              74, 18, 148]),
    (0, [0, 0], [16384, 16384]),
    (0, [12345], [32767]),
    (0, [0, 16384, 32768, 49152, 65536], [1057, 2114, 4228, 8456, 16912]),
    (0, [0, 8191, 8192, 8193, 16383, 16384], [3276, 3276, 6553, 6553, 6553, 6553]),
    (0, [100000, 91809, 91808, 91807, 75424], [8192, 8192, 8192, 4096, 4096]),
    (0, [262144, 0, 1, 8191, 8192, 253952, 253953], [10922, 0, 0, 0, 0, 10922, 10922]),
    (0, [-1000000, -1016384, -1100000], [21620, 10810, 337]),
    (0, [2147483647, 0, -2147483648, 2147221504, 2147221503], [32767, 0, 0, 0, 0]),
    (0, list(range(-32768, 28673, 4096)), [312, 624, 624, 624, 624, 1248, 1248, 1248, 1248, 2496,
                                           2496, 2496, 2496, 4993, 4993, 4993]),
    (0, [1000] * 10, [3276] * 10),
    (0, [7] * 100, [327] * 100),
    (4, [100, 200, -300, 1023, 1000], [4681, 4681, 4681, 9362, 9362]),
    (6, [5, -5, 250, 255, 0, 128], [3640, 3640, 7281, 7281, 3640, 7281]),
    (7, [1, 2, 3, -1, 127], [5461, 5461, 5461, 5461, 10922]),
]  # fmt: skip


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Core:
    folder = store(emit(), tmp_path_factory.mktemp("softmax"))
    return Core(compile_project(folder), Bus(program().chip))


def classes(core: Core, outputs: list[int], shift: int = 0, narrow: bool = False) -> list[int]:
    core.write_memory(INPUT, np.array(outputs, "<i1" if narrow else "<i4").tobytes())
    core.write_memory(OUTPUT, b"\xa5" * 2 * len(outputs))
    if narrow:
        core.call("softmax_q7_q15", INPUT, len(outputs), OUTPUT)
    elif shift:
        core.call("softmax_shift_q17p14_q15", INPUT, len(outputs), shift, OUTPUT)
    else:
        core.call("softmax_q17p14_q15", INPUT, len(outputs), OUTPUT)
    return list(np.frombuffer(core.read_memory(OUTPUT, 2 * len(outputs)), "<i2").tolist())


def model(outputs: list[int]) -> list[int]:
    """The algorithm in unlimited integers."""
    base = max(outputs) - (16 << 14)
    if base < -(2**31):
        return [0] * len(outputs)
    exponents = [(8192 + x - base) >> 14 if x > base else None for x in outputs]
    scale = 2**32 // sum(1 << e for e in exponents if e is not None)
    return [0 if e is None else min(scale >> (17 - e), 32767) for e in exponents]


@pytest.mark.parametrize(("shift", "outputs", "wanted"), VECTORS)
def test_published_vectors(core: Core, shift: int, outputs: list[int], wanted: list[int]) -> None:
    assert classes(core, outputs, shift) == wanted


def test_shift_is_done_in_place(core: Core) -> None:
    classes(core, [1, -2], shift=7)
    assert np.frombuffer(core.read_memory(INPUT, 8), "<i4").tolist() == [128, -256]


def test_agrees_with_the_model_on_random_outputs(core: Core) -> None:
    rng = np.random.default_rng(7)
    for scale in (2**12, 2**18, 2**30, 2**31 - 1):
        outputs = rng.integers(-scale, scale, int(rng.integers(1, 300))).tolist()
        assert classes(core, outputs) == model(outputs)


def test_outputs_below_the_range_give_zeros(core: Core) -> None:
    assert classes(core, [-(2**31), -(2**31) + 5]) == [0, 0]


def test_no_outputs_are_no_classes(core: Core) -> None:
    assert classes(core, []) == []


def test_8_bit_outputs_are_classified_like_the_32_bit_ones_they_stand_for(core: Core) -> None:
    narrow = [-128, -64, 0, 1, 63, 64, 127]
    assert classes(core, narrow, narrow=True) == classes(core, [128 * x for x in narrow])
