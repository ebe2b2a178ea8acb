"""The decorator: a class with annotated fields becomes a value that cannot change."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field
from inspect import Parameter, Signature, get_annotations
from operator import attrgetter
from types import MemberDescriptorType
from typing import Any, NoReturn, TypeVar, dataclass_transform, overload

Class = TypeVar("Class")
_REQUIRED = Parameter.empty
_NO_FIELDS = ("ClassVar", "InitVar", "KW_ONLY")


@overload
@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[Class], /) -> type[Class]: ...


@overload
@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(
    *, slots: bool = True, kw_only: bool = False
) -> Callable[[type[Class]], type[Class]]: ...


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: Any = None, /, *, slots: bool = True, kw_only: bool = False) -> Any:
    """Do what `dataclass(frozen=True, slots=True)` does, in a fraction of the time.

    Values compare and hash by their fields and cannot be changed (FrozenInstanceError). `fields`,
    `replace` and `field` of `dataclasses`, `__post_init__`, pickle and `match` work; methods that
    the class defines stay. Classes with `cached_property` need `slots=False`. The bases of such a
    class have no fields or are made alike. Raises TypeError for `ClassVar`, `InitVar`, `KW_ONLY`
    and bases that differ in slots, ValueError for a default that values would share.
    """

    def convert(cls: type) -> Any:
        own = cls.__dict__
        shared = {name: method for name, method in _SHARED.items() if name not in own}
        members = _members(cls, kw_only)
        result: Any = cls
        if slots:
            result = _with_slots(cls, tuple(members), shared)
        else:
            for name, method in shared.items():
                setattr(cls, name, method)
        result._plan = plan = _Plan(result, tuple(members.values()), slots)
        result.__match_args__ = tuple(plan.names[: plan.in_place])  # type: ignore[misc]
        return result

    return convert if cls is None else convert(cls)


def _members(cls: Any, kw_only: bool) -> dict[str, Field[Any]]:
    """Return the fields of a class by name, those of its bases first; defaults become plain."""
    members: dict[str, Field[Any]] = {}
    for base in cls.__mro__[-2:0:-1]:
        if "_plan" in base.__dict__:
            members |= {member.name: member for member in base._plan.members}
    for name, kind in get_annotations(cls).items():
        if str(kind).startswith(_NO_FIELDS):
            raise TypeError(f"{cls.__qualname__}.{name}: a value has fields only, no {kind}")
        default = cls.__dict__.get(name, MISSING)
        member = default if isinstance(default, Field) else field(default=default)
        if member.default.__class__.__hash__ is None:
            raise ValueError(f"{cls.__qualname__}.{name}: values would share its default")
        member.name, member.type = name, kind
        if member.kw_only is MISSING:
            member.kw_only = kw_only
        if member.default is not MISSING:
            setattr(cls, name, member.default)
        elif default is not MISSING:
            delattr(cls, name)
        members[name] = member
    return members


def _with_slots(cls: type, names: tuple[str, ...], methods: dict[str, Any]) -> type:
    """Return the class again, with these methods and a slot for each field that no base has."""
    kept = {**cls.__dict__, **methods}
    for name in (*names, "__dict__", "__weakref__"):
        kept.pop(name, None)
    inherited = {name for base in cls.__mro__[1:-1] for name in getattr(base, "__slots__", ())}
    kept["__slots__"] = tuple(name for name in names if name not in inherited)
    result: type = type(cls)(cls.__name__, cls.__bases__, kept)
    result.__qualname__ = cls.__qualname__
    return result


class _Plan:
    """How values of a class are built from arguments, and which fields are compared.

    `members` are all fields; `names` the parameters of `__init__`, the first `in_place` of which
    may be positional; `setters` put them in slots, None: in the dictionary of the value.
    """

    __slots__ = (
        "compared", "defaults", "factories", "fields", "finishes", "in_place", "members", "names",
        "setters",
    )  # fmt: skip

    def __init__(self, cls: Any, members: tuple[Field[Any], ...], slots: bool) -> None:
        self.members = members
        arguments = [member for member in members if member.init]
        self.names = [f.name for f in arguments if not f.kw_only]
        self.in_place = len(self.names)
        self.names += [f.name for f in arguments if f.kw_only]
        self.defaults = {f.name: f.default for f in arguments if f.default is not MISSING}
        self.factories: dict[str, Callable[[], Any]] = {
            f.name: f.default_factory for f in arguments if f.default_factory is not MISSING
        }
        self.finishes = hasattr(cls, "__post_init__")
        places: list[Any] = [getattr(cls, name, None) for name in self.names]
        if {isinstance(place, MemberDescriptorType) for place in places} - {slots}:
            raise TypeError(f"{cls.__qualname__}: its bases differ in slots")
        self.setters = [place.__set__ for place in places] if slots else None
        compared = [f.name for f in members if f.compare]
        self.fields: dict[str, Field[Any]] | None = None
        """The fields in the form of `dataclasses`, computed on the first access."""
        self.compared: Callable[[Any], tuple[Any, ...]] = (
            attrgetter(*compared) if len(compared) > 1 else _few(compared)
        )

    def bind(self, cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """Return a value for each name; raise TypeError where a call does not fit the class."""
        if len(args) > self.in_place:
            raise TypeError(
                f"{cls.__qualname__}: {len(args)} positional values, not {self.in_place}"
            )
        values, by_name = [*args], 0
        for name in self.names[len(args) :]:
            if name in kwargs:
                values.append(kwargs[name])
                by_name += 1
            elif name in self.defaults:
                values.append(self.defaults[name])
            elif name in self.factories:
                values.append(self.factories[name]())
            else:
                raise TypeError(f"{cls.__qualname__}: no value for {name!r}")
        if by_name != len(kwargs):
            unknown = sorted(kwargs.keys() - set(self.names[len(args) :]))
            raise TypeError(f"{cls.__qualname__}: given twice or unknown: {', '.join(unknown)}")
        return values


def _few(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that reads at most one field as a tuple."""
    return lambda value: tuple(getattr(value, name) for name in names)


class _FieldsForDataclasses:
    """The `dataclasses` fields of a class, computed on the first access."""

    def __get__(self, value: object, cls: Any) -> dict[str, Field[Any]]:
        plan: _Plan = cls._plan
        if plan.fields is not None:
            return plan.fields
        content = {member.name: member for member in plan.members}
        kinds = {member.name: member.type for member in plan.members}
        twin: Any = type(
            cls.__name__, (), {**content, "__annotations__": kinds, "__module__": cls.__module__}
        )
        # With an own __init__ the order of fields with and without a default is free.
        twin = dataclass(init=False, repr=False, eq=False, match_args=False)(twin)
        plan.fields = twin.__dataclass_fields__
        fields: dict[str, Field[Any]] = twin.__dataclass_fields__
        return fields


class _SignatureOfFields:
    """The signature that `inspect.signature` and `help` show, computed on the first access."""

    def __get__(self, value: object, cls: type) -> Signature:
        plan: _Plan = cls._plan  # type: ignore[attr-defined]
        defaults = {**plan.defaults, **dict.fromkeys(plan.factories, ...)}
        kinds = (Parameter.KEYWORD_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
        return Signature(
            [
                Parameter(name, kinds[i < plan.in_place], default=defaults.get(name, _REQUIRED))
                for i, name in enumerate(plan.names)
            ]
        )


def _init(self: Any, *args: Any, **kwargs: Any) -> None:
    plan: _Plan = self._plan
    values: Iterable[Any] = args
    if kwargs or len(args) != plan.in_place or len(args) != len(plan.names):
        values = plan.bind(type(self), args, kwargs)
    if plan.setters is None:
        vars(self).update(zip(plan.names, values, strict=True))
    else:
        for put, value in zip(plan.setters, values, strict=True):
            put(self, value)
    if plan.finishes:
        self.__post_init__()


def _repr(self: Any) -> str:
    shown = (f"{f.name}={getattr(self, f.name)!r}" for f in self._plan.members if f.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _equal(self: Any, other: Any) -> Any:
    if type(other) is not type(self):
        return NotImplemented
    compared = self._plan.compared
    return compared(self) == compared(other)


def _hash(self: Any) -> int:
    return hash(self._plan.compared(self))


def _refuse_set(_self: Any, name: str, _value: Any) -> NoReturn:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_delete(_self: Any, name: str) -> NoReturn:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> dict[str, Any]:
    """The state for pickle and copy."""
    return {f.name: getattr(self, f.name) for f in self._plan.members}


def _restore(self: Any, state: dict[str, Any]) -> None:
    for name, value in state.items():
        object.__setattr__(self, name, value)


_SHARED: dict[str, Any] = {
    "__init__": _init,
    "__signature__": _SignatureOfFields(),
    "__dataclass_fields__": _FieldsForDataclasses(),
    "__repr__": _repr,
    "__eq__": _equal,
    "__hash__": _hash,
    "__setattr__": _refuse_set,
    "__delattr__": _refuse_delete,
    "__getstate__": _state,
    "__setstate__": _restore,
}
