"""Argument checks and error messages that several tools share."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from ai8xtools import __version__
from ai8xtools.commands.outcome import FORMS, Form, is_foreign
from ai8xtools.diagnostics import (
    DEBUG_REPORT,
    Diagnostic,
    Edit,
    Place,
    current,
    print_diagnostics,
    takes_json,
    value_of,
)
from ai8xtools.reading.text import has_foreign_digits, is_plain, line
from ai8xtools.values import frozen
from device import Chip, UnknownDeviceError, chip_named

_OPTION = r"(?<!\S)--?[A-Za-z0-9][\w-]*"
_LONG_WORD = re.compile(r"(\S{100})\S{100,}")
_UNKNOWN = "unrecognized arguments: "
_REQUIRED = "the following arguments are required: "
Condition = Callable[[argparse.Namespace], bool]
Value = TypeVar("Value")


def add_proof_option(add: Callable[..., Any]) -> None:
    """Add that an imported network is not compared with what it was made of."""
    add("--no-prove-import", dest="prove_import", action="store_false",
        help="do not compare an imported network with what it was made of")  # fmt: skip


@frozen
class _Need:
    """An option that command lines must have, see `Parser.need`."""

    option: str
    unless: tuple[str, ...]
    instead: str
    besides: Condition | None

    def missing(self) -> Diagnostic:
        """Return the diagnostic for a command line without it."""
        also = f", as is {self.instead}" if self.instead else ""
        return _complain_of_usage(f"missing{also}", self.option)


class Parser(argparse.ArgumentParser):
    """A parser that refuses wrong usage in a line instead of listing every option; status 2.

    With `--diagnostics json` a JSON list on standard output says the same to programs. Options with
    the action `Refused` are all named, together with whatever else is wrong. An option that only
    another target of the tool has is refused with the name of that target.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
        self.add_argument(
            "--diagnostics",
            action=_Noted,
            choices=("text", "json", "sarif"),
            dest=argparse.SUPPRESS,
            default=argparse.SUPPRESS,
            help="format of the messages; with json, standard output is the list of messages, with "
            "sarif a log in this format, and everything else goes to standard error",
        )
        for form in FORMS:
            self.add_argument(
                form.option,
                action=_Written,
                const=form,
                metavar="FILE",
                dest=argparse.SUPPRESS,
                default=argparse.SUPPRESS,
                help=form.what,
            )
        self.add_argument(
            DEBUG_REPORT,
            action=_Noted,
            metavar="FILE",
            dest=argparse.SUPPRESS,
            default=argparse.SUPPRESS,
            help="write a report on a failure for the developers: versions, names of options, "
            "code of the message, source locations; no data",
        )
        self._refused: list[Diagnostic] = []
        self._typed: set[str] = set()
        self._used: list[argparse.Action] = []
        self._faulty: tuple[str, str] | None = None
        self._needs: list[_Need] = []

    def need(
        self, option: str, *unless: str, instead: str = "", besides: Condition | None = None
    ) -> None:
        """Refuse command lines without an option, unless an alternative is given.

        `instead` says what else takes its place; `besides` is another reason to do without it.
        """
        self._needs.append(_Need(option, unless, instead, besides))

    def group(self, title: str) -> argparse._ArgumentGroup:
        """Return the group of options with a title, a new one if there is none."""
        groups = (group for group in self._action_groups if group.title == title)
        return next(groups, None) or self.add_argument_group(title)

    def used(self, *titles: str) -> list[str]:
        """Return the options of groups that the command line had, as they were typed."""
        own = [action for title in titles for action in self.group(title)._group_actions]
        return list(dict.fromkeys(self._name(action) for action in self._used if action in own))

    def knows(self, option: str) -> bool:
        """Whether there is an option that begins like this."""
        return any(name.startswith(option) for name in self._option_string_actions)

    def parse_args(  # type: ignore[override]  # nobody here passes a namespace
        self, args: Sequence[str] | None = None
    ) -> argparse.Namespace:
        """Do what argparse does, then refuse."""
        args = sys.argv[1:] if args is None else args
        self._refused = []
        self._used = []
        # `-8` is an option of ours, and `--lr -1` has a value all the same
        self._has_negative_number_optionals.clear()
        self._words = args
        self._typed = {text.split("=")[0] for text in args} - {""}
        for word in args:
            self._check(word)
        if "=" in args:
            self.error("'=' stands apart from its option: write OPTION VALUE or OPTION=VALUE")
        namespace, unknown = self.parse_known_args(args)
        self._refused += [n.missing() for n in self._needs if not self._relieved(n, namespace)]
        if unknown:
            self._refuse_unknown(unknown)
        if self._refused:
            self._end(self._refused)
        if getattr(namespace, "debug", False):
            os.environ["AI8X_TRACEBACK"] = "1"
        return namespace

    def _relieved(self, need: _Need, namespace: argparse.Namespace) -> bool:
        """Whether the required option or an alternative is given."""
        actions = self._option_string_actions
        if any(actions[name] in self._used for name in (need.option, *need.unless)):
            return True
        return need.besides is not None and need.besides(namespace)

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        """Note that the command line has the option, and the values that it does not take."""
        self._used.append(action)
        self._faulty = (
            (self._name(action), " ".join(arg_strings)) if action.option_strings else None
        )
        values = super()._get_values(action, arg_strings)
        self._faulty = None
        return values

    def _name(self, action: argparse.Action) -> str:
        """Return the name of an option, as it was typed if that was in full."""
        names = action.option_strings
        return next((name for name in names if name in self._typed), names[-1])

    def _refuse_unknown(self, words: Sequence[str]) -> NoReturn:
        """Refuse unknown options; name the targets of those that other targets have."""
        from ai8xtools.commands.targets import owners

        foreign, nobodys = [], []
        for word in words:
            option = word.partition("=")[0]
            devices = owners(self.prog, option) if option.startswith("--") else ""
            if devices:
                foreign.append(_complain_of_usage(f"is for --device {devices}", option))
            elif option.startswith("-") or not foreign:
                nobodys.append(word)
        self._refused += foreign
        if nobodys:
            self.error(_UNKNOWN + " ".join(nobodys))
        self._end(self._refused)

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        """Convert a text; where argparse would name a function of ours, say what is expected."""
        try:
            value = super()._get_value(action, arg_string)
        except argparse.ArgumentError as exc:
            if action.type is chip:
                raise argparse.ArgumentError(
                    action, f"{exc.message}{self._others(arg_string)}"
                ) from None
            meant = _meaning(action.type)
            if not exc.message.startswith("invalid ") or meant is None:
                raise
            raise argparse.ArgumentError(action, f"{arg_string!r} is not {meant}") from None
        if has_foreign_digits(arg_string) and _has_number(value):
            raise argparse.ArgumentError(action, f"{arg_string!r} has digits other than 0 to 9")
        return value

    def _check(self, word: str) -> None:
        """Refuse text that would forge lines or steer a terminal wherever it is shown."""
        undecodable = word.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        if not is_plain(undecodable.replace("\ufffd", "?")):
            self.error(f"control characters are not possible in an option: {line(word, 80)}")

    def refuse(self, option: str, reason: str) -> None:
        """Note an option that ends the run once the whole command line is read."""
        self._refused.append(_complain_of_usage(reason, option))

    def error(self, message: str) -> NoReturn:
        """Report what is wrong and end the run; a very long word is cut."""
        message = _LONG_WORD.sub(r"\1...", message)
        message, edits = self._with_closest(message)
        diagnostics = _usages(message, self._typed)
        diagnostics = (replace(d, edit=edits.get(_option_of(d))) for d in diagnostics)
        self._end([*self._refused, *diagnostics])

    def _with_closest(self, message: str) -> tuple[str, dict[str, Edit]]:
        """Add what may have been meant by options, or their values, that do not exist; also return
        the edits by option.

        A value may be one of those that the message names, or the option is left out.
        """
        from difflib import get_close_matches  # only for messages

        if not message.startswith(_UNKNOWN):
            if self._faulty is None:
                return message, {}
            option, value = self._faulty
            words = [word for word in re.findall(r"[\w.+-]+", message) if word != value]
            close = sorted(get_close_matches(value, words, 3), key=words.index)
            elsewhere = [word for word in self._words if word in words]
            near = next((word for word in [*close, *elsewhere] if self._takes(option, word)), None)
            if near is None and option in self._needed():
                return message, {}
            old, new = (option, "") if near is None else (value, near)
            return message, {option: Edit(Place(option=option), old, new, certain=False)}
        options = [
            o for a in self._actions if a.help != argparse.SUPPRESS for o in a.option_strings
        ]
        words = [word.partition("=")[0] for word in message.removeprefix(_UNKNOWN).split()]
        typed = [word for word in words if word.startswith("-")]
        closest = {w: get_close_matches(w.lower(), options, 1) for w in typed}
        meant = ", ".join(option for matches in closest.values() for option in matches)
        edits = {w: Edit(Place(option=w), w, near) for w, matches in closest.items()
                 for near in matches}  # fmt: skip
        return f"{message}; did you mean {meant}?" if meant else message, edits

    def _takes(self, option: str, word: str) -> bool:
        """Whether an option takes a word as its value."""
        action = self._option_string_actions[option]
        try:
            value = self._get_value(action, word)
        except argparse.ArgumentError:
            return False
        return action.choices is None or value in action.choices

    def _others(self, device: str) -> str:
        """Tell of devices without the accelerator that this tool has, unless it is told already."""
        from ai8xtools.commands.targets import elsewhere, targets

        names = [name for one in targets(self.prog)[1:] for name in one.names]
        told = not names or elsewhere(device)
        return "" if told else f"; without the accelerator {', '.join(names)}"

    def _needed(self) -> set[str]:
        """Return the options that no command line can do without."""
        return {need.option for need in self._needs}

    def _without(self, diagnostic: Diagnostic) -> Diagnostic:
        """Return a complaint with the edit that leaves its option out, unless another is known."""
        option = _option_of(diagnostic)
        if diagnostic.edit is not None or option not in self._typed or option in self._needed():
            return diagnostic
        return replace(diagnostic, edit=Edit(Place(option=option), option, "", certain=False))

    def _end(self, diagnostics: Sequence[Diagnostic]) -> NoReturn:
        for form in FORMS:  # what follows a mistake was not read
            path = value_of(form.option, self._words)
            if path and not path.startswith("-"):
                _ask_for(form, path)
        complaints = [*map(self._without, diagnostics)]
        if takes_json():
            print_diagnostics(complaints)
            sys.exit(2)
        current().diagnostics.extend(complaints)
        lines = dict.fromkeys(_line(d, diagnostics) for d in diagnostics)
        text = "".join(f"{self.prog}: error: {line}\n" for line in lines)
        self.exit(2, f"{text}  See {self.prog} --help.\n")


def _has_number(value: object) -> bool:
    """Whether a converter returned a number, or several."""
    if isinstance(value, tuple | list | frozenset):
        return any(map(_has_number, value))
    return isinstance(value, int | float)


def _meaning(kind: object) -> str | None:
    """Return what a converter takes: the first sentence of its text, `Return a number above 0.`"""
    plain = {int: "a whole number", float: "a number"}
    if kind in plain:
        return plain[kind]
    text = (getattr(kind, "__doc__", None) or "").partition("\n")[0]
    sentence = re.match(r"Return ((?:an?|the) [^.;]*)", text)
    return sentence[1] if sentence else None


class _Noted(argparse.Action):
    """An option that `diagnostics.run` evaluates itself, not the tool."""

    def __call__(self, parser: argparse.ArgumentParser, *_rest: Any) -> None:
        """Do nothing."""


class _Written(argparse.Action):
    """An option that names a file about the whole run, which is written at its end."""

    def __call__(self, parser: argparse.ArgumentParser, *rest: Any) -> None:
        """Ask for it, unless the file is something else, or the run is a trial."""
        reason = _ask_for(self.const, rest[1]) if current().words else None
        if reason is not None:
            parser.error(f"argument {self.const.option}: {reason}")


def _ask_for(form: Form, path: str) -> str | None:
    """Ask for a file about the whole run; return why it cannot be written."""
    if path == "-":
        return "name a file; the output is for people"
    if is_foreign(Path(path), form.head):
        return f"{path} is no file of this option; it stays"
    current().at_end[form.option] = partial(form.write, path)
    return None


class Refused(argparse.Action):
    """An option that is known and refused: its help text says why, or `const` if that is hidden."""

    def __call__(self, parser: argparse.ArgumentParser, *rest: Any) -> None:
        """Note it; the last argument is the option as it was typed."""
        assert isinstance(parser, Parser)
        parser.refuse(rest[-1] or self.option_strings[0], str(self.const or self.help))


class Idle(argparse.Action):
    """An option that is accepted and changes nothing; its help text says why."""

    def __call__(
        self,
        _parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        _values: object,
        typed: str | None = None,
    ) -> None:
        """Add a line about it to the others."""
        line = f"{typed or self.option_strings[0]} has no effect: {self.help}"
        setattr(namespace, self.dest, (*getattr(namespace, self.dest), line))


def _complain_of_usage(message: str, option: str | None) -> Diagnostic:
    """The command line is not understood, or an option on it is refused; see --help."""
    return Diagnostic("E070", message, Place(option=option) if option else None, "See --help.")


def _usages(message: str, typed: Container[str]) -> Iterator[Diagnostic]:
    """Yield the complaint of argparse for each option concerned, by the name that was typed."""
    if message.startswith(_REQUIRED):
        for names in message.removeprefix(_REQUIRED).split(", "):
            yield _complain_of_usage("missing", names.split("/")[-1])
        return
    prefix = re.match(r"argument (\S+): ", message)
    options = re.findall(_OPTION, (prefix[1] if prefix else message).replace("/", " "))
    option = next((o for o in options if o in typed), options[0] if options else None)
    yield _complain_of_usage(message[prefix.end() :] if prefix else message, option)


def _option_of(diagnostic: Diagnostic) -> str:
    return (diagnostic.place and diagnostic.place.option) or ""


def _line(diagnostic: Diagnostic, others: Sequence[Diagnostic]) -> str:
    """Return a message with all options that it concerns."""
    options = dict.fromkeys(
        d.place.option for d in others if d.message == diagnostic.message and d.place is not None
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
        from ai8xtools.commands.targets import elsewhere

        raise argparse.ArgumentTypeError(
            "; ".join(filter(None, (str(exc), elsewhere(text))))
        ) from None


def filled(value: Value, args: argparse.Namespace, **derived: Any) -> Value:
    """Return a value whose fields are set by the options of the same names.

    `derived` are the fields that follow from other options.
    """
    plain: Any = value
    named = {f.name: getattr(args, f.name) for f in fields(plain) if hasattr(args, f.name)}
    result: Value = replace(plain, **named | derived)
    return result


def target_name(text: str) -> str:
    """Return the name of a target or chip for argparse."""
    from ai8xtools.commands.targets import targets

    names = {name for one in targets() for name in one.names}
    return text.upper() if text.upper() in names else chip(text).name


def add_transposed(options: Any) -> None:
    """Add the option that names transposed convolutions to a parser or a group of it."""
    options.add_argument(
        "--transposed",
        metavar="LAYER",
        nargs="+",
        default=(),
        help="names of transposed convolutions with as many input as output channels, which "
        "cannot be recognized by their shape",
    )
