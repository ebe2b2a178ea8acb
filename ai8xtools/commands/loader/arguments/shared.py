"""Options of ai8xize.py that all targets have that begin with the description of a network.

Each is declared here once, in groups that a target adds to its parser; what they mean is in
`commands.loader.arguments.values`.
"""

from __future__ import annotations

import argparse
from typing import Any

from ai8xtools.commands.arguments import Parser, add_proof_option
from ai8xtools.commands.loader.arguments.converters import input_shape, layer_list, number
from ai8xtools.writing.application import ARGMAX, HEADS, KINDS
from ai8xtools.writing.packages import SYSTEMS

_EPILOG = (
    "docs/writing-a-network.md explains how a description is written, docs/errors.md every message "
    "by its code."
)


def parser_of(description: str, usage: str) -> Parser:
    """Return a parser of ai8xize.py without options."""
    return Parser(
        prog="ai8xize.py",
        usage=f"%(prog)s --device {usage} [options]",
        description=description,
        epilog=_EPILOG,
    )


def add_source_options(group: Any) -> None:
    """Add the files that a network is read from."""
    option = group.add_argument
    option("--config-file", metavar="FILE", help="network description (YAML)")
    option("--model", metavar="NAME",
           help="instead: network of models/, or FILE:CLASS (the file is executed)")  # fmt: skip
    option("--checkpoint-file", metavar="FILE",
           help="quantized checkpoint; names that end in .onnx are read as ONNX")  # fmt: skip
    option("--sample-input", metavar="FILE", help="sample (default: tests/sample_<dataset>.npy)")


def add_description_options(group: Any) -> None:
    """Add what changes or completes the network that is described."""
    option = group.add_argument
    option("--dataset", metavar="NAME",
           help="data set of the model: its input, classes and sample")  # fmt: skip
    option("--input-shape", type=input_shape, metavar="CxHxW",
           help="input of the model (default: that of the sample, data set or model)")  # fmt: skip
    add_proof_option(option)
    option("--weight-input", metavar="FILE", help="weights of 'arch: test' networks")
    option("--bias-input", metavar="FILE", help="biases of 'arch: test' networks")
    option("--no-bias", nargs="?", type=layer_list, const=None, default=frozenset(),
           metavar="LIST", help="ignore the bias of these layers (default: of all)")  # fmt: skip
    option("--ignore-activation", action="store_true", help="build all layers without activation")
    option("--ignore-bn", action="store_true", help="skip batch normalization tensors")
    option("--stop-after", type=int, metavar="N", help="end the network after layer N")
    option("--skip-checkpoint-layers", type=int, default=0, metavar="N",
           help="skip the first N weight tensors")  # fmt: skip
    option("--skip-yaml-layers", type=int, default=0, metavar="N",
           help="leave out the first N layers of the description")  # fmt: skip
    option("--reshape-inputs", action="store_true",
           help="allow layers to read only some channels, from 'in_channel_skip' on")  # fmt: skip
    option("--output-width", type=int, choices=(8, 32), help="output width of the final layer")
    option(
        "--avg-pool-rounding",
        dest="average_rounding",
        action="store_true",
        help="average pooling rounds to nearest",
    )
    option("--synthesize-input", type=number, metavar="N",
           help="generate the sample from a few words, adding N in each round")  # fmt: skip
    option("--synthesize-words", type=int, default=8, metavar="N",
           help="number of these words (default: %(default)s)")  # fmt: skip
    option(
        "--no-warn-zero", action="store_true", help="do not warn about outputs that are all zero"
    )
    option(
        "--report", metavar="FILE", help="write a page (HTML) with tables and pictures, and JSON"
    )


def add_placing_options(group: Any) -> None:
    """Add what only says where things stand in an accelerator."""
    option = group.add_argument
    option("--input-offset", type=number, metavar="N", help="in_offset of the first layer")
    option(
        "--overlap-data", action="store_true", help="do not check whether outputs overwrite data"
    )
    option("--no-error-stop", action="store_true",
           help="only warn of outputs that overwrite data")  # fmt: skip
    option("--no-deduplicate-weights", dest="deduplicate", action="store_false",
           help="store identical weights and biases more than once")  # fmt: skip
    option("--weight-start", type=number, default=0, metavar="N", help="first kernel column")
    option("--start-layer", type=int, default=0, metavar="N", help="MAX78002: first layer")
    option("--read-ahead", action="store_true", help="MAX78002: all layers read ahead")
    option("--calcx4", action="store_true", help="MAX78002: four outputs at a time in all layers")
    option("--allow-streaming", action="store_true", help="permit streaming without a FIFO")
    option("--ignore-streaming", action="store_true", help="ignore 'streaming' keys")
    option("--streaming-layers", type=layer_list, default=frozenset(), metavar="LIST",
           help="further streaming layers")  # fmt: skip
    option("--ignore-bias-groups", action="store_true",
           help="only warn of biases in groups that are not used")  # fmt: skip
    option("--ignore-hw-limits", action="store_true",
           help="MAX78002: only warn of some limits of Conv1d and calcx4")  # fmt: skip
    option("--ignore-energy-warning", action="store_true", help="no notices about energy")


def add_folder_options(group: Any) -> None:
    """Add where the project is written."""
    option = group.add_argument
    option("--prefix", default="network", metavar="NAME",
           help="name of the project and its folder")  # fmt: skip
    option("--test-dir", default=".", metavar="DIR", help="folder in which it is created")
    option("--overwrite", action="store_true", help="replace the files of an existing project")
    add_build_option(group)


def add_build_option(group: Any) -> None:
    """Add the build systems that the project is also for."""
    group.add_argument("--build", action="append", choices=SYSTEMS, default=[], help="also write "
                       "the files for this build system (repeatable)")  # fmt: skip


def add_library_options(group: Any) -> None:
    """Add how the project is called as a library."""
    group.add_argument("--symbol-prefix", metavar="NAME", help="write a library: all files, "
                       "functions and macros begin with NAME, which NAME.h declares")  # fmt: skip
    group.add_argument("--application", choices=tuple(KINDS), help="with --symbol-prefix: write a "
                       "program around it, in place of the known-answer test")  # fmt: skip
    group.add_argument("--head", choices=HEADS, default=ARGMAX, help="with --application: what "
                       "becomes of the outputs (default: argmax)")  # fmt: skip


def add_log_options(group: Any) -> None:
    """Add what is written in the log and said, and what is done in place of a project."""
    option = group.add_argument
    option("-v", "--verbose", action="store_true",
           help="kernel map, data memory map, registers and data in the log")  # fmt: skip
    log = group.add_mutually_exclusive_group()
    log.add_argument("-L", "--log", dest="log", action="store_true", default=True,
                     help="write the log file (the default)")  # fmt: skip
    log.add_argument("--no-log", dest="log", action="store_false",
                     help="no log file; with --verbose the log is printed")  # fmt: skip
    option("--log-filename", default="log.txt", metavar="NAME", help="log")
    option("-D", "--debug", action="store_true",
           help="slow cross-checks, true MACs; show where a defect happened")  # fmt: skip
    option(
        "--check-only",
        action="store_true",
        help="stop after the checks (sizes and memories too), write nothing",
    )
    option("--fits", nargs="?", const="table", choices=("table", "json"),
           help="print how much of each chip the network uses, then end; status 1 if it does not "
                "fit the chip of --device")  # fmt: skip
    option("--no-version-check", action="store_true", help="accepted; nothing is looked up")
    for name in ("--version-check-interval", "--upstream", "--yamllint"):
        option(name, metavar="TEXT", help="accepted; neither network nor linter is used")
    option("--no-progress", action="store_true", help="accepted; there are no progress bars")


def add_needs(parser: Parser, *reads: str) -> None:
    """Add what no command line can do without; a checkpoint may hold a whole network.

    A place for the project is not needed by options that only check, nor by those that `reads`
    names.
    """
    parser.need("--config-file", "--model", instead="--model, which takes its place",
                besides=holds_network)  # fmt: skip
    for option in ("--prefix", "--test-dir"):
        parser.need(option, "--fits", "--check-only", *reads)


def holds_network(args: argparse.Namespace) -> bool:
    """Whether a checkpoint is a network of 16 or 8 bits, and there is no description."""
    if args.config_file is not None or args.model is not None or args.checkpoint_file is None:
        return False
    if args.checkpoint_file.lower().endswith(".onnx"):
        return False
    from ai8xtools.checkpoint import read_checkpoint
    from ai8xtools.quantization.q15.file import holds_network as holds

    return holds(read_checkpoint(args.checkpoint_file, bare=True))
