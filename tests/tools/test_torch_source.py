"""Which PyTorch `make setup` takes: without CUDA where that is offered."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from pip._vendor.packaging.requirements import Requirement
from pip._vendor.packaging.version import Version

from tests.conftest import ROOT
from tools import torch_source

LINUX = "linux"
WANTED = Requirement("torch>=2.6,<2.14")


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """What indexes offer: `usual` by pip's settings, `small` without CUDA; `own` settings."""
    offered: dict[str, list[str]] = {"usual": [], "small": [], "own": []}

    class Ended:
        def __init__(self, stdout: str) -> None:
            self.stdout = stdout

    def run(command: list[str], **_: object) -> Ended:
        if "config" in command:
            return Ended("\n".join(offered["own"]))
        names = offered["small" if torch_source.WITHOUT_CUDA in command else "usual"]
        return Ended(f"torch\nAvailable versions: {', '.join(names)}\n" if names else "")

    monkeypatch.setattr("tools.torch_source.subprocess.run", run)
    return offered


def test_without_cuda_where_the_usual_index_offers_both(index: dict[str, list[str]]) -> None:
    index |= {"usual": ["2.15.0", "2.13.0"], "small": ["2.15.0+cpu", "2.13.0+cpu", "2.12.0+cpu"]}
    options, said = torch_source.choose(WANTED, LINUX, cuda=False)
    assert options == f"--extra-index-url {torch_source.WITHOUT_CUDA}"
    assert "2.13.0+cpu" in said and "TORCH=cuda" in said


@pytest.mark.parametrize("own", ["global.index-url='https://x'", ":env:.no-index='1'"])
def test_settings_of_pip_are_kept_and_the_size_is_said(
    index: dict[str, list[str]], own: str
) -> None:
    index |= {"usual": ["2.13.0"], "small": ["2.13.0+cpu"], "own": [own]}
    options, said = torch_source.choose(WANTED, LINUX, cuda=False)
    assert options == "" and "3 GB" in said and torch_source.WITHOUT_CUDA in said


@pytest.mark.parametrize("small", [[], ["2.12.0+cpu"], ["2.13.1"]])
def test_what_cannot_be_decided_is_said(index: dict[str, list[str]], small: list[str]) -> None:
    index |= {"usual": ["2.13.0"], "small": small}
    options, said = torch_source.choose(WANTED, LINUX, cuda=False)
    assert options == "" and "3 GB" in said and torch_source.WITHOUT_CUDA in said


def test_an_index_of_wheels_without_cuda_needs_no_option(index: dict[str, list[str]]) -> None:
    index["usual"] = ["2.13.0+cpu", "2.13.0"]
    options, said = torch_source.choose(WANTED, LINUX, cuda=False)
    assert options == "" and "without CUDA" in said and "3 GB" not in said


def test_cuda_is_taken_where_it_is_asked_for(index: dict[str, list[str]]) -> None:
    index |= {"usual": ["2.13.0"], "small": ["2.13.0+cpu"]}
    options, said = torch_source.choose(WANTED, LINUX, cuda=True)
    assert options == "" and "with CUDA" in said


@pytest.mark.parametrize("system", ["darwin", "win32"])
def test_wheels_of_other_systems_have_no_cuda(index: dict[str, list[str]], system: str) -> None:
    index |= {"usual": ["2.13.0"], "small": ["2.13.0+cpu"]}
    options, said = torch_source.choose(WANTED, system, cuda=False)
    assert options == "" and "3 GB" not in said


def test_the_requirement_is_that_of_the_file() -> None:
    wanted = torch_source.required([str(ROOT / "requirements.txt")])
    assert wanted is not None and wanted.name == "torch" and wanted.specifier


def test_nothing_is_said_where_nothing_is_downloaded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other.txt"
    other.write_text("torchvision>=0.21\n# torch\n")
    torch_source.main([str(other)])
    if importlib.util.find_spec("torch") is not None:
        torch_source.main([str(ROOT / "requirements.txt")])
    assert capsys.readouterr() == ("", "")


def test_the_best_version_is_one_that_is_wanted(index: dict[str, list[str]]) -> None:
    index["usual"] = ["2.15.0", "2.13.1", "2.13.0", "2.2.0"]
    assert torch_source.best(WANTED) == Version("2.13.1")
