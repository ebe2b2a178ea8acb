"""The command line of ai8xize.py --device CMSIS-NN.

Source: docs/cmsis-nn.md; docs/options.md, "ai8xize.py --device CMSIS-NN".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ai8xtools.commands.arguments import Parser
from ai8xtools.commands.software.arguments import base, software_options
from ai8xtools.commands.software.options import SoftwareOptions
from ai8xtools.diagnostics import Diagnostic, Place, Severity

FORMER = "accepted from command lines from before, with a notice"


def arguments() -> Parser:
    """Return the parser of the command line."""
    parser = base("Turn a network description and quantized weights into C for a microcontroller "
                  "that calls Arm's functions.", "CMSIS-NN")  # fmt: skip
    option = parser.group("CMSIS-NN").add_argument
    option("--cmsis-software-nn", action="store_true",
           help="same as --device CMSIS-NN, beside any --device")  # fmt: skip
    option("--cmsis-nn", dest="library", metavar="DIR",
           help="your copy of CMSIS 5.9.0 or older, used instead of our functions")  # fmt: skip
    option("--fc-opt", dest="interleaving", action="store_true",
           help="fully connected layers use the weight order of arm_fully_connected_q7_opt or "
                "q15_opt")  # fmt: skip
    option = parser.group(FORMER).add_argument
    option("--fc-layer", action="store_true", help="accepted without effect")
    option("-e", "--embedded-code", action="store_true", help="accepted without effect")
    option("--top-level", metavar="NAME", help="accepted without effect")
    return parser


def parse(words: Sequence[str]) -> SoftwareOptions:
    """Return what a command line asks for; wrong usage ends the program with status 2."""
    from ai8xtools.software.plan.schemes import SINGLE, Scheme

    parser = arguments()
    args = parser.parse_args(words)
    software = software_options(parser, args, words, calls=True)
    if args.scheme not in ("auto", *SINGLE):
        parser.error(f"argument --scheme: {args.scheme} is for --device MCU")
    by_rows = args.scheme != "auto" and Scheme(args.scheme).by_rows
    if software.qformat and software.library is not None and by_rows:
        parser.error("argument --scheme: rows is not for --cmsis-nn with a network of 16 or 8 "
                     "bits, whose functions of the library take whole images")  # fmt: skip
    notices = (*software.notices, *map(_former, parser.used(FORMER)))
    return replace(software, notices=notices)


def _former(option: str) -> Diagnostic:
    return Diagnostic("N957", "it is accepted from command lines from before and changes nothing",
                      Place(option=option), severity=Severity.NOTICE)  # fmt: skip
