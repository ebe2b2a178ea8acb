"""Generated names with a prefix of the user: files, functions, types and macros.

Source: docs/library.md, "Names".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ai8xtools.diagnostics import Diagnostic, Place

OPTION = "--symbol-prefix"
_LONGEST = 31
"""The number of characters of a name that every linker distinguishes."""
_KEYWORDS = frozenset(
    word
    for line in (
        "alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl",
        "concept const consteval constexpr constinit const_cast continue co_await co_return",
        "co_yield decltype default delete do double dynamic_cast else enum explicit export extern",
        "false float for friend goto if inline int long mutable namespace new noexcept not not_eq",
        "nullptr operator or or_eq private protected public register reinterpret_cast requires",
        "restrict return short signed sizeof static static_assert static_cast struct switch",
        "template this thread_local throw true try typedef typeid typename typeof union unsigned",
        "using virtual void volatile wchar_t while xor xor_eq",
        "main errno stdin stdout stderr linux unix mips arm",
        "assert ctype limits math stdarg stdbool stddef stdint stdio stdlib string time",
    )
    for word in line.split()
)
"""Of C and C++, words that many compilers or libraries define, and headers."""
_TAKEN = frozenset({"cnn", "nn", "nnb", "mxc", "softmax"})
"""What names of the project and of the SDK begin with."""
_PROGRAM = re.compile(r"main(_riscv)?\.c")
_OWN = re.compile(
    r"\b(?:(?:cnn|nn|softmax)_\w+|memcpy32(?:_const)?|q(?:15|31)_t"
    r"|(?:CNN|NN|WEIGHTS|BIAS|SAMPLE|SAMPLEDATA|INPUT|OUTPUT|SYS)_\w+|KERNELS(?:_\d+)?)\b"
)
_SDK = frozenset({"CNN_IRQn", "CNN_IRQHandler"})
_GUARD = re.compile(r"\b__(CNN_H)__\b")


def complaints(prefix: str | None, option: str = OPTION) -> Iterator[Diagnostic]:
    """Yield E911 for a word of an option that cannot begin names of C and C++, and of files."""
    if prefix is None:
        return
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", prefix):
        why, remedy = "is no identifier of C", "Begin with a letter; use letters, digits and _."
    elif prefix.lower() in _KEYWORDS:
        why, remedy = "is a reserved word", "Use another name, for example that of the network."
    elif prefix.lower() in _TAKEN or any(
        map(_OWN.fullmatch, (f"{prefix}_a", f"{prefix.lower()}_a", f"{prefix.upper()}_A"))
    ):
        why, remedy = "is what other names begin with", "Use that of your network."
    elif len(prefix) > _LONGEST or "__" in prefix or prefix.endswith("_"):
        why = "is no name that everything takes"
        remedy = f"Use at most {_LONGEST} characters, without __ and _ at the end."
    else:
        return
    yield Diagnostic("E911", f"{prefix!r} {why}", Place(option=option), remedy)


def prefixed(files: Mapping[str, str], prefix: str) -> dict[str, str]:
    """Return the files of a project with a prefix before their names and before those in them.

    The program keeps its name; what it defines itself is not renamed.
    """
    names = {
        name: f"{prefix}_{name}"
        for name in files
        if name.endswith((".c", ".h")) and not _PROGRAM.fullmatch(name)
    }
    stems = "|".join(sorted((re.escape(name[:-2]) for name in names), key=len, reverse=True))
    paths = re.compile(rf"(?<![\w.])({stems})(?=\.[cho]\b)")

    def renamed(match: re.Match[str]) -> str:
        word = match[0]
        if word in _SDK:
            return word
        return f"{prefix.upper() if word.isupper() else prefix}_{word}"

    def text(content: str) -> str:
        content = _GUARD.sub(r"\1", content)
        content = paths.sub(rf"{prefix}_\1", content)
        return _OWN.sub(renamed, content).replace("libcnn.a", f"lib{prefix}.a")

    return {names.get(name, name): text(content) for name, content in files.items()}


def unprefixed(text: str, prefix: str) -> str:
    """Return a text of a project without a prefix before the names that `prefixed` gives it to."""
    names = re.compile(rf"\b(?:{prefix}|{prefix.upper()})_(\w+)")
    return names.sub(lambda match: match[1] if _OWN.fullmatch(match[1]) else match[0], text)
