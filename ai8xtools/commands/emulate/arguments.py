"""The command line of emulate.py."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from ai8xtools.commands.arguments import Parser, chip
from ai8xtools.commands.emulate.recordings import Played
from ai8xtools.emulator.cpu.architecture import ARCHITECTURES
from ai8xtools.emulator.project.tree import TreeOptions
from ai8xtools.values import frozen
from datasets.own.settings import kind_and_path
from device import Chip, names_where
from device.chip import ACCELERATOR_ALIGNMENT, DEFAULT_APB_BASE, HIGHEST_APB_BASE

_DESCRIPTION = """Run the firmware of a generated project on an emulated chip, without a board.

The C files are compiled as they are and main() runs from reset on a Cortex-M4 with the accelerator
behind its bus. With --words, recorded words are executed instead of firmware.
"""


COMPARED = 100
"""Number of inputs that are compared with the simulation by default."""


DEFAULT_LEVEL = "3"
"""Default optimization level of the compiler for programs without accelerator."""


LEAST_READING_SECONDS = 10.0
"""Least time for reading and compiling a project, in seconds."""


BAUD = 115200
"""Default bits per second of a serial line."""


_LARGEST_PORT = 65535
_LARGEST_BAUD = 20_000_000


@frozen
class EmulateOptions:
    """A project's folder or a file of recorded words, the chip, and what is shown and written.

    `chip` None is the one that a project names. The program ends after `time_limit_s` seconds.
    `answer` says that the project's answer file is used, `words_changed` that words which differ
    from it are meant to.
    With `accelerator_only` the network runs without the program, on the sample or on `input`.
    Otherwise the program's functions run on each of `input`, or with `fast` the accelerator alone;
    `labels` tell what is right, and the first `compare` outputs are compared with the simulation.
    `gdb` is the port on which a debugger may connect; `profile` and `vcd` take the estimated times.
    `core` names a core that runs the program without accelerator, compiled with the level
    `optimization`; with `count` its instructions are counted, with `dma` an engine copies for it.
    `container` is a file (.nnb) for the slot of the program; `played` stands for its sensors.
    `serial` is a port with a board that runs the program, at `baud` bits per second, on each of
    `input`; with `serve` the program runs behind a new port.
    `prove` shows that the project computes its network for every input: the one it was made of, or
    that of `config_file` and `checkpoint_file`. `decompile` is the folder for the files of the
    network that the words are read back to. `explain` tells why a project departs from the network.
    `tree` says how a project's folder is understood; `dump` takes data memory after recorded words
    or a counterexample,
    `trace` the registers field by field.
    """

    project: str | None
    words: str | None
    chip: Chip | None
    apb_base: int
    time_limit_s: float
    dump: Path | None
    trace: Path | None
    cycles: bool
    verbose: bool
    tree: TreeOptions
    accelerator_only: bool
    input: Path | None
    answer: bool = True
    words_changed: bool = False
    gdb: int | None = None
    profile: Path | None = None
    vcd: Path | None = None
    labels: Path | None = None
    fast: bool = False
    compare: int = COMPARED
    core: str | None = None
    count: bool = False
    dma: bool = False
    optimization: str | None = None
    container: str | None = None
    prove: bool = False
    config_file: str | None = None
    checkpoint_file: str | None = None
    decompile: Path | None = None
    explain: bool = False
    played: Played = Played()
    serial: str | None = None
    baud: int = BAUD
    serve: bool = False
    power: bool = False


def parse(words: Sequence[str] | None = None) -> EmulateOptions:
    """Return what the command line asks for; wrong usage ends the program with status 2."""
    parser = arguments()
    args = parser.parse_args(words)
    _check(parser, args)
    return EmulateOptions(
        project=args.project,
        words=args.words,
        chip=args.device,
        apb_base=args.apb_base,
        time_limit_s=args.time_limit,
        dump=Path(args.dump) if args.dump else None,
        trace=Path(args.trace) if args.trace else None,
        cycles=args.cycles,
        verbose=args.verbose,
        answer=args.answer,
        words_changed=args.words_changed,
        accelerator_only=args.accelerator_only,
        input=Path(args.input) if args.input else None,
        gdb=args.gdb,
        profile=Path(args.profile) if args.profile else None,
        vcd=Path(args.vcd) if args.vcd else None,
        labels=Path(args.labels) if args.labels else None,
        fast=args.fast,
        compare=args.compare,
        core=args.core,
        count=args.count,
        dma=args.dma,
        optimization=args.optimization,
        container=args.container,
        prove=args.prove,
        config_file=args.config_file,
        checkpoint_file=args.checkpoint_file,
        serial=args.serial,
        baud=args.baud,
        serve=args.serve,
        power=args.power,
        decompile=Path(args.decompile) if args.decompile else None,
        explain=args.explain,
        played=Played(args.camera, args.microphone, args.series, args.uart),
        tree=TreeOptions(
            include=tuple(Path(folder) for folder in args.include),
            exclude=tuple(args.exclude),
            shorten_loops=args.shorten_loops,
            seconds=max(args.time_limit, LEAST_READING_SECONDS),
        ),
    )


def _check(parser: Parser, args: argparse.Namespace) -> None:
    """End the program for options that do not go together, or are empty as variables may be."""
    for name, value in vars(args).items():
        if value == "":
            parser.error(f"argument --{name.replace('_', '-')}: the value is empty")
    if args.dump and not (args.words or args.prove):
        parser.error("--dump needs --words or --prove")
    alone = args.words or args.accelerator_only or args.input
    if alone and (args.profile or args.vcd):
        parser.error("--profile and --vcd need PROJECT_DIR and a program with main()")
    if args.prove and (alone or args.gdb is not None):
        parser.error("--prove needs PROJECT_DIR, and runs no program")
    others = args.accelerator_only or args.input or args.prove or args.dump or args.trace
    if args.decompile and (others or args.gdb is not None or args.core):
        parser.error("--decompile runs no program: it takes PROJECT_DIR or --words, and --device")
    if args.explain and (alone or others or args.gdb is not None or args.core or args.decompile):
        parser.error("--explain needs PROJECT_DIR, and runs no program")
    if (args.config_file or args.checkpoint_file) and not (args.prove or args.explain):
        parser.error("--config-file and --checkpoint-file need --prove or --explain")
    if args.checkpoint_file and not args.config_file:
        parser.error("--checkpoint-file needs --config-file")
    if args.gdb is not None and alone:
        parser.error("--gdb needs PROJECT_DIR and a program with main()")
    if args.accelerator_only and args.words:
        parser.error("--accelerator-only needs PROJECT_DIR")
    if args.input and args.words:
        parser.error("--input needs PROJECT_DIR")
    clashing = {
        "--input": args.input and args.serial is None, "--gdb": args.gdb is not None,
        "--profile": args.profile, "--vcd": args.vcd,
        "--accelerator-only": args.accelerator_only and args.serial is None,
    }  # fmt: skip
    if args.core and any(clashing.values()):
        parser.error(f"--core does not go with {next(name for name in clashing if clashing[name])}")
    if args.core and args.words and args.serial is None:
        parser.error("--core needs PROJECT_DIR")
    if args.input and kind_and_path(args.input) and (args.labels or args.accelerator_only):
        parser.error("--input KIND:PATH has labels, and needs the program or --fast: leave out "
                     "--labels and --accelerator-only")  # fmt: skip
    if args.input and (args.count or args.dma or args.container):
        parser.error("--count, --dma and --container are for a program on its own sample: leave "
                     "out --input")  # fmt: skip
    if alone and (args.camera or args.microphone or args.series or args.uart):
        parser.error("--camera, --microphone, --series and --uart need PROJECT_DIR and a program "
                     "with main()")  # fmt: skip
    others = args.accelerator_only or args.prove or args.explain or args.decompile
    if args.power and (alone or others or args.gdb is not None):
        parser.error("--power needs PROJECT_DIR and a program with main()")
    _check_line(parser, args)
    if (args.fast or args.labels) and (not args.input or args.accelerator_only):
        parser.error("--fast and --labels need --input, without --accelerator-only")


def _check_line(parser: Parser, args: argparse.Namespace) -> None:
    """End the program for options that do not go together with a serial line."""
    if args.serial is None and not args.serve:
        if args.baud != BAUD:
            parser.error("--baud needs --serial")
        return
    if args.serial is not None and (not args.input or args.serve):
        parser.error("--serial needs --input, and a board: leave out --serve")
    others = ("words", "accelerator_only", "prove", "decompile", "explain", "fast", "camera",
              "microphone", "series", "uart", "profile", "vcd", "trace", "cycles", "count", "dma",
              "container", "power")  # fmt: skip
    for name in (*others, *("input",) * args.serve):
        if getattr(args, name):
            parser.error(f"--{name.replace('_', '-')} does not go with "
                         f"{'--serve' if args.serve else '--serial'}: leave it out")  # fmt: skip
    if args.gdb is not None:
        parser.error("--gdb does not go with a serial line: leave it out")


def bits_per_second(text: str) -> int:
    """Convert the speed of a serial line for argparse."""
    value = natural_number(text)
    if not 0 < value <= _LARGEST_BAUD:
        raise argparse.ArgumentTypeError(f"{text} is not from 1 to {_LARGEST_BAUD}")
    return value


def port(text: str) -> int:
    """Convert the number of a port, 0 to 65535, for argparse."""
    value = natural_number(text)
    if value > _LARGEST_PORT:
        raise argparse.ArgumentTypeError(f"{text} is above {_LARGEST_PORT}")
    return value


def natural_number(text: str) -> int:
    """Convert a whole number of at least 0 for argparse."""
    try:
        value = int(text)
    except ValueError:
        value = -1
    if value < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 0")
    return value


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
    parser = Parser(description=_DESCRIPTION)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("project", nargs="?", metavar="PROJECT_DIR", help="folder with the C files")
    what.add_argument("--words", metavar="FILE", help="execute recorded words (.npz) instead")
    option = parser.add_argument
    option("--device", type=chip, metavar="NAME",
           help=f"{names_where()} (default: detected from the project)")  # fmt: skip
    option(
        "--apb-base", type=base_address, default=DEFAULT_APB_BASE, metavar="N", help="base address"
    )
    option("--time-limit", type=seconds, default=60.0, metavar="S",
           help="end the program after S seconds; the same limit, but at least "
           f"{LEAST_READING_SECONDS:g}, applies to reading and compiling it (default: "
           "60)")  # fmt: skip
    option("--accelerator-only", action="store_true",
           help="run the network of cnn.c without main(), and print its output")  # fmt: skip
    option("--prove", action="store_true",
           help="prove that the project computes its network for every input, or find one for "
           "which it does not")  # fmt: skip
    option("--explain", action="store_true",
           help="tell in one paragraph where the project first computes something else than its "
           "network, and which word causes it")  # fmt: skip
    option("--config-file", metavar="FILE",
           help="with --prove or --explain: the description of the network (default: that which "
           "the project was made of)")  # fmt: skip
    option("--checkpoint-file", metavar="FILE",
           help="with --prove or --explain: the quantized checkpoint of the network")  # fmt: skip
    option("--decompile", metavar="DIR",
           help="write description, checkpoint and sample of the network that the words compute to "
           "this new folder")  # fmt: skip
    option("--input", metavar="FILE",
           help="run the network on each of these inputs (.npy, picture, .wav), or on the test "
           "samples of KIND:PATH, as train.py --dataset names them")  # fmt: skip
    option(
        "--labels",
        metavar="FILE",
        help="with --input: the right class of each input (.npy), for accuracy and confusion",
    )
    option("--fast", action="store_true",
           help="with --input: the accelerator alone, without the program's C")  # fmt: skip
    option("--compare", type=natural_number, default=COMPARED, metavar="N",
           help="with --input: compare the first N outputs with the simulation of ai8xize.py "
           f"(default: {COMPARED})")  # fmt: skip
    for sensor, file, data in (
        ("camera", "FILE|DIR", "pictures"),
        ("microphone", "FILE.wav", "a sound"),
        ("series", "FILE.csv", "whole numbers"),
    ):
        option(f"--{sensor}", metavar=file,
               help=f"the program's {'sensor' if sensor == 'series' else sensor} delivers {data}; "
               "none: it never delivers (default: random data)")  # fmt: skip
    option("--uart", metavar="FILE",
           help="the bytes of this file are sent to the program over its UART, each when it looks "
           "for one")  # fmt: skip
    option("--power", action="store_true",
           help="with a program of --application: tell where its time and energy go")  # fmt: skip
    option("--serial", metavar="PORT",
           help="with --input: run each input on the board at this serial port, with the program "
           "of --application bench, and compare its outputs")  # fmt: skip
    option("--baud", type=bits_per_second, default=BAUD, metavar="N",
           help=f"with --serial: bits per second (default: {BAUD})")  # fmt: skip
    option("--serve", action="store_true",
           help="run the program of --application bench behind a new serial port, until "
           "Ctrl-C")  # fmt: skip
    option("--include", action="append", default=[], metavar="DIR",
           help="look for headers there, too (repeatable)")  # fmt: skip
    option("--exclude", action="append", default=[], metavar="FILE",
           help="leave out C files by name or pattern (repeatable)")  # fmt: skip
    option("--shorten-loops", action="store_true",
           help="run loops that repeat an inference to measure power only twice")  # fmt: skip
    option("--dump", metavar="FILE",
           help="with --words: write data memory (.npz: addr, value); with --prove: write the "
           "counterexample (.npy)")  # fmt: skip
    option("--trace", metavar="FILE",
           help="write the registers field by field as a table (text, or .csv)")  # fmt: skip
    option("--no-answer", dest="answer", action="store_false",
           help="do not compare with the answer file (answer.npz) of the project")  # fmt: skip
    option("--words-changed", action="store_true",
           help="words that differ from the answer file were changed on purpose: the program's "
           "own comparison decides")  # fmt: skip
    option(
        "--profile",
        metavar="FILE",
        help="write the estimated times as trace events (JSON, for ui.perfetto.dev)",
    )
    option("--vcd", metavar="FILE", help="write the estimated times as value change dump (VCD)")
    option(
        "--gdb",
        type=port,
        metavar="PORT",
        help="wait for gdb on this port of the machine (0: any), and let it run the program",
    )
    option("--core", choices=sorted(ARCHITECTURES), metavar="NAME",
           help="run a program without accelerator on this core: "
           f"{', '.join(ARCHITECTURES)} (default: the core in plan.json)")  # fmt: skip
    option("--count", action="store_true",
           help="with --core: count instructions per function and multiply-accumulate")  # fmt: skip
    option("--container", metavar="FILE.nnb",
           help="with --core: put another network into the slot of the firmware")  # fmt: skip
    option("--dma", action="store_true",
           help="with --core: an emulated DMA controller makes the copies between levels of "
                "memory")  # fmt: skip
    option("--optimization", choices=("0", "1", "2", "3", "s", "z"), metavar="LEVEL",
           help="with --core: the compiler's level, 0 to 3, s or z "
           f"(default: {DEFAULT_LEVEL})")  # fmt: skip
    option("--cycles", action="store_true", help="estimate how long each layer takes")
    option("-v", "--verbose", action="store_true", help="show what each layer does")
    return parser
