"""Layer classes whose names state the composition.

Source: docs/layers.md, "Names of layers".
"""

from __future__ import annotations

import inspect
import re
from typing import Any, assert_never

from ai8xtools.layers.composition import QuantizationAwareModule
from ai8xtools.layers.limits import Size
from ai8xtools.layers.operators import Conv1d, Conv2d, Linear
from ai8xtools.layers.parts import Activation, OperatorKind, PoolingKind

# Fused + pooling + Depthwise + operator + BN + activation; all but the operator may be missing.
FUSED_NAMES = """
ConvTranspose2d DepthwiseConv2d DepthwiseConvTranspose2d

FusedConv2dReLU           FusedConv2dAbs           FusedConv2dBN
FusedConv2dBNReLU         FusedConv2dBNAbs         FusedMaxPoolConv2d
FusedMaxPoolConv2dReLU    FusedMaxPoolConv2dAbs    FusedMaxPoolConv2dBN
FusedMaxPoolConv2dBNReLU  FusedMaxPoolConv2dBNAbs  FusedAvgPoolConv2d
FusedAvgPoolConv2dReLU    FusedAvgPoolConv2dAbs    FusedAvgPoolConv2dBN
FusedAvgPoolConv2dBNReLU  FusedAvgPoolConv2dBNAbs

FusedDepthwiseConv2dReLU            FusedDepthwiseConv2dBNReLU
FusedMaxPoolDepthwiseConv2d         FusedAvgPoolDepthwiseConv2d
FusedMaxPoolDepthwiseConv2dReLU     FusedAvgPoolDepthwiseConv2dReLU
FusedMaxPoolDepthwiseConv2dBNReLU   FusedAvgPoolDepthwiseConv2dBNReLU

FusedConvTranspose2dReLU            FusedConvTranspose2dAbs  FusedConvTranspose2dBNReLU
FusedMaxPoolConvTranspose2d         FusedAvgPoolConvTranspose2d
FusedMaxPoolConvTranspose2dReLU     FusedAvgPoolConvTranspose2dReLU
FusedMaxPoolConvTranspose2dAbs      FusedAvgPoolConvTranspose2dAbs
FusedMaxPoolConvTranspose2dBNReLU   FusedAvgPoolConvTranspose2dBNReLU

FusedDepthwiseConvTranspose2dReLU           FusedDepthwiseConvTranspose2dBNReLU
FusedMaxPoolDepthwiseConvTranspose2d        FusedAvgPoolDepthwiseConvTranspose2d
FusedMaxPoolDepthwiseConvTranspose2dReLU    FusedAvgPoolDepthwiseConvTranspose2dReLU
FusedMaxPoolDepthwiseConvTranspose2dBNReLU  FusedAvgPoolDepthwiseConvTranspose2dBNReLU

FusedConv1dReLU           FusedConv1dAbs           FusedConv1dBN
FusedConv1dBNReLU         FusedConv1dBNAbs         FusedMaxPoolConv1d
FusedMaxPoolConv1dReLU    FusedMaxPoolConv1dAbs    FusedMaxPoolConv1dBN
FusedMaxPoolConv1dBNReLU  FusedMaxPoolConv1dBNAbs  FusedAvgPoolConv1d
FusedAvgPoolConv1dReLU    FusedAvgPoolConv1dAbs    FusedAvgPoolConv1dBN
FusedAvgPoolConv1dBNReLU  FusedAvgPoolConv1dBNAbs

FusedLinearReLU FusedLinearAbs
""".split()  # noqa: SIM905 - readable at a glance

_PARTS = re.compile(
    rf"(?:Fused)?(?:(?P<pooling>{'|'.join(PoolingKind)})Pool)?(?P<depthwise>Depthwise)?"
    rf"(?P<operator>{'|'.join(OperatorKind)})(?P<bn>BN)?(?P<activation>{'|'.join(Activation)})?"
)


def _fused_class(name: str) -> type[QuantizationAwareModule]:
    """Make the layer class that `name` describes, with its signature and documentation."""
    parts = _PARTS.fullmatch(name)
    assert parts is not None, name
    base, fixed, defaults = _base(OperatorKind(parts["operator"]))
    fixed |= {key: parts[key] for key in ("pooling", "activation") if parts[key]}
    defaults |= {"batchnorm": "Affine"} if parts["bn"] else {}

    def initialize(self: Any, *args: Any, **kwargs: Any) -> None:
        if parts["depthwise"]:
            kwargs["groups"] = args[0] if args else kwargs["in_channels"]
        base.__init__(self, *args, **fixed, **{**defaults, **kwargs})

    members = {
        "__init__": initialize,
        "__module__": __name__,
        "__signature__": _signature(base, {*fixed, *(["groups"] if parts["depthwise"] else [])}),
        "__doc__": "\n\n".join((_sentence(parts), f"Parameters as in `{base.__name__}`.")),
    }
    return type(name, (base,), members)


def _signature(base: type, fixed: set[str]) -> inspect.Signature:
    """Return the signature of `base` without the parameters that a name fixes."""
    signature = inspect.signature(base)
    kept = [p for p in signature.parameters.values() if p.name not in fixed]
    return signature.replace(parameters=kept)


def _sentence(parts: re.Match[str]) -> str:
    """Describe a layer in the order of its steps."""
    steps = [
        f"{_pooling_word(PoolingKind(parts['pooling']))} pooling" if parts["pooling"] else None,
        ("depthwise " if parts["depthwise"] else "") + parts["operator"],
        "batch normalization" if parts["bn"] else None,
        _activation_word(Activation(parts["activation"])) if parts["activation"] else None,
    ]
    text = ", then ".join(step for step in steps if step)
    return f"{text[0].upper()}{text[1:]}."


def _base(operator: OperatorKind) -> tuple[Any, dict[str, str], dict[str, Any]]:
    """Return the base of a layer's class, the parameters that it fixes, and their defaults."""
    match operator:
        case OperatorKind.CONV1D:
            return Conv1d, {}, {}
        case OperatorKind.CONV2D:
            return Conv2d, {}, {}
        case OperatorKind.CONVTRANSPOSE2D:
            return Conv2d, {"op": operator}, {"stride": 2}
        case OperatorKind.LINEAR:
            return Linear, {}, {}
        case _:
            assert_never(operator)


def _pooling_word(pooling: PoolingKind) -> str:
    match pooling:
        case PoolingKind.MAX:
            return "maximum"
        case PoolingKind.AVERAGE:
            return "average"
        case _:
            assert_never(pooling)


def _activation_word(activation: Activation) -> str:
    match activation:
        case Activation.RELU:
            return "rectification"
        case Activation.ABS:
            return "absolute value"
        case _:
            assert_never(activation)


def _max_pool_class(name: str) -> type[QuantizationAwareModule]:
    """Make a layer that only does maximum pooling."""
    base: Any = Conv2d if name.endswith("2d") else Conv1d

    def initialize(
        self: Any, kernel_size: Size, stride: Size | None = None, dilation: int = 1, **kwargs: Any
    ) -> None:
        _initialize_pool(
            base, self, "Max", kernel_size, stride, **{"pool_dilation": dilation, **kwargs}
        )

    return _pool_type(name, base, initialize, "Maximum")


def _average_pool_class(name: str) -> type[QuantizationAwareModule]:
    """Make a layer that only does average pooling."""
    base: Any = Conv2d if name.endswith("2d") else Conv1d

    def initialize(self: Any, kernel_size: Size, stride: Size | None = None, **kwargs: Any) -> None:
        _initialize_pool(base, self, "Avg", kernel_size, stride, **kwargs)

    return _pool_type(name, base, initialize, "Average")


def _initialize_pool(
    base: Any, layer: Any, pooling: str, size: Size, stride: Size | None, **kwargs: Any
) -> None:
    base.__init__(layer, 0, 0, None, pooling=pooling, pool_size=size, pool_stride=stride, **kwargs)


def _pool_type(
    name: str, base: type[QuantizationAwareModule], initialize: Any, kind: str
) -> type[QuantizationAwareModule]:
    members = {
        "__init__": initialize,
        "__module__": __name__,
        "__doc__": f"{kind} pooling on its own; `stride` None is `kernel_size`.",
    }
    return type(name, (base,), members)


NAMED_CLASSES = (
    {name: _fused_class(name) for name in FUSED_NAMES}
    | {name: _max_pool_class(name) for name in ("MaxPool2d", "MaxPool1d")}
    | {name: _average_pool_class(name) for name in ("AvgPool2d", "AvgPool1d")}
)
globals().update(NAMED_CLASSES)  # where pickle looks for them
