"""The command line of ai8xize.py: argparse reads it here, and nobody else sees the Namespace."""

from commands.loader.arguments.parser import arguments
from commands.loader.arguments.values import parse

__all__ = ["arguments", "parse"]
