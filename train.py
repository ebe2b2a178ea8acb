#!/usr/bin/env python3
"""Train and evaluate networks for the MAX78000 and MAX78002; see --help."""

from __future__ import annotations

import argparse
import shlex
import sys

from device import UnknownDeviceError, chip_named
from diagnostics import run
from training.options import Options

DEFAULTS = Options(arch="", dataset="")


def device_number(text: str) -> int:
    """Return 84, 85 or 87 for a chip's name such as MAX78000, AI85 or 85, in any case."""
    if text.lower() in ("ai84", "84"):  # layers know its arithmetic, the other tools do not
        return 84
    try:
        return chip_named(text).die
    except UnknownDeviceError as exc:
        raise argparse.ArgumentTypeError(str(exc)) from None


def count(text: str) -> int:
    """Return a whole number of at least 1."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is below 1")
    return number


def natural_number(text: str) -> int:
    """Return a whole number of at least 0."""
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"{text} is below 0")
    return number


def numbers(text: str) -> tuple[int, ...]:
    """Return a list of whole numbers of at least 0."""
    return tuple(natural_number(part) for part in text.split(","))


def seed(text: str) -> int:
    """Return a whole number that fits in 63 bits."""
    number = natural_number(text)
    if number >= 1 << 63:
        raise argparse.ArgumentTypeError(f"{text} is above 2**63-1")
    return number


def share(text: str) -> float:
    """Return a number of [0, 1)."""
    number = float(text)
    if not 0 <= number < 1:
        raise argparse.ArgumentTypeError(f"{text} is outside [0, 1)")
    return number


def positive_number(text: str) -> float:
    """Return a number above 0."""
    number = float(text)
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a number above 0")
    return number


def number_from_0(text: str) -> float:
    """Return a finite number of at least 0."""
    number = float(text)
    if not 0 <= number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a number from 0")
    return number


def file_name(text: str) -> str:
    """Return a text that can begin the name of a file in the log folder."""
    if not text or "/" in text or "\\" in text or "\0" in text or text in (".", ".."):
        raise argparse.ArgumentTypeError(f"{text!r} must be a name without / or \\")
    return text


def _device_and_data(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("device, model and data")
    add = group.add_argument
    add("--device", type=device_number, default=DEFAULTS.device, metavar="NAME",
        help="MAX78000 (default) or MAX78002")  # fmt: skip
    add("-8", "--8-bit-mode", dest="act_mode_8bit", action="store_true",
        help="compute with integers as the accelerator does; only with --evaluate")  # fmt: skip
    add("-a", "--arch", "--model", dest="arch", type=str.lower, required=True, metavar="NAME",
        help="the network, one of models/*.py")  # fmt: skip
    add("--dataset", required=True, metavar="NAME", help="the data set, one of datasets/*.py")
    add("--truncate-testset", action="store_true", help="use the first test image only")
    add(
        "--data",
        default=DEFAULTS.data,
        metavar="DIR",
        help="folder of the data sets (default: data)",
    )
    add("-j", "--workers", type=natural_number, default=DEFAULTS.workers, metavar="N",
        help="processes that load data sets which do not fit in memory (default: 4)")  # fmt: skip
    add("--validation-split", "--valid-size", "--vs", type=share,
        default=DEFAULTS.validation_split, metavar="SHARE",
        help="part of the training set kept for validation; 0: validate with the test set "
        "(default: 0.1)")  # fmt: skip
    add("--use-bias", action="store_true", help="give the model bias=True")
    add("--avg-pool-rounding", action="store_true", help="average pooling rounds, not truncates")


def _training(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("training")
    add = group.add_argument
    add(
        "--epochs",
        type=count,
        default=DEFAULTS.epochs,
        metavar="N",
        help=f"passes (default: {DEFAULTS.epochs})",
    )
    add(
        "-b",
        "--batch-size",
        type=count,
        default=DEFAULTS.batch_size,
        metavar="N",
        help="(default: 256)",
    )
    add("--optimizer", type=str.lower, choices=("sgd", "adam"),
        help="(default: SGD)")  # fmt: skip
    add("--lr", "--learning-rate", dest="lr", type=positive_number, metavar="RATE",
        help="learning rate at the start (default: 0.1)")  # fmt: skip
    add(
        "--momentum",
        type=share,
        default=DEFAULTS.momentum,
        metavar="M",
        help="of SGD (default: 0.9)",
    )
    add("--weight-decay", "--wd", dest="weight_decay", type=number_from_0, metavar="W",
        default=DEFAULTS.weight_decay, help="(default: 1e-4)")  # fmt: skip
    add("--compress", metavar="FILE", help="schedule of the learning rate (YAML)")
    add("--qat-policy", default=DEFAULTS.qat_policy, metavar="FILE",
        help="when and how weights are quantized in training (YAML), or None "
        "(default: qat_policy.yaml of the folder policies beside train.py)")  # fmt: skip
    add("--deterministic", "--det", action="store_true",
        help="the same result in each run on the same machine")  # fmt: skip
    add(
        "--seed",
        type=seed,
        default=DEFAULTS.seed,
        metavar="N",
        help="of the initial weights, with --deterministic",
    )
    add("--show-train-accuracy", choices=("none", "last_batch", "full"),
        default=DEFAULTS.show_train_accuracy,
        help="measured on training batches: none, the last two (default) or all")  # fmt: skip
    add("--gpus", type=numbers, metavar="N,N", help="CUDA devices (default: 0)")
    add("--cpu", action="store_true", help="do not use a CUDA device")
    add("-p", "--print-freq", type=count, default=DEFAULTS.print_freq, metavar="N",
        help="batches per line of the log (default: 10)")  # fmt: skip


def _results(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("checkpoints, evaluation and results")
    source = group.add_mutually_exclusive_group()
    source.add_argument("--resume-from", metavar="FILE", help="continue the run of a checkpoint")
    source.add_argument("--exp-load-weights-from", metavar="FILE",
                        help="take the weights of a checkpoint")  # fmt: skip
    add = group.add_argument
    add("--reset-optimizer", action="store_true",
        help="with --resume-from: start at epoch 0 with a fresh optimizer")  # fmt: skip
    add("-e", "--evaluate", action="store_true", help="only measure on the test set")
    add("--confusion", action="store_true", help="show the confusion matrix")
    add("--save-sample", type=natural_number, metavar="N",
        help="with --evaluate -8: write test image N as sample_<dataset>.npy")  # fmt: skip
    add("--slice-sample", action="store_true", help="keep channels 0 to 2 of the sample")
    add(
        "-n",
        "--name",
        type=file_name,
        metavar="NAME",
        help="begins the names of log folder and checkpoints",
    )
    add(
        "-o",
        "--out-dir",
        default=DEFAULTS.out_dir,
        metavar="DIR",
        help="of log folders (default: logs)",
    )
    add("--enable-tensorboard", "--tensorboard", dest="tensorboard", action="store_true",
        help="write event files for TensorBoard to the log folder")  # fmt: skip


def parse(arguments: list[str]) -> Options:
    """Parse the command line; usage errors end the program with status 2, as argparse does."""
    parser = argparse.ArgumentParser(
        prog="train.py",
        description="Train and evaluate networks for the MAX78000 and MAX78002.",
        allow_abbrev=False,
    )
    _device_and_data(parser)
    _training(parser)
    _results(parser)
    found = parser.parse_args(arguments)
    if found.act_mode_8bit and not found.evaluate:
        parser.error("argument -8: integers cannot be trained; use it with --evaluate")
    if found.save_sample is not None and not (found.evaluate and found.act_mode_8bit):
        parser.error("argument --save-sample: samples are integers; add --evaluate -8")
    if found.qat_policy.lower() == "none":
        found.qat_policy = None
    return Options(**vars(found), command_line=shlex.join(["train.py", *arguments]))


def main() -> int:
    """Do what the command line says."""
    options = parse(sys.argv[1:])
    # PyTorch takes seconds to import: --help needs none of it, and `run` reports Ctrl-C meanwhile.
    from training import session

    session.run(options)
    return 0


if __name__ == "__main__":
    sys.exit(run(main))
