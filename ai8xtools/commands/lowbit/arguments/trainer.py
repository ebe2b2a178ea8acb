"""The command line of train.py for low-bit networks, which have another arithmetic."""

from __future__ import annotations

from collections.abc import Sequence

from ai8xtools.commands.arguments import Parser
from ai8xtools.commands.lowbit import MODELS
from ai8xtools.values import frozen


@frozen
class TrainOptions:
    """What the command line says; None where the policy decides."""

    model: str
    policy: str | None
    dataset: str
    data: str
    epochs: int | None
    batch_size: int | None
    lr: float | None
    optimizer: str | None
    seed: int
    out_dir: str
    name: str | None
    weights: str | None
    evaluate: bool
    teachers: tuple[str, ...]


def arguments() -> Parser:
    """Return the parser of the command line."""
    parser = Parser(
        prog="train.py",
        usage="%(prog)s --model MODEL --dataset NAME --data DIR [--qat-policy FILE] [options]",
        description="Train a low-bit network for the smallest cores.",
    )  # fmt: skip
    option = parser.add_argument
    option("-a", "--arch", "--model", dest="model", required=True, choices=MODELS, metavar="MODEL",
           help=f"one of {', '.join(MODELS)}")  # fmt: skip
    option(
        "--qat-policy",
        metavar="FILE",
        help="hyperparameters: encodings, widths, clipping and so on (YAML)",
    )
    option("--dataset", default="MNIST", metavar="NAME", help="pictures with classes")
    option("--data", default="data", metavar="DIR", help="folder of the data sets")
    option("--epochs", type=int, metavar="N", help="instead of that of the policy")
    option("-b", "--batch-size", type=int, metavar="N", help="instead of that of the policy")
    option(
        "--lr",
        "--learning-rate",
        dest="lr",
        type=float,
        metavar="RATE",
        help="learning rate of Adam",
    )
    option("--optimizer", choices=("Adam", "Muon"), help="instead of that of the policy")
    option(
        "--seed", type=natural, default=0, metavar="N", help="of weights, order and deformations"
    )
    option("-o", "--out-dir", default="logs", metavar="DIR", help="folder of log folders")
    option("-n", "--name", metavar="NAME", help="part of the names of log folder and checkpoint")
    option(
        "--exp-load-weights-from",
        metavar="FILE",
        help="trained network to evaluate, or to go on with",
    )
    option(
        "--teacher",
        nargs="+",
        default=(),
        metavar="FILE",
        help="trained teachers, float or low-bit networks, instead of training one",
    )
    option("-e", "--evaluate", action="store_true", help="evaluate on the test set, do not train")
    option("--device", metavar="NAME", help="BITNET, if given")
    option("--debug", action="store_true", help="show where in the program a failure occurs")
    return parser


def parse(words: Sequence[str]) -> TrainOptions:
    """Return the options of a command line; wrong usage ends the program with status 2."""
    parser = arguments()
    args = parser.parse_args([*words])
    if args.evaluate and args.exp_load_weights_from is None:
        parser.error("--evaluate needs --exp-load-weights-from FILE")
    if args.device is not None and args.device.upper() != "BITNET":
        parser.error(f"argument --device: {args.model} is for BITNET")
    return TrainOptions(
        args.model, args.qat_policy, args.dataset, args.data, args.epochs, args.batch_size,
        args.lr, args.optimizer, args.seed, args.out_dir, args.name,
        args.exp_load_weights_from, args.evaluate, tuple(args.teacher),
    )  # fmt: skip


def natural(text: str) -> int:
    """Return a whole number from 0 that torch takes as a seed."""
    number = int(text)
    if not 0 <= number < 1 << 63:
        raise ValueError
    return number
