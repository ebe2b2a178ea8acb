"""Makefiles and the README of a project: how it is compiled for this computer and for its core."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from values import frozen
from writing.templates import render


@frozen
class Cross:
    """How a GNU compiler makes programs for a core: prefix of its commands and its options."""

    file: str
    prefix: str
    options: str
    specs: str


def _arm(core: str) -> Cross:
    options = f"-mcpu={core} -mthumb"
    return Cross("Makefile.ARM", "arm-none-eabi-", options, "--specs=rdimon.specs")


def _riscv(architecture: str, abi: str) -> Cross:
    options = f"-march={architecture} -mabi={abi}"
    return Cross("Makefile.RISCV", "riscv-none-elf-", options, "--specs=semihost.specs")


_CROSS = {
    "cortex-m0plus": _arm("cortex-m0plus"),
    "cortex-m3": _arm("cortex-m3"),
    "cortex-m4": _arm("cortex-m4"),
    "cortex-m7": _arm("cortex-m7"),
    "rv32imc": _riscv("rv32imc", "ilp32"),
    "rv32ec": _riscv("rv32ec", "ilp32e"),
    "rv32emc": _riscv("rv32ec_zmmul", "ilp32e"),
}


def building(
    name: str, core: str, header: Mapping[str, Any], kernels: Mapping[str, str], *, wide: bool
) -> Iterator[tuple[str, str]]:
    """Yield the Makefiles and the README by their names.

    `header` are the values of cnn.h, `kernels` the functions that are used; `wide`: the last output
    has 32 bits.
    """
    cross = _CROSS[core]
    yield "Makefile", render("software/Makefile.j2", name=name)
    yield cross.file, render(
        "software/Makefile.cross.j2", name=name, title=core, file=cross.file, cross=cross.prefix,
        cpu=cross.options, specs=cross.specs,
    )  # fmt: skip
    used = ", ".join(f"`{function}`" for function in kernels) or "none of convolutions"
    values = {**header, "core": core, "makefile": cross.file, "cross": cross.prefix}
    yield "README.md", render("software/README.md.j2", name=name, kernels=used, wide=wide, **values)
