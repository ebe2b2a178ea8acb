"""The command line of ai8xize.py --device MCU, and what that of --device CMSIS-NN shares with it.

Source: docs/software.md; docs/options.md, "ai8xize.py --device MCU".
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from ai8xtools.commands.arguments import Parser, chip, filled, target_name
from ai8xtools.commands.loader.arguments.shared import (
    add_description_options,
    add_folder_options,
    add_library_options,
    add_log_options,
    add_needs,
    add_placing_options,
    add_source_options,
    parser_of,
)
from ai8xtools.commands.loader.arguments.values import described
from ai8xtools.commands.software.options import ContainerOptions, SoftwareOptions
from ai8xtools.commands.targets import choices
from ai8xtools.diagnostics import Diagnostic, Place, Severity, refuse_errors
from ai8xtools.software.profile import names as profiles
from ai8xtools.writing.application import ARGMAX, BENCH, NO_BOARD, ZEPHYR, undriven
from device import MAX78002

_UNITS = {"k": 1 << 10, "m": 1 << 20}
_MOST = 1 << 32
_IN_ONE_MEMORY = ("auto", "first", "resident", "rows")

NETWORK = "network, unless a checkpoint of 16 or 8 bits holds it"
PLAN = "plan, unless of 16 or 8 bits"
CONTAINER = "container, in place of a program for this network"
PLACING = "places in the accelerator: accepted, with a notice"
"""Groups of options."""
_NEEDED = {
    **dict.fromkeys(("--encrypt", "--slot", "--arena"), "--container FILE.nnb"),
    "--stateful": "--stream HOP", "--head": "--application", "--board-name": "--application",
    "--application": "--symbol-prefix NAME",
}  # fmt: skip
_WITHOUT = {
    "--container": ("containers have none", ("--report", "--plan-report", "--symbol-prefix",
                                             "--build")),
    "--stream": ("streams have none", ("--scheme", "--l2", "--l3", "--dma", "--symbol-prefix",
                                       "--container")),
    "--build": ("packages hold the library alone", ("--application",)),
}  # fmt: skip
"""What options need, and what there is none of with them."""


def size(text: str) -> int:
    """Convert a number of bytes such as 64K for argparse."""
    unit = _UNITS.get(text[-1:].lower(), 1)
    digits = text[:-1] if unit > 1 else text
    if not digits.isdecimal() or not int(digits):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of bytes such as 2048 or 64K")
    if int(digits) * unit > _MOST:
        raise argparse.ArgumentTypeError(f"{text} is more than cores address, {_MOST:,} bytes")
    return int(digits) * unit


def hop(text: str) -> int:
    """Convert a number of rows for argparse."""
    if not text.isdecimal() or not 0 < int(text) < _MOST:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of rows such as 16")
    return int(text)


def base(description: str, device: str) -> Parser:
    """Return the parser of a target without the accelerator, with what all of them have."""
    parser = parser_of(
        description,
        f"{device} (--model NAME | --config-file FILE | --checkpoint-file FILE) --prefix NAME "
        "--test-dir DIR",
    )
    parser.add_argument("--device", type=target_name, metavar="NAME", help=choices("ai8xize.py"))
    add_source_options(parser.group("files of the network"))
    add_description_options(parser.group(NETWORK))
    option = parser.group("microcontroller").add_argument
    option("--mcu", metavar="NAME", help="profile of the microcontroller, or a file (.yaml)")
    option("--l1", type=size, metavar="BYTES", help="RAM, in place of the profile's")
    option("--flash", type=size, metavar="BYTES", help="flash, in place of the profile's")
    option("--scheme", choices=("auto", "first", "resident", "rows", "pixels", "planes", "chain"),
           default="auto", help="how layers use memory (default: whole tensors or rings of rows, "
                                "whichever fits first; with levels of memory, the one with the "
                                "fewest cycles)")  # fmt: skip
    option("--plan-report", action="store_true", help="print the plan of the memory")
    option = parser.group(PLAN).add_argument
    option("--kernels", choices=("auto", "c", "dsp", "mve", "nomul"), default="auto",
           help="kernels that may be used (default: those of the core)")  # fmt: skip
    option(
        "--like",
        type=chip,
        metavar="CHIP",
        help="refuse networks that this accelerator cannot run: MAX78000, MAX78002 (default: no "
        "limits)",
    )
    group = parser.group("project, log and messages")
    add_folder_options(group)
    add_log_options(group)
    add_placing_options(parser.group(PLACING))
    add_needs(parser)
    return parser


def software_options(
    parser: Parser, args: argparse.Namespace, words: Sequence[str], **own: Any
) -> SoftwareOptions:
    """Return what options of a target without the accelerator mean; `own` are fields of its own.

    Of models the chip with fewer limits counts. Wrong usage ends the program with status 2.
    """
    levels = [] if args.scheme in _IN_ONE_MEMORY else [f"--scheme {args.scheme}"]
    return filled(
        SoftwareOptions(described(parser, args, args.like or MAX78002, words)),
        args,
        kernels=None if args.kernels == "auto" else frozenset({"c", args.kernels}),
        notices=tuple(map(_only_places, parser.used(PLACING))),
        describing=tuple(parser.used(NETWORK)),
        planning=(*parser.used(NETWORK, PLAN, CONTAINER), *levels),
        qformat=args.config_file is None and args.model is None,
        **own,
    )


def _only_places(option: str) -> Diagnostic:
    """Return the notice about an option that concerns the accelerator only."""
    return Diagnostic("N957", "it only places things in the accelerator and changes nothing here",
                      Place(option=option), severity=Severity.NOTICE)  # fmt: skip


def arguments() -> Parser:
    """Return the parser of the command line of --device MCU."""
    parser = base("Turn a network description and quantized weights into C for a microcontroller "
                  "without accelerator.", "MCU [--mcu NAME]")  # fmt: skip
    option = parser.group(PLAN).add_argument
    option("--l2", type=size, metavar="BYTES", help="second memory, in place of the profile's")
    option("--l3", type=size, metavar="BYTES", help="third memory, in place of the profile's")
    option("--dma", action="store_true", help="copy between memories while the core computes")
    option("--stream", type=hop, metavar="HOP", help="results of a window that slides by HOP rows "
           "(time steps of one-dimensional data), which computes what is new")  # fmt: skip
    option("--stateful", action="store_true", help="with --stream: states of RNN, GRU and LSTM go "
           "on from call to call, so that results are those of all rows since the start instead of "
           "a window")  # fmt: skip
    add_library_options(parser.group(PLAN))
    parser.group(PLAN).add_argument(
        "--board-name", choices=(NO_BOARD, ZEPHYR), default=NO_BOARD,
        help="with --application: whose drivers sensor.c uses; none: you write them "
        "(default: none)",
    )  # fmt: skip
    option = parser.group(CONTAINER).add_argument
    option("--container", metavar="FILE.nnb", help="write the network as one binary file, and as "
           "the project firmware that runs such files")  # fmt: skip
    option("--encrypt", metavar="KEYFILE", help="encrypt its data; the file has the 32-byte key")
    option("--slot", type=size, metavar="BYTES",
        help="flash that the firmware reserves for containers (default: the size of "
             "this one)")  # fmt: skip
    option("--arena", type=size, metavar="BYTES",
        help="RAM that the firmware reserves for networks (default: what this one "
             "needs)")  # fmt: skip
    return parser


def parse(words: Sequence[str]) -> SoftwareOptions:
    """Return what a command line of --device MCU asks for; wrong usage ends with status 2."""
    parser = arguments()
    args = parser.parse_args(words)
    _check_pairs(parser, args)
    container = None
    if args.container is not None:
        container = ContainerOptions(args.container, args.encrypt, args.slot, args.arena)
    software = software_options(parser, args, words, container=container)
    if args.mcu is None:
        software = replace(software, notices=(*software.notices, _portable()))
    return software


def _check_pairs(parser: Parser, args: argparse.Namespace) -> None:
    """Refuse options that exclude each other, or what they need does; then ask for what they need.

    Wrong usage ends the program with status 2. Raises DiagnosticError E913 for a board without a
    driver.
    """

    def whole(option: str) -> Iterator[str]:
        while option:
            yield option
            option = _NEEDED.get(option, "").partition(" ")[0]

    refuse_errors(undriven(args.application, args.board_name))
    if args.head != ARGMAX and args.application == BENCH:
        parser.error("argument --head: --application bench gives all outputs back, leave it out")
    known = [*_NEEDED, *_WITHOUT, *(one for _, others in _WITHOUT.values() for one in others)]
    names = {option: option.removeprefix("--").replace("-", "_") for option in known}
    typed = [one for one in names if getattr(args, names[one]) != parser.get_default(names[one])]
    wholes = {one: set(whole(one)) for one in typed}
    for option in (one for one in _WITHOUT if any(one in parts for parts in wholes.values())):
        why, others = _WITHOUT[option]
        for one in (one for one in typed if not wholes[one].isdisjoint(others)):
            parser.error(f"argument {one}: {why}, leave it out")
    for option in typed:
        if option in _NEEDED and _NEEDED[option].partition(" ")[0] not in typed:
            parser.error(f"argument {option}: add {_NEEDED[option]}")
    if args.container is not None and args.mcu is None:
        parser.error("argument --mcu: is required with --container; choose "
                     f"{', '.join(profiles())}, or a file (.yaml)")  # fmt: skip


def _portable() -> Diagnostic:
    """Return the notice that no core was named."""
    return Diagnostic(
        "N958",
        "no microcontroller is named: portable C for any core of 32 bits, without limits of memory",
        Place(option="--mcu"),
        "Name one for the fastest kernels of its core.",
        Severity.NOTICE,
    )
