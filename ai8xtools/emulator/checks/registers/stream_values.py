"""When streaming layers start, how they advance, and how large their ring buffers are.

Smaller values than these start a layer before its data is there, or let data be overwritten that
is still needed. Larger ones, which options of the loaders give, only make it later.
Source: docs/hardware/streaming.md, "Registers", whose names are used here.
"""

from __future__ import annotations

from collections.abc import Iterator

from ai8xtools.emulator.checks.registers.facts import Expectation, LayerFacts
from ai8xtools.values import frozen

_SMALLEST_PLANAR_RING = 12
_UNLIMITED = 65536  # more than any of these fields can hold


@frozen
class StreamValues:
    """Words before a layer starts, between its steps and rows, and of its ring buffer."""

    start: int
    delta1: int
    delta2: int
    ring: int


def values(facts: LayerFacts) -> Iterator[Expectation]:
    """Least values of layers that stream or read a FIFO."""
    for register, field, least, limit in _limits(facts):
        reason = f"at least {least} words, for the input, windows and passes of the layer"
        yield Expectation(register, field, range(least, limit), reason)


def exact_values(facts: LayerFacts) -> Iterator[Expectation]:
    """The values that loaders compute; with others a layer may work as well."""
    for register, field, least, _ in _limits(facts):
        more = int((register, field) == ("STREAM2", "delta2") and facts.is_start and least > 0)
        if field == "start" and not facts.config.ring_words:  # words of the whole input
            more = max(len(frame_sizes(facts)) - 1, 0)
        allowed = range(least, least + 1 + more)  # one more for the pipeline
        yield Expectation(register, field, allowed, "as computed from the layer")


def frame_sizes(facts: LayerFacts) -> range:
    """Return the words that each FIFO may deliver for an input; empty if no FIFO is in use.

    Rows below the last pooling window are not in the registers of some chips.
    """
    control = facts.memory.control_register("CTL")
    if not facts.is_start or not control["fifo"]:
        return range(0)
    inputs = facts.config.input
    rest = inputs.stride - 1 if facts.chip.counts_by_step else 0
    least, most = (_frame(facts, inputs.size[0] + rows) for rows in (0, rest))
    return range(least, most + 1)


def _limits(facts: LayerFacts) -> Iterator[tuple[str, str, int, int]]:
    """Yield register, field, value, and the first value that is too large."""
    config, control = facts.config, facts.memory.control_register("CTL")
    if not control["fifo"] or config.layer >= facts.chip.max_streaming_layers:
        return
    leads = facts.is_start and facts.following is not None and facts.following.stream_start
    if not (config.ring_words or (leads and control["streaming"])):
        if facts.is_start:
            yield "STREAM1", "start", _waiting(facts), _UNLIMITED
        return
    if not facts.is_start and not (config.stream_start and facts.before):
        return
    actual = facts.field("STREAM1", "start")
    expected = _computed(facts, None)
    shifted = _computed(facts, actual)
    # A start that the ring buffer was not computed with is wrong, else it was meant to be later
    is_meant = actual >= expected.start and config.ring_words >= shifted.ring
    yield "STREAM1", "start", expected.start, _UNLIMITED if is_meant else expected.start + 1
    yield "STREAM2", "delta1", expected.delta1, _UNLIMITED
    yield "STREAM2", "delta2", expected.delta2, _UNLIMITED
    ring = shifted.ring if is_meant else expected.ring
    words = facts.chip.instance_bytes // 4
    yield "FMAX", "words", ring, max(ring, words - config.input.read_word) + 1


def _computed(facts: LayerFacts, start: int | None) -> StreamValues:
    """Return what a streaming layer needs; the ring buffer for another `start`, if given."""
    if facts.chip.counts_by_step:
        return _by_step(facts, start)
    return _by_window(facts, start)


def _frame(facts: LayerFacts, rows: int) -> int:
    inputs = facts.config.input
    pixels = rows * inputs.size[1]
    return -(-pixels // 4) if inputs.chw else pixels


def _waiting(facts: LayerFacts) -> int:
    """Return the words before a layer starts that reads a FIFO and does not stream."""
    words = _frame(facts, facts.config.input.size[0])
    return words if facts.chip.counts_by_step else words * facts.config.input.pool[0]


def _strides(facts: LayerFacts) -> tuple[int, int]:
    """Return the steps of pooling windows; there is none to a second column of a single one."""
    inputs = facts.config.input
    return inputs.stride, inputs.stride if inputs.size[1] > 1 else 1


def _up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def _by_window(facts: LayerFacts, actual: int | None) -> StreamValues:
    """Return the values of MAX78000."""
    config, inputs = facts.config, facts.config.input
    (rows, across), columns = inputs.pool, inputs.size[1]
    down, right = _strides(facts)
    if facts.is_start:
        start = ((rows - 1) * columns + across) * rows
        delta1, delta2 = (right - 1) * inputs.operands, (rows - 1) * columns * inputs.operands
    else:
        previous = facts.before[-1]
        line = previous.input.pooled[1] + 2 * previous.input.pad[1]
        kernel = previous.kernels.shape if previous.kind.has_kernels else (1, 1)
        start = line * (kernel[0] - 1 + rows - 1) + kernel[1] - 1 + across + 2
        delta1 = right * inputs.operands
        delta2 = (down - 1) * line + across * inputs.operands
    used = start if actual is None else actual
    ring = used + (rows - 1) * columns + max(right, across, 2 if config.transposed else 1)
    if inputs.chw:
        ring = _SMALLEST_PLANAR_RING
    return StreamValues(start, delta1, delta2, _up(ring, inputs.passes))


@frozen
class _Walk:
    """How the windows of a layer go along a row of its input, in pixels.

    `reach` is the column step: what a window covers, or the distance to the next if that is more.
    """

    length: int
    window: int
    distance: int
    reach: int
    is_start: bool

    @property
    def windows(self) -> int:
        """Windows of a row, the last of which must end in it."""
        count = self.length // (self.distance if self.is_start else self.reach)
        over = count * self.distance + self.window - self.length
        return count - int(over > (1 if self.is_start else 0))

    @property
    def skip(self) -> int:
        """Pixels of a row that no step leads to."""
        return max(self.length - self.windows * self.distance, 0)

    @property
    def adjust(self) -> int:
        """Pixels that a later layer has to wait for at the end of a row."""
        if self.is_start or self.reach == 1:
            return 0
        return self.length - self.windows * self.reach


def _walk(facts: LayerFacts) -> _Walk:
    inputs = facts.config.input
    distance = _strides(facts)[1]
    reach = max(inputs.pool[1] * inputs.pool_dilation[1], distance)
    return _Walk(inputs.size[1], inputs.pool[1], distance, reach, facts.is_start)


def _by_step(facts: LayerFacts, actual: int | None) -> StreamValues:
    """Return the values of MAX78002."""
    inputs, walk = facts.config.input, _walk(facts)
    down, right = _strides(facts)
    side = inputs.pad[1]
    full = walk.length + 2 * side
    rows = max(inputs.pool[0] * inputs.pool_dilation[0], down)
    lead = inputs.operands * (rows * full + side + 2 * walk.reach)
    lead += right if facts.field("LCTL", "read_ahead") else 0
    if facts.is_start:
        return _first_by_step(facts, walk, lead, actual)
    start = lead + full * (side or down)
    following = facts.following
    if following is None or not following.stream_start:
        start += right * walk.adjust
    delta1 = right * inputs.operands
    between = (down - 1) * walk.length if down > 1 else delta1
    used = start if actual is None else actual
    ring = used + walk.reach + (inputs.passes - 1) * (rows * walk.length + side + walk.reach)
    return StreamValues(start, delta1, between + walk.adjust, _up(ring, inputs.passes))


def _first_by_step(facts: LayerFacts, walk: _Walk, lead: int, actual: int | None) -> StreamValues:
    """Return the values of the layer that the FIFO feeds; CHW words have four pixels."""
    inputs = facts.config.input
    (down, right), (rows, across) = _strides(facts), inputs.pool
    unit = 4 if inputs.chw else 1
    one_row = down == rows == 1
    pixels = walk.reach if one_row else lead
    start, delta1 = (
        _up(count, unit) // unit for count in (pixels, right * inputs.operands - int(one_row))
    )
    used = pixels if actual in (None, start) else actual * unit
    between = (down - 1) * walk.length + across - 1 if down > 1 else delta1
    ring = used + walk.reach + (right - 1) * (walk.length + 2 * inputs.pad[1])
    ring *= 4 * right if inputs.chw else 1
    return StreamValues(start, delta1, _up(between + walk.skip, unit) // unit, ring)


RULES = (values,)
