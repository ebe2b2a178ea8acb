"""Run the firmware of a generated project on an emulated chip, without a board.

The C files are compiled as they are and main() runs from reset on a Cortex-M4 with the accelerator
behind its bus. With --words, recorded words are executed instead of firmware.
"""

from __future__ import annotations

import argparse
import io
from pathlib import Path

import numpy as np

from checkpoint.atomic import write_bytes
from device.chip import ACCELERATOR_ALIGNMENT, DEFAULT_APB_BASE, HIGHEST_APB_BASE
from emulator import AddressMap, Board, EmulatorError, Outcome, Run, run_words
from emulator.report import describe_layer, describe_registers, producers
from emulator.words import read_words
from scripts.arguments import Parser, chip

SHOWN_MISMATCHES = 10


def seconds(text: str) -> float:
    """Convert a positive number of seconds for argparse."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number of seconds")
    return value


def base_address(text: str) -> int:
    """Convert the accelerator's base address, decimal or 0x, for argparse."""
    try:
        value = int(text, 0)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
    if value % ACCELERATOR_ALIGNMENT or not 0 <= value <= HIGHEST_APB_BASE:
        raise argparse.ArgumentTypeError(
            f"{text} is not a multiple of {ACCELERATOR_ALIGNMENT:#x} "
            f"from 0 to {HIGHEST_APB_BASE:#x}"
        )
    return value


def arguments() -> Parser:
    """Return the parser of the command line."""
    parser = Parser(description=__doc__)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("project", nargs="?", metavar="PROJECT_DIR", help="folder with the C files")
    what.add_argument("--words", metavar="FILE", help="execute recorded words (.npz) instead")
    option = parser.add_argument
    option("--device", type=chip, metavar="NAME",
           help="MAX78000 or MAX78002 (a project shows it by itself)")  # fmt: skip
    option(
        "--apb-base", type=base_address, default=DEFAULT_APB_BASE, metavar="N", help="base address"
    )
    option("--time-limit", type=seconds, default=60.0, metavar="S",
           help="end the program after S seconds (default: 60)")  # fmt: skip
    option("--dump", metavar="FILE", help="with --words: write data memory (.npz: addr, value)")
    option("-v", "--verbose", action="store_true", help="show what each layer does")
    return parser


def emulate_project(args: argparse.Namespace) -> int:
    """Run a project; return 0 if it reports success."""
    board = Board.with_project(args.project, args.device, args.apb_base, show)
    outcome = board.run(args.time_limit)
    if outcome.run is not None:
        show_run(outcome.run, args.verbose)
    if outcome.passed:
        inferences = (
            "1 inference" if outcome.inferences == 1 else f"{outcome.inferences} inferences"
        )
        print(f"PASS ({inferences})")
        return 0
    explain_failure(board, outcome)
    print("FAIL")
    return 1


def show(text: str) -> None:
    """Show what the program prints, as it prints it."""
    print(text, end="", flush=text == "\n")


def show_run(executed: Run, verbose: bool) -> None:
    """Show the layers of a run and what is suspicious about them."""
    if verbose:
        for layer in executed.layers:
            print(describe_layer(layer.config))
    for finding in executed.findings:
        if verbose or not finding.harmless:
            print(f"{'note' if finding.harmless else 'warning'}: {finding}")


def explain_failure(board: Board, outcome: Outcome) -> None:
    """Say which layer wrote the word at which the program found a difference."""
    if outcome.run is None or outcome.failed_at is None or board.bus.addresses is None:
        print("The program gave up before it checked a result.")
        return
    place = board.bus.addresses.describe(outcome.failed_at)
    print(f"The last word read was 0x{outcome.failed_at:08x} ({place}).")
    for layer, content in producers(outcome.run, board.bus.addresses, outcome.failed_at)[:1]:
        print(f"It holds {content}. Registers of that layer in group 0:")
        for line in describe_registers(board.accelerator.memory, layer.config.layer):
            print(f"  {line}")


def emulate_words(args: argparse.Namespace) -> int:
    """Execute recorded words; return 0 if the result is as expected."""
    recording = read_words(Path(args.words))
    executed, words = run_words(recording, args.device, args.apb_base)
    show_run(executed, args.verbose)
    if args.dump:
        dump(words, Path(args.dump))
    mismatches = recording.mismatches(words)
    addresses = AddressMap(args.device, args.apb_base)
    for address, wanted, found in mismatches[:SHOWN_MISMATCHES]:
        holds = "".join(f", {text}" for _, text in producers(executed, addresses, address)[:1])
        print(f"0x{address:08x}{holds}: expected 0x{wanted:08x}, found 0x{found:08x}")
    expected = len(recording.expected)
    if not expected:
        print(f"{len(executed.layers)} layers executed; the recording expects nothing")
        return 0
    print(f"{expected - len(mismatches)} of {expected} expected words are right")
    print("FAIL" if mismatches else "PASS")
    return 1 if mismatches else 0


def dump(words: dict[int, int], path: Path) -> None:
    """Write the words of data memory, by ascending address; complete or not at all."""
    buffer = io.BytesIO()
    addresses = sorted(words)
    np.savez_compressed(
        buffer,
        addr=np.array(addresses, np.uint32),
        value=np.array([words[address] for address in addresses], np.uint32),
    )
    write_bytes(path, buffer.getvalue())


def main() -> int:
    """Do what the command line asks for; return the exit status."""
    parser = arguments()
    args = parser.parse_args()
    if args.dump and not args.words:
        parser.error("--dump needs --words")
    if args.words:
        if args.device is None:
            raise EmulatorError(
                "E802", "recorded words do not tell the device", "--device", "Name it."
            )
        return emulate_words(args)
    return emulate_project(args)
