"""Networks of 16 and 8 bits: known answers, functions of C, guards, and quantize.py as a whole."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ai8xtools.commands.targets import main
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.quantization.q15.execute import execute, quantize_input, wrapped
from ai8xtools.quantization.q15.floating import compute, measure
from ai8xtools.quantization.q15.formats import Guard
from ai8xtools.quantization.q15.graph import Graph, GraphBuilder
from ai8xtools.quantization.q15.network import QuantizedNetwork, quantize_network
from ai8xtools.quantization.q15.report import ErrorSums
from ai8xtools.software.plan.schemes import Scheme
from ai8xtools.software.profile import ANY
from ai8xtools.software.q15.build import planned
from ai8xtools.software.q15.calls import Program, program
from ai8xtools.software.q15.emit import Sample, emit
from tests.conftest import ROOT
from tests.software.compiled import SANITIZED, compiler, passed, run_project
from tests.software.q15_answers import (
    c_differences,
    differences,
    fails_on_core,
    graph_of,
    quantized,
    read_case,
    samples_of,
)
from tests.software.q15_extremes import largest_sums, random_network

RANDOM = np.random.default_rng(3)
needs_compiler = pytest.mark.skipif(compiler() is None, reason="no C compiler")


def normal(*shape: int) -> NDArray[np.float64]:
    return RANDOM.normal(size=shape)


def quantize(
    graph: Graph, samples: NDArray[np.float64], bits: int = 16, guard: Guard = Guard.WORST
) -> QuantizedNetwork:
    ranges = measure(graph, [samples]).largest
    return quantize_network(graph, ranges, ranges, bits, guard)


def same_in_c(
    network: QuantizedNetwork,
    samples: NDArray[np.float64],
    folder: Path,
    made: Program | None = None,
) -> None:
    integers = quantize_input(network, samples)
    output = execute(network, integers)[network.graph.output]
    files = emit(network, Sample(integers[0], output[0]), "test", "test", code=made)
    result = run_project(files, folder, SANITIZED)
    assert passed(result), result.stdout + result.stderr


def every_step(bits: int, *, whole: bool = False) -> Graph:
    """A network with every kind of step and every function; some read `whole` maps."""
    builder = GraphBuilder((2, 9, 8))
    first = builder.convolution("oblong", 0, normal(5, 2, 3, 2), normal(5), padding=(1, 0))
    first = builder.clip("relu", first, 0, np.inf)
    second = builder.convolution("deep", first, normal(10, 1, 3, 3), None, padding=(1, 1), groups=5)
    joined = builder.concat("cat", [first, second])
    even = builder.convolution("even", joined, normal(4, 15, 3, 3), normal(4), (1, 1), (1, 1))
    other = builder.convolution("dilated", first, normal(4, 5, 3, 3), None, (1, 1), (2, 2), (2, 2))
    summed = builder.add("add", [even, other, even])
    clipped = builder.clip("limit", summed, -3.0, 2.5)
    pairs = builder.convolution("groups", clipped, normal(6, 2, 2, 3), normal(6), padding=(1, 0),
                                groups=2)  # fmt: skip
    wide = builder.enlarge("enlarge", pairs, (1, 2))
    apart = builder.convolution("transposed", wide, normal(4, 3, 3, 2), normal(4), padding=(2, 0),
                                groups=2, spread=(2, 2), extra=(1, 0))  # fmt: skip
    largest = builder.pool("max", apart, False, (3, 3), (2, 2), (1, 1))
    mean = builder.pool("mean", largest, True, (2, 2), (1, 1))
    rest = builder.pool("rest", mean, bits == 8, (2, 3), (2, 2), ceil=True)
    channels, rows, columns = builder.shape(rest)
    curved = builder.table("tanh", rest, lambda x: 90 * np.tanh(x / 90))
    offset = builder.constant("offset", normal(channels, rows, columns))
    gains = builder.constant("gains", normal(1, rows, 1))
    squared = builder.multiply("square", [builder.add("offset", [curved, offset]), curved])
    mean = builder.multiply("gains", [squared, gains])
    if whole:
        mean = builder.gather("border", mean, [1, *range(rows), 0], [0, *range(columns)])
        gate = builder.pool("gate", mean, True, builder.shape(mean)[1:], (1, 1))
        mean = builder.flatten("flat", builder.multiply("gated", [mean, gate]))
    channels, rows, columns = builder.shape(mean)
    result = builder.linear("fc", mean, normal(3, channels * rows * columns), 8 * normal(3))
    return builder.finished(result)


def test_columns_before_rows_compute_the_same() -> None:
    graph, samples = every_step(16, whole=True), normal(2, 2, 9, 8)
    turned = graph.transposed()
    found = compute(turned, samples.swapaxes(2, 3))[turned.output]
    np.testing.assert_allclose(found, compute(graph, samples)[graph.output], rtol=1e-9)


@pytest.mark.parametrize("name", ["conv_neg_out_shift", "conv_note_mode_wrap", "net_q15_small"])
def test_known_answers(shared: Path, name: str) -> None:
    case, arrays = read_case(shared / "kat-software" / "q15" / f"{name}.json")
    assert not [*differences(case, arrays, quantized(case, arrays))]


@needs_compiler
def test_known_answer_in_c(shared: Path, tmp_path: Path) -> None:
    case, arrays = read_case(shared / "kat-software" / "q15" / "net_q7_cifarlike.json")
    arrays["x"] = arrays["x"][:1]
    assert not [*c_differences(case, arrays, tmp_path)]


@needs_compiler
@pytest.mark.parametrize("bits", [8, 16])
def test_every_step_in_c_and_python(bits: int, tmp_path: Path) -> None:
    graph = every_step(bits, whole=True)
    samples = normal(3, 2, 9, 8)
    same_in_c(quantize(graph, samples, bits), samples, tmp_path)


@needs_compiler
@pytest.mark.parametrize("bits", [8, 16])
def test_every_step_goes_through_rings_of_rows(bits: int, tmp_path: Path) -> None:
    """All steps in one segment, but for the last, which reads its whole map at once."""
    samples = normal(4, 2, 9, 8)
    network = quantize(every_step(bits), samples, bits)
    made, whole = program(network, Scheme.ROWS), program(network)
    assert [len(one.steps) > 1 for one in made.plan.tasks] == [True, False]
    assert made.plan.arena_bytes < whole.plan.arena_bytes
    rings = made.plan.rings.items()
    assert sum(rows < made.plan.graph.tensors[map_].rows for map_, rows in rings) > 6
    same_in_c(network, samples, tmp_path, made)


@needs_compiler
def test_random_networks_go_through_rings_of_rows(tmp_path: Path) -> None:
    rings = 0
    for seed in range(12):
        network = random_network((8, 16)[seed % 2], seed)
        samples = normal(2, *network.graph.shapes[0])
        made = program(network, Scheme.ROWS)
        rings += bool(made.row_steps)
        same_in_c(network, samples, tmp_path / str(seed), made)
    assert rings > 3


@needs_compiler
def test_rows_that_need_no_windows(tmp_path: Path) -> None:
    builder = GraphBuilder((2, 5, 4))
    sides = [builder.clip("low", 0, -1.0, 0.5), builder.clip("high", 0, 0.0, 2.0)]
    samples = normal(3, 2, 5, 4)
    network = quantize(builder.finished(builder.add("add", sides)), samples)
    made = program(network, Scheme.ROWS)
    assert len(made.row_steps) == 3
    same_in_c(network, samples, tmp_path, made)


def test_rows_are_taken_where_whole_maps_do_not_fit() -> None:
    network = quantize(every_step(16), normal(4, 2, 9, 8))
    whole = planned(network, ANY)
    assert whole.program.plan.scheme is Scheme.RESIDENT
    small = replace(ANY, l1=whole.need.ram - 1)
    assert planned(network, small).program.plan.scheme is Scheme.ROWS


def test_guard_keeps_extreme_inputs_within_32_bits() -> None:
    graph = every_step(16)
    network = quantize(graph, normal(3, 2, 9, 8))
    extremes = RANDOM.choice(np.array([-32768, 32767]), (20, 9, 8, 2)).astype(np.int64)
    execute(network, extremes, lambda _, sums: np.testing.assert_array_equal(sums, wrapped(sums)))


def test_without_guard_sums_wrap_around() -> None:
    builder = GraphBuilder((64,))
    graph = builder.finished(builder.linear("fc", 0, np.ones((1, 64)), None))
    samples = np.ones((1, 64, 1, 1))
    seen: list[bool] = []
    network = quantize(graph, samples, guard=Guard.NONE)
    execute(
        network,
        quantize_input(network, samples),
        lambda _, sums: seen.append(bool((sums != wrapped(sums)).any())),
    )
    assert seen == [True]


MODEL = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, num_classes=10, num_channels=1):
        super().__init__()
        self.conv = nn.Conv2d(num_channels, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.fc = nn.Linear(4 * 7 * 7, num_classes)

    def forward(self, x):
        x = torch.relu(self.norm(self.conv(x)))
        return self.fc(nn.functional.max_pool2d(x, 4).flatten(1))
"""


def test_more_padding_than_a_transposed_kernel_has_is_refused() -> None:
    import torch
    from torch import nn

    from ai8xtools.frontends.graph.maps import MapsReader
    from ai8xtools.frontends.modules.door import read_module

    model = nn.ConvTranspose2d(2, 2, 2, 2, padding=2)
    graph = read_module(nn.Sequential(model), torch.randn(1, 2, 6, 6))
    reader = MapsReader(graph, GraphBuilder((2, 6, 6)))
    assert [one.why for one in reader.refusals] == ["its padding exceeds its kernel"]


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (lambda x: x[:, :1] + x, "its operands have different channels"),
        (lambda x: x[:, :1, :, :1] * x[:, :, :1, :1], "its operands have different channels"),
        (lambda x: x.sort(1)[0], "there is no kernel for sort"),
        (lambda x: x.round() * x, "there is no kernel for Round"),
    ],
)
def test_what_no_step_computes_is_refused(function: Callable[..., Any], why: str) -> None:
    import torch

    from ai8xtools.frontends.graph.maps import MapsReader
    from ai8xtools.frontends.modules.door import read_module

    class Net(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            return function(x)

    reader = MapsReader(read_module(Net(), torch.randn(1, 3, 4, 5)), GraphBuilder((3, 4, 5)))
    assert [one.why for one in reader.refusals] == [why]


def test_functions_that_change_too_fast_are_refused() -> None:
    """Tables of 16 bits get as many points as they need, up to a limit."""
    points = {}
    for speed in (1, 30, 1000):
        builder = GraphBuilder((4,))
        graph = builder.finished(builder.table("sine", 0, lambda x, n=speed: np.sin(n * x)))
        samples = np.linspace(-1, 1, 4).reshape(1, 4, 1, 1)
        try:
            points[speed] = len(quantize(graph, samples).arrays[1])
        except InputError as caught:
            assert caught.code == "E741" and "sine: its function changes too fast" in caught.message
    assert points == {1: 257, 30: 1025}  # (30 h)^2 / 8 < 2^-10 for h = 2 / 1024


def test_normalization_by_statistics_of_the_data_itself() -> None:
    import torch

    from ai8xtools.frontends.graph.maps import MapsReader
    from ai8xtools.frontends.modules.door import read_module

    torch.manual_seed(3)
    norm = torch.nn.BatchNorm2d(5, track_running_stats=False).eval()
    builder = GraphBuilder((5, 6, 7))
    reader = MapsReader(read_module(norm, torch.zeros(1, 5, 6, 7)), builder)
    assert not reader.refusals
    samples = normal(8, 5, 6, 7) * np.geomspace(0.1, 1, 5).reshape(-1, 1, 1)
    network = quantize(builder.finished(reader.output), samples)
    maps = execute(network, quantize_input(network, samples))
    output = network.graph.output
    found = np.ldexp(maps[output], -network.fractions[output]).transpose(0, 3, 1, 2)
    expected = np.stack([norm(torch.tensor(x)[None].float()).detach().numpy()[0] for x in samples])
    assert np.corrcoef(found.ravel(), expected.ravel())[0, 1] > 0.999


def test_products_that_need_shifts_above_30_are_refused() -> None:
    builder = GraphBuilder((4,))
    small = builder.constant("small", np.full((4, 1, 1), 1e-9))
    large = builder.add("more", [builder.multiply("tiny", [0, small]), builder.constant(
        "large", np.full((4, 1, 1), 1e3))])  # fmt: skip
    with pytest.raises(InputError, match="tiny: the result would be shifted by") as caught:
        quantize(builder.finished(large), normal(1, 4, 1, 1))
    assert caught.value.code == "E741"


def save_model(folder: Path, text: str) -> None:
    """Write a network and a checkpoint with its weights."""
    import torch

    (folder / "net.py").write_text(text)
    scope: dict[str, type[torch.nn.Module]] = {"__name__": "net"}
    exec(text, scope)
    torch.manual_seed(0)
    torch.save({"state_dict": scope["Net"]().state_dict()}, folder / "net.pth.tar")


@needs_compiler
def test_quantize_py_writes_a_program(shared: Path, tmp_path: Path) -> None:
    save_model(tmp_path, MODEL)
    done = run_q15(tmp_path, "Q15", "--model", "net.py:Net", "--calib", "MNIST", "--data",
                   shared / "data", "--calibration-samples", "8")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "The largest result is that of floating point for 8 of 8 samples" in done.stdout
    files = {path.name: path.read_text() for path in (tmp_path / "out").iterdir()}
    assert passed(run_project(files, tmp_path / "again"))


def test_extreme_inputs_of_all_layers_stay_within_32_bits() -> None:
    for bits in (16, 8):
        for _, largest in largest_sums(random_network(bits, 3), 20):
            assert largest < 1 << 31


def run_q15(folder: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, ROOT / "quantize.py", "net.pth.tar", "out", "--device", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("values", "says"),
    [
        (np.full((2, 1, 28, 28), np.nan), "E740: 1568 values of the calibration samples are not"),
        (np.zeros((2, 1, 28, 28)), "E740: all values of the calibration samples are zero"),
        (np.ones((0, 1, 28, 28)), "E606"),
        (np.ones((2, 1, 20, 20)), "E647: the data flow of the network cannot be traced"),
        (np.ones(5), "E740: an array of shape (5,) and type float64 holds no samples"),
    ],
)
def test_bad_samples_are_refused(
    values: NDArray[np.float64], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_model(tmp_path, MODEL)
    np.save(tmp_path / "x.npy", values)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as caught:
        main(
            "quantize.py",
            ["net.pth.tar", "out", "--device", "Q7", "--model", "net.py:Net", "--calib", "x.npy"],
        )
    assert f"{caught.value.code}: {caught.value.message}".startswith(says)
    assert not (tmp_path / "out").exists()


def test_unknown_layers_are_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_model(tmp_path, MODEL.replace("torch.relu(", "torch.lgamma("))
    np.save(tmp_path / "x.npy", RANDOM.normal(size=(2, 1, 28, 28)))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="lgamma") as caught:
        main(
            "quantize.py",
            ["net.pth.tar", "out", "--device", "Q15", "--model", "net.py:Net", "--calib", "x.npy"],
        )
    assert caught.value.code == "E670"


def test_integers_that_lose_too_much_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    save_model(tmp_path, MODEL)
    np.save(tmp_path / "x.npy", RANDOM.normal(size=(4, 1, 28, 28)))
    monkeypatch.chdir(tmp_path)
    words = ["net.pth.tar", "q.pth.tar", "--device", "Q15", "--model", "net.py:Net", "--calib",
             "x.npy", "--calib-percentile"]  # fmt: skip
    with pytest.raises(InputError, match="the integers lose too much") as caught:
        main("quantize.py", [*words, "1"])
    assert caught.value.code == "E760" and not (tmp_path / "q.pth.tar").exists()
    assert main("quantize.py", [*words, "1", "--least-correlation", "-0.9"]) == 0
    assert "the integers lose much" in "".join(capsys.readouterr())
    assert main("quantize.py", [*words, "100"]) == 0
    assert "on 4 calibration samples: 1.0000" in capsys.readouterr().out


def test_correlations_are_those_of_the_results() -> None:
    builder = GraphBuilder((6,))
    network = quantize(builder.finished(builder.clip("clip", 0, -0.5, 0.5)), normal(9, 6, 1, 1))
    exact, sums = [normal(9, 6, 1, 1) + 0.5 for _ in range(2)], ErrorSums(network)
    for part in exact:
        sums.add(compute(network.graph, part), execute(network, quantize_input(network, part)))
    whole = np.concatenate(exact)
    (a, b) = compute(network.graph, whole)[1], execute(network, quantize_input(network, whole))[1]
    wanted = np.corrcoef(a.transpose(0, 2, 3, 1).ravel(), b.ravel())[0, 1]
    assert abs(sums.finished().correlation - wanted) < 1e-9


def onnx_model(folder: Path) -> None:
    """Write a graph of channels last with normalization behind its padding, and samples for it."""
    onnx = pytest.importorskip("onnx", reason="needs the package onnx")
    weights = {"w": normal(4, 2, 3, 3), "gain": normal(4), "offset": normal(4), "mean": normal(4),
               "variance": np.abs(normal(4)) + 0.5, "fc": normal(4 * 6 * 4, 3)}  # fmt: skip
    nodes = [
        onnx.helper.make_node("Transpose", ["x"], ["planes"], perm=[0, 3, 1, 2]),
        onnx.helper.make_node("Conv", ["planes", "w"], ["conv"], pads=[1, 0, 1, 1]),
        onnx.helper.make_node("BatchNormalization", ["conv", "gain", "offset", "mean", "variance"],
                              ["norm"]),
        onnx.helper.make_node("LeakyRelu", ["norm"], ["act"], alpha=0.25),
        onnx.helper.make_node("Transpose", ["act"], ["last"], perm=[0, 2, 3, 1]),
        onnx.helper.make_node("Flatten", ["last"], ["flat"]),
        onnx.helper.make_node("MatMul", ["flat", "fc"], ["y"]),
    ]  # fmt: skip
    tensor, number = onnx.helper.make_tensor_value_info, onnx.TensorProto.FLOAT
    graph = onnx.helper.make_graph(
        nodes, "net", [tensor("x", number, [1, 6, 5, 2])], [tensor("y", number, None)],
        [onnx.numpy_helper.from_array(v.astype(np.float32), n) for n, v in weights.items()],
    )  # fmt: skip
    made = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)],
                                  ir_version=8)  # fmt: skip
    (folder / "net.onnx").write_bytes(made.SerializeToString())
    np.save(folder / "x.npy", RANDOM.uniform(-1, 1, (6, 2, 6, 5)))


def test_a_graph_of_onnx_becomes_a_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    onnx_model(tmp_path)
    monkeypatch.chdir(tmp_path)
    words = ["net.onnx", "out", "--device", "Q15", "--calib"]
    assert main("quantize.py", [*words, "x.npy"]) == 0
    assert "that of floating point for 6 of 6 samples" in capsys.readouterr().out
    np.save("x.npy", RANDOM.uniform(-1, 1, (6, 2, 6, 6)))
    with pytest.raises(InputError, match="samples are 2x6x6, the input of the network is 2x6x5"):
        main("quantize.py", ["net.onnx", "other", "--device", "Q15", "--calib", "x.npy"])
    assert not (tmp_path / "other").exists()


def test_a_graph_that_is_taken_for_another_one_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ai8xtools.commands.q15 import network

    onnx_model(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        network, "executed", lambda _path, samples, *_rest: [np.ones((len(samples), 3))]
    )
    with pytest.raises(InputError) as caught:
        main("quantize.py", ["net.onnx", "out", "--device", "Q7", "--calib", "x.npy"])
    assert caught.value.code == "E668"
    assert not (tmp_path / "out").exists()


def test_shifts_above_30_are_refused_by_the_name_of_the_layer() -> None:
    builder = GraphBuilder((4,))
    tensor = builder.linear("tiny", 0, normal(3, 4) * 1e-9, np.array([0.9, 0.5, 0.1]))
    with pytest.raises(InputError, match="tiny: the bias would be shifted by") as caught:
        quantize(builder.finished(tensor), normal(2, 4, 1, 1))
    assert caught.value.code == "E741"


def test_column_major_layout_is_the_transposed_network(tmp_path: Path) -> None:
    graph = every_step(16)
    samples = normal(3, 2, 9, 8)
    network, other = quantize(graph, samples), quantize(graph.transposed(), samples.swapaxes(2, 3))
    found = execute(network, quantize_input(network, samples))[graph.output]
    transposed = execute(other, quantize_input(other, samples.swapaxes(2, 3)))[graph.output]
    np.testing.assert_array_equal(found, transposed)
    same_in_c(other, samples.swapaxes(2, 3), tmp_path)


@pytest.mark.parametrize("name", ["conv3x3_fast", "conv5x5_pad2"])
def test_column_major_weights_are_those_of_the_note(shared: Path, name: str) -> None:
    case, arrays = read_case(shared / "kat-software" / "q15" / f"{name}.json")
    graph = graph_of(case, arrays).transposed()
    (layer,) = quantize(graph, samples_of(case, arrays).swapaxes(2, 3)).layers.values()
    np.testing.assert_array_equal(layer.weights.reshape(-1), arrays["w_flat_note"])


def test_percentiles_ignore_outliers() -> None:
    builder = GraphBuilder((100,))
    graph = builder.finished(builder.linear("fc", 0, np.ones((1, 100)), None))
    samples = np.ones((1, 100, 1, 1))
    samples[0, 0] = 1000.0
    assert measure(graph, [samples], 90.0).percentile[0] == 1.0
    assert measure(graph, [samples]).percentile[0] == 1000.0


@pytest.mark.parametrize("core", ["cortex-m4", "cortex-m0plus"])
def test_every_step_on_a_core(core: str, tmp_path: Path) -> None:
    graph = every_step(16)
    samples = normal(1, 2, 9, 8)
    network = quantize(graph, samples)
    integers = quantize_input(network, samples)
    output = execute(network, integers)[graph.output]
    files = emit(network, Sample(integers[0], output[0]), "test", "test", core)
    assert not [*fails_on_core(files, core, tmp_path)]
