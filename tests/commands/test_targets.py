"""Targets: what --device names leads to a command line, and a new target is a folder and a line."""

from __future__ import annotations

import re
import shutil
import subprocess
from importlib import import_module
from pathlib import Path

import pytest

from ai8xtools import commands
from ai8xtools.commands import targets
from ai8xtools.commands.targets import registry
from ai8xtools.commands.targets.arguments import last_device, select
from tests.conftest import ROOT
from tools.manual.completion import options_of
from tools.manual.options import options_page

TOY = {
    "__init__": """
from ai8xtools.commands.targets import Target

TARGET = Target(
    names=("TOY",),
    what="a toy",
    tools={"ai8xize.py": ("toy.arguments", "toy.create.create")},
    elsewhere="toys are made by ai8xize.py",
)
""",
    "arguments": """
from ai8xtools.commands.arguments import Parser


def arguments():
    parser = Parser(prog="ai8xize.py", description="Make a toy.")
    parser.add_argument("--device", metavar="NAME", help="TOY")
    parser.add_argument("--sound", metavar="TEXT", help="what it says")
    return parser


def parse(words):
    return arguments().parse_args(words).sound
""",
    "create": """
def create(sound):
    print(f"The toy says {sound}")
    return 3
""",
}


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Add a target: a folder beside those of `commands`, and its name in the registry."""
    (tmp_path / "toy").mkdir()
    for name, text in TOY.items():
        (tmp_path / "toy" / f"{name}.py").write_text(text)
    monkeypatch.setattr(commands, "__path__", [*commands.__path__, str(tmp_path)])
    monkeypatch.setattr(registry, "FOLDERS", [*registry.FOLDERS, "toy"])


def refusal(capsys: pytest.CaptureFixture[str], tool: str, *words: str) -> str:
    with pytest.raises(SystemExit) as ended:
        targets.main(tool, words)
    assert ended.value.code == 2
    return " ".join(capsys.readouterr().err.split())


@pytest.mark.usefixtures("toy")
def test_a_new_target_is_a_folder_and_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert targets.main("ai8xize.py", ["--dev=toy", "--sou", "moo"]) == 3
    assert capsys.readouterr().out == "The toy says moo\n"
    assert "is for --device TOY" in refusal(capsys, "ai8xize.py", "--device", "MCU", "--sound", "x")
    assert "is for --device MAX78000" in refusal(capsys, "ai8xize.py", "--device", "TOY", "--pll")
    assert "toys are made by" in refusal(capsys, "quantize.py", "a", "b", "--device", "TOY")
    with pytest.raises(SystemExit):
        targets.main("ai8xize.py", ["--help"])
    assert "TOY: a toy" in capsys.readouterr().out
    page = options_page()
    assert "## ai8xize.py --device TOY\n\nMake a toy." in page and "| `--sound TEXT` |" in page


@pytest.mark.parametrize("tool", ["train.py", "quantize.py", "ai8xize.py"])
def test_every_target_is_reached_by_its_names(
    tool: str, capsys: pytest.CaptureFixture[str]
) -> None:
    known = targets.targets(tool)
    assert known[0].names[0] == "MAX78000"
    with pytest.raises(SystemExit):
        known[0].parser(tool).parse_args(["--device", "STM32L4"])
    refusal = capsys.readouterr().err
    assert tool == "train.py" or all(name in refusal for one in known for name in one.names)
    for target in known:
        for name in target.names:
            for words in (["--device", name], [f"--device={name.lower()}"]):
                assert select(tool, words) == target
        parser = target.parser(tool)
        module, _, function = target.tools[tool][1].rpartition(".")
        assert callable(getattr(import_module(f"{commands.__name__}.{module}"), function))
        assert parser.prog == tool
        assert parser.knows("--device") and not parser.knows("--nonsense")


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("--dev mcu", "MCU"),
        ("--prefix --device=MCU --device BITNET", "BITNET"),
        ("--device MCU --cmsis-software-nn", "CMSIS-NN"),
        ("--fits", "MAX78000"),
        ("--device nonsense", "MAX78000"),
        ("--d MCU --device BITNET", "BITNET"),
        ("--device", "MAX78000"),
        ("-- --device MCU", "MAX78000"),
    ],
)
def test_argparse_decides_which_target_is_meant(words: str, name: str) -> None:
    assert select("ai8xize.py", words.split()).names[0] == name


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        ("x y", "x y"),
        ("--device", "--device"),
        ("x --device MCU", "x --device MCU"),
        ("--device MCU x --device=Q7 --device MAX78000 y", "x --device MAX78000 y"),
        ("--device --device MCU", "--device MCU"),
        ("--devices 3 --device MCU", "--devices 3 --device MCU"),
    ],
)
def test_the_last_device_counts(words: str, kept: str) -> None:
    assert last_device(words.split()) == kept.split()


def test_an_earlier_device_of_another_target_does_not_matter(
    capsys: pytest.CaptureFixture[str],
) -> None:
    earlier = ("--device", "MCU", "--device", "MAX78000")
    assert refusal(capsys, "quantize.py", *earlier) == refusal(capsys, "quantize.py", *earlier[2:])


def test_an_option_of_another_target_is_refused_with_those_that_have_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    chips = ("--device", "MAX78000", "--config-file", "a", "--prefix", "b", "--test-dir", "c")
    told = refusal(capsys, "ai8xize.py", *chips, "--dma", "--mcu", "x", "--absent")
    assert "argument --dma: is for --device MCU " in told
    assert "argument --mcu: is for --device MCU, CMSIS-NN or BITNET " in told
    assert "unrecognized arguments: --absent" in told and " x" not in told
    told = refusal(capsys, "quantize.py", "a", "b", "--device", "MAX78000", "--acc-guard", "worst")
    assert "argument --acc-guard: is for --device Q15 or Q7 " in told


def completed(*words: str) -> set[str]:
    """Return what bash offers for the last word."""
    quoted = " ".join(f"'{word}'" for word in words)
    script = (
        f"source {ROOT}/scripts/completion.bash; COMP_WORDS=({quoted}); "
        f'COMP_CWORD={len(words) - 1}; _ai8x "$1"; echo "${{COMPREPLY[@]}}"'
    )
    done = subprocess.run(
        ["bash", "-c", script, "bash", words[0]], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return set(done.stdout.split())


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
@pytest.mark.parametrize("tool", ["train.py", "quantize.py", "ai8xize.py"])
def test_bash_completes_the_options_of_each_target(tool: str) -> None:
    known = targets.targets(tool)
    names = {name for target in known for name in target.names}
    assert completed(tool, "--device", "") == completed(tool, "--device", "=", "") == names
    assert completed(tool, "--pre") == completed(tool, "--device", "MAX78000", "--pre")
    for target in known:
        wanted = set(options_of(target.parser(tool)))
        for name in target.names:
            assert completed(tool, "--device", name, "--") == wanted
            assert completed(f"./{tool}", "--device", "=", name.lower(), "--") == wanted


@pytest.mark.parametrize("tool", ["train.py", "quantize.py", "ai8xize.py"])
def test_the_manual_names_all_options_of_all_targets(tool: str) -> None:
    page = (ROOT / "docs" / "options.md").read_text()
    sections = dict(re.findall(r"^## (.+)\n([^\0]*?)(?=^## |\Z)", page, re.MULTILINE))
    for number, target in enumerate(targets.targets(tool)):
        section = sections[f"{tool} --device {' or '.join(target.names)}" if number else tool]
        named = set(re.findall(r"`(--[\w-]+)", section))
        assert set(options_of(target.parser(tool))) - {"--help"} <= named
