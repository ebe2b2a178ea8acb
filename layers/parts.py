"""The operators, kinds of pooling and activations that layers are made of.

Members are equal to the texts that models use ("ReLU", "Max"), so that either may be given and
compared. A new member is refused by every place that decides by it until the place knows it.
"""

from __future__ import annotations

import enum


class OperatorKind(enum.StrEnum):
    """What multiplies data by weights."""

    CONV1D = "Conv1d"
    CONV2D = "Conv2d"
    CONVTRANSPOSE2D = "ConvTranspose2d"
    LINEAR = "Linear"


class PoolingKind(enum.StrEnum):
    """What pools in front of the operator."""

    MAX = "Max"
    AVERAGE = "Avg"


class Activation(enum.StrEnum):
    """What is applied to the result."""

    RELU = "ReLU"
    ABS = "Abs"


def activation_named(name: str | None) -> Activation | None:
    """Return the activation of a name, None for None; AssertionError for an unknown name."""
    try:
        return None if name is None else Activation(name)
    except ValueError:
        choices = " or ".join(repr(str(activation)) for activation in Activation)
        raise AssertionError(f"activation={name}: use None, {choices}") from None
