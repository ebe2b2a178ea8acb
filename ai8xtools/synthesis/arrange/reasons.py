"""Why things stand where they stand: a sentence for each choice that is not the simplest.

Source: docs/placement.md, "Places that are left open".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from ai8xtools.synthesis.arrange.decode import DecodedPlaces, decode, instance_mask, misplaced
from ai8xtools.synthesis.arrange.polish import cycles
from ai8xtools.synthesis.arrange.tensors import owner_of
from ai8xtools.synthesis.arrange.values import Problem
from ai8xtools.synthesis.layout import LayerLayout, Layout
from ai8xtools.synthesis.network import NETWORK_INPUT, Layer

WHOLE = ""
_SHOWN = 3


def reasons_of(
    problem: Problem,
    decoded: DecodedPlaces,
    layout: Layout,
    fixed: Layout,
    obstacles: tuple[str, ...],
) -> dict[int, dict[str, str]]:
    """Return the reasons by layer and key; `obstacles` tell why simpler choices did not do."""
    starts = _reasons_of_starts(problem, decoded)
    number = {tensor.owner: i for i, tensor in enumerate(problem.tensors)}
    reasons: dict[int, dict[str, str]] = {}
    for position, layer in enumerate(problem.network.executed()):
        own, result = fixed.layers[layer.index], number[owner_of(layer)]
        read = problem.reads[position]
        chosen = dict(_of_layer(problem, decoded, layout.layers[layer.index], result, read))
        if result in starts:
            chosen["output_processors"] = starts[result]
        if position == 0:
            chosen |= dict(_of_sample(problem, obstacles))
            if number[NETWORK_INPUT] in starts:
                chosen["processors"] = starts[number[NETWORK_INPUT]]
        if layer.place == _place_of_reader(problem, layer) and not layer.places:
            chosen[WHOLE] = _copied(problem, layer)
        if layer.zero_outputs and "zero_outputs" not in layer.places:
            chosen["zero_outputs"] = "they fill a pass of a layer behind this one"
        reasons[layer.index] = {
            key: text for key, text in chosen.items() if not _is_fixed(own, key)
        }
    return reasons


def _is_fixed(own: LayerLayout, key: str) -> bool:
    """Whether the user fixed what a key says."""
    name = {"data_format": "channels_first"}.get(key, key)
    return getattr(own, name, None) is not None


def _place_of_reader(problem: Problem, layer: Layer) -> object:
    """Return where the layer behind is described; a copy has no place of its own."""
    following = problem.network.following(layer)
    return following.place if following is not None else None


def _copied(problem: Problem, layer: Layer) -> str:
    reader = problem.network.following(layer)
    if layer.copied is not None:
        first, count = layer.copied
        return (
            f"added: channels {first} to {first + count - 1}, copied to where {reader} needs them"
        )
    return f"added: what {reader} reads here is needed without gaps elsewhere"


def _of_sample(problem: Problem, obstacles: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield why the sample arrives as it does."""
    if not obstacles:
        return
    choice, (simplest, *_) = problem.choice, obstacles
    if choice.port.is_fifo:
        yield "input_port", f"loaded into memory, nothing fits: {simplest}"
        yield "streaming", "the input arrives row by row"
    if choice.planar:
        yield "data_format", f"not HWC: {simplest}"


def _of_layer(
    problem: Problem,
    decoded: DecodedPlaces,
    layout: LayerLayout,
    result: int,
    read: tuple[int, ...],
) -> Iterator[tuple[str, str]]:
    """Yield the reasons of offsets, gaps and columns."""
    if layout.out_offset:
        neighbour = _neighbour(problem, decoded, result)
        if neighbour is not None:
            yield "out_offset", neighbour
    if layout.write_gap:
        yield "write_gap", _turns(problem, result)
    if layout.read_gap:
        yield "read_gap", f"skips the words between those of {problem.name(read[0])}"
    if layout.kernel_offset is not None:
        yield "kernel_offset", "in the loader's own order the kernels do not fit"
    if layout.in_place:
        yield "in_place", "nothing else fits; no chip has been measured"


def _neighbour(problem: Problem, decoded: DecodedPlaces, result: int) -> str | None:
    """Say what data stands below the place of a result."""
    cell = problem.cell_of[result]
    offset = decoded.offsets[cell]
    held = instance_mask(decoded.masks[result])
    below: list[str] = []
    for other, tensor in enumerate(problem.tensors):
        apart = problem.cell_of[other] != cell and tensor.meets(problem.tensors[result])
        if not apart or not held & instance_mask(decoded.masks[other]):
            continue
        start = decoded.offsets[problem.cell_of[other]]
        end = start + tensor.words * problem.step[other]
        if end == offset:
            below.append(problem.name(other))
        gap = problem.overlaps.get((result, other))
        if gap is not None and offset < start < offset + problem.tensors[result].words:
            return f"0x{4 * (start - offset):x} below {problem.name(other)}, over it"
    if below:
        return f"behind {' and '.join(below[:_SHOWN])}"
    mates = [problem.name(i) for i in problem.cells[cell].members if i != result]
    return f"with {' and '.join(mates[:_SHOWN])}" if mates else None


def _turns(problem: Problem, result: int) -> str:
    """Say whose words stand between those of a result."""
    cell = problem.cells[problem.cell_of[result]]
    mates = [problem.name(i) for i in cell.members if problem.slot[i] != problem.slot[result]]
    return f"between them are words of {' and '.join(mates[:_SHOWN]) or 'nobody'}"


def _reasons_of_starts(problem: Problem, decoded: DecodedPlaces) -> Mapping[int, str]:
    """Return, by tensor, why it does not begin at the lowest processor that it could."""
    reasons = {}
    for number, unit in enumerate(problem.units):
        starts, (lowest, *_) = list(decoded.tried.starts), unit.starts
        if starts[number] == lowest:
            continue
        starts[number] = lowest
        lower = decode(problem, replace(decoded.tried, starts=tuple(starts)))
        text = _why_not(problem, decoded, lower)
        for member in unit.members:
            reasons[member] = text
    return reasons


def _why_not(problem: Problem, decoded: DecodedPlaces, lower: DecodedPlaces) -> str:
    """Say what is wrong with places in which one unit stands lower."""
    if lower.over:
        layers = ", ".join(str(problem.layer(i)) for i in lower.over[:_SHOWN])
        return f"lower, the kernels of {layers} do not fit"
    if lower.lost:
        cell, *_ = lower.lost
        first, *_ = problem.cells[cell].members
        return f"lower, {problem.name(first)} does not fit"
    if lower.bias_bytes > decoded.bias_bytes:
        return "lower, the biases do not fit"
    if misplaced(problem, lower.masks):
        return "joined parts stand in rising order"
    if lower.cost:
        return "so that every group that holds a result takes part"
    if cycles(problem, lower) > cycles(problem, decoded):
        return "lower, data passes through in more steps"
    return "one of several places that fit"
