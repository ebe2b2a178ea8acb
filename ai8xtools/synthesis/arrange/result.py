"""Places that were found become a complete layout.

Source: docs/placement.md, "Places that are left open".
"""

from __future__ import annotations

from dataclasses import replace

from ai8xtools.synthesis.arrange.decode import DecodedPlaces, instance_mask
from ai8xtools.synthesis.arrange.defaults import complete
from ai8xtools.synthesis.arrange.tensors import owner_of, skipped_words, words_in_front
from ai8xtools.synthesis.arrange.values import Problem
from ai8xtools.synthesis.layout import BufferLayout, LayerLayout, Layout
from ai8xtools.synthesis.network import DATA_BUFFER, Layer

WORD = 4


def layout_of(problem: Problem, decoded: DecodedPlaces, fixed: Layout) -> Layout:
    """Return the complete layout of the places of a try."""
    network, number = problem.network, {t.owner: i for i, t in enumerate(problem.tensors)}
    layers = {
        layer.index: _layer(problem, decoded, layer, position, number, fixed.layers[layer.index])
        for position, layer in enumerate(network.executed())
    }
    buffer = fixed.buffer_place
    if DATA_BUFFER in number:
        tensor = number[DATA_BUFFER]
        place = WORD * decoded.offsets[problem.cell_of[tensor]]
        buffer = BufferLayout(decoded.masks[tensor], place)
    open_ends = replace(fixed, layers=layers, input_port=problem.choice.port, buffer_place=buffer)
    return complete(network.layers, network.order, open_ends)


def _layer(
    problem: Problem,
    decoded: DecodedPlaces,
    layer: Layer,
    position: int,
    number: dict[int, int],
    fixed: LayerLayout,
) -> LayerLayout:
    choice, reads = problem.choice, problem.reads[position]
    result = number[owner_of(layer)]
    written = decoded.offsets[problem.cell_of[result]] + problem.slot[result]
    read = min(
        decoded.offsets[problem.cell_of[t]] + problem.slot[t] + problem.tensors[t].leading
        for t in reads
    )
    tensor = problem.tensors[result]
    processors = decoded.processors(problem, position)
    order = decoded.tried.kernels is not None and layer.index in decoded.columns
    over = [source for source in reads if (result, source) in problem.overlaps]
    return replace(
        fixed,
        processors=processors,
        output_processors=decoded.masks[result],
        in_offset=WORD * (read + skipped_words(problem.network, layer)),
        out_offset=WORD * (written + tensor.leading + words_in_front(problem.network, layer)),
        write_gap=problem.step[result] - 1,
        read_gap=_read_gap(problem, layer, reads),
        channels_first=choice.planar and position == 0,
        streaming=position < choice.streamed,
        kernel_offset=decoded.columns[layer.index] if order else fixed.kernel_offset,
        in_place=_is_over(problem, decoded, result, *over) if over else fixed.in_place,
    )


def _read_gap(problem: Problem, layer: Layer, reads: tuple[int, ...]) -> int:
    """Return the words between those that a layer reads from one source."""
    if layer.operands > 1 or len(reads) > 1:
        return 0
    (source,) = reads
    return problem.step[source] - 1


def _is_over(problem: Problem, decoded: DecodedPlaces, result: int, source: int) -> bool | None:
    """Whether an output shares words with its input; None: it does not."""
    a, b = problem.tensors[result], problem.tensors[source]
    if not instance_mask(decoded.masks[result]) & instance_mask(decoded.masks[source]):
        return None
    low = decoded.offsets[problem.cell_of[result]]
    high = decoded.offsets[problem.cell_of[source]]
    apart = low + a.words * problem.step[result] <= high
    apart = apart or high + b.words * problem.step[source] <= low
    return None if apart else True
