"""The files of a project: C for any compiler, and the plan as data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from ai8xtools.software.emit.code import RUNTIME, Code
from ai8xtools.software.emit.demand import Demand
from ai8xtools.software.emit.interface import PLAIN, Interface
from ai8xtools.software.emit.library import library_files, library_of
from ai8xtools.software.emit.makefile import building
from ai8xtools.software.emit.numbers import lines_of
from ai8xtools.software.emit.planfile import plan_file
from ai8xtools.software.emit.units import Units
from ai8xtools.software.graph import StepGraph
from ai8xtools.software.plan.plan import Output, Plan
from ai8xtools.synthesis.network import Tensor as Values
from ai8xtools.values import frozen
from ai8xtools.writing.files import distinct
from ai8xtools.writing.library import Shape
from ai8xtools.writing.templates import render

_LISTED = 1024
"""Values that main() prints; no fully connected layer has more."""


@frozen
class Sample:
    """An input and the network's output for it: int64 [channel, row, column] each."""

    input: Values
    outputs: tuple[Values, ...]


def emit(
    plan: Plan, sample: Sample, name: str, command_line: str, interface: Interface = PLAIN
) -> dict[str, str]:
    """Return the files of a project by path."""
    code = code_of(plan)
    code.helpers.update(interface.helpers)
    further = {**code.files(), **interface.files}
    interface = replace(interface, files=further)
    title = f"{name}: {command_line}"
    header = _header(plan, code, title)
    outputs = outputs_of(plan.graph, plan.outputs, sample)
    library = None
    if interface.naming is not None:
        shape, *results = (Shape(*values.shape) for values in (sample.input, *sample.outputs))
        library = library_of(plan, interface.naming, title, shape, results)
        interface = replace(interface, values={**interface.values, "api": library})
    shown = outputs[-1] | {"listed": min(outputs[-1]["count"], _LISTED)}
    folder, values = interface.folder, interface.values
    by_rows = plan.takes_rows and folder == PLAIN.folder
    files = [
        ("cnn.c", render(f"{folder}/{code.template}", title=title, scheme=code.title,
                         **code.values(), **values)),
        ("cnn.h", render(f"{folder}/cnn.h.j2", **header, **values)),
        ("weights.h", _macros("WEIGHTS_H", f"{name}: weights", _weights(code))),
        ("sampledata.h", _macros("SAMPLEDATA_H", f"{name}: sample",
                                 sample_arrays(outputs, sample))),
        ("main.c", render(f"{folder}/{'library_' if library is not None else ''}main.c.j2",
                          name=name, outputs=outputs, shown=shown,
                          demands_rows=by_rows, twice=by_rows, hop=header["hop"],
                          stateful=header["stateful"], **values)),
        ("nn.h", (RUNTIME / "nn.h").read_text(encoding="utf-8")),
        *further.items(),
        ("nn_kernels.h", render("software/nn_kernels.h.j2", kernels=code.functions,
                                core=macro_of(plan.core.name))),
        ("nn_kernels.c", sources_text((*sorted(code.helpers), *code.functions.values()))),
        *building(name, plan.core.name, header, code.functions, wide=shown["type"] == "i4",
                  interface=interface),
        ("plan.json", plan_file(plan, code, name, interface)),
    ]  # fmt: skip
    if library is None or interface.naming is None:
        return distinct(files)
    project = library_files(library, plan, distinct(files))
    application = interface.naming.application
    return project if application is None else application.applied(project, library)


def code_of(plan: Plan) -> Code:
    """Return what cnn.c contains for a plan."""
    return Units(plan) if plan.scheme is None else Demand(plan)


def _header(plan: Plan, code: Code, title: str) -> Mapping[str, Any]:
    source = plan.graph.tensors[plan.graph.input]
    outputs = [plan.graph.tensors[output.tensor] for output in plan.outputs]
    return {
        "title": title,
        "in_size": source.size_bytes,
        "in_rows": source.rows,
        "in_row_bytes": source.row_bytes,
        "out_size": sum(one.pixels * one.channels for one in outputs),
        "out_bytes": sum(one.size_bytes for one in outputs),
        "arena_bytes": plan.arena_bytes,
        "flash_bytes": code.flash_bytes,
        "macs": plan.graph.macs,
        "demands_rows": plan.takes_rows,
        "hop": plan.sliding and plan.sliding.hop,
        "hop_macs": plan.macs,
        "stateful": bool(plan.sliding) and plan.graph.kept is not None,
    }


def _macros(guard: str, title: str, arrays: Sequence[tuple[str, NDArray[Any]]]) -> str:
    macros = [{"name": name, "lines": lines_of(values)} for name, values in arrays]
    return render("software/macros.h.j2", guard=guard, title=title, macros=macros)


def macro_of(name: str) -> str:
    """Return the name of a core as part of a macro."""
    return name.upper().replace("-", "_")


def _weights(code: Code) -> list[tuple[str, NDArray[Any]]]:
    arrays: list[tuple[str, NDArray[Any]]] = []
    for number, values in code.weights.items():
        arrays.append((f"WEIGHTS_{number}", values))
        arrays.append((f"BIAS_{number}", code.starts[number]))
    arrays += [(name.upper(), values) for name, values in code.tables.items()]
    return arrays


def outputs_of(graph: StepGraph, outputs: Sequence[Output], sample: Sample) -> list[dict[str, Any]]:
    """Return what main.c compares: the values of each output as they stand in memory."""
    entries = []
    for number, (output, values) in enumerate(zip(outputs, sample.outputs, strict=True)):
        tensor = graph.tensors[output.tensor]
        only = len(outputs) == 1
        entries.append(
            {
                "type": "i4" if tensor.bytes_per_value == 4 else "i1",
                "count": tensor.pixels * tensor.channels,
                "macro": "OUTPUT_DATA" if only else f"OUTPUT_DATA_{number}",
                "offset": output.offset,
                "values": values.transpose(1, 2, 0).reshape(-1),
            }
        )
    return entries


def sample_arrays(outputs: Sequence[Mapping[str, Any]], sample: Sample) -> list[tuple[str, Any]]:
    """Return the macros of sampledata.h with their values: the input and the outputs."""
    values = sample.input.transpose(1, 2, 0).reshape(-1)
    return [("INPUT_DATA", values), *((one["macro"], one["values"]) for one in outputs)]


def sources_text(names: Sequence[str]) -> str:
    """Return the text of files of the run time, each once, one after the other."""
    return "\n".join(_without_repeated_include(dict.fromkeys(names)))


def _without_repeated_include(sources: Mapping[str, None]) -> Iterator[str]:
    for number, source in enumerate(sources):
        text = (RUNTIME / source).read_text(encoding="utf-8")
        include, _, rest = text.partition("\n")
        yield text if number == 0 or not include.endswith('"nn_kernels.h"') else rest.lstrip("\n")
