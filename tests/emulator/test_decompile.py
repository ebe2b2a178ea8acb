"""`emulate.py --decompile`: files from which the loader makes the words that were read back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from ai8xtools.checkpoint import read_checkpoint
from ai8xtools.commands.decompile.attempts import best_attempt
from ai8xtools.commands.decompile.network import candidate_network
from ai8xtools.commands.decompile.verdict import computed
from ai8xtools.commands.emulate.arguments import parse as parse_emulation
from ai8xtools.commands.loader.arguments import parse
from ai8xtools.commands.loader.create import create_project
from ai8xtools.emulator import EmulatorError, NetworkAlone
from ai8xtools.emulator.state.memory import Memory
from ai8xtools.emulator.words.recording import read_words
from ai8xtools.synthesis.options import EncodeOptions
from ai8xtools.synthesis.place import PlaceOptions
from tests.emulator.conftest import Emulate
from tests.emulator.known_answers import chip_of
from tests.emulator.test_influence import loaded
from tests.emulator.test_proof import CHECKPOINT
from tests.emulator.trees import generate
from tests.synthesis.random_networks import RandomNetwork, random_networks
from tests.synthesis.stages import encode, place, simulate


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return generate(tmp_path_factory.mktemp("made") / "digits")


def test_the_loader_makes_the_project_of_the_files_again(
    digits: Path, run: Emulate, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    status, text = run(digits, "--decompile", out)
    assert "graph: as ONNX, whose result for the sample was compared" in text
    assert (out / "digits.onnx").is_file()
    lines = text.splitlines()
    assert (status, lines[-1].split(":")[0]) == (0, "the same words"), text
    assert lines[-2] == "The words compute the network of the description for every input."
    assert "layer 3: reads layer 2 (follows from who writes what is read)" in lines
    assert "  3 <- 2      flatten, linear" in text
    command = next(line for line in lines if line.startswith("words from these files: "))
    # what is compared here is the C that was compiled, not what --decompile has compared
    words = [*command.split("ai8xize.py ")[1].split(), "--verify-project", str(digits)]
    assert create_project(parse(words)) == 0
    assert "verified 8033 accelerator words" in capsys.readouterr().out


def test_weights_are_those_of_the_checkpoint(digits: Path, run: Emulate, tmp_path: Path) -> None:
    run(digits, "--decompile", tmp_path / "out")
    found = read_checkpoint(tmp_path / "out" / "digits.pth.tar").state_dict
    wanted = read_checkpoint(CHECKPOINT).state_dict
    for kind in ("weight", "bias"):
        pairs = zip(
            (v for name, v in found.items() if name.endswith(f"op.{kind}")),
            (v for name, v in wanted.items() if name.endswith(f"op.{kind}")),
            strict=True,
        )
        assert all((np.squeeze(one) == np.squeeze(other)).all() for one, other in pairs)


def test_a_folder_that_exists_stays(digits: Path, run: Emulate, tmp_path: Path) -> None:
    status, text = run(digits, "--decompile", tmp_path)
    assert (status, text.split()[0]) == (1, "E891")
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("option", ["--decompile", "--input", "--labels", "--trace"])
def test_values_that_are_empty_are_not_passed_over(
    option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """As variables of a shell are that are not set: the run would pass without the option."""
    with pytest.raises(SystemExit) as ended:
        parse_emulation(["project", option, ""])
    assert ended.value.code == 2
    assert f"argument {option}: the value is empty" in capsys.readouterr().err


def test_data_that_nobody_wrote_is_refused(digits: Path) -> None:
    memory = _memory(digits)
    base, chip = memory.addresses.apb_base, memory.chip
    for group in range(4):
        memory.registers[base + chip.layer_address(group, 2, "RPTR_BASE")] = 0x1800
    with pytest.raises(EmulatorError) as refusal:
        candidate_network(memory, "net")
    assert refusal.value.code == "E890"
    assert "layer 2" in refusal.value.message


@pytest.mark.parametrize(
    "name",
    [
        "own-data-buffer", "own-conv1d-dilation-ai87", "snoop-stop-ai87", "own-concat-input",
        "opt-repeat-layers-mnist", "opt-fast-fifo-quad-mnist", "mpadd-192", "own-bias-quadrant",
        "own-mixed-bits-q8421", "conv1d-pool-9-q4", "upsample-nonsquare-pad1C", "own-in-crop",
        "depthwise-mixed-ai87", "bypass-depthwise3x4x4-ai87", "readahead-notcalc-multipass5-ai87",
        "opt-override-delta1-fifostream-nonsquare-hwc", "own-outprocessors-scattered",
    ],
)  # fmt: skip
def test_known_answers_are_read_back(name: str, shared: Path) -> None:
    """A selection by feature; `make measure WHAT=decompile` reads all."""
    recording = read_words(shared / "kat" / "cases" / name / "golden.npz")
    memory = Memory(chip_of(recording.writes.address))
    memory.write(recording.writes)
    assert best_attempt(memory, "net").right


@settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[
        HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large,
    ],
)  # fmt: skip
@given(drawn=random_networks())
def test_random_networks_are_read_back(tmp_path: Path, drawn: RandomNetwork) -> None:
    """Refused by name, told to have other words, or right: then it is the network."""
    network, _ = drawn.build(tmp_path)
    placement = place(network, PlaceOptions())
    activations = simulate(network, average_rounding=drawn.rounding)
    options = EncodeOptions(average_rounding=drawn.rounding)
    memory = loaded(encode(network, placement, activations, options))
    try:
        best = best_attempt(memory, "net")
    except EmulatorError as error:
        assert error.code == "E890"
        return
    if best.right:
        assert computed(memory, best).proven


def _memory(project: Path) -> Memory:
    network = NetworkAlone(project)
    network.start(sample=True)
    return network.board.accelerator.memory
