"""An unpickler that cannot execute anything.

It carries out the instructions of pickle protocols 2 to 5 on plain values. Names go through
`known_objects.look_up`, calls only reach the constructors found there, and every other instruction
is refused. Python's own unpickler is not used: it can be told to allocate memory that the file does
not have, and hashing what it builds can overflow the stack.
"""

from __future__ import annotations

import collections
import struct
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from ai8xtools.checkpoint.errors import CheckpointError
from ai8xtools.checkpoint.known_objects import (
    KNOWN,
    Constructor,
    NumberType,
    StorageRecord,
    StorageType,
    look_up,
    malformed,
    printable,
)
from ai8xtools.checkpoint.values import ClassReference

# The largest networks of these chips need some 30 000 instructions and 200 kB.
MAX_INSTRUCTIONS = 1_000_000
MAX_PICKLE_BYTES = 16 << 20
WORK_PER_BYTE, FREE_WORK = 4, 1 << 20
_LARGEST_KEY = 1 << 31
_MAX_ODD_KEYS = 100
_SIZED = (str, bytes, tuple, list)
_SCALARS = (str, int, float, bool, bytes, type(None))


class Unpickler:
    """Carries out one pickle that starts at `position` of `data`; afterwards `position` is its end.

    `storages` lists every storage the pickle mentioned, by key.
    """

    names: Mapping[tuple[str, str], Any] = KNOWN
    """What the names of the file mean."""
    most_bytes = MAX_PICKLE_BYTES

    def __init__(self, data: bytes | memoryview, position: int = 0) -> None:
        self.data = memoryview(data)[: position + self.most_bytes]
        self.position = position
        self.storages: dict[str, StorageRecord] = {}
        self._stack: list[Any] = []
        self._outer: list[list[Any]] = []  # the stacks below each open mark
        self._memo: dict[int, Any] = {}
        self._odd_keys_left = _MAX_ODD_KEYS
        self._work_left = FREE_WORK + WORK_PER_BYTE * len(self.data)

    def run(self) -> Any:
        """Return the value of the pickle.

        Raises CheckpointError: E503 damaged, E504 names something foreign, E505 too large.
        """
        start = self.position
        try:
            return self._run()
        except (IndexError, KeyError, ValueError, TypeError, struct.error, OverflowError):
            at = self.position - start
            raise malformed(f"its pickle is truncated or inconsistent at byte {at}") from None

    def _run(self) -> Any:
        for _ in range(MAX_INSTRUCTIONS):
            code = self.data[self.position]
            self.position += 1
            if code == _STOP:
                return self._stack.pop()
            try:
                instruction = _INSTRUCTIONS[code]
            except KeyError:
                raise CheckpointError(
                    "E504",
                    f"the file uses the pickle instruction 0x{code:02x}, which PyTorch does not "
                    "write; it was refused and nothing was executed",
                ) from None
            instruction(self)
        raise CheckpointError(
            "E505", f"the file's pickle has more than {MAX_INSTRUCTIONS} instructions"
        )

    # -- reading ---------------------------------------------------------------------------------

    def _take(self, count: int) -> memoryview:
        end = self.position + count
        if end > len(self.data):
            raise IndexError
        part = self.data[self.position : end]
        self.position = end
        return part

    def _unsigned(self, size: int) -> int:
        return int.from_bytes(self._take(size), "little")

    def _line(self) -> str:
        end = bytes(self.data[self.position : self.position + 1024]).index(b"\n")
        text = str(self._take(end), "utf-8")
        self._take(1)
        return text

    # -- the stack -------------------------------------------------------------------------------

    def _push(self, value: Any) -> None:
        self._stack.append(value)

    def _pop_mark(self) -> list[Any]:
        items, self._stack = self._stack, self._outer.pop()
        return items

    def _mark(self) -> None:
        self._outer.append(self._stack)
        self._stack = []

    def _pop(self) -> None:
        if self._stack:
            self._stack.pop()
        else:
            self._pop_mark()

    def _duplicate(self) -> None:
        self._push(self._stack[-1])

    # -- containers ------------------------------------------------------------------------------

    def _tuple(self, count: int) -> None:
        if len(self._stack) < count:
            raise IndexError
        items = tuple(self._stack[-count:])
        self._stack[-count:] = [items]

    def _mark_tuple(self) -> None:
        self._push(tuple(self._pop_mark()))

    def _append(self, items: list[Any]) -> None:
        target = self._stack[-1]
        if not isinstance(target, list):
            raise TypeError
        target.extend(items)

    def _set_items(self, items: list[Any]) -> None:
        target = self._stack[-1]
        if not isinstance(target, dict) or len(items) % 2:
            raise TypeError
        for key, value in zip(items[::2], items[1::2], strict=True):
            # Nested keys could be built to hash for hours; PyTorch writes texts and numbers.
            if type(key) not in _SCALARS:
                raise TypeError
            if type(key) is not str:
                self._check_number_as_key(key)
            if key in target:
                raise malformed(f"the key {printable(str(key))!r} occurs twice in a dictionary")
            target[key] = value

    def _check_number_as_key(self, key: Any) -> None:
        """Refuse keys that could be chosen so that their hashes collide."""
        if type(key) is int and abs(key) <= _LARGEST_KEY:
            return
        self._odd_keys_left -= 1
        if self._odd_keys_left < 0:
            raise CheckpointError(
                "E505", f"the file has more than {_MAX_ODD_KEYS} keys that are no texts or counts"
            )

    def _set_item(self) -> None:
        value = self._stack.pop()
        key = self._stack.pop()
        self._set_items([key, value])

    # -- the memo --------------------------------------------------------------------------------

    def _put(self, index: int) -> None:
        self._memo[index] = self._stack[-1]

    def _get(self, index: int) -> None:
        self._push(self._memo[index])

    # -- names and calls -------------------------------------------------------------------------

    def _global(self) -> None:
        module = self._line()
        self._push(look_up(module, self._line(), self.names))

    def _stack_global(self) -> None:
        name, module = self._stack.pop(), self._stack.pop()
        if not isinstance(name, str) or not isinstance(module, str):
            raise TypeError
        self._push(look_up(module, name, self.names))

    def _reduce(self) -> None:
        arguments, function = self._stack.pop(), self._stack.pop()
        if not isinstance(function, Constructor):
            raise CheckpointError(
                "E504",
                f"the file calls {_callee(function)}, which no checkpoint needs; it "
                "was refused and nothing was executed",
            )
        if not isinstance(arguments, tuple):
            raise TypeError
        self._charge(len(arguments) + sum(len(a) for a in arguments if type(a) in _SIZED))
        self._push(function.build(arguments))

    def _charge(self, work: int) -> None:
        """Count what calls copy: a value may be handed to any number of them."""
        self._work_left -= work
        if self._work_left < 0:
            raise CheckpointError(
                "E505", "the file's pickle asks for more copies than it has bytes"
            )

    def _build(self) -> None:
        """Attach state to an object: a byte order; an OrderedDict's `_metadata` is dropped."""
        state, target = self._stack.pop(), self._stack[-1]
        if isinstance(target, NumberType) and isinstance(state, tuple):
            order = state[1]
            if type(order) is not str or order not in ("<", ">", "|"):
                raise TypeError  # before hashing: of a nested tuple it takes hours, or the stack
            target.order = order
        elif not isinstance(target, collections.OrderedDict):
            self.attach(target, state)

    def attach(self, target: Any, state: Any) -> None:  # noqa: ARG002 - for other kinds of files
        """Attach state to an object that only a kind of files has; TypeError where there is none.

        What the state holds is of unknown type.
        """
        raise TypeError

    def _persistent(self) -> None:
        """Push the storage that a tuple ('storage', type, key, location, count, [view]) names."""
        identity = self._stack.pop()
        if not isinstance(identity, tuple) or len(identity) < 5 or identity[0] != "storage":
            raise TypeError
        kind, key, count = identity[1], identity[2], identity[4]
        if not isinstance(kind, StorageType) or not isinstance(key, str) or type(count) is not int:
            raise TypeError
        if any(view is not None for view in identity[5:]):
            raise CheckpointError(
                "E502",
                "the file shares storages in the manner of PyTorch before 0.4",
                remedy="Load and save it again with a newer PyTorch.",
            )
        record = StorageRecord(kind, key, count)
        if self.storages.setdefault(key, record) != record:
            raise TypeError  # one block cannot hold two types
        self._push(record)


Instruction: TypeAlias = Callable[[Unpickler], object]


def _callee(value: Any) -> str:
    """Return what a file tried to call, without its contents."""
    return str(value) if isinstance(value, ClassReference) else f"a {type(value).__name__}"


def _number(layout: str) -> Instruction:
    """Make the instruction that pushes one number of a struct layout."""
    unpack, size = struct.Struct(layout).unpack, struct.calcsize(layout)
    return lambda m: m._push(unpack(m._take(size))[0])


def _long(length_bytes: int) -> Instruction:
    def push(m: Unpickler) -> None:
        size = m._unsigned(length_bytes)
        if size > 16:  # 128 bits; a longer number could take minutes to print
            raise ValueError
        m._push(int.from_bytes(m._take(size), "little", signed=True))

    return push


def _text(length_bytes: int) -> Instruction:
    return lambda m: m._push(str(m._take(m._unsigned(length_bytes)), "utf-8"))


def _bytes(length_bytes: int) -> Instruction:
    return lambda m: m._push(bytes(m._take(m._unsigned(length_bytes))))


def _constant(value: Any) -> Instruction:
    return lambda m: m._push(value)


_STOP = ord(".")
_INSTRUCTIONS: dict[int, Instruction] = {
    0x80: lambda m: m._take(1),  # PROTO
    0x95: lambda m: m._take(8),  # FRAME
    ord("("): Unpickler._mark,
    ord("0"): Unpickler._pop,
    ord("1"): lambda m: m._pop_mark(),
    ord("2"): Unpickler._duplicate,
    ord("N"): _constant(None),
    0x88: _constant(True),
    0x89: _constant(False),
    ord("J"): _number("<i"),
    ord("K"): _number("<B"),
    ord("M"): _number("<H"),
    ord("G"): _number(">d"),
    0x8A: _long(1),
    0x8B: _long(4),
    ord("U"): lambda m: m._push(str(m._take(m._unsigned(1)), "latin-1")),  # texts of Python 2
    ord("T"): lambda m: m._push(str(m._take(m._unsigned(4)), "latin-1")),
    ord("X"): _text(4),
    0x8C: _text(1),
    0x8D: _text(8),
    ord("B"): _bytes(4),
    ord("C"): _bytes(1),
    0x8E: _bytes(8),
    ord("]"): lambda m: m._push([]),
    ord("}"): lambda m: m._push({}),
    ord(")"): _constant(()),
    ord("t"): Unpickler._mark_tuple,
    0x85: lambda m: m._tuple(1),
    0x86: lambda m: m._tuple(2),
    0x87: lambda m: m._tuple(3),
    ord("a"): lambda m: m._append([m._stack.pop()]),
    ord("e"): lambda m: m._append(m._pop_mark()),
    ord("s"): Unpickler._set_item,
    ord("u"): lambda m: m._set_items(m._pop_mark()),
    ord("q"): lambda m: m._put(m._unsigned(1)),
    ord("r"): lambda m: m._put(m._unsigned(4)),
    0x94: lambda m: m._put(len(m._memo)),
    ord("h"): lambda m: m._get(m._unsigned(1)),
    ord("j"): lambda m: m._get(m._unsigned(4)),
    ord("c"): Unpickler._global,
    0x93: Unpickler._stack_global,
    ord("R"): Unpickler._reduce,
    0x81: Unpickler._reduce,  # NEWOBJ: like a call
    ord("b"): Unpickler._build,
    ord("Q"): Unpickler._persistent,
}
