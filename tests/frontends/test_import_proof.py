# ruff: noqa: ARG005 - what is replaced takes arguments
"""What is made of a network of strangers is compared with it, by what runs that by itself."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

import ai8x
import ai8xize
from ai8xtools.checkpoint.errors import CheckpointError
from ai8xtools.checkpoint.onnx_graph import read_graph
from ai8xtools.commands.loader import graph_proof
from ai8xtools.commands.loader.graph_proof import executed
from ai8xtools.commands.quantize import importer
from ai8xtools.diagnostics import run
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.frontends.graph import geometry
from ai8xtools.frontends.graph.passes import results
from ai8xtools.frontends.modules.plain import network as importing
from ai8xtools.frontends.modules.plain.network import import_network, import_operators
from ai8xtools.frontends.onnx.door import read_fractions, read_operators
from ai8xtools.training.catalog.imported import load_plain, taking_vectors
from ai8xtools.training.catalog.own_file import own_model
from tests.frontends.test_onnx_networks import graph, onnx, op

EXAMPLE = torch.zeros(1, 3, 12, 12)


@pytest.fixture(autouse=True)
def device_as_before() -> Iterator[None]:
    ai8x.set_device(87, simulate=False, round_avg=False, verbose=False)
    torch.manual_seed(0)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # maps are small
    yield
    torch.set_num_threads(threads)
    ai8x.set_device(85, simulate=False, round_avg=False, verbose=False)


class Own(nn.Conv2d):
    """A subclass that computes what its parent does."""


class Standardized(nn.Conv2d):
    """A subclass whose weights are others than those it keeps."""

    def _conv_forward(self, input: Any, weight: Any, bias: Any) -> Any:
        return super()._conv_forward(input, weight - weight.mean(), bias)


class Forward(nn.Conv2d):
    """A subclass that computes its operator by itself."""

    def forward(self, input: Any) -> Any:
        return functional.conv2d(input, self.weight.tanh(), self.bias, self.stride, self.padding)


class Small(nn.Module):
    """All that the import rewrites, in a few layers."""

    def __init__(self, kind: type[nn.Conv2d] = nn.Conv2d) -> None:
        super().__init__()
        self.first = kind(3, 8, 3, stride=2, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.second = nn.Conv2d(8, 8, 3, padding=1)
        self.last = nn.Linear(16 * 4, 5)

    def forward(self, x: Any) -> Any:
        x = functional.relu(self.norm(self.first(x)))
        x = functional.relu(x + self.second(x))
        x = functional.interpolate(functional.pad(x, (1, 1, 1, 1)), scale_factor=2)
        x = torch.cat((functional.max_pool2d(x, 8), functional.avg_pool2d(x, 8)), 1)
        return torch.softmax(self.last(x.flatten(1)), 1)


class InPlace(nn.Module):
    """What is read twice changes in between."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.relu = nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 1), nn.ReLU(inplace=True)

    def forward(self, x: Any) -> Any:
        x = kept = self.a(x)
        x += self.b(x)
        x = kept + self.b(self.relu(kept))
        first = self.b(x)
        functional.relu(x, inplace=True)
        return torch.softmax((first - x).flatten(1), 1)


class Aliased(InPlace):
    """What changes has two names that do not look alike."""

    def forward(self, x: Any) -> Any:
        x = self.a(x)
        rows = x.flatten(1)
        x.relu_()
        return rows


def hooked(where: str, does: Callable[[Any], Any]) -> nn.Module:
    model = Small()
    model.get_submodule(where).register_forward_hook(lambda module, given, made: does(made))
    return model


@pytest.mark.parametrize(
    ("make", "place"),
    [
        (lambda: hooked("second", torch.neg), "second"),
        (lambda: hooked("", torch.neg), "does not appear"),
        (lambda: Small(Standardized), "first"),
        (Aliased, " a"),
    ],
    ids=["hook", "hook of the network", "other weights", "two names"],
)
def test_what_the_data_flow_does_not_show_is_refused(make: Any, place: str) -> None:
    with pytest.raises(InputError, match="computes something else") as caught:
        import_network(make(), EXAMPLE, "net", {})
    assert caught.value.code == "E668"
    assert place in caught.value.message.partition("first at")[2]


@pytest.mark.parametrize(
    "make",
    [
        Small,
        lambda: Small(Own),
        lambda: hooked("second", lambda made: None),
        lambda: _tiny(1e-6),
        InPlace,
    ],
    ids=["plain", "subclass", "watched", "small numbers", "in place"],
)
def test_what_computes_the_same_is_taken(make: Any) -> None:
    found = import_network(make(), EXAMPLE, "net", {})
    assert "softmax" in found.left[0]
    assert "softmax" not in str(found.network)
    assert found.network.training


WRAPPED = """
import torch
from torch import nn
from torch.nn.utils import parametrizations
from tests.frontends.test_import_proof import Small

def normalized():
    model = Small()
    parametrizations.weight_norm(model.second)
    return model

def exported():
    data = torch.rand(1, 3, 12, 12)
    return torch.export.export(normalized().eval(), (data,))

def parallel():
    return nn.DataParallel(torch.compile(normalized()))

def averaged():
    return torch.optim.swa_utils.AveragedModel(normalized())

def scripted():
    return torch.jit.trace(Small().eval(), torch.rand(1, 3, 12, 12))
"""


@pytest.mark.filterwarnings("ignore")  # of torch.jit, that it is old
@pytest.mark.parametrize("name", ["exported", "parallel", "averaged"])
def test_networks_in_wrappers_are_imported(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("net.py").write_text(WRAPPED)
    found = import_network(own_model(f"net.py:{name}", 2).make(), EXAMPLE, "net", {})
    assert "conv2d" in str(found.network) or "second" in str(found.network)
    assert "softmax" in found.left[0]


@pytest.mark.filterwarnings("ignore")
def test_torchscript_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("net.py").write_text(WRAPPED)
    with pytest.raises(InputError, match="TorchScript") as caught:
        own_model("net.py:scripted", 2).make()
    assert caught.value.code == "E661"


class Closing(nn.Module):
    """A network that returns the data of a batch of one in its own form."""

    def __init__(self, form: Callable[[Any, Any], Any]) -> None:
        super().__init__()
        self.conv, self.last, self.form = nn.Conv2d(3, 4, 3), nn.Linear(400, 5), form

    def forward(self, x: Any) -> Any:
        x = self.conv(x)
        return self.form(self.last(x.flatten(1)), x)


@pytest.mark.parametrize(
    "form",
    [
        lambda y, x: y.squeeze(), lambda y, x: y.squeeze(0), lambda y, x: {"a": y, "b": x},
        lambda y, x: (y, [x]),
    ],
    ids=["squeezed", "first axis", "dictionary", "nested"],
)  # fmt: skip
def test_results_of_any_form_are_compared(form: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import_network(Closing(form), EXAMPLE, "net", {})
    _fault(monkeypatch, *FAULTS["weights"])
    with pytest.raises(InputError, match="computes something else"):
        import_network(Closing(form), EXAMPLE, "net", {})


@pytest.mark.parametrize("faulty", [None, 0, 1])
def test_all_outputs_of_a_graph_are_compared(faulty: int | None, tmp_path: Path) -> None:
    heads = [op("Conv", "x", name, to=name.upper()) for name in ("a", "b")]
    for head, name in zip(heads, "ab", strict=True):
        head.name = name
    kernels = [(name, np.full((2, 3, 1, 1), 0.25 * n)) for n, name in enumerate("ab", 1)]
    path = graph(tmp_path / "net.onnx", *heads, tensors=kernels)
    model: Any = onnx.load(path)
    del model.graph.output[:]
    for name in "AB":
        model.graph.output.append(onnx.helper.make_tensor_value_info(name, 1, None))
    onnx.save(model, path)
    operators, _ = read_operators(read_graph(path), (3, 8, 8))
    network: Any = import_operators(operators, "net", {}).network
    if faulty is None:
        importer._prove(network, path, (3, 8, 8))
        return
    _other(network.get_submodule("ab"[faulty]))
    with pytest.raises(InputError, match="computes something else"):
        importer._prove(network, path, (3, 8, 8))


def test_an_infinite_result_excuses_no_difference() -> None:
    def endless(made: Any) -> Any:
        return made + torch.tensor([torch.inf, 1, 0, 0, 0])

    with pytest.raises(InputError, match="computes something else"):
        import_network(hooked("", endless), EXAMPLE, "net", {})


def test_a_network_that_fails_for_some_data_says_so() -> None:
    def refuse(made: Any) -> None:
        raise ValueError("only zeros")

    with pytest.raises(InputError, match="cannot be run for random data: only zeros") as caught:
        import_network(hooked("", refuse), EXAMPLE, "net", {})
    assert caught.value.code == "E647"


def test_an_operator_in_a_subclass_has_the_weights_that_it_makes() -> None:
    model = Small(Forward)
    layer: Any = import_network(model, EXAMPLE, "net", {}).network.get_submodule("conv2d")
    torch.testing.assert_close(layer.op.weight, model.first.weight.tanh())


class Features(nn.Module):
    def __init__(self, flatten: bool) -> None:
        super().__init__()
        self.first, self.norm = nn.Linear(6, 8), nn.BatchNorm1d(8)
        self.before = nn.Flatten() if flatten else nn.Identity()

    def forward(self, x: Any) -> Any:
        return functional.relu(self.norm(self.first(self.before(x))))


@pytest.mark.parametrize("flatten", [False, True])
@pytest.mark.parametrize("sizes", [(), (1,), (1, 1)])
def test_networks_of_features_take_what_data_sets_give(flatten: bool, sizes: Any) -> None:
    model, x = Features(flatten), torch.rand(4, 6)
    wanted = model.eval()(x)
    made = taking_vectors(model.train(), torch.zeros(1, 6, *sizes))
    assert made.training and not model.norm.num_batches_tracked
    assert torch.equal(made.eval()(x.reshape(4, 6, *sizes)), wanted)
    assert list(made.state_dict()) == list(Features(flatten).state_dict())
    import_network(made, torch.zeros(1, 6, *sizes), "net", {})


@pytest.mark.parametrize("prefix", ["", "module.", "_orig_mod.", "_orig_mod.module.", "net."])
def test_names_of_wrappers_are_no_part_of_a_network(prefix: str) -> None:
    """Of several devices, torch.compile, both, and a user's; of averages with their count."""
    model, saved = Small(), Small()
    state = {f"{prefix}{name}": value for name, value in saved.state_dict().items()}
    load_plain(model, state | {"n_averaged": torch.tensor(3)}, "net.pth")
    assert all(map(torch.equal, model.state_dict().values(), saved.state_dict().values()))
    state.popitem()
    with pytest.raises(CheckpointError, match="1 missing, 0 of another shape, 0 surplus"):
        load_plain(model, state, "net.pth")


def test_weights_of_a_network_that_contains_the_network_are_refused_with_its_name() -> None:
    state = nn.ModuleDict({"net": Small(), "loss": nn.Linear(1, 1)}).state_dict()
    with pytest.raises(CheckpointError) as caught:
        load_plain(Small(), state, "net.pth")
    assert caught.value.code == "E676" and "net.state_dict()" in str(caught.value.remedy)


def test_a_network_may_use_the_names_of_wrappers_itself() -> None:
    model = nn.ModuleDict({"model": Small()})
    load_plain(model, model.state_dict(), None)
    averaged = torch.optim.swa_utils.AveragedModel(Small())
    load_plain(averaged, averaged.state_dict(), None)


def _tiny(factor: float) -> nn.Module:
    model = Small()
    with torch.no_grad():
        model.last.weight.mul_(factor)
    return model


def _other(layer: Any) -> Any:
    """Return a layer with a changed weight."""
    with torch.no_grad():
        layer.op.weight.mul_(1.01)
    return layer


def _fault(monkeypatch: pytest.MonkeyPatch, place: Any, name: str, change: Any) -> None:
    real = getattr(place, name)
    monkeypatch.setattr(place, name, lambda *a, **k: change(real, *a, **k))


BUILDER: Any = importing.Fractions
FAULTS = {
    "weights": (importing, "make_layer", lambda real, *a, **k: _other(real(*a, **k))),
    "normalization": (importing, "make_layer", lambda real, parts, *a: real(
        replace(parts, norm=None), *a)),
    "stride": (BUILDER, "_decimated", lambda real, self, target, stride, source, *a: source),
    "sum": (ai8x, "Add", lambda real: ai8x.Sub()),
    "rectifier": (BUILDER, "_rectified", lambda real, self, node, source: source),
    "pooling": (geometry, "pooling", lambda real, node, pool: real(
        node, replace(pool, average=not pool.average))),
    "concatenation": (torch, "cat", lambda real, parts, axis: real(parts[::-1], axis)),
    "doubling": (BUILDER, "_ones", lambda real, self, node, kind, spec, source, *a: (
        source if kind == "doubling" else real(self, node, kind, spec, source, *a))),
    "border": (geometry, "zeros", lambda real, node, pad: (0, (0, 0))),
    "shape": (BUILDER, "_reshaped", lambda real, self, node, data: self.graph.call_function(
        torch.flip, (real(self, node, data), (1,)))),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_defect_of_the_import_is_noticed_by_itself(
    fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import_network(Small(), EXAMPLE, "net", {})
    _fault(monkeypatch, *FAULTS[fault])
    model = Small()
    with torch.no_grad():
        model.norm.weight.uniform_(0.5, 1.5)
        model.norm.running_mean.uniform_(-1, 1)  # type: ignore[union-attr, operator]
    with pytest.raises(InputError, match="computes something else"):
        import_network(model, EXAMPLE, "net", {})


def test_a_limit_that_nothing_is_known_about_is_refused_with_a_remedy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: Any) -> Any:
        raise AssertionError("Conv2d: there is no such layer")

    monkeypatch.setattr(importing, "make_layer", refuse)
    with pytest.raises(InputError) as caught:
        import_network(Small(), EXAMPLE, "net", {})
    assert "there is no such layer. Change the model here, or compute" in str(caught.value.remedy)


WEIGHTS = ("w", np.arange(-96, 96).reshape(1, 192).repeat(4, 0) // np.arange(1, 5)[:, None])
GEMM = [op("Flatten", "x", to="f"), op("Gemm", "f", "w", to="g", transB=1)]


def generated(
    nodes: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *options: str
) -> tuple[int, Path]:
    tensors = [WEIGHTS, ("seven", [7 * 128] * 4), ("part", 1 / 128), ("low", -128), ("high", 127)]
    path = graph(tmp_path / "net.onnx", *GEMM, *nodes, tensors=tensors)
    folder = tmp_path / "out"
    monkeypatch.setattr(sys, "argv", [
        "ai8xize.py", "--model", path, "--device", "MAX78000", "--prefix", "net", "--test-dir",
        str(folder), "--overwrite", *options,
    ])  # fmt: skip
    return run(ai8xize.main), folder / "net"


RIGHT = [op("Sub", "seven", "g")]
WRONG = [op("Mul", "g", "part", to="h"), op("Floor", "h", to="i"), op("Clip", "i", "low", "high")]
"""The chip rounds halves up."""


@pytest.mark.parametrize("runtime", ["onnxruntime", "onnx"])
def test_a_graph_that_computes_something_else_is_refused(
    runtime: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    pytest.importorskip(runtime)
    if runtime == "onnx":
        monkeypatch.setitem(sys.modules, "onnxruntime", None)
    assert generated(RIGHT, tmp_path, monkeypatch)[0] == 0
    text = "".join(capsys.readouterr())
    assert "unchecked" not in text
    status, project = generated(WRONG, tmp_path, monkeypatch, "--prefix", "other")
    text = "".join(capsys.readouterr())
    assert status == 1 and "[E668]" in text and "of the output is" in text
    assert not (project.parent / "other").exists()


QDQ = [op("QuantizeLinear", "x", "scale", "zero", to="a"),
       op("DequantizeLinear", "a", "scale", "zero", to="b"),
       op("Conv", "b", "w", to="c"), op("QuantizeLinear", "c", "coarse", "low", to="d"),
       op("MaxPool", "d", to="e", kernel_shape=[2, 2]),
       op("DequantizeLinear", "e", "coarse", "low")]  # fmt: skip


@pytest.mark.parametrize("operator", ["Identity", "Abs"])
def test_scales_that_nodes_compute_are_followed_or_refused(operator: str, tmp_path: Path) -> None:
    path = graph(tmp_path / "net.onnx", op(operator, "given", to="coarse"), *QDQ, tensors=[
        ("w", np.random.default_rng(0).normal(size=(4, 3, 3, 3)) / 5), ("scale", 1 / 128),
        ("given", 0.02),
    ])  # fmt: skip
    model = onnx.load(path)
    for name, zero in (("zero", 0), ("low", -128)):
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.int8(zero), name))
    onnx.save(model, path)
    samples = np.random.default_rng(1).uniform(-1, 1, (2, 3, 8, 8)).astype(np.float32)
    if operator == "Identity":
        assert executed(path, samples, 0.99) is not None
        return
    with pytest.raises(InputError, match="'coarse' is computed by other nodes") as refused:
        executed(path, samples, 0.99)
    assert refused.value.code == "E667"


def saturating(model: Any, name: str, *, optimized: bool = False) -> Iterator[Any]:
    """Yield what executes a graph, with results that are limited by optimization."""
    for plain in RUNNERS(model, name):
        yield lambda x, of=plain: [np.minimum(one, 0.1) if optimized else one for one in of(x)]


RUNNERS = graph_proof.runners


for number, part in enumerate(QDQ):
    part.name = f"n{number}"


@pytest.mark.parametrize(
    ("coarse", "low", "taken"), [(0.02, -128, True), (0.001, -128, True), (0.002, 0, False)]
)
def test_quantized_graphs_are_taken_in_fractions_unless_they_need_their_limits(
    coarse: float, low: int, taken: bool, tmp_path: Path, capsys: Any, monkeypatch: Any
) -> None:
    path = graph(tmp_path / "net.onnx", *QDQ, tensors=[
        ("w", np.random.default_rng(0).normal(size=(4, 3, 3, 3)) / 5), ("scale", 1 / 128),
        ("coarse", coarse),
    ])  # fmt: skip
    model = onnx.load(path)
    for name, zero in (("zero", 0), ("low", low)):
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.int8(zero), name))
    onnx.save(model, path)
    samples = np.random.default_rng(1).uniform(-1, 1, (2, 3, 8, 8)).astype(np.float32)
    if not taken:
        with pytest.raises(InputError, match="without the limits and the rounding"):
            executed(path, samples, 0.99)
        return
    (expected,) = executed(path, samples, 0.99) or ()
    told = capsys.readouterr().out
    assert "as its quantize nodes round it: 0.99" in told and "as onnxruntime computes it: " in told
    operators, refusals, notes = read_fractions(read_graph(path), (3, 8, 8))
    assert not refusals and "quantize and dequantize nodes are left out" in notes[0]
    ours = [results(operators, one[None].astype(np.float64))[0] for one in samples]
    np.testing.assert_allclose(np.reshape(ours, expected.shape), expected, atol=1e-5)
    monkeypatch.setattr(graph_proof, "runners", saturating)
    with pytest.raises(InputError, match="something else than as onnxruntime computes it"):
        executed(path, samples, 0.99)


def test_quantized_operators_are_refused_in_fractions_by_name(tmp_path: Path) -> None:
    node = op("QLinearConv", *"xszwszsz")
    path = graph(tmp_path / "net.onnx", node, tensors=[("s", 1), ("z", 0), ("w", [[[[1]]]])])
    (refusal, *_) = read_fractions(read_graph(path), (3, 8, 8))[1][::-1]
    assert refusal.node == "qlinearconv1" and "QDQ" in refusal.remedy


def test_a_graph_that_mixes_the_samples_of_its_batch_is_noticed(tmp_path: Path) -> None:
    """The others of a batch are different ones; a network for one sample cannot compute it."""
    mixing = op("ReduceMax", "x", axes=[0], keepdims=1)
    path = graph(tmp_path / "net.onnx", mixing, shape=(2, 1, 2, 2))
    sample = np.float32([[[[-1, 2], [3, -4]]]])
    (result,) = executed(path, sample, 0.99) or ()
    assert result.tolist() == [[1, 2, 3, 4]]
    apart = graph(tmp_path / "net.onnx", op("Relu", "x"), shape=(2, 1, 2, 2))
    assert np.array_equal((executed(apart, sample, 0.99) or [None])[0], [[0, 2, 3, 0]])


def test_a_graph_that_a_runtime_cannot_load_is_executed_by_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    runtime, told = pytest.importorskip("onnxruntime"), []

    def refuse(*arguments: Any, **options: Any) -> Any:
        told.append(arguments)
        raise ValueError("of an operator that it does not know")

    monkeypatch.setattr(runtime, "InferenceSession", refuse)
    assert generated(RIGHT, tmp_path, monkeypatch)[0] == 0 and told
    assert "unchecked" not in "".join(capsys.readouterr())


@pytest.mark.parametrize("option", ["--no-prove-import", "--ignore-activation"])
def test_an_import_that_is_not_compared_says_so(
    option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    assert generated(RIGHT, tmp_path, monkeypatch, option)[0] == 0
    text = "".join(capsys.readouterr())
    assert f"it is unchecked whether the network computes what the graph does: {option}" in text
    assert "[N669]" in text


def test_a_graph_that_nothing_can_execute_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_arguments: Any) -> Any:
        yield lambda x: 1 / 0

    monkeypatch.setattr("ai8xtools.commands.loader.graph_proof.runners", refuse)
    status, project = generated(RIGHT, tmp_path, monkeypatch)
    text = "".join(capsys.readouterr())
    assert status == 1 and "[E667]" in text and "ZeroDivisionError" in text
    assert not project.exists()
    assert generated(RIGHT, tmp_path, monkeypatch, "--no-prove-import")[0] == 0
