"""What data sets raise when their files are missing or damaged."""

from __future__ import annotations


class DatasetError(Exception):
    """A data set cannot be read: `place` is a file or folder, `remedy` says what to do."""

    def __init__(self, code: str, message: str, place: str, remedy: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.place = place
        self.remedy = remedy
