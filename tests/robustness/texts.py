"""Mutations of a network description: each takes its text and a generator and damages one thing.

They work on the text, not on what it means, so that they apply to descriptions of any style. Some
results are legal by chance; those must be accepted.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from numpy.random import Generator

from ai8xtools.synthesis.parse.keys import GLOBAL_KEYS, LAYER_KEYS, NESTED_KEYS, Key
from ai8xtools.synthesis.parse.kinds import (
    Choice,
    Flag,
    Integer,
    Integers,
    KernelSize,
    Mask,
    Pair,
    Reference,
)
from tests.robustness.choice import pick
from tests.robustness.words import (
    BYTES,
    CHARACTERS,
    CONTENTS,
    DOCUMENTS,
    ESCAPES,
    HUGE,
    KEYS,
    ODD,
    TAGS,
    UNHASHABLE,
)

TextMutation = Callable[[str, Generator], str | bytes]

_LONGEST = 1 << 22
"""Longer texts are not mutated again: they would take our own memory."""
_VALUE = re.compile(r"(?m)(?<=: )[^\s,{}#\[\]][^,{}#\n]*|(?<=: )\[[^\]]*\]")
_KEY = re.compile(r"\b[a-z_0-9]+(?=: )")
_KEYS: dict[str, Key] = {
    spelling: key
    for key in (*LAYER_KEYS, *GLOBAL_KEYS, *(k for keys in NESTED_KEYS.values() for k in keys))
    for spelling in key.spellings
}


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def _any_line(text: str, rng: Generator) -> tuple[list[str], int]:
    """Return the lines and the position of one that is no comment."""
    lines = _lines(text) or [""]
    told = [i for i, line in enumerate(lines) if line.strip() and not line.lstrip().startswith("#")]
    return lines, pick(rng, told or [0])


def _replace(text: str, pattern: re.Pattern[str], rng: Generator, new: str) -> str:
    """Replace one of the places where a pattern matches; without any append."""
    found = list(pattern.finditer(text))
    if not found:
        return text + new
    one = pick(rng, found)
    return text[: one.start()] + new + text[one.end() :]


def _elements(text: str) -> tuple[str, list[str]]:
    """Split into what stands before the first element of `layers`, and the elements."""
    start = text.find("layers:")
    if start < 0:
        return text, []
    parts = re.split(r"(?m)^(?=\s{0,2}- )", text[start:])
    return text[:start] + parts[0], parts[1:]


# -- lines and characters ------------------------------------------------------------------------


def delete_line(text: str, rng: Generator) -> str:
    """A line is missing, often a key that is needed."""
    lines, at = _any_line(text, rng)
    del lines[at]
    return "".join(lines)


def duplicate_line(text: str, rng: Generator) -> str:
    """A line stands twice: a duplicated key."""
    lines, at = _any_line(text, rng)
    lines.insert(int(rng.integers(at, min(at + 4, len(lines)) + 1)), lines[at])
    return "".join(lines)


def swap_lines(text: str, rng: Generator) -> str:
    """Two lines changed places."""
    lines, one = _any_line(text, rng)
    _, two = _any_line(text, rng)
    lines[one], lines[two] = lines[two], lines[one]
    return "".join(lines)


def indent_line(text: str, rng: Generator) -> str:
    """A line is indented differently, with spaces or a tab."""
    lines, at = _any_line(text, rng)
    lines[at] = pick(rng, ("", " ", "    ", "      ", "\t", "  \t")) + lines[at].lstrip(" ")
    return "".join(lines)


def truncate(text: str, rng: Generator) -> str:
    """The file ends early."""
    return text[: int(rng.integers(len(text) + 1))]


def damage_characters(text: str, rng: Generator) -> str:
    """Characters are deleted, replaced or inserted."""
    for _ in range(int(rng.integers(1, 4))):
        at = int(rng.integers(len(text) + 1))
        text = text[:at] + pick(rng, ("", *CHARACTERS)) + text[at + int(rng.integers(3)) :]
    return text


def damage_bytes(text: str, rng: Generator) -> bytes:
    """Bytes that are no UTF-8, or the whole file in another encoding."""
    if rng.random() < 0.2:
        return text.encode(pick(rng, ("utf-16", "utf-32", "utf-16-le", "utf-8-sig", "utf-7")))
    data = text.encode("utf-8", "replace")
    at = int(rng.integers(len(data) + 1))
    return data[:at] + pick(rng, BYTES) + data[at:]


def flip_bits(text: str, rng: Generator) -> bytes:
    """Some bits of the file are inverted."""
    data = bytearray(text.encode("utf-8", "replace") or b"\0")
    for _ in range(int(rng.integers(1, 9))):
        data[int(rng.integers(len(data)))] ^= 1 << int(rng.integers(8))
    return bytes(data)


def other_content(_: str, rng: Generator) -> str | bytes:
    """The file holds something else altogether."""
    return pick(rng, CONTENTS)


# -- values --------------------------------------------------------------------------------------


def odd_value(text: str, rng: Generator) -> str:
    """A value of another type, or none."""
    return _replace(text, _VALUE, rng, pick(rng, ODD))


def huge_value(text: str, rng: Generator) -> str:
    """A number far out of range."""
    return _replace(text, _VALUE, rng, pick(rng, HUGE))


def near_value(text: str, rng: Generator) -> str:
    """A number is a little or much larger or smaller, or negative."""
    numbers = re.compile(r"(?<=[ \[])-?(0x[0-9a-fA-F.]+|\d+)\b")
    found = list(numbers.finditer(text))
    if not found:
        return odd_value(text, rng)
    one = pick(rng, found)
    old = int(one.group().replace(".", ""), 0) if "x" in one.group() else int(one.group())
    new = pick(
        rng, (old + 1, old - 1, -old, old * 2, old // 2, old ^ 1 << int(rng.integers(20)), old * 64)
    )
    word = hex(new) if "x" in one.group() else str(new)
    return text[: one.start()] + word + text[one.end() :]


def likely_value(text: str, rng: Generator) -> str:
    """A value that the key can have, chosen at random."""
    found = [m for m in _VALUE.finditer(text) if _key_before(text, m.start()) in _KEYS]
    if not found:
        return odd_value(text, rng)
    one = pick(rng, found)
    key = _KEYS[_key_before(text, one.start())]
    return text[: one.start()] + _likely(key, text, rng) + text[one.end() :]


def likely_values(text: str, rng: Generator) -> str:
    """Several values that their keys can have."""
    for _ in range(int(rng.integers(2, 6))):
        text = likely_value(text, rng)
    return text


def another_value(text: str, rng: Generator) -> str:
    """A value that stands elsewhere in the file."""
    values = [m.group() for m in _VALUE.finditer(text)] or [""]
    return _replace(text, _VALUE, rng, pick(rng, values))


def long_value(text: str, rng: Generator) -> str:
    """A very long text."""
    piece = pick(rng, ("a", "\u00e9", "\U0001f9e0", "a ", "0", "'' ", "../"))
    return _replace(text, _VALUE, rng, piece * int(pick(rng, (300, 5000, 100_000, 1_000_000))))


def unicode_value(text: str, rng: Generator) -> str:
    """A text with characters that are hard to print."""
    return _replace(text, _VALUE, rng, pick(rng, ESCAPES))


def _key_before(text: str, at: int) -> str:
    """Return the word in front of the colon before a value."""
    return text[:at].rpartition(":")[0].rpartition(" ")[2].strip("{,\n")


def _likely(key: Key, text: str, rng: Generator) -> str:
    """Return a value of the key's kind, with small numbers more often than large ones."""
    low: int | None
    match key.kind:
        case Flag():
            return pick(rng, ("true", "false", "1", "0"))
        case Choice(choices=choices):
            return str(pick(rng, list(choices)))
        case Mask():
            count, first = int(rng.integers(1, 65)), int(rng.integers(64))
            return hex(((1 << count) - 1 << first & (1 << 64) - 1) or 1)
        case KernelSize():
            return pick(rng, ("1x1", "3x3", *map(str, range(1, 10))))
        case Reference(several=several):
            one = _reference(text, rng)
            return f"[{one}, {_reference(text, rng)}]" if several and rng.random() < 0.5 else one
        case Pair(low=low, high=high):
            one = _number(low, high, rng)
            return f"[{one}, {_number(low, high, rng)}]" if rng.random() < 0.5 else one
        case Integers(low=low, high=high):
            return f"[{_number(low, high, rng)}, {_number(low, high, rng)}]"
        case Integer(low=low, high=high):
            return _number(low, high, rng)
    return pick(rng, ("test", "small", "x", "a-b", "X1", "'a b'"))


def _number(low: int | None, high: int | None, rng: Generator) -> str:
    least = -16 if low is None else low
    most = int(pick(rng, (2, 4, 16, 64, 1024, 0x2000, 0x8000, 0x20000, 0x100000)))
    return str(int(rng.integers(least, max(least, most if high is None else min(most, high)) + 1)))


def _reference(text: str, rng: Generator) -> str:
    names: list[str] = re.findall(r"name: ([\w-]+)", text)
    return pick(rng, ("stop", "input", "-1", "-2", "99", *map(str, range(6)), *names))


# -- keys ----------------------------------------------------------------------------------------


def misspelt_key(text: str, rng: Generator) -> str:
    """A key of another spelling: a typing error, upper case, another key, no text at all."""
    return _replace(text, _KEY, rng, pick(rng, (*KEYS, *_KEYS)))


def added_key(text: str, rng: Generator) -> str:
    """A layer gets a further key with a value that the key can have."""
    head, elements = _elements(text)
    if not elements:
        return text + "\n" + _likely(pick(rng, LAYER_KEYS), text, rng)
    at = int(rng.integers(len(elements)))
    key = pick(rng, LAYER_KEYS)
    word = f"{pick(rng, key.spellings)}: {_likely(key, text, rng)}"
    elements[at] = _with_key(elements[at], word)
    return head + "".join(elements)


def added_keys(text: str, rng: Generator) -> str:
    """Layers get several further keys."""
    for _ in range(int(rng.integers(2, 5))):
        text = added_key(text, rng)
    return text


def moved_key(text: str, rng: Generator) -> str:
    """A line moves into another layer."""
    lines, at = _any_line(text, rng)
    line = lines.pop(at)
    _, to = _any_line("".join(lines), rng)
    lines.insert(to, line)
    return "".join(lines)


def unhashable_key(text: str, rng: Generator) -> str:
    """A key that is a list, a mapping, or merged from elsewhere."""
    key = pick(rng, UNHASHABLE)
    return key + text if rng.random() < 0.5 else text + key


def _with_key(element: str, word: str) -> str:
    """Add `key: value` to an element of `layers`, which may be in flow style."""
    if re.match(r"\s*- \{", element):
        return element.replace("{", "{" + word + ", ", 1)
    dash = re.match(r"(\s*)- ", element)
    return f"{dash.group()}{word}\n{dash.group(1)}  {element[dash.end() :]}" if dash else element


# -- layers and structure ------------------------------------------------------------------------


def rearranged_layers(text: str, rng: Generator) -> str:
    """A layer is missing, stands twice or in another place."""
    head, elements = _elements(text)
    if not elements:
        return truncate(text, rng)
    one, two = (int(n) for n in rng.integers(len(elements), size=2))
    match int(rng.integers(4)):
        case 0:
            del elements[one]
        case 1:
            elements.insert(two, elements[one])
        case 2:
            elements[one], elements[two] = elements[two], elements[one]
        case _:
            elements = elements[:one] or elements
    return head + "".join(elements)


def many_layers(text: str, rng: Generator) -> str:
    """The layers are repeated, up to more than any chip has."""
    head, elements = _elements(text)
    count = int(pick(rng, (2, 3, 9, 40, 300, 3000)))
    return head + "".join(elements * min(count, 1 + 2 * _LONGEST // len(text or " ")))


def renumbered_layers(text: str, rng: Generator) -> str:
    """Layers get slots and successors of any number."""
    head, elements = _elements(text)
    for at in range(len(elements)):
        if rng.random() < 0.5:
            key = pick(rng, ("sequence", "next_sequence", "simulated_sequence", "in_sequences"))
            elements[at] = _with_key(elements[at], f"{key}: {_reference(text, rng)}")
    return head + "".join(elements)


def aliases(text: str, rng: Generator) -> str:
    """Anchors and aliases: of a layer, of itself, or many of many."""
    bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"a{i + 1}: &a{i + 1} [{', '.join([f'*a{i}'] * 9)}]\n" for i in range(12)
    )
    layer_bomb = text.replace("layers:", bomb + "layers: *a9\nx:", 1)
    head, elements = _elements(text)
    shared = [*elements]
    if shared:
        shared[0] = shared[0].replace("- ", "- &one\n    ", 1)
        shared.append(re.split(r"-", shared[0], maxsplit=1)[0] + "- *one\n")
    value = "&v " + pick(rng, ("[*v]", "{a: *v}", "[[[*v]]]", "1"))
    choices = (bomb + text, text + bomb, layer_bomb, head + "".join(shared),
               _replace(text, _VALUE, rng, value), _replace(text, _VALUE, rng, "*unknown"),
               text.replace("layers:", "layers: &all", 1) + "  - *all\n")  # fmt: skip
    return pick(rng, choices)


def deep_nesting(text: str, rng: Generator) -> str:
    """Lists or mappings within each other."""
    depth = int(pick(rng, (10, 40, 1000, 30_000, 500_000)))
    opening = pick(rng, ("[", "{a: ", "{", "- ", "? ", "[{a: ", "!!seq ["))
    if rng.random() < 0.5:
        return _replace(text, _VALUE, rng, opening * depth)
    closing = {"[": "]", "{a: ": "}"}.get(opening, "")
    return _replace(text, _VALUE, rng, opening * depth + "1" + closing * depth)


def documents(text: str, rng: Generator) -> str:
    """Markers of documents and directives."""
    lines, at = _any_line(text, rng)
    lines.insert(pick(rng, (0, at, len(lines))), pick(rng, DOCUMENTS))
    return "".join(lines)


def tags(text: str, rng: Generator) -> str:
    """A tag that means an object, another type, or nothing."""
    if rng.random() < 0.2:
        return pick(rng, ("!!python/object:os.x ", "!!omap ", "!!set ", "!x ", "!!str ")) + text
    return _replace(text, _VALUE, rng, pick(rng, TAGS))


def several(text: str, rng: Generator) -> str | bytes:
    """Two to four of the others, one after another."""
    for _ in range(int(rng.integers(2, 5))):
        mutated = pick(rng, SINGLE)(text, rng)
        if isinstance(mutated, bytes) or len(mutated) > _LONGEST:
            return mutated
        text = mutated
    return text


SINGLE: tuple[TextMutation, ...] = (
    delete_line, duplicate_line, swap_lines, indent_line, truncate, damage_characters, damage_bytes,
    flip_bits, other_content, odd_value, huge_value, near_value, likely_value, likely_values,
    another_value, long_value, unicode_value, misspelt_key, added_key, added_keys, moved_key,
    unhashable_key, rearranged_layers, many_layers, renumbered_layers, aliases, deep_nesting,
    documents, tags,
)  # fmt: skip
MUTATIONS: tuple[TextMutation, ...] = (*SINGLE, several)
