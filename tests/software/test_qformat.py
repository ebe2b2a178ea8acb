"""Networks of 16 and 8 bits as checkpoints, and ai8xize.py's projects of them."""

from __future__ import annotations

import copy
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ai8xtools.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from ai8xtools.commands import targets
from ai8xtools.diagnostics import DiagnosticError
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.quantization.q15.execute import execute, quantize_input
from ai8xtools.quantization.q15.file import StoredNetwork, from_checkpoint, to_checkpoint
from ai8xtools.quantization.q15.formats import Guard
from ai8xtools.quantization.q15.graph import GraphBuilder, Weighted
from ai8xtools.quantization.q15.network import leaders_of
from ai8xtools.software.cmsis.orders import interleaved
from ai8xtools.software.profile import ANY
from ai8xtools.software.q15.build import build_qformat
from ai8xtools.software.q15.calls import program
from quantize import main as quantize_main
from tests.conftest import ROOT
from tests.software.compiled import SANITIZED, compiler, passed, run_project
from tests.software.library_stand_in import write_stand_in
from tests.software.test_q15 import (
    MODEL,
    every_step,
    normal,
    quantize,
    same_in_c,
    save_model,
)

needs_compiler = pytest.mark.skipif(compiler() is None, reason="no C compiler")
RANDOM = np.random.default_rng(11)


def stored_network(bits: int = 16, guard: Guard = Guard.WORST) -> StoredNetwork:
    graph = every_step(bits, whole=True)
    samples = normal(2, 2, 9, 8)
    network = quantize(graph, samples, bits, guard)
    return StoredNetwork(network, quantize_input(network, samples)[0], column_major=False)


def saved(folder: Path, stored: StoredNetwork) -> str:
    path = str(folder / "net.pth.tar")
    write_checkpoint(path, to_checkpoint(stored, "net"))
    return path


@needs_compiler
@pytest.mark.parametrize("bits", [8, 16])
def test_a_checkpoint_holds_the_whole_network(bits: int, tmp_path: Path) -> None:
    stored = stored_network(bits)
    path = saved(tmp_path, stored)
    read = from_checkpoint(read_checkpoint(path), path)
    inputs = RANDOM.integers(-100, 100, (3, *stored.sample.shape))
    before, after = execute(stored.network, inputs), execute(read.network, inputs)
    np.testing.assert_array_equal(
        before[stored.network.graph.output], after[read.network.graph.output]
    )
    np.testing.assert_array_equal(stored.sample, read.sample)
    layers = stored.network.layers.values()
    assert [one.formats for one in read.network.layers.values()] == [one.formats for one in layers]
    files = build_qformat(read, ANY).files
    assert passed(run_project(files, tmp_path / "built", SANITIZED))
    assert files == build_qformat(stored, ANY).files


@pytest.mark.parametrize(
    ("bits", "columns", "expected"),
    [
        (8, 5, "a1 b1 a3 b3 c1 d1 c3 d3 a2 b2 a4 b4 c2 d2 c4 d4 a5 b5 c5 d5 e1 e2 e3 e4 e5"),
        (16, 3, "a1 a2 b1 b2 c1 c2 d1 d2 a3 b3 c3 d3 e1 e2 e3"),
    ],
)
def test_weights_of_four_rows_take_turns(bits: int, columns: int, expected: str) -> None:
    names = np.array([[f"{row}{n}" for n in range(1, columns + 1)] for row in "abcde"])
    assert " ".join(interleaved(names, bits)) == expected


def fully_connected(bits: int, inputs: int, outputs: int) -> StoredNetwork:
    builder = GraphBuilder((inputs, 1, 1))
    made = builder.linear("fc", 0, normal(outputs, inputs), normal(outputs))
    samples = normal(2, inputs, 1, 1)
    network = quantize(builder.finished(made), samples, bits)
    return StoredNetwork(network, quantize_input(network, samples)[0], column_major=False)


@needs_compiler
@pytest.mark.parametrize(("inputs", "outputs"), [(5, 3), (11, 9), (16, 8), (3, 6)])
@pytest.mark.parametrize("bits", [8, 16])
def test_fully_connected_layers_of_taking_turns(
    bits: int, inputs: int, outputs: int, tmp_path: Path
) -> None:
    stored = fully_connected(bits, inputs, outputs)
    files = build_qformat(stored, ANY, interleaving=True).files
    assert f"arm_fully_connected_q{bits - 1}_opt(" in files["cnn.c"]
    assert passed(run_project(files, tmp_path / "ours", SANITIZED))
    library = str(write_stand_in(tmp_path / "library"))
    files = build_qformat(stored, ANY, interleaving=True, library=library).files
    assert passed(made_for_this_computer(files, tmp_path))


@needs_compiler
@pytest.mark.parametrize("bits", [8, 16])
def test_depthwise_convolutions_alone(bits: int, tmp_path: Path) -> None:
    builder = GraphBuilder((5, 6, 6))
    made = builder.convolution("deep", 0, normal(5, 1, 3, 3), normal(5), groups=5)
    samples = normal(2, 5, 6, 6)
    network = quantize(builder.finished(made), samples, bits)
    stored = StoredNetwork(network, quantize_input(network, samples)[0], column_major=False)
    assert passed(run_project(build_qformat(stored, ANY).files, tmp_path / "ours", SANITIZED))
    library = str(write_stand_in(tmp_path / "library"))
    files = build_qformat(stored, ANY, library=library).files
    assert passed(made_for_this_computer(files, tmp_path))


def made_for_this_computer(files: Any, folder: Path) -> subprocess.CompletedProcess[str]:
    for name, text in files.items():
        (folder / name).write_text(text)
    flags = "CFLAGS=-O1 -fsanitize=address,undefined"
    subprocess.run(["make", "-C", folder, flags], check=True, capture_output=True)
    return subprocess.run([folder / "main"], capture_output=True, text=True, check=False)


@needs_compiler
@pytest.mark.parametrize("bits", [8, 16])
def test_functions_of_a_library(bits: int, tmp_path: Path) -> None:
    folder = write_stand_in(tmp_path / "library")
    stored = stored_network(bits)
    files = build_qformat(stored, ANY, library=str(folder)).files
    assert passed(made_for_this_computer(files, tmp_path))
    assert f"arm_fully_connected_q{bits - 1}" not in files["nn_kernels.c"]
    assert '#include "arm_nnfunctions.h"' in files["nn_kernels.h"]
    assert f"arm_fully_connected_q{bits - 1}.c" in files["Makefile.ARM"]


@pytest.mark.parametrize(
    ("size", "channels", "filters", "padding", "bits", "name"),
    [
        (8, 2, 2, 1, 16, "arm_convolve_HWC_q15_fast"),
        (7, 2, 2, 1, 16, "arm_convolve_HWC_q15_basic"),  # the library computes pairs of pixels
        ((6, 8), 2, 2, 1, 16, "arm_convolve_HWC_q15_fast_nonsquare"),
        ((6, 7), 2, 2, 1, 16, "nn_convolve_HWC_q15_nonsquare"),
        ((6, 8), 3, 2, 1, 16, "nn_convolve_HWC_q15_nonsquare"),
        (8, 4, 2, 1, 8, "arm_convolve_HWC_q7_fast"),
        (1, 4, 2, 1, 8, "arm_convolve_HWC_q7_basic"),  # its fast one needs rows beside the padding
    ],
)
def test_functions_that_the_library_computes_right(
    size: int | tuple[int, int], channels: int, filters: int, padding: int, bits: int, name: str
) -> None:
    shape = (size, size) if isinstance(size, int) else size
    builder = GraphBuilder((channels, *shape))
    weights = normal(filters, channels, 3, 3)
    made = builder.convolution("conv", 0, weights, None, padding=(padding, padding))
    network = quantize(builder.finished(made), normal(1, channels, *shape), bits)
    stored = StoredNetwork(network, np.zeros((*shape, channels), np.int64), column_major=False)
    (call,) = build_qformat(stored, ANY).program.calls
    assert [function.name for function in call.functions] == [name]


def test_sums_that_wrap_around_are_not_for_a_library(tmp_path: Path) -> None:
    stored = stored_network(16, Guard.NONE)
    with pytest.raises(DiagnosticError, match="sums of this network may leave 32 bits.*E901"):
        build_qformat(stored, ANY, library=str(write_stand_in(tmp_path)))


def test_pooling_takes_the_place_of_its_data() -> None:
    builder = GraphBuilder((4, 16, 16))
    first = builder.convolution("one", 0, normal(8, 4, 1, 1), None)
    pooled = builder.pool("pool", first, False, (2, 2), (2, 2))
    last = builder.convolution("two", pooled, normal(2, 8, 1, 1), None)
    network = quantize(builder.finished(last), normal(1, 4, 16, 16))
    stored = StoredNetwork(network, np.zeros((16, 16, 4), np.int64), column_major=False)
    assert build_qformat(stored, ANY).need.arena < 2 * 16 * 16 * 8 + 2 * 8 * 8 * 8


@pytest.mark.parametrize("operands", [2, 3])
def test_a_sum_takes_the_place_of_one_of_two_operands(operands: int, tmp_path: Path) -> None:
    """With more of them those to come would be overwritten."""
    builder = GraphBuilder((2, 4, 4))
    sides = [builder.convolution("conv", 0, normal(2, 2, 1, 1), None) for _ in range(operands)]
    added = builder.add("add", sides)
    samples = normal(3, 2, 4, 4)
    network = quantize(builder.finished(builder.linear("fc", added, normal(3, 32), None)), samples)
    made = program(network)
    total, *parts = (made.plan.block_of(number) for number in (added, *sides))
    assert total is not None
    assert any(part is not None and part.touches(total) for part in parts) == (operands == 2)
    same_in_c(network, samples, tmp_path, made)


def test_more_than_65535_rows_are_refused() -> None:
    builder = GraphBuilder((1, 70000))
    made = builder.convolution("long", 0, normal(1, 1, 3, 1), None)
    network = quantize(builder.finished(made), normal(1, 1, 70000, 1))
    stored = StoredNetwork(network, np.zeros((70000, 1, 1), np.int64), column_major=False)
    with pytest.raises(DiagnosticError, match="long: 70,000 rows, columns or channels"):
        build_qformat(stored, ANY)


def changed(found: Checkpoint, *keys: Any, to: Any) -> Checkpoint:
    """Return a checkpoint with another value at a place of its description."""
    plan = copy.deepcopy(found.entries["qformat"])
    place = plan
    for key in keys[:-1]:
        place = place[key]
    place[keys[-1]] = to
    return found.with_entries(qformat=plan)


@pytest.mark.parametrize(
    ("keys", "value", "rule"),
    [
        (("version",), 3, "version 1, 2 or 4, not one of later tools"),
        (("bits",), 12, "8 or 16 bits"),
        (("guard",), "some", "the guard is one of"),
        (("input",), [2, 9], "input are 3 numbers"),
        (("input",), [2, 9, 1 << 20], "input are 3 numbers"),
        (("steps",), [], "it has steps"),
        (("steps", 0, "sources"), [7], "is a map made before"),
        (("steps", 0, "target"), 0, "makes a new map"),
        (("steps", 0, "kind"), "softmax", "is of a known kind"),
        (("steps", 0, "stride"), [0, 1], "stride are 2 numbers"),
        (("steps", 0, "padding"), [-1, 0], "padding are 2 numbers"),
        (("steps", 0, "groups"), 2, "fits its input"),
        (("steps", 0, "layer"), "other", "has its weight"),
        (("steps", 0, "formats"), [400, 3, 0], "shifts by 0 to 30"),
        (("steps", 0, "name"), "a\nb", "steps have names"),
        (("fractions",), [], "maps have fractions"),
        (("fractions", 1), 1 << 40, "maps have fractions"),
        (("steps", 13, "ceil"), 1, "rest keeps the last windows, or not"),
        (("steps", 14, "layer"), "15_offset", "tanh has its values"),
        (("steps", 15, "layer"), "14_tanh", "offset has its values"),
        (("steps", 16, "sources"), [0], "gains has sources"),
        (("steps", 18, "sources"), [15, 0], "two factors that fit together"),
        (("steps", 20, "rows"), [0, 99], "border has rows of its input"),
        (("output",), 99, "the output is a map made before"),
        (("output",), 1, "every step leads to the output"),
        (("column_major",), 1, "column_major is true or false"),
    ],
)
def test_damaged_networks_are_refused(keys: tuple[Any, ...], value: Any, rule: str) -> None:
    damaged = changed(to_checkpoint(stored_network(), "net"), *keys, to=value)
    with pytest.raises(InputError) as caught:
        from_checkpoint(damaged, "net.pth.tar")
    assert caught.value.code == "E744"
    assert rule in caught.value.message


@pytest.mark.parametrize(
    ("keys", "inside", "outside", "rule"),
    [
        (("input", 0), 1, 0, "input are 3 numbers"),
        (("input", 1), 65535, 65536, "input are 3 numbers"),
        (("input",), [1, 65535, 32768], [1, 65535, 32769], "maps fit a memory"),
        (("input",), [4, 16384, 32767], [4, 16384, 32768], "maps fit a memory"),
        (("fractions", 0), 1024, 1025, "maps have fractions"),
        (("fractions", 0), -1024, -1025, "maps have fractions"),
        (("steps", 0, "formats", 1), 1024, 1025, "formats are 3 numbers"),
        (("steps", 0, "formats", 1), -1024, -1025, "formats are 3 numbers"),
        (("steps", 0, "stride", 0), 1, 0, "stride are 2 numbers"),
        (("steps", 0, "stride", 1), 65536, 65537, "stride are 2 numbers"),
        (("steps", 0, "padding", 1), 65536, 65537, "padding are 2 numbers"),
        (("steps", 11, "padding", 0), 1, 2, "no window is outside"),
        (("steps", 10, "extra", 0), 0, -1, "extra are 2 numbers"),
    ],
)
def test_limits_of_numbers_are_where_the_rule_says(
    keys: tuple[Any, ...], inside: Any, outside: Any, rule: str
) -> None:
    """At the limit a network is taken, or refused for what follows from the number."""
    assert rule not in refusal(sound(), *keys, to=inside)
    assert rule in refusal(sound(), *keys, to=outside)


@cache
def sound() -> Checkpoint:
    return to_checkpoint(stored_network(), "net")


def refusal(found: Checkpoint, *keys: Any, to: Any) -> str:
    """Return why a network with another value is refused; empty if it is not."""
    try:
        from_checkpoint(changed(found, *keys, to=to), "x")
    except InputError as exc:
        assert exc.code == "E744"
        return exc.message
    return ""


def test_limits_of_what_is_computed_from_numbers_are_where_the_rule_says() -> None:
    found = sound()
    plan = found.entries["qformat"]
    _, kb, _ = plan["steps"][0]["formats"]
    (kx, ko), rule = plan["fractions"][:2], "shifts by 0 to 30"
    for edge, by in ((30 - kx + min(kb, ko), 1), (max(kb, ko) - kx, -1)):
        assert rule not in refusal(found, "steps", 0, "formats", 0, to=edge)
        assert rule in refusal(found, "steps", 0, "formats", 0, to=edge + by)
    steps, rule = plan["steps"][:1], "fewer than 65536 rows and columns"
    alone = changed(changed(found, "steps", to=steps), "output", to=1)
    kernel = found.state_dict[f"{steps[0]['layer']}.weight"].shape[2]
    edge = (65535 - 1 + kernel - plan["input"][1]) // 2
    assert not refusal(alone, "steps", 0, "padding", 0, to=edge)
    assert rule in refusal(alone, "steps", 0, "padding", 0, to=edge + 1)
    widest = 65535 - ((plan["input"][2] - 1) * 2 + 1)
    for extra in (widest, widest + 1):
        step = {**steps[0], "spread": [1, 2], "extra": [0, extra]}
        assert ("spreads to" in refusal(alone, "steps", to=[step])) == (extra > widest)
    assert "it has steps" not in refusal(found, "steps", to=steps * 10_000)
    assert "it has steps" in refusal(found, "steps", to=steps * 10_001)


@pytest.mark.parametrize("by", [-1, 1])
def test_maps_that_belong_together_have_one_fraction(by: int) -> None:
    """All but the input and the last sums: pooling, limits, sums and joints keep the format."""
    stored = stored_network()
    found, graph = to_checkpoint(stored, "net"), stored.network.graph
    weights = [step for step in graph.steps if isinstance(step, Weighted)]
    weighted = {one for step in weights for one in (step.source, step.target)}
    leaders = leaders_of(graph)
    alone = {n for n, leader in enumerate(leaders) if leaders.count(leader) == 1} - {
        step.target for step in weights
    }
    for number, fraction in enumerate(stored.network.fractions[1 : graph.output], 1):
        if number in alone:
            continue
        with pytest.raises(InputError) as caught:
            from_checkpoint(changed(found, "fractions", number, to=fraction + by), "x")
        assert caught.value.code == "E744"
        assert number in weighted or "belong together" in caught.value.message
    lower = changed(found, "fractions", graph.output, to=stored.network.fractions[-1] - 1)
    assert from_checkpoint(lower, "x").network.fractions[-1] == stored.network.fractions[-1] - 1


def test_whatever_a_file_says_is_computed_or_refused() -> None:
    found = to_checkpoint(stored_network(8), "net")
    values = [None, -1, 0, 1, 3, 1 << 70, "x", [], [1], [1, 1], [2, 2], {}, True, 0.5]
    plan = found.entries["qformat"]
    for _ in range(150):
        step = RANDOM.integers(-4, len(plan["steps"]))
        keys: tuple[Any, ...] = (RANDOM.choice([*plan]),)
        if step >= 0:
            keys = ("steps", int(step), RANDOM.choice([*plan["steps"][step]]))
        try:
            read = from_checkpoint(changed(found, *keys, to=values[RANDOM.integers(14)]), "x")
        except InputError as exc:
            assert exc.code == "E744"
        else:
            execute(read.network, read.sample[None])


def test_integers_of_another_width_and_other_samples_are_refused() -> None:
    found = to_checkpoint(stored_network(8), "net")
    name = next(iter(found.state_dict))
    wide = {**found.state_dict, name: found.state_dict[name].astype(np.int16) + 200}
    sample = found.entries["sample"]
    for damaged in (
        found.with_entries(state_dict=wide),
        found.with_entries(sample=sample[:-1]),
        found.with_entries(sample=sample.astype(np.float32)),
    ):
        with pytest.raises(InputError, match="no sound network"):
            from_checkpoint(damaged, "net.pth.tar")


def create(folder: Path, *words: str) -> int:
    given = ["--prefix", "net", "--test-dir", str(folder), "--overwrite"]
    return targets.main("ai8xize.py", [*words, *given])


@needs_compiler
def test_from_training_to_a_microcontroller(tmp_path: Path) -> None:
    save_model(tmp_path, MODEL)
    np.save(tmp_path / "x.npy", RANDOM.normal(size=(4, 1, 28, 28)))
    done = subprocess.run(
        [sys.executable, ROOT / "quantize.py", "net.pth.tar", "net-q15.pth.tar", "--device", "Q15",
         "--model", "net.py:Net", "--calib", "x.npy"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    path = str(tmp_path / "net-q15.pth.tar")
    np.save(tmp_path / "one.npy", RANDOM.normal(size=(1, 28, 28)).astype(np.float32))
    words = ("--checkpoint-file", path, "--sample-input", str(tmp_path / "one.npy"))
    assert create(tmp_path, "--device", "MCU", "--mcu", "stm32f103c8", *words) == 0
    files = {one.name: one.read_text() for one in (tmp_path / "net").iterdir()}
    assert passed(run_project(files, tmp_path / "built"))
    assert "cortex-m3" in files["Makefile.ARM"] and "arm_convolve_HWC_q15" in files["log.txt"]
    library = str(write_stand_in(tmp_path / "library"))
    assert create(tmp_path, "--device", "CMSIS-NN", "--cmsis-nn", library, *words) == 0
    assert library in (tmp_path / "net" / "Makefile").read_text()


def test_too_small_a_microcontroller_is_refused_with_what_decides(tmp_path: Path) -> None:
    builder = GraphBuilder((2, 9, 8))
    pooled = builder.pool("max", 0, False, (2, 2), (1, 1))
    wide = builder.convolution("conv", pooled, normal(30, 2, 1, 1), None)
    graph = builder.finished(builder.linear("fc", wide, normal(3, 30 * 56), None))
    sample = np.zeros((9, 8, 2), np.int64)
    network = quantize(graph, normal(2, 2, 9, 8))
    path = saved(tmp_path, StoredNetwork(network, sample, column_major=False))
    small = ("--device", "MCU", "--mcu", "rp2040", "--checkpoint-file", path)
    with pytest.raises(DiagnosticError) as caught:
        create(tmp_path / "out", *small, "--l1", "2K", "--flash", "4K")
    ram, flash = (one.message for one in caught.value.diagnostics)
    assert ram.startswith("rp2040 has 2,048 bytes of RAM, the smallest plan (rows) needs")
    assert "map" in ram and "of stack" in ram
    assert flash.startswith("rp2040 has 4,096 bytes of flash") and "those of " in flash
    assert not (tmp_path / "out").exists()


def test_a_plan_that_is_asked_for_is_taken_or_refused(tmp_path: Path) -> None:
    path = saved(tmp_path, stored_network())
    words = ("--device", "MCU", "--mcu", "rp2040", "--checkpoint-file", path, "--scheme")
    for scheme in ("resident", "rows"):
        assert create(tmp_path, *words, scheme) == 0
        assert f"\nPlan: {scheme}, " in (tmp_path / "net" / "log.txt").read_text()
        with pytest.raises(DiagnosticError, match=rf"the smallest plan \({scheme}\)"):
            create(tmp_path, *words, scheme, "--l1", "2K")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--device", "MAX78000"], "run without the accelerator: --device MCU or CMSIS-NN"),
        (["--device", "CMSIS-NN", "--cmsis-nn", "x", "--scheme", "rows"], "take whole images"),
    ],
)
def test_wrong_usage(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = saved(tmp_path, stored_network(8))
    with pytest.raises(SystemExit) as caught:
        targets.main(
            "ai8xize.py",
            [*words, "--checkpoint-file", path, "--prefix", "net", "--test-dir", "out"],
        )
    assert caught.value.code == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (np.zeros((1, 9, 8)), "no sample of this network"),
        (np.zeros((2, 9, 8), np.int64), "no sample of this network"),
        (np.full((2, 9, 8), np.inf), "not finite"),
    ],
)
def test_samples_that_do_not_fit_are_refused(values: Any, said: str, tmp_path: Path) -> None:
    path = saved(tmp_path, stored_network())
    np.save(tmp_path / "x.npy", values)
    with pytest.raises(InputError, match=said):
        create(tmp_path / "out", "--device", "CMSIS-NN", "--checkpoint-file", path,
               "--sample-input", str(tmp_path / "x.npy"))  # fmt: skip


def test_options_of_other_plans_are_refused(tmp_path: Path) -> None:
    words = ("--device", "MCU", "--checkpoint-file", saved(tmp_path, stored_network()))
    for option in ("--l2 64K", "--scheme planes", "--no-bias", "--container x.nnb --mcu rp2040"):
        said = rf"{option.split(' ')[0]}.*: .* with a checkpoint of 16 or 8 bits"
        with pytest.raises(DiagnosticError, match=said):
            create(tmp_path / "out", *words, *option.split())


def test_integers_are_not_quantized_again(tmp_path: Path) -> None:
    path = saved(tmp_path, stored_network())
    np.save(tmp_path / "x.npy", RANDOM.normal(size=(4, 2, 9, 8)))
    for device in ("Q15", "FIXED", "MAX78000"):
        words = [path, str(tmp_path / "out.nnb"), "--device", device]
        words += [] if device == "MAX78000" else ["--calib", str(tmp_path / "x.npy")]
        with pytest.raises(InputError, match="is quantized to 16 or 8 bits"):
            quantize_main(words)
    assert not (tmp_path / "out.nnb").exists()


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        create(tmp_path / "out", "--device", "MCU", "--mcu", "rp2040", "--checkpoint-file", "none")


@pytest.mark.parametrize("device", [("MAX78000",), ("MCU", "--mcu", "rp2040")])
def test_no_description_stands_beside_it(device: tuple[str, ...], tmp_path: Path) -> None:
    path = saved(tmp_path, stored_network())
    words = ["--config-file", str(ROOT / "networks/digits-chw-ai85.yaml"), "--sample-input",
             str(ROOT / "tests/sample_digits.npy"), "--checkpoint-file", path]  # fmt: skip
    with pytest.raises(DiagnosticError, match="a whole network of 16 or 8 bits.*E247"):
        create(tmp_path / "out", "--device", *device, *words)
