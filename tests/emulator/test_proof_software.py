"""`emulate.py --prove` without accelerator: right C is proven, wrong C refuted with an input."""

from __future__ import annotations

import itertools
import shutil
import struct
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest

import ai8xtools.commands.proof.counterexample as search
from ai8xtools.commands.emulate.simulation import (
    Simulation,
    built_again,
    built_for_software,
)
from ai8xtools.commands.proof.counterexample import Bytes, Integers
from ai8xtools.commands.proof.reference import Reference
from ai8xtools.commands.proof.software import CompiledQuestion, judge_program, unknown_kernels
from ai8xtools.diagnostics import DiagnosticError
from ai8xtools.diagnostics.outcome import recorded
from ai8xtools.emulator import EmulatorError
from ai8xtools.emulator.cpu.architecture import ARCHITECTURES
from ai8xtools.emulator.errors import StoppedError
from ai8xtools.emulator.plain import compile_plain
from ai8xtools.emulator.proof.dataflow import Dataflow, Values
from ai8xtools.emulator.proof.fingerprints import Mixer
from ai8xtools.emulator.proof.kernels import Convolution, Parameters, convolution
from ai8xtools.emulator.proof.planes import Planes, refuse_overlaps
from ai8xtools.software.cores import CORES as ALL_CORES
from ai8xtools.software.fuse import fuse
from ai8xtools.software.graph import Convolution as Step
from ai8xtools.software.kernels.lanes import input_bounds
from ai8xtools.software.kernels.table import KERNELS
from ai8xtools.software.lower import lower
from tests.conftest import ROOT
from tests.emulator.conftest import Emulate
from tests.emulator.trees import change
from tests.software.forced_schemes import forced_files
from tests.software.networks import random_network
from tests.software.proofs import outcome, proven, stream
from tests.software.same_on_cores import CORES, written
from tests.software.test_command import create


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    assert create(folder, "--mcu", "stm32l4r5", "--scheme", "rows") == 0
    return folder / "net"


@pytest.fixture
def project(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(search, "_SECONDS", 0.0)
    return Path(shutil.copytree(made, tmp_path / "net"))


def test_a_wrong_weight_is_refuted_with_an_input(project: Path, run: Emulate) -> None:
    text = (project / "weights.h").read_text()
    head, _, rest = text.partition("#define BIAS_1 { \\\n")
    number, _, rest = rest.partition(",")
    changed = f"{head}#define BIAS_1 {{ \\\n{int(number) + 4096},{rest}"
    (project / "weights.h").write_text(changed)
    status, told = run(project, "--prove")
    assert status == 1
    assert "The program does not compute layer 1 (" in told
    assert "digits-chw-ai85.yaml:" in told and ": 1 of 48 channels depart, from channel 0, " in told
    assert "Counterexample: the sample: byte " in told
    assert told.splitlines()[-1] == "REFUTED"


def test_data_that_are_overwritten_are_refuted(project: Path, run: Emulate) -> None:
    code = (project / "cnn.c").read_text()
    rings = [line for line in code.splitlines() if "NN_SHARE(3)" in line]
    smaller = [line.replace("NN_SHARE(3)", "NN_SHARE(2)").replace(", 3 }", ", 2 }")
               for line in rings]  # fmt: skip
    change(project / "cnn.c", *zip(rings, smaller, strict=True))
    status, told = run(project, "--prove")
    assert (status, told.splitlines()[-1]) == (1, "REFUTED")


def test_kernels_of_another_version_are_not_taken_for_known(project: Path) -> None:
    assert unknown_kernels(project) == ""
    change(project / "nn_kernels.h", ("NN_FOR_CORTEX_M4", "NN_FOR_CORTEX_M0PLUS"))
    assert unknown_kernels(project) == ""
    change(project / "nn_kernels.h", ("#define NN_FOR", "#define NDEBUG\n#define NN_FOR"))
    assert unknown_kernels(project) == "the file nn_kernels.h is not that of this version"
    kernels = project / "nn_kernels.c"
    code = kernels.read_text()
    change(kernels, ("int8_t *next = to;", "int8_t *next = to + 0;"))
    assert unknown_kernels(project) == "the file nn_kernels.c is not that of this version"
    kernels.write_text(code.replace("\n\n", '\n#define nn_narrow wrong // "nn_kernels.h"\n\n', 1))
    assert unknown_kernels(project) == "the file nn_kernels.c is not that of this version"


def test_what_a_project_wrote_about_its_making_is_left_alone(project: Path) -> None:
    result = project.parent / "r.json"
    result.write_text("a file of the user")
    change(project / "cnn.c", ("ai8xize.py --", f"ai8xize.py --result-json {result} --"))
    with recorded(("emulate.py",)) as outcome:
        assert isinstance(built_again(project), Simulation)
    assert not outcome.at_end and result.read_text() == "a file of the user"


def test_a_program_that_looks_at_data_is_not_proven(project: Path, run: Emulate) -> None:
    change(project / "cnn.c", ("    need_2(nn_end(", "    if (cnn_arena[y] == 77) return;\n"
                               "    need_2(nn_end("))  # fmt: skip
    status, told = run(project, "--prove")
    assert status == 1
    assert "reads data itself, at address 0x2" in told


def test_a_program_that_stops_is_refuted(project: Path, run: Emulate) -> None:
    change(project / "cnn.c", ("    cnn_output = (int8_t *)out;", "    cnn_output = (int8_t *)0;"))
    status, told = run(project, "--prove")
    assert (status, told.splitlines()[-1]) == (1, "REFUTED")
    assert "Counterexample: the sample: " in told and "where the chip has nothing" in told


def test_an_input_for_which_a_program_stops_is_a_counterexample(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that the search comes to, after others for which it does not."""
    simulation = built_again(project)
    assert isinstance(simulation, Simulation)
    reference = Reference(simulation.name, simulation.network, average_rounding=True)

    class Stops:
        def __init__(self) -> None:
            self.reference, self.size = reference, 1

        def run(self, images: Sequence[Integers]) -> tuple[Bytes, list[Integers]]:
            if (images[0] == 127).all():
                raise StoppedError("E820", "main() fails")
            return reference.result(reference.outputs_for(images[0]), orders)[None], []

    orders = reference.usual_orders
    monkeypatch.setattr(search, "_SECONDS", 10.0)
    example = search.counterexample(Stops(), orders)
    assert example is not None
    assert (example.recipe, example.stopped) == ("numpy.full((1, 8, 8), 127)", "main() fails")


def test_the_sample_that_is_not_here_is_named(tmp_path: Path) -> None:
    description = tmp_path / "net.yaml"
    text = (ROOT / "networks" / "digits-chw-ai85.yaml").read_text()
    description.write_text(text.replace("dataset: digits", "dataset: others"))
    weights = ROOT / "trained" / "digits-ai85digitsnet-qat8-q.pth.tar"
    with pytest.raises(DiagnosticError, match=r"'tests/sample_others\.npy' does not") as caught:
        built_for_software(str(description), str(weights))
    assert "Put it there" in str(caught.value) and "--sample-input" not in str(caught.value)


@pytest.mark.parametrize("number", [5, 2])
def test_random_networks_are_proven(tmp_path: Path, number: int) -> None:
    _, said, _, _ = outcome(random_network(number + 100), number, tmp_path)
    assert said == "proven"


def test_layers_in_chains_of_channels_are_proven(tmp_path: Path) -> None:
    network = random_network(0)
    files = forced_files(network, "chain")
    assert "    nn_run_channels(" in files["cnn.c"]
    assert proven(files, network, "cortex-m4", tmp_path)[1] == "proven"
    change(tmp_path / "nn_levels.c", ("*out++ = ", "*out++ = (int8_t)"))
    assert unknown_kernels(tmp_path) == "the file nn_levels.c is not that of this version"


def test_copies_of_levels_are_there_once_they_are_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "_SECONDS", 0.0)
    network = random_network(3)
    files = forced_files(network, "rows")
    assert files["nn_levels.c"].count("nn_copy_wait(NN_OUTPUT);") == 2
    files["nn_levels.c"] = files["nn_levels.c"].replace("nn_copy_wait(NN_OUTPUT);", "")
    image = compile_plain(written(files, tmp_path), ARCHITECTURES["cortex-m4"]).image
    question = CompiledQuestion(Reference.of("", network, average_rounding=False), image, 60.0)
    assert judge_program(question).reasons == ("cnn_run() does not wait for all of its copies",)


def test_layers_in_planes_are_proven_and_wrong_groups_of_filters_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "_SECONDS", 0.0)
    network = random_network(0)
    project = written(forced_files(network, "planes"), tmp_path)
    image = compile_plain(project, ARCHITECTURES["cortex-m4"]).image
    question = CompiledQuestion(Reference.of("", network, average_rounding=False), image, 60.0)
    assert judge_program(question).proven and unknown_kernels(project) == ""
    at = Planes.at
    monkeypatch.setattr(Planes, "at", lambda *where: replace(at(*where), filters=4))
    (reason,) = judge_program(question).reasons
    assert reason.startswith("the program does not compute layer 0, ") and "5 of 5" in reason


def test_a_layer_with_two_things_in_one_place_is_refused() -> None:
    refuse_overlaps([(100, 4), (104, 8), (96, 4)])
    with pytest.raises(EmulatorError, match="two things at address 0x00000067"):
        refuse_overlaps([(100, 4), (104, 8), (103, 1)])


def test_a_library_is_proven(tmp_path: Path, run: Emulate) -> None:
    assert create(tmp_path, "--mcu", "stm32l4r5", "--symbol-prefix", "My_net") == 0
    project = tmp_path / "net"
    status, text = run(project, "--prove")
    assert status == 0
    assert "\nPROVEN: 4 layers compute digits-chw-ai85.yaml for every input" in text
    change(project / "My_net_nn.h", ("My_net_nn_place(const", "nn_place(const"))
    assert unknown_kernels(project, "My_net_") == "the file My_net_nn.h is not that of this version"


def test_a_stream_is_proven_hop_by_hop(tmp_path: Path, run: Emulate) -> None:
    assert create(tmp_path, "--mcu", "stm32l4r5", "--stream", "4") == 0
    project = tmp_path / "net"
    status, text = run(project, "--prove")
    assert (status, text.splitlines()[-1].split(":")[0]) == (0, "PROVEN")
    change(project / "nn_slide.c", ("i + dropped < size", "i + dropped + 1 < size"))
    assert unknown_kernels(project) == "the file nn_slide.c is not that of this version"


def test_a_stream_whose_first_rows_are_lost_is_refuted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "_SECONDS", 0.0)
    rings = [f"NN_SHARE({n}), 65535, {n} }}, 12, 1" for n in (3, 2)]
    found = stream(1, tmp_path, lambda code: code.replace(*rings))
    assert found is not None and found[1].startswith("WRONG: ('the program delivers another value")


@cache
def _steps() -> list[Step]:
    graphs = [fuse(lower(random_network(seed))) for seed in range(12)]
    return [step for graph in graphs for step in graph.steps if isinstance(step, Step)]


@pytest.mark.parametrize("core", CORES)
def test_kernels_are_read_as_they_were_packed(core: str) -> None:
    """Weights in the order of every kernel, read by what knows nothing of what packs them."""
    count = 0
    for step, kernel in itertools.product(_steps(), KERNELS):
        if kernel.suits(step, ALL_CORES[core]):
            packed = kernel.pack(step)
            memory = packed.values.tobytes() + kernel.start(step).astype("<i4").tobytes()
            memory += bytes(4096)
            given = Parameters(
                0, packed.values.nbytes, step.channels, step.filters, step.in_size[1],
                step.groups, packed.flush, step.pad[1], *step.kernel, step.dilation,
                step.spread[1], step.stride[1], step.right, step.low, 2 * step.wide,
            )  # fmt: skip
            read = partial(_part, memory)
            found = convolution(kernel.function, given, read, small=core == "cortex-m0plus")
            weights = step.weights.transpose(0, 2, 3, 1).reshape(found.weights.shape)
            assert (found.weights == weights).all() and (found.start == step.start).all()
            low, high = input_bounds(step.input, given.taps)
            found.refuse_long_runs(low, high)
            count += 1
    assert count > 20


def test_weights_of_no_filter_and_no_input_are_zeros() -> None:
    """Products of neighbors would contain others."""
    given = Parameters(0, 8, 3, 1, 1, 1, 0, 0, 1, 1, 1, 1, 1, 7, -128, 0)
    for place in range(8):
        changed = bytearray([128, 0] * 4 + [0] * 12)
        changed[place] ^= 1
        read = partial(_part, bytes(changed))
        if place in (0, 2, 4):  # of inputs 0, 2 and 1 of the first filter
            assert convolution("nn_conv_dsp_pixel", given, read, small=False).weights.any()
        else:
            with pytest.raises(EmulatorError, match="are not zeros"):
                convolution("nn_conv_dsp_pixel", given, read, small=False)


def _part(memory: bytes, address: int, size: int) -> bytes:
    return memory[address : address + size]


def test_runs_whose_sums_may_leave_16_bits_are_refused() -> None:
    weights = np.full((1, 1, 3), 127)
    given = Parameters(0, 0, 3, 1, 1, 1, 0, 0, 1, 1, 1, 1, 1, 7, -128, 0)
    start = np.zeros(1, np.int64)
    low, high = np.full(3, -128), np.full(3, 127)
    for lengths, right in (([2, 1], True), ([3], False), ([1, 2], True)):
        conv = Convolution(given, weights, start, ((slice(0, 1), np.array(lengths)),), 0)
        if right:
            conv.refuse_long_runs(low, high)
            continue
        with pytest.raises(EmulatorError, match="leave 16 bits"):
            conv.refuse_long_runs(low, high)


@pytest.mark.parametrize(("known", "second", "right"), [(True, 127, False), (False, 127, True),
                                                        (False, 0, False)])  # fmt: skip
def test_sums_of_unknown_data_may_leave_16_bits(known: bool, second: int, right: bool) -> None:
    """But not those that share a register with a sum that is known."""
    flow, mixer = Dataflow(), Mixer()
    weights = np.full((1, 2, 3), 127)
    weights[0, 1] = second
    given = Parameters(0, 0, 3, 2, 1, 1, 0, 0, 1, 1, 1, 1, 1, 7, -128, 0)
    runs = ((slice(0, 2), np.array([3])),)
    conv = Convolution(given, weights, np.zeros(2, np.int64), runs, 0)
    first, values = flow.leaves(3), Values(flow, mixer)
    values.give(first, mixer.numbered("input", 3))
    numbers = first + np.arange(3) if known else flow.unknown(3)
    flow.compute(conv, numbers[None], 2)
    if right:
        assert len(values.compute()) == 2
        return
    with pytest.raises(EmulatorError, match="leave 16 bits"):
        values.compute()


def test_sums_that_may_leave_32_bits_are_refused() -> None:
    given = Parameters(0, 0, 1, 1, 1, 1, 0, 0, 1, 1, 1, 1, 1, 7, -128, 0)
    ends = np.array([-128, 127]).reshape(1, 1, 1, 2)
    for start, right in ((2**31 - 1 - 127, True), (2**31 - 127, False)):
        conv = Convolution(given, np.ones((1, 1, 1), np.int64), np.array([start]), (), 0)
        if right:
            assert (conv.bounds(ends) == [[127, 127]]).all()
            continue
        with pytest.raises(EmulatorError, match="leave 32 bits"):
            conv.bounds(ends)


@pytest.mark.parametrize(("field", "value"), [(2, 0), (3, 0), (3, 1 << 30), (10, 0), (14, 1)])
def test_parameters_of_no_convolution_are_refused(field: int, value: int) -> None:
    fields = [0, 0, 3, 1, 1, 1, 0, 0, 1, 1, 1, 1, 1, 7, 0, 0]
    layout = struct.Struct("<4I3Hh5HbbB")
    memory = layout.pack(*fields)
    assert Parameters.at(0, partial(_part, memory)).inputs == 3
    fields[field] = value
    with pytest.raises(EmulatorError, match="no convolution|no kernel"):
        Parameters.at(0, partial(_part, layout.pack(*fields)))


def test_memory_that_was_overwritten_is_unlike_all_other() -> None:
    flow = Dataflow()
    flow.add_region(100, 8)
    before = flow.read(np.array([100, 101]))
    assert before[0] != before[1] and (before < 0).all()
    flow.write(100, np.array([3, 4]))
    flow.forget(101, 1)
    after = flow.read(np.array([100, 101, -1]))
    assert after[0] == 3 and after[1] < 0 and after[1] != before[1] and after[2] == 0
    with pytest.raises(EmulatorError, match="no memory for data") as refused:
        flow.read(np.array([108]))
    assert refused.value.code == "E883"
