#!/usr/bin/env python3
"""Quantize a trained checkpoint: integer weights and biases, and an output shift for each layer."""

from __future__ import annotations

import interrupts  # noqa: F401 - before all else

# isort: split

import sys
from collections.abc import Sequence

from diagnostics import run


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says."""
    words = [*(sys.argv[1:] if arguments is None else arguments)]
    # inside, so that `run` reports Ctrl-C meanwhile
    if "BITNET" in " ".join(words).upper():
        from commands.lowbit.arguments import is_lowbit

        if is_lowbit(words):
            from commands.lowbit.quantize import quantize_lowbit

            return quantize_lowbit(words)
    if "Q15" in " ".join(words).upper() or "Q7" in " ".join(words).upper():
        from commands.q15.arguments import is_q15

        if is_q15(words):
            from commands.q15.quantize import quantize_q15

            return quantize_q15(words)
    if "FIXED" in " ".join(words).upper():
        from commands.fixed.arguments import is_fixed

        if is_fixed(words):
            from commands.fixed.quantize import quantize_fixed

            return quantize_fixed(words)
    from commands.quantize.arguments import parse
    from commands.quantize.quantize import quantize

    quantize(parse(arguments))
    return 0


if __name__ == "__main__":
    sys.exit(run(main))
