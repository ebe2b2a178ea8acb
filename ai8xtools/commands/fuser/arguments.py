"""The command line of batchnormfuser.py."""

from __future__ import annotations

from collections.abc import Sequence

from ai8xtools.commands.arguments import Parser, add_transposed
from ai8xtools.values import frozen


@frozen
class FuserOptions:
    """Files, the name of the resulting model, and transposed convolutions by name."""

    input: str
    output: str
    architecture: str
    transposed: tuple[str, ...] = ()


def parse(words: Sequence[str] | None = None) -> FuserOptions:
    """Return what the command line asks for; wrong usage ends the program with status 2."""
    args = arguments().parse_args(words)
    return FuserOptions(args.inp_path, args.out_path, args.out_arch, tuple(args.transposed))


def arguments() -> Parser:
    """Return the parser of the command line."""
    parser = Parser(
        description="Fold the batch normalization of a checkpoint into the weights and biases "
        "before it."
    )
    parser.add_argument("-i", "--inp_path", metavar="S", required=True, help="checkpoint to read")
    parser.add_argument("-o", "--out_path", metavar="S", required=True, help="checkpoint to write")
    parser.add_argument(
        "-oa",
        "--out_arch",
        metavar="S",
        required=True,
        help="name of the model without batch normalization",
    )
    add_transposed(parser)
    return parser
