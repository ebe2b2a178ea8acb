"""The pages by task show programs that work, messages that exist and options that there are."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ai8xize
from ai8xtools.diagnostics import run as quietly
from ai8xtools.emulator import Board
from tests.conftest import ROOT
from tests.synthesis.networks import describe, files, mask, sample, weights

PAGES = {
    name: (ROOT / "docs" / f"{name}.md").read_text()
    for name in (
        "wrong-result",
        "application",
        "does-not-fit",
    )
}
CONV = {"op": "Conv2d", "kernel_size": "3x3", "pad": 1, "activate": "ReLU"}
STREAM = {**CONV, "streaming": True, "max_pool": 2, "pool_stride": 2}
POINT = {"op": "Conv2d", "kernel_size": "1x1", "pad": 0, "activate": "ReLU", "quantization": 1}


def blocks(page: str, language: str) -> list[str]:
    """Return the blocks of a page in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGES[page], re.MULTILINE | re.DOTALL)


def run(*arguments: object, cwd: Path = ROOT) -> str:
    """Run a script of the repository and return what it prints."""
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=cwd, capture_output=True, text=True, check=False, env={"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the project of the bundled digits in build/, as the pages assume it."""
    folder = tmp_path_factory.mktemp("work")
    for name in ("tests", "trained"):
        (folder / name).symlink_to(ROOT / name)
    run(
        ROOT / "ai8xize.py", "--device", "MAX78000",
        "--config-file", "networks/digits-chw-ai85.yaml",
        "--checkpoint-file", "trained/digits-ai85digitsnet-qat8-q.pth.tar",
        "--sample-input", "tests/sample_digits.npy", "--test-dir", folder / "build",
        "--prefix", "digits", "--sample-numpy-filename", "expected.npy",
    )  # fmt: skip
    return folder


def test_program_of_an_application_classifies(work: Path, tmp_path: Path) -> None:
    project = tmp_path / "application"
    project.mkdir()
    for file in (work / "build" / "digits").glob("*.[ch]"):
        (project / file.name).write_text(file.read_text())
    main = blocks("application", "c")[0]
    (project / "main.c").write_text(main)
    assert said(project) == "class 7\n" * 3
    handler, install = re.split(r"\n\n    cnn_enable.*\n", blocks("application", "c")[1])
    sleep = blocks("application", "c")[2]
    loop = re.search(r"    while \(cnn_time == 0\) \{\n.*?\n    \}\n", main, re.DOTALL)
    assert loop
    own = main.replace(loop[0], sleep).replace("    cnn_init();", f"{install}    cnn_init();")
    own = own.replace("static int classify", f"{handler}\nstatic int classify")
    (project / "main.c").write_text(own)
    assert "inference_done);\n    cnn_init" in own
    assert said(project) == "class 7\n" * 3


def said(project: Path) -> str:
    """Run a program that gives no verdict and return what it prints."""
    return Board.with_project(project).run(10).console


@pytest.mark.slow
def test_python_of_the_page_on_wrong_results_works(work: Path) -> None:
    compare, classify = blocks("wrong-result", "python")
    (work / "compare.py").write_text(compare)
    assert run("compare.py", cwd=work).endswith("\nTrue\n")
    page = PAGES["wrong-result"]
    assert "prints 7," in page and "the same image gives 2" in page
    unsigned = "print(network.run(image ^ np.int8(-128)).output().argmax())\n"
    (work / "classify.py").write_text(classify + unsigned)
    assert run("classify.py", cwd=work) == "7\n2\n"


def _without_power(project: Path) -> None:
    main = project / "main.c"
    main.write_text(main.read_text().replace("    cnn_enable(", "    (void) (", 1))


def _other_read_pointer(project: Path) -> None:
    cnn = project / "cnn.c"
    wrong = re.sub(r"(0x50[159]00514\) = )0x00000800", r"\g<1>0x00000900", cnn.read_text())
    cnn.write_text(wrong)


def _other_weight(project: Path) -> None:
    weights_h = project / "weights.h"
    weights_h.write_text(weights_h.read_text().replace("0xf92519d6", "0xf96519d6", 1))


@pytest.mark.slow
@pytest.mark.parametrize("change", [_without_power, _other_read_pointer, _other_weight])
def test_examples_of_what_emulate_says_are_real(
    change: Callable[[Path], None], work: Path, tmp_path: Path
) -> None:
    project = tmp_path / "digits"
    shutil.copytree(work / "build" / "digits", project)
    change(project)
    done = subprocess.run(
        [sys.executable, ROOT / "emulate.py", project], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    said = re.findall(r"^(?:First wrong word|error): .*", done.stdout + done.stderr, re.M)
    assert len(said) == (2 if change is _without_power else 1)  # the error comes last
    assert f"`{said[-1]}`" in PAGES["wrong-result"]


Layers = Sequence[Mapping[str, Any]]
REFUSED: dict[str, tuple[Layers, tuple[int, ...], list[tuple[int, ...]]]] = {
    "E341": ([{**CONV, "processors": mask(3), "out_offset": 0}], (3, 160, 160), [(4, 3, 3, 3)]),
    "E342": (
        [
            {**CONV, "processors": mask(3), "out_offset": 0x4000},
            {**CONV, "max_pool": 2, "pool_stride": 2, "processors": mask(16), "out_offset": 0},
        ],
        (3, 80, 80),
        [(16, 3, 3, 3), (16, 16, 3, 3)],
    ),
    "E404": ([{**CONV, "processors": mask(3), "out_offset": 0x1000}], (3, 64, 64), [(4, 3, 3, 3)]),
    "E401": (
        [
            {**CONV, "processors": mask(3), "out_offset": 0x2000},
            {**CONV, "processors": mask(64), "out_offset": 0},
            {**CONV, "processors": mask(64), "out_offset": 0x2000},
        ],
        (3, 16, 16),
        [(64, 3, 3, 3), (512, 64, 3, 3), (64, 512, 3, 3)],
    ),
    "E209": ([{**CONV, "processors": mask(4)}] * 33, (4, 4, 4), [(4, 4, 3, 3)] * 33),
    "E327": (
        [{**CONV, "processors": mask(4), "output_processors": mask(64)}],
        (4, 4, 4),
        [(1100, 4, 3, 3)],
    ),
    "E343": ([{**CONV, "processors": mask(4)}], (4, 2, 1100), [(4, 4, 3, 3)]),
}


@pytest.fixture
def complaints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    """What the loader has against a network, without places."""

    def ask(
        layers: Layers,
        shape: tuple[int, ...],
        shapes: Sequence[tuple[int, ...]],
        biases: Sequence[int] = (),
        *options: str,
    ) -> str:
        (tmp_path / "net.yaml").write_text(describe(*layers))
        bits = [layer.get("quantization", 8) for layer in layers]
        arrays = [weights(*s, bits=b) for s, b in zip(shapes, bits, strict=True)]
        named = files(tmp_path, sample(*shape), arrays, [np.ones(n, np.int64) for n in biases])
        monkeypatch.setattr(sys, "argv", [
            "ai8xize.py", "--device", "MAX78000", "--config-file", str(tmp_path / "net.yaml"),
            "--sample-input", str(named.sample_input), "--weight-input", str(named.weight_input),
            *(["--bias-input", str(named.bias_input)] if biases else []), "--check-only",
            "--prefix", "net", "--test-dir", str(tmp_path), *options,
        ])  # fmt: skip
        monkeypatch.chdir(tmp_path)
        capsys.readouterr()
        assert quietly(ai8xize.main) == 1
        return re.sub(r"^\S+?: (error|warning|notice): ", "", capsys.readouterr().err, flags=re.M)

    return ask


def quoted(page: str, code: str) -> str:
    """Return a message that a page quotes, with the remedy in the line below if there is one."""
    (text,) = re.findall(rf"^    (layer \d.*\[{code}\]\n(?:      .*\n)?)", PAGES[page], re.M)
    return str(text).replace("\n      ", "\n  ")


@pytest.mark.parametrize("code", REFUSED)
def test_quoted_messages_are_real(code: str, complaints: Callable[..., str]) -> None:
    assert quoted("does-not-fit", code) in complaints(*REFUSED[code])


def test_quoted_message_on_biases_is_real(complaints: Callable[..., str]) -> None:
    layers = [
        {**CONV, "processors": mask(3)},
        {**CONV, "processors": mask(64)},
        {**POINT, "processors": mask(64)},
        {**POINT, "processors": mask(64)},
    ]
    shapes = [(64, 3, 3, 3), (64, 64, 3, 3), (1024, 64, 1, 1), (1024, 1024, 1, 1)]
    found = complaints(layers, (3, 4, 4), shapes, [64, 64, 1024, 1024])
    assert quoted("does-not-fit", "E403") in found


def test_quoted_message_on_streams_is_real(complaints: Callable[..., str]) -> None:
    layers = [
        {**STREAM, "processors": mask(3), "out_offset": 0x4000},
        {**STREAM, "processors": mask(16), "out_offset": 0},
        {**POINT, "processors": mask(16), "out_offset": 0x4000},
    ]
    shapes = [(16, 3, 3, 3), (16, 16, 3, 3), (4, 16, 1, 1)]
    found = complaints(layers, (3, 160, 160), shapes, (), "--fifo")
    assert quoted("does-not-fit", "E409") in found


@pytest.fixture(scope="module")
def helps() -> str:
    """What all tools say of their options."""
    tools = (("ai8xize",), ("ai8xize", "--device", "MCU"), ("emulate",), ("quantize",), ("train",))
    return "".join(run(f"{name}.py", *words, "--help") for name, *words in tools)


@pytest.mark.parametrize("page", PAGES)
def test_named_options_and_codes_exist(page: str, helps: str) -> None:
    text = PAGES[page]
    errors = (ROOT / "docs" / "errors.md").read_text()
    codes = set(re.findall(r"\b[EWN]\d{3}\b", text))
    assert [code for code in sorted(codes) if f"| {code} |" not in errors] == []
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]+", text))
    assert [name for name in sorted(named) if name not in helps] == []
