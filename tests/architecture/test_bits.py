"""No bits by hand: the words of registers are made and read by the names of their fields.

Rooms that make or read accelerator words neither shift nor mask: `device` declares the registers,
numpy views turn bytes into words. What is no register stands in a helper module or is listed here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT

ROOMS = {"ai8xtools/synthesis/encode": True, "ai8xtools/emulator": False}
"""Folders below the root; in strict ones no two values are combined bit by bit at all, and no
number looks like a word. In the others arrays of truth values are, and addresses are numbers."""

HELPERS = {
    "ai8xtools/emulator/bits.py": "bytes of words, signed values, sets of numbers; no registers",
    "ai8xtools/emulator/firmware/ciphers.py": "AES, CRC and random numbers; no registers",
    "ai8xtools/emulator/cpu/instructions.py": "decodes instructions of the cores; no registers",
    "ai8xtools/emulator/proof/kernels.py": "flags and shifts of functions in C; no registers",
    "ai8xtools/emulator/proof/fingerprints.py": "a keyed hash of random numbers; no registers",
}
"""Modules whose subject is the arithmetic on bits."""

ALLOWED = {
    (f"ai8xtools/emulator/{file}", text): reason
    for (file, text), reason in {
    ("cpu/core.py", "UC_PROT_READ | UC_PROT_EXEC"): "flags of unicorn",
    ("cpu/core.py", "back | core.code_bit"): "Thumb addresses are odd",
    ("cpu/gdb/packets.py", "byte ^ _ESCAPED_BY"): "so gdb's protocol escapes bytes",
    ("cpu/core.py", "uc.reg_read(core.position) & ~core.code_bit"): "the same",
    ("cpu/core.py", "position | core.code_bit"): "the same",
    ("cpu/core.py", "int(self._uc.reg_read(core.link)) & ~core.code_bit"): "the same",
    ("cpu/core.py", "self.image.symbols[name] & ~family.code_bit"): "the same",
    ("cpu/counting.py", "self._image.symbols[name] & ~family.code_bit"): "the same",
    ("cpu/architecture.py", "UC_MODE_THUMB | UC_MODE_MCLASS"): "flags of unicorn",
}.items()
}  # fmt: skip
"""Why an expression is not a word that is made or taken apart by hand."""

_SHIFTS = (ast.LShift, ast.RShift)
_MASKS = (ast.BitAnd, ast.BitOr, ast.BitXor)
_DICTIONARIES = (ast.Dict, ast.DictComp)
_NUMPY = {"left_shift", "right_shift", "invert", "bitwise_not", "bitwise_and", "bitwise_or",
          "bitwise_xor", "packbits", "unpackbits"}  # fmt: skip
_LARGEST_COUNT = 255
"""Larger numbers are more likely to be words than counts."""


def findings(source: str, *, strict: bool) -> Iterator[str]:
    """Yield the shifts, masks and likely words of a module as they stand there."""
    tree = ast.parse(source)
    typed = {id(part) for node in ast.walk(tree) for part in _types(node)}
    for node in ast.walk(tree):
        if id(node) not in typed and _is_by_hand(node, source, strict):
            yield ast.get_source_segment(source, node) or ast.unparse(node)


def _types(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the expressions in which `|` joins types."""
    found: list[ast.AST | None] = []
    if isinstance(node, ast.arg | ast.AnnAssign):
        found.append(node.annotation)
    elif isinstance(node, ast.FunctionDef):
        found.append(node.returns)
    elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "cast"):
        found += node.args
    elif isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp):
        names = {part.id for part in ast.walk(node.value) if isinstance(part, ast.Name)}
        if all(_is_class(name) for name in names):
            found.append(node.value)  # an alias of types
    for expression in found:
        if expression is not None:
            yield from ast.walk(expression)


def _is_class(name: str) -> bool:
    return name in ("int", "str", "float", "bytes") or (name[0].isupper() and not name.isupper())


def _is_by_hand(node: ast.AST, source: str, strict: bool) -> bool:
    match node:
        case ast.BinOp(left, op, right):
            return isinstance(op, _SHIFTS) or _is_mask(op, (left, right), strict)
        case ast.AugAssign(_, op, value):
            return isinstance(op, _SHIFTS) or _is_mask(op, (value,), strict)
        case ast.UnaryOp(ast.Invert(), _):
            return strict
        case ast.Attribute(_, name) if name in _NUMPY:
            return strict
        case ast.Constant(int(value)) if strict and not isinstance(value, bool):
            text = ast.get_source_segment(source, node) or ""
            return value > _LARGEST_COUNT or text[:2].lower() in ("0x", "0b", "0o")
    return False


def _is_mask(op: ast.operator, operands: tuple[ast.expr, ...], strict: bool) -> bool:
    """Whether values are combined bit by bit; if not strict, only with a constant."""
    if not isinstance(op, _MASKS) or any(isinstance(x, _DICTIONARIES) for x in operands):
        return False
    return strict or any(map(_is_constant, operands))


def _is_constant(node: ast.expr) -> bool:
    """Whether a node is a number, or a constant by its name."""
    match node:
        case ast.UnaryOp(_, operand):
            return _is_constant(operand)
        case ast.Attribute(_, name) | ast.Name(name):
            return name.isupper() or name == "code_bit"
    return isinstance(node, ast.Constant) and isinstance(node.value, int)


def _modules() -> list[tuple[Path, bool]]:
    return [
        (path, strict)
        for room, strict in ROOMS.items()
        for path in sorted((ROOT / room).rglob("*.py"))
        if str(path.relative_to(ROOT)) not in HELPERS
    ]


@pytest.mark.parametrize(
    ("path", "strict"), [pytest.param(*m, id=str(m[0].relative_to(ROOT))) for m in _modules()]
)
def test_words_are_made_of_named_fields(path: Path, strict: bool) -> None:
    name = str(path.relative_to(ROOT))
    found = {
        text for text in findings(path.read_text(), strict=strict) if (name, text) not in ALLOWED
    }
    assert found == set()


def test_every_permission_is_needed() -> None:
    found = {
        (str(path.relative_to(ROOT)), text)
        for path, strict in _modules()
        for text in findings(path.read_text(), strict=strict)
    }
    assert set(ALLOWED) <= found
    assert all((ROOT / name).exists() for name in HELPERS)


@pytest.mark.parametrize(
    "line",
    [
        "word = field << 12",
        "word >>= 4",
        "word |= 8",
        "low = word & 0xF",
        "first = lowest & ~3",
        "cleared = word & ~MASK",
    ],
)
def test_bits_by_hand_are_found(line: str) -> None:
    assert [*findings(line, strict=True)] and [*findings(line, strict=False)]


@pytest.mark.parametrize(
    "line",
    [
        "word |= enable",
        "low = value & mask",
        "rest = ~mask",
        "START = 0x1C80",
        "DONE = 4096",
        "bits = np.bitwise_or.reduce(parts)",
    ],
)
def test_strict_rooms_combine_nothing_bit_by_bit(line: str) -> None:
    assert [*findings(line, strict=True)] and not [*findings(line, strict=False)]


@pytest.mark.parametrize(
    "line",
    [
        "def f(x: int | None) -> int | str: return x",
        "fields |= {'enable': 1}",
        "both = {**one} | {'b': 2}",
        "Step = Write | Wait",
        "isinstance(x, int | str)",
        "last = count // 16 * 16 - 1",
        "found: dict[str, int | None] = {}",
    ],
)
def test_types_dictionaries_and_counts_are_not(line: str) -> None:
    assert [*findings(line, strict=True)] == []
