"""The network of a project without the program around it, and what it is compared with."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from ai8xtools.commands.emulate.arguments import EmulateOptions
from ai8xtools.emulator import NetworkAlone

Network = TypeVar("Network", bound=NetworkAlone)


def network_alone(project: Path, options: EmulateOptions) -> NetworkAlone:
    """Compile and load the network of a project; print the notes on it."""
    return loaded(NetworkAlone, project, options)


def loaded(kind: type[Network], project: Path, options: EmulateOptions) -> Network:
    """Compile and load the networks of a project, of a class for one or several; print notes."""
    network = kind(project, options.chip, options.apb_base, options.tree, options.time_limit_s)
    for note in network.notes:
        print(f"note: {note}")
    return network
