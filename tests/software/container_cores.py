"""Known answers of containers everywhere: Python, C on this computer, C on emulated cores."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ai8xtools.emulator.cpu.architecture import ARCHITECTURES
from ai8xtools.emulator.plain import PlainProgram, compile_plain, run_plain
from ai8xtools.software.container.firmware import Room, firmware
from tests.software.container_answers import container_cases, variants
from tests.software.nnb_in_c import build_driver, statuses

CORES = ("cortex-m0plus", "cortex-m4")
_SLOT = Room(4 << 10, 4 << 10)


def cases_everywhere(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield each file and what is wrong with it, in Python and in C.

    One image for each core runs all files.
    """
    with tempfile.TemporaryDirectory() as name:
        driver = build_driver(Path(name))
        cases = {file.stem: json.loads(file.read_text()) for file in folder.glob("*.json")}
        key = next((case["key"] for case in cases.values() if case["key"]), "00" * 32)
        images = {core: _image(core, key, Path(name) / core) for core in CORES}
        for stem, wrong in container_cases(folder):
            blob = (folder / f"{stem}.nnb").read_bytes()
            wrong += _wrong_in_c(driver, cases[stem], blob, key, Path(name))
            for core, image in images.items():
                result = run_plain(image, contents={"nnb_slot": blob})
                wrong += [] if result.passed else [f"{core}: {result.text[-200:]}"]
            yield stem, wrong


def _wrong_in_c(
    driver: Path, case: dict[str, Any], blob: bytes, key: str, folder: Path
) -> Iterator[str]:
    if statuses(driver, [blob], folder, key) != ["ok ok"]:
        yield "C: refused, or other outputs"
    changed = [*variants(case, blob)]
    told = statuses(driver, [data for _, data, _ in changed], folder, key)
    for (name, _, expected), line in zip(changed, told, strict=True):
        if line.split()[0] != (expected or "ok"):
            yield f"C, {name}: {line}, expected {expected}"


def _image(core: str, key: str, folder: Path) -> PlainProgram:
    """Compile the firmware; its own container is replaced in every run. The files have no tag."""
    folder.mkdir()
    for name, text in firmware(b"\0", _SLOT, core, "known answers", "").items():
        (folder / name).write_text(text)
    numbers = ",".join(map(str, bytes.fromhex(key)))
    flags = f"-DNNB_FIRMWARE_KEY={{{numbers}}}", "-DNNB_ACCEPT_UNTAGGED"
    return compile_plain(folder, ARCHITECTURES[core], "-O2", flags)
