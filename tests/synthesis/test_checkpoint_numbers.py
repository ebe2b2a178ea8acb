"""Shifts, scales and widths of a layer in a checkpoint: every form of a number, every width."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ai8xtools.diagnostics import Place
from ai8xtools.synthesis.resolve.checkpoint_tensors import _CheckpointLayer, _Key, _weight_keys
from ai8xtools.synthesis.resolve.tensors import BINARY


@dataclass(frozen=True)
class Complaint:
    code: str
    severity: Any = None


@dataclass
class Keys(dict[str, Any]):
    """The keys of a layer in a description; it complains by code alone."""

    given: dict[str, Any] = field(default_factory=dict)

    def __contains__(self, key: object) -> bool:
        return key in self.given

    def get(self, key: str, default: Any = None) -> Any:
        return self.given.get(key, default)

    def error(self, code: str, *_: Any, **__: Any) -> Complaint:
        return Complaint(code)


def made(state: dict[str, Any], **keys: Any) -> Any:
    key = _Key("a", "a.op.weight", "a.op.bias", False)
    place = Place(file="x")
    return _CheckpointLayer(state, key, Keys(keys), place, [])  # type: ignore[arg-type]


def codes(layer: Any) -> list[str]:
    return [complaint.code for complaint in layer.problems]


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "i4", "i8", "u1", "b1"])
def test_numbers_are_whole_and_single(dtype: str) -> None:
    for value in (0, 1, 5, -3, 0.5, -1.25, np.nan, np.inf, -np.inf):
        if np.dtype(dtype).kind != "f" and (value % 1 or value < 0 or np.isnan(value)):
            continue
        for shape in ((), (1,), (1, 1), (0,), (2,)):
            number = np.full(shape, value).astype(dtype)
            layer = made({"a.output_shift": number})
            found = layer._scalar("a.output_shift", 7)
            if shape in ((0,), (2,)) or value % 1 or not np.isfinite(value):
                assert (found, codes(layer)) == (7, ["E205"])
            else:
                assert (found, codes(layer)) == (int(number.ravel()[0]), [])
                assert type(found) is int
    assert made({})._scalar("a.output_shift", 7) == 7


def test_final_scales_are_exponents() -> None:
    for value in range(-20, 21):
        layer = made({"a.final_scale": np.array(float(value))})
        fits = abs(value) <= 15
        assert layer._final_scale() == (value if fits else 0)
        assert codes(layer) == ([] if fits else ["E516"])
    assert made({})._final_scale() == 0


WEIGHTS = {"zero": [0, 0, 0], "signs": [1, -1, 1], "ones": [1, 1, 1], "both": [-1, 0, 0]}


@pytest.mark.parametrize("kind", WEIGHTS)
def test_bits_come_from_the_description_the_values_or_the_file(kind: str) -> None:
    """The values count only where the processors are named; then a bias or a result may change."""
    weights = np.array(WEIGHTS[kind])
    for stated, explicit, named, binary, bias in itertools.product(
        (None, 0, 1, 2, 3, 4, 8), (None, 1, 2, 4, 8), (False, True), (None, False, True),
        (None, 0, 5),
    ):  # fmt: skip
        state: dict[str, Any] = {"a.op.weight": weights}
        if stated is not None:
            state["a.weight_bits"] = np.array([stated])
        if bias is not None:
            state["a.op.bias"] = np.array([bias])
        keys = {"quantization": explicit, **({"processors": 1} if named else {})}
        layer = made(state, **keys)
        chip: Any = None if binary is None else SimpleNamespace(has_binary_weights=binary)
        found = layer._bits(weights, chip)
        wanted, said = explicit or stated or 8, []
        if explicit and (stated or 8) < explicit:
            said.append("W234")
        if explicit is None and named:
            guess = BINARY if binary and kind in ("signs", "ones") else None
            guess = 1 if kind == "zero" else guess
            if guess is not None:
                wanted = guess
                lost = kind != "zero" or bool(bias)
                said += ["W234"] * (lost and (stated or 8) in (2, 4, 8))
        if wanted == 3 or (wanted == 1 and kind in ("signs", "ones")):
            code = "E224" if wanted == 3 else "E206"
            assert (found, codes(layer)) == (None, [*said, code])
        else:
            assert (found, codes(layer)) == (wanted, said)


def test_weights_are_known_by_the_end_of_their_names() -> None:
    names = ["a.op.weight", "a.op.bias", "b.weight", "weight", "m.c.op.weight", "d.bn.weight",
             "op.weights", "bn.weight", "e.bn.x.weight"]  # fmt: skip
    found = list(_weight_keys(dict.fromkeys(names)))
    assert [(key.layer, key.weight, key.bias) for key in found] == [
        ("a", "a.op.weight", "a.op.bias"), ("b", "b.weight", "b.bias"),
        ("m.c", "m.c.op.weight", "m.c.op.bias"), ("d", "d.bn.weight", "d.bn.bias"),
        ("bn", "bn.weight", "bn.bias"), ("e.bn", "e.bn.x.weight", "e.bn.x.bias"),
    ]  # fmt: skip
    assert [key.is_batch_norm for key in found] == [False, False, False, True, False, False]
    assert [key.names for key in found[:2]] == [("a", "a.op"), ("b", "b")]
    assert found[3].names == ("d.bn",)
