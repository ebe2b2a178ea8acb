"""The command line of ai8xize.py --device BITNET, which has few of the other options."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ai8xtools.commands.arguments import Parser
from ai8xtools.commands.loader.arguments.shared import add_build_option
from ai8xtools.values import frozen


@frozen
class LowBitOptions:
    """Which header becomes which project; `labels` are the classes of the samples, if given.

    `report` is the page to write. With `floor` sums that are shifted are not rounded, whatever the
    header says; with `compress` weights are stored as Huffman codes. `build` are systems whose
    metadata are added.
    """

    header: str
    sample: str
    labels: str | None
    mcu: str | None
    name: str
    parent: str
    overwrite: bool
    floor: bool
    compress: bool
    command_line: str
    report: str | None = None
    build: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        """The folder of the project."""
        return Path(self.parent) / self.name


def arguments() -> Parser:
    """Return the parser of the command line."""
    parser = Parser(
        prog="ai8xize.py",
        usage="%(prog)s --device BITNET --checkpoint-file MODEL.h --sample-input FILE "
        "--prefix NAME --test-dir DIR [options]",
        description="Write C for a low-bit network: no multiplication is needed.",
    )
    option = parser.add_argument
    option("--device", required=True, metavar="NAME", help="BITNET")
    option("--checkpoint-file", required=True, metavar="MODEL.h",
           help="header with the packed weights")  # fmt: skip
    option("--sample-input", required=True, metavar="FILE",
           help="inputs of the console program (.npy), int8 [number, inputs]")  # fmt: skip
    option("--sample-labels", metavar="FILE", help="their classes (.npy)")
    option("--mcu", metavar="NAME", help="profile whose flash and RAM must suffice")
    option("--shiftnorm", choices=("round", "floor"), default="round",
           help="floor: bits of sums are dropped without rounding, to compare")  # fmt: skip
    option("--compress-weights", action="store_true",
           help="weights as Huffman codes: less flash, more instructions")  # fmt: skip
    option("--report", metavar="FILE", help="write a page (HTML), and the same as JSON")
    option("--prefix", required=True, metavar="NAME", help="name of the project")
    option("--test-dir", required=True, metavar="DIR", help="folder in which it is written")
    option("--overwrite", action="store_true", help="replace a project that exists")
    add_build_option(parser)
    option("--debug", action="store_true", help="show where in the program a failure occurs")
    return parser


def parse(words: Sequence[str]) -> LowBitOptions:
    """Return the options of a command line; wrong usage ends the program with status 2."""
    parser = arguments()
    args = parser.parse_args([*words])
    name = args.prefix
    if not name or name in (".", "..") or Path(name).name != name or "\0" in name:
        parser.error("argument --prefix: is the name of a folder")
    return LowBitOptions(
        args.checkpoint_file, args.sample_input, args.sample_labels, args.mcu, name,
        args.test_dir, args.overwrite, args.shiftnorm == "floor", args.compress_weights,
        "ai8xize.py " + " ".join(words), args.report, tuple(args.build),
    )  # fmt: skip
