"""Cores that execute different instructions."""

from __future__ import annotations

from ai8xtools.emulator.cpu.architecture import ARCHITECTURES

DIFFERENT = tuple(name for name in ARCHITECTURES if name not in ("cortex-m7", "cortex-m55"))
"""Without those that execute, as they are emulated, what a Cortex-M4 or M33 does."""
