"""The composition behind all layers, in three arithmetics.

Source: docs/layers.md, "The steps of a layer".
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any, Literal, assert_never

import torch
from torch import Tensor, nn

from ai8xtools.layers.chips import chosen_chip, require
from ai8xtools.layers.generations import (
    ADDED,
    BOOKKEEPING,
    CLAMP,
    FINAL_SCALE,
    RANGE,
    THRESHOLD,
    exponent,
)
from ai8xtools.layers.limits import check
from ai8xtools.layers.parts import Activation, PoolingKind
from ai8xtools.layers.pooling import pooled
from ai8xtools.layers.quantiles import quantile
from ai8xtools.layers.rounding import Grid
from ai8xtools.layers.steps import STEPS, Step, operate, run_stepwise


class QuantizationAwareModule(nn.Module):
    """Pooling, operator, batch normalization, shift, activation, quantization.

    `pool`, `op` and `bn` are modules or None; without `op` the layer only pools. `wide` layers
    output the accumulator: they are not shifted, and their clamp is wide. The bookkeeping
    parameters (`output_shift`, `weight_bits`, ...) have shape (1,), are not trained, and travel
    with the checkpoint; `set_functions` derives the arithmetic from them. Every step is also an
    attribute, a module that may be replaced (see `layers.steps`). `rectifies` and
    `takes_magnitudes` say what the activation does.

    Layers of the second generation of QAT (`use_thresholds`, or loading such a checkpoint) have
    `activation_threshold` and `final_scale`, exponents of powers of two of shape (), and
    `clamp_activation`: they are not limited before QAT, and their output is divided by
    2^activation_threshold. Layers with a range of their own (`use_range`) have `range_exponent`, of
    shape () as well: weights lie within -2^range_exponent..2^range_exponent, and a bias of 8 bits
    in steps of the weights need not.

    Raises AssertionError for a combination of `weight_bits`, `bias_bits` and
    `quantize_activation` other than (None, None, False) or (1|2|4|8, 1|2|4|8, True).
    """

    activate = Step()
    quantize, clamp = Step(), Step()
    quantize_pool, clamp_pool = Step(), Step()
    quantize_weight, clamp_weight = Step(), Step()
    quantize_bias, clamp_bias = Step(), Step()
    calc_out_shift, calc_weight_scale, calc_out_scale = Step(), Step(), Step()
    scale = Step()

    def __init__(
        self, pooling: str | None = None, activation: str | None = None, wide: bool = False,
        weight_bits: int | None = None, bias_bits: int | None = None,
        quantize_activation: bool = False, pool: nn.Module | None = None,
        op: nn.Module | None = None, bn: nn.Module | None = None, shift_quantile: float = 1.0,
        clamp_activation: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.chip = chosen_chip()
        check([("activation", activation, (None, *self.chip.limits.activations))], "")
        check([("activation", activation, (None,))] if wide else [], "wide layer: ")
        self.pooling = None if pooling is None else PoolingKind(pooling)
        self.activation = None if activation is None else Activation(activation)
        self.wide = wide
        self.simulate = self.chip.simulate
        self.made_steps: dict[str, nn.Module] = {}
        self._replaced = False
        self.applies_final_scale, self.delivered_factor = True, 1.0
        self.output_shift = _constant(0.0)
        self.init_module(
            weight_bits, bias_bits, quantize_activation, clamp_activation, shift_quantile
        )
        self.pool: Any = pool
        self.op: Any = op
        self.bn: Any = bn
        self.register_load_state_dict_post_hook(_refresh_after_load)

    def init_module(
        self,
        weight_bits: int | None,
        bias_bits: int | None,
        quantize_activation: bool,
        clamp_activation: bool | float,
        shift_quantile: float | None = None,
        export: bool = False,
    ) -> None:
        """Set the bookkeeping parameters anew (except shift, threshold, scale) and the arithmetic.

        The weights have no range of their own afterwards (see `use_range`).
        With `export` only `weight_bits` changes. `clamp_activation` is for layers of the second
        generation; programs of the first leave it out, (…, shift_quantile, export), which is
        understood as well.
        """
        if not isinstance(clamp_activation, bool):
            export = bool(shift_quantile)
            clamp_activation, shift_quantile = quantize_activation, clamp_activation
        widths = (1, 2, 4, 8)
        quantized = weight_bits in widths and bias_bits in widths and quantize_activation
        unknown = weight_bits is None and bias_bits is None and not quantize_activation
        require(
            quantized or unknown,
            f"weight_bits={weight_bits}, bias_bits={bias_bits}, "
            f"quantize_activation={quantize_activation}: "
            "give both widths (1, 2, 4 or 8) and True, or None, None and False",
        )
        place = self.output_shift.device
        self.weight_bits = _constant(weight_bits or 0, place)
        if export:
            return
        self.bias_bits = _constant(bias_bits or 0, place)
        self.quantize_activation = _constant(quantized, place)
        self.adjust_output_shift = _constant(quantized and not self.simulate, place)
        quantile = 1.0 if shift_quantile is None else float(shift_quantile)
        self.shift_quantile = _constant(quantile, place)
        self._parameters.pop(RANGE, None)
        if self.has_thresholds:
            self.clamp_activation = _constant(bool(clamp_activation), place)
        self.set_functions()

    @property
    def has_thresholds(self) -> bool:
        """Whether the layer is of the second generation of QAT."""
        return THRESHOLD in self._parameters

    def use_thresholds(self, enabled: bool = True) -> None:
        """Make the layer one of the second generation of QAT, or with False of the first."""
        if enabled == self.has_thresholds:
            return
        held: dict[str, nn.Parameter | None] = dict(self._parameters)
        if enabled:
            place = self.output_shift.device
            held |= {THRESHOLD: exponent(0.0, place), FINAL_SCALE: exponent(0.0, place)}
            held[CLAMP] = _constant(bool(self.quantize_activation.item()), place)
        self._parameters.clear()
        for name in BOOKKEEPING:
            if name in held and (enabled or name not in ADDED):
                self._parameters[name] = held[name]
        self.set_functions()

    @property
    def has_range(self) -> bool:
        """Whether the range of the weights is stored, not derived from them."""
        return RANGE in self._parameters

    def use_range(self, range_exponent: float | None) -> None:
        """Let weights have the range 2^range_exponent and the bias 8 bits, until the next change.

        With None the range follows the magnitudes of weights and bias in every forward pass.
        """
        place = self.output_shift.device
        if range_exponent is None:
            self._parameters.pop(RANGE, None)
        else:
            self._parameters[RANGE] = exponent(float(range_exponent), place)
            self.bias_bits.data.fill_(_BIAS_BITS)
        self.set_functions()

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
        """Become of the generation of the file that is loaded."""
        self.use_thresholds(f"{prefix}{THRESHOLD}" in state_dict)
        if self.has_range != (f"{prefix}{RANGE}" in state_dict):
            self.use_range(None if self.has_range else 0)
        super()._load_from_state_dict(state_dict, prefix, *args)

    def set_functions(self) -> None:
        """Derive the arithmetic from the bookkeeping parameters.

        Loading a state dictionary calls this; call it (or `update_model`) after changing the
        parameters by hand. Steps that were replaced are as before, except `activate`.
        """
        for name in STEPS - {"activate"}:
            self._modules.pop(name, None)
            self.__dict__.pop(name, None)
        self.made_steps = {}
        self._replaced = "activate" in self._modules or "activate" in self.__dict__
        bits, bias_bits = int(self.weight_bits.item()), int(self.bias_bits.item())
        rounded = bool(self.quantize_activation.item())
        self._automatic_shift = bool(self.adjust_output_shift.item()) and not self.simulate
        self._quantile = float(self.shift_quantile.item())
        later = self.has_thresholds
        self._threshold = float(self.activation_threshold.item()) if later else 0.0
        self._own_range = float(self.range_exponent.item()) if self.has_range else None
        own = None if self.simulate or bits != 1 else self._own_range
        self.single_bit_step = None if own is None else 2.0**own
        self._bn_factor = 1.0 if later else 0.25
        self._final_factor = 2.0 ** float(self.final_scale.item()) if later else 1.0
        clamped = not later or self.simulate or bool(self.clamp_activation.item())
        self._fixed_scale = self._scale_of(float(self.output_shift.item()))
        self.rectifies, self.takes_magnitudes = _activation_steps(self.activation)
        self._pool_grid = self._grid_of_pool(rounded, clamped)
        self._output_grid = self._grid_of_output(rounded, bits, clamped)
        if self.simulate:
            self._weight_rounding: _Rounding | None = _Rounding(
                2.0 ** (8 - bits), _WHOLE_NUMBERS, 1
            )
            self._bias_rounding: _Rounding | None = _Rounding(4.0 ** (8 - bits), _WHOLE_NUMBERS, 1)
        else:
            self._weight_rounding = _signed_fraction(bits) if bits else None
            self._bias_rounding = _signed_fraction(bias_bits) if bias_bits else None
            if bits and self.has_range:
                self._bias_rounding = _wide_bias(bits)

    def _scale_of(self, shift: float) -> float:
        """Return the factor on the result for an output shift that is known."""
        if self.simulate or not self.has_thresholds:
            return 2.0**shift
        return float(2.0 ** max(-15.0, min(15.0, shift - self._threshold)))

    def _grid_of_pool(self, rounded: bool, clamped: bool) -> Grid | None:
        """Return what follows pooling: averages are clamped, and rounded as the chip does."""
        match self.pooling:
            case None | PoolingKind.MAX:
                return None
            case PoolingKind.AVERAGE:
                pass
            case _:
                assert_never(self.pooling)
        rounding: Literal["half even", "toward zero"] = (
            "half even" if self.chip.round_avg else "toward zero"
        )
        if self.simulate:
            return Grid(rounding, -128, 127)
        low, high = (-128.0, 127.0) if clamped else _UNLIMITED
        if rounded:
            return Grid(rounding, low, high, steps=128, unit=1 / 128)
        return Grid("none", low / 128, high / 128) if clamped else None

    def _grid_of_output(self, rounded: bool, bits: int, clamped: bool) -> Grid:
        """Return what follows the operator: rectification, rounding and the clamp, in one."""
        if self.wide:
            limit = 2.0 ** (self.chip.FULL_ACC_BITS - (1 if self.simulate else 15))
            low, high = -limit, limit - 1
            if self.has_thresholds and not self.simulate:
                high = limit
            steps = 2.0 ** (bits - 8 if self.simulate else 14)
        else:
            low, high = (-128.0, 127.0) if self.simulate else (-1.0, 127 / 128)
            steps = 1 / 128 if self.simulate else 128.0
        low, high = (low, high) if clamped else _UNLIMITED
        low = 0.0 if self.rectifies else low
        if self.simulate:
            return Grid("half up", low, high, steps, positive=self.rectifies)
        if rounded:
            return Grid("half up", low * steps, high * steps, steps, 1 / steps, self.rectifies)
        return Grid("none", low, high, positive=self.rectifies)

    def scales(self) -> tuple[Tensor | float, Tensor | float]:
        """Return the factors 2^-s on weights and bias and 2^s on the result.

        In quantization-aware training s follows the weights in each forward pass, so that they
        fill the range of the integers, unless they have a range of their own; otherwise it is
        `output_shift`, and weights stay as they are.
        """
        if not self._automatic_shift:
            return 1.0, self._fixed_scale
        if self._own_range is not None:
            up = max(-15.0, min(15.0, self._own_range - self._threshold))
            return 2.0**-self._own_range, 2.0**up
        with torch.no_grad():
            magnitude = self._magnitude()
            up_exponent = (1 / magnitude).log2_().floor_().clamp_(-15, 15)
            shift = -up_exponent
            if self._threshold:
                shift = (shift - self._threshold).clamp_(-15, 15)
            return torch.exp2(up_exponent), torch.exp2(shift)

    def _magnitude(self) -> Tensor:
        """Return the `shift_quantile` quantile of the magnitudes of weights and bias."""
        parameters = [p.detach().flatten() for p in (self.op.weight, self.op.bias) if p is not None]
        if self._quantile == 1.0:  # the maximum: no need to build one long tensor
            extremes = [torch.linalg.vector_norm(p, math.inf) for p in parameters]
            return extremes[0] if len(extremes) == 1 else torch.maximum(*extremes)
        return quantile(torch.cat(parameters).abs_(), self._quantile)

    def forward(self, x: Tensor) -> Tensor:
        """Run the layer on a batch; channels are the second axis.

        The result is scaled by 2^s. Without batch normalization the scale is moved to the weights:
        multiplying by a power of two commutes with every float32 rounding of the sum of products,
        and weights are far smaller than data.
        """
        if self._replaced:
            return run_stepwise(self, x)
        if self.pool is not None:
            x = pooled(self.pool, x)
            if self._pool_grid is not None:
                x = self._pool_grid(x, overwrite=True)
        if self.op is None:
            return self.finished(x)
        down, up = self.scales()
        if self.wide:  # the hardware does not shift 32-bit results
            up = 1.0
        if self.bn is None:
            x = self._operate(x, down, up)
        else:
            x = self.bn(self._operate(x, down, 1.0)).mul_(self._bn_factor * up)
        if self.takes_magnitudes:
            x = (x.floor() if self.simulate else x).abs()  # the shift rounds down first
        return self.finished(self._output_grid(x, overwrite=True))

    def finished(self, x: Tensor) -> Tensor:
        """Return a result as the layer delivers it, multiplied again where the network ends."""
        factor = self._final_factor if self.applies_final_scale else 1.0
        return _scaled(x, factor * self.delivered_factor)

    def _operate(self, x: Tensor, down: Tensor | float, up: Tensor | float) -> Tensor:
        """Apply the operator with the parameters as the accelerator holds them, times `up`."""
        weight = as_held(self.op.weight, self._weight_rounding, down, up)
        bias = self.op.bias
        if bias is not None:
            bias = as_held(bias, self._bias_rounding, down, up)
        return operate(self.op, x, weight, bias)

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name in STEPS:
            self._replaced = True


def _activation_steps(activation: Activation | None) -> tuple[bool, bool]:
    """Return whether results are clamped at 0, and whether absolute values are taken first."""
    match activation:
        case None:
            return False, False
        case Activation.RELU:
            return True, False
        case Activation.ABS:
            return False, True
        case _:
            assert_never(activation)


def _constant(value: float | int | bool, device: torch.device | None = None) -> nn.Parameter:
    """Return an untrained parameter of shape (1,) with the dtype that follows from `value`."""
    return nn.Parameter(torch.tensor([value], device=device), requires_grad=False)


def _scaled(x: Tensor, factor: Tensor | float) -> Tensor:
    """Return x * factor, and x itself for the number 1."""
    return x if isinstance(factor, float) and factor == 1.0 else x * factor


@dataclass(frozen=True, slots=True)
class _Rounding:
    """How weights or biases are rounded: times `steps`, to integers of `grid`, times `unit`."""

    steps: float
    grid: Grid
    unit: float


_UNLIMITED = (-math.inf, math.inf)
_BIAS_BITS = 8  # what the accelerator has, whatever the width of the weights
_WHOLE_NUMBERS = Grid("half up")


@functools.cache
def _signed_fraction(bits: int) -> _Rounding:
    """Return the rounding to fractions in [-1, 1) of `bits` bits."""
    steps = 2.0 ** (bits - 1)
    return _Rounding(steps, Grid("half up", -steps, steps - 1), 1 / steps)


@functools.cache
def _wide_bias(bits: int) -> _Rounding:
    """Return the rounding to 8-bit multiples of the step of weights of `bits` bits."""
    steps, limit = 2.0 ** (bits - 1), 2.0 ** (_BIAS_BITS - 1)
    return _Rounding(steps, Grid("half up", -limit, limit - 1), 1 / steps)


def as_held(
    parameter: Tensor, rounding: _Rounding | None, down: Tensor | float, up: Tensor | float
) -> Tensor:
    """Return round(parameter * down) * up, unrounded when `rounding` is None."""
    if rounding is None:
        return _scaled(parameter, down * up)
    return _scaled(rounding.grid(_scaled(parameter, down * rounding.steps)), up * rounding.unit)


def _refresh_after_load(module: nn.Module, _incompatible_keys: Any) -> None:
    """Follow a loaded state dictionary."""
    assert isinstance(module, QuantizationAwareModule)
    module.set_functions()
