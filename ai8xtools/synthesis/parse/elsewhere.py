"""Keys that stand at the wrong level of a description, or that other tools have."""

from __future__ import annotations

import re
from collections.abc import Container

import yaml

from ai8xtools.synthesis.parse.keys import GLOBAL_KEYS, LAYER_KEYS

_COMMENT = re.compile(r"\S+(#|\s*//|\s*;)")
_FOREIGN = {
    "depthwise": "Use groups, as many as there are channels; MAX78002 has it.",
    "depthwise_conv": "Use groups, as many as there are channels; MAX78002 has it.",
    "filters": "Use out_channels; with weights it follows from them.",
    "out_features": "Use out_channels; with weights it follows from them.",
    "in_features": "Use in_channels; with weights it follows from them.",
    "weight_bits": "Use quantization: 1, 2, 4 or 8.",
    "bits": "Use quantization: 1, 2, 4 or 8.",
}
"""What stands for keys of frameworks whose names resemble others of ours, or none."""


def misplaced_or_foreign(key: str, allowed: Container[str]) -> str | None:
    """Return the remedy for a key that is not `allowed` where it stands; None: of no level."""
    of_layers = {s for k in LAYER_KEYS for s in k.spellings}
    if key in of_layers and key not in allowed and "layers" in allowed:
        return "It is a key of layers: write it below the layer that it is for."
    if (key in {s for k in GLOBAL_KEYS for s in k.spellings} or key == "layers") and (
        "processors" in allowed
    ):
        return "It is a key of the whole network: write it at the top, without indentation."
    return _FOREIGN.get(key.lower()) if "processors" in allowed else None


def remedy_of_comment(node: yaml.Node) -> str | None:
    """Return the remedy for a plain value that ends in what looks like a comment, or in `;`."""
    if not isinstance(node, yaml.ScalarNode) or node.style:
        return None
    comment = _COMMENT.match(str(node.value))
    if comment is None:
        return None
    if comment[1].strip() == ";":
        return "Remove the semicolon."
    return "A comment begins with # behind a space."
