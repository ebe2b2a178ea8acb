"""What is suspicious about a layer, and how a check reports it."""

from __future__ import annotations

from enum import Enum

from ai8xtools.emulator.decode.config import LayerConfig
from ai8xtools.emulator.state.memory import Memory
from ai8xtools.values import frozen


class Severity(Enum):
    """What a finding says of the program; the values are what messages begin with."""

    NOTE = "note"
    """It works, but only just; or a hint at the cause if it does not."""
    WARNING = "warning"
    """Silicon may compute something else."""
    ERROR = "error"
    """It is wrong, whatever its result."""


@frozen
class WrongField:
    """A field of a layer register that does not have the value that it should have."""

    group: int
    register: str
    field: str
    expected: int
    actual: int


@frozen
class LayerFinding:
    """Something suspicious about a layer, as a sentence.

    `processor` (0 to 63) and bus `address` say where, if it is about one place; of output, it is
    the processor that can read it. `wrong` tells the field, if it is about one. `flow` means that
    it is about who wrote data and who reads it, which a proof follows by itself.
    """

    layer: int
    message: str
    processor: int | None = None
    address: int | None = None
    severity: Severity = Severity.WARNING
    wrong: WrongField | None = None
    flow: bool = False

    @property
    def harmless(self) -> bool:
        """Whether it works all the same."""
        return {Severity.NOTE: True, Severity.WARNING: False, Severity.ERROR: False}[self.severity]

    @property
    def is_error(self) -> bool:
        """Whether the program is wrong."""
        return {Severity.NOTE: False, Severity.WARNING: False, Severity.ERROR: True}[self.severity]

    def __str__(self) -> str:
        return f"layer {self.layer}: {self.message}"


def field_finding(
    memory: Memory,
    layer: int,
    wrong: WrongField,
    reason: str,
    severity: Severity = Severity.ERROR,
) -> LayerFinding:
    """Return a finding on a field of a layer register."""
    address = memory.addresses.apb_base
    address += memory.chip.layer_address(wrong.group, layer, wrong.register)
    text = (
        f"group {wrong.group}, {wrong.register} (0x{address:08x}) {wrong.field}: "
        f"expected {_number(wrong.expected)}, found {_number(wrong.actual)} ({reason})"
    )
    return LayerFinding(layer, text, address=address, severity=severity, wrong=wrong)


def _number(value: int) -> str:
    return str(value) if value < 10 else f"0x{value:x}"


@frozen
class LayerReport:
    """Where the checks of one layer report; what they find is added to `findings`."""

    memory: Memory
    config: LayerConfig
    findings: list[LayerFinding]

    def add(
        self,
        message: str,
        processor: int | None = None,
        address: int | None = None,
        *,
        severity: Severity = Severity.WARNING,
        flow: bool = False,
    ) -> None:
        """Add a finding on the layer."""
        self.findings.append(
            LayerFinding(self.config.layer, message, processor, address, severity, flow=flow)
        )

    def at_word(
        self,
        message: str,
        processor: int,
        place: tuple[int, int],
        *,
        severity: Severity = Severity.WARNING,
        flow: bool = False,
    ) -> None:
        """Add a finding on a data memory word: {processor}, {place}, {address} are filled in.

        `place` is a data memory instance and a word in it.
        """
        instance, word = place
        address = self.memory.addresses.apb_base
        address += self.memory.chip.data_address(instance, 4 * word)
        text = message.format(
            processor=processor,
            place=f"instance {instance} word {word} (0x{address:08x})",
            address=f"0x{address:08x}",
        )
        self.add(text, processor, address, severity=severity, flow=flow)
