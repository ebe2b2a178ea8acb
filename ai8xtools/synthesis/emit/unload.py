"""How `cnn_unload` copies the output: runs of equal reads, cut into loops.

Bytes of 8-bit layers are delivered as [channel][pixel], words of 32-bit layers in memory order.
Source: docs/generated-project.md, "The output".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Literal

from ai8xtools.synthesis.emit.options import ProjectOptions
from ai8xtools.synthesis.program import (
    Program,
    TransposedChannel,
    TransposingPort,
    UnloadLayer,
    UnloadPiece,
)
from ai8xtools.values import frozen
from device.chip import WORD_BYTES

_LARGEST_SCALE_OF_BYTES = 8
"""8-bit values times 2^8 still fit into 16 bits."""
PIXELS_PER_READ = 4
"""What a transposing port delivers at a time."""


@frozen
class Chunk:
    """`loops` repetitions (1: no loop) of `bodies` equal reads written one after the other."""

    loops: int
    bodies: int


@frozen
class UnloadRun:
    """Equal reads at equal distances.

    Each takes the values of `lanes` (bytes of a word, or words) and moves `step_words` on. `target`
    is where the first value goes, in bytes from the start of the result; further lanes of an 8-bit
    run go `plane` values on each (1: the values follow each other). They are multiplied by
    2^`scale`; those of 8 bits take 16 with `in_halfwords`.
    """

    width: Literal[8, 32]
    address: int
    lanes: tuple[int, ...]
    step_words: int
    reads: int
    target: int
    plane: int
    scale: int = 0
    in_halfwords: bool = False
    chunks: tuple[Chunk, ...] = ()

    @property
    def value_bytes(self) -> int:
        """Bytes of a value in the result."""
        return 2 if self.in_halfwords else self.width // 8

    @property
    def size_bytes(self) -> int:
        """Bytes of the result that the run writes, where they are contiguous."""
        return self.reads * len(self.lanes) * self.value_bytes


@frozen
class Transposed:
    """An output layer that is read through transposing ports, from byte `target` of the result on.

    `ports` are its channels by port; each takes the reads of `chunks`, and one more for the last
    `tail` pixels.
    """

    target: int
    ports: tuple[tuple[TransposingPort, tuple[TransposedChannel, ...]], ...]
    chunks: tuple[Chunk, ...]
    tail: int


@frozen
class UnloadedOutput:
    """An output layer and the runs that copy it, or the ports that it is read through."""

    layer: UnloadLayer
    runs: tuple[UnloadRun, ...]
    transposed: Transposed | None = None


@frozen
class UnloadCode:
    """Everything the template needs; `size_bytes` is the size of the whole result."""

    outputs: tuple[UnloadedOutput, ...]
    size_bytes: int

    @property
    def narrow(self) -> bool:
        """Whether any layer delivers bytes."""
        return any(output.layer.width == 8 for output in self.outputs)

    @property
    def wide(self) -> bool:
        """Whether any layer delivers words."""
        return any(output.layer.width == 32 for output in self.outputs)

    @property
    def direct(self) -> bool:
        """Whether any layer is read from data memory itself."""
        return any(output.runs for output in self.outputs)

    @property
    def ports(self) -> bool:
        """Whether any layer is read through transposing ports."""
        return any(output.transposed for output in self.outputs)

    @property
    def takes_words(self) -> bool:
        """Whether words are taken apart."""
        return any(
            output.transposed.tail or output.layer.in_halfwords
            if output.transposed
            else output.layer.width == 8
            for output in self.outputs
        )

    @property
    def delivers_bytes(self) -> bool:
        """Whether values of 8 bits are written one by one."""
        return any(
            output.transposed.tail if output.transposed else output.layer.width == 8
            for output in self.outputs
            if not output.layer.in_halfwords
        )

    @property
    def delivers_words(self) -> bool:
        """Whether a pointer to words is needed besides the argument."""
        return self.narrow and any(
            output.layer.width == 32 or (output.transposed and not output.layer.in_halfwords)
            for output in self.outputs
        )

    @property
    def scaled(self) -> bool:
        """Whether any layer is delivered scaled."""
        return any(output.layer.scale for output in self.outputs)

    @property
    def halfwords(self) -> bool:
        """Whether any values of 8 bits are delivered in 16."""
        return any(output.layer.in_halfwords for output in self.outputs)

    @property
    def limits_values(self) -> bool:
        """Whether a scaled value may be too large for its place."""
        return any(output.layer.scale and saturates(output.layer) for output in self.outputs)


def layer_offsets(layers: Sequence[UnloadLayer]) -> tuple[int, ...]:
    """Return where each layer starts in the result, in bytes, and the size of the result.

    Layers follow each other; words start at a multiple of 4, and if any layer is scaled or widened
    all of them do.
    """
    offsets, end = [], 0
    aligned = any(layer.scale or layer.in_halfwords for layer in layers)
    for layer in layers:
        if layer.width == 32 or aligned:
            end = -(-end // WORD_BYTES) * WORD_BYTES
        offsets.append(end)
        end += layer.size_bytes
    return (*offsets, end)


def saturates(layer: UnloadLayer) -> bool:
    """Whether scaled values of a layer may exceed their place in the result."""
    return layer.scale > (_LARGEST_SCALE_OF_BYTES if layer.width == 8 else 0)


def delivered(program: Program, options: ProjectOptions) -> tuple[UnloadLayer, ...]:
    """Return the output layers as they are delivered: scaled, or as the accelerator holds them."""
    if options.scale_output and options.studio:
        return tuple(replace(layer, widened=layer.width == 8) for layer in program.unload)
    if options.scale_output:
        return program.unload
    return tuple(replace(layer, scale=0) for layer in program.unload)


def port_obstacle(layer: UnloadLayer, start: int) -> str | None:
    """Return why a layer that starts at byte `start` cannot be read through transposing ports.

    Source: docs/generated-project.md, "The transposing read port".
    """
    if layer.width != 8:
        return "its output has 32 bits"
    if layer.pixels < PIXELS_PER_READ:
        return f"it has {layer.pixels} values per channel, fewer than {PIXELS_PER_READ}"
    if layer.channels > 1 and layer.pixels % PIXELS_PER_READ:
        return f"{layer.pixels} values per channel are not a multiple of {PIXELS_PER_READ}"
    if not layer.transposed:
        return "its values do not stand in successive words"
    if start % WORD_BYTES:
        return f"it starts at byte {start} of the result, not at a whole word"
    return None


def unload_code(
    layers: Sequence[UnloadLayer],
    unroll_wide: int,
    unroll_8bit: int,
    unroll_mlator: int | None = None,
) -> UnloadCode:
    """Plan the statements; an unrolling of 0 writes every read as a statement of its own.

    `unroll_mlator` None does without the transposing ports.
    """
    *starts, size = layer_offsets(layers)
    outputs = []
    for layer, start in zip(layers, starts, strict=True):
        if unroll_mlator is not None and port_obstacle(layer, start) is None:
            outputs.append(UnloadedOutput(layer, (), _transposed(layer, start, unroll_mlator)))
            continue
        unroll = unroll_wide if layer.width == 32 else unroll_8bit
        runs = merge(list(_runs(layer, start)))
        cut = tuple(replace(run, chunks=chunks(run, unroll)) for run in runs)
        outputs.append(UnloadedOutput(layer, cut))
    return UnloadCode(tuple(outputs), size)


def _transposed(layer: UnloadLayer, start: int, unroll: int) -> Transposed:
    reads, tail = divmod(layer.pixels, PIXELS_PER_READ)
    ports = tuple(
        (port, tuple(channels)) for port, channels in groupby(layer.transposed, lambda c: c.port)
    )
    return Transposed(start, ports, loops(reads, unroll or reads), tail)


def _runs(layer: UnloadLayer, start: int) -> Iterator[UnloadRun]:
    """Yield one run per piece."""
    written = start
    for piece in layer.pieces:
        if layer.width == 32:
            run = _words(piece, layer.pixels, written)
            written += run.size_bytes
        else:
            step = piece.stride_bytes // WORD_BYTES
            target = start + piece.channel * layer.pixels * layer.value_bytes
            run = UnloadRun(
                8, piece.address, piece.lanes, step, layer.pixels, target, plane=layer.pixels
            )
        yield replace(run, scale=layer.scale, in_halfwords=layer.in_halfwords)


def _words(piece: UnloadPiece, pixels: int, target: int) -> UnloadRun:
    """Return the run of a 32-bit piece; one word per read if the words follow each other."""
    count = len(piece.lanes)
    step = piece.stride_bytes // WORD_BYTES
    contiguous = piece.lanes == tuple(range(piece.lanes[0], piece.lanes[0] + count))
    if contiguous and (pixels == 1 or step == count):
        address = piece.address + WORD_BYTES * piece.lanes[0]
        return UnloadRun(32, address, (0,), 1, pixels * count, target, plane=1)
    return UnloadRun(32, piece.address, piece.lanes, step, pixels, target, plane=1)


def merge(runs: Sequence[UnloadRun]) -> list[UnloadRun]:
    """Join runs that continue each other: same lanes, same distance, result without a gap."""
    merged: list[UnloadRun] = []
    for run in runs:
        joined = _join(merged[-1], run) if merged else None
        if joined:
            merged[-1] = joined
        else:
            merged.append(run)
    return merged


def _join(first: UnloadRun, second: UnloadRun) -> UnloadRun | None:
    if first.plane != 1 or second.plane != 1 or first.lanes != second.lanes:
        return None
    distance, odd = divmod(second.address - first.address, WORD_BYTES)
    step = distance if first.reads == 1 else first.step_words
    fits = second.reads == 1 or second.step_words == step
    if odd or not fits or step <= 0 or distance != step * first.reads:
        return None
    if second.target != first.target + first.size_bytes:
        return None
    return replace(first, step_words=step, reads=first.reads + second.reads)


def chunks(run: UnloadRun, unroll: int) -> tuple[Chunk, ...]:
    """Cut the reads of a run into loops of `unroll` values and the rest."""
    per_read = len(run.lanes) if run.width == 32 else 1
    return loops(run.reads, max(1, unroll // per_read) if unroll else run.reads)


def loops(reads: int, bodies: int) -> tuple[Chunk, ...]:
    """Cut equal reads into a loop with `bodies` of them in each round, and the rest."""
    pieces, left = [], reads
    while left:
        rounds = left // bodies
        chunk = Chunk(rounds, bodies) if rounds else Chunk(1, left)
        pieces.append(chunk)
        left -= chunk.loops * chunk.bodies
    return tuple(pieces)
