"""Run the firmware of a generated project on an emulated chip, without a board.

The C files are compiled as they are and main() runs from reset on a Cortex-M4 with the accelerator
behind its bus. With --words, recorded words are executed instead of firmware.
"""

from __future__ import annotations

import argparse
import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from checkpoint.atomic import write_bytes
from commands.arguments import Parser, chip
from device import names_where
from device.chip import ACCELERATOR_ALIGNMENT, DEFAULT_APB_BASE, HIGHEST_APB_BASE
from emulator import (
    Accelerator,
    AddressMap,
    Board,
    EmulatorError,
    FirmwareOutcome,
    NetworkRun,
    Writes,
)
from emulator.report.cycles import format_cycles, network_cycles
from emulator.report.departure import departure_of_words, outputs_at
from emulator.report.describe import (
    describe_departure,
    describe_layer,
    describe_registers,
    describe_unwritten,
    describe_word,
)
from emulator.report.trace import as_csv, as_text, trace
from emulator.state.memory import Memory
from emulator.words.recording import read_words

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
           help=f"{names_where()} (a project shows it by itself)")  # fmt: skip
    option(
        "--apb-base", type=base_address, default=DEFAULT_APB_BASE, metavar="N", help="base address"
    )
    option("--time-limit", type=seconds, default=60.0, metavar="S",
           help="end the program after S seconds (default: 60)")  # fmt: skip
    option("--dump", metavar="FILE", help="with --words: write data memory (.npz: addr, value)")
    option("--trace", metavar="FILE",
           help="write the registers field by field as a table (text, or .csv)")  # fmt: skip
    option("--cycles", action="store_true", help="estimate how long each layer takes")
    option("-v", "--verbose", action="store_true", help="show what each layer does")
    return parser


def emulate_project(args: argparse.Namespace) -> int:
    """Run a project; return 0 if it reports success."""
    board = Board.with_project(args.project, args.device, args.apb_base, show)
    try:
        outcome = board.run(args.time_limit)
    finally:  # also, and above all, of a program that goes wrong
        if args.trace and board.bus.addresses is not None:
            write_trace(board.bus.writes(), board.bus.addresses, Path(args.trace))
    if outcome.run is not None:
        show_run(outcome.run, board.accelerator.memory, args, outcome.passed)
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


def show_run(executed: NetworkRun, memory: Memory, args: argparse.Namespace, passed: bool) -> None:
    """Show the layers of a run and what is suspicious about them; notes if it has not passed."""
    configurations = [layer.config for layer in executed.layers]
    if args.verbose:
        for config in configurations:
            print(describe_layer(config))
    if args.cycles:
        print("\n".join(format_cycles(network_cycles(memory, configurations))))
    for finding in executed.findings:
        if args.verbose or not passed or not finding.harmless:
            print(f"{'note' if finding.harmless else 'warning'}: {finding}")


def explain_failure(board: Board, outcome: FirmwareOutcome) -> None:
    """Say which layer wrote the first value that is not as the program expects it."""
    addresses = board.bus.addresses
    if outcome.run is None or outcome.failed_at is None or addresses is None:
        print("The program gave up before it checked a result.")
        return
    memory = board.accelerator.memory
    wrong, complete = board.wrong_words()
    if wrong:
        print(_count_wrong(len(wrong), complete))
        print("\n".join(_explain_words(outcome.run, memory, wrong)))
        return
    # All that is known is where the program looked last
    place = addresses.describe(outcome.failed_at)
    print(f"The last word read was 0x{outcome.failed_at:08x} ({place}).")
    for done, _, _ in outputs_at(outcome.run, addresses, outcome.failed_at):
        print(f"It holds {describe_word(outcome.run, addresses, outcome.failed_at)}.")
        print("\n".join(describe_registers(memory, done.config.layer)))
        break
    else:
        print("\n".join(describe_unwritten(outcome.run, memory, outcome.failed_at)))


def _count_wrong(count: int, complete: bool) -> str:
    text = f"{count} words of the output differ from what the program expects."
    return text if complete else f"At least {text}"


def _explain_words(
    run: NetworkRun, memory: Memory, wrong: list[tuple[int, int, int]]
) -> Iterator[str]:
    """Yield lines that tell which layer wrote the first of the wrong words, or that none did."""
    departure = departure_of_words(run, memory.addresses, wrong)
    if departure is not None:
        yield from describe_departure(memory, departure)
    elif wrong:
        yield from describe_unwritten(run, memory, wrong[0][0])


def emulate_words(args: argparse.Namespace) -> int:
    """Execute recorded words; return 0 if the result is as expected."""
    recording = read_words(Path(args.words))
    addresses = AddressMap(args.device, args.apb_base)
    if args.trace:
        write_trace(recording.writes, addresses, Path(args.trace))
    accelerator = Accelerator(args.device, args.apb_base)
    accelerator.write(recording.writes)
    executed = accelerator.run()
    words = accelerator.data_words()
    mismatches = recording.mismatches(words)
    show_run(executed, accelerator.memory, args, not mismatches)
    if args.dump:
        dump(words, Path(args.dump))
    for address, wanted, found in mismatches[:SHOWN_MISMATCHES]:
        holds = describe_word(executed, addresses, address)
        place = f"0x{address:08x}, {holds}" if holds else f"0x{address:08x}"
        print(f"{place}: expected 0x{wanted:08x}, found 0x{found:08x}")
    for line in _explain_words(executed, accelerator.memory, mismatches):
        print(line)
    expected = len(recording.expected)
    if not expected:
        print(f"{len(executed.layers)} layers executed; the recording expects nothing")
        return 0
    print(f"{expected - len(mismatches)} of {expected} expected words are right")
    print("FAIL" if mismatches else "PASS")
    return 1 if mismatches else 0


def write_trace(writes: Writes, addresses: AddressMap, path: Path) -> None:
    """Write the program of the accelerator as a table; complete or not at all."""
    rows = trace(writes, addresses)
    text = as_csv(rows) if path.suffix.lower() == ".csv" else as_text(rows)
    write_bytes(path, text.encode())


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
