"""Networks of 16 and 8 bits as checkpoints: quantize.py writes them, ai8xize.py reads them.

`state_dict` holds the integers of each layer (`NAME.weight`, `NAME.bias`), `qformat` the steps and
the fractions of all maps, `sample` an input. A file may come from anywhere: whatever is read is
checked before it is used.
Source: docs/q15.md, "The checkpoint".
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeGuard, assert_never

import numpy as np

from ai8xtools.checkpoint import Checkpoint
from ai8xtools.checkpoint.values import NETWORK
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.quantization.formats import Float64s, Int64s, limits
from ai8xtools.quantization.q15.formats import (
    MAX_SHIFT,
    Guard,
    LayerFormats,
    QuantizedLayer,
    largest_sum,
)
from ai8xtools.quantization.q15.graph import (
    Add,
    Clip,
    Concat,
    Constant,
    Enlarge,
    Flatten,
    Gather,
    Graph,
    GraphBuilder,
    Multiply,
    Pair,
    Pool,
    Step,
    Table,
    Weighted,
)
from ai8xtools.quantization.q15.network import APART, QuantizedNetwork, leaders_of
from ai8xtools.values import frozen

_PLAIN, _SECOND, _VERSION = 1, 2, 4
"""Files with groups, transposed convolutions or upsampling have the second version, those with
tables, products, constants, rows by number, flattened results or incomplete windows the fourth; the
third are graphs.
"""
_MOST_STEPS, _LARGEST, _DEEPEST = 10_000, 1 << 16, 1 << 10
_POINTS = {8: (256,), 16: tuple((65536 // apart) + 1 for apart in APART)}


@frozen
class StoredNetwork:
    """A network with a sample [row, column, channel]; `column_major`: columns before rows."""

    network: QuantizedNetwork
    sample: Int64s
    column_major: bool


def to_checkpoint(stored: StoredNetwork, arch: str | None) -> Checkpoint:
    """Return the checkpoint of a network."""
    network, graph = stored.network, stored.network.graph
    kind = np.dtype(f"<i{network.bits // 8}")
    state: dict[str, Any] = {}
    steps = []
    for number, step in enumerate(graph.steps):
        entry = dict(_entry(step))
        if isinstance(step, Weighted):
            layer = network.layers[step.target]
            entry["layer"] = f"{number}_{step.name}"
            entry["formats"] = [layer.formats.kw, layer.formats.kb, layer.formats.guard_bits]
            weights = layer.weights.transpose(0, 3, 1, 2)
            state[f"{entry['layer']}.weight"] = np.ascontiguousarray(weights.astype(kind))
            state[f"{entry['layer']}.bias"] = layer.bias.astype(kind)
        elif step.target in network.arrays:
            entry["layer"] = f"{number}_{step.name}"
            state[f"{entry['layer']}.values"] = network.arrays[step.target].astype(kind)
        steps.append(entry)
    plan = {
        "version": max(map(_version, graph.steps)),
        "bits": network.bits, "guard": str(network.guard),
        "column_major": stored.column_major, "input": list(graph.shapes[0]), "steps": steps,
        "fractions": list(network.fractions), "output": graph.output,
    }  # fmt: skip
    entries = {"epoch": 0, "arch": arch or "network", "state_dict": state, NETWORK: plan,
               "sample": stored.sample.astype(kind)}  # fmt: skip
    return Checkpoint(entries)


def _version(step: Step) -> int:
    """Return the first version of files that have such a step."""
    match step:
        case Weighted():
            plain = step.spread == (1, 1) and (step.groups == 1 or step.depthwise)
            return _PLAIN if plain else _SECOND
        case Enlarge():
            return _SECOND
        case Table() | Multiply() | Constant() | Gather() | Flatten() | Pool(ceil=True):
            return _VERSION
        case _:
            return _PLAIN


def _entry(step: Step) -> Iterator[tuple[str, Any]]:
    """Yield what is stored of a step besides its integers."""
    yield "kind", type(step).__name__.lower()
    yield "name", step.name
    yield "sources", list(step.sources)
    yield "target", step.target
    match step:
        case Weighted():
            yield from (("stride", list(step.stride)), ("padding", list(step.padding)))
            yield from (("groups", step.groups), ("linear", step.linear))
            if step.spread != (1, 1) or step.extra != (0, 0):
                yield from (("spread", list(step.spread)), ("extra", list(step.extra)))
        case Pool():
            yield from (("average", step.average), ("window", list(step.window)))
            yield from (("stride", list(step.stride)), ("padding", list(step.padding)))
            if step.ceil:
                yield "ceil", True
        case Enlarge():
            yield "factor", list(step.factor)
        case Gather():
            yield from (("rows", list(step.rows)), ("columns", list(step.columns)))
        case Clip():
            yield from (("low", float(step.low)), ("high", float(step.high)))
        case Add() | Concat() | Table() | Multiply() | Constant() | Flatten():
            pass
        case _:
            assert_never(step)


def holds_network(checkpoint: Checkpoint) -> bool:
    """Whether a checkpoint is one of 16 or 8 bits."""
    return checkpoint.network is not None


def from_checkpoint(checkpoint: Checkpoint, path: str) -> StoredNetwork:
    """Return the network of a checkpoint. Raises InputError E744 for one that is not sound."""
    return _Reader(checkpoint, path).stored()


class _Reader:
    """Rebuilds a network step by step; every number is checked."""

    def __init__(self, checkpoint: Checkpoint, path: str) -> None:
        self._checkpoint, self._path = checkpoint, path
        plan = checkpoint.network
        self._check(isinstance(plan, dict), f"{NETWORK} is a dictionary")
        assert isinstance(plan, dict)
        self._plan: Mapping[str, Any] = plan
        self._check(
            plan.get("version") in (_PLAIN, _SECOND, _VERSION),
            f"{NETWORK} has version {_PLAIN}, {_SECOND} or {_VERSION}, not one of later tools",
        )
        bits = plan.get("bits")
        self._check(bits in (8, 16) and not isinstance(bits, bool), "numbers have 8 or 16 bits")
        self._bits = int(plan["bits"])
        guards = [*map(str, Guard)]
        self._check(plan.get("guard") in guards, f"the guard is one of {', '.join(guards)}")
        self._guard = Guard(plan["guard"])
        self._builder = GraphBuilder(self._numbers(plan, "input", 3, 1, _LARGEST - 1))
        self._maps = {0: 0}  # by their numbers in the file
        self._fractions: dict[int, int] = {}
        self._layers: dict[int, QuantizedLayer] = {}
        self._arrays: dict[int, Int64s] = {}

    def stored(self) -> StoredNetwork:
        """Return the network and its sample."""
        plan = self._plan
        steps, fractions = plan.get("steps"), plan.get("fractions")
        self._check(isinstance(steps, list) and 0 < len(steps) <= _MOST_STEPS, "it has steps")
        self._check(isinstance(fractions, list), "maps have fractions")
        assert isinstance(steps, list) and isinstance(fractions, list)
        self._stored_fractions = fractions
        self._fraction(0)
        for step in steps:
            self._check(isinstance(step, dict), "a step is a dictionary")
            name = step.get("name")
            self._check(isinstance(name, str) and name.isprintable(), "steps have names")
            self._step(step, f"step {name}")
        output = self._map(plan.get("output"), "the output")
        graph = self._builder.finished(output)
        self._check(len(graph.steps) == len(steps), "every step leads to the output")
        self._check_fractions(graph)
        fractions_by_map = tuple(self._fractions[number] for number in range(len(graph.shapes)))
        network = QuantizedNetwork(graph, self._bits, self._guard, fractions_by_map, self._layers,
                                   self._arrays)  # fmt: skip
        column_major = plan.get("column_major")
        self._check(isinstance(column_major, bool), "column_major is true or false")
        return StoredNetwork(network, self._sample(graph), bool(column_major))

    def _step(self, step: Mapping[str, Any], what: str) -> None:
        sources = step.get("sources")
        kind = step.get("kind")
        free = kind == "constant"
        self._check(isinstance(sources, list) and bool(sources) != free, f"{what} has sources")
        assert isinstance(sources, list)
        inputs = [self._map(source, f"{what}: a source") for source in sources]
        first, *_ = inputs or [0]
        single = kind in ("weighted", "pool", "clip", "enlarge", "gather", "flatten", "table")
        self._check(not single or len(inputs) == 1, f"{what} has one source")
        target = step.get("target")
        self._check(_is_number(target) and target not in self._maps, f"{what} makes a new map")
        assert isinstance(target, int)
        if kind == "weighted":
            tensor = self._weighted(step, first, what)
        elif kind == "pool":
            tensor = self._pool(step, first, what)
        elif kind == "enlarge":
            tensor = self._builder.enlarge(step["name"], first, self._pair(step, "factor", 1))
        elif kind == "clip":
            low, high = step.get("low"), step.get("high")
            right = isinstance(low, float) and isinstance(high, float) and low <= high
            self._check(right, f"{what} has limits")
            tensor = self._builder.clip(step["name"], first, step["low"], step["high"])
        elif kind == "gather":
            _, height, width = self._builder.shape(first)
            rows = self._places(step, "rows", height, what)
            columns = self._places(step, "columns", width, what)
            tensor = self._builder.gather(step["name"], first, rows, columns)
        elif kind == "flatten":
            tensor = self._builder.flatten(step["name"], first)
        elif kind == "table":
            points = self._integers(step, "values", what)
            self._check(len(points) in _POINTS[self._bits], f"{what} has points")
            tensor = self._builder.table(step["name"], first, _unknown)
            self._arrays[tensor] = points
        elif free:
            values = self._integers(step, "values", what, 3)
            tensor = self._builder.constant(step["name"], values.transpose(2, 0, 1).astype(float))
            self._arrays[tensor] = values
        else:
            self._check(kind in ("add", "concat", "multiply"), f"{what} is of a known kind")
            tensor = self._joined(step, inputs, what)
        self._maps[target] = tensor
        self._fraction(target)
        if kind == "weighted":
            self._layers[tensor] = self._layer(step, first, tensor, what)

    def _weighted(self, step: Mapping[str, Any], source: int, what: str) -> int:
        kernels, bias = self._integers(step, "weight", what, 4), self._integers(step, "bias", what)
        self._check(len(kernels) == len(bias), f"{what} has a bias for each filter")
        shape = self._builder.shape(source)
        if step.get("linear") is True:
            self._check(kernels.shape[1:] == shape, f"{what} has a weight for each input")
            flat = kernels.reshape(len(kernels), -1).astype(np.float64)
            return self._builder.linear(step["name"], source, flat, bias.astype(np.float64))
        groups = step.get("groups")
        self._check(_is_number(groups, 1), f"{what} has groups")
        assert isinstance(groups, int)
        even = len(kernels) % groups == 0
        self._check(even and kernels.shape[1] * groups == shape[0], f"{what} fits its input")
        spread, extra = ((1, 1), (0, 0)) if "spread" not in step else (
            self._pair(step, "spread", 1), self._pair(step, "extra", 0)
        )  # fmt: skip
        wide = [(n - 1) * s + 1 + e for n, s, e in zip(shape[1:], spread, extra, strict=True)]
        self._check(max(wide) < _LARGEST, f"{what} spreads to fewer than {_LARGEST} pixels")
        stride, padding = self._windows(step, kernels.shape[2:], wide, what)
        return self._builder.convolution(
            step["name"], source, kernels.astype(np.float64), bias.astype(np.float64), stride,
            padding, (1, 1), groups, spread, extra,
        )  # fmt: skip

    def _pool(self, step: Mapping[str, Any], source: int, what: str) -> int:
        window = self._pair(step, "window", 1)
        stride, padding = self._windows(step, window, self._builder.shape(source)[1:], what)
        inside = all(2 * p <= w for p, w in zip(padding, window, strict=True))
        self._check(inside, f"{what}: no window is outside")
        self._check(isinstance(step.get("average"), bool), f"{what} is of a known kind")
        ceil = step.get("ceil", False)
        self._check(isinstance(ceil, bool), f"{what} keeps the last windows, or not")
        return self._builder.pool(step["name"], source, step["average"], window, stride, padding,
                                  ceil=ceil)  # fmt: skip

    def _places(self, step: Mapping[str, Any], key: str, count: int, what: str) -> list[int]:
        """Return numbers of rows or columns."""
        places = step.get(key)
        right = isinstance(places, list) and 0 < len(places) < _LARGEST and all(
            _is_number(one) and one < count for one in places
        )  # fmt: skip
        self._check(right, f"{what} has {key} of its input")
        assert isinstance(places, list)
        return places

    def _windows(
        self, step: Mapping[str, Any], size: Sequence[int], shape: Sequence[int], what: str
    ) -> tuple[Pair, Pair]:
        """Return stride and padding; windows lie within the padded map."""
        stride, padding = self._pair(step, "stride", 1), self._pair(step, "padding", 0)
        fits = all(n + 2 * p >= k for n, p, k in zip(shape, padding, size, strict=True))
        self._check(fits, f"{what} fits its input")
        return stride, padding

    def _joined(self, step: Mapping[str, Any], tensors: Sequence[int], what: str) -> int:
        shapes = [self._builder.shape(tensor) for tensor in tensors]
        kind = step["kind"]
        if kind == "multiply":
            fit = len(shapes) == 2 and all(m in (1, n) for n, m in zip(*shapes, strict=True))
            self._check(fit, f"{what} has two factors that fit together")
            return self._builder.multiply(step["name"], tensors)
        same = {shape[1:] if kind == "concat" else shape for shape in shapes}
        self._check(len(same) == 1 and len(tensors) > 1, f"{what} joins maps of one size")
        if kind == "add":
            return self._builder.add(step["name"], tensors)
        return self._builder.concat(step["name"], tensors)

    def _layer(
        self, step: Mapping[str, Any], source: int, result: int, what: str
    ) -> QuantizedLayer:
        kw, kb, spare = self._numbers(step, "formats", 3, -_DEEPEST, _DEEPEST)
        kx, ko = self._fractions[source], self._fractions[result]
        shifts = (kx + kw - kb, kx + kw - ko)
        self._check(
            all(0 <= shift <= MAX_SHIFT for shift in shifts), f"{what} shifts by 0 to {MAX_SHIFT}"
        )
        weights = self._integers(step, "weight", what, 4).transpose(0, 2, 3, 1)
        bias = self._integers(step, "bias", what)
        bound = largest_sum(weights, bias, *shifts, 1 << self._bits - 1)
        safe = bound < 1 << 31 or not self._guard.holds_for_all
        self._check(safe, f"{what}: no input makes a sum leave 32 bits")
        return QuantizedLayer(LayerFormats(kx, kw, kb, ko, spare, bound), weights, bias)

    def _integers(self, step: Mapping[str, Any], name: str, what: str, axes: int = 1) -> Int64s:
        """Return a tensor of the state_dict with as many axes."""
        key = f"{step.get('layer')}.{name}"
        values = self._checkpoint.state_dict.get(key)
        right = values is not None and values.ndim == axes and values.size > 0
        self._check(right, f"{what} has its {name}")
        assert values is not None
        return self._in_range(values, key)

    def _in_range(self, values: np.ndarray[Any, Any], name: str) -> Int64s:
        low, high = limits(self._bits)
        right = values.dtype.kind == "i" and low <= values.min() and values.max() <= high
        self._check(bool(right), f"{name} has integers of {self._bits} bits")
        integers: Int64s = values.astype(np.int64)
        return integers

    def _sample(self, graph: Graph) -> Int64s:
        values = self._checkpoint.entries.get("sample")
        channels, rows, columns = graph.shapes[0]
        right = isinstance(values, np.ndarray) and values.shape == (rows, columns, channels)
        self._check(right, "the sample is an input of the network")
        assert isinstance(values, np.ndarray)
        return self._in_range(values, "the sample")

    def _check_fractions(self, graph: Graph) -> None:
        """All maps that one format has to hold have that format."""
        for tensor, leader in enumerate(leaders_of(graph)):
            same = self._fractions[tensor] == self._fractions[leader]
            self._check(same, "maps that belong together have one fraction")
        for step in graph.steps:
            if isinstance(step, Multiply):
                shift = sum(map(self._fractions.__getitem__, step.sources))
                shift -= self._fractions[step.target]
                self._check(0 <= shift <= MAX_SHIFT, f"{step.name} shifts by 0 to {MAX_SHIFT}")

    def _fraction(self, number: int) -> None:
        """Take the fraction of a map of the file."""
        right = number < len(self._stored_fractions) and _is_number(
            self._stored_fractions[number], -_DEEPEST
        )
        self._check(
            bool(right) and self._stored_fractions[number] <= _DEEPEST, "maps have fractions"
        )
        tensor = self._maps[number]
        shape = self._builder.shape(tensor)
        self._check(max(shape) < _LARGEST, f"maps have fewer than {_LARGEST} rows and columns")
        self._check(math.prod(shape) < 1 << 31, "maps fit a memory")
        self._fractions[tensor] = self._stored_fractions[number]

    def _map(self, number: Any, what: str) -> int:
        self._check(_is_number(number) and number in self._maps, f"{what} is a map made before")
        return self._maps[number]

    def _pair(self, step: Mapping[str, Any], key: str, least: int) -> Pair:
        one, other = self._numbers(step, key, 2, least, _LARGEST)
        return one, other

    def _numbers(
        self, step: Mapping[str, Any], key: str, count: int, least: int, most: int
    ) -> list[int]:
        values = step.get(key)
        right = isinstance(values, list) and len(values) == count and all(
            _is_number(value, least) and value <= most for value in values
        )  # fmt: skip
        self._check(right, f"{key} are {count} numbers from {least} to {most}")
        assert isinstance(values, list)
        return [*values]

    def _check(self, right: bool, rule: str) -> None:
        """Raise InputError E744 unless a rule is kept."""
        if not right:
            raise InputError(
                "E744",
                f"this is no sound network of 16 or 8 bits: {rule}; here it is not so",
                self._path,
                "Write it again with quantize.py --device Q15 or Q7.",
            )


def _unknown(_values: Float64s) -> Float64s:
    """What a file has is the points of a function, not the function."""
    raise TypeError("the function of a table is not stored")


def _is_number(value: Any, least: int = 0) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least
