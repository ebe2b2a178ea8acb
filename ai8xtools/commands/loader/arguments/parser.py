"""The command line of ai8xize.py: options in the groups of the manual.

What they mean is in `commands.loader.arguments.values`.
Source: docs/options.md, "ai8xize.py".
"""

from __future__ import annotations

import argparse

from ai8xtools.commands.arguments import Parser, Refused, chip
from ai8xtools.commands.loader.arguments.converters import number, port_pin, seconds, trim
from ai8xtools.commands.loader.arguments.rtl_parser import add_product_options, add_rtl_options
from ai8xtools.commands.loader.arguments.shared import (
    add_description_options,
    add_folder_options,
    add_library_options,
    add_log_options,
    add_needs,
    add_placing_options,
    add_source_options,
    parser_of,
)
from ai8xtools.commands.targets import choices
from device import MAX78000
from device.chip import DEFAULT_APB_BASE
from device.energy import SUPPLY_VOLTS


def arguments() -> Parser:
    """Return the parser of the command line."""
    parser = parser_of(
        "Turn a network description and quantized weights into a C project that runs the network "
        "on the accelerator of a MAX78000 or MAX78002.",
        "NAME (--model NAME | --config-file FILE) [--checkpoint-file FILE] --prefix NAME "
        "--test-dir DIR",
    )
    group = parser.add_argument_group("device selection")
    device = group.add_mutually_exclusive_group()
    device.add_argument("--device", type=chip, metavar="NAME", help=choices("ai8xize.py"))
    device.add_argument(
        "--ai85", dest="device", action="store_const", const=MAX78000,
        help="same as --device MAX78000",
    )  # fmt: skip
    network = parser.add_argument_group("network")
    add_source_options(network)
    add_description_options(network)
    add_placing_options(parser.add_argument_group("places in the accelerator"))
    _code_options(parser)
    _file_options(parser)
    _hardware_options(parser)
    _streaming_options(parser)
    _core_options(parser)
    _log_options(parser)
    add_rtl_options(parser)
    _refused_options(parser)
    parser.need("--device", "--ai85", "--fits")
    add_needs(parser, "--verify-project", "--compare-project")
    return parser


def _code_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("generated code")
    add_folder_options(group)
    add_library_options(group)
    option = group.add_argument
    option("--also", action="append", default=[], metavar="FOLDER",
           help="with --symbol-prefix: load the network beside that of the project in FOLDER, "
                "which stays in the accelerator (repeatable)")  # fmt: skip
    add_product_options(group)
    option("--sdk", choices=("2024", "studio"), default="2024",
           help="interface of the vendor's tools of 2024 (the default), or of CodeFusion Studio: "
                "no main(), other number and layout of outputs")  # fmt: skip
    option("--softmax", action="store_true", help="classify with a software softmax")
    unload = group.add_mutually_exclusive_group()
    unload.add_argument("--unload", dest="unload", action="store_true", default=True,
                        help="generate cnn_unload() (the default)")  # fmt: skip
    unload.add_argument("--no-unload", dest="unload", action="store_false",
                        help="leave cnn_unload() out")  # fmt: skip
    option("--no-kat", dest="kat", action="store_false", help="leave the known-answer test out")
    option("--max-checklines", "--max-verify-length", type=int, metavar="N",
           help="compare only the first N words of the output")  # fmt: skip
    scale = group.add_mutually_exclusive_group()
    scale.add_argument("--scale-output", dest="scale_output", action="store_true", default=True,
                       help="multiply outputs by their final scale (the default)")  # fmt: skip
    scale.add_argument("--no-scale-output", dest="scale_output", action="store_false",
                       help="deliver outputs as the accelerator holds them")  # fmt: skip
    option("--unroll-wide", type=int, default=8, metavar="N", help="unrolling of 32-bit unloading")
    option("--unroll-8bit", type=int, default=1, metavar="N", help="unrolling of 8-bit unloading")
    option("--mlator", action="store_true", help="cnn_unload() uses the transposing read port")
    option("--unroll-mlator", type=int, default=8, metavar="N", help="unrolling of these reads")
    option("--ignore-mlator-warning", action="store_true", help="do not comment on --mlator")
    option("--mlator-noverify", action="store_true", help="accepted without effect")
    option("--timer", type=int, metavar="N", help="measure the inference time with timer N")
    option("--no-timer", action="store_true", help="do not use a timer")
    option("--boost", type=port_pin, metavar="PORT.PIN", help="drive a pin during inference")
    option("--energy", action="store_true", help="loops for energy measurement")
    option("--forever", action="store_true", help="repeat the inference endlessly")
    option("--no-wfi", action="store_true", help="spin instead of sleeping")
    option("--stop-start", action="store_true", help="stop and continue after the start")
    option("--debugwait", type=int, default=2, metavar="N", help="seconds to wait for a debugger")
    option("--input-split", type=int, default=1, metavar="N",
           help="load CHW data in N groups of rows, each with adjacent rows")  # fmt: skip
    option("--fixed-input", action="store_true", help="load a bit pattern instead of the sample")
    compact = group.add_mutually_exclusive_group()
    compact.add_argument("--compact-data", action="store_true", default=True,
                         help="the sample is an array (the default)")  # fmt: skip
    compact.add_argument("--no-compact-data", dest="compact_data", action="store_false",
                         help="RTL: the sample is stored word by word")  # fmt: skip
    option("--compact-weights", action="store_true", help="accepted; weights are always arrays")
    express = group.add_mutually_exclusive_group()
    express.add_argument("--mexpress", dest="express", action="store_true", default=None,
                         help="packed transfer of the weights (the default)")  # fmt: skip
    express.add_argument("--no-mexpress", dest="express", action="store_false",
                         help="four words per kernel")  # fmt: skip
    loader = group.add_mutually_exclusive_group()
    loader.add_argument("--new-kernel-loader", dest="old_kernel_loader",
                        action="store_false", default=False,
                        help="one list of kernels (the default)")  # fmt: skip
    loader.add_argument("--old-kernel-loader", action="store_true", help="one array per processor")
    option("--no-fifo-wait", action="store_true", help="do not wait for room in the FIFO")
    option("--repeat-layers", type=int, default=1, metavar="N", help="configure the layers N times")
    option("--define", default="", metavar="NAMES", help="preprocessor definitions")
    option("--define-default-arm", default="MXC_ASSERT_ENABLE ARM_MATH_CM4", metavar="NAMES",
           help="default preprocessor definitions")  # fmt: skip
    option(
        "--board-name",
        default="EvKit_V1",
        metavar="NAME",
        help="board (default: %(default)s); with --application also zephyr, "
        "and none: you write sensor.c",
    )
    option("--eclipse-includes", default="", metavar="PATHS", help="include paths for the IDE")
    option("--eclipse-variables", default="", metavar="VARS", help="variables for the IDE")
    option("--eclipse-openocd-args", metavar="ARGS", help="debugger arguments for the IDE")


def _file_options(parser: argparse.ArgumentParser) -> None:
    option = parser.add_argument_group("file names").add_argument
    option("--c-filename", metavar="NAME",
           help="main program, without .c (default: main, RTL: test)")  # fmt: skip
    option(
        "--api-filename", default="cnn.c", metavar="NAME", help="functions; none: in the main file"
    )
    option("--weight-filename", default="weights.h", metavar="NAME", help="weights")
    option("--sample-filename", default="sampledata.h", metavar="NAME", help="sample")
    option("--sample-output-filename", metavar="NAME",
           help="expected output (sampleoutput.h); none: in the main file")  # fmt: skip
    option("--sample-numpy-filename", metavar="NAME",
           help="also save the output of the simulation as a NumPy array")  # fmt: skip
    for name, default, what in (
        ("output", "output", "output words (.csv) of"),
        ("output-pass", None, "the same, numbered (.csv; none: no such file), of"),
        ("output-config", "config", "configurations of the layers (.csv) of"),
        ("output-data", "data", "data of the layers (.npy) of"),
        ("output-weights", "weights", "kernels (.npy) of"),
        ("output-bias", "bias", "biases (.npy) of"),
    ):
        option(f"--{name}-filename", default=default, metavar="NAME",
               help=f"{what} --log-intermediate (default: %(default)s)")  # fmt: skip


def _hardware_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("hardware settings")
    option = group.add_argument
    option(
        "--simple1b",
        dest="simple_1bit",
        action="store_true",
        help="XOR mode of 1-bit weights (not simulated)",
    )
    option("--link-layer", action="store_true", help="MAX78002: always name the next layer")
    option("--one-shot", action="store_true", help="MAX78002: one layer per start")
    option("--debug-snoop", dest="check_snoop", action="store_true",
           help="MAX78002: check the accumulators of conditional execution")  # fmt: skip
    option("--snoop-loop", action="store_true", help="MAX78002: restart when the result is written")
    pipeline = group.add_mutually_exclusive_group()
    pipeline.add_argument("--pipeline", action="store_true", default=None,
                          help="MAX78002: pipelined calculation (the default)")  # fmt: skip
    pipeline.add_argument("--no-pipeline", dest="pipeline", action="store_false",
                          help="MAX78002: no pipeline")  # fmt: skip
    pll = group.add_mutually_exclusive_group()
    pll.add_argument("--pll", action="store_true", default=None,
                     help="MAX78002: clock from the PLL (the default)")  # fmt: skip
    pll.add_argument("--no-pll", "--apb", dest="pll", action="store_false",
                     help="MAX78002: clock from the bus")  # fmt: skip
    speed = group.add_mutually_exclusive_group()
    speed.add_argument("--balance-speed", action="store_true",
                       help="MAX78002: load slowly, run at full speed (the default)")  # fmt: skip
    speed.add_argument("--max-speed", action="store_true", help="MAX78002: always full speed")
    speed.add_argument(
        "--clock-divider", type=int, choices=(1, 2, 4, 8, 16), help="divider of the CNN clock"
    )
    option("--supply-voltage", type=float, choices=SUPPLY_VOLTS, default=SUPPLY_VOLTS[-1],
           help="supply of the accelerator (VCOREA), for estimates of energy")  # fmt: skip
    option("--period", type=seconds, metavar="SECONDS",
           help="with --fits: mean power if an inference begins in each such period, asleep "
                "between them")  # fmt: skip
    option("--energy-calibration", dest="measurements", metavar="FILE",
           help="with --fits or --report: energy from measurements of your board, lines of the "
                "power monitor or three numbers")  # fmt: skip
    option("--clock-trim", type=trim, metavar="A,B,C", help="trim values of IBRO, ISO and IPO")
    option(
        "--switch-delay",
        dest="switch_delay_ms",
        type=int,
        metavar="MS",
        help="wait after switching power on",
    )
    option("--powerdown", action="store_true", help="power down unused groups")
    option("--zero-sram", action="store_true", help="test and clear all memories first")
    option("--pretend-zero-sram", action="store_true", help="accepted; for simulations only")
    option("--init-tram", action="store_true", help="clear the line buffers first")
    option("--zero-unused", action="store_true", help="write zeros as the reference tool does")
    option("--write-zero-registers", action="store_true", help="write registers that stay zero too")
    option("--verify-writes", action="store_true", help="read every register back")
    option("--verify-kernels", action="store_true", help="read the kernels back")
    option("--ext-rdy", dest="external_ready", action="store_true", help="external ready signal")
    option(
        "--ready-sel",
        dest="ready_select",
        type=number,
        default=0,
        metavar="N",
        help="memory wait states",
    )
    option(
        "--ready-sel-aon",
        dest="ready_select_aon",
        type=number,
        default=0,
        metavar="N",
        help="always-on wait states",
    )
    option("--apb-base", type=number, default=DEFAULT_APB_BASE, metavar="N", help="base address")


def _streaming_options(parser: argparse.ArgumentParser) -> None:
    option = parser.add_argument_group("streaming and FIFOs").add_argument
    option("--fifo", action="store_true", help="input through the FIFOs")
    option("--fast-fifo", action="store_true", help="through the fast FIFO; needs --riscv")
    option("--fast-fifo-quad", action="store_true", help="the same, to all groups at once")
    option("--fifo-go", action="store_true", help="MAX78002: start before the first word")
    option(
        "--ready-sel-fifo",
        dest="ready_select_fifo",
        type=number,
        default=0,
        metavar="N",
        help="FIFO wait states",
    )
    option("--debug-new-streaming", action="store_true", help="accepted; always on")
    for name in ("start", "rollover", "delta1", "delta2"):
        option(f"--override-{name}", type=number, metavar="N",
               help=f"stream {name} of the first layer")  # fmt: skip
    for name, default in (("start", 2), ("delta1", 0), ("delta2", 0)):
        option(f"--increase-{name}", type=number, default=default, metavar="N",
               help=f"added to the stream {name} of later layers")  # fmt: skip


def _core_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("RISC-V core; any of these but --deepsleep implies --riscv")
    option = group.add_argument
    option("--riscv", action="store_true", help="the RISC-V core runs the network")
    flash = group.add_mutually_exclusive_group()
    flash.add_argument("--riscv-flash", action="store_true", help="constants in flash (always)")
    flash.add_argument("--no-riscv-flash", action="store_true",
                       help="accepted; with the cache constants are in flash")  # fmt: skip
    cache = group.add_mutually_exclusive_group()
    cache.add_argument("--riscv-cache", action="store_true", default=None,
                       help="use its instruction cache (always)")  # fmt: skip
    cache.add_argument("--no-riscv-cache", dest="riscv_cache", action="store_false",
                       help="refused with --riscv: it needs the cache")  # fmt: skip
    option("--riscv-debug", action="store_true", help="debug it through its JTAG pins")
    option(
        "--riscv-exclusive", action="store_true", help="its SRAM is not shared with the Arm core"
    )
    option("--deepsleep", action="store_true", help="the Arm core enters deep sleep meanwhile")
    option("--define-default-riscv", default="MXC_ASSERT_ENABLE RV32", metavar="NAMES",
           help="default preprocessor definitions of the RISC-V program")  # fmt: skip


def _log_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("log and checks")
    add_log_options(group)
    option = group.add_argument
    option("--short-log", "--log-last-only", "--verbose-all", action="store_true",
           help="log data of output layers only")  # fmt: skip
    option("--kernel-format", metavar="FORMAT",
           help="format of weights in the verbose log, such as '{0:4}'")  # fmt: skip
    option(
        "--display-checkpoint",
        dest="checkpoint_table",
        action="store_true",
        help="print a table of the weights",
    )
    option("--debug-computation", action="store_true",
           help="write the computation of each output value (compute-<layer>.csv)")  # fmt: skip
    option("--debug-latency", action="store_true",
           help="MAX78000: write the terms of the estimated cycles to the verbose log")  # fmt: skip
    option("--log-intermediate", action="store_true",
           help="write data memory words, configurations and data of all layers")  # fmt: skip
    option("--log-pooling", action="store_true",
           help="write the input and output of pooling as tables")  # fmt: skip
    option("--write-config", dest="configuration", metavar="FILE",
           help="write the description with all chosen places and the reasons")  # fmt: skip
    option("--strict", action="store_true",
           help="refuse projects that are not expected to work on the chip as "
                "they are")  # fmt: skip
    option("--verify", action="store_true",
           help="run the compiled loader in the emulator and compare every word")  # fmt: skip
    option(
        "--prove",
        action="store_true",
        help="prove that the words of the project compute the network for every input",
    )
    option("--verify-project", metavar="DIR",
           help="compare the words of the project in DIR with those that these options generate; "
                "write nothing")  # fmt: skip
    option("--compare-project", metavar="DIR",
           help="tell in words how the project in DIR, made by any tool, differs from the one that "
                "these options generate; write nothing")  # fmt: skip


def _refused_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("refused")

    def refuse(*names: str, reason: str) -> None:
        group.add_argument(*names, action=Refused, nargs="?", help=reason)

    refuse("--legacy-test", reason="it rearranges data of the vendor's internal test bench only")
    refuse("--legacy-kernels", reason="it stores kernels that nothing reads, for the vendor's "
           "first regression tests")  # fmt: skip
    refuse("--test-bist", reason="it damages every seventh kernel to try the vendor's test of the "
           "memories")  # fmt: skip
    refuse("--max-proc", reason="it describes accelerators of fewer than 64 processors, which are "
           "not made")  # fmt: skip
