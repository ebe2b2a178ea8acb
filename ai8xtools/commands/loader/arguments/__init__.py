"""The command line of ai8xize.py: argparse reads it here, and nobody else sees the Namespace."""

from ai8xtools.commands.loader.arguments.parser import arguments
from ai8xtools.commands.loader.arguments.values import parse

__all__ = ["arguments", "parse"]
