#!/usr/bin/env python3
"""Train and evaluate networks for the MAX78000 and MAX78002; see --help."""

from __future__ import annotations

import os
import sys

from diagnostics import run


def main() -> int:
    """Do what the command line says."""
    from commands.train.arguments import parse

    options, firmware = parse(sys.argv[1:])
    if "WORLD_SIZE" in os.environ:  # hints of torch.distributed would hide our own messages
        os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    # PyTorch takes seconds to import: --help needs none of it, and `run` reports Ctrl-C meanwhile.
    from training import session

    if firmware is None:
        session.run(options)
        return 0
    from commands.train.firmware import FirmwareNetwork

    compares = options.exp_load_weights_from is not None or options.import_model
    measured = FirmwareNetwork(firmware, compares=compares)
    session.run(options, measured.around)
    print(measured.summary())
    return int(bool(measured.departures))


if __name__ == "__main__":
    sys.exit(run(main))
