"""Fold the batch normalization of a checkpoint into the weights and biases before it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from checkpoint import read_checkpoint, write_checkpoint
from commands.arguments import Parser, refuse_same_file
from diagnostics.errors import InputError
from quantization import fuse_batchnorm


def main(arguments: Sequence[str] | None = None) -> None:
    """Read one checkpoint and write the other, completely or not at all."""
    args = parse_arguments(arguments)
    refuse_same_file(args.inp_path, args.out_path)
    checkpoint = read_checkpoint(args.inp_path)
    try:
        fused = fuse_batchnorm(checkpoint, args.out_arch, args.transposed)
    except InputError as exc:
        exc.place = exc.place or args.inp_path
        raise
    write_checkpoint(args.out_path, fused)
    print(f"New checkpoint is saved to: {args.out_path}")


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the command line's options; argparse ends the program with status 2 on mistakes."""
    parser = Parser(description=__doc__)
    parser.add_argument("-i", "--inp_path", metavar="S", required=True, help="checkpoint to read")
    parser.add_argument("-o", "--out_path", metavar="S", required=True, help="checkpoint to write")
    parser.add_argument(
        "-oa",
        "--out_arch",
        metavar="S",
        required=True,
        help="name of the model without batch normalization",
    )
    parser.add_argument(
        "--transposed",
        metavar="LAYER",
        nargs="+",
        default=(),
        help="transposed convolutions with as many input as output channels, which their shape "
        "does not tell",
    )
    return parser.parse_args(arguments)
