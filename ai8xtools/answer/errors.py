"""The error for answer files."""

from __future__ import annotations

from ai8xtools.diagnostics.errors import ToolError


class AnswerError(ToolError):
    """The file is damaged (E850) or of a newer version (E851)."""
