"""All node tests of the installed onnx, through the door of graphs: right, refused, or wrong.

Each has one node, or the few that a function consists of. A network has one input, so that one
input of the test after the other is the data, and the others are constants. What the door takes is
computed by the executor of the graph of operators, for the batch of the test, and compared with the
results that come with the test, before and behind the passes of each lowering.

    python -m tests.frontends.onnx_nodes [--only NAME] [--list right|refused|wrong]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ai8xtools.checkpoint.errors import CheckpointError
from ai8xtools.checkpoint.onnx_graph import read_graph
from ai8xtools.frontends.graph import maps
from ai8xtools.frontends.graph.passes import DepartsError, improved, results
from ai8xtools.frontends.onnx import layers
from ai8xtools.frontends.onnx.door import channels_last, read_operators

LARGE = 1 << 20
RIGHT, REFUSED, WRONG = "right", "refused", "wrong"


def cases(name: str | None = None) -> list[Any]:
    """Return the node tests of the installed onnx, or of one operator."""
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [case for case in collect_testcases(None) if name is None or name in case.name]


def operator_of(case: Any) -> str:
    """Return the operator that a test is about."""
    return next((str(node.op_type) for node in case.model.graph.node), "none")


def judged(case: Any, folder: Path) -> Iterator[tuple[str, str]]:
    """Yield a verdict with its reason for each input of a test that may be the data."""
    inputs, outputs = case.data_sets[0] if case.data_sets else ((), ())
    if not all(isinstance(one, np.ndarray | np.generic) for one in (*inputs, *outputs)):
        yield REFUSED, "its values are no tensors"
        return
    for number, data in enumerate(inputs):
        if data.dtype.kind in "fiub" and data.ndim and data.size:
            with np.errstate(all="ignore"):
                yield _judged(case, number, inputs, outputs, folder)


def _judged(case: Any, number: int, inputs: Any, outputs: Any, folder: Path) -> tuple[str, str]:
    data = inputs[number]
    file = folder / "net.onnx"
    file.write_bytes(_with_constants(case.model, number, inputs))
    try:
        source = read_graph(file)
        last = channels_last(source)
        shape = (*data.shape[-1:], *data.shape[1:-1]) if last else data.shape[1:]
        graph, refusals = read_operators(source, shape, len(data))
    except CheckpointError as exc:
        return REFUSED, str(exc)
    if refusals:
        return REFUSED, refusals[0].why
    x = data.astype(np.float64)
    x = np.moveaxis(x, -1, 1) if last else x
    try:
        forms = [graph, improved(graph, maps.PASSES), improved(graph, layers.PASSES)]
    except DepartsError as exc:
        return WRONG, str(exc)
    for form in forms:
        for ours, theirs in zip(results(form, x), outputs, strict=True):
            if ours is None:
                return REFUSED, "an operator without an executor"
            if ours.shape != theirs.shape:
                return WRONG, f"input {number}: {ours.shape} in place of {theirs.shape}"
            if not np.allclose(ours, theirs.astype(np.float64), case.rtol, max(case.atol, 1e-5),
                               equal_nan=True):  # fmt: skip
                return WRONG, f"input {number}: departs: {ours.ravel()[:6]} {theirs.ravel()[:6]}"
    return RIGHT, ""


def _with_constants(model: Any, data: int, values: Any) -> bytes:
    """Return a model whose inputs but one are constants."""
    from onnx import numpy_helper

    one = type(model).FromString(model.SerializeToString())
    for number, (place, value) in enumerate(zip(model.graph.input, values, strict=True)):
        if number != data:
            one.graph.initializer.append(numpy_helper.from_array(np.asarray(value), place.name))
    return bytes(one.SerializeToString())


def verdict(pairs: list[tuple[str, str]]) -> str:
    """Return what a test counts as: wrong if any is, right if any input comes in."""
    words = {word for word, _ in pairs}
    return next((word for word in (WRONG, RIGHT) if word in words), REFUSED)


def main(arguments: list[str] | None = None) -> int:
    """Print a table by operators; return 1 if anything is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", metavar="NAME", help="tests whose name has this in it")
    parser.add_argument("--list", choices=(RIGHT, REFUSED, WRONG), help="names, with reasons")
    options = parser.parse_args(arguments)
    table: dict[str, Counter[str]] = defaultdict(Counter)
    with tempfile.TemporaryDirectory() as folder:
        for case in cases(options.only):
            pairs = list(judged(case, Path(folder)))
            word = verdict(pairs)
            table[operator_of(case)][word] += 1
            if word in (WRONG, options.list):
                print(case.name, word, *dict.fromkeys(r for w, r in pairs if w == word and r),
                      sep=": ", flush=True)  # fmt: skip
    total = sum(table.values(), Counter())
    print(f"{'operator':30s}{RIGHT:>9s}{REFUSED:>9s}{WRONG:>9s}")
    for name, counts in (*sorted(table.items()), ("all", total)):
        print(f"{name:30s}" + "".join(f"{counts[word]:9d}" for word in (RIGHT, REFUSED, WRONG)))
    return 1 if total[WRONG] else 0


if __name__ == "__main__":
    sys.exit(main())
