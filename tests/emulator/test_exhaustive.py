"""What registers may say in the future is refused where it is not known, and not taken for else."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from enum import Enum
from typing import Any

import numpy as np
import pytest

from emulator.decode.config import ActivationFunction, ElementwiseOperation, LayerConfig, LayerKind
from emulator.decode.locations import output_locations
from emulator.machine.arithmetic import finish, prepare
from emulator.machine.execution import LayerExecution
from tests.conftest import ROOT
from tests.emulator.by_hand import one_by_one

IMAGE = np.ones((1, 2, 2), int)


def with_member(kind: type[Enum]) -> Any:
    """A value that looks like one more member of an enumeration."""
    member = object.__new__(kind)
    member._name_, member._value_ = "ADDED", "added"
    return member


@pytest.fixture
def config() -> LayerConfig:
    run, _ = one_by_one(IMAGE, np.array([[128 - 1]])).run()
    return run.layers[0].config


def execute(config: LayerConfig) -> None:
    _, accelerator = one_by_one(IMAGE, np.array([[1]])).run()
    LayerExecution(accelerator.memory, config, (), [], first=True)._operate(IMAGE.astype(np.int32))


KIND_USERS: tuple[Callable[[LayerConfig], object], ...] = (
    lambda config: config.kind.has_kernels,
    lambda config: config.kind.sums_channels,
    lambda config: config.output_size,
    output_locations,
    execute,
)


@pytest.mark.parametrize("user", KIND_USERS)
def test_another_kind_of_layer_is_refused(
    user: Callable[[LayerConfig], object], config: LayerConfig
) -> None:
    user(config)
    with pytest.raises(AssertionError, match="unreachable"):
        user(dataclasses.replace(config, kind=with_member(LayerKind)))


def test_another_activation_is_refused(config: LayerConfig) -> None:
    sums = np.zeros((1, 1, 1), np.int64)
    finish(sums, config.output)
    output = dataclasses.replace(config.output, activation=with_member(ActivationFunction))
    with pytest.raises(AssertionError, match="unreachable"):
        finish(sums, output)


def test_another_combination_is_refused(config: LayerConfig) -> None:
    operands = np.ones((2, 1, 2, 2), np.int32)
    inputs = dataclasses.replace(config.input, operands=2)
    prepare(operands, dataclasses.replace(config, input=inputs), rounding=False)
    inputs = dataclasses.replace(inputs, operation=with_member(ElementwiseOperation))
    with pytest.raises(AssertionError, match="unreachable"):
        prepare(operands, dataclasses.replace(config, input=inputs), rounding=False)


def test_members_are_not_compared_one_by_one() -> None:
    """A chain of comparisons lets another member fall through, `match` with `assert_never` not."""
    names = "LayerKind|ElementwiseOperation|ActivationFunction"
    compared = re.compile(rf"(?:==|!=|\bis(?: not)?) (?:{names})\.(?!NONE\b)")
    decoding = ROOT / "emulator" / "decode" / "layer.py"  # makes the members from registers
    found = [
        path
        for path in (ROOT / "emulator").rglob("*.py")
        if path != decoding and compared.search(path.read_text())
    ]
    assert found == []
