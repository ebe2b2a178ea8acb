"""The command line of scripts/nnb.py."""

from __future__ import annotations

from collections.abc import Sequence

from ai8xtools.commands.arguments import Parser
from ai8xtools.values import frozen

COMMANDS = {
    "info": "show header, tensors and layers",
    "verify": "check the file, and run its test vectors",
    "extract": "write tables, weights and test vectors into a folder",
    "decrypt": "write the same container without encryption",
}


@frozen
class ContainerCommand:
    """What is done with which container; `output` is the folder or file to write."""

    name: str
    file: str
    output: str | None
    key_file: str | None
    overwrite: bool


def parse(words: Sequence[str] | None = None) -> ContainerCommand:
    """Return what the command line asks for; wrong usage ends the program with status 2."""
    parser = Parser(prog="nnb.py", description="Show, verify and take apart containers (.nnb).")
    listed = "; ".join(f"{name}: {text}" for name, text in COMMANDS.items())
    option = parser.add_argument
    option("command", choices=[*COMMANDS], metavar="COMMAND", help=listed)
    option("file", metavar="FILE.nnb", help="the container")
    option("output", nargs="?", metavar="OUTPUT", help="extract: folder; decrypt: file")
    option("--key", metavar="KEYFILE", help="file with the 32-byte key of an encrypted container")
    option("--overwrite", action="store_true", help="extract: replace files of the folder")
    option("--debug", action="store_true", help="show where in the program a failure occurs")
    args = parser.parse_args(words)
    writes = args.command in ("extract", "decrypt")
    if writes != (args.output is not None):
        parser.error(f"{args.command}: {'name the output' if writes else 'it writes nothing'}")
    if args.command == "decrypt" and args.key is None:
        parser.error("argument --key: is required for decrypt")
    return ContainerCommand(args.command, args.file, args.output, args.key, args.overwrite)
