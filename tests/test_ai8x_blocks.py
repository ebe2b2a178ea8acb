"""The blocks have the layers and the wiring that checkpoints rely on."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import ai8x
import ai8x_blocks


@pytest.fixture(autouse=True)
def device() -> Any:
    ai8x.set_device(87, simulate=False, round_avg=False, verbose=False)
    yield
    ai8x.set_device(85, simulate=False, round_avg=False, verbose=False)


def shapes(block: nn.Module) -> dict[str, tuple[int, ...]]:
    """Return the shape of each weight, and `bias` or `bn` of layers that have them."""
    return {
        name.removesuffix(".op.weight"): tuple(value.shape)
        for name, value in block.state_dict().items()
        if name.endswith(".op.weight")
    }


def having(block: nn.Module, part: str) -> list[str]:
    """Return the layers with a parameter or buffer."""
    return [n.removesuffix(f".{part}") for n in block.state_dict() if n.endswith(f".{part}")]


def image(channels: int, size: int = 8) -> Tensor:
    return torch.rand(1, channels, size, size) - 0.5


def test_fire_puts_the_1x1_kernels_first() -> None:
    block = ai8x_blocks.Fire(3, 2, 4, 5, bias=False)
    assert shapes(block) == {
        "squeeze_layer": (2, 3, 1, 1),
        "expand1x1_layer": (4, 2, 1, 1),
        "expand3x3_layer": (5, 2, 3, 3),
    }
    x = image(3)
    found = block(x)
    assert found.shape == (1, 9, 8, 8)
    assert torch.equal(found[:, :4], block.expand1x1_layer(block.squeeze_layer(x)))
    assert (found >= 0).all()


def test_fire_has_biases_unless_told() -> None:
    assert len(having(ai8x_blocks.Fire(3, 2, 4, 4), "op.bias")) == 3


def test_residual_bottleneck_expands_filters_and_contracts() -> None:
    block = ai8x_blocks.ResidualBottleneck(8, 12, 2.5, stride=2, bias=True)
    assert shapes(block) == {
        "conv1": (20, 8, 1, 1),
        "conv2": (20, 1, 3, 3),
        "conv3": (12, 20, 1, 1),
    }
    assert having(block, "bn.weight") == ["conv1", "conv3"]
    assert block(image(8)).shape == (1, 12, 4, 4)


def test_residual_bottleneck_without_expansion_has_no_first_layer() -> None:
    block = ai8x_blocks.ResidualBottleneck(8, 8, 1, bias=True, depthwise_bias=True)
    assert list(shapes(block)) == having(block, "bn.weight") == ["conv2", "conv3"]


@pytest.mark.parametrize(
    "kind", [ai8x_blocks.ResidualBottleneck, ai8x_blocks.ConvResidualBottleneck]
)
def test_bottleneck_of_one_shape_adds_its_input(kind: Any) -> None:
    block = kind(8, 8, 2, bias=True, depthwise_bias=True).eval()
    with torch.no_grad():
        last = block.conv3 if hasattr(block, "conv3") else block.conv2
        last.op.weight.zero_()
        last.op.bias.zero_()
    x = image(8)
    assert torch.equal(block(x), x)
    assert block.resid(x, x).abs().max() <= 1


def test_convolutional_bottleneck_ends_with_3x3_kernels_and_no_activation() -> None:
    block = ai8x_blocks.ConvResidualBottleneck(8, 12, 2, stride=2, bias=True)
    assert shapes(block) == {"conv1": (16, 8, 1, 1), "conv2": (12, 16, 3, 3)}
    assert having(block, "bn.weight") == having(block, "op.bias") == ["conv1"]
    found = block(image(8))
    assert found.shape == (1, 12, 4, 4)
    assert (found < 0).any()


def test_rows_of_bottlenecks_change_the_shape_once() -> None:
    rows = ai8x_blocks.bottleneck_rows(
        ai8x_blocks.ConvResidualBottleneck, ((3, 8, 12, 2, 2), (1, 12, 12, 1, 1)),
        depthwise_bias=True, reduced_depthwise_bias=True, bias=True,
    )  # fmt: skip
    assert shapes(rows)["0.0.conv2"] == (12, 16, 3, 3)
    assert shapes(rows)["0.2.conv1"] == (24, 12, 1, 1)
    assert [n for n in having(rows, "op.bias") if n.endswith("conv2")] == [
        "0.0.conv2",
        "0.2.conv2",
        "1.0.conv2",
    ]
    x = image(8)
    for row in rows:
        x = row(x)
    assert x.shape == (1, 12, 4, 4)


@pytest.mark.parametrize(
    ("keywords", "expected"),
    [
        (
            {"fused": True, "expand_ratio": 4},
            {"expand_conv": (32, 8, 3, 3), "project_conv": (12, 32, 1, 1)},
        ),
        ({"fused": True}, {"project_conv": (12, 8, 1, 1)}),
        (
            {"expand_ratio": 2},
            {
                "expand_conv": (16, 8, 1, 1),
                "depthwise_conv": (16, 1, 3, 3),
                "project_conv": (12, 16, 1, 1),
            },
        ),
        (
            {"se_ratio": 0.5},
            {
                "depthwise_conv": (8, 1, 3, 3),
                "se_reduce": (4, 8, 1, 1),
                "se_expand": (8, 4, 1, 1),
                "project_conv": (12, 8, 1, 1),
            },
        ),
    ],
)
def test_mbconv_has_the_layers_it_needs(
    keywords: dict[str, Any], expected: dict[str, tuple[int, ...]]
) -> None:
    block = ai8x_blocks.MBConvBlock(8, 12, bias=True, **keywords)
    assert shapes(block) == expected
    assert block(image(8)).shape == (1, 12, 8, 8)
    normalized = [m for m in block.modules() if isinstance(m, nn.BatchNorm2d)]
    assert {(m.eps, m.momentum) for m in normalized} == {(1e-3, 0.01)}


def test_mbconv_of_one_shape_adds_its_input_and_a_stride_halves_it() -> None:
    block = ai8x_blocks.MBConvBlock(8, 8, bias=True, expand_ratio=2, fused=True).eval()
    with torch.no_grad():
        block.project_conv.op.weight.zero_()
        block.project_conv.op.bias.zero_()
    x = image(8)
    assert torch.equal(block(x), x)
    block = ai8x_blocks.MBConvBlock(8, 8, stride=2, bias=True)
    assert block(x).shape == (1, 8, 4, 4)


def test_stride_without_a_layer_for_it_is_refused() -> None:
    with pytest.raises(AssertionError, match="stride=2"):
        ai8x_blocks.MBConvBlock(8, 8, stride=2, bias=True, fused=True)


def test_depthwise_blocks_are_for_max78002() -> None:
    ai8x.set_device(85, simulate=False, round_avg=False, verbose=False)
    with pytest.raises(AssertionError, match="groups"):
        ai8x_blocks.ResidualBottleneck(8, 8, 2, bias=True)


def test_rows_of_a_table_become_layers_in_order() -> None:
    network = nn.Module()
    rows = (
        ("first", "FusedConv2dReLU", 3, 4, 3, 1),
        ("second", "FusedMaxPoolConv2d", 4, 5, 1, 0, {"bias": False, "pool_size": 4}),
    )
    ai8x_blocks.add_layers(network, rows, bias=True)
    assert shapes(network) == {"first": (4, 3, 3, 3), "second": (5, 4, 1, 1)}
    assert having(network, "op.bias") == ["first"]
    assert network.get_submodule("second").pool.kernel_size == 4
