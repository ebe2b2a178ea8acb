"""What may have been meant by the value of a key."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from ai8xtools.synthesis.cure.lines import DescriptionLine
from ai8xtools.synthesis.parse.closest import closest
from ai8xtools.synthesis.parse.keys import Key
from ai8xtools.synthesis.parse.kinds import (
    Choice,
    Flag,
    Integer,
    Integers,
    KernelSize,
    Mask,
    Pair,
    Reference,
    Text,
)

_OFFSETS = ("in_offset", "out_offset", "offset")
_CHOICE_WORDS = {"relu": "ReLU", "abs": "Abs", "none": "None"}


def values_for(
    key: Key, line: DescriptionLine | None, lines: Sequence[DescriptionLine], words: Sequence[str]
) -> list[str]:
    """Return values that a key may have been meant to have, the likeliest first.

    `line` has the value that cannot be right, if there is one; `words` are those of the messages.
    """
    value = "" if line is None else line.value
    others = [x.value for x in lines if x.meant is key and x is not line]
    common = [word for word, _ in Counter(others).most_common()]
    values = [*_read_better(key, value), *_near(key, value, common)]
    if key.name in _OFFSETS and line is not None:
        common.sort(key=lambda one: (one == _in_front(line, lines), -others.count(one)))
    values += [*_of_kind_said(key, words), *common, *_of_kind(key, lines)]
    return [one for one in dict.fromkeys(values) if one and one != value]


def usual_values(line: DescriptionLine, lines: Sequence[DescriptionLine]) -> list[str]:
    """Return the values that the key of a line has in other layers more often than its own."""
    others = Counter(x.value for x in lines if x.meant is line.meant and x is not line)
    return [value for value, count in others.most_common() if count > others[line.value]]


def _in_front(line: DescriptionLine, lines: Sequence[DescriptionLine]) -> str | None:
    """Return the same key's value in the layer in front."""
    before = [x.value for x in lines if x.meant is line.meant and x.number < line.number]
    return before[-1] if before else None


def _read_better(key: Key, value: str) -> Iterator[str]:
    """Yield what is left of a value without what does not belong there."""
    plain = value.strip(" \t,;:\"'[]{}()")
    if plain != value:
        yield plain
        yield value.rstrip(",;")
    if value.count("[") > value.count("]"):
        yield value + "]"
    if value.count('"') % 2:
        yield value.replace('"', "")
    if isinstance(key.kind, Mask):
        digits = re.sub(r"(?i)^0?x?o?(?=[0-9a-f._]{4})|h$", "", value.replace(" ", ""))
        digits = re.sub("(?i)o", "0", digits).strip("._")
        if re.fullmatch(r"(?i)[0-9a-f._]+", digits):
            yield f"0x{digits}"
            yield from _other_top(int(re.sub("[._]", "", digits) or "0", 16))
    elif isinstance(key.kind, KernelSize):
        sizes = re.findall("[0-9]+", value)
        yield from ("x".join(sizes[:2]), f"{sizes[0]}x{sizes[0]}", sizes[0]) if sizes else ()
    elif not isinstance(key.kind, Choice | Text | Reference):
        yield from re.findall(r"0x[0-9a-fA-F]+|[0-9]+", value)
    if re.fullmatch(r"[0-9]+[kK].*", value):
        yield hex(1024 * int(re.findall("[0-9]+", value)[0]))


def _other_top(mask: int) -> Iterator[str]:
    """Yield a mask with one processor less or more at its end."""
    top = mask.bit_length()
    if 0 < top < 64:
        yield mask_text(mask ^ (1 << (top - 1)))
        yield mask_text(mask | (1 << top))


def _near(key: Key, value: str, common: Sequence[str]) -> Iterator[str]:
    """Yield the word that a wrong one resembles."""
    words = [*common, *_words(key)]
    near = closest(value.lower(), [word.lower() for word in words])
    if near is not None:
        yield next(word for word in words if word.lower() == near)


def _words(key: Key) -> list[str]:
    if isinstance(key.kind, Choice):
        return [_CHOICE_WORDS.get(str(one), str(one)) for one in key.kind.choices]
    return ["true", "false"] if isinstance(key.kind, Flag) else []


def _of_kind_said(key: Key, words: Sequence[str]) -> Iterator[str]:
    """Yield what messages name and a key takes."""
    patterns: list[tuple[type, str]] = [
        (Mask, r"0x[0-9a-f.]{8,}"), (KernelSize, r"[0-9]x[0-9]"), (Integer, r"0x[0-9a-f]+|[0-9]+"),
        (Pair, "[0-9]+"), (Text, r"[\w-]+"), (Reference, r"[\w-]+"),
    ]  # fmt: skip
    pattern = next((p for kind, p in patterns if isinstance(key.kind, kind)), None)
    if pattern is not None:
        yield from (word for word in words if re.fullmatch(pattern, word))


def _of_kind(key: Key, lines: Sequence[DescriptionLine]) -> Iterator[str]:
    """Yield values that a key takes, those that are often used first."""
    match key.kind:
        case Mask():
            masks = [
                x.value for x in lines if x.meant is not None and isinstance(x.meant.kind, Mask)
            ]
            yield from dict.fromkeys(masks)
            for count in (4, 8, 12, 16, 32, 48, 64, 1, 2, 3):
                yield mask_text((1 << count) - 1)
        case KernelSize():
            yield from ("3x3", "1x1", *map(str, range(1, 10)))
        case Pair(low=low):
            yield from (str(n) for n in (1, 2, 0, 3, 4, 8) if n >= low)
        case Integer(low=low):
            yield from (str(n) for n in (0, 1, 2, 4, 8) if n >= (low or 0))
        case Choice() | Flag():
            yield from _words(key)
        case Reference():
            yield from (x.value for x in lines if x.meant is not None and x.meant.name == "name")
            yield from map(str, range(8))
        case Integers():
            yield from ("0", "[0, 1]")
        case Text():
            yield "test"


def mask_text(mask: int) -> str:
    """Return a mask as descriptions write it."""
    digits = f"{mask:016x}"
    return "0x" + ".".join(digits[i : i + 4] for i in range(0, 16, 4))
