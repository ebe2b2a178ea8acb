"""What several tools check about their arguments, and how they say what is wrong with them."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Container, Iterator, Sequence
from typing import Any, NoReturn

from device import Chip, UnknownDeviceError, chip_named
from diagnostics import Diagnostic, Place, as_json
from diagnostics.errors import InputError

_OPTION = r"(?<!\S)--?[A-Za-z0-9][\w-]*"
_REQUIRED = "the following arguments are required: "


class Parser(argparse.ArgumentParser):
    """A parser that refuses wrong usage in a line instead of listing every option; status 2.

    With `json`, a JSON list on standard output says the same to editors. Options with the action
    `Refused` are all named, together with whatever else is wrong.
    """

    def __init__(self, *, json: bool = False, **settings: Any) -> None:
        super().__init__(**settings)
        self._json = json
        self._refused: list[Diagnostic] = []
        self._typed: set[str] = set()

    def parse_args(  # type: ignore[override]  # nobody here passes a namespace
        self, args: Sequence[str] | None = None
    ) -> argparse.Namespace:
        """Do what argparse does, then refuse."""
        self._refused = []
        self._typed = {text.split("=")[0] for text in (sys.argv[1:] if args is None else args)}
        found = super().parse_args(args)
        if self._refused:
            self._end(self._refused)
        return found

    @property
    def typed(self) -> tuple[str, ...]:
        """Words of the command line that was read, options without their values."""
        return tuple(sorted(self._typed))

    def refuse(self, option: str, reason: str) -> None:
        """Note an option that ends the run once the whole command line is read."""
        self._refused.append(_complain_of_usage(reason, option))

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and end the run."""
        self._end([*self._refused, *_usages(message, self._typed)])

    def _end(self, found: Sequence[Diagnostic]) -> NoReturn:
        if self._json:
            print(as_json(found))
            sys.exit(2)
        lines = dict.fromkeys(_line(d, found) for d in found)
        text = "".join(f"{self.prog}: error: {line}\n" for line in lines)
        self.exit(2, f"{text}  See {self.prog} --help.\n")


class Refused(argparse.Action):
    """An option that is known and refused: its help text says why, or `const` if that is hidden."""

    def __call__(self, parser: argparse.ArgumentParser, *given: Any) -> None:
        """Note it; what is given ends with the option as it was typed."""
        assert isinstance(parser, Parser)
        parser.refuse(given[-1] or self.option_strings[0], str(self.const or self.help))


def _complain_of_usage(message: str, option: str | None) -> Diagnostic:
    """The command line is not understood, or an option on it is refused; see --help."""
    return Diagnostic("E070", message, Place(option=option) if option else None, "See --help.")


def _usages(message: str, typed: Container[str]) -> Iterator[Diagnostic]:
    """Yield what argparse says, for each option of which it says it, by the name that was typed."""
    if message.startswith(_REQUIRED):
        for names in message.removeprefix(_REQUIRED).split(", "):
            yield _complain_of_usage("missing", names.split("/")[-1])
        return
    found = re.match(r"argument (\S+): ", message)
    options = re.findall(_OPTION, (found[1] if found else message).replace("/", " "))
    option = next((o for o in options if o in typed), options[0] if options else None)
    yield _complain_of_usage(message[found.end() :] if found else message, option)


def _line(diagnostic: Diagnostic, found: Sequence[Diagnostic]) -> str:
    """Return a message with all options that it is about."""
    options = dict.fromkeys(
        d.place.option for d in found if d.message == diagnostic.message and d.place is not None
    )
    names = [name for name in options if name and name not in diagnostic.message]
    if not names:
        return diagnostic.message
    return f"argument{'s' * (len(names) > 1)} {', '.join(names)}: {diagnostic.message}"


def chip(text: str) -> Chip:
    """Convert the name of a device for argparse."""
    try:
        return chip_named(text)
    except UnknownDeviceError as exc:
        raise argparse.ArgumentTypeError(str(exc)) from None


def refuse_same_file(source: str, destination: str) -> None:
    """Raise InputError (E704) if writing the destination would replace the source."""
    if os.path.realpath(source) == os.path.realpath(destination):
        raise InputError(
            "E704",
            "input and output are the same file; the trained weights would be lost",
            destination,
            "Name another output.",
        )
