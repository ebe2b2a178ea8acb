"""The command line: what implies what, and which options are refused by name."""

from __future__ import annotations

import argparse

import pytest

from scripts.loader_options import arguments
from scripts.loader_values import project_options, resolve_options
from synthesis.network import InputPort

REQUIRED = ["--device", "MAX78000", "--config-file", "a", "--prefix", "b", "--test-dir", "c"]


def parse(*options: str) -> argparse.Namespace:
    return arguments().parse_args([*REQUIRED, *options])


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
    made = project_options(parse(*options))
    assert made.riscv and made.riscv_cache


def test_riscv_core_without_its_cache_is_noted() -> None:
    made = project_options(parse("--riscv", "--no-riscv-cache"))
    assert made.riscv and not made.riscv_cache
    assert not project_options(parse("--no-riscv-cache")).riscv


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
    args = parse(*options)
    assert resolve_options(args).input_port is port
    assert project_options(args).fast_fifo is port.is_fast


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--rtl"], "--rtl/--rtl-sim: RTL simulation tests are not supported yet"),
        (["--rtl-sim"], "--rtl/--rtl-sim: RTL simulation tests are not supported yet"),
        (["--timeout", "5"], "--timeout: RTL simulation tests are not supported yet"),
        (["--legacy-test"], "--legacy-test: it rearranges data of the vendor's internal test"),
    ],
)
def test_options_are_refused_by_name(
    options: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        parse(*options)
    assert end.value.code == 2
    assert f"error: {reason}" in capsys.readouterr().err
