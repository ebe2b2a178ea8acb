"""What is suspicious about a layer, and how a check reports it."""

from __future__ import annotations

from emulator.decode.config import LayerConfig
from emulator.state.memory import Memory
from values import frozen


@frozen
class LayerFinding:
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
        harmless: bool = False,
    ) -> None:
        """Add a finding on the layer."""
        self.findings.append(LayerFinding(self.config.layer, message, processor, address, harmless))

    def at_word(
        self, message: str, processor: int, place: tuple[int, int], *, harmless: bool = False
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
        self.add(text, processor, address, harmless=harmless)
