"""The options of train.py about the user's own data: folder:DIR, sounds:DIR, csv:FILE, ..."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from dataclasses import fields
from typing import Any

from ai8xtools.commands.train.arguments import converters as values
from datasets.own.folding import FOLDABLE
from datasets.own.preparation import FRAME
from datasets.own.settings import (
    ANOMALY,
    AUGMENTATIONS,
    AUTO_FOLD,
    BOXES,
    KINDS,
    NO_GROUP,
    OF_PICTURES,
    REGRESSION,
    SOUND_WINDOW,
    USUAL,
    DataSettings,
    kind_and_path,
)

_DETECTION = "policies/obj_detection_params.yaml"
_LARGEST = 1024
"""Rows and columns that the chip takes."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the group."""
    add = parser.add_argument_group("your own data (--dataset KIND:PATH)").add_argument
    add_picture_options(add)
    add(
        "--augment",
        type=augmentations,
        metavar="LIST",
        help=f"random changes of training samples, separated by commas: {', '.join(AUGMENTATIONS)}",
    )
    add("--test-share", type=test_share, metavar="SHARE",
        help="share of each class that is set aside for tests if no folder or file contains test "
             "data (default: 0.2)")  # fmt: skip
    add("--split-seed", type=values.natural_number, metavar="N",
        help="selects the samples of --test-share (default: 0)")  # fmt: skip
    add("--test-part", type=values.natural_number, metavar="N",
        help="number, from 0, of the part of --test-share to test on; several runs can thus test "
             "each sample once (cross-validation)")  # fmt: skip
    add("--sample-rate", type=values.count, metavar="HZ",
        help="sounds: resample to this rate (default: 16000)")  # fmt: skip
    add("--window", type=values.count, metavar="N",
        help=f"sounds: samples of an input, a multiple of {FRAME} (default: {SOUND_WINDOW}); "
        "series: steps of an input that is cut from a CSV file (default: the whole "
        "recording)")  # fmt: skip
    add("--hop", type=values.count, metavar="N",
        help="series: steps from one window to the next (default: --window)")  # fmt: skip
    add("--label", metavar="COLUMN",
        help="csv, series in one CSV file: the column of the class, or of the number to learn with "
        "--regression, by name or number from 0 (default: last)")  # fmt: skip
    add("--anomaly", nargs="?", const="", metavar="CLASS",
        help="csv, npz, series: train an autoencoder on samples of this class (default: the only "
             "class in training) that detects all others as anomalies")  # fmt: skip
    add("--group", metavar="NAME",
        help="series in CSV files: the column, or the word before a number in file names, that "
        "identifies the source of a recording, such as a person, so that tests use other sources "
        f"than training; {NO_GROUP}: no groups (default: subject, person, ..., if there is "
        "one)")  # fmt: skip


def add_picture_options(add: Callable[..., Any]) -> None:
    """Add how pictures in folders get their size and channels."""
    add("--resize", type=size, metavar="WxH",
        help="pictures: scale them to this width and height (one number: both) and crop the "
             "longer side")  # fmt: skip
    add("--stretch", action="store_const", const=True,
        help="with --resize: scale both sides without cropping")  # fmt: skip
    add("--grayscale", action="store_const", const=True,
        help="pictures: one channel instead of three")  # fmt: skip
    add("--fold", type=fold, metavar="N|auto",
        help="pictures: read them N times as high and wide as the network's input and make each "
             "block of NxN pixels its channels; auto: the largest N for 64 channels and these "
             "pictures")  # fmt: skip


def picture_settings(args: argparse.Namespace) -> DataSettings:
    """Return what these options say."""
    return DataSettings(
        resize=args.resize, stretch=args.stretch, grayscale=args.grayscale, fold=args.fold
    )


def with_task(args: argparse.Namespace) -> None:
    """Let boxes be found where they are what the data has."""
    if (kind_and_path(args.dataset) or ("",))[0] == BOXES:
        args.obj_detection = True
        args.obj_detection_params = args.obj_detection_params or values.policy_file(_DETECTION)


def settle(args: argparse.Namespace) -> None:
    """Gather the options in one value, `own`."""
    names = [field.name for field in fields(DataSettings) if field.name not in ("task", "normal")]
    own = kind_and_path(args.dataset) is not None
    task = REGRESSION if args.regression and own else None if args.anomaly is None else ANOMALY
    values = {name: getattr(args, name) for name in names}
    args.own = DataSettings(**values, task=task, normal=args.anomaly or None)
    for name in (*names, "anomaly"):
        delattr(args, name)


def conflicts(args: argparse.Namespace) -> dict[str, bool]:
    """Return messages about options that mean nothing for the data set, and whether they do."""
    kinds = {
        "resize": OF_PICTURES, "stretch": OF_PICTURES, "grayscale": OF_PICTURES, "fold": FOLDABLE,
        "augment": (*OF_PICTURES, "sounds", "npz", "series"), "sample_rate": ("sounds",),
        "window": ("sounds", "series"), "hop": ("series",), "group": ("series",),
        "label": ("csv", "series"), "test_share": KINDS, "split_seed": KINDS,
        "test_part": KINDS, "anomaly": ("csv", "npz", "series"),
    }  # fmt: skip
    own = kind_and_path(args.dataset)
    kind = None if own is None else own[0]
    window = args.window or FRAME
    parts = DataSettings(test_share=args.test_share).over(USUAL).parts
    return {
        f"--window: {window} is no multiple of {FRAME} up to {FRAME * _LARGEST}":
        kind == "sounds" and (window % FRAME > 0 or window > FRAME * _LARGEST),
        f"--test-part: there are {parts} of them, from 0":
        args.test_part is not None and args.test_part >= parts,
        "--hop: add --window": args.hop is not None and args.window is None,
        f"--regression: not for --dataset {kind}:, whose samples have classes":
        args.regression and kind in (*OF_PICTURES, "sounds"),
        "--anomaly: excludes --regression": args.regression and args.anomaly is not None,
    } | {
        f"--{name.replace('_', '-')}: only for --dataset {' or '.join(f'{k}:' for k in allowed)}":
        getattr(args, name) is not None and kind not in allowed
        for name, allowed in kinds.items()
    }  # fmt: skip


def size(text: str) -> tuple[int, int]:
    """Return rows and columns of WxH or N."""
    match = re.fullmatch(r"(\d{1,5})(?:x(\d{1,5}))?", text.lower())
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not WIDTHxHEIGHT, as in 64x48")
    columns, rows = int(match[1]), int(match[2] or match[1])
    if not (1 <= rows <= _LARGEST and 1 <= columns <= _LARGEST):
        raise argparse.ArgumentTypeError(f"{text} is outside 1x1 to {_LARGEST}x{_LARGEST}")
    return rows, columns


def fold(text: str) -> int:
    """Return a count, or `AUTO_FOLD`."""
    return AUTO_FOLD if text == "auto" else values.count(text)


def augmentations(text: str) -> tuple[str, ...]:
    """Return the names of a list."""
    names = tuple(part.strip() for part in text.split(",") if part.strip())
    wrong = next((name for name in names if name not in AUGMENTATIONS), None)
    if wrong is not None:
        raise argparse.ArgumentTypeError(f"{wrong!r} is none of {', '.join(AUGMENTATIONS)}")
    return names


def test_share(text: str) -> float:
    """Return a number between 0 and 1."""
    number = values.share(text)
    if number == 0:
        raise argparse.ArgumentTypeError("0 leaves nothing to test with")
    return number
