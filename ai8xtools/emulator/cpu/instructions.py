"""What counting needs of an instruction: its length, its kind and the registers that it moves.

Sources: Armv7-M Architecture Reference Manual, chapters A5.2 and A5.3; The RISC-V Instruction Set
Manual, volume I, chapters 24 ("C" extension) and 34 (opcode map).
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from ai8xtools.emulator.cpu.architecture import RISCV, Architecture, Family
from ai8xtools.values import frozen

_HALF, _WORD = 2, 4
THUMB2 = "Thumb-2"
DSP = "the DSP extension"


class Kind(StrEnum):
    """Kinds of instructions that take different times."""

    PLAIN = "arithmetic"
    LOAD = "load"
    STORE = "store"
    MULTIPLE = "load or store of several registers"
    MULTIPLY = "multiplication"
    DIVIDE = "division"
    BRANCH = "conditional branch"
    JUMP = "jump, call or return"


@frozen
class Instruction:
    """One instruction: bytes, kind, and the registers that it loads or stores if these are several.

    `registers` are the numbers of the integer registers in its fields (RISC-V only); `needs` is the
    part of the instruction set that it belongs to, if not every core has it.
    """

    size: int
    kind: Kind
    transfers: int = 0
    registers: tuple[int, ...] = ()
    needs: str = ""


def instructions(code: bytes, family: Family) -> Iterator[Instruction]:
    """Decode the instructions of a piece of code, from its first byte on."""
    decode = _riscv if family is RISCV.family else _thumb
    position = 0
    while position + _HALF <= len(code):
        low = int.from_bytes(code[position : position + _HALF], "little")
        high = int.from_bytes(code[position + _HALF : position + _WORD], "little")
        instruction = decode(low, high)
        yield instruction
        position += instruction.size


def refusal(core: Architecture, instruction: Instruction) -> str | None:
    """Say what a core cannot execute, though unicorn would; None if it can."""
    if instruction.kind in core.lacks:
        return f"a {instruction.kind}, which it does not have"
    if instruction.needs in core.lacks:
        return f"an instruction of {instruction.needs}, which it does not have"
    wrong = max(instruction.registers, default=0)
    return f"register x{wrong}, which it does not have" if wrong >= core.registers else None


def _ones(mask: int) -> int:
    return bin(mask).count("1")


def _thumb(low: int, high: int) -> Instruction:
    if low >> 11 >= 0b11101:
        return _wide_thumb(low, high)
    kind, transfers, needs = Kind.PLAIN, 0, ""
    match low >> 12:
        case 0b0100 if low >> 11 == 0b01001:
            kind = Kind.LOAD
        case 0b0100 if low >> 8 == 0b01000111:
            kind = Kind.JUMP
        case 0b0100 if low >> 6 == 0b0100001101:
            kind = Kind.MULTIPLY
        case 0b0101:
            kind = Kind.STORE if (low >> 9) % 8 < 3 else Kind.LOAD
        case 0b0110 | 0b0111 | 0b1000 | 0b1001:
            kind = Kind.LOAD if low >> 11 & 1 else Kind.STORE
        case 0b1011 if low & 0x0600 == 0x0400:  # push, pop
            kind, transfers = Kind.MULTIPLE, _ones(low & 0x1FF)
        case 0b1011 if low & 0x0500 == 0x0100:  # cbz, cbnz
            kind, needs = Kind.BRANCH, THUMB2
        case 0b1011 if low & 0x0F00 == 0x0F00 and low & 0xF:  # it
            needs = THUMB2
        case 0b1100:
            kind, transfers = Kind.MULTIPLE, _ones(low & 0xFF)
        case 0b1101:
            kind = Kind.BRANCH
        case 0b1110:
            kind = Kind.JUMP
    return Instruction(_HALF, kind, transfers, needs=needs)


def _wide_thumb(low: int, high: int) -> Instruction:
    kind, transfers = Kind.PLAIN, 0
    if low >> 9 == 0b1110100:
        if not low & 0x40:
            kind, transfers = Kind.MULTIPLE, _ones(high)
        elif low & 0xFFF0 == 0xE8D0 and high & 0xFFE0 == 0xF000:  # table branch
            kind = Kind.JUMP
        else:
            kind, transfers = Kind.MULTIPLE, 2
    elif low >> 11 == 0b11110 and high & 0x8000:
        conditional = not high & 0x5000 and low & 0x380 != 0x380
        barrier = not high & 0x5000 and not conditional
        kind = Kind.PLAIN if barrier else Kind.BRANCH if conditional else Kind.JUMP
    elif low >> 9 == 0b1111100:
        kind = Kind.LOAD if low & 0x10 else Kind.STORE
    elif low & 0xFFD0 == 0xFB90:
        kind = Kind.DIVIDE
    elif low >> 8 == 0b11111011:
        kind = Kind.MULTIPLY
    return Instruction(_WORD, kind, transfers, needs=_extension(low, high))


def _extension(low: int, high: int) -> str:
    """Return the part of the instruction set that an Arm instruction of 32 bits belongs to."""
    call = low >> 11 == 0b11110 and high & 0xD000 == 0xD000
    system = low & 0xFFA0 == 0xF3A0 or low & 0xFFE0 == 0xF380  # barriers, msr, mrs
    if call or (system and high & 0xD000 == 0x8000):
        return ""
    if low >> 8 == 0xFA:
        plain_shift = low & 0x80 == 0 and high & 0xF0F0 == 0xF000
        plain_extension = low & 0xFFAF == 0xFA0F and high & 0x0080
        bits = low & 0xFFF0 in (0xFA90, 0xFAB0) and high & 0x80
        return THUMB2 if plain_shift or plain_extension or bits else DSP
    if low >> 4 == 0xEAC:  # pkh
        return DSP
    if low >> 8 == 0xFB:
        plain = low & 0xF0 in (0x00, 0x80, 0x90, 0xA0, 0xB0)
        long = low & 0xF0 in (0xC0, 0xE0) and not high & 0x00F0
        return THUMB2 if plain or long else DSP
    saturates_halves = low & 0xFFF0 in (0xF320, 0xF3A0) and not high & 0xF0C0
    return DSP if saturates_halves else THUMB2


_RISCV_KINDS = {
    0x03: Kind.LOAD,
    0x23: Kind.STORE,
    0x63: Kind.BRANCH,
    0x67: Kind.JUMP,
    0x6F: Kind.JUMP,
}
_HAS_RD = frozenset({0x03, 0x13, 0x17, 0x33, 0x37, 0x67, 0x6F, 0x73})
_HAS_RS1 = frozenset({0x03, 0x13, 0x23, 0x33, 0x63, 0x67})
_HAS_RS2 = frozenset({0x23, 0x33, 0x63})


def _riscv(low: int, high: int) -> Instruction:
    if low & 3 != 3:
        return _compressed(low)
    word = low | high << 16
    opcode = word & 0x7F
    kind = _RISCV_KINDS.get(opcode, Kind.PLAIN)
    if opcode == 0x33 and word >> 25 == 1:
        kind = Kind.MULTIPLY if word >> 12 & 7 < 4 else Kind.DIVIDE
    fields = ((_HAS_RD, 7), (_HAS_RS1, 15), (_HAS_RS2, 20))
    registers = tuple(word >> bit & 31 for having, bit in fields if opcode in having)
    return Instruction(_WORD, kind, 0, registers)


def _compressed(low: int) -> Instruction:
    rd, rs2 = low >> 7 & 31, low >> 2 & 31
    match (low & 3, low >> 13):
        case (0, 0b010):
            return Instruction(_HALF, Kind.LOAD)
        case (0, 0b110):
            return Instruction(_HALF, Kind.STORE)
        case (1, 0b001 | 0b101):
            return Instruction(_HALF, Kind.JUMP)
        case (1, 0b110 | 0b111):
            return Instruction(_HALF, Kind.BRANCH)
        case (1, 0b000 | 0b010 | 0b011) | (2, 0b000):
            return Instruction(_HALF, Kind.PLAIN, 0, (rd,))
        case (2, 0b010):
            return Instruction(_HALF, Kind.LOAD, 0, (rd,))
        case (2, 0b110):
            return Instruction(_HALF, Kind.STORE, 0, (rs2,))
        case (2, 0b100):
            return Instruction(_HALF, Kind.PLAIN if rs2 else Kind.JUMP, 0, (rd, rs2))
    return Instruction(_HALF, Kind.PLAIN)
