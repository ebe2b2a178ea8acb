"""Networks that may end early: generated, executed on many inputs, refused where impossible."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ai8xtools.commands.loader.arguments import parse
from ai8xtools.commands.loader.create import create_project
from ai8xtools.diagnostics import DiagnosticError
from ai8xtools.software.lower import lower
from ai8xtools.synthesis.parse import parse as parse_text
from ai8xtools.synthesis.resolve import resolve
from tests.emulator.conftest import Emulate
from tests.synthesis.arranged import CONV, kernels_of
from tests.synthesis.networks import describe, files, sample

LINEAR: dict[str, Any] = {
    "op": "Linear", "flatten": True, "output_width": 32, "output": True, "out_offset": None,
}  # fmt: skip
SHAPES = ((8, 2, 3, 3), (4, 8 * 36), (8, 8, 3, 3), (4, 8 * 36))
ALWAYS, MARGIN, NEVER = 1, 600, 2**31 - 1


def generate(folder: Path, margin: int, *words: str, device: str = "MAX78002", **keys: Any) -> Path:
    """Generate a project whose second layer is an exit behind the first; return it."""
    early = {**LINEAR, "exit_margin": margin, **keys}
    text = describe(CONV, early, {**CONV, "in_sequences": 0}, LINEAR)
    (folder / "net.yaml").write_text(text)
    files(folder, sample(2, 6, 6), kernels_of(*SHAPES))
    options = parse([
        "--device", device, "--config-file", str(folder / "net.yaml"), "--prefix", "net",
        "--test-dir", str(folder / "out"), "--sample-input", str(folder / "sample.npy"),
        "--weight-input", str(folder / "weights.npy"), "--overwrite", *words,
    ])  # fmt: skip
    assert create_project(options) == 0
    return folder / "out/net"


def scores(words: str) -> list[int]:
    """Return what the program printed."""
    return [int(number) for number in re.findall(r"\[ *(-?\d+)\] ->", words)]


@pytest.mark.parametrize("core", [(), ("--riscv",)])
def test_a_program_ends_at_the_exit_or_behind_it(
    tmp_path: Path, run: Emulate, core: tuple[str, ...]
) -> None:
    results = []
    for margin, layers in ((ALWAYS, "layers 0 to 1"), (NEVER, "layers 0 to 3")):
        project = generate(tmp_path, margin, "--softmax", "--verify", *core)
        status, text = run(str(project))
        assert status == 0, text
        assert f"{layers}." in text and "PASS (1 inference)" in text
        results.append(scores(text))
    assert len(results[0]) == len(results[1]) == 4 and results[0] != results[1]


def test_each_input_takes_its_own_way(tmp_path: Path, run: Emulate) -> None:
    project = generate(tmp_path, MARGIN)
    np.save(tmp_path / "many.npy", np.stack([sample(2, 6, 6, seed=n) for n in range(12)]))
    status, text = run(str(project), "--input", str(tmp_path / "many.npy"), "--compare", "12")
    assert status == 0, text
    found = re.search(r"Early exit: (\d+) of 12 inputs .*after ([\d,]+) cycles; ([\d,]+) .* of "
                      r"([\d,]+)", text)  # fmt: skip
    assert found is not None, text
    count, early, mean, full = (int(number.replace(",", "")) for number in found.groups())
    assert 0 < count < 12 and early < mean < full
    assert mean == round((count * early + (12 - count) * full) / 12)
    assert "As the simulation of net.yaml: 12 inputs" in text


def test_a_margin_of_the_user_departs_from_the_simulation(tmp_path: Path, run: Emulate) -> None:
    project = generate(tmp_path, MARGIN)
    header = project / "cnn.h"
    header.write_text(
        header.read_text().replace(f"CNN_EXIT_MARGIN {MARGIN}", f"CNN_EXIT_MARGIN {NEVER}")
    )
    np.save(tmp_path / "many.npy", np.stack([sample(2, 6, 6, seed=n) for n in range(12)]))
    status, text = run(str(project), "--input", str(tmp_path / "many.npy"), "--compare", "12")
    assert status == 1 and "depart from the simulation of net.yaml" in text, text


def test_several_inputs_at_once_are_refused(tmp_path: Path, run: Emulate) -> None:
    project = generate(tmp_path, ALWAYS)
    np.save(tmp_path / "one.npy", sample(2, 6, 6))
    status, text = run(str(project), "--input", str(tmp_path / "one.npy"), "--fast")
    assert status == 1 and "E860" in text and "may end early" in text


@pytest.mark.parametrize(
    ("words", "keys", "code", "text"),
    [
        (("--repeat-layers", "2"), {}, "E092", "exit_margin"),
        (("--one-shot",), {}, "E092", "exit_margin"),
        (("--rtl",), {}, "E092", "exit_margin"),
        ((), {"output": None}, "E328", "are to be the outputs"),
        ((), {"output_width": 8}, "E328", "not of one kind"),
    ],
)
def test_what_an_exit_excludes_is_refused(
    tmp_path: Path, words: tuple[str, ...], keys: dict[str, Any], code: str, text: str
) -> None:
    with pytest.raises(DiagnosticError) as refused:
        generate(tmp_path, ALWAYS, *words, **keys)
    assert any(d.code == code and text in str(d) for d in refused.value.diagnostics)


def test_max78000_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DiagnosticError) as refused:
        generate(tmp_path, ALWAYS, device="MAX78000")
    (wrong,) = refused.value.diagnostics
    assert wrong.code == "E328" and "use --device MAX78002" in str(wrong.remedy)


def test_microcontrollers_are_refused(tmp_path: Path) -> None:
    text = describe(CONV, {**LINEAR, "exit_margin": 5}, {**CONV, "in_sequences": 0}, LINEAR)
    options = files(tmp_path, sample(2, 6, 6), kernels_of(*SHAPES))
    network = resolve(parse_text(text, placed=False), None, options)[0]
    with pytest.raises(DiagnosticError) as refused:
        lower(network)
    (wrong,) = refused.value.diagnostics
    assert wrong.code == "E328" and "only the accelerator of MAX78002" in str(wrong)
