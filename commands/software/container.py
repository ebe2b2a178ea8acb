"""Writes a network as a container, and the firmware that runs containers."""

from __future__ import annotations

import os

from checkpoint import atomic
from commands.loader.messages import print_line
from commands.loader.options import LoaderOptions
from commands.same_files import refuse_overwriting
from commands.software.options import ContainerOptions
from diagnostics import Diagnostic, DiagnosticError, Place
from software.container.cipher import NONCE_BYTES, read_key
from software.container.firmware import Room, firmware
from software.container.from_graph import container_of, memory_of
from software.container.pack import Seal
from software.lower import lower
from software.profile import Profile
from synthesis.network import Network
from synthesis.simulate import simulate
from writing.folder import write_project

_CODE_BYTES = 16384
_STACK_BYTES = 1024
"""Of reader, kernels and console at -O3, the largest of the cores: estimates."""


def create_container(
    network: Network, profile: Profile, options: LoaderOptions, wanted: ContainerOptions
) -> int:
    """Write FILE.nnb and the firmware project; return the exit status. Raises DiagnosticError."""
    refuse_overwriting([("--container", wanted.file)], (wanted.key_file,))
    seal = None
    if wanted.key_file is not None:
        seal = Seal(read_key(wanted.key_file), os.urandom(NONCE_BYTES))
    rounding = options.encode.average_rounding
    found = simulate(network, average_rounding=rounding).outputs
    graph = lower(network, average_rounding=rounding)
    blob = container_of(graph, network.sample, found[network.outputs()[-1].index], seal)
    memory = memory_of(blob)
    room = Room(_room("--slot", wanted.slot, len(blob)), _room("--arena", wanted.arena, memory))
    _check_profile(profile, room)
    print_line(
        f"Container: {len(blob):,} bytes, {memory:,} of memory{', data encrypted' if seal else ''}",
        options.messages,
    )
    if options.output.check_only:
        print_line(f"No errors in {options.config_file}", options.messages)
        return 0
    files = firmware(blob, room, profile.core.name, options.project.name,
                     options.project.command_line)  # fmt: skip
    write_project(files, options.folder, overwrite=options.overwrite)
    atomic.write_bytes(wanted.file, blob)
    print_line(f"Wrote {wanted.file}, and {len(files)} files to {options.folder}", options.messages)
    return 0


def _room(option: str, given: int | None, needed: int) -> int:
    """Return the bytes that an option gives, or those that are needed."""
    if given is not None and given < needed:
        raise DiagnosticError(
            Diagnostic("E926", f"{given:,} bytes, this container needs {needed:,}",
                       Place(option=option), "Give more, or leave the option out.")
        )  # fmt: skip
    return needed if given is None else given


def _check_profile(profile: Profile, room: Room) -> None:
    """Raise DiagnosticError (E914) if the firmware does not fit."""
    for kind, needed, available in (
        ("flash", room.slot + _CODE_BYTES, profile.flash),
        ("RAM", room.arena + _STACK_BYTES, profile.l1),
    ):
        if available is not None and needed > available:
            raise DiagnosticError(
                Diagnostic("E914", f"{profile.name} has {available:,} bytes of {kind}, {needed:,} "
                           "are needed", Place(option="--mcu"),
                           "Choose narrower layers, fewer bits or a larger microcontroller.")
            )  # fmt: skip
