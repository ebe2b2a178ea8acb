"""`frozen` makes what `dataclass(frozen=True, slots=True)` makes."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from functools import cached_property
from typing import Any, ClassVar

import pytest

from ai8xtools.values import frozen


@frozen
class Point:
    """Two coordinates and a note that does not count."""

    x: int
    y: int = 2
    note: str = dataclasses.field(default="", compare=False, repr=False)


@frozen
class Lone:
    """One field."""

    x: Any


@frozen
class Nothing:
    """No field."""


@frozen
class Derived:
    """Fields with a factory and one that is computed."""

    names: list[str] = dataclasses.field(default_factory=list)
    count: int = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "count", len(self.names))


@frozen(slots=False, kw_only=True)
class Named:
    """Fields by name, and a property that is computed once."""

    x: int
    y: int = 5

    @cached_property
    def total(self) -> int:
        return self.x + self.y


@frozen(slots=False, kw_only=True)
class More(Named):
    """A field more."""

    z: int

    def __repr__(self) -> str:
        return f"z={self.z}"


def test_fields_are_given_in_order_or_by_name() -> None:
    assert Point(1) == Point(x=1, y=2) == Point(1, 2, "note")
    assert Point(1) != Point(2) and Point(1) != Named(x=1, y=2) and Point(1) != (1, 2)
    assert More(x=1, z=3).y == 5 and More(x=1, z=3) != Named(x=1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Point(), "x"),
        (lambda: Point(1, 2, "", 4), "positional"),
        (lambda: Point(1, z=3), "z"),
        (lambda: Named(1), "positional"),
    ],
)
def test_wrong_calls_are_refused_by_name(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        call()


@pytest.mark.parametrize("value", [Point(1), Nothing(), Named(x=1), More(x=1, z=2)])
def test_values_cannot_change(value: Any) -> None:
    for name in ("x", "other"):
        with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field"):
            setattr(value, name, 2)
        with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field"):
            delattr(value, name)


def test_values_hash_by_what_is_compared() -> None:
    assert {Point(1, note="a"), Point(1, note="b"), Lone(1), Lone(1), Nothing()} == {
        Point(1), Lone(1), Nothing(),
    }  # fmt: skip
    with pytest.raises(TypeError, match="unhashable"):
        hash(Lone([]))


def test_an_object_equals_itself_even_where_its_comparison_has_no_truth() -> None:
    class Array:
        def __eq__(self, other: object) -> Any:
            raise ValueError

        __hash__ = object.__hash__

    array = Array()
    assert Lone(array) == Lone(array) and Point(array) == Point(array)  # type: ignore[arg-type]


def test_representation_shows_the_fields() -> None:
    assert repr(Point(1)) == "Point(x=1, y=2)" and repr(Nothing()) == "Nothing()"
    assert repr(More(x=1, z=2)) == "z=2"


def test_defaults_from_a_factory_are_not_shared() -> None:
    first, second = Derived(), Derived(["a"])
    assert (first.count, second.count) == (0, 1)
    first.names.append("b")
    assert Derived().names == []


def test_dataclasses_knows_it() -> None:
    assert dataclasses.is_dataclass(Point)
    assert [f.name for f in dataclasses.fields(Point)] == ["x", "y", "note"]
    assert dataclasses.replace(Point(1, note="a"), x=3) == Point(3)
    assert dataclasses.asdict(Point(1)) == {"x": 1, "y": 2, "note": ""}
    assert str(inspect.signature(Point)) == "(x, y=2, note='')"
    assert str(inspect.signature(Named)) == "(*, x, y=5)"
    assert str(inspect.signature(Derived)) == "(names=Ellipsis)"


def test_slots_are_as_asked_for() -> None:
    assert not hasattr(Point(1), "__dict__") and Named(x=1).total == 6
    assert Named(x=1).__dict__ == {"x": 1, "y": 5}


def test_bases_with_other_slots_are_refused() -> None:
    with pytest.raises(TypeError, match="its bases differ in slots"):

        @frozen(slots=False)
        class _Mixed(Lone):
            y: int


def test_patterns_match_in_the_order_of_the_fields() -> None:
    match Point(1, 3):
        case Point(x, y):
            assert (x, y) == (1, 3)
        case _:
            pytest.fail("no match")


@pytest.mark.parametrize("value", [Point(1, 2, "note"), Lone("a"), Nothing(), Derived(["a"])])
def test_values_can_be_copied_and_pickled(value: Any) -> None:
    for twin in (copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value))):
        assert twin == value and twin is not value
        for member in dataclasses.fields(value):
            assert getattr(twin, member.name) == getattr(value, member.name)


def test_what_is_no_field_is_refused() -> None:
    with pytest.raises(TypeError, match="fields only"):

        @frozen
        class _Counted:
            made: ClassVar[int] = 0

    with pytest.raises(ValueError, match="share its default"):

        @frozen
        class _Shared:
            names: list[str] = []  # noqa: RUF012 - this is what is tested
