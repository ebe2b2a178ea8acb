"""The command line of train.py: argparse reads it here, and nobody else sees the Namespace."""

from ai8xtools.commands.train.arguments.file_names import files
from ai8xtools.commands.train.arguments.parser import FirmwareChoice, arguments, parse

__all__ = ["FirmwareChoice", "arguments", "files", "parse"]
