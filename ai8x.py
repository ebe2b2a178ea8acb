"""Layers for PyTorch that compute exactly as the MAX78000 and MAX78002 accelerators do.

Every layer is one composition, `QuantizationAwareModule`: pooling, operator, batch normalization,
output shift, activation, quantization, in this order. The public names (`FusedMaxPoolConv2dReLU`
and its relatives) say which parts are present and are generated from the list `FUSED_NAMES`.

A layer works in one of three arithmetics (spec/training.md 1.2):

- float: values are clamped to [-1, 127/128], nothing is rounded;
- quantization-aware training (QAT), after `initiate_qat`: weights and activations are rounded in
  each forward pass to what the accelerator can hold, gradients pass the rounding unchanged;
- simulation, after `set_device(..., simulate=True, ...)`: tensors hold the accelerator's integers,
  weights come from quantize.py.

Call `set_device` before the first layer is made.
"""

from __future__ import annotations

import functools
import inspect
import math
import re
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from device import CHIPS

# Chips ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Dev:
    """What a chip can do, and the arithmetic chosen for this run (spec/training.md 1.1)."""

    device: int
    name: str
    WEIGHT_DEPTH: int
    MAX_CHANNELS: int
    MAX_POOL: int
    MAX_AVG_POOL: int
    MAX_POOL_DILATION: int
    simulate: bool = False
    round_avg: bool = False
    WEIGHT_BITS: int = 8
    DATA_BITS: int = 8
    ACTIVATION_BITS: int = 8
    FULL_ACC_BITS: int = 30
    FC_ACTIVATION_BITS: int = 16
    WIDE_LAYER_RESOLUTION_BITS: int = 15
    WEIGHT_INPUTS: int = 256


_CHIPS: dict[int, dict[str, Any]] = {
    84: {
        "name": "AI84",
        "FULL_ACC_BITS": 8,
        "WIDE_LAYER_RESOLUTION_BITS": 8,
        "WEIGHT_INPUTS": 64,
        "WEIGHT_DEPTH": 128,
        "MAX_CHANNELS": 1024,
        "MAX_POOL": 16,
        "MAX_AVG_POOL": 4,
        "MAX_POOL_DILATION": 1,
    },
} | {
    chip.die: {
        "name": chip.name,
        "WEIGHT_DEPTH": chip.kernel_columns_first,
        "MAX_CHANNELS": chip.max_channels,
        "MAX_POOL": chip.max_pool,
        "MAX_AVG_POOL": chip.max_pool,
        "MAX_POOL_DILATION": chip.max_pool_dilation,
    }
    for chip in CHIPS
}

dev: Dev | None = None


def set_device(device: int, simulate: bool, round_avg: bool, verbose: bool = True) -> None:
    """Choose the chip (84, 85 or 87), integer simulation and the rounding of average pooling.

    Layers made before keep their arithmetic. Raises ValueError for another `device` and
    AssertionError for `round_avg` on AI84.
    """
    global dev
    if device not in _CHIPS:
        raise ValueError(f"device {device} is unknown; choose 84, 85 (MAX78000) or 87 (MAX78002)")
    _require(device != 84 or not round_avg, "AI84 cannot round in average pooling")
    dev = Dev(device=device, simulate=simulate, round_avg=round_avg, **_CHIPS[device])
    if verbose:
        print(f"Configuring device: {dev.name}, simulate={simulate}.")


def _device() -> Dev:
    """Return the chip chosen by `set_device`."""
    _require(dev is not None, "call ai8x.set_device(device, simulate, round_avg) first")
    assert dev is not None
    return dev


def _require(condition: bool, message: str) -> None:
    """Raise AssertionError with `message` unless `condition` holds (also under python -O)."""
    if not condition:
        raise AssertionError(message)


# Rounding ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Grid:
    """The values a tensor can take: whole numbers `low`..`high` of steps.

    Calling it moves a tensor there: x becomes clamp(round(x * steps), low, high) * unit, or with
    rounding "none" clamp(x, low, high). "half up" is floor(x + 0.5). The factors are powers of two,
    so that only the rounding is inexact. The gradient passes unchanged except where the clamp acts.
    `positive` marks a rectified output: `low` is 0 and the gradient is that of ReLU.
    """

    rounding: Literal["none", "half up", "half even", "toward zero"]
    low: float = -math.inf
    high: float = math.inf
    steps: float = 1.0
    unit: float = 1.0
    positive: bool = False

    def __call__(self, x: Tensor, overwrite: bool = False) -> Tensor:
        """Return `x` moved onto the grid, differentiably.

        With `overwrite` the memory of `x` may be used again when no gradient needs its values.
        """
        if torch.is_grad_enabled() and x.requires_grad:
            return _Snap.apply(x, self)
        return self.snap(x, x if overwrite else None)

    def snap(self, x: Tensor, out: Tensor | None = None) -> Tensor:
        """Return `x` moved onto the grid as a new tensor, or in `out`; only the values count."""
        if self.rounding == "none":
            return torch.clamp(x, self.low, self.high, out=out)
        if self.rounding == "half up" and self.steps == 1.0:
            y = torch.add(x, 0.5, out=out).floor_()
        elif self.rounding == "half up":
            y = torch.mul(x, self.steps, out=out).add_(0.5).floor_()
        else:
            y = torch.mul(x, self.steps, out=out)
            y = y.round_() if self.rounding == "half even" else y.trunc_()
        if self.high < math.inf:
            y.clamp_(self.low, self.high)
        return y if self.unit == 1.0 else y.mul_(self.unit)


@functools.cache
def _window(grid: Grid) -> tuple[float, float]:
    """Return the open interval of inputs whose gradient passes a grid.

    These are the inputs that the clamp leaves alone after rounding. A closed end is expressed as
    the next float32 beyond it.
    """
    if grid.rounding == "none":
        low, high = _beyond(grid.low, -math.inf), _beyond(grid.high, math.inf)
    elif grid.rounding == "toward zero":
        low, high = (grid.low - 1) / grid.steps, (grid.high + 1) / grid.steps
    else:
        low = _beyond((grid.low - 0.5) / grid.steps, -math.inf)
        high = (grid.high + 0.5) / grid.steps
    return (0.0 if grid.positive else low), high


def _beyond(value: float, direction: float) -> float:
    """Return the float32 next to `value` in `direction`."""
    if math.isinf(value):
        return value
    return float(torch.nextafter(torch.tensor(value), torch.tensor(direction)))


class _Snap(torch.autograd.Function):
    """Put a tensor on a grid.

    One pass over the saved input gives the gradient: no masks, no intermediate results are kept.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, grid: Grid) -> Tensor:
        ctx.save_for_backward(x)
        ctx.grid = grid
        return grid.snap(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (x,) = ctx.saved_tensors
        return torch.ops.aten.hardtanh_backward(gradient, x, *_window(ctx.grid)), None


def quantile(x: Tensor, q: float, method: Literal["linear", "lower"] = "linear") -> Tensor:
    """Return the `q` quantile of all values of `x`, a scalar tensor (spec/training.md 1.4).

    Sample k of N stands at (k + 0.5)/N when the neighbours are chosen, at k/(N-1) when their
    distance is interpolated, in float32 throughout; this is what checkpoints were trained with and
    differs from torch.quantile. `lower` returns the lower neighbour.
    """
    values = x.flatten()
    last = values.numel() - 1
    if q == 1.0 or last == 0:
        return values.max()
    index, fraction = _quantile_position(last + 1, q)
    below = values.kthvalue(index + 1).values
    if method == "lower":
        return below
    return below + fraction * (values.kthvalue(index + 2).values - below)


@functools.lru_cache(maxsize=1024)
def _quantile_position(count: int, q: float) -> tuple[int, float]:
    """Return the lower neighbour's rank and the (float32) fraction of the way to the next."""
    places = torch.linspace(1 / (2 * count), (2 * count - 1) / (2 * count), count)
    q32 = torch.tensor(q, dtype=torch.float32)
    index = int((places <= q32).sum().clamp(1, count - 1)) - 1
    return index, float(q32 * (count - 1) - index)


# The composition --------------------------------------------------------------------------------


class QuantizationAwareModule(nn.Module):
    """Pooling, operator, batch normalization, shift, activation, quantization (1.3, 1.4).

    `pool`, `op` and `bn` are modules or None; without `op` the layer only pools. `wide` layers
    deliver the accumulator: they are not shifted and hardly clamped. The bookkeeping parameters
    (`output_shift`, `weight_bits`, ...) have shape (1,), are not trained, and travel with the
    checkpoint; `set_functions` derives the arithmetic from them.

    Raises AssertionError for a combination of `weight_bits`, `bias_bits` and
    `quantize_activation` other than (None, None, False) or (1|2|4|8, 1|2|4|8, True).
    """

    def __init__(
        self, pooling: str | None = None, activation: str | None = None, wide: bool = False,
        weight_bits: int | None = None, bias_bits: int | None = None,
        quantize_activation: bool = False, pool: nn.Module | None = None,
        op: nn.Module | None = None, bn: nn.Module | None = None, shift_quantile: float = 1.0,
    ) -> None:  # fmt: skip
        super().__init__()
        activations = (None, "ReLU") if _device().device == 84 else (None, "ReLU", "Abs")
        _check([("activation", activation, activations)], "")
        _check([("activation", activation, (None,))] if wide else [], "wide layer: ")
        self.pooling = pooling
        self.activation = activation
        self.wide = wide
        self.simulate = _device().simulate
        self.round_avg = _device().round_avg
        self.accumulator_bits = _device().FULL_ACC_BITS
        self.output_shift = _constant(0.0)
        self.init_module(weight_bits, bias_bits, quantize_activation, shift_quantile)
        self.pool: Any = pool
        self.op: Any = op
        self.bn: Any = bn
        self.register_load_state_dict_post_hook(_refresh_after_load)

    def init_module(
        self,
        weight_bits: int | None,
        bias_bits: int | None,
        quantize_activation: bool,
        shift_quantile: float,
    ) -> None:
        """Set the bookkeeping parameters anew (except `output_shift`) and the arithmetic."""
        widths = (1, 2, 4, 8)
        quantized = weight_bits in widths and bias_bits in widths and quantize_activation
        unknown = weight_bits is None and bias_bits is None and not quantize_activation
        _require(
            quantized or unknown,
            f"weight_bits={weight_bits}, bias_bits={bias_bits}, "
            f"quantize_activation={quantize_activation}: "
            "give both widths (1, 2, 4 or 8) and True, or None, None and False",
        )
        place = self.output_shift.device
        self.weight_bits = _constant(weight_bits or 0, place)
        self.bias_bits = _constant(bias_bits or 0, place)
        self.quantize_activation = _constant(quantized, place)
        self.adjust_output_shift = _constant(quantized and not self.simulate, place)
        self.shift_quantile = _constant(float(shift_quantile), place)
        self.set_functions()

    def set_functions(self) -> None:
        """Derive the arithmetic from the bookkeeping parameters.

        Loading a state dictionary calls this; call it (or `update_model`) after changing the
        parameters by hand.
        """
        bits, bias_bits = int(self.weight_bits.item()), int(self.bias_bits.item())
        rounded = bool(self.quantize_activation.item())
        self._automatic_shift = bool(self.adjust_output_shift.item()) and not self.simulate
        self._quantile = float(self.shift_quantile.item())
        self._fixed_scale = 2.0 ** float(self.output_shift.item())
        self._pool_grid = self._grid_of_pool(rounded)
        self._output_grid = self._grid_of_output(rounded, bits)
        if self.simulate:
            self._weight_rounding: _Rounding | None = _Rounding(
                2.0 ** (8 - bits), _WHOLE_NUMBERS, 1
            )
            self._bias_rounding: _Rounding | None = _Rounding(4.0 ** (8 - bits), _WHOLE_NUMBERS, 1)
        else:
            self._weight_rounding = _signed_fraction(bits) if bits else None
            self._bias_rounding = _signed_fraction(bias_bits) if bias_bits else None

    def _grid_of_pool(self, rounded: bool) -> Grid | None:
        """Return what follows pooling: averages are clamped, and rounded as the chip does."""
        if self.pooling != "Avg":
            return None
        rounding: Literal["half even", "toward zero"] = (
            "half even" if self.round_avg else "toward zero"
        )
        if self.simulate:
            return Grid(rounding, -128, 127)
        if rounded:
            return Grid(rounding, -128, 127, steps=128, unit=1 / 128)
        return Grid("none", -1, 127 / 128)

    def _grid_of_output(self, rounded: bool, bits: int) -> Grid:
        """Return what follows the operator: rectification, rounding and the clamp, in one."""
        relu = self.activation == "ReLU"
        if self.wide:
            limit = 2.0 ** (self.accumulator_bits - (1 if self.simulate else 15))
            low, high = -limit, limit - 1
            steps = 2.0 ** (bits - 8 if self.simulate else 14)
        else:
            low, high = (-128.0, 127.0) if self.simulate else (-1.0, 127 / 128)
            steps = 1 / 128 if self.simulate else 128.0
        low = 0.0 if relu else low
        if self.simulate:
            return Grid("half up", low, high, steps, positive=relu)
        if rounded:
            return Grid("half up", low * steps, high * steps, steps, 1 / steps, relu)
        return Grid("none", low, high, positive=relu)

    def scales(self) -> tuple[Tensor | float, Tensor | float]:
        """Return the factors 2^-s on weights and bias and 2^s on the result.

        In quantization-aware training s follows the weights in each forward pass, so that they
        fill the range of the integers; otherwise it is `output_shift`, and weights stay as they
        are.
        """
        if not self._automatic_shift:
            return 1.0, self._fixed_scale
        with torch.no_grad():
            magnitude = self._magnitude()
            up_exponent = (1 / magnitude).log2_().floor_().clamp_(-15, 15)
            return torch.exp2(up_exponent), torch.exp2(-up_exponent)

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
        if self.pool is not None:
            x = self.pool(x)
            if self._pool_grid is not None:
                x = self._pool_grid(x, overwrite=True)
        if self.op is None:
            return x
        down, up = self.scales()
        if self.wide:  # the hardware does not shift what it delivers with 32 bits
            up = 1.0
        if self.bn is None:
            x = self._operate(x, down, up)
        else:
            x = self.bn(self._operate(x, down, 1.0)).mul_(0.25 * up)
        if self.activation == "Abs":
            x = (x.floor() if self.simulate else x).abs()  # the shift rounds down before it
        return self._output_grid(x, overwrite=True)

    def _operate(self, x: Tensor, down: Tensor | float, up: Tensor | float) -> Tensor:
        """Apply the operator with the parameters as the accelerator holds them, times `up`."""
        op = self.op
        weight = _as_held(op.weight, self._weight_rounding, down, up)
        bias = None if op.bias is None else _as_held(op.bias, self._bias_rounding, down, up)
        if isinstance(op, nn.Linear):
            return F.linear(x, weight, bias)
        if isinstance(op, nn.ConvTranspose2d):
            return F.conv_transpose2d(
                x, weight, bias, op.stride, op.padding, op.output_padding, op.groups, op.dilation
            )
        function = F.conv2d if isinstance(op, nn.Conv2d) else F.conv1d
        return function(x, weight, bias, op.stride, op.padding, op.dilation, op.groups)


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


_WHOLE_NUMBERS = Grid("half up")


@functools.cache
def _signed_fraction(bits: int) -> _Rounding:
    """Return the rounding to fractions in [-1, 1) of `bits` bits."""
    steps = 2.0 ** (bits - 1)
    return _Rounding(steps, Grid("half up", -steps, steps - 1), 1 / steps)


def _as_held(
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


# Layers with an operator ------------------------------------------------------------------------


class Conv1d(QuantizationAwareModule):
    """One-dimensional convolution: input [N, in_channels, L], output [N, out_channels, L'].

    `pooling` ("Max", "Avg") comes first; `batchnorm` is "Affine" or "NoAffine" and divides by 4;
    `kernel_size` None makes a layer that only pools; `pool_stride` None is `pool_size`. Further
    keywords are those of `QuantizationAwareModule`. Exceeding a limit of the chip raises
    AssertionError (spec/training.md 1.6).
    """

    operators: ClassVar = {"Conv1d": nn.Conv1d}
    pools: ClassVar = {"Max": nn.MaxPool1d, "Avg": nn.AvgPool1d}
    batch_normalization: ClassVar = nn.BatchNorm1d

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Size | None,
        pooling: str | None = None, pool_size: Size = 2, pool_stride: Size | None = 2,
        pool_dilation: int = 1, stride: int = 1, padding: int = 0, dilation: int = 1,
        bias: bool = True, *, op: str = "Conv1d", batchnorm: str | None = None, groups: int = 1,
        eps: float = 1e-05, momentum: float = 0.05, **kwargs: Any,
    ) -> None:  # fmt: skip
        if op not in self.operators:
            raise ValueError(f"op={op!r}: use {' or '.join(self.operators)}")
        if not isinstance(pool_size, int) and len(pool_size) != 2:
            raise ValueError(f"pool_size={pool_size}: give one integer or two")
        step = pool_size if pool_stride is None else _one(pool_stride, "pool_stride")
        kernel = None if kernel_size is None else _one(kernel_size, "kernel_size")
        operator = Operator(
            op, in_channels, kernel, stride, padding, dilation, groups, batchnorm, bool(bias)
        )
        _check(_operator_limits(operator, pooling), f"{type(self).__name__}: ")
        layer = bn = pool = None
        if pooling is not None:
            _check(_pool_limits(pooling, pool_size, step, pool_dilation), f"{pooling} pooling: ")
            extra = {"dilation": pool_dilation} if pooling == "Max" else {}
            pool = self.pools[pooling](pool_size, step, padding=0, **extra)
        if kernel is not None:
            extra = {"output_padding": 1} if op == "ConvTranspose2d" else {}
            layer = self.operators[op](
                in_channels, out_channels, kernel, stride, padding,
                dilation=dilation, groups=groups, bias=bool(bias), **extra,
            )  # fmt: skip
            if batchnorm:
                affine = batchnorm == "Affine"
                bn = self.batch_normalization(out_channels, eps, momentum, affine)
        super().__init__(pooling, pool=pool, op=layer, bn=bn, **kwargs)


class Conv2d(Conv1d):
    """Two-dimensional convolution, or with op="ConvTranspose2d" the transposed one of stride 2.

    Input [N, in_channels, H, W], output [N, out_channels, H', W']. Parameters as in `Conv1d`, with
    `op` in the fourth place.
    """

    operators: ClassVar = {"Conv2d": nn.Conv2d, "ConvTranspose2d": nn.ConvTranspose2d}
    pools: ClassVar = {"Max": nn.MaxPool2d, "Avg": nn.AvgPool2d}
    batch_normalization: ClassVar = nn.BatchNorm2d

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Size | None, op: str = "Conv2d",
        *args: Any, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(in_channels, out_channels, kernel_size, *args, op=op, **kwargs)


class Linear(QuantizationAwareModule):
    """Fully connected layer: input [N, in_features], output [N, out_features].

    Without bias unless `bias` is True; at most 1024 features each, otherwise AssertionError.
    """

    def __init__(
        self, in_features: int, out_features: int, pooling: str | None = None,
        bias: bool | None = None, *, batchnorm: str | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        _require(_device().device != 84, "Linear: AI84 has no fully connected layers")
        features = range(1, _device().MAX_CHANNELS + 1)
        limits: list[Limit] = [
            ("pooling", pooling, (None,)),
            ("batchnorm", batchnorm, (None,)),
            ("in_features", in_features, features),
            ("out_features", out_features, features),
        ]
        _check(limits, "Linear: ")
        super().__init__(op=nn.Linear(in_features, out_features, bias is True), **kwargs)


# Limits of the operators ------------------------------------------------------------------------

Size = int | tuple[int, int]
Limit = tuple[str, Any, Container[Any]]  # name of a parameter, its value, what is allowed


@dataclass(frozen=True, slots=True)
class Operator:
    """A convolution as far as its limits go; `kernel` None: there is none."""

    op: str
    in_channels: int
    kernel: int | None
    stride: int
    padding: int
    dilation: int
    groups: int
    batchnorm: str | None
    bias: bool


def _operator_limits(o: Operator, pooling: str | None) -> Iterator[Limit]:
    """Yield the limits of a convolution (spec/training.md 1.6)."""
    chip = _device().device
    yield "pooling", pooling, (None, "Max", "Avg")
    yield "groups", o.groups, range(1, 2) if chip != 87 else range(1, 1 << 16)
    yield "batchnorm", o.batchnorm, (None, "Affine", "NoAffine")
    if o.batchnorm:  # True is the only value allowed; --use-bias sets it in most models
        yield "batchnorm needs --use-bias or bias", o.bias, (True,)
    if o.kernel is None:
        return
    if o.op == "Conv1d":
        yield "kernel_size", o.kernel, (9,) if chip == 84 else range(1, 10)
        yield "stride", o.stride, (3,) if chip == 84 and not pooling else (1,)
        yield "padding", o.padding, (0, 3, 6) if chip == 84 else (0, 1, 2)
        if chip == 87 and o.in_channels > 64:
            yield "padding with more than 64 channels", o.padding, (0,)
        if o.padding or o.kernel > 3:
            yield "(kernel_size-1)*dilation", (o.kernel - 1) * o.dilation, range(9)
        return
    if o.op == "ConvTranspose2d":
        yield "chip", _device().name, tuple(c.name for c in CHIPS)
        yield "stride", o.stride, (2,)
    else:
        yield "stride", o.stride, (1,) if pooling else (1, 2, 3)
    yield "kernel_size", o.kernel, (3,) if chip == 84 else (1, 3)
    yield "padding", o.padding, (0, 1, 2)
    yield "dilation", o.dilation, (1,)


def _pool_limits(pooling: str, size: Size, stride: Size, dilation: int) -> Iterator[Limit]:
    """Yield the limits of pooling (spec/training.md 1.6)."""
    chip = _device()
    extents = (size,) if isinstance(size, int) else size
    largest = chip.MAX_AVG_POOL if pooling == "Avg" else chip.MAX_POOL
    sizes = range(2, largest + 1, 2) if chip.device == 84 else range(1, largest + 1)
    for extent in extents:
        yield "pool_size", extent, sizes
    for step in (stride,) if isinstance(stride, int) else stride:
        yield "pool_stride", step, range(1, largest + 1)
    dilations = range(1, chip.MAX_POOL_DILATION + 1) if pooling == "Max" else range(1, 2)
    yield "pool_dilation", dilation, dilations


def _check(limits: Iterable[Limit], where: str) -> None:
    """Raise AssertionError with parameter, value and limit for the first value not allowed."""
    for name, value, allowed in limits:
        if value in allowed:
            continue
        choices = ", ".join(map(str, allowed))  # type: ignore[call-overload]
        if isinstance(allowed, range) and allowed.step == 1 and len(allowed) > 1:
            choices = f"{allowed[0]} to {allowed[-1]}"
        raise AssertionError(f"{where}{name}={value}; {_device().name} allows {choices}")


def _one(size: Size, name: str) -> int:
    """Return the number in an int or a pair of equal ints; AssertionError if they differ."""
    height, width = (size, size) if isinstance(size, int) else size
    _require(height == width, f"{name}={size}: both values must be equal")
    return height


# Names that say the composition -----------------------------------------------------------------

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
    r"(?:Fused)?(?:(?P<pooling>Max|Avg)Pool)?(?P<depthwise>Depthwise)?"
    r"(?P<operator>Conv2d|ConvTranspose2d|Conv1d|Linear)(?P<bn>BN)?(?P<activation>ReLU|Abs)?"
)


def _fused_class(name: str) -> type[QuantizationAwareModule]:
    """Make the layer class that `name` describes, with its signature and documentation."""
    parts = _PARTS.fullmatch(name)
    assert parts is not None, name
    operator = parts["operator"]
    base = {"Conv1d": Conv1d, "Linear": Linear}.get(operator, Conv2d)
    fixed = {key: parts[key] for key in ("pooling", "activation") if parts[key]}
    defaults: dict[str, Any] = {"batchnorm": "Affine"} if parts["bn"] else {}
    if operator == "ConvTranspose2d":
        fixed["op"] = operator
        defaults["stride"] = 2

    def __init__(self: Any, in_channels: int, *args: Any, **kwargs: Any) -> None:
        if parts["depthwise"]:
            kwargs["groups"] = in_channels
        base.__init__(self, in_channels, *args, **fixed, **{**defaults, **kwargs})

    members = {
        "__init__": __init__,
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
    """Say what a layer does, in the order of its steps."""
    steps = [
        {"Max": "maximum pooling", "Avg": "average pooling"}.get(parts["pooling"] or ""),
        ("depthwise " if parts["depthwise"] else "") + parts["operator"],
        "batch normalization" if parts["bn"] else None,
        {"ReLU": "rectification", "Abs": "absolute value"}.get(parts["activation"] or ""),
    ]
    text = ", then ".join(step for step in steps if step)
    return f"{text[0].upper()}{text[1:]}."


def _pool_class(name: str) -> type[QuantizationAwareModule]:
    """Make a layer that only pools: `name`(kernel_size, stride=None, dilation=1, **kwargs)."""
    base = Conv2d if name.endswith("2d") else Conv1d

    def __init__(
        self: Any, kernel_size: Size, stride: Size | None = None, dilation: int = 1, **kwargs: Any
    ) -> None:
        kwargs |= {"pool_size": kernel_size, "pool_stride": stride, "pool_dilation": dilation}
        base.__init__(self, 0, 0, None, pooling=name[:3], **kwargs)

    signature = inspect.signature(__init__)
    kept = [p for p in signature.parameters.values() if p.name != "self"]
    members = {
        "__init__": __init__,
        "__module__": __name__,
        "__signature__": signature.replace(parameters=kept),
        "__doc__": f"{name[:3]} pooling on its own; `stride` None is `kernel_size`.",
    }
    return type(name, (base,), members)


globals().update({name: _fused_class(name) for name in FUSED_NAMES})
globals().update({n: _pool_class(n) for n in ("MaxPool2d", "AvgPool2d", "MaxPool1d", "AvgPool1d")})


# Element-wise layers ----------------------------------------------------------------------------


class Eltwise(nn.Module):
    """Combine tensors of one shape by `function`, from the left; the result is clamped once."""

    def __init__(self, function: Callable[[Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function
        low, high = (-128.0, 127.0) if _device().simulate else (-1.0, 127 / 128)
        self.clamp = Grid("none", low, high)

    def forward(self, *x: Tensor) -> Tensor:
        """Return the clamped combination of the operands."""
        return self.clamp(functools.reduce(self.function, x))


class Add(Eltwise):
    """Sum of two or more tensors."""

    def __init__(self) -> None:
        super().__init__(torch.add)


class Sub(Eltwise):
    """First tensor minus the others."""

    def __init__(self) -> None:
        super().__init__(torch.sub)


class BitwiseOr(Eltwise):
    """Bitwise or, on values t taken as the integers round((t + 0.5) * 256)."""

    def __init__(self) -> None:
        super().__init__(functools.partial(_bitwise, torch.bitwise_or))


class BitwiseXor(Eltwise):
    """Bitwise exclusive or, on values t taken as the integers round((t + 0.5) * 256)."""

    def __init__(self) -> None:
        super().__init__(functools.partial(_bitwise, torch.bitwise_xor))


Or = BitwiseOr  # their names until 2020
Xor = BitwiseXor


def _bitwise(function: Callable[[Tensor, Tensor], Tensor], a: Tensor, b: Tensor) -> Tensor:
    """Apply a bitwise function to the integers that stand for `a` and `b`; not differentiable."""
    first, second = (((t + 0.5) * 256).round().int() for t in (a, b))
    return function(first, second) / 256 - 0.5


# Quantization-aware training --------------------------------------------------------------------


def _quantized_modules(m: nn.Module) -> Iterator[tuple[str, QuantizationAwareModule]]:
    """Yield every layer of ours in `m` with its dotted name."""
    for name, module in m.named_modules():
        if isinstance(module, QuantizationAwareModule):
            yield name, module


def update_model(m: nn.Module) -> None:
    """Derive the arithmetic of all layers again from their bookkeeping parameters."""
    for _, layer in _quantized_modules(m):
        layer.set_functions()


@torch.no_grad()
def fuse_bn_layers(m: nn.Module) -> None:
    """Move batch normalization, with its division by 4, into weights and biases (1.8).

    The arithmetic is float32 in the order of the specification, so that results are reproducible to
    the bit.
    """
    for _, layer in _quantized_modules(m):
        if layer.bn is None or layer.op is None:
            continue
        bn, op = layer.bn, layer.op
        inverse = torch.rsqrt(bn.running_var + bn.eps)
        gamma = torch.ones_like(inverse) if bn.weight is None else bn.weight
        beta = torch.zeros_like(inverse) if bn.bias is None else bn.bias
        bias = torch.zeros_like(inverse) if op.bias is None else op.bias
        channel_factor = 0.25 * gamma * inverse
        if isinstance(op, nn.ConvTranspose2d):  # weight [in, out / groups, ...]
            grouped = op.weight.unflatten(0, (op.groups, -1))
            factor = channel_factor.view(op.groups, 1, -1, *(1 for _ in op.kernel_size))
            op.weight.copy_((grouped * factor).flatten(0, 1))
        else:
            op.weight.mul_(channel_factor.view(-1, *(1 for _ in op.weight.shape[1:])))
        fused = (bias - bn.running_mean) * inverse * (0.25 * gamma) + 0.25 * beta
        if op.bias is None:
            op.bias = nn.Parameter(fused)
        else:
            op.bias.copy_(fused)
        layer.bn = None


def initiate_qat(m: nn.Module, qat_policy: dict[str, Any]) -> None:
    """Switch all layers to quantization-aware training.

    `qat_policy` has `weight_bits`, optionally `shift_quantile` (1.0) and `overrides`: dotted layer
    name to {"weight_bits": n} (spec/training.md 2.3).
    """
    overrides = qat_policy.get("overrides", {})
    for name, layer in _quantized_modules(m):
        bits = overrides.get(name, qat_policy)["weight_bits"]
        layer.init_module(bits, bits, True, qat_policy.get("shift_quantile", 1.0))


def update_optimizer(m: nn.Module, optimizer: torch.optim.Optimizer) -> torch.optim.Optimizer:
    """Return an optimizer of the same kind for the parameters that `m` has now.

    After fusing, parameters are gone; the state (momentum, ...) of the remaining ones is taken
    over, matched by equal shape in order. One-element parameters start afresh.
    """
    renewed = type(optimizer)(m.parameters(), **optimizer.defaults)
    old = (p for group in optimizer.param_groups for p in group["params"] if p.numel() > 1)
    for parameter in (p for p in m.parameters() if p.numel() > 1):
        match = next((p for p in old if p.shape == parameter.shape), None)
        if match is None:
            break
        if match in optimizer.state:
            renewed.state[parameter] = optimizer.state[match]
    for new_group, old_group in zip(renewed.param_groups, optimizer.param_groups, strict=True):
        new_group.update({k: v for k, v in old_group.items() if k != "params"})
    return renewed


# Data -------------------------------------------------------------------------------------------


class normalize:
    """Bring an image of 0..1 to the range of the accelerator (spec/training.md 1.9).

    The result holds integers -128..127 when `args.act_mode_8bit` is set, else the same divided by
    128.
    """

    def __init__(self, args: Any) -> None:
        self.divisor = 1 if args.act_mode_8bit else 128

    def __call__(self, img: Tensor) -> Tensor:
        """Return the normalized image; shape and dtype stay."""
        integers = img.sub(0.5).mul(256.0).round().clamp(-128, 127)
        return integers if self.divisor == 1 else integers.div(self.divisor)


class fold:
    """Turn blocks of pixels into channels: (C, H, W) to (C*r*r, H/r, W/r) with r = `fold_ratio`.

    Pixel (i, j) of a block and channel c go to channel (i*r + j)*C + c.
    """

    def __init__(self, fold_ratio: int) -> None:
        self.fold_ratio = fold_ratio

    def __call__(self, img: Tensor) -> Tensor:
        """Return the folded image."""
        r = self.fold_ratio
        return torch.cat([img[:, i::r, j::r] for i in range(r) for j in range(r)])


def unfold_batch(batch: Tensor, fold_ratio: int) -> Tensor:
    """Undo `fold` for a batch: (N, C*r*r, h, w) to (N, C, h*r, w*r)."""
    r = fold_ratio
    n, channels, height, width = batch.shape
    blocks = batch.view(n, r, r, channels // (r * r), height, width)
    return blocks.permute(0, 3, 4, 1, 5, 2).reshape(n, channels // (r * r), height * r, width * r)


class bayer_filter:
    """Keep what a Bayer sensor sees of an image: (3, H, W) to (1, H, W).

    Rows alternate green, blue and red, green.
    """

    def __call__(self, img: Tensor) -> Tensor:
        """Return the mosaic."""
        mosaic = img[1:2].clone()
        mosaic[:, ::2, 1::2] = img[2:3, ::2, 1::2]
        mosaic[:, 1::2, ::2] = img[0:1, 1::2, ::2]
        return mosaic
