"""Writes a network as a container, and the firmware that runs containers."""

from __future__ import annotations

import os

from ai8xtools.checkpoint import atomic
from ai8xtools.commands.deliver import deliver
from ai8xtools.commands.loader.options import LoaderOptions
from ai8xtools.commands.software.options import ContainerOptions, SoftwareOptions
from ai8xtools.commands.software.planning import Program
from ai8xtools.diagnostics import Diagnostic, DiagnosticError, Place
from ai8xtools.software.container.cipher import NONCE_BYTES, read_key
from ai8xtools.software.container.firmware import Room, firmware
from ai8xtools.software.container.from_graph import container_of, memory_of
from ai8xtools.software.container.pack import Seal
from ai8xtools.software.profile import Profile

_CODE_BYTES = 20480
_STACK_BYTES = 1536
"""Of reader, kernels and console at -O3, the largest of the cores: estimates."""


def create_container(
    program: Program, profile: Profile, options: LoaderOptions, software: SoftwareOptions
) -> int:
    """Write FILE.nnb and the firmware project; return the exit status. Raises DiagnosticError."""
    container = software.container
    assert container is not None
    blob, room = contained(program, container)
    check_room(profile, room)
    sealed = ", data encrypted" if container.key_file is not None else ""
    print(f"Container: {len(blob):,} bytes, {memory_of(blob):,} of memory{sealed}")
    if options.output.check_only:
        print(f"No errors in {options.config_file}")
        return 0
    files = firmware(blob, room, profile.core.name, options.project.name,
                     options.project.command_line)  # fmt: skip
    written = deliver(files, software.folder(options))
    atomic.write_bytes(container.file, blob)
    print(f"Wrote {container.file}, and {written}")
    return 0


def contained(program: Program, container: ContainerOptions) -> tuple[bytes, Room]:
    """Return the container of a network and the room that the firmware has for such files.

    Raises InputError E924 or ToolError E668 as `container_of` does, DiagnosticError E828 if the
    room that was asked for is too small.
    """
    seal = None
    if container.key_file is not None:
        seal = Seal(read_key(container.key_file), os.urandom(NONCE_BYTES))
    sample = program.sample()
    blob = container_of(program.graph, sample.input, sample.outputs[-1], seal, program.units)
    memory = memory_of(blob)
    return blob, Room(
        _room("--slot", container.slot, len(blob)), _room("--arena", container.arena, memory)
    )


def needed(room: Room) -> tuple[int, int]:
    """Return the bytes of flash and RAM that the firmware takes."""
    return room.slot + _CODE_BYTES, room.arena + _STACK_BYTES


def _room(option: str, size: int | None, needed: int) -> int:
    """Return the bytes that an option gives, or those that are needed."""
    if size is not None and size < needed:
        raise DiagnosticError(
            Diagnostic("E828", f"{size:,} bytes, this container needs {needed:,}",
                       Place(option=option), "Give more, or leave the option out.")
        )  # fmt: skip
    return needed if size is None else size


def check_room(profile: Profile, room: Room) -> None:
    """Raise DiagnosticError (E905) if the firmware does not fit."""
    problems = profile.exceeded(*needed(room))
    if problems:
        raise DiagnosticError(problems)
