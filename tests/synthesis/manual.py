"""Fields of the layer registers as docs/hardware gives them, without the code that makes words.

Only numbers of the network, of its layout and of the placement (first columns, bias offsets) are
read; passes, substitutions, counts and streams are derived here once more, in the words of the
manual: registers.md, execution.md ("Quantities of a layer"), streaming.md ("Registers"), memory.md.
"""

from __future__ import annotations

from itertools import pairwise
from math import ceil
from typing import Any

from ai8xtools.synthesis.mapping import MappedNetwork
from ai8xtools.synthesis.network import Activation, Combination, Operator
from ai8xtools.synthesis.options import EncodeOptions
from ai8xtools.synthesis.place import Placement

Fields = dict[str, int]


def ones(mask: int) -> list[int]:
    """Return the set bits of a mask."""
    return [n for n in range(64) if mask >> n & 1]


def in_group(mask: int, group: int) -> int:
    """Return the 16 bits of a mask that belong to a group."""
    return mask >> 16 * group & 0xFFFF


def passes(channels: int) -> int:
    """Return the passes of so many channels."""
    return ceil(channels / 64)


class Facts:
    """The quantities of a layer, docs/hardware/execution.md."""

    def __init__(self, network: MappedNetwork, index: int) -> None:
        layer: Any = network.network.layer(index)
        layout: Any = network.layout.layers[index]
        self.layer, self.layout, self.network = layer, layout, network
        self.old = network.chip.name == "MAX78000"
        self.P, self.O = layout.processors, layout.output_processors
        self.index, self.operands = index, layer.operands
        self.in_passes, self.out_passes = passes(layer.in_channels), passes(layer.out_channels)
        self.window, self.stride = layer.pooling.window, layer.pooling.stride
        self.spread = layer.pooling.dilation
        self.flat = self.in_passes * layer.pooled_dim[0] * layer.pooled_dim[1]
        self.gap, self.read_gap = layout.write_gap, layout.read_gap
        self.words = layer.output_width // 8
        self.passing = layer.operator is Operator.NONE
        self.depthwise = layer.groups > 1
        self.transposed = layer.operator is Operator.CONVTRANSPOSE2D
        self.broadcast = self.depthwise and self.P == self.O
        self.unit = 8 if layer.bypass else abs(layer.weight_bits)
        self.conv1d = layer.operator is Operator.CONV1D
        self.first = index == network.order[0]
        self.quad = self.first and "all" in network.layout.input_port
        self.leading, self.as_rows = 0, False
        self._substitute()
        self.small = not self.passing and self.kernel == (1, 1) and not self.conv1d
        self.small = self.small and not self.transposed
        self.slots = self._time_slots()

    def _substitute(self) -> None:
        layer = self.layer
        (self.rows, self.columns), self.kernel, self.pad = layer.in_dim, layer.kernel, layer.pad
        several = self.operands > 1 and self.in_passes > 1
        if self.layout.widened and self.kernel == (1, 1):
            self.kernel, self.pad = (3, 3), (self.pad[0] + 1, self.pad[1] + 1)
        if self.conv1d and layer.dilation > 1 and self.kernel[0] > 1:
            reach = (self.kernel[0] - 1) * layer.dilation
            if reach < 9:
                self.kernel = reach + 1, 1
            elif self.kernel[0] <= 3:
                self.leading = 4 * layer.dilation * self.out_passes * (self.kernel[0] == 3)
                self.conv1d, self.kernel, self.pad = False, (3, 3), (1, 1)
                self.rows, self.columns = ceil(layer.in_dim[0] / layer.dilation), layer.dilation
        elif self.transposed:
            self.rows, self.columns = 2 * self.rows, 2 * self.columns
            self.pad = 2 - self.pad[0], 2 - self.pad[1]
        elif layer.flatten:
            self.rows = self.columns = 1
        elif self.passing and self.old and several and (self.operands, self.in_passes) != (2, 2):
            self.as_rows, self.rows = True, self.rows * self.in_passes
        self.taps = self.kernel[0] * self.kernel[1]

    def _time_slots(self) -> int:
        counts = [in_group(self.P, g).bit_count() for g in range(4) if in_group(self.P, g)]
        if self.passing:
            return max((n * self.words - 1) // 4 for n in counts)
        if self.broadcast:
            return max(min(n, 4) * self.words - 1 for n in counts)
        return max(n * self.words - 1 for n in counts) if self.depthwise else 0

    @property
    def pooled(self) -> list[int]:
        """Pooled rows and columns."""
        rows = self.layer.in_dim[0] if not self.as_rows else self.rows
        dims = (self.rows, self.columns) if not self.transposed else (rows, self.columns // 2)
        return [
            (n - (w - 1) * d - 1) // s + 1
            for n, w, d, s in zip(dims, self.window, self.spread, self.stride, strict=True)
        ]

    @property
    def line_words(self) -> int:
        """Words of a line buffer."""
        if self.passing:
            return 1
        columns = self.pooled[1] * (2 if self.transposed else 1)
        return max(0, columns + 2 * self.pad[1] - self.kernel[1]) + 1

    @property
    def kernel_count(self) -> int:
        """Kernels in the list of a processor, empty slots included."""
        layer, lane = self.layer, min(ones(self.O)) % 4
        slots = max(ones(self.O)) - min(ones(self.O)) + lane + 1
        if layer.bypass:
            return layer.out_channels // layer.groups
        if self.depthwise:
            return (lane + 1) * self.in_passes
        if layer.flatten:
            missing = self.out_passes * self.O.bit_count() - layer.out_channels
            return (slots * self.out_passes - missing) * self.flat
        return slots * self.out_passes * self.in_passes


def layer_fields(
    network: MappedNetwork, placement: Placement, index: int, group: int, options: EncodeOptions
) -> dict[str, Fields]:
    """Return the fields that are not zero, by register."""
    facts = Facts(network, index)
    rules = (_counts, _pointers, _control, _kernels, _one_dimensional, _lines, _post, _streams)
    found: dict[str, Fields] = {}
    for rule in rules:
        found |= rule(facts, placement, group, options)
    found["ENA"] = {"processors": in_group(facts.P, group), "kernels": in_group(facts.P, group)}
    if facts.passing or facts.layer.bypass:
        found["ENA"]["kernels"] = 0
    nonzero = {name: {k: int(v) for k, v in some.items() if v} for name, some in found.items()}
    return {name: some for name, some in nonzero.items() if some}


RESET = {
    "RCNT": {"skip": 1},
    "CCNT": {"skip": 1},
    "STRIDE": {"words": 1},
    "LCTL": {"always": 1, "max_pool": 1, "shared_output": 1},
    "ONED": {"kernel_length": 1},
    "POST": {"time_slots": 1, "one_by_one": 1},
    "ENA": {"processors": 1},
}
"""Fields of the layer in front of an average behind a combination; pointers are those behind it."""
RESET_AS_BEHIND = ("WPTR_BASE", "WPTR_TOFFS", "RPTR_BASE")


def needs_reset(network: MappedNetwork, index: int) -> bool:
    """Whether a layer averages right behind a layer of several operands, on MAX78002."""
    order = network.order
    before = order[order.index(index) - 1] if index in order[1:] else None
    average = network.network.layer(index).pooling.average
    several = before is not None and network.network.layer(before).operands > 1
    return network.chip.name == "MAX78002" and average and several


def next_layer(network: MappedNetwork, index: int, options: EncodeOptions) -> Fields:
    """Return the fields of NXTLYR (MAX78002) that are not zero; layers put in between count."""
    final = index == network.order[-1]
    layer, layout = network.network.layer(index), network.layout.layers[index]
    if options.link_layer:
        return {"stop": 1} if final else {"jump": 1, "layer": index + 1}
    if layer.next_layer is None:
        return {} if layer is network.network.layers[-1] else {"stop": 1}
    target = layer.next_layer if layer.next_layer != index + 1 else layout.snoop_layer
    if target is None:
        return {}
    target += sum(needs_reset(network, i) for i in network.order if i <= target)
    return {"jump": 1, "layer": target} if target else {"jump": 1}


def _counts(f: Facts, _: Placement, __: int, ___: EncodeOptions) -> dict[str, Fields]:
    made: dict[str, Fields] = {}
    stride = 0 if f.transposed else f.stride[0] - 1
    if f.old:
        for name, n, pad in (("RCNT", f.rows, f.pad[0]), ("CCNT", f.columns, f.pad[1])):
            made[name] = {"last": n + 2 * pad - 1, "pad": pad}
        made["PRCNT"], made["PCCNT"] = {"last": f.window[0] - 1}, {"last": f.window[1] - 1}
        return made | {"STRIDE": {"stride": stride}}
    for axis, name in enumerate(("RCNT", "CCNT")):
        n, window, step = (f.rows, f.columns)[axis], f.window[axis], f.stride[axis]
        last = (n - 1 - (window - 1) * f.spread[axis]) // step * step
        pad = f.pad[axis]
        made[name] = {"last": last, "pad": pad - 1 if pad else 0, "padded": pad > 0}
        pooling = {"last": (window - 1) * f.spread[axis], "dilation": f.spread[axis] - 1}
        made[("PRCNT", "PCCNT")[axis]] = pooling
    made["CCNT"]["skip"] = f.columns - made["CCNT"]["last"]
    r = 1 if f.conv1d else made["CCNT"]["skip"]
    each = (f.read_gap + 1) * f.operands * f.in_passes
    made["RCNT"]["skip"] = (r + (f.stride[0] - 1) * f.columns) * each
    made["STRIDE"] = {"stride": stride, "words": f.stride[0] * each}
    return made


def uneven(f: Facts, used: list[int]) -> bool:
    """Whether the outputs of some group are at uneven distances (pass-through: at any)."""
    for group in used:
        bits = ones(in_group(f.O, group))
        steps = {b - a for a, b in pairwise(bits)}
        if len(steps) > 1 or (f.passing and steps - {1}):
            return True
    return False


def _pointers(f: Facts, _: Placement, group: int, __: EncodeOptions) -> dict[str, Fields]:
    shift, far, near = (13, 0x2000, 0x800) if f.old else (15, 0x8000, 0x2000)
    word = (f.layout.out_offset - f.leading) // 4
    lowest = min(ones(f.O))
    if uneven(f, list(f.network.groups_used)):
        behind = [p // 4 for p in ones(f.O) if p // 4 >= group]
        base = (behind[0] if behind else group) << shift | word
    elif f.passing:
        own = [p for p in ones(f.O) if p // 16 == group]
        base = (own[0] // 4 if own else 0) << shift | word
    elif f.depthwise and not f.broadcast:
        begin = min(ones(f.P)) // 16
        target = (group - begin) * 16 + lowest - min(ones(f.P)) % 16
        base = (lowest if group == begin else target) // 4 << shift | word
        base = 0 if group < begin else base
    else:
        base = lowest // 4 << shift | word
    many = f.P.bit_count() > 4 or (f.operands > 1 and f.in_passes > 1)
    if f.passing:
        slot = far if many else near
    elif f.depthwise:
        slot = 0 if f.broadcast else far
    else:
        slot = 1 if f.small else 0
    return {
        "WPTR_BASE": {"pointer": base},
        "WPTR_TOFFS": {"words": slot},
        "WPTR_MOFFS": {"words": 0 if f.passing else far},
        "WPTR_CHOFFS": {"words": f.words * (f.gap + 1) if f.out_passes > 1 else 0},
        "RPTR_BASE": {"word": f.layout.in_offset // 4},
    }


def _control(f: Facts, placement: Placement, group: int, _: EncodeOptions) -> dict[str, Fields]:
    layer, master = f.layer, f.network.groups_used[0]
    sources = 0
    if group == master and not (f.passing or f.depthwise or f.quad):
        sources = sum(1 << g for g in range(4) if in_group(f.P, g))
        bias = placement.biases.get(f.index)
        holders = [g for g in range(4) if bias is not None and bias.offsets[g] is not None]
        sources = (sources | sum(1 << g for g in holders)) & ~(1 << master)
    control = {
        "always": 1,
        "chw": f.layout.channels_first,
        "pool": f.window != (1, 1),
        "max_pool": not layer.pooling.average,
        "relu": layer.activation is Activation.RELU,
        "shared_output": not uneven(f, list(f.network.groups_used)),
        "sources": sources,
        "wide": layer.output_width == 32,
    }
    if f.layout.read_ahead:
        control["read_ahead"] = 1
        control["shift_count"] = (f.in_passes - 1) // (4 if f.layout.tcalc else 1)
    if not f.old and not f.passing:
        control |= {"kernel_columns": f.kernel[1] - 1, "kernel_rows": f.kernel[0] - 1}
        control |= {"depthwise_broadcast": f.broadcast, "bypass": layer.bypass}
    if not f.old:  # two meanings of a bit
        top = control.get("shift_count", 0) >> 3 | control.get("depthwise_broadcast", 0)
        control["depthwise_broadcast"] = top
        control["shift_count"] = control.get("shift_count", 0) | top << 3
    count = (f.flat - 1) % 16 if layer.flatten else 0 if f.as_rows else f.in_passes - 1
    step = f.gap if f.passing else f.out_passes * (f.gap + 1) - 1
    last = (max(ones(f.O)) - min(ones(f.O)) // 4 * 4) * f.unit
    return {"LCTL": control, "LCTL2": {"passes": count, "write_step": step, "last_output": last}}


def _kernels(f: Facts, placement: Placement, _: int, __: EncodeOptions) -> dict[str, Fields]:
    if f.passing:
        last = 0 if f.as_rows else 8 * (f.out_passes - 1)
        if f.old:
            return {"MCNT": {"last": last}}
        return {"MCNT2": {"first": last}, "OCHAN": {"last": f.slots}}
    first = 9 * placement.kernels[f.index].first // f.taps
    if f.layout.calcx4:
        place = (first % 4) * 1024 + first // 4
        first = place if first < 4096 else 4096 + (first % 4) * 256 + (first - 4096) // 4
    count = ceil(f.kernel_count / 4) if f.quad else f.kernel_count
    steps = count * f.unit
    steps = ceil(steps / 4) if f.first and f.layout.calcx4 else steps
    last = 8 * first + steps - f.unit
    if f.old:
        return {"MCNT": {"first": 8 * first, "last": last}}
    outputs = count - 1
    if f.layer.bypass:
        outputs = f.layer.out_channels - 1
    elif f.depthwise:
        outputs = (f.slots + 1) * f.in_passes - 1
    outputs = outputs // 4 if f.layout.calcx4 else outputs
    return {"MCNT1": {"last": last}, "MCNT2": {"first": 8 * first}, "OCHAN": {"last": outputs}}


def _one_dimensional(f: Facts, placement: Placement, _: int, __: EncodeOptions) -> dict[str, Any]:
    layer = f.layer
    made: Fields = {"time_slots": f.slots}
    if not f.passing:
        made["kernel_remainder"] = 9 * placement.kernels[f.index].first % f.taps
    made["kernel_length"] = f.kernel[0] if f.conv1d else f.small
    made["conv1d"] = f.conv1d
    if f.passing:
        made["kernel_length"] = f.operands == 1
    if f.operands > 1 and layer.combination:
        kinds = (Combination.SUB, Combination.ADD, Combination.OR, Combination.XOR)
        made |= {"elementwise": 1, "operation": kinds.index(layer.combination)}
        made |= {"pool_first": f.window != (1, 1) and layer.pool_first}
        made |= {"elementwise_convolution": not f.passing, "operands": f.operands - 1}
    return {"ONED": made}


def _lines(f: Facts, _: Placement, __: int, ___: EncodeOptions) -> dict[str, Fields]:
    streams_later = f.layout.streaming and not f.first
    if f.layer.flatten and f.flat - 1 >= 16:
        return {"TPTR": {"first": f.flat - 1, "last": 2 * f.flat - 1}}
    if f.conv1d or (f.small and not streams_later):
        return {}
    before = 0
    if streams_later:
        earlier = (Facts(f.network, i) for i in range(f.index))
        before = sum(x.line_words * x.in_passes for x in earlier)
    return {"TPTR": {"first": before, "last": before + f.line_words - 1}}


def _post(f: Facts, placement: Placement, group: int, _: EncodeOptions) -> dict[str, Fields]:
    layer = f.layer
    made: Fields = {
        "shift": abs(layer.shift),
        "shift_right": layer.shift < 0,
        "weight_size": {0: 0, 8: 0, 4: 3, 2: 2, 1: 1}[abs(layer.weight_bits)],
        "time_slots": f.passing or f.depthwise,
        "one_by_one": f.passing and f.operands == 1,
        "absolute": layer.activation is Activation.ABS,
        "transposed": f.transposed,
        "calcx4": f.layout.calcx4,
        "depthwise": f.depthwise,
        "tcalc": f.layout.tcalc,
    }
    bias = placement.biases.get(f.index)
    if bias is not None and bias.offsets[group] is not None:
        quarter = f.layout.calcx4 or f.broadcast
        offset: Any = bias.offsets[group]
        made |= {"bias": 1, "bias_offset": offset // 4 if quarter else offset}
    if layer.flatten and f.flat - 1 >= 16:
        made |= {"flatten": 1, "flatten_high": f.flat - 1 >> 4}
    return {"POST": made}


def _streams(f: Facts, _: Placement, __: int, options: EncodeOptions) -> dict[str, Fields]:
    network, streaming = f.network, f.layout.streaming
    fifo = "fifo" in network.layout.input_port
    made: dict[str, Fields] = {"STREAM1": {"fifo_go": int(f.first and options.fifo_go)}}
    if streaming or (f.first and fifo):
        start, delta1, delta2, ring = stream(f, options.place.streams)
        made["STREAM1"]["start"] = start
        if streaming:
            made["STREAM2"] = {"delta1": delta1, "delta2": delta2}
            made["FMAX"] = {"words": ring if fifo else 0}
    if streaming and not f.first:
        earlier = [Facts(network, i) for i in range(f.index)]
        rounded = [ceil(x.in_passes / 4) * 4 if x.layout.tcalc else x.in_passes for x in earlier]
        made["STREAM2"]["passes_before"] = sum(rounded)
    return made


def stream(f: Facts, options: Any) -> tuple[int, int, int, int]:
    """Return start, steps and words of the ring buffer of a layer that takes part in streaming."""
    by = _window if f.old else _by_line
    return by(f, "fifo" in f.network.layout.input_port, options)


def _multiple(value: int, of: int) -> int:
    return ceil(value / of) * of


def _given(option: int | None, rule: int) -> int:
    return rule if option is None else option


def _window(f: Facts, fifo: bool, options: Any) -> tuple[int, int, int, int]:
    (down, across), step = f.window, f.stride[1]
    planar, rows, columns = f.layout.channels_first, *f.layer.in_dim
    if f.first and not fifo:
        return 0, 0, 0, 0
    if f.first:
        start = ((down - 1) * columns + across) * down
        if not f.layout.streaming:
            start = (ceil(rows * columns / 4) if planar else rows * columns) * down
        start = _given(options.override_start, start)
        delta1 = _given(options.override_delta1, (step - 1) * f.operands)
        delta2 = _given(options.override_delta2, (down - 1) * columns * f.operands)
    else:
        before = Facts(f.network, f.index - 1)
        line = before.pooled[1] + 2 * before.pad[1]
        start = line * (before.kernel[0] - 1 + down - 1) + before.kernel[1] - 1 + across
        start += options.increase_start
        delta1 = step * f.operands + options.increase_delta1
        delta2 = (f.stride[0] - 1) * line + across * f.operands + options.increase_delta2
    ring = start + (down - 1) * columns + max(step, across, 2 if f.transposed else 0)
    ring = _multiple(12 if planar else ring, f.in_passes)
    return start, delta1, delta2, _given(options.override_rollover, ring) if f.first else ring


def _by_line(f: Facts, fifo: bool, options: Any) -> tuple[int, int, int, int]:
    (down, across), (step_down, step), columns = f.window, f.stride, f.layer.in_dim[1]
    row_step = max(down * f.spread[0], step_down)
    column_step = max(across * f.spread[1], step)
    planar = f.first and f.layout.channels_first
    padded = columns + 2 * f.pad[1]
    adjust = 0
    if f.first:
        n = columns // step
        n -= n * step + across - 1 > columns
    else:
        n = columns // column_step
        n -= n * step + across > columns
        adjust = 0 if column_step == 1 else columns - n * column_step
    skip = max(0, columns - n * step)
    ahead = step if f.layout.read_ahead else 0
    rows_ahead = (row_step * padded + f.pad[1] + 2 * column_step) * f.operands + ahead
    quarter = 4 if planar else 1
    single = step_down == 1 and down == 1
    if f.first:
        s = column_step if single else rows_ahead
        if not f.layout.streaming:
            s = f.layer.in_dim[0] * columns
        start = ceil(s / quarter)
        if options.override_start is not None:
            s = start = options.override_start
        elif not fifo:
            s = start = 0
        delta1 = _given(options.override_delta1, ceil((step * f.operands - single) / quarter))
        rows = (step_down - 1) * columns + across - 1
        delta2 = skip + (delta1 if step_down == 1 else rows)
        delta2 = ceil(delta2 / quarter)
        delta2 += delta2 > 0 and options.pipeline is not False
        delta2 = _given(options.override_delta2, delta2)
        ring = s + column_step + (step - 1) * padded
        ring = _given(options.override_rollover, ring * 4 * step if planar else ring)
        return start, delta1, delta2, ring
    layers = f.network.layout.layers
    last = f.index == f.network.order[-1] or not (
        f.index + 1 in layers and layers[f.index + 1].streaming
    )
    s = (f.pad[1] or step_down) * padded + rows_ahead + (adjust * step if last else 0)
    delta1 = step * f.operands + options.increase_delta1
    delta2 = (delta1 if step_down == 1 else (step_down - 1) * columns) + adjust
    ring = s + (f.in_passes - 1) * (row_step * columns + f.pad[1] + column_step) + column_step
    return s, delta1, delta2 + options.increase_delta2, _multiple(ring, f.in_passes)
