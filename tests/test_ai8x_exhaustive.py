"""An operator, kind of pooling or activation that is only added to its enumeration is refused."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest
import torch
from torch import nn

import ai8x
from ai8xtools.frontends.modules import keys
from ai8xtools.layers import (
    choices,
    composition,
    elementary,
    limits,
    named_layers,
    operators,
    steps,
)
from ai8xtools.layers.parts import Activation, OperatorKind, PoolingKind
from ai8xtools.quantization import adaptive, convert
from ai8xtools.quantization.options import ClipMethod
from ai8xtools.training.export import counting
from tests.exhaustive import Place, assert_refused, check_places, stand_in


def limits_of(kind: OperatorKind) -> Iterator[object]:
    """Ask for the limits of a convolution of a kind."""
    shape = limits.ConvolutionShape(kind, 4, 3, 1, 1, 1, 1, None, True)
    return limits.operator_limits(shape, None)


def unlimited_pool(pooling: PoolingKind) -> object:
    """Make a pooling module without asking whether the chip has it."""
    with patch.object(operators, "check"):
        return operators.Convolution._pool(operators.Conv2d, pooling, 2, 2, 1)  # type: ignore[arg-type]


def grid_after(pooling: PoolingKind) -> object:
    """Ask a layer what follows its pooling."""
    layer: Any = SimpleNamespace(pooling=pooling)
    return composition.QuantizationAwareModule._grid_of_pool(layer, False, True)


def conversion(method: ClipMethod) -> Any:
    """Return what stands for a conversion by a method."""
    return SimpleNamespace(_options=SimpleNamespace(clip_method=method, calibration=None))


LAYERS: Mapping[type[enum.Enum], Mapping[str, Place]] = {
    OperatorKind: {
        "limits.py:operator_limits": limits_of,
        "named_layers.py:_base": named_layers._base,
        "operators.py:_extra_arguments": operators._extra_arguments,
    },
    PoolingKind: {
        "choices.py:quantize_clamp_pool": choices.quantize_clamp_pool,
        "composition.py:QuantizationAwareModule._grid_of_pool": grid_after,
        "limits.py:pool_limits": lambda x: limits.pool_limits(x, 2, 2, 1),
        "named_layers.py:_pooling_word": named_layers._pooling_word,
        "operators.py:Convolution._pool": unlimited_pool,
    },
    Activation: {
        "composition.py:_activation_steps": composition._activation_steps,
        "elementary.py:get_activation": elementary.get_activation,
        "named_layers.py:_activation_word": named_layers._activation_word,
    },
}
QUANTIZATION: Mapping[type[enum.Enum], Mapping[str, Place]] = {
    ClipMethod: {
        "convert.py:_Conversion._method": lambda x: convert._Conversion._method(conversion(x)),
        "convert.py:_Conversion._range":
            lambda x: convert._Conversion._range(conversion(x), SimpleNamespace(weights=None)),
    },
}  # fmt: skip


def of_kind(kind: OperatorKind, function: Callable[..., object], *arguments: Any) -> object:
    """Call a function for a layer whose operator is of a kind."""
    with patch("ai8x.kind_of", return_value=kind):
        return function(*arguments)


LINEAR = SimpleNamespace(op=nn.Linear(2, 2), pool=None)
SHAPE = torch.Size([1, 2])
TRAINING: Mapping[type[enum.Enum], Mapping[str, Place]] = {
    OperatorKind: {
        "export/counting.py:_effort":
            lambda x: of_kind(x, counting._effort, "fc", LINEAR.op, SHAPE, SHAPE),
    },
}  # fmt: skip
FRONTENDS: Mapping[type[enum.Enum], Mapping[str, Place]] = {
    OperatorKind: {
        "modules/keys.py:operator_keys": lambda x: of_kind(x, keys.operator_keys, LINEAR),
    },
}  # fmt: skip
CASES = [
    pytest.param(enumeration, place, id=name)
    for table in (LAYERS, QUANTIZATION, TRAINING, FRONTENDS)
    for enumeration, places in table.items()
    for name, place in places.items()
]


@pytest.fixture(autouse=True)
def chip() -> None:
    ai8x.set_device(85, simulate=False, round_avg=False, verbose=False)


@pytest.mark.parametrize(("enumeration", "place"), CASES)
def test_new_member_is_refused(enumeration: type[enum.Enum], place: Place) -> None:
    assert_refused(place, stand_in(enumeration))


@pytest.mark.parametrize(
    ("room", "table"),
    [
        ("layers", LAYERS),
        ("quantization", QUANTIZATION),
        ("training", TRAINING),
        ("frontends", FRONTENDS),
    ],
)
def test_every_place_is_known(room: str, table: Any) -> None:
    check_places(room, table)


def test_layers_are_not_made_with_a_new_activation() -> None:
    with pytest.raises(AssertionError, match="added"):
        ai8x.Conv2d(4, 4, 3, activation=stand_in(Activation))
    with pytest.raises(AssertionError, match="added"):
        ai8x.Conv2d(4, 4, 3, pooling=stand_in(PoolingKind))


@pytest.mark.parametrize("ask", [steps.kind_of, lambda op: adaptive.columns(op, None)])
def test_modules_that_are_no_operators_are_refused(ask: Place) -> None:
    with pytest.raises(TypeError, match="Conv3d"):
        ask(nn.Conv3d(1, 1, 1))


def test_modules_of_layers_have_a_kind() -> None:
    made = (nn.Conv1d(1, 1, 1), nn.Conv2d(1, 1, 1), nn.ConvTranspose2d(1, 1, 1), nn.Linear(1, 1))
    assert [steps.kind_of(module) for module in made] == [*OperatorKind]
