"""First stage: the text of a network description becomes a `Description`.

Every value keeps the line and column at which it stood. All complaints about a file are collected
and raised together. Chips, weights and shapes are unknown here.
Source: docs/network-description.md, "Format", "Global keys" and "Keys of a layer".
"""

from ai8xtools.synthesis.parse.described import Described, Edited, Source
from ai8xtools.synthesis.parse.description import (
    Description,
    Entry,
    LayerDescription,
    Problems,
    Reading,
    Section,
)
from ai8xtools.synthesis.parse.parser import parse, parse_file, position, read, read_file

__all__ = [
    "Described",
    "Description",
    "Edited",
    "Entry",
    "LayerDescription",
    "Problems",
    "Reading",
    "Section",
    "Source",
    "parse",
    "parse_file",
    "position",
    "read",
    "read_file",
]
