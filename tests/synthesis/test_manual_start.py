"""Power, initialization, start, FIFOs and end are what the manual says, for all options at random.

Source: docs/hardware/execution.md, "The life of a program"; docs/hardware/registers.md, "CTL";
docs/hardware/streaming.md, "FIFOs"; docs/options.md, "ai8xize.py".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from ai8xtools.synthesis.encode.control import (
    fifo_blocks,
    init_blocks,
    interrupt_mask,
    power,
    snoop_blocks,
    snoop_results,
    start_blocks,
    unused_blocks,
)
from ai8xtools.synthesis.encode.numbering import Numbering
from ai8xtools.synthesis.encode.writer import RegisterWriter
from ai8xtools.synthesis.mapping import MappedNetwork, map_network
from ai8xtools.synthesis.options import EncodeOptions
from ai8xtools.synthesis.program import Block, Check, Clear, TimerStart, Wait, Write
from device import MAX78000, MAX78002, Chip
from device.registers import SHARED_REGISTERS
from tests.synthesis.manual import needs_reset
from tests.synthesis.random_mapped import random_network
from tests.synthesis.stages import encoding

CTL, SRAM, LCNT, TEST = 0, 4, 8, 12
"""Offsets of control registers in `group(g)`."""
ENABLE, CLOCK, EXTERNAL_READY, NO_PIPELINE, CHW, SNOOP, ONE_SHOT = (
    1 << n for n in (0, 3, 4, 5, 6, 7, 8)
)
SYNC, DONE, ROUNDING, STREAMING, FIFO, FIFO_STREAMING, EXPRESS, SIMPLE, FAST, FAST_GROUP = (
    1 << n for n in (11, 12, 13, 14, 15, 19, 20, 21, 22, 23)
)
BINARY, QUAD = 1 << 30, 1 << 31


def options_of(rng: Random, chip: Chip) -> EncodeOptions:
    """Return any options that change these words."""
    bits = ("express", "average_rounding", "simple_1bit", "external_ready", "powerdown",
            "init_tram", "zero_sram", "max_speed", "one_shot")  # fmt: skip
    changes: dict[str, Any] = {name: rng.random() < 0.4 for name in bits}
    for name in ("ready_select", "ready_select_aon", "ready_select_fifo"):
        changes[name] = rng.choice([0, 1, 2, 3])
    changes["pipeline"] = rng.choice([None, True, False])
    changes["pll"] = rng.choice([None, True, False])
    changes["clock_divider"] = rng.choice([None, None, 1, 2, 8])
    changes["switch_delay_ms"] = rng.choice([None, 0, 3])
    changes["snoop_loop"] = chip is MAX78002 and rng.random() < 0.3
    changes["apb_base"] = rng.choice([0x50000000, 0x60000000])
    changes["repeat_layers"] = rng.choice([1, 2])
    changes["write_zero_registers"] = rng.random() < 0.3
    return encoding(**changes)


def steps_of(blocks: Iterator[Block]) -> list[Any]:
    """Return what happens, in order: stores, waits, checks, ranges that are cleared, the start."""
    found: list[Any] = []
    for step in (step for block in blocks for step in block.steps):
        match step:
            case Write():
                found += [] if step.skipped else [(step.address, step.value)]
            case Wait():
                found.append(("wait", step.address, step.mask))
            case Check():
                found.append(("check", step.address, step.mask))
            case Clear():
                found.append(("clear", step.address, step.size_bytes))
            case TimerStart():
                found.append("timer")
    return found


class Model:
    """The manual's steps for a network and options."""

    def __init__(self, network: MappedNetwork, options: EncodeOptions) -> None:
        self.network, self.options = network, options
        self.newer = network.chip is MAX78002
        stride, offset = (0x1000000, 0x1000000) if self.newer else (0x400000, 0x100000)
        self.base = [options.apb_base + g * stride + offset for g in range(4)]
        masks = [x.processors for x in network.layout.layers.values()]
        final = network.network.layer(network.order[-1])
        masks.append(network.layout.layers[final.index].output_processors)
        self.groups = [g for g in range(4) if any((m or 0) >> 16 * g & 0xFFFF for m in masks)]
        self.first = network.layout.layers[network.order[0]]
        self.port = network.layout.input_port.value
        self.fifo = "fifo" in self.port
        self.pipelined = self.newer and options.place.streams.pipeline is not False
        self.streams = any(x.streaming for x in network.layout.layers.values())
        clocked = CLOCK | options.ready_select << 1
        self.clocked = clocked | (NO_PIPELINE if self.newer and not self.pipelined else 0)

    def zero(self, step: tuple[int, int]) -> list[tuple[int, int]]:
        """A zero is only written if all are wanted."""
        return [step] if step[1] or self.options.write_zero_registers else []

    def numbers(self) -> tuple[int, int]:
        """First hardware layer, and what the layer counter is compared with."""
        layers, order = self.network.network.layers, self.network.order
        resets = [i for i in order if needs_reset(self.network, i)]
        self.resets = resets
        self.count = len(layers) + len(resets)
        return order[0], (order[-1] + len(resets)) * self.options.place.repeat_layers

    def init(self) -> list[Any]:
        """Initialization, and the memory tests of an option."""
        options, found = self.options, []
        if self.newer:
            found += [(self.base[g] + CTL, self.clocked) for g in self.groups]
        found.append((options.apb_base + 0x1000, options.ready_select_aon))
        if self.newer:
            biased = 0x400 if self.network.layout.file_has_bias else 0
            found += [(self.base[g] + SRAM, 0x40E) for g in self.groups]
            found += [(self.base[g] + TEST, 0x1880 | biased) for g in self.groups]
            found += [("wait", self.base[g] + TEST, 1 << 25) for g in self.groups]
            found += [(self.base[g] + TEST, 0) for g in self.groups]
        first, last = self.numbers()
        for g in self.groups:
            if options.init_tram:
                offset, far, words = (0x200000, 0x10000, 12288) if self.newer else (
                    0x10000, 0x4000, 3072,
                )  # fmt: skip
                found += [("clear", self.base[g] + offset + far * n, words) for n in range(16)]
            mode = self.clocked | (EXPRESS if options.express else 0) | (FIFO if self.fifo else 0)
            found.append((self.base[g] + CTL, mode))
            found += [] if self.newer else [(self.base[g] + SRAM, 0x40E)]
            found += self.zero((self.base[g] + LCNT, last | first << 8))
        return found + (self.tests() if options.zero_sram else [])

    def tests(self) -> list[Any]:
        """The self tests of all groups, memory by memory, from the table of the manual."""
        found: list[Any] = []
        for n in range(4):
            start = (0x1001, 0x2004, 0x3010, 0x1C40)[n] if self.newer else (1, 4, 0x10, 0x40)[n]
            done = 0x40000 << n | (0 if self.newer else 0x8000000)
            found += [(b + TEST, start) for b in self.base]
            found += [("wait", b + TEST, done) for b in self.base]
            found += [("check", b + TEST, 0x4000 << n) for b in self.base]
            found += [(b + TEST, 0) for b in self.base]
        return found

    def mode(self) -> int:
        """The mode bits of the start."""
        options, layers = self.options, self.network.network.layers
        word = CLOCK | (NO_PIPELINE if self.newer and not self.pipelined else 0)
        word |= 0 if self.pipelined else options.ready_select << 1
        planar = self.newer and self.first.streaming and self.first.channels_first
        for bit, wanted in (
            (EXTERNAL_READY, options.external_ready),
            (CHW, planar),
            (SNOOP, self.network.layout.snoop is not None or options.snoop_loop),
            (ONE_SHOT, options.one_shot),
            (SYNC, self.fifo),
            (ROUNDING, options.average_rounding),
            (STREAMING, self.streams),
            (FIFO_STREAMING, self.fifo and self.streams),
            (EXPRESS, options.express),
            (SIMPLE, options.simple_1bit),
            (BINARY, any(layer.weight_bits < 0 for layer in layers)),
            (QUAD, "all" in self.port),
        ):
            word |= bit if wanted else 0
        return word

    def fed(self, group: int) -> int:
        """Bits of a group that a FIFO feeds."""
        mask = self.first.processors or 0
        mask &= 0xFFFF if "all" in self.port else mask
        if not mask >> 16 * group & 0xF:
            return 0
        fast = "fast" in self.port
        together = fast and (mask == 1 or mask & 0xE)
        return FIFO | (FAST if fast else 0) | (FAST_GROUP if together else 0)

    def enable(self, group: int, *, loop: bool = False) -> tuple[int, int]:
        """The word that enables a group; the master follows."""
        master = self.groups[0]
        word = self.mode() | master << 9 | (FIFO | self.fed(group) if self.fifo else 0)
        if loop or not self.options.snoop_loop:
            word |= SYNC | (ENABLE if group != master else 0)
        return self.base[group] + CTL, word

    def start(self) -> list[Any]:
        """The start: all groups, then the master."""
        options, master = self.options, self.groups[0]
        found: list[Any] = [self.enable(g) for g in self.groups]
        if options.powerdown:
            unused = sum(1 << g for g in range(4) if g not in self.groups)
            word = unused << 12 | options.ready_select_aon
            found += self.zero((options.apb_base + 0x1000, word))
        if options.snoop_loop:
            found += self.loop()
        found.append("timer")
        word = self.mode() | ENABLE | (self.fed(master) if self.fifo else 0)
        return [*found, (self.base[master] + CTL, word)]

    def loop(self) -> list[Any]:
        """The words that start the network again: numbers of unit SNP1 from 0x42020 on."""
        self.numbers()
        final = self.network.order[-1]
        number = final + sum(r <= final for r in self.resets)
        number += (self.options.place.repeat_layers - 1) * self.count
        offset = self.network.layout.layers[final].out_offset or 0
        waiting = 0x84D0 if self.pipelined else 0x2134
        found: list[Any] = []
        for g in self.groups:
            unit = self.base[g] + 0x108080
            found.append((self.base[g] + 0x100000 + 0x100 * number, 0x80))
            found += [(unit + 0x24, 0), (unit, 1 << 21 | offset // 4), (unit + 0x10, waiting)]
            found += [(unit + 0x1C, 0x4000), (unit + 0x18, 0x8A412014), (unit + 0x18, 0x8A412015)]
        return found + [self.enable(g, loop=True) for g in self.groups]

    def fifos(self) -> list[Any]:
        """Set-up of the FIFOs."""
        if not self.fifo:
            return []
        if "fast" in self.port:
            return [(0x400C0400, 0xA0)]
        channels, mask = self.network.network.layers[0].in_channels, self.first.processors or 0
        used = sum(1 << f for f in range(min(4, channels)) if mask >> 16 * f & 1)
        word = 0x108 | used << 12 | self.options.ready_select_fifo
        return [(self.options.apb_base, word | (0 if self.newer else 1 << 11))]


@pytest.mark.parametrize("chip", [MAX78000, MAX78002], ids=lambda chip: chip.name)
def test_words_around_the_layers_are_those_of_the_manual(chip: Chip) -> None:
    rng = Random(f"start of {chip.name}")
    for _ in range(160):
        network, options = random_network(rng, chip), options_of(rng, chip)
        layout = replace(
            network.layout,
            file_has_bias=rng.random() < 0.5,
            snoop=tuple(rng.randrange(1 << 32) for _ in range(32))
            if chip is MAX78002 and rng.random() < 0.3
            else None,
        )
        network = map_network(network.network, layout, chip)
        model = Model(network, options)
        writer = RegisterWriter(chip, options.apb_base, options.write_zero_registers)
        numbering = Numbering.of(network.network, chip, options.place.repeat_layers)
        assert steps_of(init_blocks(network, writer, numbering, options)) == model.init()
        assert steps_of(start_blocks(network, writer, numbering, options)) == model.start()
        assert steps_of(fifo_blocks(network, writer, options)) == model.fifos()
        cleared = DONE | ENABLE | (STREAMING if model.streams else 0)
        one = options.one_shot and network.order[-1] > 0
        assert interrupt_mask(network, options) == (DONE if one else cleared)
        assert steps_of(snoop_blocks(network, writer)) == [
            pair
            for g in model.groups
            for i, value in enumerate((layout.snoop or ())[:24])
            for pair in model.zero((model.base[g] + 0x108080 + 4 * i, value))
        ]
        results = [8, 9, 10, 11, 20, 21, 22, 23]  # ACC, HIT, MAX and AM of both units
        assert [(w.address, w.value) for w in snoop_results(network, writer)] == [
            (model.base[g] + 0x108080 + 4 * i, value)
            for g in model.groups
            for i, value in zip(results, (layout.snoop or ())[24:], strict=False)
        ]


@pytest.mark.parametrize("chip", [MAX78000, MAX78002], ids=lambda chip: chip.name)
def test_the_clock_is_the_fastest_that_is_allowed(chip: Chip) -> None:
    """Dividers by hand: 200 MHz from the PLL or 60, at most 50 without the pipeline."""
    rng = Random(f"clock of {chip.name}")
    for _ in range(200):
        network, options = random_network(rng, chip), options_of(rng, chip)
        found, newer = power(network, options), chip is MAX78002
        fast = newer and options.pll is not False
        pipelined = newer and options.place.streams.pipeline is not False
        source = 200 if fast else 60 if newer else 50
        divider = options.clock_divider or {200: 4, 60: 2, 50: 1}[source]
        divider = options.clock_divider or (1 if pipelined else divider)
        slowly = fast and not options.max_speed and options.clock_divider is None
        assert found.groups_mask == sum(1 << g for g in Model(network, options).groups)
        assert found.clock_source == ("IPLL" if fast else "PCLK")
        assert found.clock_divider == (4 if slowly else divider)
        assert found.start_divider == (divider if slowly and pipelined else None)
        assert found.clock_mhz == source / divider
        usual = 10 if newer else 0
        delay = options.switch_delay_ms
        assert found.switch_delay_ms == (usual if delay is None else delay)


@pytest.mark.parametrize("chip", [MAX78000, MAX78002], ids=lambda chip: chip.name)
def test_zeros_of_unused_registers_go_to_each_number_of_the_last_layer(chip: Chip) -> None:
    rng = Random(f"zeros of {chip.name}")
    for _ in range(20):
        network = random_network(rng, chip)
        repeat = rng.choice([1, 2])
        numbering = Numbering.of(network.network, chip, repeat)
        writer = RegisterWriter(chip, 0x50000000, write_zeros=False)
        model = Model(network, encoding(repeat_layers=repeat))
        model.numbers()
        last = len(network.layers) + len(model.resets) + network.order[0] - 1
        last += (repeat - 1) * model.count
        wanted = []
        for g in model.groups:
            if chip is MAX78000:
                wanted += [(model.base[g] + 0x10 + 0x80 * n + 4 * last, 0) for n in range(21)]
            else:
                here = model.base[g] + 0x100000
                wanted += [(here + 0x100 * last + 4 * n, 0) for n in range(20)]
                wanted += [(here + 4 * n + 4 * last, 0) for n in (0x2000, 0x2008, 0x2010)]
        assert steps_of(unused_blocks(network, writer, numbering)) == wanted


def test_the_fast_fifo_is_not_read_back() -> None:
    """Its flags change while the network runs."""
    writer = RegisterWriter(MAX78002, 0x50000000, write_zeros=False)
    assert not writer.fast_fifo("CTL", {"thresholds": 1}).verifiable
    assert writer.shared(next(iter(SHARED_REGISTERS)), {}).verifiable
