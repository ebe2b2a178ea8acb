"""Flash and SRAM of the core, and whether a program fits into them.

Flash begins below SRAM.
Source: docs/emulator.md, "The core and its peripherals".
"""

from __future__ import annotations

from dataclasses import replace

from ai8xtools.emulator.bits import WORD_LIMIT
from ai8xtools.emulator.cpu.elf import Image
from ai8xtools.emulator.errors import EmulatorError
from ai8xtools.values import frozen
from device.chip import FLASH_BASE, SRAM_BASE

ROOMY_BYTES = 0x2000000
"""Flash and SRAM of a core that stands for no chip; tests keep their buffers there."""


@frozen
class CoreMemory:
    """Sizes of flash and SRAM in bytes; `owner` is what messages call them by.

    Flash begins at `flash_base`, SRAM at `sram_base`. Another program takes the first `flash_taken`
    bytes of the flash.
    """

    flash_bytes: int = ROOMY_BYTES
    sram_bytes: int = ROOMY_BYTES
    owner: str = "emulator"
    flash_taken: int = 0
    flash_base: int = FLASH_BASE
    sram_base: int = SRAM_BASE

    def without_flash(self, used_bytes: int) -> CoreMemory:
        """Return what is left when another program takes so many bytes of flash."""
        return replace(self, flash_taken=used_bytes)

    def check(self, image: Image) -> None:
        """Raise EmulatorError (E813), with the sizes, if a program does not fit."""
        for name, needed, size in (
            ("flash", self.flash_use(image) + self.flash_taken, self.flash_bytes),
            ("SRAM", self.sram_use(image), self.sram_bytes),
        ):
            if needed > size:
                raise EmulatorError(
                    "E813",
                    f"the program needs {needed} bytes of {name}, the {self.owner} has {size}",
                    remedy="Shorten constants and buffers of the program, e.g. with a smaller "
                    "sample or network.",
                )

    def flash_use(self, image: Image) -> int:
        """Bytes of flash: code, constants, and the first values of the variables in SRAM."""
        initial = sum(len(data) for address, data in image.segments if address >= self.sram_base)
        return _end(image, self.flash_base, self.sram_base) - self.flash_base + initial

    def sram_use(self, image: Image) -> int:
        """Bytes of SRAM that variables take; the stack comes on top."""
        return _end(image, self.sram_base, WORD_LIMIT) - self.sram_base


def _end(image: Image, first: int, last: int) -> int:
    """End of what stands between two addresses."""
    return max((a + size for a, size in image.areas if first <= a < last), default=first)
