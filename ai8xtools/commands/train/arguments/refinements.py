"""The options of train.py that refine training: averages, limits, rates by option, early stop."""

from __future__ import annotations

import argparse

from ai8xtools.commands.train.arguments import converters as values
from device import Chip, chip_of_die, names_where

TRACKERS = ("mlflow", "wandb")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the group."""
    add = parser.add_argument_group("refinements of training").add_argument
    add("--epoch-samples", type=values.count, metavar="N",
        help="number of training samples in an epoch: several passes through a small set, part of "
             "a large one (default: one pass)")  # fmt: skip
    add("--no-validation", action="store_true",
        help="set no samples aside for validation: it uses training samples, and the last epoch "
             "counts as the best")  # fmt: skip
    add("--lr-schedule", choices=("cosine",),
        help="lower the learning rate along half a cosine wave until the last epoch, in place of "
        "--compress")  # fmt: skip
    add("--lr-min", type=values.number_from_0, default=0.0, metavar="RATE",
        help="with --lr-schedule: the rate at the end (default: 0)")  # fmt: skip
    add("--warm-up", type=values.natural_number, default=0, metavar="N",
        help="raise the learning rate evenly in the first N epochs (default: 0)")  # fmt: skip
    add("--weight-decay-of", type=decay_of, action="append", metavar="NAME=W",
        help="weight decay of parameters by name, * for any characters, as in '*.bias=0' "
             "(repeatable; the first match applies)")  # fmt: skip
    add("--clip-gradient", type=values.positive_number, metavar="NORM",
        help="shorten gradients that are longer than this")  # fmt: skip
    add("--label-smoothing", type=values.share, default=0.0, metavar="SHARE",
        help="part of the label that training spreads over all classes (default: 0)")  # fmt: skip
    add("--mixup", type=values.number_from_0, default=0.0, metavar="ALPHA",
        help="train on mixtures of two samples, with shares of the beta distribution of ALPHA "
        "(default: 0, none)")  # fmt: skip
    add("--ema", type=values.share, metavar="DECAY",
        help="validate, test and save an exponential moving average of the weights; each step "
             "keeps this share of it, such as 0.999")  # fmt: skip
    add("--early-stop", type=values.count, metavar="N",
        help="end after N epochs without improvement, but not before quantization-aware training "
             "has begun")  # fmt: skip
    add("--exit", type=values.count, metavar="N",
        help="train a second head behind the N-th layer with weights, at which the network ends "
             "early where it is sure (MAX78002)")  # fmt: skip
    add("--exit-loss", type=values.number_from_0, default=0.05, metavar="POINTS",
        help="with --exit: points of accuracy on validation samples that may be lost "
             "(default: 0.05)")  # fmt: skip
    add("--qat-diagnostics", action="store_true",
        help="log what quantization does to each layer in each validation: clipped share and "
        "signal-to-noise ratio of weights and outputs; also in TensorBoard")  # fmt: skip
    add("--track", choices=TRACKERS, action="append", metavar="NAME",
        help="report the run to mlflow or wandb, which must be installed (repeatable)")  # fmt: skip


def settle(args: argparse.Namespace) -> None:
    """Make tuples of repeatable options."""
    args.weight_decay_of = tuple(args.weight_decay_of or ())
    args.track = tuple(dict.fromkeys(args.track or ()))


def conflicts(args: argparse.Namespace) -> dict[str, bool]:
    """Return messages about options that do not go together, and whether they do not."""
    scheduled = args.lr_schedule is not None or args.warm_up > 0
    return {
        "--compress: not together with --lr-schedule and --warm-up": args.compress is not None
        and scheduled,
        f"--warm-up: {args.warm_up} epochs leave none of --epochs {args.epochs}": args.warm_up
        >= args.epochs,
        "--early-stop: --no-validation tells no better epochs": args.no_validation
        and args.early_stop is not None,
        **_with_exit(args),
        "--lr-min: add --lr-schedule": args.lr_min > 0 and args.lr_schedule is None,
        "--mixup: a beta distribution of more than 100 is no mixture": args.mixup > 100,
        "--mixup: detectors have no labels to mix": args.mixup > 0 and args.obj_detection,
    }


def _with_exit(args: argparse.Namespace) -> dict[str, bool]:
    """Return options that only know networks with one output."""
    others = ("regression", "obj_detection", "dr", "nas", "kd_teacher", "firmware", "shap",
              "save_csv", "pr_curves", "embedding", "import_model")  # fmt: skip
    names = {"nas": "--nas", "import_model": "--import"}
    return {
        f"--exit: only {names_where(_starts_anywhere)} can start behind an exit; add --device":
        args.exit is not None and not _starts_anywhere(chip_of_die(args.device)),
        **{f"--exit: not together with {names.get(name, '--' + name.replace('_', '-'))}":
           args.exit is not None and bool(getattr(args, name)) for name in others},
    }  # fmt: skip


def _starts_anywhere(chip: Chip | None) -> bool:
    return chip is not None and chip.max_start_layer > 0


def decay_of(text: str) -> tuple[str, float]:
    """Return the pattern and the number of NAME=W."""
    pattern, separator, number = text.rpartition("=")
    if not separator or not pattern:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=W, as in '*.bias=0'")
    try:
        return pattern, values.number_from_0(number)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{number!r} in {text!r} is not a number") from None
