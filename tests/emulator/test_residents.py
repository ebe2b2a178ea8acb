"""Networks that are in the accelerator together: each computes what it computes alone."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ai8xtools.answer import Answer, read_answer, write_answer
from ai8xtools.commands import targets
from ai8xtools.commands.emulate import proving
from ai8xtools.commands.loader.together import verify_together
from ai8xtools.diagnostics import DiagnosticError
from ai8xtools.emulator import Board, EmulatorError, NetworkRun
from ai8xtools.emulator.firmware.residents import Residents
from ai8xtools.synthesis.arrange.memory import KernelBlocks
from ai8xtools.synthesis.options import NOTHING, Occupied, PlaceOptions
from ai8xtools.synthesis.residents import Resident, occupied_by, turn_of
from device import MAX78000, MAX78002
from tests.emulator.conftest import Emulate
from tests.emulator.trees import change
from tests.synthesis.networks import build, describe, mask, sample, save, weights
from tests.synthesis.stages import place_what_fits

ALL = "AI8X_PROPERTIES" in os.environ
FIRST = {"op": "conv2d", "kernel_size": "3x3", "pad": 1, "processors": mask(3)}
SECOND = {"op": "conv2d", "kernel_size": "1x1", "pad": 0, "out_offset": 0x1000}
PLACES = {"low": mask(20, 12), "high": mask(20, 40)}
"""Processors of the second layer of two networks, whose groups differ."""


def create(folder: Path, name: str, *words: str, prefix: str | None = None) -> Path:
    """Write a network of two layers as a library; that named `high` also pools, and has biases."""
    second = {**SECOND, "processors": PLACES[name]}
    given = [("--weight-input", [weights(20, 3, 3, 3), weights(7, 20, 1, 1, seed=5)])]
    if name == "high":
        second |= {"activation": "ReLU", "max_pool": 2, "pool_stride": 2}
    given.append(("--bias-input", [np.arange(20) - 7, np.arange(7) * 9 - 30]))
    source = folder / f"{name}.yaml"
    source.write_text(describe({**FIRST, "output_processors": PLACES[name]}, second))
    line = ["--config-file", str(source), "--symbol-prefix", prefix or name, "--prefix", name]
    for option, arrays in given:
        line += [option, save(folder / f"{name}{option}.npy", arrays)]
    np.save(folder / f"{name}-x.npy", sample(3, 6, 6))
    line += ["--sample-input", str(folder / f"{name}-x.npy"), "--test-dir", str(folder)]
    if "--device" not in words:
        line += ["--device", "MAX78000"]
    assert targets.main("ai8xize.py", [*line, *words]) == 0
    return folder / name


@pytest.fixture(scope="module")
def low(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return create(tmp_path_factory.mktemp("low"), "low")


@pytest.fixture(scope="module")
def both(low: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return create(tmp_path_factory.mktemp("both"), "high", "--also", str(low))


def answers(project: Path) -> list[Answer]:
    return [read_answer(path) for path in sorted(project.glob("*answer.npz"))]


def with_few_rounds(project: Path) -> Path:
    if not ALL:
        change(project / "main.c", ("#define ROUNDS 50", "#define ROUNDS 2"))
    return project


def console(project: Path) -> str:
    board = Board.with_project(with_few_rounds(project))
    board.run()
    return board.console


def test_two_networks_take_turns_without_being_loaded_again(
    both: Path, tmp_path: Path, run: Emulate
) -> None:
    status, text = run(with_few_rounds(shutil.copytree(both, tmp_path / "both")))
    assert status == 0 and f"{100 if ALL else 4} inferences\n\n*** PASS ***" in text
    assert "\nhigh: As in high_answer.npz: " in text and "\nlow: As in low_answer.npz: " in text
    assert text.endswith(f"PASS ({100 if ALL else 4} inferences)\n")


def test_a_wrong_word_is_named_with_its_network(both: Path, tmp_path: Path, run: Emulate) -> None:
    project = with_few_rounds(shutil.copytree(both, tmp_path / "both"))
    words = re.findall(r"0x[0-9a-f]{8},", (project / "high_weights.h").read_text())
    wrong = f"0x{int(words[2][:-1], 16) ^ 1:08x}"  # behind address and count
    change(project / "high_weights.h", (words[2], f"{wrong},"))
    status, text = run(project)
    assert status == 1 and "\nlow: As in low_answer.npz: " in text
    pattern = rf"\nhigh: First wrong word: cnn_load_weights: .*kernel of .* found {wrong}\n"
    assert re.search(pattern, text)


@pytest.mark.skipif(not ALL, reason="make properties")
def test_registers_of_the_other_network_would_disturb(both: Path, tmp_path: Path) -> None:
    project = shutil.copytree(both, tmp_path / "both")
    text = (project / "high_all.c").read_text()
    (project / "high_all.c").write_text(text.replace("[i]) = 0;", "[i]);"))
    with pytest.raises(EmulatorError) as refusal:
        print(console(project))
    assert refusal.value.code == "E834"


def test_a_turn_leaves_exactly_the_registers_of_a_network_alone(both: Path) -> None:
    one, other = answers(both)
    for own, foreign in ((one, other), (other, one)):
        fresh, state = (
            dict(zip(x.registers.addresses.tolist(), x.registers.values.tolist(), strict=True))
            for x in (own, foreign)
        )
        turn = turn_of(own, [foreign], MAX78000)
        state |= dict.fromkeys(turn.zeros, 0) | dict(turn.idle)
        left = {a: v for a, v in state.items() if a not in fresh and v and a not in dict(turn.idle)}
        timing = {MAX78000.control_address(g, "SRAM") + own.apb_base for g in range(4)}
        assert set(left) <= timing and not set(turn.zeros) & set(fresh)
        enabled = MAX78000.control_registers["CTL"].pack(enable=1)
        assert turn.idle and not any(word & enabled for _, word in turn.idle)


def test_neither_kernels_nor_biases_are_shared(both: Path, tmp_path: Path) -> None:
    residents = [Resident(answer, {}, "both") for answer in answers(both)]
    sets = (residents, residents[:1], residents[1:])
    whole, one, other = (occupied_by(some, MAX78000) for some in sets)
    counts = [list(map(int.bit_count, taken.columns)) for taken in (whole, one, other)]
    assert counts[0] == [a + b for a, b in zip(*counts[1:], strict=True)]
    assert whole.names == ("high", "low") and sum(whole.biases) == 54
    solo = create(tmp_path, "high")
    with pytest.raises(DiagnosticError) as refusal:
        occupied_by([residents[1], Resident(answers(solo)[0], {}, str(solo))], MAX78000)
    (told,) = refusal.value.diagnostics
    assert told.code == "E443" and told.remedy == "Generate high again with --also both."
    assert told.message.startswith("high and low (both) have ") and "column 0" in told.message


@pytest.fixture(scope="module")
def compiled(both: Path) -> Residents:
    return Residents(both)


def test_a_word_that_is_not_as_expected_is_named_with_its_network(
    both: Path, compiled: Residents
) -> None:
    high, low = answers(both)
    right = list(verify_together(compiled, [high, low], MAX78000, both))
    assert [line.split()[0] for line in right] == ["high:", "low:"]
    registers = low.registers
    values = registers.values.copy()
    values[-1] ^= 1
    wrong = replace(low, registers=replace(registers, values=values))
    with pytest.raises(DiagnosticError) as refusal:
        list(verify_together(compiled, [high, wrong], MAX78000, both))
    first, count = refusal.value.diagnostics
    assert first.code == "E840" and f"0x{registers.addresses[-1]:08x}, " in first.message
    assert first.message.startswith("low: cnn_") and count.message.startswith("low: 1 words differ")


def test_what_a_network_destroys_of_another_one_is_refuted(
    both: Path, compiled: Residents, run: Emulate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is right when it is loaded, and behind itself."""
    execute = Residents.execute

    def destructive(network: Residents) -> NetworkRun:
        result = execute(network)
        if network.sources.prefix == "high_cnn":  # which does not have this kernel
            network.board.accelerator.memory.kernels[0, 0, 0] ^= 0x40
        return result

    monkeypatch.setattr(Residents, "execute", destructive)
    monkeypatch.setattr(proving, "loaded", lambda *_: compiled)
    status, text = run(both, "--prove")
    verdicts = text.splitlines()
    assert status == 1 and verdicts[0].startswith("PROVEN: 2 layers compute high.yaml")
    assert verdicts[1] == "low:"
    assert (
        verdicts[2] == "Behind high: kernels differ in 1 places, the first processor 0, column 0."
    )
    assert verdicts[-1] == "REFUTED" and "behind high: byte " in verdicts[-2]


def test_an_input_that_another_network_has_loaded_does_not_count(
    both: Path, tmp_path: Path, run: Emulate
) -> None:
    """Both have the same sample in the same place."""
    project = shutil.copytree(both, tmp_path / "both")
    change(project / "low.c", ("(number = 0; number < places", "(number = 9; number < places"))
    status, text = run(project, "--prove")
    assert status == 1 and text.splitlines()[-1] == "REFUTED"
    assert "The first layer does not read the sample of low.yaml: channel 0, row 0," in text


def test_three_networks_come_from_the_folder_of_two(
    both: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--also", str(both), "--build", "sdk", "--verify", "--prove")
    project = create(tmp_path, "low", *words, prefix="third")
    printed = capsys.readouterr()
    told = " ".join(printed.err.split())
    for name in ("low", "high", "third"):
        assert re.search(rf"(?m)^{name}: verified \d+ accelerator words and 2 layers$", printed.out)
    proofs = [line.split(" for ")[0] for line in printed.out.splitlines() if "PROVEN" in line]
    assert proofs == [
        "PROVEN: 2 layers compute high.yaml",
        "PROVEN: 2 layers compute low.yaml",
        "PROVEN: 2 layers compute low.yaml",
        "PROVEN: each of high, low, third finds its registers, kernels and biases behind every "
        "other",
    ]
    sizes = [9 * int(answer.kernels.counts.sum()) for answer in answers(project)]
    low, high, third = sizes[1], sizes[0], sizes[2]
    assert f"kernels high {high:,} + low {low:,} + third {third:,} = {sum(sizes):,} of" in told
    assert "biases high 27 + low 27 + third 27 = 81 of 2,048" in told and "[N430]" in told
    names = {path.name for path in project.iterdir()}
    assert {"low.h", "high.h", "third.h", "third_all.h", "low_answer.npz"} <= names
    assert "high_all.h" not in names
    sources = " ".join(sorted(n for n in names if n.endswith(".c") and n != "main.c"))
    assert f"SRCS += {sources}\n" in (project / "third.mk").read_text()
    assert occupied_by([Resident(a, {}, "") for a in answers(project)], MAX78000).names == (
        "high", "low", "third",
    )  # fmt: skip


def test_what_cannot_share_the_accelerator_is_refused(low: Path, tmp_path: Path) -> None:
    here = ("--also", str(low))
    for words, prefix, code, said in (
        (here, "low", "E919", "would have files of the same name"),
        (("--also", str(tmp_path)), None, "E918", "there is no project"),
        ((*here, "--device", "MAX78002"), None, "E918", "low is for MAX78000"),
        ((*here, "--apb-base", "0x60000000"), None, "E918", "the base address 0x50000000"),
        ((*here, "--weight-start", "4"), None, "E092", "--weight-start"),
        ((*here, "--no-kat"), None, "E092", "--no-kat"),
    ):  # fmt: skip
        with pytest.raises(DiagnosticError, match=said) as refusal:
            create(tmp_path, "high", *words, prefix=prefix)
        assert refusal.value.diagnostics[0].code == code
        assert not (tmp_path / "high").exists()


@pytest.mark.parametrize("part", ["kernels", "biases"])
@pytest.mark.parametrize("by", [-0x1000000, 0x7000000])
def test_places_that_a_chip_does_not_have_are_refused(both: Path, part: str, by: int) -> None:
    answer = answers(both)[0]
    words = getattr(answer, part)
    moved = replace(words, addresses=(words.addresses.astype(np.int64) + by))
    with pytest.raises(DiagnosticError, match="where MAX78000 has no memory") as refusal:
        occupied_by([Resident(replace(answer, **{part: moved}), {}, "both")], MAX78000)
    assert refusal.value.diagnostics[0].code == "E918"


def test_a_network_with_a_rolling_buffer_stays_alone(low: Path, tmp_path: Path) -> None:
    """Others would overwrite what it keeps from one inference to the next."""
    conv = {"op": "conv2d", "kernel_size": "1x1", "pad": 0, "out_offset": None}
    move = {"op": "passthrough", "name": "move", "in_sequences": "past", "in_dim": 1,
            "in_channels": 4, "buffer_shift": 1, "out_offset": None}  # fmt: skip
    layers = ({**conv, "name": "a"}, move, {**conv, "in_sequences": "a", "buffer_insert": 1},
              {**conv, "op": "conv1d", "kernel_size": 2, "in_sequences": "past", "in_dim": 2,
               "in_channels": 4})  # fmt: skip
    (tmp_path / "net.yaml").write_text(
        describe(*layers, data_buffer="[{name: past, channels: 4, dim: 2}]")
    )
    np.save(tmp_path / "x.npy", sample(3, 1, 1))
    kernels = save(tmp_path / "w.npy", [weights(4, 3, 1, 1), weights(4, 4, 1, 1), weights(2, 4, 2)])
    line = ["--config-file", str(tmp_path / "net.yaml"), "--device", "MAX78000", "--weight-input",
            kernels, "--sample-input", str(tmp_path / "x.npy"), "--test-dir", str(tmp_path),
            "--symbol-prefix", "past", "--prefix"]  # fmt: skip
    said = "cannot share the accelerator: .* rolling buffer"
    with pytest.raises(DiagnosticError, match=said) as refusal:
        targets.main("ai8xize.py", [*line, "second", "--also", str(low)])
    assert refusal.value.diagnostics[0].code == "E918" and not (tmp_path / "second").exists()
    assert targets.main("ai8xize.py", [*line, "first"]) == 0
    with pytest.raises(DiagnosticError, match=said):
        create(tmp_path, "high", "--also", str(tmp_path / "first"))


def test_networks_without_a_known_answer_or_names_of_their_own_are_refused(
    low: Path, tmp_path: Path
) -> None:
    (answer,) = answers(low)
    assert answer.symbol_prefix == "low" and answer.sample is not None
    assert np.array_equal(answer.sample, sample(3, 6, 6)) and answer.flash_bytes > 1000
    folder = shutil.copytree(low, tmp_path / "copy")
    for changed, said in (
        (replace(answer, symbol_prefix="", sample=None), "low cannot share the accelerator"),
        (replace(answer, symbol_prefix="../low"), "low cannot share the accelerator"),
        (replace(answer, symbol_prefix="other"), "there is no other_sampleoutput.h"),
    ):
        (folder / "answer.npz").write_bytes(write_answer(changed))
        with pytest.raises(DiagnosticError, match=said):
            create(tmp_path, "high", "--also", str(folder))
    (folder / "answer.npz").write_bytes(write_answer(replace(answer, flash_bytes=520_000)))
    with pytest.raises(DiagnosticError, match=r"low 520,000 \+ high .* has 524,288") as refusal:
        create(tmp_path, "high", "--also", str(folder))
    assert refusal.value.diagnostics[0].code == "E444"


def test_room_that_others_have_is_not_used(tmp_path: Path) -> None:
    """Columns and biases begin behind; where there is no room, the other network is named."""
    mapped, _ = build(
        tmp_path, describe(FIRST), sample(3, 6, 6), [weights(5, 3, 3, 3)], [np.arange(5)], MAX78000
    )
    for columns, biases, code in (
        (0xFF << 4, 3, None),
        (~(~0 << 767), 0, "E401"),
        (0, 510, "E403"),
    ):
        taken = replace(NOTHING, names=("other",), columns=(columns,) * 64, biases=(biases,) * 4)
        placement, problems = place_what_fits(mapped, PlaceOptions(occupied=taken))
        if code is None:
            placement.validate(mapped.network, MAX78000)
            (kernels,), (bias,) = placement.kernels.values(), placement.biases.values()
            assert (kernels.first, kernels.length, bias.offsets[0]) == (12, 5, 3)
            assert [len(group) for group in placement.bias_memory] == [5, 0, 0, 0]
        else:
            assert [problem.code for problem in problems] == [code]
            assert problems[0].message.endswith(" beside other")
            assert "leave out --also" in str(problems[0].remedy)


def test_places_that_are_chosen_are_those_that_others_leave() -> None:
    taken = Occupied(("other",), (0,) + (0b110 << 4,) * 63, (0,) * 4)
    memory = KernelBlocks(MAX78000, taken)
    assert [memory.find(0b11, columns) for columns in (4, 5)] == [0, 2]
    assert memory.find(0b01, 5) == 0 and not memory.fits(0b10, 1, 1)


def test_layers_with_four_outputs_at_a_time_do_not_overwrite_others(tmp_path: Path) -> None:
    """Their columns are spread over the memory."""
    text = describe({**FIRST, "calcx4": True})
    mapped, _ = build(
        tmp_path, text, sample(3, 6, 6), [weights(64, 3, 3, 3)], [np.arange(64)], MAX78002
    )
    part = MAX78002.kernel_part_columns
    taken = Occupied(("other",), (1 << part,) * 64, (0,) * 4)
    _, problems = place_what_fits(mapped, PlaceOptions(occupied=taken))
    assert [problem.code for problem in problems] == ["E443"]
    assert problems[0].message == "layer 0: the kernels would be stored in columns of other"
