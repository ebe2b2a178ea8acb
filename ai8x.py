"""Layers for PyTorch that compute exactly as the MAX78000 and MAX78002 accelerators do.

Every layer is one composition, `QuantizationAwareModule`: pooling, operator, batch normalization,
output shift, activation, quantization, in this order. The public names (`FusedMaxPoolConv2dReLU`
and its relatives) say which parts are present and are generated from the list `FUSED_NAMES`.

A layer works in one of three arithmetics:

- float: values are clamped to [-1, 127/128], nothing is rounded;
- quantization-aware training (QAT), after `initiate_qat`: weights and activations are rounded in
  each forward pass to what the accelerator can hold, gradients pass the rounding unchanged;
- simulation, after `set_device(..., simulate=True, ...)`: tensors hold the accelerator's integers,
  weights come from quantize.py.

Call `set_device` before the first layer is made.
Source: docs/layers.md, "The chip and the arithmetic of a run".
"""

from __future__ import annotations

import sys
import types
from typing import TYPE_CHECKING, Any

from ai8xtools.layers import chips
from ai8xtools.layers.bias_correction import correct_biases
from ai8xtools.layers.chips import DEVICE_CLASSES, Dev, set_device
from ai8xtools.layers.choices import quantize_clamp, quantize_clamp_parameters, quantize_clamp_pool
from ai8xtools.layers.composition import QuantizationAwareModule
from ai8xtools.layers.damage import Damage, is_quantized, output_damage, weight_damage
from ai8xtools.layers.elementary import (
    ID3,
    Abs,
    AvgPoolFloor,
    AvgPoolFloorFunction,
    Clamp,
    Empty,
    Floor,
    FloorFunction,
    FloorQat,
    One,
    OutputScale,
    OutputShiftLimit,
    OutputShiftPassthrough,
    QuantizationFunction,
    Quantize,
    Round,
    RoundFunction,
    RoundQat,
    Scaler,
    WeightScale,
    get_activation,
)
from ai8xtools.layers.elementwise import Add, BitwiseOr, BitwiseXor, Eltwise, Or, Sub, Xor
from ai8xtools.layers.images import bayer_filter, fold, normalize, unfold_batch
from ai8xtools.layers.limits import ConvolutionShape, Limit, Size
from ai8xtools.layers.named_layers import FUSED_NAMES, NAMED_CLASSES
from ai8xtools.layers.onnx_export import onnx_export_prep
from ai8xtools.layers.onnx_twins import (
    FloorONNX,
    FloorQatONNX,
    OutputScaleONNX,
    OutputShiftONNX,
    QuantizeONNX,
    RoundQatONNX,
    ScalerONNX,
    WeightScaleONNX,
)
from ai8xtools.layers.operators import (
    Conv1d,
    Conv2d,
    FusedSoftwareLinearReLU,
    Linear,
    SoftwareLinear,
)
from ai8xtools.layers.parts import Activation, OperatorKind, PoolingKind
from ai8xtools.layers.quantiles import interp, quantile
from ai8xtools.layers.ranges import (
    DEFAULT_Z_SCORE,
    NotFiniteError,
    init_hist,
    init_threshold,
    pre_qat,
    release_hist,
    share_histograms,
    stat_collect,
)
from ai8xtools.layers.rounding import Grid
from ai8xtools.layers.scales import apply_scales, settle_scales
from ai8xtools.layers.single_bits import keep_single_bits_in_reach, start_single_bits
from ai8xtools.layers.steps import kind_of
from ai8xtools.layers.tracing import Node, NotTraceableError, graph_of, torch_class
from ai8xtools.layers.training_steps import (
    fuse_bn_layers,
    has_thresholds,
    initiate_qat,
    update_model,
    update_optimizer,
    use_ranges,
    use_thresholds,
)
from ai8xtools.layers.weight_ranges import (
    fit_ranges,
    follow_ranges,
    refit_ranges,
    settle_quantiles,
)

if TYPE_CHECKING:  # the classes of FUSED_NAMES are made when this runs

    def __getattr__(name: str) -> Any: ...


globals().update(NAMED_CLASSES)
globals().update(DEVICE_CLASSES)
Device = Dev  # what the vendor's module calls it


class _Ai8x(types.ModuleType):
    """This module; `dev` is the chip that layers are made for, None before `set_device`."""

    @property
    def dev(self) -> Dev | None:
        return chips.chosen

    @dev.setter
    def dev(self, chip: Dev | None) -> None:
        chips.chosen = chip


sys.modules[__name__].__class__ = _Ai8x
