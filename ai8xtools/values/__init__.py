"""Frozen values that cost little to declare.

`dataclasses.dataclass(frozen=True)` writes six methods for each class as text and compiles them,
whenever a program starts. The network loader declares more than a hundred classes, which took it
more than half the time in which numpy is imported. With `frozen` all classes share these methods.
What it makes is a dataclass in every other respect.
"""

from ai8xtools.values.frozen import frozen

__all__ = ["frozen"]
