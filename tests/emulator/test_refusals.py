"""Projects, memories and arguments that the emulator cannot take are refused by their codes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from ai8xtools.commands.emulate.arguments import parse
from ai8xtools.commands.emulate.emulate import emulate
from ai8xtools.commands.emulate.trained_on import trained_on
from ai8xtools.commands.loader import verify as verifying
from ai8xtools.commands.loader.verify import verify
from ai8xtools.diagnostics import DiagnosticError
from ai8xtools.emulator import Board, EmulatorError
from ai8xtools.emulator.cpu.architecture import CORTEX_M4, RISCV
from ai8xtools.emulator.cpu.core import Core
from ai8xtools.emulator.cpu.elf import Image
from ai8xtools.emulator.cpu.io import IoArea
from ai8xtools.emulator.cpu.memory_map import FLASH_BASE, SRAM_BASE, CoreMemory
from ai8xtools.emulator.plain.compiling import PlainProgram
from ai8xtools.emulator.plain.running import run_plain


def codes(what: Callable[[], object]) -> list[str]:
    """Return the codes of what is refused; none if nothing is."""
    try:
        what()
    except DiagnosticError as refusal:
        return [one.code for one in refusal.diagnostics]
    except EmulatorError as refusal:
        return [refusal.code]
    return []


def image(code: int = 64, variables: int = 32, **changes: object) -> Image:
    """A program of so many bytes."""
    areas = ((FLASH_BASE, code), (SRAM_BASE, variables))
    segments = ((FLASH_BASE, bytes(code)),)
    return replace(Image(segments, areas, {}, (), CORTEX_M4), **changes)  # type: ignore[arg-type]


def test_recorded_words_need_a_device() -> None:
    assert codes(lambda: emulate(parse(["--words", "words.npz"]))) == ["E802"]


@pytest.mark.parametrize("over", [0, 1])
def test_a_program_may_fill_its_memories_and_no_more(over: int) -> None:
    for memory in (CoreMemory(64 - over, 1 << 12), CoreMemory(1 << 12, 32 - over)):
        assert codes(lambda m=memory: m.check(image())) == (["E813"] if over else [])


def test_peripherals_do_not_overlap() -> None:
    def area(base: int) -> IoArea:
        return IoArea("a device", base, 0x1000, lambda *_: 0, lambda *_: None)

    class Devices:
        def __init__(self, *bases: int) -> None:
            self.areas = [area(base) for base in bases]

    assert codes(lambda: Core(image(), Devices(0x50000000, 0x50001000))) == []  # type: ignore[arg-type]
    for second in (0x50000000, 0x50000800):
        assert codes(lambda b=second: Core(image(), Devices(0x50000000, b))) == ["E826"]  # type: ignore[arg-type]


def test_a_container_takes_the_place_of_one(tmp_path: Path) -> None:
    program = PlainProgram(image(), None, frozenset())
    assert codes(lambda: run_plain(program, contents={"container": b"x"})) == ["E828"]
    small = PlainProgram(image(objects=((SRAM_BASE, 4, "container"),)), None, frozenset())
    assert codes(lambda: run_plain(small, contents={"container": bytes(5)})) == ["E828"]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"classes": 3}', "{" * 100_000])
def test_a_description_of_the_data_is_one_of_ours(text: str, tmp_path: Path) -> None:
    assert trained_on(tmp_path) is None
    (tmp_path / "dataset.json").write_text(text)
    assert codes(lambda: trained_on(tmp_path)) == ["E865"]


def test_a_debugger_serves_the_arm_core() -> None:
    debugger = SimpleNamespace()
    board = SimpleNamespace(wrapper=None, core=SimpleNamespace(architecture=RISCV))
    assert codes(lambda: Board.attach(board, debugger)) == ["E871"]  # type: ignore[arg-type]


def test_a_register_that_is_wrong_fails_although_the_output_is_right(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    record = SimpleNamespace(
        effect=dict, addresses=None, execute=lambda: SimpleNamespace(errors=["of layer 0"]),
        check_output=lambda: True, check_is_alive=lambda: True,
    )  # fmt: skip
    monkeypatch.setattr(verifying, "run_loader", lambda *_args, **_options: record)
    monkeypatch.setattr(verifying, "phase_words", lambda _program: {})
    result = SimpleNamespace(program=None, chip=SimpleNamespace(name="x"))
    lines = verify(result, Path(), apb_base=0, check_output=True, cycles=False)  # type: ignore[arg-type]
    assert codes(lambda: [*lines]) == ["E842"]
