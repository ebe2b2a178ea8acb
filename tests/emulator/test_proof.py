"""`emulate.py --prove`: right words are proven, wrong ones refuted with an input."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import ai8xtools.commands.proof.project
from ai8xtools.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from ai8xtools.commands.loader.arguments import parse
from ai8xtools.commands.loader.create import create_project
from ai8xtools.commands.proof.delivered import delivered
from ai8xtools.emulator import EmulatorError
from ai8xtools.emulator.machine.arithmetic import LayerParameters
from ai8xtools.emulator.machine.batch import NetworkBatch
from ai8xtools.emulator.proof.fingerprints import LANES, PRIME, Mixer
from ai8xtools.emulator.proof.machine import Expressions
from ai8xtools.synthesis.options import EncodeOptions
from ai8xtools.synthesis.place import PlaceOptions
from tests.conftest import ROOT
from tests.emulator.by_hand import one_by_one
from tests.emulator.conftest import Emulate
from tests.emulator.proofs import judged
from tests.emulator.test_influence import loaded
from tests.emulator.trees import c_files, change, foreign, generate
from tests.synthesis.random_networks import RandomNetwork, random_networks
from tests.synthesis.stages import encode, place, simulate

FILES = ("--config-file", ROOT / "networks" / "digits-chw-ai85.yaml", "--checkpoint-file")
CHECKPOINT = ROOT / "trained" / "digits-ai85digitsnet-qat8-q.pth.tar"


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return generate(tmp_path_factory.mktemp("made") / "digits")


def test_a_project_is_proven(digits: Path, run: Emulate) -> None:
    status, text = run(digits, "--prove")
    assert (status, text.split(":")[0]) == (0, "PROVEN")
    assert "4 layers compute digits-chw-ai85.yaml for every input" in text


def test_foreign_firmware_is_proven_against_its_files(
    digits: Path, run: Emulate, tmp_path: Path
) -> None:
    project = foreign(digits, tmp_path / "foreign")
    status, text = run(project, "--prove")
    assert (status, text.split()[0]) == (1, "E881")
    status, text = run(project, "--prove", *FILES, CHECKPOINT)
    assert (status, text.split(":")[0]) == (0, "PROVEN")


def test_foreign_firmware_that_streams_from_a_fifo_is_proven(run: Emulate, tmp_path: Path) -> None:
    """Its files do not tell how the input comes, but a register does."""
    network = tmp_path / "streams.yaml"
    text = FILES[1].read_text().replace("- name: conv1\n", "- name: conv1\n    streaming: true\n")
    network.write_text(text)
    generate(tmp_path / "made", "--fifo", "--config-file", network)
    project = foreign(tmp_path / "made", tmp_path / "foreign")
    status, text = run(project, "--prove", FILES[0], network, FILES[2], CHECKPOINT)
    assert (status, text.splitlines()[-1].split(":")[0]) == (0, "PROVEN"), text


def test_a_sample_of_ones_own_is_no_reason_against_firmware(
    digits: Path, run: Emulate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # which has no sample of the data set
    shutil.copy(FILES[1], tmp_path)
    files = (FILES[0], FILES[1].name, FILES[2])
    status, text = run(digits, "--prove", *files, CHECKPOINT)
    note, verdict, *_ = text.splitlines()
    assert note.startswith("note: how the program loads its input is not judged: the first layer ")
    assert (status, verdict.split(":")[0]) == (0, "PROVEN")
    other = tmp_path / "other.pth.tar"
    checkpoint = read_checkpoint(CHECKPOINT)
    name = "conv1.op.weight"
    tensors = {**checkpoint.state_dict, name: -checkpoint.state_dict[name] // 2}
    write_checkpoint(other, Checkpoint({**checkpoint.entries, "state_dict": tensors}))
    status, text = run(digits, "--prove", *files, other)
    assert (status, text.splitlines()[-1]) == (1, "REFUTED")


def test_a_wrong_kernel_is_refuted_with_an_input(
    digits: Path, run: Emulate, tmp_path: Path
) -> None:
    project = c_files(digits, tmp_path / "wrong")
    change(project / "weights.h", ("0x0e01c3e5", "0x0e01c3e4"))
    status, text = run(project, "--prove")
    assert status == 1
    assert "The accelerator does not compute layer 0 (conv1), " in text
    assert (
        "digits-chw-ai85.yaml:12:5, as the network does: 1 of 32 channels depart, from channel 0, "
        "row 0, column 1 on.\n" in text
    )
    assert "Counterexample: the sample: byte 0 of the result (layer 3 (fc), channel 0," in text
    assert text.splitlines()[-1] == "REFUTED"


def test_another_order_of_unloading_is_refuted(digits: Path, run: Emulate, tmp_path: Path) -> None:
    project = c_files(digits, tmp_path / "wrong")
    change(project / "cnn.c", ("= *addr++;\n    *out_buf++ = *addr++;", "= addr[1];\n    "
                               "*out_buf++ = addr[0];\n    addr += 2;"))  # fmt: skip
    status, text = run(project, "--prove")
    assert status == 1
    assert "Cnn_unload() delivers another value as byte 0" in text
    assert text.splitlines()[-1] == "REFUTED"


def test_files_of_another_network_are_told(digits: Path, run: Emulate) -> None:
    other = ROOT / "networks" / "mnist-chw-ai85.yaml"
    checkpoint = ROOT / "trained" / "mnist-ai85net5-qat8-q.pth.tar"
    status, text = run(digits, "--prove", "--config-file", other, "--checkpoint-file", checkpoint)
    assert status == 1
    assert "the first layer does not read the sample of mnist-chw-ai85.yaml" in text
    assert "The accelerator does not compute layer 0 (conv1), " in text
    assert "mnist-chw-ai85.yaml:" in text


def test_the_loader_proves_what_it_has_written(tmp_path: Path) -> None:
    generate(tmp_path / "digits", "--prove")


@pytest.mark.parametrize("words", [("--prove", "--accelerator-only"), ("--checkpoint-file", "x"),
                                   ("--config-file", "x")])  # fmt: skip
def test_options_that_do_not_go_together(
    digits: Path, run: Emulate, words: tuple[str, ...]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        run(digits, *words)


@settings(
    max_examples=max(1, round(8 * float(os.environ.get("AI8X_PROPERTIES", "1")))),
    deadline=None,
    suppress_health_check=[
        HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large,
    ],
)  # fmt: skip
@given(drawn=random_networks())
def test_random_networks_are_proven(tmp_path: Path, drawn: RandomNetwork) -> None:
    network, _ = drawn.build(tmp_path)
    placement = place(network, PlaceOptions())
    activations = simulate(network, average_rounding=drawn.rounding)
    options = EncodeOptions(average_rounding=drawn.rounding)
    program = encode(network, placement, activations, options)
    found = judged(loaded(program), network.network, delivered(program), rounding=drawn.rounding)
    assert found.proven


def test_what_is_not_copied_is_not_proven(digits: Path, run: Emulate, tmp_path: Path) -> None:
    """Nothing passes because it could not be looked at."""
    project = c_files(digits, tmp_path / "adds")
    change(project / "cnn.c", ("*out_buf++ = *addr++;", "*out_buf++ = *addr++ + 1;"))
    status, text = run(project, "--prove")
    assert (status, text.split(":")[0]) == (1, "E882 neither proven nor refuted")
    assert "cnn_unload(), or it does more than to copy bytes" in text


def test_a_refuted_project_is_an_error_of_the_loader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ai8xtools.commands.proof.project, "prove", lambda *_: False)
    words = ["--device", "MAX78000", "--test-dir", tmp_path, "--prefix", "digits", "--prove",
             *FILES, CHECKPOINT]  # fmt: skip
    with pytest.raises(EmulatorError) as refused:
        create_project(parse([str(word) for word in words]))
    assert refused.value.code == "E843"


def test_sums_that_32_bits_may_not_hold_are_refused() -> None:
    words = one_by_one(np.ones((1, 1, 1), np.int64), np.array([[1]]))
    _, accelerator = words.run()
    batch, mixer = NetworkBatch(accelerator), Mixer()
    parameters = LayerParameters(np.full((1, 1, 1, 1), 2.0**22), np.zeros(1))
    batch.steps[0] = replace(batch.steps[0], parameters=parameters)
    machine = Expressions(batch, accelerator.memory, mixer, from_start=False)
    with pytest.raises(EmulatorError) as refused:
        machine.infer(mixer.numbered("input", 1, 1, 1))
    assert refused.value.code == "E880"


def test_equal_sums_have_equal_fingerprints_and_others_have_not() -> None:
    mixer = Mixer()
    values = mixer.numbered("value", 50, 50)
    assert len(np.unique(values.reshape(-1, LANES), axis=0)) == 2500
    assert ((values >= 0) & (values < PRIME)).all()
    total = values.sum(axis=0) % PRIME
    again = mixer.of("clip", values[::-1].sum(axis=0) % PRIME)
    assert (mixer.of("clip", total) == again).all()
    assert (mixer.of("clip", (total + values[0]) % PRIME) != again).any(axis=-1).all()
    assert (mixer.of("round", total) != again).any(axis=-1).all()
    assert (Mixer().numbered("value", 50, 50) != values).any(axis=-1).all()
