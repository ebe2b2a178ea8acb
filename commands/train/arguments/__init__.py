"""The command line of train.py: argparse reads it here, and nobody else sees the Namespace."""

from commands.train.arguments.parser import parse

__all__ = ["parse"]
