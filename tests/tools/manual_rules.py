"""The rules of docs/hardware once more, as code, to compare them with the words of the loader.

Nothing of the stages behind `resolve` is used; where kernels and biases were placed is an input.
Names are those of the pages. Source: docs/hardware/registers.md, docs/hardware/execution.md,
docs/hardware/streaming.md and docs/hardware/memory.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from ai8xtools.synthesis.mapping import MappedLayer, MappedNetwork
from ai8xtools.synthesis.network import Activation, Combination, Operator
from device import Chip

Fields = dict[str, int]
_WEIGHT_SIZE = {8: 0, 0: 0, 1: 1, -1: 1, 2: 2, 4: 3}
_OPERATION = {Combination.SUB: 0, Combination.ADD: 1, Combination.OR: 2, Combination.XOR: 3}


def ceil(a: int, b: int) -> int:
    """Divide and round up."""
    return -(-a // b)


def lowest(mask: int) -> int:
    """Return the lowest bit of a mask."""
    return (mask & -mask).bit_length() - 1


def in_group(mask: int, group: int) -> int:
    """Return the 16 bits of a group."""
    return mask >> 16 * group & 0xFFFF


def channels_of_a_pass(channels: int) -> tuple[int, int]:
    """Channels and passes: (passes, share)."""
    passes = ceil(channels, 64)
    share = ceil(channels, passes)
    return passes, share if passes == 1 else ceil(share, 4) * 4


@dataclass(frozen=True)
class Quantities:
    """Quantities of a layer. `first_column` and `bias_offsets` (by group) are given."""

    layer: MappedLayer
    chip: Chip
    is_first: bool
    first_column: int
    bias_offsets: tuple[int | None, ...]

    @property
    def passthrough(self) -> bool:
        return self.layer.operator is Operator.NONE

    @property
    def transposed(self) -> bool:
        return self.layer.operator is Operator.CONVTRANSPOSE2D

    @property
    def spread(self) -> bool:
        """Conv1d with dilation that runs as a 3x3 convolution."""
        taps, dilation = self.layer.kernel[0], self.layer.dilation
        conv1d = self.layer.operator is Operator.CONV1D
        return conv1d and dilation > 1 and taps > 1 and (taps - 1) * dilation >= 9

    @property
    def conv1d(self) -> bool:
        return self.layer.operator is Operator.CONV1D and not self.spread

    @property
    def kernel(self) -> tuple[int, int]:
        if self.spread:
            return 3, 3
        if self.conv1d and self.layer.dilation > 1 and self.layer.kernel[0] > 1:
            return (self.layer.kernel[0] - 1) * self.layer.dilation + 1, 1
        return (1, 1) if self.passthrough else self.layer.kernel

    @property
    def pad(self) -> tuple[int, int]:
        if self.transposed:
            return 2 - self.layer.pad[0], 2 - self.layer.pad[1]
        return (1, 1) if self.spread else self.layer.pad

    @property
    def operands(self) -> int:
        return self.layer.operands

    @property
    def passes(self) -> int:
        return channels_of_a_pass(self.layer.in_channels)[0]

    @property
    def out_passes(self) -> int:
        return channels_of_a_pass(self.layer.out_channels)[0]

    @property
    def as_rows(self) -> bool:
        several = self.operands > 1 and self.passes > 1
        both = self.operands == 2 and self.passes == 2
        return self.passthrough and several and not both and self.chip.name == "MAX78000"

    @property
    def input_size(self) -> tuple[int, int]:
        if self.spread:
            return ceil(self.layer.in_dim[0], self.layer.dilation), self.layer.dilation
        return self.layer.in_dim

    @cached_property
    def size(self) -> tuple[int, int]:
        """Rows and columns."""
        rows, columns = self.input_size
        if self.layer.flatten:
            return 1, 1
        if self.transposed:
            return 2 * rows, 2 * columns
        return (rows * self.passes, columns) if self.as_rows else (rows, columns)

    @cached_property
    def pooled(self) -> tuple[int, int]:
        """Pooled rows and columns of the input, before a transposed layer stretches them."""
        pooling = self.layer.pooling
        rows, columns = (
            (length - (window - 1) * dilation - 1) // stride + 1
            for length, window, stride, dilation in zip(
                self.input_size, pooling.window, pooling.stride, pooling.dilation, strict=True
            )
        )
        return rows, columns

    @property
    def flattened_passes(self) -> int:
        rows, columns = self.layer.in_dim
        return self.passes * rows * columns if self.layer.flatten else 0

    @property
    def value_words(self) -> int:
        return 4 if self.layer.output_width == 32 else 1

    @property
    def unit(self) -> int:
        return 8 if self.layer.bypass else abs(self.layer.weight_bits)

    @property
    def kernel_count(self) -> int:
        mask = self.layer.output_processors
        lane = lowest(mask) % 4
        slots = mask.bit_length() - 1 - lowest(mask) + lane + 1
        if self.layer.bypass:
            return self.layer.out_channels // self.layer.groups
        if self.layer.depthwise:
            return (lane + 1) * self.passes
        if self.layer.flatten:
            missing = self.out_passes * mask.bit_count() - self.layer.out_channels
            return (slots * self.out_passes - missing) * self.flattened_passes
        return slots * self.out_passes * self.passes

    @property
    def small(self) -> bool:
        """A 1x1 kernel of a convolution or a linear layer."""
        two_dimensional = self.layer.operator in (Operator.CONV2D, Operator.LINEAR)
        return two_dimensional and self.kernel == (1, 1)

    @property
    def line_words(self) -> int:
        """Line buffers."""
        if self.passthrough:
            return 1
        columns = (2 if self.transposed else 1) * self.pooled[1]
        return max(0, columns + 2 * self.pad[1] - self.kernel[1]) + 1


class LayerRules:
    """All registers of a layer in a group."""

    def __init__(self, network: MappedNetwork, all_layers: list[Quantities], number: int) -> None:
        self.network = network
        self.all = all_layers
        self.q = all_layers[number]
        self.layer = self.q.layer
        self.new = network.chip.name == "MAX78002"
        self.groups = network.groups_used

    def registers(self, group: int) -> Mapping[str, Fields]:
        """Return the fields of every register that has a rule, by name."""
        q, layer = self.q, self.layer
        enabled = in_group(layer.processors, group)
        found = {
            **self.counts(),
            "WPTR_BASE": {"pointer": self.write_pointer(group)},
            "WPTR_TOFFS": {"words": self.time_slot_offset()},
            "WPTR_CHOFFS": {
                "words": q.value_words * (layer.write_gap + 1) if q.out_passes > 1 else 0
            },
            "RPTR_BASE": {"word": layer.in_offset // 4},
            "LCTL": self.control(group),
            "LCTL2": self.control2(),
            "ONED": self.one_dimensional(),
            "TPTR": self.line_buffer(),
            "POST": self.post(group),
            "ENA": {
                "processors": enabled,
                "kernels": 0 if q.passthrough or layer.bypass else enabled,
            },
            **self.kernels(),
            **self.stream(),
        }
        if not q.passthrough:
            found["WPTR_MOFFS"] = {"words": 0x8000 if self.new else 0x2000}
        return found

    def counts(self) -> dict[str, Fields]:
        q, pooling = self.q, self.layer.pooling
        stride = 1 if q.transposed else pooling.stride[0]
        windows = [(w - 1) * d for w, d in zip(pooling.window, pooling.dilation, strict=True)]
        if not self.new:
            return {
                "RCNT": {"last": q.size[0] + 2 * q.pad[0] - 1, "pad": q.pad[0]},
                "CCNT": {"last": q.size[1] + 2 * q.pad[1] - 1, "pad": q.pad[1]},
                "PRCNT": {"last": windows[0]},
                "PCCNT": {"last": windows[1]},
                "STRIDE": {"stride": stride - 1},
            }
        # First row and column of the last window, in the size that the hardware counts
        last = [
            (n - (w - 1) * d - 1) // s * s
            for n, w, d, s in zip(
                q.size, pooling.window, pooling.dilation, pooling.stride, strict=True
            )
        ]
        skip = q.size[1] - last[1]
        words = (self.layer.read_gap + 1) * q.operands * q.passes
        rows = ((1 if q.conv1d else skip) + (pooling.stride[0] - 1) * q.size[1]) * words
        axes = zip(("RCNT", "CCNT"), last, q.pad, (rows, skip), strict=True)
        return {
            **{
                name: {"last": end, "pad": max(pad - 1, 0), "padded": int(pad > 0), "skip": rest}
                for name, end, pad, rest in axes
            },
            "PRCNT": {"last": windows[0], "dilation": pooling.dilation[0] - 1},
            "PCCNT": {"last": windows[1], "dilation": pooling.dilation[1] - 1},
            "STRIDE": {"stride": stride - 1, "words": pooling.stride[0] * words},
        }

    def write_pointer(self, group: int) -> int:
        q, layer = self.q, self.layer
        leading = 4 * layer.dilation * q.out_passes if q.spread and layer.kernel[0] == 3 else 0
        start = (layer.out_offset - leading) // 4
        shift = 15 if self.new else 13
        mask = layer.output_processors
        if q.passthrough:
            own = in_group(mask, group)
            return start | ((16 * group + lowest(own)) // 4 << shift if own else 0)
        if layer.depthwise and mask != layer.processors:
            first = lowest(layer.processors) // 16
            if group < first:
                return 0
            place = (group - first) * 16 + lowest(mask)
            place -= lowest(layer.processors) % 16 if group > first else 0
            return start | place // 4 << shift
        return start | lowest(mask) // 4 << shift

    def time_slot_offset(self) -> int:
        q, layer = self.q, self.layer
        far, near = (0x8000, 0x2000) if self.new else (0x2000, 0x800)
        if q.passthrough:
            many = layer.processors.bit_count() > 4
            return far if many or (q.operands > 1 and q.passes > 1) else near
        if layer.depthwise:
            return far if layer.output_processors != layer.processors else 0
        return int(q.small)

    def control(self, group: int) -> Fields:
        q, layer = self.q, self.layer
        sources = {g for g in range(4) if in_group(layer.processors, g)}
        sources |= {g for g, offset in enumerate(q.bias_offsets) if offset is not None}
        leads = group == self.groups[0] and not (q.passthrough or layer.depthwise)
        fields = {
            "always": 1,
            "chw": int(layer.channels_first),
            "pool": int(max(layer.pooling.window) > 1),
            "max_pool": int(not layer.pooling.average),
            "relu": int(layer.activation is Activation.RELU),
            "shared_output": 1,
            "sources": sum(1 << g for g in sources - {group}) if leads else 0,
            "wide": int(layer.output_width == 32),
        }
        if self.new:
            rows, columns = (1, 1) if q.passthrough else q.kernel
            fields |= {"kernel_rows": rows - 1, "kernel_columns": columns - 1}
            fields["bypass"] = int(layer.bypass)
            broadcast = layer.depthwise and layer.output_processors == layer.processors
            fields["depthwise_broadcast"] = int(broadcast)
        if layer.read_ahead:
            count = (q.passes - 1) // 4 if layer.tcalc else q.passes - 1
            fields |= {"read_ahead": 1, "shift_count": count}
        return fields

    def control2(self) -> Fields:
        q, layer = self.q, self.layer
        passes = q.flattened_passes - 1 if layer.flatten else q.passes - 1
        step = layer.write_gap if q.passthrough else q.out_passes * (layer.write_gap + 1) - 1
        mask = layer.output_processors
        last = mask.bit_length() - 1 - lowest(mask) // 4 * 4
        return {
            "passes": 0 if q.as_rows else passes & 15,
            "write_step": step,
            "last_output": 0 if q.passthrough else last * q.unit,
        }

    def one_dimensional(self) -> Fields:
        q, layer = self.q, self.layer
        size = q.kernel[0] * q.kernel[1]
        fields = {
            "time_slots": self.time_slots(),
            "kernel_remainder": 0 if q.passthrough else 9 * q.first_column % size,
        }
        if q.conv1d:
            fields |= {"kernel_length": q.kernel[0], "conv1d": 1}
        elif q.small or (q.passthrough and q.operands == 1):
            fields["kernel_length"] = 1
        if q.operands > 1 and layer.combination:
            pools = max(layer.pooling.window) > 1
            fields |= {
                "elementwise": 1,
                "operation": _OPERATION[layer.combination],
                "pool_first": int(pools and layer.pool_first),
                "elementwise_convolution": int(not q.passthrough),
                "operands": q.operands - 1,
            }
        return fields

    def time_slots(self) -> int:
        q, layer = self.q, self.layer
        counts = [in_group(layer.processors, g).bit_count() for g in self.groups]
        counts = [n for n in counts if n]
        if q.passthrough:
            return max((n * q.value_words - 1) // 4 for n in counts)
        if layer.depthwise and layer.output_processors == layer.processors:
            return max(min(n, 4) * q.value_words - 1 for n in counts)
        if layer.depthwise:
            return max(n * q.value_words - 1 for n in counts)
        return 0

    def line_buffer(self) -> Fields:
        q = self.q
        later = self.layer.streaming and not q.is_first
        if q.conv1d or (q.small and not later):
            if q.flattened_passes - 1 >= 16:
                return {"first": q.flattened_passes - 1, "last": 2 * q.flattened_passes - 1}
            return {"first": 0, "last": 0}
        first = sum(x.line_words * x.passes for x in self.before()) if later else 0
        return {"first": first, "last": first + q.line_words - 1}

    def before(self) -> Iterator[Quantities]:
        yield from (x for x in self.all if x.layer.index < self.layer.index)

    def post(self, group: int) -> Fields:
        q, layer = self.q, self.layer
        fields = {
            "shift": abs(layer.shift),
            "shift_right": int(layer.shift < 0),
            "weight_size": _WEIGHT_SIZE[layer.weight_bits],
            "time_slots": int(q.passthrough or layer.depthwise),
            "one_by_one": int(q.passthrough and q.operands == 1),
            "absolute": int(layer.activation is Activation.ABS),
            "transposed": int(q.transposed),
            "calcx4": int(layer.calcx4),
            "depthwise": int(layer.depthwise),
            "tcalc": int(layer.tcalc),
        }
        if (offset := q.bias_offsets[group]) is not None:
            broadcast = layer.depthwise and layer.output_processors == layer.processors
            fields |= {"bias": 1, "bias_offset": offset // (4 if broadcast or layer.calcx4 else 1)}
        if q.flattened_passes - 1 >= 16:
            fields |= {"flatten": 1, "flatten_high": q.flattened_passes - 1 >> 4}
        return fields

    def kernels(self) -> dict[str, Fields]:
        q, layer = self.q, self.layer
        if q.passthrough:
            last = 0 if q.as_rows else (q.out_passes - 1) * 8
            if self.new:
                return {"MCNT2": {"first": last}, "OCHAN": {"last": self.time_slots()}}
            return {"MCNT": {"first": 0, "last": last}}
        size = q.kernel[0] * q.kernel[1]
        kernel = 9 * q.first_column // size
        if layer.calcx4:
            kernel = kernel % 4 * 1024 + kernel // 4
        first = 8 * kernel
        length = (q.kernel_count - 1) * q.unit
        if layer.calcx4 and q.is_first:
            length = ceil(q.kernel_count * q.unit, 4) - q.unit
        last = first + length
        if not self.new:
            return {"MCNT": {"first": first, "last": last}}
        outputs = q.kernel_count - 1
        if layer.bypass:
            outputs = layer.out_channels - 1
        elif layer.depthwise:
            outputs = (self.time_slots() + 1) * q.passes - 1
        elif layer.calcx4:
            outputs //= 4
        return {"MCNT1": {"last": last}, "MCNT2": {"first": first}, "OCHAN": {"last": outputs}}

    def stream(self) -> dict[str, Fields]:
        layer, fifo = self.layer, self.network.input_port.is_fifo
        nothing = {
            "STREAM1": {"start": 0},
            "STREAM2": {"passes_before": 0, "delta1": 0, "delta2": 0},
        }
        if not layer.streaming and not (self.q.is_first and fifo):
            return nothing
        start, delta1, delta2, ring = self._stream_new() if self.new else self._stream_old()
        if not layer.streaming:
            return {**nothing, "STREAM1": {"start": start}}
        before = sum(ceil(x.passes, 4) * 4 if x.layer.tcalc else x.passes for x in self.before())
        return {
            "STREAM1": {"start": start},
            "STREAM2": {
                "passes_before": 0 if self.q.is_first else before,
                "delta1": delta1,
                "delta2": delta2,
            },
            "FMAX": {"words": ring},
        }

    def _image_words(self) -> int:
        rows, columns = self.q.input_size
        return ceil(rows * columns, 4) if self.layer.channels_first else rows * columns

    def _stream_old(self) -> tuple[int, int, int, int]:
        q, pooling = self.q, self.layer.pooling
        rows, across = pooling.window
        columns = q.input_size[1]
        stride = pooling.stride[1] if columns > 1 else 1
        if q.is_first:
            start = ((rows - 1) * columns + across) * rows
            if not self.layer.streaming:
                start = self._image_words() * rows
            delta1 = (stride - 1) * q.operands
            delta2 = (rows - 1) * columns * q.operands
        else:
            previous = self._previous()
            line = previous.pooled[1] + 2 * previous.pad[1]
            start = line * (previous.kernel[0] - 1 + rows - 1) + previous.kernel[1] - 1 + across + 2
            delta1 = stride * q.operands
            delta2 = (pooling.stride[0] - 1) * line + across * q.operands
        ring = start + (rows - 1) * columns + max(stride, across, 2 if q.transposed else 1)
        if self.layer.channels_first:
            ring = 12
        return start, delta1, delta2, ceil(ring, q.passes) * q.passes

    def _stream_new(self) -> tuple[int, int, int, int]:
        q, layer, pooling = self.q, self.layer, self.layer.pooling
        rows, across = pooling.window
        columns, pad = q.input_size[1], q.pad[1]
        down = pooling.stride[0]
        right = down if columns > 1 else 1
        row_step = max(rows * pooling.dilation[0], down)
        column_step = max(across * pooling.dilation[1], right)
        padded = columns + 2 * pad
        if q.is_first:
            n = columns // right
            n -= n * right + across - 1 > columns
            adjust = 0
        else:
            n = columns // column_step
            n -= n * right + across > columns
            adjust = 0 if column_step == 1 else columns - n * column_step
        skip = max(0, columns - n * right)
        ahead = right if layer.read_ahead else 0
        rows_ahead = (row_step * padded + pad + 2 * column_step) * q.operands + ahead
        if q.is_first:
            s = column_step if down == 1 and rows == 1 else rows_ahead
            if not layer.streaming:
                s = q.input_size[0] * columns
            quarter = 4 if layer.channels_first else 1
            delta1 = ceil(right * q.operands - (down == 1 and rows == 1), quarter)
            delta2 = delta1 + skip if down == 1 else (down - 1) * columns + skip + across - 1
            delta2 = ceil(delta2, quarter)
            ring = s + column_step + (right - 1) * padded
            ring *= 4 * right if layer.channels_first else 1
            return ceil(s, quarter), delta1, delta2 + (delta2 > 0), ring
        following = self.network.following(layer)
        last = following is None or not following.streaming
        s = (pad or down) * padded + rows_ahead + (adjust * right if last else 0)
        delta1 = right * q.operands
        delta2 = delta1 + adjust if down == 1 else (down - 1) * columns + adjust
        ring = s + (q.passes - 1) * (row_step * columns + pad + column_step) + column_step
        return s, delta1, delta2, ceil(ring, q.passes) * q.passes

    def _previous(self) -> Quantities:
        previous = self.network.predecessor(self.layer)
        assert previous is not None
        return next(x for x in self.all if x.layer.index == previous.index)
