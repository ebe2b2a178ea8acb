"""Rendering: the templates of the project and the few filters and tests they need."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined

from ai8xtools.root import ROOT
from ai8xtools.writing.compiled import CompiledLoader, store_of

TEMPLATES = ROOT / "templates"


def render(template: str, **values: Any) -> str:
    """Return the text of a template, named relative to the folder of templates."""
    return _environment().get_template(template).render(values)


def compile_all() -> None:
    """Compile all templates ahead, so that the first program that renders one need not."""
    environment = _environment()
    assert isinstance(environment.loader, CompiledLoader)
    environment.loader.keep(environment)


@cache
def _environment() -> Environment:
    settings = Path(__file__).read_bytes()
    environment = Environment(
        loader=CompiledLoader(TEMPLATES, store_of(TEMPLATES), settings),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        auto_reload=False,
        autoescape=_is_html,
    )
    environment.filters |= {
        "hex": hexadecimal,
        "indented": indented,
        "comment": comment,
        "c_string": c_string,
        "xml": xml,
        "make": make,
        "property": property_value,
    }
    environment.tests["of_class"] = of_class
    return environment


def _is_html(template: str | None) -> bool:
    """Whether all values are escaped as HTML; elsewhere each place has a filter of its own."""
    return template is not None and template.endswith((".html.j2", ".svg.j2"))


def of_class(value: object, name: str) -> bool:
    """Whether the class of a value has this name: `{% if step is of_class "Write" %}`."""
    return type(value).__name__ == name


def hexadecimal(value: int, digits: int = 8) -> str:
    """Return a number as C writes it: `0x00100008`."""
    return f"0x{value:0{digits}x}"


def indented(text: str, indent: int = 4) -> str:
    """Indent the lines of a macro for a place in the text; its last newline is dropped."""
    margin = " " * indent
    return "\n".join(margin + line if line else line for line in text.rstrip("\n").split("\n"))


def comment(text: str) -> str:
    """Make a text of the user safe inside a comment of one line: ASCII, and it cannot end it."""
    safe = text.encode("unicode_escape").decode("ascii")
    return safe.replace("*/", "* /").replace("??/", "?? /")


def c_string(text: str) -> str:
    """Make a text of the user safe inside the format string of `printf`: UTF-8 bytes, escaped."""
    plain = frozenset(range(0x20, 0x7F)) - set(b'"\\%?')
    escaped = (chr(b) if b in plain else f"\\{b:03o}" for b in text.encode())
    return "".join("%%" if part == "\\045" else part for part in escaped)


def xml(text: str) -> str:
    """Escape a text for element content and attribute values."""
    for raw, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;")):
        text = text.replace(raw, entity)
    return text


def make(text: str) -> str:
    """Escape a text for a variable of a Makefile."""
    return text.replace("$", "$$").replace("#", "\\#").replace("\n", " ")


def property_value(text: str) -> str:
    """Escape a text for names and values of a Java properties file."""
    escaped = "".join(f"\\{c}" if c in "\\:=#! " else c for c in text)
    return escaped.encode("ascii", "backslashreplace").decode("ascii").replace("\n", "\\n")
