"""Options of --device MCU and CMSIS-NN; which of the others mean something without the chip."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import pairwise

from commands.arguments import Parser, chip
from commands.software.options import ContainerOptions, SoftwareOptions
from device import Chip
from diagnostics import Diagnostic, Place, Severity

MCU = "MCU"
"""--device: any microcontroller, without the accelerator."""
CMSIS_NN = "CMSIS-NN"
"""--device: the same with calls of Arm's functions."""
LEGACY = "--cmsis-software-nn"
"""The name that --device CMSIS-NN had, beside which a chip is named."""

SHARED = frozenset({
    "device", "mcu", "scheme", "kernels", "l1", "l2", "l3", "dma", "flash", "like", "plan_report",
    "config_file",
    "model", "dataset", "input_shape", "checkpoint_file", "sample_input", "weight_input",
    "bias_input",
    "no_bias", "ignore_activation", "ignore_bn", "stop_after", "skip_checkpoint_layers",
    "skip_yaml_layers", "reshape_inputs", "output_width", "prefix", "test_dir", "overwrite",
    "verbose", "log", "log_filename", "diagnostics", "debug", "report", "check_only",
    "avg_pool_rounding", "no_warn_zero", "synthesize_input", "synthesize_words", "no_progress",
    "no_version_check", "version_check_interval", "upstream", "yamllint", "fits",
    "cmsis_software_nn", "cmsis_nn", "fc_opt", "container", "encrypt", "slot", "arena",
})  # fmt: skip
"""Options that mean the same for every target."""
PLACING = frozenset({
    "overlap_data", "deduplicate", "input_offset", "weight_start", "start_layer",
    "ignore_streaming", "allow_streaming", "streaming_layers", "read_ahead", "calcx4",
    "ignore_bias_groups", "ignore_hw_limits", "no_error_stop", "ignore_energy_warning",
})  # fmt: skip
"""Options that only say where things stand in the accelerator."""
_FORMER = frozenset({"top_level", "fc_layer", "embedded_code"})
"""Options that stand beside --cmsis-software-nn in command lines from before."""
_CALLS = frozenset({"cmsis_nn", "fc_layer", "fc_opt"})
"""Options of --device CMSIS-NN alone."""
_LEVELS = frozenset({"l2", "l3", "dma"})
"""Options of --device MCU alone."""
_OWN = frozenset({
    "mcu", "scheme", "kernels", "l1", "l2", "l3", "dma", "flash", "like", "plan_report",
})  # fmt: skip
"""Options that only a target without the accelerator has."""
_CONTAINER = frozenset({"container", "encrypt", "slot", "arena"})
"""Options of binary files."""
_QFORMAT = frozenset({
    "device", "mcu", "scheme", "l1", "flash", "plan_report", "checkpoint_file", "sample_input",
    "prefix", "test_dir", "overwrite", "verbose", "log", "log_filename", "diagnostics", "debug",
    "check_only", "cmsis_software_nn", "cmsis_nn", "no_progress", "no_version_check", "fits",
    "version_check_interval", "upstream", "yamllint",
})  # fmt: skip
"""Options that mean something for a checkpoint of 16 or 8 bits."""
_UNITS = {"k": 1 << 10, "m": 1 << 20}
_MOST = 1 << 32


def target(text: str) -> Chip | str:
    """Convert the name of a device for argparse; some stand for any without the accelerator."""
    return text.upper() if text.upper() in (MCU, CMSIS_NN) else chip(text)


def size(text: str) -> int:
    """Convert a number of bytes such as 64K for argparse."""
    unit = _UNITS.get(text[-1:].lower(), 1)
    digits = text[:-1] if unit > 1 else text
    if not digits.isdecimal() or not int(digits):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of bytes such as 2048 or 64K")
    if int(digits) * unit > _MOST:
        raise argparse.ArgumentTypeError(f"{text} is more than cores address, {_MOST:,} bytes")
    return int(digits) * unit


def add_software_options(parser: argparse.ArgumentParser) -> None:
    """Add the group of --device MCU and CMSIS-NN."""
    group = parser.add_argument_group("microcontrollers (--device MCU or CMSIS-NN)")
    option = group.add_argument
    option(LEGACY, action="store_true", help="same as --device CMSIS-NN, beside any --device")
    option("--cmsis-nn", metavar="DIR", help="CMSIS-NN: your copy of CMSIS 5.9.0 or older, in "
           "place of functions of ours")  # fmt: skip
    option("--fc-opt", action="store_true", help="CMSIS-NN: fully connected layers take the "
           "weights of arm_fully_connected_q7_opt or q15_opt")  # fmt: skip
    option("--fc-layer", action="store_true", help="CMSIS-NN: accepted without effect")
    option("--mcu", metavar="NAME", help="profile of the microcontroller, or a file (.yaml)")
    option("--scheme", choices=("auto", "first", "resident", "rows", "pixels", "planes", "chain"),
           default="auto", help="how layers use memory (default: whole tensors or rings of rows, "
           "the first that fits; else what costs least in the levels of memory)")  # fmt: skip
    option("--kernels", choices=("auto", "c", "dsp", "nomul"), default="auto",
           help="kernels that may be used (default: those of the core)")  # fmt: skip
    option("--l1", type=size, metavar="BYTES", help="RAM, in place of the profile's")
    option("--l2", type=size, metavar="BYTES", help="second memory, in place of the profile's")
    option("--l3", type=size, metavar="BYTES", help="third memory, in place of the profile's")
    option("--dma", action="store_true", help="copy between memories while the core computes")
    option("--flash", type=size, metavar="BYTES", help="flash, in place of the profile's")
    option(
        "--like",
        type=chip,
        metavar="CHIP",
        help="refuse what this accelerator could not run: MAX78000, MAX78002 (default: no limits)",
    )
    option("--plan-report", action="store_true", help="print where everything stands")
    option("--container", metavar="FILE.nnb", help="MCU: write the network as one binary file, and "
           "as the project firmware that runs such files")  # fmt: skip
    option("--encrypt", metavar="KEYFILE", help="encrypt its data; the file has the 32-byte key")
    option("--slot", type=size, metavar="BYTES", help="room of the firmware for containers "
           "(default: what this one takes)")  # fmt: skip
    option("--arena", type=size, metavar="BYTES", help="RAM of the firmware for networks "
           "(default: what this one takes)")  # fmt: skip


def software_options(
    parser: Parser, args: argparse.Namespace, *, qformat: bool = False
) -> SoftwareOptions | None:
    """Return what is asked of a microcontroller; None for the accelerator.

    `qformat`: the checkpoint holds a network of 16 or 8 bits. Wrong usage ends the program with
    status 2.
    """
    names = _given(parser)
    calls = args.device == CMSIS_NN or args.cmsis_software_nn
    if not calls:
        for dest in sorted(names.keys() & _CALLS):
            parser.error(f"argument {names[dest]}: is for --device CMSIS-NN")
    if args.device != MCU or calls:
        for dest in sorted(names.keys() & _CONTAINER):
            parser.error(f"argument {names[dest]}: is for --device MCU")
    if args.container is None:
        for dest in sorted(names.keys() & _CONTAINER):
            parser.error(f"argument {names[dest]}: add --container FILE.nnb")
    asked = {"--report": args.report is not None, "--plan-report": args.plan_report}
    for name in (name for name, given in asked.items() if given and args.container is not None):
        parser.error(f"argument {name}: containers have none; ask without --container")
    if args.device != MCU and not calls:
        own = names.keys() & _OWN
        for dest in sorted(own):
            parser.error(f"argument {names[dest]}: is for --device MCU")
        if qformat:
            parser.error("argument --checkpoint-file: networks of 16 or 8 bits run without the "
                         "accelerator: --device MCU or CMSIS-NN")  # fmt: skip
        return None
    if qformat:
        _check_qformat(parser, args, names)
    if args.rtl or args.rtl_preload:
        parser.error("argument --rtl: there is no RTL without the accelerator")
    if args.mcu is None and not calls:
        from software.profile import names as profiles

        parser.error(
            "argument --mcu: is required with --device MCU; choose "
            f"{', '.join(profiles())}, or a file (.yaml)"
        )
    from software.plan.plan import Scheme

    if calls and args.scheme not in ("auto", *Scheme):
        parser.error(f"argument --scheme: {args.scheme} is for --device MCU")
    for dest in sorted(names.keys() & _LEVELS) if calls else ():
        parser.error(f"argument {names[dest]}: is for --device MCU")
    return SoftwareOptions(
        args.mcu,
        None if args.kernels == "auto" else frozenset({"c", args.kernels}),
        args.l1,
        args.flash,
        args.plan_report,
        args.like,
        tuple(_said(dest, option, calls) for dest, option in names.items() if dest not in SHARED),
        calls,
        args.cmsis_nn,
        args.scheme,
        args.l2,
        args.l3,
        args.dma,
        None
        if args.container is None
        else ContainerOptions(args.container, args.encrypt, args.slot, args.arena),
        qformat,
        args.fc_opt,
    )


def _check_qformat(parser: Parser, args: argparse.Namespace, names: dict[str, str]) -> None:
    """End the program with status 2 for options that a network of 16 or 8 bits does not have."""
    for dest in sorted(names.keys() - _QFORMAT - PLACING - _FORMER - _CALLS):
        parser.error(f"argument {names[dest]}: a checkpoint of 16 or 8 bits does not have this")
    if args.scheme not in ("auto", "first", "resident"):
        parser.error(f"argument --scheme: {args.scheme} is not for networks of 16 or 8 bits, whose "
                     "functions take whole images")  # fmt: skip


def holds_qformat(words: Sequence[str]) -> bool:
    """Whether a command line without description names a checkpoint that holds a network."""
    described = ("--config", "--model")
    if any(word.startswith(described) for word in words):
        return False
    option = "--checkpoint-file"
    values = [value for word, value in pairwise(words) if word == option]
    values += [word.partition("=")[2] for word in words if word.startswith(f"{option}=")]
    if not values:
        return False
    from commands.software.qformat import is_qformat

    return is_qformat(values[-1])


def _given(parser: Parser) -> dict[str, str]:
    """Return the options of the command line as they were typed, by their names in the Namespace.

    argparse takes beginnings of names too.
    """
    found: dict[str, str] = {}
    known = {name: action.dest for action in parser._actions for name in action.option_strings}
    for word in parser.typed:
        meant = {dest for name, dest in known.items() if name.startswith(word)}
        if word in known:
            found[known[word]] = word
        elif word.startswith("--") and len(meant) == 1:
            found[meant.pop()] = word
    return found


def _said(dest: str, option: str, calls: bool) -> Diagnostic:
    """Return what is said of an option of the accelerator, or of an option from before."""
    if calls and dest in _FORMER:
        return Diagnostic("N908", "it is accepted from command lines from before and changes "
                          "nothing", Place(option=option), severity=Severity.NOTICE)  # fmt: skip
    if dest in PLACING:
        return Diagnostic("N907", "it only places things in the accelerator and changes nothing "
                          "here", Place(option=option), severity=Severity.NOTICE)  # fmt: skip
    return Diagnostic("E907", "only the accelerator has this", Place(option=option),
                      f"Leave it out with --device {CMSIS_NN if calls else MCU}.")  # fmt: skip
