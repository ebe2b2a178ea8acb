"""An ONNX graph and the network that was made of it compute the same, tried on whole numbers.

The graph is executed by onnxruntime where it is installed, else by the evaluator of the package
onnx; neither shares anything with the import. Source: docs/own-models.md, "What an import proves".
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ai8xtools.checkpoint.onnx import file_bytes
from ai8xtools.checkpoint.onnx_graph import OnnxGraph, read_graph
from ai8xtools.commands.loader.options import LoaderOptions, ModelSource
from ai8xtools.diagnostics import Diagnostic, Severity, print_diagnostics
from ai8xtools.diagnostics.errors import InputError, reason_of
from ai8xtools.frontends.layers import refuse
from ai8xtools.frontends.onnx.door import channels_last
from ai8xtools.synthesis.network import Network
from ai8xtools.synthesis.options import ResolveOptions
from ai8xtools.synthesis.simulate import simulate

Array = NDArray[np.float64]
Outputs = list[Array]
_RANDOM = 5
_EXTREMES = (-128, 127)
_ROUNDING = 2.0**-18
"""Of a sum in 32 bits, with what follows: less than this share, or 1, is lost by rounding."""
_CHANGING = ("no_bias", "ignore_activation", "ignore_bn", "stop_after", "output_width",
             "skip_checkpoint_layers", "skip_yaml_layers", "input_split",
             "camera_format")  # fmt: skip
"""Options with which the network is another one than that of the graph."""
_MISSING = "the package onnx is not installed"
_SEVERAL = frozenset({"Concat", "Add", "Sub", "Mul", "Div", "Max", "Min", "Where", "MatMul"})
"""What takes more data than its first input; further inputs of others are shapes and the like."""


def prove_graph(
    options: LoaderOptions, source: ModelSource, network: Network
) -> tuple[Diagnostic, ...]:
    """Compare a network with the graph that it was made of; return notices if that is impossible.

    The sample, random samples and the smallest and largest one are computed by both. Nothing is
    done where the network has other integers than those of an ONNX graph. Raises InputError E668,
    with the first value that departs, or E670 and E677 with the reason, and E667 for a graph that
    nothing can execute.
    """
    resolving = options.resolve
    if resolving.checkpoint_file != source.model:
        return ()
    plain = ResolveOptions()
    changed = [name for name in _CHANGING if getattr(resolving, name) != getattr(plain, name)]
    if changed or not source.prove:
        option = f"--{changed[0].replace('_', '-')}" if changed else "--no-prove-import"
        return (_unchecked(source.model, f"{option} is given"),)
    rounding = options.encode.average_rounding
    return prove(source, network.sample, lambda one: _computed(network, one, rounding))


def prove(
    source: ModelSource, sample: NDArray[np.int64], compute: Callable[[NDArray[np.int64]], Outputs]
) -> tuple[Diagnostic, ...]:
    """Compare what is computed of samples with the graph of a source; as `prove_graph`."""
    graph = read_graph(source.model)
    model = _loaded(source.model, graph)
    if model is None:
        return (_unchecked(source.model, _MISSING),)
    _cut(model, source.left)
    samples = list(samples_like(sample))
    computed = [compute(one) for one in samples]
    fed = [_fed(one, graph.input_sizes, last=channels_last(graph)) for one in samples]
    departs = failed = None
    for run in runners(model, graph.input_name):
        try:
            expected = [run(one) for one in fed]
        except Exception as exc:  # whatever a foreign runtime cannot compute
            failed = f"{type(exc).__name__}: {reason_of(exc)[:200]}"
            continue
        departs, rounding = _departs(expected, computed)
        if departs is None:
            return ()
        if not rounding:  # more than sums that 32 bits of a fraction do not hold
            break
    if departs is None:
        raise InputError(
            "E667", f"the graph cannot be executed, so the imported network is not compared: "
            f"{failed}", source.model,
            "Correct the graph, or add --no-prove-import if you compare the results yourself.",
        )  # fmt: skip
    refuse(source.doubts, source.model)
    raise InputError(
        "E668",
        f"the network imported from the graph computes something else: {departs}",
        source.model,
        "Write the graph with other operators, or report this graph.",
    )


def executed(path: str, samples: Array, alike: float | None = None) -> Outputs | None:
    """Return the results of a graph, each [N, values], for samples [N, C, ...], channels first.

    With `alike` quantize and dequantize nodes do not round, and results with and without rounding
    have at least this correlation, which is told. Returns None, and says so, where the package onnx
    is not installed; raises InputError E667 for a graph that nothing can execute, E668 for one that
    needs its rounding.
    """
    graph = read_graph(path)
    model = _loaded(path, graph)
    if model is None:
        print_diagnostics([_unchecked(path, _MISSING)])
        return None
    plain = type(model).FromString(model.SerializeToString())
    if alike is None or not _without_rounding(plain, path):
        return _results(path, graph, model, samples)
    results = _results(path, graph, plain, samples)
    for usual, how in ((False, "its quantize nodes round it"), (True, "onnxruntime computes it")):
        pairs = zip(results, _results(path, graph, model, samples, optimized=usual), strict=True)
        with np.errstate(all="ignore"):  # results that are all equal have none
            least = min(float(np.corrcoef(a.ravel(), b.ravel())[0, 1]) for a, b in pairs)
        if not least >= alike:
            raise InputError(
                "E668", f"without the limits and the rounding of its quantize nodes the graph "
                f"computes something else than as {how} (correlation {least:.4f}, at least "
                f"{alike:g} is taken)", path, "Take the network before it was quantized.",
            )  # fmt: skip
        print(f"Import: correlation with the graph as {how}: {least:.5f}")
    return results


def optimized(path: str, samples: Array) -> Outputs | None:
    """Return results as `executed`, as onnxruntime computes them by default, or None."""
    graph = read_graph(path)
    model = _loaded(path, graph)
    return None if model is None else _results(path, graph, model, samples, optimized=True)


def _results(
    path: str, graph: OnnxGraph, model: Any, samples: Array, *, optimized: bool = False
) -> Outputs:
    last, failed = channels_last(graph), ""
    for run in runners(model, graph.input_name, optimized=optimized):
        try:
            fed = [_fed(one, graph.input_sizes, last=last) for one in samples]
            return [np.stack(parts) for parts in zip(*map(run, fed), strict=True)]
        except Exception as exc:  # whatever a foreign runtime cannot compute
            failed = f"{type(exc).__name__}: {reason_of(exc)[:200]}"
    raise InputError("E667", f"the graph cannot be executed, so the imported network is not "
                     f"compared: {failed}", path, "Correct the graph.")  # fmt: skip


def _loaded(path: str, graph: OnnxGraph) -> Any:
    """Return the graph of a file for runtimes, with the data that stands in files beside it; None
    without the package onnx.
    """
    try:
        import onnx
    except ImportError:
        return None
    model = onnx.load_model_from_string(bytes(file_bytes(Path(path))))
    for tensor in model.graph.initializer:
        if tensor.external_data:
            values = graph.constants[tensor.name]
            tensor.CopyFrom(onnx.numpy_helper.from_array(values, tensor.name))
    return model


def _unchecked(file: str, reason: str) -> Diagnostic:
    """The graph and the network that was made of it were not compared."""
    return Diagnostic(
        "N669", f"{file}: it is unchecked whether the network computes what the graph does: "
        f"{reason}", None, "The comparison needs onnx (better: onnxruntime, too), and the graph as "
        "it is.", Severity.NOTICE,
    )  # fmt: skip


def samples_like(sample: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """Yield a sample, random ones of its shape, and the least and the greatest one."""
    yield sample
    random = np.random.default_rng(0)
    for _ in range(_RANDOM):
        yield random.integers(-128, 128, sample.shape)
    for value in _EXTREMES:
        yield np.full_like(sample, value)


def _computed(network: Network, sample: NDArray[np.int64], average_rounding: bool) -> Outputs:
    outputs = simulate(replace(network, sample=sample), average_rounding=average_rounding).outputs
    return [outputs[layer.index].astype(np.float64).reshape(-1) for layer in network.outputs()]


def _fed(sample: NDArray[Any], sizes: Sequence[int], *, last: bool) -> NDArray[Any]:
    """Return a sample as the graph takes it, before others in a batch of as many as it says."""
    if last:
        sample = np.moveaxis(sample, 0, -1)
    fixed = [size or -1 for size in sizes[1:]]
    one = sample.reshape(1, *(fixed if fixed.count(-1) < 2 else sample.shape))
    other = ~one if one.dtype.kind == "i" else -one
    return np.concatenate((one, other.repeat(max(sizes[0], 1) - 1, 0)))


def _cut(model: Any, left: Sequence[str]) -> None:
    """Let a graph end in front of the nodes that are left to the application."""
    nodes = [node for node in model.graph.node if (node.name or node.output[0]) in left]
    if not nodes:
        return
    outputs = {name for node in nodes for name in node.output}
    data = [node.input if node.op_type in _SEVERAL else node.input[:1] for node in nodes]
    ends = {name for names in data for name in names if name not in outputs}
    computed = {name for node in model.graph.node for name in node.output}
    kept = [one for one in model.graph.output if one.name not in outputs]
    kinds = [one.type.tensor_type.elem_type for one in model.graph.output]
    del model.graph.output[:]
    model.graph.output.extend(kept)
    onnx = importlib.import_module("onnx")
    for name in sorted(ends & computed):
        model.graph.output.append(onnx.helper.make_tensor_value_info(name, kinds[0], None))
    needed = {one.name for one in model.graph.output}
    for node in reversed([*model.graph.node]):  # also what takes the shape of what is left
        if needed.isdisjoint(node.output):
            model.graph.node.remove(node)
        else:
            needed.update(node.input)


def _without_rounding(model: Any, path: str) -> bool:
    """Replace quantize and dequantize nodes of data by what they do to fractions: limits from zero
    on stay. Return whether there were any; operators of whole numbers keep all of them.

    Raises InputError E667 for a scale that is no constant of the graph.
    """
    helper = importlib.import_module("onnx").numpy_helper
    fixed = {one.name: helper.to_array(one) for one in model.graph.initializer}
    changed = False
    if any(node.op_type.startswith("QLinear") for node in model.graph.node):
        return False
    for node in model.graph.node:
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            fixed[node.output[0]] = helper.to_array(node.attribute[0].t)
        if node.op_type == "Identity" and node.input[0] in fixed:
            fixed[node.output[0]] = fixed[node.input[0]]
        if node.op_type not in _QUANTIZING or node.input[0] in fixed:
            continue
        unknown = [name for name in node.input[1:] if name and name not in fixed]
        if unknown:
            raise InputError(
                "E667", f"{node.name or node.output[0]}: its scale or zero point {unknown[0]!r} is "
                "computed by other nodes, so the imported network cannot be compared", path,
                "Fold the constants of the graph.",
            )  # fmt: skip
        named = len(node.input) > 2 and node.input[2]
        zero = fixed[node.input[2]] if named else np.zeros(1, np.uint8)
        limits = np.iinfo(zero.dtype) if zero.dtype.kind in "iu" else None
        ends: list[str] = []
        if limits and zero.min() == limits.min and node.op_type == "QuantizeLinear":
            high = float(limits.max - limits.min) * float(fixed[node.input[1]].min())
            for name, value in (("low", 0.0), ("high", high)):
                ends.append(f"{name} of {node.output[0]}")
                model.graph.initializer.append(helper.from_array(np.float32(value), ends[-1]))
        node.op_type = "Clip" if ends else "Identity"
        node.input[1:] = ends
        del node.attribute[:]
        changed = True
    return changed


_QUANTIZING = ("QuantizeLinear", "DequantizeLinear")


def runners(
    model: Any, name: str, *, optimized: bool = False
) -> Iterator[Callable[[NDArray[Any]], Outputs]]:
    """Yield what executes the graph: quick, then, should that differ, with exact sums."""
    onnx = importlib.import_module("onnx")
    (kind,) = (one.type.tensor_type.elem_type for one in model.graph.input if one.name == name)
    dtype = onnx.helper.tensor_dtype_to_np_dtype(kind)
    try:
        runtime = importlib.import_module("onnxruntime")
    except ImportError:
        runtime = None
    if runtime is not None:
        settings = runtime.SessionOptions()
        settings.intra_op_num_threads = 1
        settings.log_severity_level = 4
        if not optimized:
            settings.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL

        @cache
        def session() -> Any:  # within the call: it may refuse the graph, as runs do
            return runtime.InferenceSession(
                model.SerializeToString(), settings, providers=["CPUExecutionProvider"]
            )

        yield lambda x: _flat(session().run(None, {name: x.astype(dtype)}), len(x))

    @cache
    def evaluator() -> Any:
        return importlib.import_module("onnx.reference").ReferenceEvaluator(_double(model))

    wide = np.float64 if np.dtype(dtype).kind == "f" else dtype
    yield lambda x: _flat(evaluator().run(None, {name: x.astype(wide)}), len(x))


def _flat(outputs: Sequence[Any], batch: int) -> Outputs:
    """Return the outputs for the first sample of a batch."""
    arrays = [np.asarray(one, np.float64) for one in outputs]
    return [a.reshape(-1)[: a.size // batch if a.shape[:1] == (batch,) else None] for a in arrays]


def _double(model: Any) -> Any:
    """Return a graph whose fractions have 64 bits, in which sums of whole numbers are exact."""
    onnx = importlib.import_module("onnx")
    floats = (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16)
    wide = onnx.ModelProto()
    wide.CopyFrom(model)

    def widened(tensor: Any) -> None:
        if tensor.data_type in floats:
            values = onnx.numpy_helper.to_array(tensor).astype(np.float64)
            tensor.CopyFrom(onnx.numpy_helper.from_array(values, tensor.name))

    for tensor in wide.graph.initializer:
        widened(tensor)
    for node in wide.graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.TENSOR:
                widened(attribute.t)
            if node.op_type == "Cast" and attribute.name == "to" and attribute.i in floats:
                attribute.i = onnx.TensorProto.DOUBLE
    for value in (*wide.graph.input, *wide.graph.output):
        if value.type.tensor_type.elem_type in floats:
            value.type.tensor_type.elem_type = onnx.TensorProto.DOUBLE
    return wide


def _departs(expected: list[Outputs], computed: list[Outputs]) -> tuple[str | None, bool]:
    """Return how two lists (samples) of lists (outputs) differ, in whatever order of outputs.

    The second value says whether rounded sums can be the reason.
    """
    count = len(expected[0])
    if count != len(computed[0]):
        return f"{len(computed[0])} outputs, the graph has {count}", False
    theirs, ours = [*zip(*expected, strict=True)], [*zip(*computed, strict=True)]
    left = [*range(count)]
    different = []
    for number, one in enumerate(theirs):  # equal outputs belong together
        same = (n for n in left if all(map(np.array_equal, one, ours[n])))
        if (match := next(same, None)) is None:
            different.append(number)
        else:
            left.remove(match)
    shown: list[tuple[str, bool]] = []
    for number in different:
        where = f"output {number + 1}" if count > 1 else "the output"
        differences = [_difference(where, theirs[number], ours[n]) for n in left]
        place = max(range(len(left)), key=lambda n: (differences[n][1], -n))
        shown.append(differences[place])
        del left[place]
    return (shown[0][0], all(rounding for _, rounding in shown)) if shown else (None, True)


def _difference(where: str, theirs: Sequence[Array], ours: Sequence[Array]) -> tuple[str, bool]:
    """Return how the values of one output differ, and whether only by rounding."""
    difference, rounding = "", True
    for number, (their, our) in enumerate(zip(theirs, ours, strict=True)):
        if their.size != our.size:
            return f"{where} has {our.size} values, that of the graph {their.size}", False
        wrong = np.flatnonzero(their != our)
        if not wrong.size:
            continue
        far = np.abs(their - our) > np.maximum(1, np.abs(their) * _ROUNDING)
        rounding = rounding and not bool(far.any())
        if not difference:
            place = int(wrong[0])
            difference = (
                f"value {place} of {where} is {our[place]:g}, the graph gives "
                f"{their[place]:g} ({wrong.size} of {our.size} values differ"
                f"{' for the sample' if number == 0 else ' for an input of whole numbers'})"
            )
    return difference, rounding
