"""A firmware project that runs containers: reader, kernels, a slot for the file, and a test."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ai8xtools.software.emit.makefile import cross_of
from ai8xtools.values import frozen
from ai8xtools.writing.files import distinct
from ai8xtools.writing.templates import render

RUNTIME = Path(__file__).resolve().parent.parent / "runtime"
_PER_LINE = 16
_FORMAT = 1


@frozen
class Room:
    """Bytes of an image for containers, for their working memory and for their outputs."""

    slot: int
    arena: int


def firmware(blob: bytes, room: Room, core: str, name: str, command_line: str) -> dict[str, str]:
    """Return the files of a project by path; `blob` is the container that it is delivered with."""
    return distinct([*_files(blob, room, core, name, command_line)])


def _files(
    blob: bytes, room: Room, core: str, name: str, command_line: str
) -> Iterator[tuple[str, str]]:
    sources = [*(RUNTIME / "nnb").glob("*.[ch]"), *(RUNTIME / "nnb_firmware").glob("*.c")]
    for source in sorted(sources):
        yield source.name, source.read_text(encoding="utf-8")
    cross = cross_of(core)
    values: dict[str, Any] = {
        "name": name,
        "title": f"{name}: {command_line}",
        "slot_bytes": room.slot,
        "arena_bytes": max(room.arena, 4),
        "core": core,
        "makefile": cross and cross.file,
    }
    yield "nnb_slot.h", render("software/container/nnb_slot.h.j2", **values)
    yield "nnb_slot.c", render("software/container/nnb_slot.c.j2", lines=_lines(blob), **values)
    yield "Makefile", render("software/container/Makefile.j2", **values)
    if cross is not None:
        yield cross.file, render(
            "software/container/Makefile.cross.j2", name=name, title=core, file=cross.file,
            cross=cross.prefix, cpu=cross.options, specs=cross.specs,
        )  # fmt: skip
    yield "README.md", render("software/container/README.md.j2", **values)
    plan = {"format": _FORMAT, "name": name, "core": core, "arena_bytes": room.arena,
            "slot_bytes": room.slot}  # fmt: skip
    yield "plan.json", json.dumps(plan, indent=1) + "\n"


def _lines(blob: bytes) -> str:
    rows = (blob[at : at + _PER_LINE] for at in range(0, len(blob), _PER_LINE))
    return ",\n".join("    " + ", ".join(map(str, row)) for row in rows)
