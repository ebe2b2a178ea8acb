"""The operators, kinds of pooling and activations that layers are made of.

Members are equal to the texts that models use ("ReLU", "Max"), so that either may be given and
compared. Code that decides by a member raises for a new one until it is extended.
"""

from __future__ import annotations

import enum


class OperatorKind(enum.StrEnum):
    """The operator, which multiplies data by weights."""

    CONV1D = "Conv1d"
    CONV2D = "Conv2d"
    CONVTRANSPOSE2D = "ConvTranspose2d"
    LINEAR = "Linear"


class PoolingKind(enum.StrEnum):
    """The kind of pooling in front of the operator."""

    MAX = "Max"
    AVERAGE = "Avg"


class Activation(enum.StrEnum):
    """The function applied to the result."""

    RELU = "ReLU"
    ABS = "Abs"


def activation_named(name: str | None) -> Activation | None:
    """Return the activation of a name, None for None; AssertionError for an unknown name."""
    try:
        return None if name is None else Activation(name)
    except ValueError:
        choices = " or ".join(repr(str(activation)) for activation in Activation)
        raise AssertionError(f"activation={name}: use None, {choices}") from None
