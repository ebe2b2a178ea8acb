"""The machine executes layers whose words are encoded by hand."""

from __future__ import annotations

import numpy as np
import pytest

from ai8xtools.emulator import Accelerator, EmulatorError, Writes
from ai8xtools.emulator.state.memory import Memory
from ai8xtools.emulator.words.writes import WriteLog
from device import MAX78000
from tests.emulator.by_hand import Words, one_by_one

IMAGE = np.array([[[1, 2], [3, -128]]])


def outputs(words: Words) -> list[list[int]]:
    run, _ = words.run()
    return [channel.reshape(-1).tolist() for channel in run.layers[-1].output]


@pytest.mark.parametrize(
    ("post", "first", "second"),
    [
        ({}, [1, 2, 2, -100], [-1, -2, -3, 127]),
        ({"shift": 1}, [2, 3, 5, -128], [-2, -4, -6, 127]),
        ({"shift": 7}, [100, 127, 127, -128], [-128, -128, -128, 127]),
        ({"shift": 1, "shift_right": 1}, [0, 1, 1, -50], [0, -1, -1, 64]),
        ({"shift": 7, "shift_right": 1}, [0, 0, 0, -1], [0, 0, 0, 1]),
        ({"absolute": 1}, [1, 2, 2, 100], [1, 2, 3, 127]),
    ],
)
def test_outputs_are_scaled_and_rounded_half_up(
    post: dict[str, int], first: list[int], second: list[int]
) -> None:
    words = one_by_one(IMAGE, np.array([[100], [-128]]), post=post)
    assert outputs(words) == [first, second]


def test_relu_removes_negative_values() -> None:
    words = one_by_one(IMAGE, np.array([[100], [-128]]), lctl={"relu": 1})
    assert outputs(words) == [[1, 2, 2, 0], [0, 0, 0, 127]]


def test_bias_counts_128_times() -> None:
    words = one_by_one(IMAGE, np.array([[100], [-128]]), post={"bias": 1, "bias_offset": 3})
    words.bias([99, 99, 99, 5, -7])
    assert outputs(words) == [[6, 7, 7, -95], [-8, -9, -10, 121]]


def test_wide_output_is_neither_shifted_nor_clipped() -> None:
    words = one_by_one(IMAGE, np.array([[100], [-128]]), post={"shift": 3}, lctl={"wide": 1})
    run, accelerator = words.run()
    assert outputs(words) == [[100, 200, 300, -12800], [-128, -256, -384, 16384]]
    assert run.findings == []
    stored = accelerator.memory.data[0, 0x800:0x810].view(np.int32).reshape(4, 4)
    assert stored[:, :2].T.tolist() == outputs(words)


def test_narrow_weights_are_taken_at_face_value() -> None:
    """Two 4-bit kernels share a byte, the first in the low half."""
    words = one_by_one(np.array([[[1, -1], [40, -128]]]), np.array([[0]]), post={"weight_size": 3})
    words.layer(0, "POST", group=0, weight_size=3, shift=4)
    words.layer(0, "LCTL2", last_output=4)
    words.layer(0, "MCNT", last=4)
    words.kernel_bytes(0, [0x78])
    assert outputs(words) == [[-1, 1, -40, 127], [1, -1, 35, -112]]


@pytest.mark.parametrize(
    ("max_pool", "rounding", "wanted"),
    [(1, 0, [3, 0, 6, 8]), (0, 0, [0, -1, -1, 0]), (0, 1, [1, -1, -2, -1])],
)
def test_pooling(max_pool: int, rounding: int, wanted: list[int]) -> None:
    image = np.array([[[0, 0, -1, -2], [0, 3, 0, -1], [5, 6, 7, 8], [-9, -9, -9, -8]]])
    words = Words()
    words.layer(0, "RCNT", last=3)
    words.layer(0, "CCNT", last=3)
    words.layer(0, "PRCNT", last=1)
    words.layer(0, "PCCNT", last=1)
    words.layer(0, "STRIDE", stride=1)
    words.layer(0, "WPTR_BASE", pointer=0x100)
    words.layer(0, "LCTL", always=1, pool=1, max_pool=max_pool, shared_output=1)
    words.layer(0, "ENA", group=0, processors=1)
    words.layer(0, "POST", time_slots=1, one_by_one=1)
    words.pixels(image)
    words.control("CTL", enable=1, clock_enable=1, average_rounding=rounding)
    run, accelerator = words.run()
    assert run.layers[0].output.reshape(-1).tolist() == wanted
    stored = accelerator.memory.data_bytes[0, 0x400:0x410:4].view(np.int8)
    assert stored.tolist() == wanted


def test_layers_follow_each_other() -> None:
    words = one_by_one(IMAGE, np.array([[64], [-128]]), out_word=0x100)
    words.control("LCNT_MAX", last=1)
    for register, fields in (
        ("RCNT", {"last": 1}),
        ("CCNT", {"last": 1}),
        ("ONED", {"kernel_length": 1}),
        ("WPTR_BASE", {"pointer": 0x200}),
        ("WPTR_TOFFS", {"words": 1}),
        ("WPTR_MOFFS", {"words": 0x2000}),
        ("RPTR_BASE", {"word": 0x100}),
        ("LCTL", {"always": 1, "max_pool": 1, "shared_output": 1}),
        ("MCNT", {"first": 72, "last": 72}),
    ):
        words.layer(1, register, **fields)
    words.layer(1, "ENA", group=0, processors=3, kernels=3)
    for processor, weight in enumerate((127, -128)):
        words.kernel_bytes(processor, [0] * 0 + [weight], first_column=1)
    run, _ = words.run()
    first = np.array([[1, 1, 2, -64], [-1, -2, -3, 127]])
    assert run.layers[0].output.reshape(2, 4).tolist() == first.tolist()
    sums = first[0] * 127 - first[1] * 128
    assert run.layers[1].output.reshape(-1).tolist() == np.clip(sums + 64 >> 7, -128, 127).tolist()
    assert run.findings == []


def test_kernels_that_were_never_loaded_are_reported() -> None:
    words = one_by_one(IMAGE, np.array([[1]]))
    words.layer(0, "MCNT", first=72, last=72)
    run, _ = words.run()
    assert "kernel column 0 of the layer at 0x50180010, which was never" in str(run.findings[0])


def test_one_shot_stops_after_each_layer() -> None:
    words = one_by_one(IMAGE, np.array([[64]]), out_word=0x100)
    words.control("LCNT_MAX", last=1)
    words.layer(1, "CCNT", last=3)
    words.layer(1, "RPTR_BASE", word=0x100)
    words.layer(1, "LCTL", always=1, max_pool=1, shared_output=1)
    words.layer(1, "WPTR_BASE", pointer=0)  # on top of the network's input
    words.layer(1, "ENA", group=0, processors=1)
    words.layer(1, "POST", group=0, time_slots=1, one_by_one=1)
    words.control("CTL", enable=1, clock_enable=1, one_shot=1)
    accelerator = Accelerator(MAX78000)
    accelerator.write(Writes.of(words.rows))
    executed = []
    for _ in range(4):
        run = accelerator.start()
        executed.append((len(run.layers), accelerator.is_finished))
    assert executed == [(1, False), (2, True), (1, False), (2, True)]
    assert len(accelerator.run().layers) == 2  # all of it, one-shot or not


def outputs_from_lane_2(following: int) -> Words:
    """Return words with outputs in lanes 2 and 3, and another layer's kernel in front of them."""
    words = one_by_one(IMAGE, np.array([[33], [0], [100], [-128]]), post={"bias": 1})
    words.bias([0, 0, 5, -7])
    words.control("LCNT_MAX", last=1)
    words.layer(1, "ONED", kernel_length=1)
    words.layer(1, "WPTR_BASE", pointer=0x100)
    words.layer(1, "RPTR_BASE", word=0x800)
    words.layer(1, "LCTL", always=1, max_pool=1, shared_output=1)
    words.layer(1, "ENA", group=0, processors=following)
    words.layer(1, "POST", time_slots=1, one_by_one=1)
    return words


def test_lanes_in_front_of_the_first_output_have_bias_bytes() -> None:
    run, _ = outputs_from_lane_2(following=0b1100).run()
    found = [channel.reshape(-1).tolist() for channel in run.layers[0].output[2:]]
    assert found == [[6, 7, 7, -95], [-8, -9, -10, 121]]


def test_outputs_without_kernels_are_zero_though_the_memory_ends() -> None:
    words = one_by_one(IMAGE, np.array([[0], [0]]))
    last = 9 * (MAX78000.kernel_columns - 1) + 8  # the last byte of the memory
    words.layer(0, "MCNT", first=8 * last, last=8 * last)
    words.kernel_bytes(0, [0] * 8 + [100], first_column=MAX78000.kernel_columns - 1)
    assert outputs(words) == [[1, 2, 2, -100], [0, 0, 0, 0]]


def test_output_on_top_of_the_input_is_reported() -> None:
    run, _ = one_by_one(IMAGE, np.array([[1]]), out_word=3).run()
    assert "overwrites the layer's own input in data memory instance 0 word 3" in str(
        run.findings[0]
    )


def test_nothing_to_execute_is_refused() -> None:
    with pytest.raises(EmulatorError) as caught:
        Words().run()
    assert caught.value.code == "E831"


@pytest.mark.parametrize(
    ("register", "fields", "problem"),
    [
        ("RCNT", {"last": 0, "pad": 1}, "input (-1, 2)"),
        ("PRCNT", {"last": 2}, "pooled (0, 2)"),
        ("MCNT", {"first": 0xFFF0, "last": 0xFFF0}, "kernels reach to byte"),
    ],
)
def test_registers_that_describe_no_layer_are_refused(
    register: str, fields: dict[str, int], problem: str
) -> None:
    words = one_by_one(IMAGE, np.array([[1]]))
    words.layer(0, register, **fields)
    with pytest.raises(EmulatorError) as caught:
        words.run()
    assert caught.value.code == "E832"
    assert problem in caught.value.message


@pytest.mark.parametrize(
    "offset",
    [
        MAX78000.kernel_address(3, 768),
        MAX78000.bias_address(1, 512),
        MAX78000.data_address(3, 0x8000),
        0x2000000,
    ],
)
def test_writes_to_nothing_are_refused(offset: int) -> None:
    words = one_by_one(IMAGE, np.array([[1]]))
    words.word(offset, 1)
    with pytest.raises(EmulatorError) as caught:
        words.run()
    assert caught.value.code == "E830"
    assert f"0x{0x50000000 + offset:08x}" in caught.value.message


@pytest.mark.parametrize("group", [0, 3])
def test_packed_kernels_for_processors_that_do_not_exist_are_refused(group: int) -> None:
    log, address = WriteLog(), 0x50000000 + MAX78000.kernel_address(16 * group)
    address += 16 * MAX78000.kernel_stride
    log.append(1, address + 1, 1)
    for word in range(9):
        log.append(4, address + 4 * word, word)
    with pytest.raises(EmulatorError) as caught:
        Memory(MAX78000).write(log.writes())
    assert caught.value.code == "E830"
