"""Makefiles and the README of a project, for compiling it for this computer and for its core."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ai8xtools.software.emit.interface import PLAIN, Interface
from ai8xtools.values import frozen
from ai8xtools.writing.templates import render


@frozen
class Cross:
    """A GNU compiler for a core: prefix of its commands, and its options."""

    file: str
    prefix: str
    options: str
    specs: str


def _arm(core: str, more: str = "") -> Cross:
    options = f"-mcpu={core} -mthumb{more}"
    return Cross("Makefile.ARM", "arm-none-eabi-", options, "--specs=rdimon.specs")


def _riscv(architecture: str, abi: str) -> Cross:
    options = f"-march={architecture} -mabi={abi}"
    return Cross("Makefile.RISCV", "riscv-none-elf-", options, "--specs=semihost.specs")


_CROSS = {
    "cortex-m0plus": _arm("cortex-m0plus"),
    "cortex-m3": _arm("cortex-m3"),
    "cortex-m4": _arm("cortex-m4"),
    "cortex-m7": _arm("cortex-m7"),
    "cortex-m33": _arm("cortex-m33"),
    "cortex-m55": _arm("cortex-m55"),
    "cortex-m55-helium": _arm("cortex-m55", " -mfloat-abi=hard"),
    "rv32imc": _riscv("rv32imc", "ilp32"),
    "rv32ec": _riscv("rv32ec", "ilp32e"),
    "rv32emc": _riscv("rv32ec_zmmul", "ilp32e"),
}


def cross_of(core: str) -> Cross | None:
    """Return the GNU compiler for a core; None for those without a Makefile of their own."""
    return _CROSS.get(core)


def building(
    name: str,
    core: str,
    header: Mapping[str, Any],
    kernels: Mapping[str, str],
    *,
    wide: bool,
    interface: Interface = PLAIN,
) -> Iterator[tuple[str, str]]:
    """Yield the Makefiles and the README by their names.

    `header` are the values of cnn.h, `kernels` the functions that are used; `wide`: the last output
    has 32 bits.
    """
    cross = cross_of(core)
    named = [] if interface.naming is None else [interface.naming.prefix]
    parts = {
        "sources": [
            *(f"{name}.c" for name in named),
            *(p for p in interface.files if p.endswith(".c")),
        ],
        "headers": [
            *(f"{name}.h" for name in named),
            *interface.headers,
            *(p for p in interface.files if p.endswith(".h")),
        ],
        "library": interface.library,
        "application": interface.naming is not None and interface.naming.application is not None,
    }
    yield "Makefile", render("software/Makefile.j2", name=name, **parts)
    if cross is not None:
        yield cross.file, render(
            "software/Makefile.cross.j2", name=name, title=core, file=cross.file,
            cross=cross.prefix, cpu=cross.options, specs=cross.specs, **parts,
        )  # fmt: skip
    used = ", ".join(f"`{function}`" for function in kernels) or "none of convolutions"
    values = {
        **header,
        **parts,
        "core": core,
        "makefile": cross and cross.file,
        "cross": cross and cross.prefix,
    }
    template = f"{interface.folder}/README.md.j2"
    yield "README.md", render(template, name=name, kernels=used, wide=wide, **values,
                              **interface.values)  # fmt: skip
