"""Programs without accelerator on every core: output, verdict, counts, water marks, refusals."""

from __future__ import annotations

from pathlib import Path

import pytest

from ai8xtools.commands.emulate.arguments import parse
from ai8xtools.commands.emulate.emulate import emulate
from ai8xtools.emulator import EmulatorError
from ai8xtools.emulator.cpu.architecture import ARCHITECTURES, Architecture
from ai8xtools.emulator.cpu.instructions import Kind, instructions
from ai8xtools.emulator.plain import compile_plain, run_plain
from ai8xtools.reading.progress import Progress
from tests.cores import DIFFERENT

NETWORK = """
#include <stdint.h>
#include <stdio.h>
#include <string.h>
static int8_t cnn_arena[1000];
static volatile int sink, seven = 7;
__attribute__((noinline)) static int touch(int depth, volatile uint8_t *above)
{
    volatile uint8_t room[40]; /* which the next one is told of, so that no loop takes its place */
    room[depth] = (uint8_t)depth;
    *above = 0;
    return (depth ? touch(depth - 1, room + 39) : 0) + room[depth];
}
__attribute__((noinline)) int cnn_run(void)
{
    uint8_t top;
    memset(cnn_arena, 1, 500);
    return touch(19, &top) * seven / 10;
}
int main(void)
{
    sink = 3 * seven;
    int result = cnn_run();
    printf("%d|%5d|%-4u|%08x|%s|%c|%%\\n", -12, result, 7u, 0xbeefu, "text", 'x');
    puts(result == 133 ? "*** PASS ***" : "!!! FAIL !!!");
    return result != 133;
}
"""


def project(folder: Path, text: str = NETWORK) -> Path:
    (folder / "main.c").write_text(text)
    (folder / "cnn.h").write_text("#define CNN_MACS 1000u\n")
    return folder


@pytest.mark.parametrize("core", [*map(ARCHITECTURES.get, DIFFERENT)], ids=DIFFERENT)
def test_program_prints_passes_and_is_measured(core: Architecture, tmp_path: Path) -> None:
    program = compile_plain(project(tmp_path), core)
    run = run_plain(program, count=True)
    assert run.text == "-12|  133|7   |0000beef|text|x|%\n*** PASS ***\n"
    assert run.passed and run.status == 0
    assert (run.arena_bytes, run.arena_used) == (1000, 500)
    assert 20 * 40 < run.stack_bytes < 4000
    assert program.macs == 1000
    assert run.functions is not None and "touch" in run.functions
    assert "main" not in run.functions and "printf" not in run.functions
    assert 20 * 4 < run.functions["touch"].instructions < 20 * 30
    assert run.functions["touch"].cycles > run.functions["touch"].instructions
    assert run.code_bytes < run.flash_bytes


def test_counting_changes_nothing_and_is_exact(tmp_path: Path) -> None:
    """Five instructions and one that returns, by hand."""
    body = '"movs r0, #3\\n1: subs r0, #1\\nbne 1b\\nbx lr"'
    text = (
        f"__attribute__((naked)) int cnn_run(void) {{ __asm__ volatile({body}); }}"
        "int main(void) { return cnn_run(); }"
    )
    program = compile_plain(project(tmp_path, text), ARCHITECTURES["cortex-m4"], "-O0")
    run = run_plain(program, count=True)
    assert run.functions is not None
    assert run.functions["cnn_run"].instructions == 1 + 3 * 2 + 1
    assert run.functions["cnn_run"].cycles == 1 + 3 * (1 + 3) + 3
    assert run.status == 0 and run.passed is None


@pytest.mark.parametrize(("printed", "shown"), [("", True), ("line\\n", True), ("line", False)])
def test_a_long_program_tells_how_long_it_may_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, printed: str, shown: bool
) -> None:
    """Unless it has printed a part of a line, which would be hidden."""
    text = (
        f'#include <stdio.h>\nint main(void) {{ printf("{printed}%c", 10 * {int(shown)}); '
        "for (volatile int forever = 1; forever;) {} }"
    )
    seconds: list[float] = []
    monkeypatch.setattr(Progress, "reach", lambda _, done: seconds.append(done))
    program = compile_plain(project(tmp_path, text), ARCHITECTURES["cortex-m4"])
    with pytest.raises(EmulatorError, match="within 0.2 s"):
        run_plain(program, time_limit=0.2)
    assert (max(seconds, default=0) > 0.1) == shown


REFUSED = {
    "cortex-m0plus: division": ("cortex-m0plus", ".inst.w 0xfb91f0f2"),
    "cortex-m0plus: Thumb-2": ("cortex-m0plus", ".inst.w 0xf44f7080"),
    "cortex-m3: smlad": ("cortex-m3", ".inst.w 0xfb210002"),
    "cortex-m3: sxtb16": ("cortex-m3", ".inst.w 0xfa2ff080"),
    "rv32ec: multiplication": ("rv32ec", ".word 0x02b50533"),
    "rv32ec: x16": ("rv32ec", ".word 0x00180813"),
    "rv32emc: division": ("rv32emc", ".word 0x02b54533"),
}


@pytest.mark.parametrize(("name", "code"), REFUSED.values(), ids=REFUSED)
def test_instruction_that_a_core_does_not_have_is_refused(
    name: str, code: str, tmp_path: Path
) -> None:
    text = (
        f'__attribute__((noinline)) void lacking(void) {{ __asm__ volatile("{code}"); }}'
        "int main(void) { lacking(); return 0; }"
    )
    program = compile_plain(project(tmp_path, text), ARCHITECTURES[name], "-O1")
    with pytest.raises(EmulatorError, match=r"\(\) makes the .*which it does not have") as caught:
        run_plain(program)
    assert caught.value.code == "E827"


def test_instructions_are_decoded_as_their_manuals_say() -> None:
    thumb = ARCHITECTURES["cortex-m4"].family
    code = bytes.fromhex(
        "0068 0160 0fb4 0fbd 48d0 fee7 4843 90e80f00 d0e90001 50f8041b 90fbf1f0 21fb0200 00f000f8"
    )
    found = [(i.size, i.kind, i.transfers) for i in instructions(code, thumb)]
    assert found == [
        (2, Kind.LOAD, 0),
        (2, Kind.STORE, 0),
        (2, Kind.MULTIPLE, 4),
        (2, Kind.MULTIPLE, 5),
        (2, Kind.BRANCH, 0),
        (2, Kind.JUMP, 0),
        (2, Kind.MULTIPLY, 0),
        (4, Kind.MULTIPLE, 4),
        (4, Kind.MULTIPLE, 2),
        (4, Kind.LOAD, 0),
        (4, Kind.DIVIDE, 0),
        (4, Kind.MULTIPLY, 0),
        (4, Kind.JUMP, 0),
    ]
    riscv = ARCHITECTURES["rv32imc"].family
    code = bytes.fromhex("0545 0841 23a0b500 3305b502 3345b502 63 00b500 8280".replace(" ", ""))
    kinds = [i.kind for i in instructions(code, riscv)]
    assert kinds == [
        *(Kind.PLAIN, Kind.LOAD, Kind.STORE, Kind.MULTIPLY, Kind.DIVIDE, Kind.BRANCH, Kind.JUMP),
    ]


def test_command_reports_and_judges(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(project(tmp_path))
    assert emulate(parse([folder, "--core", "rv32imc", "--count"])) == 0
    printed = capsys.readouterr().out
    assert "Core: RISC-V" in printed and "Arena: 500 of 1000 bytes written" in printed
    assert "cycles (estimate)" in printed and "Per multiply-accumulate (1000): " in printed
    assert printed.endswith("\nPASS\n")


@pytest.mark.parametrize(("runs", "status"), [(True, 0), (False, 1)])
def test_a_program_that_compares_nothing_is_done_if_its_network_ran(
    runs: bool, status: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main = f'int main(void) {{ sink = {"cnn_run()" if runs else "7"}; puts("class 7"); return 0; }}'
    text = NETWORK[: NETWORK.index("int main(")] + main
    assert emulate(parse([str(project(tmp_path, text)), "--core", "cortex-m4"])) == status
    verdict = capsys.readouterr().out.splitlines()[-1]
    assert verdict.startswith("DONE (the program compares nothing" if runs else "NOT PASSED")


def test_core_comes_from_the_plan_and_failure_has_status_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project(tmp_path, NETWORK.replace("133", "134"))
    (tmp_path / "plan.json").write_text('{"core": "cortex-m3"}')
    assert emulate(parse([str(tmp_path)])) == 1
    printed = capsys.readouterr().out
    assert "Core: Cortex-M3" in printed and printed.endswith("\nFAIL\n")


@pytest.mark.parametrize(
    "words",
    [
        ["--device", "MAX78000", "--core", "cortex-m4"],
        ["--cycles", "--core", "cortex-m4"],
        ["--accelerator-only"],
        ["--input", "x.npy"],
        ["--gdb", "0"],
        ["--shorten-loops"],
        ["--explain"],
        ["--decompile", "new"],
    ],
    ids=lambda words: words[0],
)
def test_options_of_the_accelerator_are_refused(words: list[str], tmp_path: Path) -> None:
    (project(tmp_path) / "plan.json").write_text('{"core": "cortex-m3"}')
    with pytest.raises(EmulatorError, match="programs with the accelerator") as caught:
        emulate(parse([str(tmp_path), *words]))
    assert (caught.value.code, caught.value.place) == ("E805", f"option {words[0]}")


@pytest.mark.parametrize("words", [["--count"], ["--optimization", "3"]])
def test_options_without_accelerator_are_refused(words: list[str], tmp_path: Path) -> None:
    with pytest.raises(EmulatorError, match="programs without the accelerator") as caught:
        emulate(parse([str(project(tmp_path)), *words]))
    assert caught.value.code == "E805"


@pytest.mark.parametrize("words", [[], ["--prove"], ["--explain"]])
def test_core_that_is_not_emulated_is_named(words: list[str], tmp_path: Path) -> None:
    (project(tmp_path) / "plan.json").write_text('{"core": "xtensa-lx7"}')
    with pytest.raises(EmulatorError, match="xtensa-lx7, is not emulated") as caught:
        emulate(parse([str(tmp_path), *words]))
    assert caught.value.code == "E805"


def test_option_of_a_missing_project_is_not_the_mistake(tmp_path: Path) -> None:
    with pytest.raises(EmulatorError, match="no such folder"):
        emulate(parse([str(tmp_path / "missing"), "--count"]))
    with pytest.raises(EmulatorError, match="no such folder"):
        emulate(parse([str(tmp_path / "missing"), "--core", "cortex-m4"]))


def test_only_programs_that_can_run_elsewhere_are_told_of_cores(tmp_path: Path) -> None:
    for text in (None, '#include "mxc.h"\n'):
        folder = project(tmp_path)
        if text is not None:
            (folder / "main.c").write_text(text)
        with pytest.raises(EmulatorError) as caught:
            emulate(parse([str(folder), "--count"]))
        assert caught.value.remedy is not None
        assert ("name a core" in caught.value.remedy) == (text is None)


def test_project_of_the_accelerator_has_no_other_core(tmp_path: Path) -> None:
    project(tmp_path, '#include "mxc.h"\n' + NETWORK)
    with pytest.raises(
        EmulatorError, match=r"mxc.h: this project is for the accelerator"
    ) as caught:
        emulate(parse([str(tmp_path), "--core", "cortex-m4"]))
    assert caught.value.code == "E806"
