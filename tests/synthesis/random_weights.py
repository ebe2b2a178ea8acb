"""Weights, bias, shift and activation of a random layer, and its output channels."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import strategies as st

from device.channels import channels_per_pass, passes
from device.masks import lowest_bit
from tests.synthesis.networks import weights
from tests.synthesis.random_growth import CHANNELS, Array, Goal, Growing, Plan

DEVIATION = 74
"""Standard deviation of evenly distributed 8-bit values."""


def put_weights(growing: Growing, plan: Plan, goal: Goal | None) -> int:
    """Draw weights, bias, shift and activation; return the output channels."""
    read, keys = plan.read, plan.keys
    if not plan.has_weights:
        growing.weights_of.append(None)
        return read.channels
    keys["activate"] = growing.one_of(["none", "ReLU", "Abs"])
    if plan.kind == "bypass":
        growing.weights_of.append(None)
        channels = read.channels
        _shift(growing, plan, math.prod(plan.taps) * channels, 1)
        return channels
    again = _used_again(growing, plan, goal)
    if again is not None:
        return again
    bits = _bits(growing, plan, goal)
    channels = _out_channels(growing, plan, abs(bits), goal)
    growing.budget.columns -= _columns(plan, channels, abs(bits))
    keys["quantization"] = "bin" if bits < 0 else bits
    seed = growing.one_of([0, growing.draw(st.integers(0, 1 << 30))])  # equal ones share memory
    ins = 1 if plan.depthwise else read.channels * plan.pixels
    _shift(growing, plan, ins * math.prod(plan.taps), abs(bits))
    kernel = weights(channels, ins, *plan.taps, bits=abs(bits), seed=seed)
    kernel = kernel * 2 + 1 if bits < 0 else kernel
    if plan.kind == "depthwise_t":
        kernel = kernel.swapaxes(0, 1)
    growing.weights_of.append(len(growing.kernels))
    growing.kernels.append(kernel)
    growing.biases.append(_bias(growing, plan, channels, seed))
    return channels


def _used_again(growing: Growing, plan: Plan, goal: Goal | None) -> int | None:
    """Use the weights of an earlier layer with the same channels and kernel, now and then."""
    same = ("op", "kernel_size")
    fitting = [
        i
        for i, layer in enumerate(growing.layers)
        if plan.kind == "conv2d"
        and growing.weights_of[i] is not None
        and "weight_source" not in layer
        and "groups" not in layer
        and all(layer.get(k) == plan.keys.get(k) for k in same)
        and growing.kernels[growing.weights_of[i] or 0].shape[1] == plan.read.channels
        and (plan.read.operands == 1 or growing.older)
    ]
    if not fitting or goal is not None or not growing.chance(60):
        return None
    source = growing.one_of(fitting)
    index = growing.weights_of[source] or 0
    channels = len(growing.kernels[index])
    bits = growing.layers[source]["quantization"]
    cost = _columns(plan, channels, 1 if bits == "bin" else bits)
    if cost > growing.budget.columns or channels > growing.budget.bias_bytes:
        return None
    growing.budget.columns -= cost
    growing.budget.bias_bytes -= channels + 8
    plan.keys |= {"weight_source": source, "quantization": bits}
    growing.weights_of.append(index)
    return channels


def _bits(growing: Growing, plan: Plan, goal: Goal | None) -> int:
    """Draw the width of the weights; narrow ones that the vendor's tool misplaces are left out."""
    channels = plan.read.channels
    full = channels == passes(channels) * channels_per_pass(channels)
    if not full and not plan.depthwise and growing.careful:
        return 8  # W318
    if goal is not None and lowest_bit(goal.mask) % 4 and growing.careful:
        return 8  # W334
    bits = growing.one_of([8, 8, 4, 2, 1])
    if bits == 1 and growing.binary:
        whole = plan.stored_taps == max(math.prod(plan.taps), 1) or not growing.careful
        return -1 if whole else 8  # W372
    return bits


def _columns(plan: Plan, channels: int, bits: int) -> int:
    """Return kernel columns that surely suffice."""
    if plan.depthwise:
        kernels = passes(plan.read.channels) * 4
    else:
        kernels = (channels_per_pass(channels) + 4) * passes(channels)
        kernels *= passes(plan.read.channels) * plan.pixels
    return -(-kernels * plan.stored_taps * bits // 72) + 12


def _out_channels(growing: Growing, plan: Plan, bits: int, goal: Goal | None) -> int:
    if plan.depthwise:
        return plan.read.channels
    if goal is not None:
        return goal.channels
    likely = [plan.read.channels] if growing.chance(30) else CHANNELS
    columns = growing.budget.columns
    return growing.one_of([n for n in likely if _columns(plan, n, bits) <= columns] or [1])


def _shift(growing: Growing, plan: Plan, count: int, bits: int) -> None:
    """Draw a shift that keeps most values within 8 bits, now and then any."""
    implicit = 0 if plan.kind == "bypass" else 8 - bits
    if growing.chance(10):
        shift = growing.one_of(range(-15, 16))
    else:
        typical = DEVIATION * max(1 << bits - 1, 1) * 0.6 * math.sqrt(count)
        shift = round(math.log2(64 * 128 / typical)) + growing.one_of([0, 1, -1, 2, -2])
        shift = min(max(shift, -15), 15)
    if shift - implicit or plan.kind == "bypass":
        plan.keys["output_shift"] = shift - implicit


def _bias(growing: Growing, plan: Plan, channels: int, seed: int) -> Array:
    """Draw biases; zeros where the layer cannot have one."""
    needed = channels + 8
    if plan.depthwise:
        needed = 16 * passes(channels) * 4 + 16
    combined = plan.read.operands > 1 and not growing.older
    if combined or needed > growing.budget.bias_bytes or not growing.chance(50):
        return np.zeros(channels, np.int64)
    growing.budget.bias_bytes -= needed
    return np.random.default_rng(seed + 1).integers(-128, 128, channels)
