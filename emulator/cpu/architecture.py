"""The two cores of the chips as data: how programs for them are compiled and run on unicorn.

Source: spec/sdk-stubs.md sections 2 (interrupt numbers) and 3 (flags of the SDK).
"""

from __future__ import annotations

from dataclasses import dataclass

from unicorn import (
    UC_ARCH_ARM,
    UC_ARCH_RISCV,
    UC_MODE_MCLASS,
    UC_MODE_RISCV32,
    UC_MODE_THUMB,
    arm_const,
    riscv_const,
)


@dataclass(frozen=True, slots=True)
class Architecture:
    """One kind of core.

    `elf_machine` is the number of ELF files for it. `compilers` are names of GNU cross compilers,
    `gcc_options` their machine options, `zig_options` those of the compiler in ziglang.
    `code_bit` is set in addresses at which execution begins (Thumb). Registers are unicorn's
    numbers. `sleep_instructions` are the machine codes of instructions that wait for an interrupt;
    `cnn_interrupt` is the number under which the accelerator interrupts this core.
    """

    name: str
    elf_machine: int
    compilers: tuple[str, ...]
    gcc_options: tuple[str, ...]
    zig_options: tuple[str, ...]
    unicorn_architecture: int
    unicorn_mode: int
    unicorn_model: int
    code_bit: int
    arguments: tuple[int, ...]
    position: int
    stack: int
    link: int
    sleep_instructions: tuple[bytes, ...]
    cnn_interrupt: int


CORTEX_M4 = Architecture(
    name="Cortex-M4",
    elf_machine=40,
    compilers=("arm-none-eabi-gcc",),
    gcc_options=("-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=soft"),
    zig_options=("-target", "thumb-freestanding-eabi", "-mcpu=cortex_m4+soft_float"),
    unicorn_architecture=UC_ARCH_ARM,
    unicorn_mode=UC_MODE_THUMB | UC_MODE_MCLASS,
    unicorn_model=arm_const.UC_CPU_ARM_CORTEX_M4,
    code_bit=1,
    arguments=(
        arm_const.UC_ARM_REG_R0,
        arm_const.UC_ARM_REG_R1,
        arm_const.UC_ARM_REG_R2,
        arm_const.UC_ARM_REG_R3,
    ),
    position=arm_const.UC_ARM_REG_PC,
    stack=arm_const.UC_ARM_REG_SP,
    link=arm_const.UC_ARM_REG_LR,
    sleep_instructions=(b"\x30\xbf", b"\x20\xbf"),  # wfi, wfe
    cnn_interrupt=101,
)

RISCV = Architecture(
    name="RISC-V",
    elf_machine=243,
    compilers=("riscv-none-elf-gcc", "riscv-none-embed-gcc", "riscv32-unknown-elf-gcc"),
    gcc_options=("-march=rv32imc_zicsr", "-mabi=ilp32"),
    zig_options=("-target", "riscv32-freestanding-none", "-mcpu=generic_rv32+m+c+zicsr"),
    unicorn_architecture=UC_ARCH_RISCV,
    unicorn_mode=UC_MODE_RISCV32,
    unicorn_model=riscv_const.UC_CPU_RISCV32_ANY,
    code_bit=0,
    arguments=(
        riscv_const.UC_RISCV_REG_A0,
        riscv_const.UC_RISCV_REG_A1,
        riscv_const.UC_RISCV_REG_A2,
        riscv_const.UC_RISCV_REG_A3,
    ),
    position=riscv_const.UC_RISCV_REG_PC,
    stack=riscv_const.UC_RISCV_REG_SP,
    link=riscv_const.UC_RISCV_REG_RA,
    sleep_instructions=(b"\x73\x00\x50\x10",),  # wfi
    cnn_interrupt=57,
)

ARCHITECTURES = {core.elf_machine: core for core in (CORTEX_M4, RISCV)}
"""By the number in ELF files."""
