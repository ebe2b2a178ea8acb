"""Attributes of ONNX nodes that nothing can be made of, and graphs that grow without end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from checkpoint.onnx_graph import OnnxNode
from frontends.layers import Refusal
from frontends.onnx import geometry
from frontends.onnx.constants import computed

WEIGHTS = np.zeros((8, 1, 3, 3))


def node(operator: str, **attributes: Any) -> OnnxNode:
    return OnnxNode("n", operator, ("x", "w"), ("y",), attributes)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"kernel_shape": (0, 0)}, "its kernel_shape is [0, 0], expected 2 numbers"),
        ({"kernel_shape": (5, 5)}, "expected [3, 3], the size of its weights"),
        ({"kernel_shape": "abc"}, "its kernel_shape is abc"),
        ({"kernel_shape": (3.0, 3.0)}, "its kernel_shape is [3.0, 3.0]"),
        ({"strides": (0, 0)}, "its strides is [0, 0], expected 2 numbers of at least 1"),
        ({"strides": (1 << 62, 1)}, "its strides"),
        ({"pads": (1,)}, "its pads is [1], expected 4 numbers of at least 0"),
        ({"pads": (-1,) * 4}, "its pads"),
        ({"dilations": 3}, "its dilations is 3"),
        ({"group": 0}, "its group is 0, expected a number of at least 1"),
        ({"auto_pad": "EVIL"}, "its auto_pad is EVIL, expected one of NOTSET"),
    ],
)
def test_attributes_out_of_range_are_refused(attributes: dict[str, Any], message: str) -> None:
    found = geometry.operator(node("Conv", **attributes), WEIGHTS, (1, 8, 8))
    assert isinstance(found, Refusal) and message in found.why


@pytest.mark.parametrize(
    "attributes", [{}, {"kernel_shape": (2, 2), "strides": (0, 0)}, {"kernel_shape": (2,)}]
)
def test_pooling_without_a_window_is_refused(attributes: dict[str, Any]) -> None:
    assert isinstance(geometry.pooling(node("MaxPool", **attributes), (1, 8, 8), {}), Refusal)


def test_constants_that_grow_without_end_are_not_computed() -> None:
    large = np.zeros(1 << 24)
    assert computed(node("Concat", axis=0), [large, large, large]) is None
    assert computed(node("Add"), [large[:, None], large[None]]) is None
    assert computed(node("Gather"), [large, np.zeros(1 << 20)]) is None
