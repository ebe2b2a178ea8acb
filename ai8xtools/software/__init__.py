"""Targets without the accelerator: a network becomes C99 for any microcontroller.

A `Network` is lowered to a `StepGraph`: steps on tensors of pixels, bounds of all sums are proven,
a planner gives each tensor its place in one static array, and emitters write the C program with
the kernels that it needs. Results are those of the accelerator, bit for bit.
"""
