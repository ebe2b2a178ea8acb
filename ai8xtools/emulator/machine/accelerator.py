"""The accelerator: memories and registers in, results in data memory out.

`Accelerator.write` takes bus writes, `Accelerator.run` executes the configured layers from the
registers and memories alone. Layers run one after the other; each reads all of its input before
its output is written. Mistakes that silicon would execute without any sign become `Finding`s.
Source: docs/hardware/memory.md, "Data memory" and "Bias memory"; docs/hardware/streaming.md,
"FIFOs"; docs/hardware/execution.md, "Write pointers" and "Order of layers";
docs/hardware/arithmetic.md, "Shift, rounding, clipping"; docs/emulator.md, "Properties
that registers do not contain" and "What silicon would not tell you".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from ai8xtools.emulator.checks.biases import bias_hints
from ai8xtools.emulator.checks.finding import LayerFinding
from ai8xtools.emulator.checks.network import layers_without_part, unread_channels
from ai8xtools.emulator.checks.registers import check_layer
from ai8xtools.emulator.checks.registers.facts import LayerFacts
from ai8xtools.emulator.decode.config import LayerConfig
from ai8xtools.emulator.decode.layer import decode_layer
from ai8xtools.emulator.errors import EmulatorError
from ai8xtools.emulator.machine import snoop
from ai8xtools.emulator.machine.execution import LayerExecution, LayerRun
from ai8xtools.emulator.machine.kernels import DecodedKernels
from ai8xtools.emulator.state.data_memory import DataMemory
from ai8xtools.emulator.state.memory import INSTANCES, Memory
from ai8xtools.emulator.state.power import check_power
from ai8xtools.emulator.words.recording import RecordedWords
from ai8xtools.emulator.words.writes import Writes
from ai8xtools.reading.progress import progress as shown
from device import Chip
from device.chip import DEFAULT_APB_BASE, GROUPS, PROCESSORS_PER_INSTANCE

_SHOWN_FINDINGS = 3


@dataclass
class NetworkRun:
    """An executed network: its layers in order, and what is suspicious about them."""

    layers: list[LayerRun] = field(default_factory=list)
    findings: list[LayerFinding] = field(default_factory=list)

    @property
    def errors(self) -> list[LayerFinding]:
        """The findings by which the program is wrong, whatever its result."""
        return [finding for finding in self.findings if finding.is_error]

    def output(self, layer: int | None = None) -> NDArray[np.int64]:
        """Return the output of a hardware layer, or of the last one: int64 [channel, row, column].

        Channels count from lane 0 of the layer's first data memory instance, used or not. Raises
        KeyError if the layer was not executed.
        """
        if layer is None:
            return self.layers[-1].output
        return {done.config.layer: done.output for done in self.layers}[layer]


@dataclass
class _Progress:
    """A network that is being executed: what is done, and the layers that remain.

    The next layer reads from `source`; layers that do not stream write to `own`.
    """

    run: NetworkRun
    layers: list[LayerConfig]
    source: DataMemory
    own: DataMemory


class Accelerator:
    """The accelerator of `chip`, whose bus starts at `apb_base`."""

    def __init__(self, chip: Chip, apb_base: int = DEFAULT_APB_BASE) -> None:
        self.memory = Memory(chip, apb_base)
        self.goes_on = False
        """The program may go on with another start where a network ends (early exit)."""
        self._progress: _Progress | None = None
        self._ended: NetworkRun | None = None
        self._counts: dict[int, int] = {}
        self._decoded = DecodedKernels()

    def write(self, writes: Writes) -> None:
        """Apply bus writes. Raises EmulatorError (E830) where the accelerator has nothing."""
        self.memory.write(writes)

    def data_words(self) -> dict[int, int]:
        """Return the words of data memory that were ever written, by address."""
        memory = self.memory
        written = memory.data_written.view(np.uint32)  # of four bytes each
        words: dict[int, int] = {}
        for instance in range(INSTANCES):
            index = np.flatnonzero(np.take(written, instance, axis=0))
            start = memory.addresses.apb_base + memory.chip.data_address(instance)
            values = memory.data[instance, index].tolist()
            words.update(zip((start + 4 * index).tolist(), values, strict=True))
        return words

    def changed_words(self, before: NDArray[np.uint32]) -> dict[int, int]:
        """Return what a run has changed, by address; `before` is a copy of the data memory."""
        memory = self.memory
        words: dict[int, int] = {}
        for instance in range(INSTANCES):
            index = np.flatnonzero(memory.data[instance] != before[instance])
            start = memory.addresses.apb_base + memory.chip.data_address(instance)
            values = memory.data[instance, index].tolist()
            words.update(zip((start + 4 * index).tolist(), values, strict=True))
        return words | snoop.result_words(memory)

    def result_words(self) -> dict[int, int]:
        """Return what a run may change, by address: data memory and results of snoop units."""
        return self.data_words() | snoop.result_words(self.memory)

    def input_complete(self) -> bool:
        """Tell whether everything is there that the network reads from the FIFOs."""
        memory = self.memory
        if not memory.control_register("CTL")["fifo"]:
            return True
        needed = memory.control_register("IFRM")["size"]
        return any(memory.pushes) and all(len(p) >= needed for p in memory.pushes.values())

    def run(self) -> NetworkRun:
        """Execute the network once, from the start layer to the last; behind an early exit the
        layers are added to the run that ended there.

        Raises EmulatorError: no layer does anything (E831), impossible registers (E832), a FIFO
        lacks words (E833), a group that takes part is not enabled or has no power (E834).
        """
        earlier = self._ended if self.resumes else None
        if earlier is None:
            self._counts = self._layer_counts()
        progress = self._begin()
        with shown("Layers on the accelerator", len(progress.layers)) as advance:
            while progress.layers:
                self._advance(progress)
                advance(1)
        if earlier is None:
            self._ended = progress.run
            return progress.run
        earlier.layers += progress.run.layers
        earlier.findings += progress.run.findings
        return earlier

    def rewind(self) -> None:
        """Let the layer counts be those of the start that began the network."""
        self.memory.registers |= self._counts

    def _layer_counts(self) -> dict[int, int]:
        base, chip = self.memory.addresses.apb_base, self.memory.chip
        counts = [base + chip.control_address(group, "LCNT_MAX") for group in range(GROUPS)]
        return {a: self.memory.registers[a] for a in counts if a in self.memory.registers}

    @property
    def resumes(self) -> bool:
        """Whether the next start goes on behind the layers of the last one, after an early exit."""
        first = self.memory.control_register("LCNT_MAX")["first"]
        last = self._ended.layers[-1].config.layer if self._ended is not None else None
        return self.goes_on and last is not None and first == last + 1

    def start(self) -> NetworkRun:
        """Execute until the accelerator stops: as `run`, but with one-shot only the next layer.

        Returns what was executed of the network so far. Raises EmulatorError as `run` does.
        """
        if not self.memory.control_register("CTL")["one_shot"]:
            self._progress = None
            return self.run()
        if self._progress is None or not self._progress.layers:
            self._progress = self._begin()
        self._advance(self._progress)
        return self._progress.run

    def planned_layers(self) -> list[LayerConfig]:
        """Return the layers that a run executes, in order, unless snoop units redirect the
        execution.
        """
        first = self.memory.control_register("LCNT_MAX")["first"]
        return _taking_part(self._links(first, NetworkRun()))

    @property
    def is_finished(self) -> bool:
        """Whether the last start ended a network, and not only one of its layers."""
        return self._progress is None or not self._progress.layers

    def _begin(self) -> _Progress:
        """Find the layers and check that they can run."""
        run = NetworkRun()
        first = self.memory.control_register("LCNT_MAX")["first"]
        visited = self._links(first, run)
        layers = _taking_part(visited)
        if not layers:
            raise EmulatorError(
                "E831",
                "no layer has a processor: there is nothing to execute",
                remedy="The accelerator must be configured before it is started.",
            )
        check_power(self.memory.registers, self._enabled_groups(layers))
        run.findings += layers_without_part(self.memory, visited, goes_on=self.goes_on)
        own = DataMemory.of(self.memory)
        return _Progress(run, layers, own, own)

    def _advance(self, progress: _Progress) -> None:
        """Execute the next layer."""
        config, *rest = progress.layers
        streams = bool(rest and rest[0].stream_start)
        target = DataMemory.for_stream() if streams else progress.own
        first = config.layer == self.memory.control_register("LCNT_MAX")["first"]
        wrong = [*check_layer(self._facts(config, progress.run, rest))]
        progress.run.findings += wrong
        layer = LayerExecution(
            self.memory, config, rest, progress.run.findings, self._decoded, first=first
        )
        try:
            progress.run.layers.append(layer.run(progress.source, target))
        except EmulatorError as error:
            raise _with_findings(error, wrong) from None
        progress.source = target
        progress.layers = self._behind(progress.run, rest, target)
        if not progress.layers:
            self.memory.pushes.clear()
            progress.run.findings += _unread(progress, self.memory)
            configs = [done.config for done in progress.run.layers]
            progress.run.findings += bias_hints(self.memory, configs, progress.run.findings)

    def _facts(self, config: LayerConfig, run: NetworkRun, later: list[LayerConfig]) -> LayerFacts:
        """Return what is known of a layer behind those that have run."""
        first = self.memory.control_register("LCNT_MAX")["first"]
        before = tuple(done.config for done in run.layers)
        return LayerFacts(self.memory, config, before, tuple(later), config.layer == first)

    def _links(self, number: int | None, run: NetworkRun) -> list[LayerConfig]:
        """Follow the links from a layer on; a jump back to an executed layer ends the list."""
        layers: list[LayerConfig] = []
        visited = {done.config.layer for done in run.layers}
        while number is not None and number not in visited:
            if number >= self.memory.chip.max_layers:
                raise EmulatorError("E832", f"there is no layer {number} to continue with")
            layers.append(decode_layer(self.memory, number))
            visited.add(number)
            number = layers[-1].next_layer
        return layers

    def _behind(
        self, run: NetworkRun, planned: list[LayerConfig], target: DataMemory
    ) -> list[LayerConfig]:
        """Return the layers behind the last that ran, unless snoop units redirect the execution."""
        done = run.layers[-1]

        def complain(text: str) -> None:
            if not any(finding.message == text for finding in run.findings):
                run.findings.append(LayerFinding(done.config.layer, text))

        decision = snoop.watch(
            self.memory, lambda: _written_words(done, target, self.memory.chip), complain
        )
        match decision:
            case snoop.Decision.STOP:
                return []
            case snoop.Decision.NEXT_IN_ORDER if done.config.next_layer is not None:
                return _taking_part(self._links(done.config.layer + 1, run))
            case snoop.Decision.NEXT_IN_ORDER | None:
                return planned
            case _:
                assert_never(decision)

    def _enabled_groups(self, layers: list[LayerConfig]) -> set[int]:
        """Return the groups that are enabled, which must be all that take part.

        Without any control word, the network is executed as if all were.
        """
        addresses, registers = self.memory.addresses.control, self.memory.registers
        controls = [self.memory.control_register("CTL", group) for group in range(GROUPS)]
        if not any(address in registers for address in addresses):
            return set()
        for config in layers:
            for group in config.groups:
                if not (controls[group]["enable"] and controls[group]["clock_enable"]):
                    raise EmulatorError(
                        "E834",
                        f"group {group} takes part in layer {config.layer}, but is not enabled in "
                        f"0x{addresses[group]:08x}",
                        remedy="Check the words that are written to its CTL register.",
                    )
        return {group for group, control in enumerate(controls) if control["enable"]}


def run_words(
    recording: RecordedWords, chip: Chip, apb_base: int = DEFAULT_APB_BASE
) -> tuple[NetworkRun, dict[int, int]]:
    """Execute a recording; return the run and the words of data memory afterwards, by address.

    Raises EmulatorError as Accelerator does.
    """
    accelerator = Accelerator(chip, apb_base)
    accelerator.write(recording.writes)
    run = accelerator.run()
    return run, accelerator.data_words()


def _with_findings(error: EmulatorError, wrong: list[LayerFinding]) -> EmulatorError:
    """Name the wrong registers of a layer that cannot be executed."""
    if not wrong:
        return error
    remedy = "Look at " + "; ".join(map(str, wrong[:_SHOWN_FINDINGS]))
    return EmulatorError(error.code, error.message, error.place, remedy)


def _taking_part(layers: list[LayerConfig]) -> list[LayerConfig]:
    """Return the layers that have a processor; the others do nothing."""
    return [config for config in layers if any(config.enabled)]


def _unread(progress: _Progress, memory: Memory) -> Iterator[LayerFinding]:
    """Yield a finding for each layer of whose output a part was left out."""
    for done in progress.run.layers[:-1]:
        if not done.config.kind.has_kernels and done.output.size == 1:
            continue  # as a layer that resets average pooling, whose byte nobody needs
        place = done.place
        processors = place.instance * PROCESSORS_PER_INSTANCE + place.lane
        words = zip(place.instance.tolist(), done.words[:, 0].tolist(), strict=True)
        addresses = np.array(
            [memory.addresses.apb_base + memory.chip.data_address(i, 4 * w) for i, w in words]
        )
        finding = unread_channels(
            done.config.layer, processors, addresses, done.output, progress.own
        )
        if finding is not None:
            yield finding


def _written_words(done: LayerRun, target: DataMemory, chip: Chip) -> snoop.WrittenWords:
    """Return the words that a layer wrote, once each, by ascending write pointer."""
    words = done.words
    limit = chip.write_pointer_words
    inside = words < limit
    pointers = np.unique((done.place.instance[:, None] * limit + words)[inside])
    instance, word = np.divmod(pointers, limit)
    return snoop.WrittenWords(pointers, target.data.view("<u4")[instance, word].astype(np.int64))
