"""The steps of a program that look at values themselves, as their C says: element by element, or
windows of them. What is not written like that is not taken for one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from ai8xtools.emulator.proof.algebra import Algebra, Terms
from ai8xtools.emulator.proof.functions import Integers
from ai8xtools.emulator.proof.kernels import departure
from ai8xtools.values import frozen

_TYPE = re.compile(r"\b(u?)int(8|16|32|64)_t\b")
_BITS = {"i32": 32, "i64": 64}
_WIDTHS = {"i8": 1, "nn_word": 4}
_TABLE = re.compile(r"(?m)^static const i(8|16|32|64) (elements_\d+_\d+)\[\] = (\w+);$")
_VALUES = re.compile(r"(?m)^#(?:define) (ELEMENTS_\d+_\d+) \{([-\d\sL,\\]*)\}$")
_HELPER = re.compile(r"(?m)^\w[\w ]*\bcnn_(?:floor_\w+|root)\(")
_HELPERS = re.compile(_HELPER.pattern + r".*\n(?:(?![\w}]).*\n)*}$\n")
_IMAGE = r"    \{ (\d+), NN_SHARE\((\d+)\), (\d+), (\d+) \},\n"
_IMAGES = re.compile(rf"(?m)^static const nn_image cnn_images\[\] = \{{\n((?:{_IMAGE})*)\}};$")
_STEP = re.compile(
    r"(?m)^CNN_STEP void (?:step_)(\d+)\(([^)]*)\)\n\{\n((?:(?!CNN_STEP |}$).*\n)*)\}$"
)
_PARAMETER = re.compile(r"const (i8|nn_word) \*(a\d+|rows)|u32 y|(i8|nn_word) \*out")
_BODY = {
    "elements": r"""u32 i;
{ for (i = 0; i < (?P<number>\d+); i++) { (?P<statements>.*) } }""",
    "apart": r"""u32 i = 0, x, c;
for (x = 0; x < (?P<columns>\d+); x++) { for (c = 0; c < (?P<channels>\d+); c++, i++) {
(?P<statements>.*) } }""",
    "windows": r"""const i32 top = (i32)(y \* (?P<stride_rows>\d+)) - (?P<pad_rows>-?\d+);
u32 x, c, i = 0;
for (x = 0; x < (?P<columns>\d+); x++) { for (c = 0; c < (?P<channels>\d+); c++, i++) {
i32 v = (?P<first>0|INT32_MIN); i32 row, column;
for (row = 0; row < (?P<rows>\d+); row++) { const i32 at = top + row * (?P<step_rows>\d+);
const (?P<kind>i8|nn_word) *from;
if (at < 0 || at >= (?P<in_rows>\d+)) { continue; }
from = (const (?P=kind) *)(const void *)(rows +
nn_place(&cnn_images[(?P<image>\d+)], (u32)at)) + c;
for (column = 0; column < (?P<window>\d+); column++) {
const i32 place = (i32)(x * (?P<stride>\d+)) - (?P<pad>-?\d+) + column * (?P<step>\d+);
if (place >= 0 && place < (?P<in_columns>\d+)) {
const i32 w = from[(u32)place * (?P<in_channels>\d+)];
v = (?P<reduction>v \+ w|w > v \? w : v); } } }
{ (?P<statements>.*) } } }""",
}
_STATEMENT = re.compile(r"const (i32|i64) (t\d+) = ([^;]+); ")
_STORE = re.compile(r"out\[i\] = \((i8|i32)\)([^;]+);")
_VALUE = r"(?:t\d+|\d+(?:LL)?|\(-\d+(?:LL)?\))"
_FORMS = {
    name: re.compile(pattern.replace("@", _VALUE))
    for name, pattern in {
        "window": r"v",
        "load": r"(a\d+|elements_\d+_\d+)\[(?:y \* (\d+)u \+ )?([icx0])\]",
        "look": r"(elements_\d+_\d+)\[\(u8\)(@)\]",
        "shift": r"(@) >> (\d+)",
        "root": r"\(i(?:32|64)\)cnn_root\(\(u64\)(@)\)",
        "floor": r"cnn_floor_(int(?:32|64)_t)\((@), (@)\)",
        "max": r"(?P<a>@) > (?P<b>@) \? (?P=a) : (?P=b)",
        "min": r"(?P<a>@) < (?P<b>@) \? (?P=a) : (?P=b)",
        "add": r"(@) \+ (@)",
        "mul": r"(@) \* (@)",
    }.items()
}


@frozen
class Statement:
    """A value of so many `bits`: its `name`, what makes it, and the parts of that."""

    name: str
    bits: int
    form: str
    parts: tuple[str, ...]


@frozen
class Window:
    """Windows of a tensor: numbers of rows and columns are pairs. `image` tells where rows are:
    bytes of one, the divisor of their share, how many there are, and how many have room.
    """

    size: tuple[int, int]
    stride: tuple[int, int]
    pad: tuple[int, int]
    step: tuple[int, int]
    in_size: tuple[int, int]
    channels: int
    image: tuple[int, ...]
    sums: bool


@frozen
class Step:
    """A row of a step of elements, or of windows: `columns` of so many channels, each by what
    `statements` make, in `width` bytes. Its arguments are the number of the row, if it is
    `by_row`, and `sources`, whose values have so many bytes.
    """

    number: int
    by_row: bool
    sources: Mapping[str, int]
    columns: int
    channels: int
    window: Window | None
    statements: tuple[Statement, ...]
    result: str
    width: int

    @property
    def count(self) -> int:
        """Values of a row."""
        return self.columns * self.channels

    def index(self, kind: str) -> Integers:
        """Return which value of a row each one of the result takes, as an index is written."""
        each = np.arange(self.count)
        return {"i": each, "x": each // self.channels, "c": each % self.channels, "0": each * 0}[
            kind
        ]

    def loads(self) -> list[tuple[str, str]]:
        """Return the values of sources that are taken, each once: the source, and the index."""
        found = [(one.parts[0], one.parts[2]) for one in self.statements
                 if one.form == "load" and one.parts[0] in self.sources]  # fmt: skip
        return list(dict.fromkeys(found))


def steps_of(
    code: str, weights: str, helpers: str
) -> tuple[Mapping[str, Step], Mapping[str, Integers]]:
    """Return the steps of a program's C by the names of their functions, and their tables, whose
    values are in the text of `weights`.

    Functions that divide and take roots must be those of `helpers`. Raises EmulatorError for a step
    that is written in another way.
    """
    code, helpers = _short(code), _short(helpers)
    known = [helper for helper in _HELPERS.findall(code) if helper in helpers]
    if len(known) != len(_HELPER.findall(code)):
        raise departure("cnn.c divides, or takes roots, in another way")
    images = [tuple(map(int, one)) for some in _IMAGES.finditer(code)
              for one in re.findall(_IMAGE, some[1])]  # fmt: skip
    found = {f"step_{match[1]}": _step(match, images) for match in _STEP.finditer(code)}
    if len(re.findall(r"\bCNN_STEP\b", code)) != len(found) + 2 * bool(found):
        raise departure("a step of cnn.c is written in another way")
    contents = dict(_VALUES.findall(weights))
    tables = {}
    for bits, name, content in _TABLE.findall(code):
        text = re.sub(r"[\\L\s]", "", contents.get(content, "")).strip(",")
        numbers = [int(one) for one in text.split(",") if one]
        if not numbers or any(
            not -(2 ** (int(bits) - 1)) <= one < 2 ** (int(bits) - 1) for one in numbers
        ):
            raise departure(f"the table {name} is written in another way")
        tables[name] = np.array(numbers, np.int64)
    return found, tables


def _short(text: str) -> str:
    """Return C with short names of its types of integers: i32, u8."""
    return _TYPE.sub(lambda match: f"{'u' if match[1] else 'i'}{match[2]}", text)


def _step(match: re.Match[str], images: Sequence[tuple[int, ...]]) -> Step:
    number, body = int(match[1]), " ".join(match[3].split())
    parameters = match[2].split(", ")
    known = [_PARAMETER.fullmatch(one) for one in parameters]
    form, fields = next(_bodies(body), ("", {}))
    if not form or not all(known):
        raise departure(f"step_{number}() of cnn.c is written in another way")
    sources = {one[2]: _WIDTHS[one[1]] for one in known if one and one[2]}
    by_row = parameters[0] == "u32 y"
    order = ["y"] * by_row + [*sources, "out"]
    statements, last = _statements(fields["statements"], number)
    target = known[-1]
    width = {"i8": 1, "i32": 4}[last[1]]
    windows = form == "windows"
    names = [one[0].rpartition("*")[2].rpartition(" ")[2] for one in known if one]
    if names != order or target is None or _WIDTHS.get(target[3]) != width or (
        windows and (not by_row or sources != {"rows": 1}
                     or (fields["first"] == "0") != (fields["reduction"] == "v + w"))
    ):  # fmt: skip
        raise departure(f"step_{number}() of cnn.c is written in another way")
    window = _window(fields, images) if windows else None
    if windows:
        sources = {"rows": _WIDTHS[fields["kind"]]}
    whole = form == "elements"
    columns, channels = (1, int(fields["number"])) if whole else (
        int(fields["columns"]), int(fields["channels"]))  # fmt: skip
    if whole and any(one.form == "load" and one.parts[2] in ("x", "c") for one in statements):
        raise departure(f"step_{number}() of cnn.c takes columns apart in another way")
    return Step(number, by_row, sources, columns, channels, window, statements, last[2], width)


def _bodies(body: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    for form, text in _BODY.items():
        literal = re.split(r"(\(\?P[<=][^()]*\))", " ".join(text.split()))
        pattern = "".join(
            part if number % 2 else re.escape(part.replace("\\", ""))
            for number, part in enumerate(literal)
        )
        if match := re.fullmatch(pattern, body):
            yield form, match.groupdict()


def _statements(text: str, number: int) -> tuple[tuple[Statement, ...], re.Match[str]]:
    statements: list[Statement] = []
    place = 0
    while match := _STATEMENT.match(text, place):
        place = match.end()
        forms = ((form, pattern.fullmatch(match[3])) for form, pattern in _FORMS.items())
        form, parts = next(((form, found) for form, found in forms if found), ("", None))
        if parts is None or match[2] != f"t{len(statements)}":
            raise departure(f"step_{number}() of cnn.c computes {match[3]!r}")
        groups = tuple(one or "" for one in parts.groups())
        statements.append(Statement(match[2], _BITS[match[1]], form, groups))
    last = _STORE.fullmatch(text, place)
    if last is None:
        raise departure(f"step_{number}() of cnn.c ends in another way")
    return tuple(statements), last


def _window(fields: Mapping[str, str], images: Sequence[tuple[int, ...]]) -> Window:
    numbers = {name: int(text) for name, text in fields.items() if re.fullmatch(r"-?\d+", text)}
    if numbers["image"] >= len(images) or max(images[numbers["image"]][2:]) >= 2**16:
        raise departure("cnn_images of cnn.c is written in another way")
    return Window(
        (numbers["rows"], numbers["window"]), (numbers["stride_rows"], numbers["stride"]),
        (numbers["pad_rows"], numbers["pad"]), (numbers["step_rows"], numbers["step"]),
        (numbers["in_rows"], numbers["in_columns"]), numbers["in_channels"],
        images[numbers["image"]], fields["reduction"] == "v + w",
    )  # fmt: skip


@frozen(slots=False)
class RowOfStep:
    """What a step makes of the values that it takes in a row: `constants` are those of tables."""

    step: Step
    constants: Mapping[tuple[str, ...], Integers]
    tables: Mapping[str, Integers]

    __hash__, __eq__ = object.__hash__, object.__eq__

    def value(self, algebra: Algebra, taken: Mapping[tuple[str, str], Terms], count: int) -> Terms:
        """Return the results of some rows, `count` in all, of what is taken of the sources; with
        windows ("v", "") is their sum, or the greatest value.

        Raises EmulatorError for what may leave its bits.
        """
        values: dict[str, Terms] = {}
        bits: dict[str, int] = {}

        def operand(text: str) -> Terms:
            if text in values:
                return values[text]
            number = int(text.strip("()").removesuffix("LL"))
            return algebra.constants(np.full(count, number, np.int64))

        for one in self.step.statements:
            computed = _bits_of(one, bits)
            if one.form == "floor":
                for part in one.parts[1:]:
                    _refuse_beyond(algebra, operand(part), computed, self.step.number)
            if one.form == "shift" and int(one.parts[1]) >= computed:
                raise departure(f"step_{self.step.number}() shifts by {one.parts[1]} bits")
            result = self._of(one, algebra, taken, operand, count)
            _refuse_beyond(algebra, result, min(one.bits, computed), self.step.number)
            values[one.name], bits[one.name] = result, one.bits
        result = operand(self.step.result)
        _refuse_beyond(algebra, result, 8 * self.step.width, self.step.number)
        return result

    def _of(self, one: Statement, algebra: Algebra, taken: Mapping[tuple[str, str], Terms],
            operand: Callable[[str], Terms], count: int) -> Terms:  # fmt: skip
        parts = one.parts
        match one.form:
            case "window":
                return taken["v", ""]
            case "load" if (parts[0], parts[2]) in taken:
                return taken[parts[0], parts[2]]
            case "load":
                row = self.constants[parts]
                return algebra.constants(np.tile(row, count // len(row)))
            case "look":
                index = operand(parts[1])
                _refuse_beyond(algebra, index, 8, self.step.number)
                return algebra.looked_up(index, self.tables[parts[0]])
            case "shift":
                return algebra.floor(algebra.scaled(operand(parts[0]), 1, 2 ** int(parts[1])))
            case "root":
                given = operand(parts[0])
                if algebra.bounds(given)[0].min(initial=0) < 0:
                    raise departure(
                        f"step_{self.step.number}() takes a root of what may be negative"
                    )
                return algebra.root(given)
            case "floor":
                return algebra.quotient(operand(parts[1]), operand(parts[2]))
            case "max":
                return algebra.largest(operand(parts[0]), operand(parts[1]))
            case "min":
                return algebra.smallest(operand(parts[0]), operand(parts[1]))
            case "add":
                return algebra.added(operand(parts[0]), operand(parts[1]))
            case _:
                return algebra.times(operand(parts[0]), operand(parts[1]))


def _bits_of(one: Statement, known: Mapping[str, int]) -> int:
    """Return how many bits C computes a statement with; `known` are those of earlier values."""
    match one.form:
        case "window":
            return 32
        case "floor":
            return 64 if "64" in one.parts[0] else 32
        case "add" | "mul" | "shift" | "max" | "min":
            parts = one.parts[:1] if one.form == "shift" else one.parts
            return max(known.get(part) or _bits_of_number(part) for part in parts)
        case _:
            return one.bits


def _bits_of_number(text: str) -> int:
    number = text.strip("()")
    return 64 if number.endswith("LL") or abs(int(number)) >= 2**31 else 32


def _refuse_beyond(algebra: Algebra, values: Terms, bits: int, number: int) -> None:
    low, high = algebra.bounds(values)
    if low.min(initial=0) < -(2.0 ** (bits - 1)) or high.max(initial=0) > 2.0 ** (bits - 1) - 1:
        raise departure(f"a value of step_{number}() may leave {bits} bits")
