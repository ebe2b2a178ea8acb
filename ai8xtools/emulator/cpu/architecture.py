"""Cores by name: how programs for them are compiled and run on unicorn.

The number of an ELF file does not identify a core: all Cortex-M share one, all RISC-V another.
Source: docs/emulator.md, "The core and its peripherals".
"""

from __future__ import annotations

from unicorn import (
    UC_ARCH_ARM,
    UC_ARCH_RISCV,
    UC_MODE_MCLASS,
    UC_MODE_RISCV32,
    UC_MODE_THUMB,
    arm_const,
    riscv_const,
)

from ai8xtools.values import frozen


@frozen
class Family:
    """What cores with one instruction set have in common.

    `elf_machine` is the number of ELF files for them, `compilers` are names of GNU cross compilers.
    `code_bit` is set in addresses at which execution begins (Thumb). Registers are unicorn's
    numbers; functions leave `kept` as they find them, and `state` are all beside the position.
    `sleep_instructions` are the machine codes of
    instructions that wait for an interrupt, `return_instruction` that of the one that leaves a
    function.
    """

    elf_machine: int
    compilers: tuple[str, ...]
    unicorn_architecture: int
    unicorn_mode: int
    code_bit: int
    arguments: tuple[int, ...]
    position: int
    stack: int
    link: int
    kept: tuple[int, ...]
    state: tuple[int, ...]
    sleep_instructions: tuple[bytes, ...]
    return_instruction: bytes


@frozen
class Architecture:
    """One kind of core. `title` is what messages call it.

    `gcc_options` are the machine options of GNU compilers, `zig_options` those of the compiler in
    ziglang, `unicorn_model` is unicorn's number of the core. `registers` are its integer registers
    and `lacks` the kinds of instructions and extensions that it does not have; unicorn executes
    them all the same.
    """

    title: str
    family: Family
    gcc_options: tuple[str, ...]
    zig_options: tuple[str, ...]
    unicorn_model: int
    registers: int = 32
    lacks: frozenset[str] = frozenset()

    @property
    def arguments(self) -> tuple[int, ...]:
        """The registers with arguments of functions, in order; others are on the stack."""
        return self.family.arguments[: 6 if self.registers == 16 else 8]


_ARM = Family(
    elf_machine=40,
    compilers=("arm-none-eabi-gcc",),
    unicorn_architecture=UC_ARCH_ARM,
    unicorn_mode=UC_MODE_THUMB | UC_MODE_MCLASS,
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
    kept=tuple(getattr(arm_const, f"UC_ARM_REG_R{number}") for number in range(4, 12)),
    state=(
        *(getattr(arm_const, f"UC_ARM_REG_R{number}") for number in range(13)),
        arm_const.UC_ARM_REG_SP,
        arm_const.UC_ARM_REG_LR,
        arm_const.UC_ARM_REG_CPSR,
    ),
    sleep_instructions=(b"\x30\xbf", b"\x20\xbf"),  # wfi, wfe
    return_instruction=b"\x70\x47",  # bx lr
)
_RISCV = Family(
    elf_machine=243,
    compilers=("riscv-none-elf-gcc", "riscv-none-embed-gcc", "riscv32-unknown-elf-gcc"),
    unicorn_architecture=UC_ARCH_RISCV,
    unicorn_mode=UC_MODE_RISCV32,
    code_bit=0,
    arguments=(
        riscv_const.UC_RISCV_REG_A0,
        riscv_const.UC_RISCV_REG_A1,
        riscv_const.UC_RISCV_REG_A2,
        riscv_const.UC_RISCV_REG_A3,
        riscv_const.UC_RISCV_REG_A4,
        riscv_const.UC_RISCV_REG_A5,
        riscv_const.UC_RISCV_REG_A6,
        riscv_const.UC_RISCV_REG_A7,
    ),
    position=riscv_const.UC_RISCV_REG_PC,
    stack=riscv_const.UC_RISCV_REG_SP,
    link=riscv_const.UC_RISCV_REG_RA,
    kept=tuple(getattr(riscv_const, f"UC_RISCV_REG_S{number}") for number in range(12)),
    state=tuple(getattr(riscv_const, f"UC_RISCV_REG_X{number}") for number in range(1, 32)),
    sleep_instructions=(b"\x73\x00\x50\x10",),  # wfi
    return_instruction=b"\x82\x80",  # ret
)


def _cortex(
    title: str, name: str, zig: str, model: int, lacks: tuple[str, ...] = ()
) -> Architecture:
    return Architecture(
        title=title,
        family=_ARM,
        gcc_options=(f"-mcpu={name}", "-mthumb", "-mfloat-abi=soft"),
        zig_options=("-target", "thumb-freestanding-eabi", f"-mcpu={zig}"),
        unicorn_model=model,
        lacks=frozenset(lacks),
    )


def _riscv(
    title: str, march: str, abi: str, zig: str, registers: int = 32, lacks: tuple[str, ...] = ()
) -> Architecture:
    return Architecture(
        title=title,
        family=_RISCV,
        gcc_options=(f"-march={march}", f"-mabi={abi}"),
        zig_options=("-target", "riscv32-freestanding-none", f"-mcpu=generic_rv32{zig}"),
        unicorn_model=riscv_const.UC_CPU_RISCV32_ANY,
        registers=registers,
        lacks=frozenset(lacks),
    )


CORTEX_M4 = _cortex(
    "Cortex-M4", "cortex-m4", "cortex_m4+soft_float", arm_const.UC_CPU_ARM_CORTEX_M4
)
RISCV = _riscv("RISC-V", "rv32imc_zicsr", "ilp32", "+m+c+zicsr")

ARCHITECTURES = {
    # unicorn has no Cortex-M0+, which executes the same instructions as its Cortex-M0
    "cortex-m0plus": _cortex(
        "Cortex-M0+",
        "cortex-m0plus",
        "cortex_m0plus",
        arm_const.UC_CPU_ARM_CORTEX_M0,
        ("Thumb-2", "the DSP extension", "division"),
    ),
    "cortex-m3": _cortex(
        "Cortex-M3",
        "cortex-m3",
        "cortex_m3",
        arm_const.UC_CPU_ARM_CORTEX_M3,
        ("the DSP extension",),
    ),
    "cortex-m4": CORTEX_M4,
    "cortex-m7": _cortex(
        "Cortex-M7", "cortex-m7", "cortex_m7+soft_float", arm_const.UC_CPU_ARM_CORTEX_M7
    ),
    "cortex-m33": _cortex(
        "Cortex-M33", "cortex-m33", "cortex_m33+dsp+soft_float", arm_const.UC_CPU_ARM_CORTEX_M33
    ),
    # unicorn has no Cortex-M55, whose programs are compiled for what both execute
    "cortex-m55": _cortex(
        "Cortex-M55", "cortex-m33", "cortex_m33+dsp+soft_float", arm_const.UC_CPU_ARM_CORTEX_M33
    ),
    "rv32imc": RISCV,
    "rv32ec": _riscv(
        "RV32EC", "rv32ec_zicsr", "ilp32e", "+e+c+zicsr", 16, ("multiplication", "division")
    ),
    "rv32emc": _riscv(
        "RV32EmC", "rv32ec_zmmul_zicsr", "ilp32e", "+e+c+zmmul+zicsr", 16, ("division",)
    ),
}
"""By the name that options and profiles give a core."""
