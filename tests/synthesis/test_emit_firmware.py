"""The emitted C, compiled for the Cortex-M4: no warnings, the right words, the right bytes."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("unicorn", reason="needs the emulator (extra `emulator`)")

from ai8xtools.emulator import compare, run_loader
from ai8xtools.emulator.cpu.architecture import CORTEX_M4
from ai8xtools.emulator.cpu.compiler import compiler
from ai8xtools.emulator.cpu.core import MEMORY_BYTES, RAM, Core
from ai8xtools.emulator.firmware.bus import Bus
from ai8xtools.emulator.firmware.compiling import SDK, compile_project
from ai8xtools.synthesis.program import (
    Block,
    Check,
    Clear,
    FifoStream,
    KernelBlock,
    Power,
    Program,
    UnloadLayer,
    UnloadPiece,
    Wait,
    Write,
    with_pattern,
)
from ai8xtools.synthesis.words import phase_words
from device import MAX78002
from tests.synthesis.programs import DATA, WIDE, emit, planar, program, store, words

STRICT = ["-std=gnu11", "-O2", "-ffreestanding", "-Wall", "-Wextra", "-Wcast-align", "-Wshadow"]
BUFFER = RAM + MEMORY_BYTES // 2
PLANAR = UnloadLayer(
    8, 6, 5, (UnloadPiece(DATA, (1, 3), 0, 8), UnloadPiece(DATA + 0x8000, (0, 1, 2, 3), 2, 8)), 0
)
BYTES = replace(PLANAR, layer=1)
ALL_STEPS = (
    Block(
        "", (Clear(0x50110000, 64, "Line buffer"), Write(0x5010000C, 1, "Test", verifiable=False))
    ),
    Block("", (Wait(0x5010000C, 0x8040000), Check(0x5010000C, 0x4000))),
)
PLAIN = replace(
    program(),
    express=False,
    kernels=(KernelBlock(2, 0x50188020, words(1, 0x02030405, 0x06070809, 0, 9, 8, 7, 0)),),
)
FIFO = program(
    inputs=(), fifo=(FifoStream(0, 0x50000008, 0x50000004, 1, words(1, 2, 3)),)
)  # fmt: skip
FIFOS = program(
    inputs=(),
    fifo=tuple(
        FifoStream(n, 0x50000008 + 4 * n, 0x50000004, 1 << n, words(*range(n, n + 514)))
        for n in range(2)
    ),
)

VARIANTS: dict[str, tuple[Program, dict[str, Any]]] = {
    "plain": (program(), {}),
    "softmax, timer, boost, trim": (
        program(softmax_shift=4),
        {"softmax": True, "timer": 0, "boost": (2, 5), "clock_trim": (1, 2, 3)},
    ),
    "energy, verified": (
        program(init=ALL_STEPS),
        {"energy": True, "verify_writes": True, "verify_kernels": True, "zero_sram": True},
    ),
    "forever": (program(), {"forever": True, "no_wfi": True, "stop_start": True, "kat": False}),
    "old loader": (program(), {"old_kernel_loader": True, "verify_kernels": True}),
    "plain kernels": (PLAIN, {"verify_kernels": True}),
    "pattern": (with_pattern(program()), {"kat": False, "fixed_input": True}),
    "no buffer": (program(), {"result_buffer": False}),
    "old loader, plain kernels": (PLAIN, {"old_kernel_loader": True, "verify_kernels": True}),
    "single file": (program(), {"api_filename": "none", "sample_output_filename": "none"}),
    "bytes and words": (
        program(unload=(PLANAR, WIDE)),
        {"softmax": True, "unroll_8bit": 2, "unroll_wide": 2},
    ),
    "bytes": (
        program(unload=(BYTES,), output_width=8, output_count=30),
        {"softmax": True, "debugwait": 0},
    ),
    "transposed": (
        program(unload=(planar(((2, 3), (0,)), 36), WIDE, planar(((1,),), 7))),
        {"mlator": True, "unroll_mlator": 2},
    ),
    "FIFO": (FIFO, {"one_shot": True}),
    "FIFOs, few words": (with_pattern(FIFOS), {"kat": False, "fixed_input": True}),
    "MAX78002": (
        program(chip=MAX78002, power=Power(1, 10, "IPLL", 4, 1, 50.0), kernels=()),
        {"energy": True, "unload": False},
    ),
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_braces_are_indented_and_empty_lines_single(variant: str) -> None:
    made, changes = VARIANTS[variant]
    for name, text in emit(made, **changes).items():
        if not name.endswith(".c") or name == "softmax.c":
            continue
        assert "\n\n\n" not in text and "{\n\n" not in text, name
        depth = 0
        for line in text.split("/*")[0].splitlines():
            if line.strip().startswith("}"):
                depth -= 1
                assert len(line) - len(line.lstrip()) == 4 * depth, f"{name}: {line}"
            depth += line.rstrip().endswith("{")


@pytest.mark.parametrize("variant", VARIANTS)
def test_compiles_without_warnings(variant: str, tmp_path: Path) -> None:
    made, changes = VARIANTS[variant]
    folder = store(emit(made, **changes), tmp_path / "net")
    sources = [str(file) for file in sorted(folder.glob("*.c"))]
    command = [
        *compiler(CORTEX_M4),
        *STRICT,
        "-Werror",
        "-I",
        str(folder),
        "-I",
        str(SDK / "include"),
        "-c",
        *sources,
    ]
    result = subprocess.run(
        [word for word in command if word != "-w"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize(
    "variant",
    [
        "plain", "old loader", "plain kernels", "old loader, plain kernels", "FIFO", "pattern",
        "FIFOs, few words",
    ],
)  # fmt: skip
def test_loader_writes_the_words_of_the_program(variant: str, tmp_path: Path) -> None:
    made, changes = VARIANTS[variant]
    record = run_loader(store(emit(made, **changes), tmp_path / "net"), "MAX78000")
    wanted = {k: (w.words, w.control, w.pushes) for k, w in phase_words(made).items()}
    assert compare(record.effect(), wanted, record.addresses) == []


@pytest.mark.parametrize(
    ("variant", "array", "offset"),
    [("plain", "kernels", 8), ("old loader", "kernels_1", 0)],
)
def test_weights_are_verified_and_damage_is_found(
    variant: str, array: str, offset: int, tmp_path: Path
) -> None:
    made, changes = VARIANTS[variant]
    changes = {**changes, "verify_kernels": True}
    record = run_loader(store(emit(made, **changes), tmp_path / "net"), "MAX78000")
    assert record.core.call("cnn_verify_weights") == 1
    address = record.core.image.symbols[array] + offset
    (first,) = record.core.read_memory(address, 1)
    record.core.write_memory(address, bytes([first ^ 1]))
    assert record.core.call("cnn_verify_weights") == 0


def test_every_word_of_a_plain_kernel_is_verified(tmp_path: Path) -> None:
    made, changes = VARIANTS["plain kernels"]
    record = run_loader(store(emit(made, **changes), tmp_path / "net"), "MAX78000")
    block = made.kernels[0]
    for index, word in enumerate(block.words.tolist()):
        assert record.core.call("cnn_verify_weights") == 1
        record.bus.write(block.address + 4 * index, 4, word ^ 1)
        assert record.core.call("cnn_verify_weights") == 0
        record.bus.write(block.address + 4 * index, 4, word)


def machine(folder: Path) -> tuple[Core, Bus]:
    bus = Bus(program().chip)
    return Core(compile_project(folder), bus), bus


def test_output_of_both_widths_is_delivered(tmp_path: Path) -> None:
    made, changes = VARIANTS["bytes and words"]
    core, bus = machine(store(emit(made, **changes), tmp_path / "net"))
    rng = np.random.default_rng(1)
    for address in [*range(DATA, DATA + 64, 4), *range(DATA + 0x8000, DATA + 0x8040, 4)]:
        bus.words[address] = int(rng.integers(2**32))
    core.write_memory(BUFFER, b"\xa5" * 64)
    assert core.call("cnn_unload", BUFFER) == 1
    result = core.read_memory(BUFFER, 64)

    def byte(address: int) -> int:
        return bus.words[address & ~3] >> 8 * (address & 3) & 0xFF

    planes = [(0, 1), (0, 3), (0x8000, 0), (0x8000, 1), (0x8000, 2), (0x8000, 3)]
    wanted = [byte(DATA + base + 8 * pixel + lane) for base, lane in planes for pixel in range(5)]
    assert list(result[:30]) == wanted
    assert result[30:32] == b"\xa5\xa5", "padding is left alone"
    wide = [bus.words[DATA + base + 4 * i] for base, n in ((0, 4), (0x8000, 2)) for i in range(n)]
    assert np.frombuffer(result[32:56], "<u4").tolist() == wide
    assert result[56:] == b"\xa5" * 8, "nothing is written behind the result"


def test_known_answer_passes_and_fails(tmp_path: Path) -> None:
    core, bus = machine(store(emit(), tmp_path / "net"))
    expected = program().expected
    bus.words.update(zip(expected.addresses.tolist(), expected.values.tolist(), strict=True))
    assert core.call("check_output") == 1
    bus.words[int(expected.addresses[4])] ^= 1
    assert core.call("check_output") == 0


def test_copies_are_words_even_when_optimized(tmp_path: Path) -> None:
    core, bus = machine(store(emit(), tmp_path / "net"))
    core.write_memory(BUFFER, bytes(range(16)))
    bus.log.clear()
    core.call("memcpy32", DATA, BUFFER, 4)
    core.call("memcpy32", DATA, BUFFER, -1)
    assert [(size, address) for size, address, _ in bus.log] == [
        (4, DATA + 4 * i) for i in range(4)
    ]
