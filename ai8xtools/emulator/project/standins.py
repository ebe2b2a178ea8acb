"""Stand-ins for what a program uses of the vendor's SDK or a board and the emulator does not have.

A compiler says which identifiers, types and members it lacks; a linker's symbols, which functions.
Constants become 0 or numbers of their own, functions do nothing and return 0. Each is reported.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import assert_never

from ai8xtools.emulator.project.messages import CompilerMessage, Complaint
from ai8xtools.reading import source_text

_FIRST_CONSTANT = 0x7000
_BLOCK_ADDRESS, _BLOCK_BYTES = 0x400F8000, 256  # peripherals' memory where the chips have nothing
_BIT_FIELD = re.compile(r"MXC_[FSV]_|_(?:MSK|Msk|MASK|POS|Pos)$")
_FAMILY = re.compile(
    r"(?:mxc|led|pb|camera|sccb|tft|ts|touch|touchscreen|lcd|console|board|nvic|arm|systick|scb|f|ff|disk|"
    r"sd|sdhc|lv|ov\d+|hm\w+|max\d+\w*|wm\d+|pixformat|fifo|framesize|image|sys|lp|simo|"
    r"i2s|spi|uart|i2c|adc|dma|rtc|tmr|gpio|flc|icc|trng|wut|wdt|pt|aes|crc|usb|pcif|cameraif|csi2|htmr|"
    r"owm|dvs|sema|utils|aps\d+|e|fr|ssd\d+|ili\d+|st\d+|adxl\d+|lis\d+\w*|bmi\w*|afe|codec|"
    r"qspi|sram|cnnmem|freertos|task|queue|semaphore|bitmap|urw|font|sansserif\w*|liberation\w*)_\w+",
    re.IGNORECASE,
)
_FAMILY_WORDS = re.compile(
    r"(?:LED\d?|PB\d?|ITM|TPI|FPU|MPU|FPB|(?:Debug|Board|Console|SystemCore|Camera|TFT|LCD)\w*|__[A-Z]\w+|v?x[A-Z]\w+|"
    r"\w+_IRQn|\w+_IRQHandler|(?:MXC|ARM)\w+|[A-Z]\w*_Power)"
)
_DECLARED = re.compile(r"\**\s*[A-Za-z_]\w*\s*[;=,\[]")  # what follows on a type
_HEADER = re.compile(
    r"(?:.*[/\\])?(?:tft|adafruit|newhaven|xpt|camera|cameraif|sccb|touch|touchscreen|ts|ov|hm|max|mxc|arm|cmsis|core_|led|pb|"
    r"board|console|i2s|i2c|spi|uart|adc|dma|rtc|tmr|gpio|flc|icc|trng|wut|wdt|pt|ptg|aes|crc|usb|pcif|"
    r"csi2|owm|lp|sema|sdhc|sd|ff|diskio|lv|lvgl|bitmap|aps|ssd|ili|st77|tsc|wm|system_|htmr|lpcmp|simo|"
    r"dvs|example_config|FreeRTOS|task|queue|semphr|nvic|terminal|mem_manage|bt|wsf|ble|mipi|adxl|"
    r"bsp|is25|w25|spixf|spixr|nor|ext_flash|Ext_Flash|smartif|pmic|max20303|stdio_uart|utils|rpmsg|"
    r"liblora|lis2)\w*\.h|.*_(?:regs|reva|revb|me\d+|tft|fonts?)\.h"
)

_DISPLAY = re.compile(r"(?:tft|lcd|touch|display|ili9|st77|ssd\d|adafruit|newhaven)", re.IGNORECASE)


_LOOKED_AT = 1000
"""Characters behind a name in its line."""
_LONGEST_NAME = 200


def is_sdk_name(name: str) -> bool:
    """Whether an identifier looks like one of the vendor's SDK or of a driver for a board."""
    return len(name) <= _LONGEST_NAME and bool(
        _FAMILY.fullmatch(name) or _FAMILY_WORDS.fullmatch(name)
    )


def is_sdk_header(name: str) -> bool:
    """Whether a header looks like one of the vendor's SDK or of a driver for a board."""
    return len(name) <= _LONGEST_NAME and bool(_HEADER.fullmatch(name))


def is_display_header(name: str) -> bool:
    """Whether a header looks like that of a display or touch screen."""
    return bool(_DISPLAY.search(name))


_TIME = "_cnn_time"


def stand_in_functions(names: Iterable[str]) -> str:
    """Return lines that define functions; `sdk/source/stand_ins.c` takes them in.

    The functions report that they were called, and return 0. The time of an inference, which a
    network with names of its own leaves to the program, is a variable.
    """
    return "".join(
        f"volatile unsigned {name};\n" if name.endswith(_TIME) else f"STAND_IN({name})\n"
        for name in sorted(names)
    )


@dataclass
class StandIns:
    """What was made up for one source file."""

    constants: list[str] = field(default_factory=list)
    arrays: list[str] = field(default_factory=list)
    functions: list[str] = field(default_factory=list)  # which C++ needs declared
    numbers: dict[str, None] = field(default_factory=dict)  # types that are taken for numbers
    structures: dict[str, list[str]] = field(default_factory=dict)
    blocks: dict[str, list[str]] = field(default_factory=dict)  # of registers, with members
    added: set[tuple[str, str]] = field(default_factory=set)  # type of the SDK and its new member
    _identifiers: set[str] = field(default_factory=set)

    def learn(self, message: CompilerMessage, may_add: Callable[[str, str], bool]) -> bool:
        """Make up what a message complains of; return whether anything new came of it.

        `may_add(type, member)` adds a member to a type of the SDK, and tells whether it could.
        """
        name = message.name
        match message.kind:
            case Complaint.IDENTIFIER:
                if name in self._identifiers:
                    return False
                self._identifiers.add(name)
                following = _following(message)
                if _DECLARED.match(following) or name.endswith("_t"):
                    self.numbers[name] = None
                elif following.startswith("->"):
                    self.blocks[name] = []
                elif following.startswith("("):
                    self.functions.append(name)
                elif following.startswith("["):
                    self.arrays.append(name)
                else:
                    self.constants.append(name)
                return True
            case Complaint.TYPE if name not in self.numbers and name not in self.structures:
                self._identifiers.add(name)
                self.numbers[name] = None
                return True
            case Complaint.STRUCTURE if name in self.numbers:
                del self.numbers[name]
                self.structures[name] = []
                return True
            case Complaint.MEMBER:
                return self._add_member(message.owner, name, may_add)
            case Complaint.HEADER | Complaint.TYPE | Complaint.STRUCTURE | Complaint.OTHER:
                return False
            case _:
                assert_never(message.kind)

    def _add_member(self, owner: str, name: str, may_add: Callable[[str, str], bool]) -> bool:
        block = owner.removeprefix("emulator_block_")
        members = self.blocks.get(block) if block != owner else self.structures.get(owner)
        if members is not None:
            if name in members:
                return False
            members.append(name)
            return True
        if (owner, name) in self.added or not may_add(owner, name):
            return False
        self.added.add((owner, name))
        return True

    def declarations(self) -> str:
        """Return the C text that the compiler is to read in front of the source."""
        lines = ["/* Stands in for declarations that the emulator does not have. */"]
        for name in self.numbers:
            lines.append(f"typedef int {name};")
        for name, members in self.structures.items():
            fields = "".join(f" {member}," for member in members)[:-1] or " emulator_nothing"
            lines.append(f"typedef struct {name} {{ int{fields}; }} {name};")
        lines += [f"extern const unsigned char {name}[];" for name in self.arrays]
        lines += [f'extern "C" int {name}(...);' for name in self.functions]
        for number, (name, members) in enumerate(self.blocks.items()):
            fields = "".join(f" {member}," for member in members)[:-1] or " emulator_nothing"
            kind = f"emulator_block_{name}"
            lines.append(f"typedef struct {{ volatile unsigned int{fields}; }} {kind};")
            address = _BLOCK_ADDRESS + _BLOCK_BYTES * number
            lines.append(f"static {kind} *const {name} = ({kind} *) {address:#x};")
        for number, name in enumerate(self.constants):
            value = 0 if _BIT_FIELD.search(name) else _FIRST_CONSTANT + number
            lines.append(f"enum {{ {name} = {value:#x} }};")
        return "\n".join(lines) + "\n"

    def names(self) -> list[str]:
        """Return what was made up, for the user."""
        added = (f"{owner}.{member}" for owner, member in sorted(self.added))
        return [
            *self.constants,
            *self.arrays,
            *self.numbers,
            *self.structures,
            *self.blocks,
            *added,
        ]


def _following(message: CompilerMessage) -> str:
    """Return what follows in the source on the name that a message complains of."""
    try:
        state = message.file.stat()
        line = _lines(message.file, state.st_mtime_ns, state.st_size)[message.line - 1]
    except (OSError, IndexError):
        return ""
    begin = message.column - 1
    rest = line[begin : begin + len(message.name) + _LOOKED_AT]
    return rest.removeprefix(message.name).lstrip() if rest.startswith(message.name) else ""


@lru_cache(maxsize=4)
def _lines(file: Path, _time: int, _size: int) -> list[str]:
    """Return the lines of a file, which are read again once it has changed."""
    return source_text(file).splitlines()


def with_member(headers: Path, owner: str, member: str) -> tuple[Path, str] | None:
    """Return the header of a folder that has a structure, and its text with one more number."""
    volatile = "volatile " if owner.endswith("_regs_t") else ""
    pattern = re.compile(rf"\}}(\s*{re.escape(owner)};)")
    tagged = re.compile(rf"(struct {re.escape(owner)} \{{)")
    for header in sorted(headers.glob("*.h")):
        text = source_text(header)
        for expression, replacement in (
            (pattern, rf"    {volatile}unsigned int {member};\n}}\1"),
            (tagged, rf"\1\n    {volatile}unsigned int {member};"),
        ):
            changed = expression.sub(replacement, text, count=1)
            if changed != text:
                return header, changed
    return None
