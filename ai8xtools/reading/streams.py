"""Standard output and error, which show text of unknown origin as escapes only."""

from __future__ import annotations

import codecs
import contextlib
import os
import sys
from collections.abc import Iterable, Iterator
from typing import Any, TextIO, cast

from ai8xtools.reading.text import cleaned


class CleanStream:
    """A text stream that cleans what is written to it; everything else is passed to the stream.

    With `forgiving`, text that cannot be written is dropped: messages about a result are worth
    less than the result. Without, a write that failed makes every later `flush` fail as well:
    argparse drops the error when it prints help.
    """

    def __init__(self, stream: TextIO, *, forgiving: bool = False) -> None:
        self.behind = stream
        self._forgiving = forgiving
        self._lost: OSError | None = None

    def write(self, text: str) -> int:
        """Write a text cleaned, with escapes for what the stream's encoding does not have."""
        shown = cleaned(text)
        if _line and self.behind.isatty():
            erase_line()
        encoding = self.behind.encoding or "utf-8"
        if codecs.lookup(encoding).name != "utf-8":
            shown = shown.encode(encoding, "backslashreplace").decode(encoding)
        with self._forgiven():
            self.behind.write(shown)
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write texts one after another."""
        for text in lines:
            self.write(text)

    def flush(self) -> None:
        """Pass the written text on to the operating system."""
        with self._forgiven():
            if self._lost is not None:
                raise self._lost
            self.behind.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.behind, name)

    @contextlib.contextmanager
    def _forgiven(self) -> Iterator[None]:
        try:
            yield
        except OSError as exc:
            if not self._forgiving:
                self._lost = exc
                raise
            silence(self.behind)


def terminal(stream: TextIO) -> TextIO:
    """Return the stream under one that cleans, for our own progress bars and colours."""
    return stream.behind if isinstance(stream, CleanStream) else stream


_line: list[TextIO] = []
"""The terminal whose last line is for the moment only; empty if there is none."""


def show_line(text: str) -> None:
    """Show a line on the terminal of standard error that the next output replaces."""
    stream = terminal(sys.stderr)
    _line[:] = [stream]
    with contextlib.suppress(OSError, ValueError):
        width = os.get_terminal_size(stream.fileno()).columns
        stream.write(f"\r\033[K{text[: max(width - 1, 20)]}")
        stream.flush()


def erase_line() -> None:
    """Take away the line that `show_line` has shown, if it is still there."""
    while _line:
        stream = _line.pop()
        with contextlib.suppress(OSError, ValueError):
            stream.write("\r\033[K")
            stream.flush()


def silence(stream: TextIO) -> None:
    """Redirect a stream that cannot be written to the null device, so that the program ends
    quietly.
    """
    with contextlib.suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


@contextlib.contextmanager
def clean_streams() -> Iterator[None]:
    """Let standard output and error clean what is written to them while the block runs.

    Whoever started the program may have closed them; then they lead nowhere, and no file that is
    opened later takes their place.
    """
    _open_standard_handles()
    before = sys.stdout, sys.stderr
    sys.stdout = _cleaning(sys.stdout, forgiving=False)
    sys.stderr = _cleaning(sys.stderr, forgiving=True)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def _cleaning(stream: TextIO | None, *, forgiving: bool) -> TextIO:
    if isinstance(stream, CleanStream):
        return cast("TextIO", stream)
    if stream is None:
        stream = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - lives as long as we do
    return cast("TextIO", CleanStream(stream, forgiving=forgiving))


def _open_standard_handles() -> None:
    handle = os.open(os.devnull, os.O_RDWR)
    while handle <= 2:
        handle = os.open(os.devnull, os.O_RDWR)
    os.close(handle)
