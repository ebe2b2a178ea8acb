"""What --device MCU and CMSIS-NN ask for besides the options that all targets have."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ai8xtools.commands.loader.pages import destination
from ai8xtools.values import frozen

if TYPE_CHECKING:
    from ai8xtools.commands.deliver import Folder
    from ai8xtools.commands.loader.options import LoaderOptions
    from ai8xtools.diagnostics import Diagnostic
    from ai8xtools.software.profile import Profile
    from device import Chip


@frozen
class ContainerOptions:
    """A network as one binary file, and firmware that runs such files.

    `file` is written; with `key_file` its data are encrypted. `slot` and `arena` are the bytes that
    the firmware has for containers and what they compute with (None: what this one needs).
    """

    file: str
    key_file: str | None = None
    slot: int | None = None
    arena: int | None = None


@frozen
class SoftwareOptions:
    """A network for a microcontroller and how its program is planned.

    `source` is the network, with what all targets have. `mcu` is a profile's name or file (None:
    any core, with `calls` any Cortex-M4), `l1` and `flash` take the place of its sizes. `kernels`
    are the sets that may be
    used (None: those of the core). `plan_report` prints the plan; limits of the chip `like` hold,
    if there is one; `notices` are about options that change nothing here. With `calls` Arm's
    functions are called, those of a copy of CMSIS 5 in the folder `library` or, without one, ours.
    `scheme` is the word of --scheme; `l2` and `l3`, which can be written, take the place of the
    profile's; with `dma` copies go on while the core computes. With `container` the network becomes
    a binary file. With `interleaving` fully connected layers of calls take the weights of `_opt`.
    `planning` are options that checkpoints of 16 or 8 bits do not have, as they were typed,
    `describing` those of descriptions.
    `qformat`: the checkpoint holds the network, which is no description. `stream`: the window
    slides by so many rows (None: it does not); `stateful`: states of recurrent layers go on.
    """

    source: LoaderOptions
    mcu: str | None = None
    kernels: frozenset[str] | None = None
    l1: int | None = None
    flash: int | None = None
    plan_report: bool = False
    like: Chip | None = None
    notices: tuple[Diagnostic, ...] = ()
    calls: bool = False
    library: str | None = None
    scheme: str = "auto"
    l2: int | None = None
    l3: int | None = None
    dma: bool = False
    container: ContainerOptions | None = None
    describing: tuple[str, ...] = ()
    planning: tuple[str, ...] = ()
    qformat: bool = False
    interleaving: bool = False
    stream: int | None = None
    stateful: bool = False

    def folder(self, options: LoaderOptions) -> Folder:
        """Return where the project goes; `options` are those of the source, as far as known."""
        folder, container = destination(options), self.container
        key_file, file = (None, None) if container is None else (container.key_file, container.file)
        return replace(
            folder,
            inputs=(*folder.inputs, self.mcu, key_file),
            beside=(*folder.beside, ("--container", file)),
        )

    def profile(self) -> Profile:
        """Return the profile that is asked for, with the sizes that options gave.

        Raises DiagnosticError as `read_profile` and `Profile.resized` do.
        """
        from ai8xtools.software.profile import ANY, PORTABLE, read_profile

        profile = ANY if self.calls else PORTABLE
        if self.mcu is not None:
            profile = read_profile(self.mcu)
        if self.dma and not profile.dma:
            profile = replace(profile, dma=3)
        named = {"l1": self.l1, "l2": self.l2, "l3": self.l3, "flash": self.flash}
        return profile.resized({key: size for key, size in named.items() if size is not None})
