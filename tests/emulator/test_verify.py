"""What `ai8xize.py --verify` says of firmware that is right, and of firmware that is not."""

from __future__ import annotations

import dataclasses
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ai8xtools.commands.loader.verify import coverage, departure, verify
from ai8xtools.diagnostics import Diagnostic, DiagnosticError
from ai8xtools.synthesis.emit import ProjectOptions, emit_project
from ai8xtools.synthesis.options import EncodeOptions
from ai8xtools.synthesis.pipeline import Synthesis, synthesize
from ai8xtools.writing.folder import write_project
from device import MAX78000
from device.chip import DEFAULT_APB_BASE
from tests.synthesis.networks import describe, files, sample, weights

CONV: dict[str, Any] = {"processors": 7, "op": "Conv2d", "pad": 1, "activate": "ReLU"}
LAYERS = (CONV, {**CONV, "max_pool": 2, "pool_stride": 2}, CONV)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Synthesis, Path]:
    """Three convolutions and their project."""
    folder = tmp_path_factory.mktemp("made")
    path = folder / "net.yaml"
    path.write_text(describe(*LAYERS))
    kernels = [weights(3, 3, 3, 3, seed=i) for i in range(len(LAYERS))]
    resolving = files(folder, sample(3, 8, 8), kernels, [])
    result = synthesize(str(path), MAX78000, resolving, EncodeOptions())
    project = emit_project(result.program, result.summary, ProjectOptions("net"))
    write_project(project, folder / "net")
    return result, folder / "net"


def verified(result: Synthesis, folder: Path, *, cycles: bool = False) -> list[str]:
    return list(verify(result, folder, apb_base=DEFAULT_APB_BASE, check_output=True, cycles=cycles))


def complaints(result: Synthesis, folder: Path) -> tuple[Diagnostic, ...]:
    with pytest.raises(DiagnosticError) as refusal:
        verified(result, folder)
    return tuple(refusal.value.diagnostics)


def altered(result: Synthesis, layer: int) -> Synthesis:
    """Change what the simulation says of pixel 1, 2 in channel 1 of a layer."""
    outputs = {index: output.copy() for index, output in result.activations.outputs.items()}
    outputs[layer][1, 1, 2] += 1
    activations = dataclasses.replace(result.activations, outputs=outputs)
    return dataclasses.replace(result, activations=activations)


def damaged(folder: Path, target: Path, name: str, pattern: str, new: str) -> Path:
    shutil.copytree(folder, target)
    text, count = re.subn(pattern, new, (folder / name).read_text(), count=1)
    assert count == 1
    (target / name).write_text(text)
    return target


def test_right_firmware_is_counted(made: tuple[Synthesis, Path]) -> None:
    lines = verified(*made, cycles=True)
    assert re.fullmatch(r"verified \d+ accelerator words", lines[0])
    assert lines[1] == f"verified {len(made[0].program.expected)} words of the expected output"
    rows = [line.split() for line in lines[2].splitlines()]
    assert rows[0] == ["layer", "cycles", "fetches", "kernel", "steps", "analytic"]
    assert len(rows) == 2 + len(LAYERS)
    assert all(row[1] == row[-1] for row in rows[1:])  # both estimates agree


def test_wrong_word_is_named(made: tuple[Synthesis, Path], tmp_path: Path) -> None:
    pattern = r"0x50100010\) = 0x[0-9a-f]{8}"
    folder = damaged(made[1], tmp_path / "net", "cnn.c", pattern, "0x50100010) = 0x00000123")
    found = complaints(made[0], folder)
    assert {d.code for d in found} == {"E840"}
    assert "group 0 layer 0 RCNT): wanted" in found[0].message
    assert found[-1].message.startswith("1 words differ")


def test_first_layer_that_departs_is_named(made: tuple[Synthesis, Path], tmp_path: Path) -> None:
    result, project = made
    value = r"(#define SAMPLE_OUTPUT \{ \\\n\s*0x\w+, 0x\w+, 0x\w+, )0x\w+"
    folder = damaged(project, tmp_path / "net", "sampleoutput.h", value, r"\g<1>0x00aaaaaa")
    (found,) = complaints(result, folder)
    assert found.code == "E841"
    assert "All layers are as simulated" in str(found.remedy)
    (found,) = complaints(altered(result, 1), folder)
    wanted = int(result.activations.outputs[1][1, 1, 2])
    expected = f"layer 1, channel 1, row 1, column 2 (0x50400018): expected {wanted + 1}, found"
    assert expected in str(found.remedy)
    assert "max_pool=1" in str(found.remedy)  # the registers of that layer


def test_only_layers_that_were_compared_are_called_right() -> None:
    assert list(coverage({0, 1, 2}, {0, 1})) == [
        "As simulated: layers 0, 1.",
        "Simulated, but not executed: layer 2.",
    ]
    assert list(coverage({0}, {0, 1})) == [
        "As simulated: layer 0.",
        "Executed, but not compared with a simulation: layer 1.",
    ]


def test_nothing_departs_from_the_simulation(made: tuple[Synthesis, Path]) -> None:
    from ai8xtools.emulator import run_loader

    result, folder = made
    record = run_loader(folder, "MAX78000")
    run = record.execute()
    assert departure(result, record, run) is None
    assert np.array_equal(run.output()[:3], result.activations.outputs[2])
