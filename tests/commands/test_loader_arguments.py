"""The command line: what implies what, and which options are refused by name."""

from __future__ import annotations

import json
import sys

import pytest

from ai8xtools.commands.loader.arguments import arguments
from ai8xtools.commands.loader.arguments import parse as parse_words
from ai8xtools.commands.loader.options import LoaderOptions
from ai8xtools.diagnostics import run
from ai8xtools.synthesis.layout import InputPort

REQUIRED = ["--device", "MAX78000", "--config-file", "a", "--prefix", "b", "--test-dir", "c"]


def parse(*options: str) -> LoaderOptions:
    return parse_words([*REQUIRED, *options])


@pytest.mark.parametrize(
    "options",
    [
        ["--riscv"],
        ["--riscv-flash"],
        ["--riscv-cache"],
        ["--riscv-debug"],
        ["--riscv-exclusive"],
        ["--riscv", "--no-riscv-flash"],
    ],
)
def test_options_of_the_riscv_core_imply_it_and_its_cache(options: list[str]) -> None:
    made = parse(*options).project
    assert made.riscv and made.riscv_cache


def test_riscv_core_without_its_cache_is_noted() -> None:
    made = parse("--riscv", "--no-riscv-cache").project
    assert made.riscv and not made.riscv_cache
    assert not parse("--no-riscv-cache").project.riscv


@pytest.mark.parametrize(
    ("options", "port"),
    [
        ([], InputPort.MEMORY),
        (["--fifo"], InputPort.FIFO),
        (["--fast-fifo"], InputPort.FAST_FIFO),
        (["--fast-fifo", "--fast-fifo-quad"], InputPort.FAST_FIFO_QUAD),
    ],
)
def test_ports_imply_each_other(options: list[str], port: InputPort) -> None:
    made = parse(*options)
    assert made.resolve.input_port is port
    assert made.project.fast_fifo is port.is_fast


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--test-bist"], "--test-bist: it damages every seventh kernel"),
        (["--legacy-kernels"], "--legacy-kernels: it stores kernels that nothing reads"),
        (["--legacy-test"], "--legacy-test: it rearranges data of the vendor's internal test"),
    ],
)
def test_options_are_refused_by_name(
    options: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        parse(*options)
    assert end.value.code == 2
    assert f"error: argument {reason}" in capsys.readouterr().err


def refused(options: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    """Return standard output and error of a command line that is refused with status 2."""
    with pytest.raises(SystemExit) as end:
        run(lambda: arguments().parse_args(options) and None)
    assert end.value.code == 2
    output = capsys.readouterr()
    return output.out, output.err


def test_wrong_usage_is_told_in_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    _, said = refused([*REQUIRED, "--timer", "x"], capsys)
    first, second = said.splitlines()
    assert first.endswith(": error: argument --timer: 'x' is not a whole number")
    assert second.endswith("--help.")


def test_all_refused_options_are_named_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    _, said = refused([*REQUIRED, "--test-bist", "--legacy-test", "--nope"], capsys)
    lines = said.splitlines()
    assert len(lines) == 4
    assert "--test-bist: " in lines[0]
    assert "--legacy-test: " in lines[1] and "unrecognized arguments: --nope" in lines[2]


def test_editors_get_wrong_usage_as_json(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["--ai85", "--test-bist", "--prefix", "a", "--diagnostics", "json"]
    monkeypatch.setattr(sys, "argv", ["ai8xize.py", *words])
    output, said = refused(words, capsys)
    found = json.loads(output)
    assert said == ""
    assert [d["option"] for d in found] == ["--test-bist", "--config-file", "--test-dir"]
    assert {d["code"] for d in found} == {"E070"} and found[0]["severity"] == "error"


def test_a_sign_apart_from_its_option_is_named_and_has_no_edit(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = [*REQUIRED, "--sample-input", "=", "x.npy", "--diagnostics", "json"]
    monkeypatch.setattr(sys, "argv", ["ai8xize.py", *words])
    [found] = json.loads(refused(words, capsys)[0])
    assert "write OPTION VALUE or OPTION=VALUE" in found["message"] and found["edit"] is None


def test_description_or_model_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse_words(["--device", "MAX78000", "--prefix", "b", "--test-dir", "c"])
    said = capsys.readouterr().err
    assert "argument --config-file: missing, as is --model, which takes its place" in said


@pytest.mark.parametrize(
    "option", [["--check-only"], ["--verify-project", "d"], ["--compare-project", "d"]]
)
def test_what_writes_nothing_needs_no_place(
    option: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    words = REQUIRED[: REQUIRED.index("--prefix")]
    assert parse_words([*words, *option]).project.name == "network"
    with pytest.raises(SystemExit):
        parse_words(words)
    assert "arguments --prefix, --test-dir: missing" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("word", "said"), [("Q15", "it is a format of quantize.py"), ("FIXED", "writes containers")]
)
def test_words_for_other_tools_are_explained(
    word: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parse_words([*REQUIRED, "--device", word])
    assert said in capsys.readouterr().err


def test_zephyr_is_no_board_of_the_vendors_sdk() -> None:
    words = ("--symbol-prefix", "net", "--board-name", "zephyr")
    assert [one.code for one in parse(*words).usage] == ["E095"]
    assert parse(*words, "--application", "minimal").usage == ()
