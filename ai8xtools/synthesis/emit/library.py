"""What the C of a library knows of the words of an input.

Source: docs/library.md.
"""

from __future__ import annotations

from ai8xtools.synthesis.emit.options import ProjectOptions
from ai8xtools.synthesis.program import Program
from ai8xtools.values import frozen
from ai8xtools.writing.application import Application
from ai8xtools.writing.library import Library


@frozen
class InputPlace:
    """Words from an address on, or into a FIFO.

    Of interleaved data `channels` are those in the bytes of each word of a pixel, -1 for none. Else
    the bytes are `count` pixels of one channel from `first` on; there is none before 0.
    """

    address: int
    words: int
    channels: tuple[tuple[int, ...], ...]
    first: int = 0
    count: int = 0


@frozen
class InputWords:
    """All words of an input; interleaved pixels take `period` words at each place."""

    interleaved: bool
    period: int
    places: tuple[InputPlace, ...]


@frozen
class Export:
    """A project as a library, with a program around it if that is asked for."""

    library: Library
    words: InputWords
    application: Application | None = None

    def files(
        self, files: dict[str, str], program: Program, options: ProjectOptions
    ) -> dict[str, str]:
        """Return the files of the project as those of the library."""
        values = {"words": self.words, "program": program, "options": options}
        own = self.library.files("c", files, **values)
        return own if self.application is None else self.application.applied(own, self.library)
