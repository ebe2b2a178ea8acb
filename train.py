#!/usr/bin/env python3
"""Train and evaluate networks for the MAX78000 and MAX78002; see --help."""

from __future__ import annotations

import os
import sys

from diagnostics import run


def main() -> int:
    """Do what the command line says."""
    from commands.train.arguments import parse

    options = parse(sys.argv[1:])
    if "WORLD_SIZE" in os.environ:  # hints of torch.distributed would hide our own messages
        os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    # PyTorch takes seconds to import: --help needs none of it, and `run` reports Ctrl-C meanwhile.
    from training import session

    session.run(options)
    return 0


if __name__ == "__main__":
    sys.exit(run(main))
