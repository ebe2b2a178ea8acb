"""Makefile and the settings of the usual development environments.

Template variables carry the public names of the vendor's template language in lower case
(`##__PROJ_NAME__##` is `proj_name`).
Source: docs/generated-project.md, "Templates" and "Files".
"""

from __future__ import annotations

import shlex
from pathlib import PurePath
from typing import Any

from ai8xtools.diagnostics import Place, refused
from ai8xtools.synthesis.emit.options import ProjectOptions
from ai8xtools.writing.templates import render
from device import Chip
from device.chip import FLASH_BASE

_ARM_BUILD = {"Makefile": "make/Makefile.j2", "project.mk": "make/project.mk.j2"}
_RISCV_BUILD = {
    "Makefile": "make/Makefile.combined.j2",
    "Makefile.ARM": "make/Makefile.arm.j2",
    "Makefile.RISCV": "make/Makefile.riscv.j2",
}
_ENVIRONMENTS = {
    ".vscode/settings.json": "vscode/settings.json.j2",
    ".vscode/launch.json": "vscode/launch.json.j2",
    ".vscode/tasks.json": "vscode/tasks.json.j2",
    ".vscode/c_cpp_properties.json": "vscode/c_cpp_properties.json.j2",
    ".vscode/flash.gdb": "vscode/flash.gdb.j2",
    ".vscode/README.md": "vscode/README.md.j2",
    ".project": "eclipse/project.xml.j2",
    ".cproject": "eclipse/cproject.xml.j2",
    ".settings/language.settings.xml": "eclipse/language.settings.xml.j2",
    ".settings/org.eclipse.cdt.core.prefs": "eclipse/core.prefs.j2",
    ".settings/org.eclipse.cdt.codan.core.prefs": "eclipse/codan.prefs.j2",
}
_GCC_PREFIX, _RISCV_GCC_PREFIX = "arm-none-eabi-", "riscv-none-embed-"
_LIBRARIES = "${MAXIM_PATH}/Libraries"
_INCLUDE_PATHS = (
    f"{_LIBRARIES}/CMSIS/Include",
    f"{_LIBRARIES}/CMSIS/Device/Maxim/${{TARGET}}/Include",
    f"{_LIBRARIES}/PeriphDrivers/Include/${{TARGET}}/",
    f"{_LIBRARIES}/Boards/${{TARGET}}/Include",
    f"{_LIBRARIES}/Boards/${{TARGET}}/${{BOARD}}/Include",
)


def build_files(chip: Chip, options: ProjectOptions) -> dict[str, str]:
    """Return the text of each file by its path in the project's folder."""
    values = _values(chip, options)
    templates = (_RISCV_BUILD if options.riscv else _ARM_BUILD) | _ENVIRONMENTS
    files = {path: render(template, **values) for path, template in templates.items()}
    files[f"{options.name}.launch"] = render("eclipse/launch.xml.j2", **values)
    return files


def _values(chip: Chip, options: ProjectOptions) -> dict[str, Any]:
    target = chip.name.lower()
    own = _words("--define", options.define)
    define_arm = [*_words("--define-default-arm", options.define_default_arm), *own]
    define_riscv = [*_words("--define-default-riscv", options.define_default_riscv), *own]
    define_list = define_riscv if options.riscv else define_arm
    prefix = _RISCV_GCC_PREFIX if options.riscv else _GCC_PREFIX
    variables = {"BOARD": options.board_name, "TARGET": chip.name, "GCC_PREFIX": prefix}
    for word in _words("--eclipse-variables", options.eclipse_variables):
        name, _, value = word.partition("=")
        variables[name] = value
    openocd = options.eclipse_openocd_args
    return {
        "proj_name": options.name,
        "elf_file": f"{options.name}-combined.elf" if options.riscv else f"{options.name}.elf",
        "board": options.board_name,
        "target_uc": chip.name,
        "target_lc": target,
        "gcc_prefix": prefix,
        "riscv": options.riscv,
        "flash_end": FLASH_BASE + chip.flash_bytes,
        "arm_sources": [options.main_filename],
        "riscv_sources": _riscv_sources(options),
        "depth": depth(options.folder),
        "define_list": define_list,
        "defines": _flags(define_list),
        "defines_arm": _flags(define_arm),
        "defines_riscv": _flags(define_riscv),
        "variables": sorted(variables.items()),
        "include_paths": (
            *_INCLUDE_PATHS,
            *_words("--eclipse-includes", options.eclipse_includes),
        ),
        "openocd_params": openocd or f"-f interface/cmsis-dap.cfg -f target/{target}.cfg",
    }


def _riscv_sources(options: ProjectOptions) -> list[str]:
    api = [] if options.single_file else [options.api_filename]
    return [options.program_filename, *api, "softmax.c"]


def _flags(definitions: list[str]) -> str:
    """Return compiler options for preprocessor definitions, each with a blank in front."""
    return "".join(f" {shlex.quote('-D' + d)}" for d in definitions)


def depth(folder: str) -> str:
    """Return the way from the project's folder up to the folder in which it was given.

    The SDK is looked for there if the environment does not name it: `sdk/Examples/mnist` gives
    `../../`.
    """
    parts = [part for part in PurePath(folder).parts if part not in (".", "/")]
    return "../" * max(1, len(parts) - 1)


def _words(option: str, text: str) -> list[str]:
    """Split a list of words separated by blanks, with the quotes of a shell."""
    try:
        return shlex.split(text)
    except ValueError as exc:
        raise refused(
            "E076",
            f"{text!r} cannot be split into words: {str(exc).lower()}",
            Place(option=option),
            "Close the quotation.",
        ) from None
