"""Two options: what is impossible is said before one of them asks for a further option."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable

import pytest

from ai8xtools.commands.loader.arguments import values
from ai8xtools.commands.loader.create import complaints_of_options
from ai8xtools.commands.software import arguments
from ai8xtools.diagnostics import DiagnosticError

NAMES = ["--config-file", "a.yaml", "--prefix", "p", "--test-dir", "t", "--checkpoint-file", "c"]
OPTIONS = [
    "--application camera", "--application minimal", "--application bench", "--head top-k",
    "--build zephyr", "--board-name zephyr", "--symbol-prefix net",
]  # fmt: skip
CHIP = [
    "--no-unload", "--energy", "--one-shot", "--riscv", "--snoop-loop", "--verify",
    "--c-filename m", "--build cmake", "--rtl", "--forever",
]  # fmt: skip
CORE = [
    "--stream 4", "--stateful", "--container n.nnb", "--encrypt k", "--slot 64K", "--report",
    "--plan-report", "--dma", "--l2 64K", "--l3 64K", "--scheme rows",
]  # fmt: skip
ASKED = re.compile(r"[Aa]dd (--[\w-]+)|(--[\w-]+): is required")
VALUES = {"--application": "minimal", "--symbol-prefix": "net", "--stream": "4",
          "--container": "n.nnb", "--mcu": "cortex-m4", "--config-file": "b"}  # fmt: skip


def chip(words: list[str]) -> list[str]:
    options = values.parse(["--device", "MAX78000", *NAMES, *words])
    return [str(one) for one in complaints_of_options(options) if one.severity.is_error]


def core(words: list[str]) -> list[str]:
    arguments.parse(["--device", "MCU", *NAMES, *words])
    return []


@pytest.mark.parametrize(("ask", "options"), [(chip, OPTIONS + CHIP), (core, OPTIONS + CORE)])
def test_no_option_is_asked_for_in_vain(
    ask: Callable[[list[str]], list[str]], options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    def said(words: list[str]) -> list[str]:
        try:
            return ask(words)
        except DiagnosticError as refusal:
            return [str(refusal)]
        except SystemExit:
            return [capsys.readouterr().err]

    asked = impossible = 0
    for pair in itertools.combinations(options, 2):
        words = " ".join(pair).split()
        for step in range(4):
            messages = said(words)
            wanted = [ASKED.search(message) for message in messages]
            refused = [one for one, match in zip(messages, wanted, strict=True) if match is None]
            names = [match[1] or match[2] for match in wanted if match]
            new = [name for name in names if name not in words]
            assert not (step and refused), (pair, words, refused)
            impossible += bool(refused)
            if refused or not new:
                break
            asked += 1
            words += [new[0], *[VALUES[new[0]]][: new[0] in VALUES]]
    assert asked and impossible
