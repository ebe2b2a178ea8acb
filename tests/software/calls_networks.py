"""Every network of networks/ with calls of Arm's functions.

A part of `make measure WHAT=cmsis-images`.

Weights are random. The C runs on this computer with sanitizers; its output must be that of the
simulation.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from ai8xtools.synthesis.understand import understand
from tests.networks.deployed import BY_FILE, Deployed, with_random_weights
from tests.software.calls import files_of_calls
from tests.software.compiled import SANITIZED, compiler, passed, run_project


def judge(deployed: Deployed) -> str | None:
    """Return what is wrong with a network."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        checkpoint, _ = with_random_weights(deployed, folder)
        network, _, _ = understand(deployed.path, None, deployed.resolving(folder, checkpoint))
        files = files_of_calls(network)
        result = run_project(files, folder / "project", SANITIZED)
    return None if passed(result) else f"{result.stdout[-300:]}{result.stderr[-300:]}"


def main() -> int:
    """Compare all networks; the exit status is 1 if one differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=[*BY_FILE])
    args = parser.parse_args()
    if compiler() is None:
        print("error: there is neither a C compiler nor ziglang")
        return 1
    failed = 0
    for name in args.names:
        wrong = judge(BY_FILE[name])
        print(f"{name}: {'equal' if wrong is None else wrong}", flush=True)
        failed += wrong is not None
    print(f"{len(args.names) - failed} of {len(args.names)} networks equal their simulation")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
