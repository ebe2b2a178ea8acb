"""What registers may say in the future is refused where it is not known, and not taken for else."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

import numpy as np
import pytest

from ai8xtools.emulator.decode.config import (
    ActivationFunction,
    ElementwiseOperation,
    LayerConfig,
    LayerKind,
)
from ai8xtools.emulator.decode.locations import output_locations
from ai8xtools.emulator.influence.tolerance import Tolerance, of_sums
from ai8xtools.emulator.machine.arithmetic import finish, prepare
from tests.emulator.by_hand import one_by_one
from tests.exhaustive import assert_refused, check_places, stand_in

IMAGE = np.ones((1, 2, 2), int)


@pytest.fixture
def config() -> LayerConfig:
    run, _ = one_by_one(IMAGE, np.array([[128 - 1]])).run()
    return run.layers[0].config


def finished(config: LayerConfig, activation: Any) -> object:
    output = dataclasses.replace(config.output, activation=activation)
    return finish(np.zeros((1, 1, 1, 1), np.float32), output)


def combined(config: LayerConfig, operation: Any) -> object:
    inputs = dataclasses.replace(config.input, operands=2, operation=operation)
    operands = np.ones((2, 1, 2, 2, 1), np.int32)
    return prepare(operands, dataclasses.replace(config, input=inputs), rounding=False)


def tolerated(config: LayerConfig, activation: Any) -> object:
    output = dataclasses.replace(config.output, activation=activation)
    return of_sums(np.zeros(1), Tolerance(np.zeros(1), np.zeros(1)), output)


def of_kind(config: LayerConfig, kind: Any) -> LayerConfig:
    return dataclasses.replace(config, kind=kind)


PLACES: Mapping[type[Enum], Mapping[str, Callable[[LayerConfig, Any], object]]] = {
    LayerKind: {
        "decode/config.py:LayerKind.has_kernels": lambda _, kind: kind.has_kernels,
        "decode/config.py:LayerKind.sums_channels": lambda _, kind: kind.sums_channels,
        "decode/locations.py:output_locations":
            lambda config, kind: output_locations(of_kind(config, kind)),
    },
    ActivationFunction: {
        "machine/arithmetic.py:finish": finished,
        "influence/tolerance.py:_allowed": tolerated,
    },
    ElementwiseOperation: {"machine/arithmetic.py:_combination": combined},
}  # fmt: skip


def test_all_places_are_known() -> None:
    check_places("emulator", PLACES)


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind, places in PLACES.items() for name in places]
)
def test_another_member_is_refused(kind: type[Enum], name: str, config: LayerConfig) -> None:
    place = PLACES[kind][name]
    place(config, next(iter(kind)))
    assert_refused(lambda member: place(config, member), stand_in(kind))


def test_sizes_of_another_kind_of_layer_are_refused(config: LayerConfig) -> None:
    assert_refused(lambda kind: of_kind(config, kind).output_size, stand_in(LayerKind))
