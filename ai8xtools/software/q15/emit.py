"""The files of a project in 16 or 8 bits: C for any compiler, weights, and a known answer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import numpy as np

from ai8xtools.quantization.formats import Int64s
from ai8xtools.quantization.q15.graph import Gather, Weighted
from ai8xtools.quantization.q15.network import QuantizedNetwork
from ai8xtools.software.cmsis.orders import interleaved
from ai8xtools.software.emit.interface import Interface, Library
from ai8xtools.software.emit.makefile import building
from ai8xtools.software.emit.numbers import lines_of
from ai8xtools.software.q15.calls import Program, program
from ai8xtools.software.q15.functions import q_of
from ai8xtools.values import frozen
from ai8xtools.writing.files import distinct
from ai8xtools.writing.templates import render

_LISTED = 64
ROW_MAJOR, COLUMN_MAJOR = "row, column, channel", "column, row, channel"


@frozen
class Sample:
    """An input and what the network makes of it: integers [row, column, channel] each."""

    input: Int64s
    output: Int64s


def emit(
    network: QuantizedNetwork,
    sample: Sample,
    name: str,
    command_line: str,
    core: str = "cortex-m4",
    order: str = ROW_MAJOR,
    interface: Interface | None = None,
    *,
    interleaving: bool = False,
    code: Program | None = None,
) -> dict[str, str]:
    """Return the files of a project by path; `order` is that of maps in memory, as text.

    `code` is what runs if that is known. Functions that the `interface` has a library for are taken
    from there. With `interleaving` fully connected layers take the weights of `_opt`.
    """
    interface = interface or interface_of(None)
    library = interface.library
    code = code or program(network, library=library is not None, interleaving=interleaving)
    title = f"{name}: {command_line}"
    graph = network.graph
    header: dict[str, Any] = {
        "bits": network.bits,
        "q": q_of(network.bits),
        "title": title,
        "order": order,
        "in_size": sample.input.size,
        "out_size": sample.output.size,
        "out_bytes": sample.output.size * network.bits // 8,
        "input_k": network.fractions[0],
        "output_k": network.fractions[graph.output],
        "arena_bytes": code.plan.arena_bytes,
        "flash_bytes": flash_bytes(network),
        "macs": graph.macs,
    }
    layers = list(code.layers.values())
    fixed = [*_arrays(network, code)]
    arrays = [("INPUT_DATA", sample.input), ("OUTPUT_DATA", sample.output)]
    macros = [{"name": key, "lines": lines_of(values.reshape(-1))} for key, values in arrays]
    listed = min(sample.output.size, _LISTED)
    ours = [one for one in code.functions if library is None or not one.library]
    folder = "software/q15"
    files = [
        ("cnn.c", render(f"{folder}/cnn.c.j2", calls=code.runs or code.calls, layers=layers,
                         arrays=fixed, row_steps=code.row_steps, until=code.asks_for_windows,
                         **header)),
        ("cnn.h", render(f"{folder}/cnn.h.j2", **header)),
        ("weights.h", render(f"{folder}/weights.h.j2", **header,
                             layers=[*_weights(network, code)], arrays=fixed)),
        ("sampledata.h", render("software/macros.h.j2", guard="SAMPLEDATA_H", macros=macros,
                                title=f"{name}: sample, {order}")),
        ("main.c", render(f"{folder}/main.c.j2", listed=listed, name=name, **header)),
        ("nn_kernels.h", render(f"{folder}/nn_kernels.h.j2", **header, functions=ours,
                                library=library is not None)),
        ("nn_kernels.c", render(f"{folder}/kernels.c.j2", **header, functions=ours,
                                parts={part for one in ours for part in one.needs})),
        *interface.files.items(),
        *building(name, core, header, {one.name: "" for one in code.functions}, wide=False,
                  interface=interface),
        ("plan.json", _plan(network, code, name, core, library)),
    ]  # fmt: skip
    return distinct(files)


def interface_of(library: Library | None) -> Interface:
    """Return how a project is called, and what sources of a library need on a computer."""
    host = {} if library is None else {"host_arm.h": render("software/cmsis/host_arm.h.j2")}
    headers = ("cnn.h", "nn_kernels.h", "weights.h")
    return Interface("software/q15", files=host, library=library, headers=headers)


def weights_in_order(step: Weighted, weights: Int64s) -> Int64s:
    """Return weights [filters, rows, columns, channels] as their function reads them."""
    return weights[..., 0].transpose(1, 2, 0) if step.depthwise else weights


def _flat(step: Weighted, weights: Int64s, code: Program, bits: int) -> Int64s:
    """Return the weights of a step one after another."""
    if step.linear and code.interleaving:
        return interleaved(weights.reshape(len(weights), -1), bits)
    by_rows = step.target in {one.target for one in code.row_steps}  # all by the function of groups
    return (weights if by_rows else weights_in_order(step, weights)).reshape(-1)


def _weights(network: QuantizedNetwork, code: Program) -> Iterator[dict[str, Any]]:
    """Yield the content of weights.h for each weighted step."""
    for step in network.graph.steps:
        if not isinstance(step, Weighted):
            continue
        layer = network.layers[step.target]
        formats = layer.formats
        yield {
            "name": code.layers[step.target],
            "comment": f"{step.name}: k of input {formats.kx}, weights {formats.kw}, bias "
            f"{formats.kb}, output {formats.ko}",
            "bias_lshift": formats.bias_lshift,
            "out_rshift": formats.out_rshift,
            "weights": lines_of(_flat(step, layer.weights, code, network.bits)),
            "bias": lines_of(layer.bias),
        }


def _arrays(network: QuantizedNetwork, code: Program) -> Iterator[dict[str, Any]]:
    """Yield the other content of weights.h: tables, constants, numbers of rows and columns."""
    for step in network.graph.steps:
        name, comment = code.arrays.get(step.target, ""), step.name
        if isinstance(step, Gather):
            for part, places in (("ROWS", step.rows), ("COLUMNS", step.columns)):
                yield {"name": f"{name}_{part}", "places": True, "comment": comment,
                       "values": lines_of(np.array(places))}  # fmt: skip
        elif name:
            values = network.arrays[step.target].reshape(-1)
            yield {"name": name, "places": False, "comment": comment, "values": lines_of(values)}


def flash_bytes(network: QuantizedNetwork) -> int:
    """Return the bytes of weights, biases and other constants."""
    numbers = sum(layer.weights.size + layer.bias.size for layer in network.layers.values())
    numbers += sum(values.size for values in network.arrays.values())
    places = sum(len(step.rows) + len(step.columns) for step in network.graph.steps
                 if isinstance(step, Gather))  # fmt: skip
    return int(numbers) * network.bits // 8 + 2 * places


def _plan(
    network: QuantizedNetwork, code: Program, name: str, core: str, library: Library | None
) -> str:
    """Return the text of plan.json."""
    steps = [
        {
            "name": step.name,
            "kind": type(step).__name__.lower(),
            "functions": [function.name for function in call.functions],
            "reads": list(step.sources),
            "writes": step.target,
            "k": network.fractions[step.target],
        }
        for step, call in zip(code.steps, code.calls, strict=True)
    ]
    blocks = [
        {"name": b.name, "bytes": b.size, "offset": b.offset, "first": b.first, "last": b.last}
        for b in code.plan.blocks
    ]
    content: dict[str, Any] = {
        "format": 1,
        "name": name,
        "core": core,
        "bits": network.bits,
        "arena_bytes": code.plan.arena_bytes,
        "macs": network.graph.macs,
        "steps": steps,
        "blocks": blocks,
    }
    if library is not None:
        content["library"] = asdict(library)
    return json.dumps(content, indent=1) + "\n"
