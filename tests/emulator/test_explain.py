"""`emulate.py --explain`: where a damaged project first departs, and the word that causes it."""

from __future__ import annotations

import copy
import shutil
from pathlib import Path

import numpy as np
import pytest

from ai8xtools.commands.explain.explanation import ReferenceRun, explained, paragraph
from tests.emulator.conftest import Emulate
from tests.emulator.explained import names
from tests.emulator.faults import KINDS, fault, first_difference, loaded_accelerator
from tests.emulator.test_proof import CHECKPOINT, FILES
from tests.emulator.trees import change, foreign, generate
from tests.networks.deployed import BY_FILE


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return generate(tmp_path_factory.mktemp("made") / "digits")


@pytest.fixture
def damaged(digits: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(digits, tmp_path / "damaged"))


def test_nothing_departs(digits: Path, run: Emulate) -> None:
    assert run(digits, "--explain") == (
        0, "Nothing departs: words, layers and results are those of the description.\n"
    )  # fmt: skip


def test_a_register_is_named_with_layer_value_and_line(damaged: Path, run: Emulate) -> None:
    change(damaged / "cnn.c", ("0x50100514) = 0x00000800;", "0x50100514) = 0x00000900;"))
    status, text = run(damaged, "--explain")
    assert status == 1
    assert text.startswith(f"Layer 1 (conv2), {FILES[1]}:23:5, is the first that is wrong: channel")
    assert "it should be 52" in text
    assert "RPTR_BASE, group 0: word is in the project 0x900, by the description 0x800" in text
    assert "(0x50100514, group 0 layer 1 RPTR_BASE)" in text


def test_a_weight_is_named_of_firmware_made_elsewhere(
    digits: Path, run: Emulate, tmp_path: Path
) -> None:
    project = foreign(digits, tmp_path / "foreign")
    change(project / "weights.h", ("0x50180000, 0x00000101, 0x0e01c3e5",
                                   "0x50180000, 0x00000101, 0x0e01c3f5"))  # fmt: skip
    status, text = run(project, "--explain")
    assert (status, text.split()[0]) == (1, "E881")
    status, text = run(project, "--explain", *FILES, CHECKPOINT)
    assert status == 1
    assert "Layer 0 (conv1)" in text
    assert "output channel 0, input channel 0" in text
    assert "processor 0, kernel column 0" in text


def test_of_several_words_the_cause_is_the_one_that_leads_there(
    damaged: Path, run: Emulate
) -> None:
    """A bias of a later layer differs, too."""
    change(damaged / "weights.h", ("0x50180000, 0x00000101, 0x0e01c3e5",
                                   "0x50180000, 0x00000101, 0x0e01c3f5"),
           ("0xf6, 0xff, 0x04", "0xf7, 0xff, 0x04"))  # fmt: skip
    status, text = run(damaged, "--explain")
    assert (status, text.split(",")[0]) == (1, "Layer 0 (conv1)")
    assert "The cause is the kernel memory: layer 0 (conv1), output channel 0" in text
    assert text.endswith("1 other word differs, too.\n")


def test_unloading_is_named(damaged: Path, run: Emulate) -> None:
    text = (damaged / "cnn.c").read_text()
    first = text[text.index("int cnn_unload") :].split("addr = ")[1].split(";")[0]
    change(damaged / "cnn.c", (first, "(volatile uint32_t *) 0x50404000"))
    status, text = run(damaged, "--explain")
    assert (status, text.split(".")[0]) == (1, "All layers are right")
    assert "as byte 0 of the result of layer 3 (fc)" in text
    assert "which stands at 0x50400000" in text


def test_single_words_are_found(tmp_path: Path) -> None:
    """As `make measure WHAT=explained`, with a few faults."""
    deployed = BY_FILE["digits-chw-ai85"]
    result = deployed.synthesized(tmp_path, str(CHECKPOINT))
    reference, whole = ReferenceRun(result), loaded_accelerator(result)
    random = np.random.default_rng(3)
    for number in range(16):
        damage = fault(KINDS[number % len(KINDS)], result.program, random)
        accelerator = copy.deepcopy(whole)
        accelerator.write(damage.writes)
        explanation = explained(reference, accelerator.memory.snapshot())
        assert explanation is not None
        assert names(accelerator.memory, explanation, damage)
        truth = first_difference(reference.run, accelerator.run())
        found = explanation.first
        assert (None if found is None else found.layer) == truth
        assert paragraph(reference, explanation).endswith(".")
