"""What gdb learns about a core: registers and memories, as XML.

Source: the manual of gdb, "Target Descriptions" and "Memory Map Format".
"""

from __future__ import annotations

from unicorn import arm_const

from ai8xtools.emulator.cpu.memory_map import CoreMemory

REGISTER_BYTES = 4
REGISTERS = (
    *((f"r{number}", arm_const.UC_ARM_REG_R0 + number) for number in range(13)),
    ("sp", arm_const.UC_ARM_REG_SP),
    ("lr", arm_const.UC_ARM_REG_LR),
    ("pc", arm_const.UC_ARM_REG_PC),
    ("xpsr", arm_const.UC_ARM_REG_XPSR),
)
"""Names and unicorn's numbers, in the order of gdb's packets."""
_TYPES = {"sp": "data_ptr", "pc": "code_ptr"}
_PAGE_BYTES = 0x2000


def target_description() -> str:
    """Return the registers of a Cortex-M."""
    registers = "".join(
        f'    <reg name="{name}" bitsize="{8 * REGISTER_BYTES}"'
        f' type="{_TYPES.get(name, "int")}"/>\n'
        for name, _ in REGISTERS
    )
    return (
        '<?xml version="1.0"?>\n<!DOCTYPE target SYSTEM "gdb-target.dtd">\n'
        '<target version="1.0">\n  <architecture>arm</architecture>\n'
        f'  <feature name="org.gnu.gdb.arm.m-profile">\n{registers}  </feature>\n</target>\n'
    )


def memory_map(memory: CoreMemory) -> str:
    """Return the memories of a core; everything else is read and written like RAM."""
    flash_end = memory.flash_base + memory.flash_bytes
    parts = (
        ("ram", 0, memory.flash_base),
        ("flash", memory.flash_base, memory.flash_bytes),
        ("ram", flash_end, 2**32 - flash_end),
    )
    lines = ""
    for kind, start, length in parts:
        inner = f'<property name="blocksize">{_PAGE_BYTES:#x}</property>' if kind == "flash" else ""
        lines += (
            f'  <memory type="{kind}" start="{start:#x}" length="{length:#x}">{inner}</memory>\n'
        )
    return (
        '<?xml version="1.0"?>\n<!DOCTYPE memory-map PUBLIC "+//IDN gnu.org//DTD GDB Memory Map '
        'V1.0//EN" "http://sourceware.org/gdb/gdb-memory-map.dtd">\n'
        f"<memory-map>\n{lines}</memory-map>\n"
    )
