"""Attributes of nodes that nothing can be made of: other types, lengths and ranges."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ai8xtools.checkpoint.onnx_graph import OnnxNode
from ai8xtools.frontends.layers import Refusal

_MODES = ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")
_LARGEST = 1 << 16
"""No size of a kernel, window or stride comes near this."""
_SHOWN = 60


def refused_attributes(node: OnnxNode, axes: int, kernel: tuple[int, ...] | None) -> Refusal | None:
    """Return why the attributes of a convolution or pooling over `axes` axes are not supported.

    `kernel` is the size of its weights, None where the node has to state one.
    """
    for name, kind in _wrong(node, axes, kernel):
        value = node.attributes.get(name, "missing")
        shown = str(list(value) if isinstance(value, tuple) else value)[:_SHOWN]
        return Refusal(node.name, f"its {name} is {shown}, expected {kind}", "Export it again.")
    return None


def _wrong(node: OnnxNode, axes: int, kernel: tuple[int, ...] | None) -> Iterator[tuple[str, str]]:
    """Yield attributes that make no sense, and what is expected."""
    attributes = node.attributes
    for name, least in (("strides", 1), ("dilations", 1), ("output_padding", 0)):
        if name in attributes and not _sizes(attributes[name], axes, least):
            yield name, f"{axes} numbers of at least {least}"
    if "pads" in attributes and not _sizes(attributes["pads"], 2 * axes, 0):
        yield "pads", f"{2 * axes} numbers of at least 0"
    if attributes.get("auto_pad", "NOTSET") not in _MODES:
        yield "auto_pad", f"one of {', '.join(_MODES)}"
    groups = attributes.get("group", 1)
    if not isinstance(groups, int) or not 1 <= groups < _LARGEST:
        yield "group", "a number of at least 1"
    stated = attributes.get("kernel_shape", kernel)
    if not _sizes(stated, axes, 1):
        yield "kernel_shape", f"{axes} numbers of at least 1"
    elif kernel is not None and tuple(stated) != kernel:
        yield "kernel_shape", f"{list(kernel)}, the size of its weights"


def _sizes(value: Any, count: int, least: int) -> bool:
    whole = isinstance(value, tuple) and all(isinstance(n, int) for n in value)
    return whole and len(value) == count and all(least <= n < _LARGEST for n in value)
