"""Contents of the files of tests for RTL simulation."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ai8xtools.synthesis.emit.rtl import (
    Camera,
    check_rtl_options,
    emit_rtl,
    regression_line,
)
from ai8xtools.synthesis.emit.rtl import test_name as name_of_test
from ai8xtools.synthesis.emit.rtl.camera import camera_lines
from ai8xtools.synthesis.emit.rtl.images import kernel_images, kernel_parts
from ai8xtools.synthesis.emit.rtl.timeout import Accesses, accesses, queue_name, timeout_ms
from ai8xtools.synthesis.layout import InputPort
from ai8xtools.synthesis.place import Stream
from ai8xtools.synthesis.program import ExpectedOutput, KernelBlock
from ai8xtools.synthesis.summarize import topology
from ai8xtools.writing.folder import folder_name
from device import MAX78000, MAX78002
from tests.rtl.by_hand import FIFO, MODERN, camera, rtl_options, stored
from tests.synthesis.programs import program, statistics, summary, words

PRELOADED = rtl_options(preload_data=True, preload_weights=True, result_output=True)
NARROW = ExpectedOutput(words(0x50400000, 0x50408004), words(0xFFFF, 0xFFFF0000),
                        words(0x7F80, 0x85560000))  # fmt: skip


def files_of(**changes: Any) -> set[str]:
    return set(emit_rtl(program(), summary(), rtl_options(**changes)))


def test_a_test_consists_of_program_bench_and_data() -> None:
    assert files_of() == {
        "test.c", "run_test.sv", "weights.h", "sampledata.h", "latency.txt", "log.txt"
    }  # fmt: skip


def test_images_replace_what_the_program_loads() -> None:
    found = set(emit_rtl(program(), summary(), PRELOADED))
    assert not found & {"weights.h", "sampledata.h", "sampleoutput.h"}
    assert {"data/DRAM_x16_0_proc_0_ram_0.dat", "masks/MRAM_x16_0_proc_0_ram_0.dat",
            "data-expected/DRAM_x16_0_proc_4_ram_0.dat", "verify-output.py"} <= found  # fmt: skip


def test_words_can_be_stored_one_by_one() -> None:
    files = emit_rtl(program(), summary(), rtl_options(compact_data=False))
    assert "sampledata.h" not in files
    assert "*((volatile uint32_t *) 0x5040000c) = 0x100f0e0d;" in files["test.c"]


def test_riscv_core_has_a_program_of_its_own() -> None:
    files = emit_rtl(program(), summary(), rtl_options({"riscv": True}))
    assert {"test.c", "test_riscv.c"} <= set(files)
    assert "`define RISCV_PROG_SOURCE test_riscv.c\n" in files["run_test.sv"]


def test_expected_digits_without_mask_are_x() -> None:
    files = emit_rtl(program(expected=NARROW), summary(), PRELOADED)
    assert files["data-expected/DRAM_x16_0_proc_0_ram_0.dat"] == "@0000 XXXX7f80\n"
    assert files["data-expected/DRAM_x16_0_proc_4_ram_0.dat"] == "@0001 8556XXXX\n"


def test_kernel_image_names_bytes_of_a_column() -> None:
    images = kernel_images(program())
    assert images["masks/MRAM_x16_0_proc_0_ram_0.dat"] == "@0000 01_02030405_06070809\n"
    assert images["masks/MRAM_x16_0_proc_1_ram_0.dat"].splitlines() == [
        "@0080 11_12131415_16171819", "@0081 21_22232425_26272829"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("column", "part", "place"),
    [(0, 0, 0), (1023, 0, 1023), (1024, 1, 0), (4095, 3, 1023), (4096, 4, 0), (5119, 7, 255)],
)
def test_large_kernel_memories_have_parts(column: int, part: int, place: int) -> None:
    address = 0x50000000 + MAX78002.kernel_address(16, column)
    block = KernelBlock(16, address, words(1, 0x02030405, 0x06070809, 0))
    images = kernel_images(replace(MODERN, kernels=(block,), express=False))
    assert images == {
        f"masks/MRAM_x16_1_proc_0_ram_{part}.dat": f"@{place:04x} 01_02030405_06070809\n"
    }
    assert (kernel_parts(MAX78000), kernel_parts(MAX78002)) == (1, 8)


def test_data_beyond_a_part_of_max78002_goes_to_the_next_image() -> None:
    address = 0x50000000 + MAX78002.data_address(5, 0x4004)
    expected = ExpectedOutput(words(address), words(0xFFFFFFFF), words(7))
    files = emit_rtl(replace(MODERN, expected=expected), summary(), rtl_options(result_output=True))
    assert files["data-expected/DRAM_x16_1_proc_4_ram_1.dat"] == "@0001 00000007\n"


def test_block_level_test_lists_writes_and_answer() -> None:
    layers = np.array([0, 1], np.int64)
    made = program(express=False, kernels=(), expected=replace(NARROW, layers=layers))
    files = emit_rtl(made, summary(), rtl_options(top_level=None))
    assert "test.c" not in files
    assert files["input.mem"].startswith("@0000 50001000\n@0001 00000000\n@0002 50100000\n")
    assert files["output.mem"].splitlines() == [
        "@0000 50400000", "@0001 XXXX7f80", "@0002 50408004", "@0003 8556XXXX"
    ]  # fmt: skip
    assert files["output-1.mem"] == "@0000 50408004\n@0001 8556XXXX\n"


# Names and lists


def test_name_tells_the_layers() -> None:
    told = summary(topology="-1x4x4b_0x0s1p1m2")
    assert name_of_test("net", told) == "net-1x4x4b_0x0s1p1m2"
    repeated = replace(told, statistics=replace(told.statistics, repeat=2))
    assert name_of_test("net", repeated) == "net-1x4x4b_0x0s1p1m2_repeat2"


@pytest.mark.parametrize("parent", ["x" * 24, "x" * 26, "x" * 100])
def test_long_names_are_cut_and_hashed(parent: str) -> None:
    found = folder_name("n" * 300, parent)
    assert len(found) == 246 - len(parent) and found[-33] == "-"
    assert folder_name("n" * 299 + "m", parent) != found
    assert folder_name("n" * (245 - len(parent)), parent) == "n" * (245 - len(parent))


def test_folder_that_leaves_no_room_for_a_name_is_refused() -> None:
    (found,) = check_rtl_options(rtl_options(), "x" * 223)
    assert found.code == "E091" and "223" in found.message and "222" in found.message
    assert check_rtl_options(rtl_options(), "x" * 222) == []


def test_line_without_top_level_has_no_folder_for_it() -> None:
    line = regression_line(program(), summary(), rtl_options(top_level=None, queue_name="night"))
    assert line == "tests/net/run_test:night"


# Time-outs


def test_accesses_are_counted() -> None:
    assert accesses(program(), rtl_options()) == Accesses(reads=6, writes=6 + 3 + 4)
    assert accesses(FIFO, rtl_options()).fifo_writes == 2


def test_long_tests_go_to_another_queue() -> None:
    assert queue_name(program(), summary(), rtl_options(timeout_ms=50)) == "short"
    assert queue_name(program(), summary(), rtl_options(timeout_ms=51)) == "long"


@pytest.mark.parametrize(
    ("shared", "changes", "expected"),
    [
        ({}, {}, 12),
        ({"riscv": True}, {}, 21),
        ({}, {"preload_weights": True}, 10),
        ({"verify_kernels": True}, {}, 65),
        ({"zero_sram": True}, {}, 28),
        ({}, {"timeout_ms": 7}, 7),
    ],
)
def test_time_out_of_mnist(shared: dict[str, Any], changes: dict[str, Any], expected: int) -> None:
    """The figures of the reference tool, which has one cycle for the network there."""
    layers = tuple(replace(layer, cycles=0) for layer in statistics().layers)
    told = summary(statistics=statistics(layers=layers))
    (sample,) = program().inputs
    made = program(inputs=(replace(sample, words=np.zeros(300, np.uint32)),))
    assert timeout_ms(made, told, rtl_options(shared, **changes)) == expected


def test_streams_stretch_the_accesses() -> None:
    layer = SimpleNamespace(hardware=SimpleNamespace(in_dim=(8, 8)), in_passes=1)
    streams = {0: Stream(100, 9, 9), 1: Stream(16, 2, 4), 2: Stream(0, 0, 4)}
    network: Any = SimpleNamespace(input_port=InputPort.FIFO, layer=lambda _: layer)
    second = (16 + 1 / 2 * 4 / 8 * (64 - 16)) / 64
    third = second * 4 / 8
    assert topology.stream_ratio(network, streams) == second * third
    network.input_port = InputPort.MEMORY
    assert topology.stream_ratio(network, streams) == 1


def test_estimated_cycles_count() -> None:
    slow = replace(statistics().layers[0], cycles=4_000_000)
    times = [
        timeout_ms(program(), told, rtl_options())
        for told in (summary(), summary(statistics=statistics(layers=(slow,))))
    ]
    difference = times[1] - times[0]
    assert difference in (98, 99, 100)


# Camera


@pytest.mark.parametrize(
    ("shape", "changes", "lines"),
    [
        ((3, 128, 128), {}, 297103),
        ((3, 128, 128), {"format": 565}, 198799),
        ((3, 128, 128), {"format": 555, "retrace": 2}, 197647),
        ((1, 28, 28), {"planar": True}, 5395),
    ],
)
def test_number_of_samples(shape: tuple[int, int, int], changes: Any, lines: int) -> None:
    made = replace(Camera("c.csv", np.zeros(shape, np.int64), planar=False), **changes)
    assert len(camera_lines(made).splitlines()) == lines


def test_pixels_are_bytes_of_the_sample() -> None:
    image = np.array([[[-1]], [[0x55]], [[-128]]], np.int64)

    def data(**changes: Any) -> list[str]:
        lines = camera_lines(replace(Camera("c.csv", image, planar=False), **changes)).split()
        return [line.split(",")[3] for line in lines if line.split(",")[1] == "1"][::6]

    assert data() == ["ff", "55", "80"]
    assert data(format=565) == [f"{0xF800 | 0x54 << 3 | 0x10:04x}"[i : i + 2] for i in (0, 2)]
    assert data(format=555) == [f"{0x7C00 | 0x50 << 2 | 0x10:04x}"[i : i + 2] for i in (0, 2)]


@pytest.mark.parametrize(
    ("changes", "made", "code"),
    [
        ({}, program(), "E095"),
        ({"format": 565}, FIFO, "E094"),
        ({"image": np.zeros((1, 2, 5), np.int64)}, FIFO, "E094"),
        ({"retrace": -1}, FIFO, "E073"),
        ({"use_fifo": True}, FIFO, "E094"),
    ],
)
def test_cameras_that_cannot_feed_the_network(changes: Any, made: Any, code: str) -> None:
    found = check_rtl_options(rtl_options(camera=camera(**changes)), "t", made)
    assert [d.code for d in found] == [code]


# verify-output.py


def verified(folder: Path) -> subprocess.CompletedProcess[str]:
    script = folder / "verify-output.py"
    assert os.access(script, os.X_OK)
    return subprocess.run(
        [sys.executable, script, folder], capture_output=True, text=True, check=False
    )


@pytest.fixture
def simulated(tmp_path: Path) -> Path:
    """A test whose simulation went well."""
    folder = stored(program(expected=NARROW), PRELOADED, tmp_path / "test")
    for file in (folder / "data-expected").iterdir():
        output = folder / "data-output" / file.name.replace("DRAM_", "DRAM_out_")
        output.write_text("xxxxxxxx\n" * 4)
    write_word(folder, 0, 0, "00007f80")
    write_word(folder, 4, 1, "8556XXXX")
    (folder / "run_test.log.fail").write_text("CNN enabled\nCNN Cycles = 49149\n")
    assert (folder / "latency.txt").read_text().splitlines()[0] == "49149"
    return folder


def write_word(folder: Path, processor: int, word: int, digits: str) -> None:
    path = folder / "data-output" / f"DRAM_out_x16_0_proc_{processor}_ram_0.dat"
    lines = path.read_text().splitlines()
    lines[word] = digits
    path.write_text("\n".join(lines) + "\n")


def test_good_result_is_verified(simulated: Path) -> None:
    found = verified(simulated)
    assert found.returncode == 0 and "Results match." in found.stdout


@pytest.mark.parametrize(
    "digits", ["00007f81", "0000xf80", "xxxxxxxx", "zzzzzzzz", "00001f80"]
)  # fmt: skip
def test_wrong_and_unknown_digits_are_errors(simulated: Path, digits: str) -> None:
    write_word(simulated, 0, 0, digits)
    found = verified(simulated)
    assert found.returncode == 1 and "word 0000: expected XXXX7f80" in found.stdout


def test_other_number_of_cycles_is_an_error(simulated: Path) -> None:
    (simulated / "run_test.log.fail").write_text("CNN Cycles = 49150\n")
    assert verified(simulated).returncode == 1


def test_status_tells_what_is_missing(simulated: Path) -> None:
    write_word(simulated, 0, 0, "7f80")
    assert verified(simulated).returncode == 253
    (simulated / "data-output" / "DRAM_out_x16_0_proc_0_ram_0.dat").unlink()
    assert verified(simulated).returncode == 254
    for file in (simulated / "data-expected").iterdir():
        file.unlink()
    (simulated / "data-expected").rmdir()
    assert verified(simulated).returncode == 255


@pytest.mark.parametrize("text", ["", "garbage\n", "\n"])
def test_malformed_latency_has_a_status(simulated: Path, text: str) -> None:
    (simulated / "latency.txt").write_text(text)
    found = verified(simulated)
    assert found.returncode == 253 and "latency.txt" in found.stdout and not found.stderr


@pytest.mark.parametrize("text", [None, "", "@0000 XXXXXXXX\n"])
def test_nothing_to_compare_is_no_success(simulated: Path, text: str | None) -> None:
    for file in (simulated / "data-expected").iterdir():
        if text is None:
            file.unlink()
        else:
            file.write_text(text)
    found = verified(simulated)
    assert found.returncode == 254 and "no word to compare" in found.stdout


def test_comparison_stops_after_some_errors(tmp_path: Path) -> None:
    many = words(*range(0x50400000, 0x50400000 + 80, 4))
    expected = ExpectedOutput(many, np.full(20, 0xFFFFFFFF, np.uint32), many)
    folder = stored(program(expected=expected), PRELOADED, tmp_path / "test")
    output = folder / "data-output" / "DRAM_out_x16_0_proc_0_ram_0.dat"
    output.write_text("00000000\n" * 20)
    assert verified(folder).returncode == 11
