"""Compiled templates, kept beside their sources as Python keeps its own modules.

Jinja2 needs some 5 ms to compile a template, more than to render it. A store holds the code of all
templates. A template whose text is not the one that was compiled is compiled again, so that the
store never changes a result; a store that is damaged, or made by another Python, another Jinja2 or
with other settings, counts as empty.
"""

from __future__ import annotations

import contextlib
import importlib.util
import marshal
import sys
import zlib
from collections.abc import MutableMapping
from pathlib import Path
from types import CodeType
from typing import Any

import jinja2
from jinja2 import BaseLoader, Environment, Template, TemplateNotFound

from ai8xtools.checkpoint import atomic

Store = dict[str, tuple[bytes, bytes]]
"""By the name of a template: its text, and its code in the form of `marshal`."""

_MAKER = importlib.util.MAGIC_NUMBER + f" jinja2 {jinja2.__version__} ".encode()
_CHECK_BYTES = 4


class CompiledLoader(BaseLoader):
    """Templates of a folder, compiled at most once; `store` is the file that keeps their code.

    `settings` is the text of what decides the code besides the templates: options and filters.
    """

    def __init__(self, folder: Path, store: Path, settings: bytes) -> None:
        self.folder, self.store = folder, store
        self._seal = _MAKER + _check(settings)
        self._compiled = self._stored()

    def load(
        self,
        environment: Environment,
        name: str,
        globals: MutableMapping[str, Any] | None = None,
    ) -> Template:
        """Return a template; raise TemplateNotFound if the folder does not hold it."""
        text = self._text(name)
        source, code = self._compiled.get(name, (None, b""))
        if source == text:
            compiled: CodeType = marshal.loads(code)
        else:
            compiled = self._compile(environment, name, text)
            if not sys.dont_write_bytecode:
                self.keep(environment)
        return environment.template_class.from_code(
            environment, compiled, environment.make_globals(globals)
        )

    def keep(self, environment: Environment) -> None:
        """Compile all templates of the folder into the store, if the disk allows it."""
        names = sorted(
            path.relative_to(self.folder).as_posix() for path in self.folder.glob("**/*.j2")
        )
        texts = {name: self._text(name) for name in names}
        self._compiled = {
            name: (text, marshal.dumps(self._compile(environment, name, text)))
            for name, text in texts.items()
        }
        with contextlib.suppress(OSError):
            content = marshal.dumps(self._compiled)
            atomic.write_bytes(self.store, self._seal + _check(content) + content)

    def _stored(self) -> Store:
        """Return the content of the store; empty if it is absent, damaged or made with other
        settings.
        """
        try:
            sealed = self.store.read_bytes()
        except OSError:
            return {}
        start = len(self._seal) + _CHECK_BYTES
        content = sealed[start:]
        if sealed[:start] != self._seal + _check(content):
            return {}
        store: Store = marshal.loads(content)
        return store

    def _text(self, name: str) -> bytes:
        try:
            return (self.folder / name).read_bytes()
        except FileNotFoundError:
            raise TemplateNotFound(name) from None

    def _compile(self, environment: Environment, name: str, text: bytes) -> CodeType:
        return environment.compile(text.decode(), name, f"{self.folder.name}/{name}")


def store_of(folder: Path) -> Path:
    """Return the file that keeps the templates of a folder: where Python keeps its modules."""
    cached = importlib.util.cache_from_source(str(folder / "templates.py"))
    return Path(cached).with_suffix(".jinja")


def _check(content: bytes) -> bytes:
    return zlib.crc32(content).to_bytes(_CHECK_BYTES)
