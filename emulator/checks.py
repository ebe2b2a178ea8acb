"""Checks for programs that silicon would execute wrongly without a word.

Source: spec/machine.md section 9.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from device.chip import (
    FIFO_DATA,
    GROUPS,
    KERNEL_COLUMN_BYTES,
    PROCESSORS,
    PROCESSORS_PER_GROUP,
    PROCESSORS_PER_INSTANCE,
)
from emulator.data import OUTSIDE, DataMemory
from emulator.decode import LayerConfig, Operator
from emulator.errors import EmulatorError
from emulator.kernels import columns_of
from emulator.memory import Memory

Integers = NDArray[np.int64]

_SHOWN_PROCESSORS = 8
_INSTANCE_WORDS = 1 << 22  # more than an instance has: combines instance and word to one number


@dataclass(frozen=True, slots=True)
class Finding:
    """Something suspicious about a layer, as a sentence.

    `processor` (0 to 63) and bus `address` say where, if it is about one place; of output, it is
    the processor that can read it. What is `harmless` works, but only just.
    """

    layer: int
    message: str
    processor: int | None = None
    address: int | None = None
    harmless: bool = False

    def __str__(self) -> str:
        return f"layer {self.layer}: {self.message}"


class Checker:
    """The checks of one layer; what they find goes to `findings`."""

    def __init__(
        self,
        memory: Memory,
        config: LayerConfig,
        findings: list[Finding],
        later: Sequence[LayerConfig] = (),
    ) -> None:
        """`later`: the layers that follow, in order; they show which outputs anything reads."""
        self._memory, self._config, self._findings = memory, config, findings
        self._later = later

    def configuration(self) -> None:
        """Check the processor maps, and that kernels and biases of the layer were loaded."""
        config = self._config
        wanted = config.enabled
        if config.operator is Operator.PASSTHROUGH or config.kernels.bypass:
            wanted = (0,) * len(config.enabled)
        if config.with_kernels != wanted:
            self._kernel_masks(wanted)
        if config.operator is not Operator.PASSTHROUGH and not config.kernels.bypass:
            self._kernels()

    def _kernel_masks(self, wanted: tuple[int, ...]) -> None:
        """Report that other processors than `wanted`, masks by group, have their kernels on."""
        masks, memory = self._config.with_kernels, self._memory
        group = next(g for g, (a, b) in enumerate(zip(masks, wanted, strict=True)) if a != b)
        differing = masks[group] ^ wanted[group]
        processor = group * PROCESSORS_PER_GROUP + (differing & -differing).bit_length() - 1
        address = memory.addresses.apb_base + memory.chip.layer_address(
            group, self._config.layer, "ENA"
        )
        text = f"ENA enables kernels of processors {_masks(masks)}, not of {_masks(wanted)}"
        self._findings.append(Finding(self._config.layer, text, processor, address))

    def refuse_impossible(self, from_fifo: bool) -> None:
        """Refuse registers that describe no layer at all.

        Raises EmulatorError (E832) if nobody takes part, an image is empty, windows reach beyond
        the input, or the input has more words than a frame can have.
        """
        config, inputs = self._config, self._config.input
        window = inputs.pool if inputs.pooling else (1, 1)
        needed = tuple(
            (count - 1) * inputs.stride + (width - 1) * dilation + 1
            for count, width, dilation in zip(
                inputs.pooled, window, inputs.pool_dilation, strict=True
            )
        )
        words = inputs.size[0] * inputs.size[1] * inputs.passes * inputs.operands
        limit = self._memory.chip.max_frame_words
        problem = ""
        if not config.processors:
            problem = "no processor takes part"
        elif min(*inputs.size, *inputs.pooled, *config.output_size) < 1:
            problem = f"input {inputs.size}, pooled {inputs.pooled}, output {config.output_size}"
        elif needed[0] > inputs.size[0] or needed[1] > inputs.size[1]:
            problem = f"pooling needs {needed} rows and columns, the input has {inputs.size}"
        elif config.output.passes < 1 or config.output.gap < 0:
            problem = "the distance between output passes does not fit the one between pixels"
        elif (inputs.chw or from_fifo) and inputs.passes * inputs.operands > 1:
            problem = f"planar and FIFO input have one pass, not {inputs.passes * inputs.operands}"
        elif words > limit:
            problem = f"the input has {words} words, the limit is {limit}"
        if problem:
            raise EmulatorError(
                "E832", f"layer {config.layer}: its registers make no sense: {problem}"
            )

    def read(self, source: DataMemory, instance: Integers, offset: Integers) -> None:
        """Report bytes that nobody wrote, and images that two layers wrote in part.

        `instance` and `offset` are [processor, operand, pass, pixel].
        """
        written = source.written[instance, offset]
        if not written.all():
            index = np.unravel_index(np.argmin(written), written.shape)
            self._report(
                "processor {processor} reads data memory {place}, which was never written "
                f"({np.count_nonzero(~written)} such bytes)",
                self._config.processors[index[0]],
                (int(instance[index]), int(offset[index]) // 4),
            )
        if source.private:
            return
        self._mixture(source, instance, offset, written)

    def kernel_count(self) -> None:
        """Report fewer kernels than the outputs of a convolution need; the others count as zero."""
        kernels, output = self._config.kernels, self._config.output
        needed = output.slots * output.passes * self._config.input.passes
        if output.passes > 1:  # the share of a pass is rounded up, and then to whole words
            surplus = PROCESSORS_PER_INSTANCE * output.passes - 1
            needed -= surplus * self._config.input.passes
        special = kernels.bypass or kernels.four_at_once
        if self._config.operator is not Operator.CONVOLUTION or special or kernels.count >= needed:
            return
        name = "MCNT" if "MCNT" in self._memory.chip.layer_registers else "MCNT1"
        address = self._memory.addresses.apb_base + self._memory.chip.layer_address(
            0, self._config.layer, name
        )
        text = (
            f"{name} (0x{address:08x}) counts {kernels.count} kernels of each processor, but "
            f"{output.slots * output.passes} outputs and {self._config.input.passes} passes need "
            f"{'at least ' if output.passes > 1 else ''}{needed}"
        )
        self._findings.append(Finding(self._config.layer, text, address=address))

    def biases(self, group: Integers, index: Integers, used: NDArray[np.bool_]) -> None:
        """Report biases of outputs in use that were never loaded.

        `group` and `index` tell where the bias of each output is; `index` is -1 without one.
        """
        memory, size = self._memory, self._memory.chip.bias_bytes
        lacking = used & (index >= 0)
        lacking &= (index >= size) | ~memory.bias_written[group, index % size]
        if not lacking.any():
            return
        first = np.unravel_index(np.argmax(lacking), lacking.shape)
        where, number = int(group[first]), int(index[first])
        address = memory.addresses.apb_base + memory.chip.bias_address(where, number)
        text = (
            f"bias {number} of group {where} at 0x{address:08x} was never loaded "
            f"({np.count_nonzero(lacking)} such biases)"
        )
        processor = where * PROCESSORS_PER_GROUP
        self._findings.append(Finding(self._config.layer, text, processor, address))

    def fifo_words(self, surplus: dict[int, int], needed: int) -> None:
        """Report FIFOs (by group) that got more words than the layer reads."""
        for group, count in surplus.items():
            text = (
                f"the FIFO of group {group} got {needed + count} words, the input has {needed}: "
                "the rest is left over"
            )
            address = self._memory.addresses.apb_base + FIFO_DATA + 4 * group
            processor = group * PROCESSORS_PER_GROUP
            self._findings.append(Finding(self._config.layer, text, processor, address))

    def _mixture(
        self,
        source: DataMemory,
        instance: Integers,
        offset: Integers,
        written: NDArray[np.bool_],
    ) -> None:
        """Report an image that a layer wrote and another has overwritten in part.

        Layers may add to an image (rolling buffers), but then all their output is read with it.
        """
        writers = source.writers(self._config.layer, self._config.processors, instance, offset)
        if self._config.input.size == (1, 1):
            self._flattened(source, writers, instance, offset, written)
            return
        mixed = written & (writers != writers[..., :1]) & written[..., :1]
        if not mixed.any():
            return
        index = np.unravel_index(np.argmax(mixed), mixed.shape)
        earlier, later = sorted((int(writers[(*index[:-1], 0)]), int(writers[index])))
        if np.count_nonzero(writers == later) == np.count_nonzero(source.writer == later):
            return
        self._report(
            f"processor {{processor}} reads data of {_writer(earlier)} that {_writer(later)} has "
            "overwritten in part, at data memory {place}",
            self._config.processors[index[0]],
            (int(instance[index]), int(offset[index]) // 4),
        )

    def _flattened(
        self,
        source: DataMemory,
        writers: NDArray[np.int16],
        instance: Integers,
        offset: Integers,
        written: NDArray[np.bool_],
    ) -> None:
        """Report that only a part of an image is flattened, or more than it.

        The passes count its pixels; several images side by side are read completely.
        """
        unit, lane = np.divmod(np.array(self._config.processors), PROCESSORS_PER_INSTANCE)
        lanes = source.writer.reshape(len(source.writer), -1, PROCESSORS_PER_INSTANCE)
        owned = lanes[unit, :, lane]
        sources = np.unique(writers[written]).tolist()
        if writers.size == 1:
            return  # layers that reset average pooling read one value
        for layer in sources:
            own = written & (writers == layer)
            read, there = np.count_nonzero(own), np.count_nonzero(owned == layer)
            if layer != OUTSIDE and read < there:
                what = f"a part of the output of layer {layer} ({read} of {there} bytes)"
            elif layer == OUTSIDE and len(sources) > 1:
                names = ", ".join(f"layer {other}" for other in sources if other != OUTSIDE)
                what = f"data that no layer wrote as if it were output of {names}"
            else:
                continue
            index = np.unravel_index(np.argmax(own), own.shape)
            self._report(
                f"processor {{processor}} reads {what}, at data memory {{place}}",
                self._config.processors[index[0]],
                (int(instance[index]), int(offset[index]) // 4),
            )

    def write(self, target: DataMemory, instance: Integers, offset: Integers) -> None:
        """Report output behind the memory, or on top of output that nobody has read."""
        limit = self._memory.chip.instance_bytes
        beyond = offset >= limit
        if beyond.any():
            index = np.unravel_index(np.argmax(beyond), beyond.shape)
            place = int(instance[index]), int(offset[index]) // 4
            self._report(
                f"output word {place[1]} of data memory instance {place[0]} ({{address}}) is "
                f"beyond the {limit // 4} that it has ({np.count_nonzero(beyond)} such bytes)",
                4 * place[0] + int(offset[index]) % 4,
                place,
            )
        wrapped = offset % target.data.shape[1]
        for layer, count in target.lost(instance, wrapped, self._config.layer).items():
            if count == 1:
                continue  # layers that reset average pooling write a byte that nobody needs
            hit = target.writer[instance, wrapped] == layer
            index = np.unravel_index(np.argmax(hit), hit.shape)
            byte = int(wrapped[index])
            self._report(
                f"output overwrites that of layer {layer} before anything has read it, at data "
                f"memory {{place}} ({count} bytes)",
                4 * int(instance[index]) + byte % 4,
                (int(instance[index]), byte // 4),
            )

    def own_input(
        self,
        read: tuple[Integers, Integers],
        write: tuple[Integers, Integers, Integers],
    ) -> None:
        """Report output on top of the layer's own input.

        `read`: instances and byte offsets [processor, operand, pass, pixel]. `write`: instances
        [output], words [output, pixel] and pixels. It is harmless where a layer that takes the
        pixels one after the other has read what it overwrites.
        """
        instance, offset = read
        needed = np.full(self._memory.data.shape, -1, np.int64)  # last read, as a pooled pixel
        last = np.broadcast_to(_last_use(self._config), offset.shape)
        np.maximum.at(needed, (instance, offset // 4), last)
        touched = np.zeros(needed.shape, np.bool_)
        touched[instance, offset // 4] = True
        where = np.broadcast_to(write[0][:, None], write[1].shape)
        words = write[1] % needed.shape[1]
        overlap = touched[where, words]
        if not overlap.any():
            return
        early = overlap & (needed[where, words] > _read_before(self._config)[write[2]])
        shown = early if early.any() else overlap
        index = np.unravel_index(np.argmax(shown), shown.shape)
        place = int(where[index]), int(words[index])
        count = len(np.unique(where[shown] * _INSTANCE_WORDS + words[shown]))
        self._report(
            f"output overwrites the layer's own input in data memory {{place}} ({count} words)"
            + (", before it is read" if early.any() else ", which has been read by then"),
            4 * place[0],
            place,
            harmless=not early.any(),
        )

    def _kernels(self) -> None:
        config, memory = self._config, self._memory
        if config.kernels.four_at_once or memory.control_register("CTL")["fifo_quad"]:
            return  # their columns are spread over other places
        columns = columns_of(config)
        if columns.stop > memory.kernels.shape[1]:
            return  # refused when they are read
        replaced = memory.kernels_replaced[list(config.processors), columns]
        if replaced.any():
            self._column(
                "{processor} has kernel column {column} of the layer at {address} overwritten by "
                f"other kernels ({np.count_nonzero(replaced)} such columns)",
                replaced,
            )
        written = memory.kernels_written[list(config.processors), columns]
        written = written | ~_needed_columns(config, self._later, np.any(written, axis=0))
        if written.all():
            return
        self._column(
            "{processor} reads kernel column {column} of the layer at {address}, which was never "
            f"loaded ({np.count_nonzero(~written)} such columns)",
            ~written,
        )

    def _column(self, message: str, wrong: NDArray[np.bool_]) -> None:
        """Report the first wrong kernel column of [processor, column]."""
        memory, config = self._memory, self._config
        index, column = (int(i) for i in np.unravel_index(np.argmax(wrong), wrong.shape))
        processor = config.processors[index]
        address = memory.addresses.apb_base + memory.chip.kernel_address(
            processor, column + columns_of(config).start
        )
        text = message.format(
            processor=f"processor {processor}", column=column, address=f"0x{address:08x}"
        )
        self._findings.append(Finding(config.layer, text, processor, address))

    def _report(
        self,
        message: str,
        processor: int | None = None,
        place: tuple[int, int] | None = None,
        *,
        harmless: bool = False,
    ) -> None:
        """Add a finding; {processor}, {place} and {address} in the message are filled in.

        `place` is a data memory instance and a word in it.
        """
        address = None
        if place is not None:
            chip, base = self._memory.chip, self._memory.addresses.apb_base
            address = base + chip.data_address(place[0], 4 * place[1])
            message = message.format(
                processor=processor,
                place=f"instance {place[0]} word {place[1]} (0x{address:08x})",
                address=f"0x{address:08x}",
            )
        self._findings.append(Finding(self._config.layer, message, processor, address, harmless))


def layers_without_part(memory: Memory, visited: Sequence[LayerConfig]) -> Iterator[Finding]:
    """Yield findings on layers that do nothing: those without processors, and behind LCNT_MAX.

    `visited`: the layers from the first to the last, with or without processors.
    """
    chip, base = memory.chip, memory.addresses.apb_base
    last = memory.control_register("LCNT_MAX")["last"]
    for config in visited:
        if any(config.enabled):
            continue
        address = base + chip.layer_address(0, config.layer, "ENA")
        yield Finding(
            config.layer,
            f"it does nothing: ENA (0x{address:08x}) enables no processor in any group, though "
            f"LCNT_MAX reaches to layer {last}",
            address=address,
        )
    behind = [
        layer
        for layer in range(last + 1, chip.max_layers)
        if any(memory.register(layer, "ENA", group)["processors"] for group in range(GROUPS))
    ]
    if behind:
        address = base + chip.control_address(0, "LCNT_MAX")
        names = (
            f"layer {behind[0]} has"
            if len(behind) == 1
            else (f"layers {behind[0]} to {behind[-1]} have")
        )
        yield Finding(
            behind[0],
            f"never executed: LCNT_MAX (0x{address:08x}) ends the network at layer {last}, but "
            f"{names} processors",
            address=address,
        )


def unread_channels(
    layer: int, processors: Integers, addresses: Integers, output: Integers, data: DataMemory
) -> Finding | None:
    """Report outputs [output, row, column] that nothing has read, though it has read others.

    `processors` are those that can read them, `addresses` those of their first pixels. Output that
    nothing reads at all may be a result, so that this is only a note. Lanes without a
    channel hold nothing, or the same value in all pixels.
    """
    readers = data.readers.get(layer)
    if not readers:
        if not np.any(data.writer == layer):  # a stream, or overwritten, which is told elsewhere
            return None
        first = int(addresses[0])
        return Finding(
            layer,
            f"no layer reads its output, at data memory 0x{first:08x}",
            int(processors[0]),
            first,
            harmless=True,
        )
    flat = output.reshape(len(output), -1)
    alive = np.any(flat != flat[:, :1], axis=1) if flat.shape[1] > 1 else flat[:, 0] != 0
    left = sorted(set(processors[alive].tolist()) - set(readers))
    if not left:
        return None
    read = np.isin(processors, list(readers)).nonzero()[0]
    names = sorted(set(readers.values()))
    others = ", ".join(f"layer {name}" for name in names) + (" does" if len(names) == 1 else " do")
    shown = ", ".join(map(str, left[:_SHOWN_PROCESSORS]))
    more = f" and {len(left) - _SHOWN_PROCESSORS} more" if len(left) > _SHOWN_PROCESSORS else ""
    address = int(addresses[alive & (processors == left[0])][0])
    return Finding(
        layer,
        f"no layer reads its output with processor {shown}{more}, though {others} with others: "
        f"data memory 0x{address:08x}",
        left[0],
        address,
        # Kernels of another layer may stand in front of those of the first channel that is read.
        harmless=len(read) > 0 and bool(np.isin(processors, left).nonzero()[0].max() < read[0]),
    )


def _last_use(config: LayerConfig) -> Integers:
    """Return for each pixel of the input the last pooled pixel that needs it, -1 if none does."""
    inputs = config.input
    window = inputs.pool if inputs.pooling else (1, 1)
    last = []
    for length, count, width, step in zip(
        inputs.size, inputs.pooled, window, inputs.pool_dilation, strict=True
    ):
        position = np.full(length, -1, np.int64)
        for number in range(count):
            start = number * inputs.stride
            position[start : start + (width - 1) * step + 1 : step] = number
        last.append(position)
    rows, columns = last[0][:, None], last[1]
    used = (rows >= 0) & (columns >= 0)
    return np.where(used, rows * inputs.pooled[1] + columns, -1).reshape(-1)


def _read_before(config: LayerConfig) -> Integers:
    """Return for each pixel of the output the last pooled pixel that is read before it is known."""
    inputs = config.input
    rows, columns = config.output_size
    kernel = (1, 1) if config.operator is Operator.PASSTHROUGH else config.kernels.shape
    needed = []
    for length, taps, pad in zip((rows, columns), kernel, inputs.pad, strict=True):
        last = np.arange(length) + (taps - 1 - pad if taps > 1 else 0)
        if config.transposed:
            last //= 2
        needed.append(np.clip(last, 0, None))
    row, column = needed[0][:, None], needed[1]
    height, width = inputs.pooled
    behind = row * width + np.minimum(column, width - 1)
    return np.where(row >= height, height * width - 1, behind).reshape(-1)


def _writer(layer: int) -> str:
    return "the input" if layer == OUTSIDE else f"layer {layer}"


def _needed_columns(
    config: LayerConfig, later: Sequence[LayerConfig], loaded: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Tell for each column of the layer's kernels whether a kernel that is used reaches into it.

    The kernels of lanes that the output leaves out are not loaded, and not used. `loaded` tells
    which columns any processor has.
    """
    kernels, output = config.kernels, config.output
    taps = kernels.shape[0] * kernels.shape[1]
    number = np.arange(max(kernels.count, 0))
    byte = kernels.start + number[:, None] // (8 // kernels.bits) * taps + np.arange(taps)
    columns = byte // KERNEL_COLUMN_BYTES - columns_of(config).start
    if config.operator is Operator.DEPTHWISE:
        used = number >= kernels.count - config.input.passes
    else:
        slot = number // config.input.passes
        present = slot < output.slots * output.passes
        slot %= output.slots
        holds = np.zeros(output.slots, np.bool_)
        holds[slot[loaded[columns].any(axis=1)]] = True
        used = present & _used_slots(config, later, holds)[slot]
    needed = np.zeros(len(loaded), np.bool_)
    needed[columns[used]] = True
    return needed


def _used_slots(
    config: LayerConfig, later: Sequence[LayerConfig], loaded: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Tell which outputs of a pass exist: those that the layer reads that reads this output.

    If none does, lanes that have no kernels at all (not `loaded`) may be left out; the last exists.
    """
    start, count = config.output.pointers[0], config.output.slots
    processors = (start.instance * PROCESSORS_PER_INSTANCE + np.arange(count)) % PROCESSORS
    for layer in later:
        first = layer.input.read_word
        used = np.isin(processors, layer.processors)
        if first <= start.word < first + layer.input.operands and used.any():
            return used
    used = loaded.copy()
    used[: min(PROCESSORS_PER_INSTANCE, count) - 1] = False  # another layer's may stand there
    used[-1] = True
    # What lacks at the end was not left out
    end = int(np.flatnonzero(loaded)[-1]) + 1 if loaded.any() else 0
    used[end:] = True
    return used


def _masks(masks: tuple[int, ...]) -> str:
    return " ".join(f"{mask:04x}" for mask in reversed(masks))
