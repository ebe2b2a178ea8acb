"""Mutants of C: constants, comparisons, arithmetic; constants of inline assembly, too."""

from __future__ import annotations

import random
import re

_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_STRING = re.compile(r'"(?:\\.|[^"\\])*"')
_SITE = re.compile(
    r"(?P<number>(?<![\w.])(?:0x[0-9a-fA-F]+|\d+)(?![\w.:]*[bf:.])(?=[uU]?[lL]*\b))"
    r"|(?<= )(?P<sign><<=|>>=|[-+*/%&|^]=|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%<>&|^])(?= )"
    r"|(?P<step>\+\+|--)"
)
_OTHERS = {
    "<": "<= >", "<=": "< >=", ">": ">= <", ">=": "> <=", "==": "!=", "!=": "==",
    "+": "-", "-": "+", "*": "+", "/": "*", "%": "/", "<<": ">>", ">>": "<<",
    "&": "|", "|": "&", "^": "|", "&&": "||", "||": "&&",
    "+=": "-=", "-=": "+=", "*=": "+=", "/=": "*=", "%=": "/=", "<<=": ">>=", ">>=": "<<=",
    "&=": "|=", "|=": "&=", "^=": "|=", "++": "--", "--": "++",
}  # fmt: skip

_EITHER = re.compile(
    r"(?<![\w.>])(?=(\w[^=?:]*?) (?P<sign><=?|>=?) ([^=?:]+?) \? (?:\1 : \3|\3 : \1)(?!\w))"
)
"""The larger or smaller of two, where equal ones do not matter."""


class CFile:
    """A file of C from which mutants are drawn."""

    def __init__(self, text: str) -> None:
        self._text = text
        blank = _COMMENT.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)
        # instructions of assembly end a line; other strings are wording
        blank = _STRING.sub(lambda m: m[0] if m[0].endswith('\\n"') and "%" not in m[0] else
                            m[0] if re.fullmatch(r'"[a-z.]+\w* .*\\n"', m[0]) else " " * len(m[0]),
                            blank)  # fmt: skip
        self._lines = blank.split("\n")
        self.lines = [
            number for number, line in enumerate(self._lines, 1)
            if line.strip(" {}\\;") and not re.match(r"\s*#\s*(include|if|el|end|undef)", line)
        ]  # fmt: skip

    def drawn(self, line: int, rng: random.Random) -> str | None:
        """Return the text with a mutant of a line."""
        code = self._lines[line - 1]
        sites = [site for site in _SITE.finditer(code) if not _is_label(code, site)]
        if not sites:
            return None
        site = rng.choice(sites)
        if site["number"]:
            value = int(site[0], 0 if site[0].startswith("0x") else 10)
            value = value + 1 if value == 0 else value + rng.choice((1, -1))
            new = hex(value) if site[0].startswith("0x") else str(value)
        else:
            others = _OTHERS[site[0]].split()
            if site.start() in {one.start("sign") for one in _EITHER.finditer(code)}:
                others = others[1:]
            new = rng.choice(others)
        lines = self._text.split("\n")
        whole = lines[line - 1]
        lines[line - 1] = whole[: site.start()] + new + whole[site.end() :]
        return "\n".join(lines)


def _is_label(code: str, site: re.Match[str]) -> bool:
    """Whether a number is a label of assembly, the place that a branch goes to, or an operand."""
    rest = code[site.end() : site.end() + 1]
    before = code[: site.start()].rstrip()
    in_string = code.count('"', 0, site.start()) % 2 == 1
    return in_string and (
        rest in ("b", "f", ":") or before.endswith(("%", "=&")) or not site["number"]
    )
