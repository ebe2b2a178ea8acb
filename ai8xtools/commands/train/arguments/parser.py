"""The command line of train.py: options in groups, and which of them go together."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from typing import Any

from ai8xtools.commands.arguments import Idle, Parser, Refused, add_proof_option
from ai8xtools.commands.targets import choices
from ai8xtools.commands.train.arguments import converters as values
from ai8xtools.commands.train.arguments import (
    displays,
    own_data,
    refinements,
    searching,
    sweeping,
)
from ai8xtools.commands.train.arguments.sweeping import Sweep, sweep_of
from ai8xtools.training.options import TrainingOptions
from ai8xtools.values import frozen

DEFAULTS = TrainingOptions(arch="", dataset="")
RECIPE = (
    "epochs", "epoch_samples", "no_validation", "batch_size", "optimizer", "lr", "weight_decay",
    "compress", "lr_schedule", "label_smoothing", "ema", "augment", "validation_split",
)  # fmt: skip
"""What the recipe of a kind of data may choose where the command line does not."""
_SPARSE = "the accelerator has no sparse kernels, so that pruning saves nothing"
_REFUSED = {
    "--sense": _SPARSE,
    "--sense-range": _SPARSE,
    "--masks-sparsity": _SPARSE,
    "--thinnify": _SPARSE,
    "--kernel-stats": _SPARSE,
    "--quantize-eval": "quantize the checkpoint with quantize.py, and evaluate it with -8",
    "--earlyexit_lossweights": "the accelerator runs a network to its end",
    "--earlyexit_thresholds": "the accelerator runs a network to its end",
    "--load-serialized": "checkpoints hold tensors, no programs",
    "--effective-train-size": "choose a smaller data set",
    "--effective-valid-size": "use --validation-split",
    "--effective-test-size": "choose a smaller data set",
}


def _device_and_data(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("device, model and data").add_argument
    add("--device", type=values.device_number, default=DEFAULTS.device, metavar="NAME",
        help=f"{choices('train.py')} (default: MAX78000)")  # fmt: skip
    add("-8", "--8-bit-mode", dest="act_mode_8bit", action="store_true",
        help="compute with integers as the accelerator does; only with --evaluate")  # fmt: skip
    add("-a", "--arch", "--model", dest="arch", type=values.network, required=True, metavar="NAME",
        help="the network, one of models/*.py, FILE:CLASS (the file is executed), or auto: the "
        "widest of models/sized.py that fits the chip")  # fmt: skip
    add("--import", dest="import_model", action="store_true",
        help="convert a network of ordinary PyTorch layers to ai8x layers")  # fmt: skip
    add_proof_option(add)
    add("--fits", nargs="?", const="table", choices=("table", "json"),
        help="print how much of each chip the network uses, then end; status 1 if it does not fit "
             "the chip of --device")  # fmt: skip
    add("--strict", action="store_true",
        help="refuse networks that cannot be deployed to --device, instead of a "
             "warning")  # fmt: skip
    add("--dataset", required=True, metavar="NAME",
        help="the data set, one of datasets/*.py, or your own files: folder:DIR (pictures in "
             "class folders), masks:DIR, boxes:DIR, sounds:DIR, csv:FILE, npz:FILE, "
             "series:PATH")  # fmt: skip
    add("--data", type=values.folder, default=DEFAULTS.data, metavar="DIR",
        help="folder of the data sets (default: data)")  # fmt: skip
    add("-j", "--workers", type=values.natural_number, default=DEFAULTS.workers, metavar="N",
        help="processes that load data sets which do not fit in memory (default: 4, but no more "
        "than processors)")  # fmt: skip
    add("--validation-split", "--valid-size", "--vs", type=values.share,
        default=DEFAULTS.validation_split, metavar="SHARE",
        help="part of the training set kept for validation; 0: validate with the test set "
        "(default: 0.1)")  # fmt: skip
    add("--truncate-testset", action="store_true", help="use the first test image only")
    add("--use-bias", action="store_true", help="give the model bias=True")
    add(
        "--avg-pool-rounding",
        action="store_true",
        help="round in average pooling instead of truncating",
    )
    add("-f", "--out-fold-ratio", type=values.count, default=1, metavar="N",
        help="unfold the model's output by N before loss and accuracy (default: 1)")  # fmt: skip


def _training(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("training").add_argument
    add("--epochs", type=values.count, default=DEFAULTS.epochs, metavar="N",
        help=f"passes over the training set (default: {DEFAULTS.epochs})")  # fmt: skip
    add("-b", "--batch-size", type=values.count, default=DEFAULTS.batch_size, metavar="N",
        help="samples of a step (default: 256)")  # fmt: skip
    add("--optimizer", type=str.lower, choices=("sgd", "adam", "adamw"),
        help="(default: SGD)")  # fmt: skip
    add("--lr", "--learning-rate", dest="lr", type=values.positive_number, metavar="RATE",
        help="learning rate at the start (default: 0.1)")  # fmt: skip
    add("--momentum", type=values.share, default=DEFAULTS.momentum, metavar="M",
        help="of SGD (default: 0.9)")  # fmt: skip
    add("--weight-decay", "--wd", dest="weight_decay", type=values.number_from_0, metavar="W",
        default=DEFAULTS.weight_decay, help="(default: 1e-4)")  # fmt: skip
    add("--compress", nargs="?", type=values.policy_file, metavar="FILE",
        help="schedule of the learning rate (YAML)")  # fmt: skip
    add("--qat-policy", default=DEFAULTS.qat_policy, type=values.policy_file, metavar="FILE",
        help="when and how weights are quantized in training (YAML), or None "
        "(default: qat_policy.yaml of the folder policies beside train.py)")  # fmt: skip
    add("--qat-version", type=int, choices=(1, 2), metavar="N",
        help="generation of quantization-aware training: 2 measures the range of every "
        "activation before it begins (default: 2 if the policy has its keys, else 1)")  # fmt: skip
    add("--qat-range", choices=("fit", "vendor"),
        help="range of the weights in QAT: the power of two with the least squared error, and "
        "biases of 8 bits outside of it (fit), or that of the largest magnitude or shift_quantile "
        "(vendor; default: vendor if the policy has shift_quantile, else fit)")  # fmt: skip
    add("--regression", action="store_true",
        help="learn numbers by their mean squared error; automatic for data sets that declare it "
             "or have one class")  # fmt: skip
    add("--deterministic", "--det", action="store_true",
        help="the same result in each run on the same machine")  # fmt: skip
    add("--seed", type=values.seed, default=DEFAULTS.seed, metavar="N",
        help="of all random numbers, with --deterministic (default: 0)")  # fmt: skip
    add("--gpus", type=values.devices_of, metavar="N,N",
        help="CUDA devices, or all; several share each batch (default: 0)")  # fmt: skip
    add("--cpu", action="store_true", help="do not use a CUDA device")
    add("--mixed-precision", "--amp", dest="mixed_precision", action="store_true",
        help="multiply bfloat16 numbers until weights are quantized: faster on CUDA devices; "
        "quantization-aware epochs and evaluations always use float32")  # fmt: skip
    add("--compiler-mode", choices=("none", "default", "reduce-overhead", "max-autotune"),
        default=DEFAULTS.compiler_mode,
        help="compile the network with torch.compile on a CUDA device: slow to start, then faster "
        "(default: none)")  # fmt: skip
    add("--compiler-backend", default=DEFAULTS.compiler_backend, metavar="NAME",
        help="(default: inductor)")  # fmt: skip


def _checkpoints(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("checkpoints and evaluation")
    source = group.add_mutually_exclusive_group()
    source.add_argument("--resume-from", metavar="FILE", help="continue the run of a checkpoint")
    source.add_argument("--exp-load-weights-from", metavar="FILE",
                        help="take the weights of a checkpoint")  # fmt: skip
    add = group.add_argument
    add("--reset-optimizer", action="store_true",
        help="with --resume-from: start at epoch 0 with a fresh optimizer")  # fmt: skip
    add("--safetensors", action="store_true",
        help="write each checkpoint as .safetensors file beside it, too")  # fmt: skip
    add("-e", "--evaluate", action="store_true", help="only measure on the test set")
    add("--firmware", metavar="DIR",
        help="with --evaluate -8: measure the C project in DIR, in the emulator, and compare it "
        "with the weights of --exp-load-weights-from, if given")  # fmt: skip
    add("--firmware-fast", action="store_true",
        help="with --firmware: the accelerator alone, without the C")  # fmt: skip
    add("--save-sample", type=values.natural_number, metavar="N",
        help="with --evaluate -8: write test image N as sample_<dataset>.npy")  # fmt: skip
    add("--slice-sample", action="store_true", help="keep channels 0 to 2 of the sample")


def _display(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("log and display")
    add = group.add_argument
    add("-n", "--name", type=values.file_name, metavar="NAME",
        help="prefix of the names of log folder and checkpoints")  # fmt: skip
    add("-o", "--out-dir", default=DEFAULTS.out_dir, metavar="DIR",
        help="of log folders (default: logs)")  # fmt: skip
    add("--copy-output-folder", metavar="DIR", help="copy the log folder there at the end")
    add("-p", "--print-freq", type=values.count, default=DEFAULTS.print_freq, metavar="N",
        help="batches per line of the log (default: 10)")  # fmt: skip
    add("--show-train-accuracy", choices=("none", "last_batch", "full"),
        default=DEFAULTS.show_train_accuracy,
        help="measured on training batches: none, the last two (default) or all")  # fmt: skip
    add("--num-best-scores", type=values.count, default=DEFAULTS.num_best_scores, metavar="N",
        help="list the N best epochs after each (default: 1)")  # fmt: skip
    add("--confusion", action="store_true", help="show the confusion matrix")
    tensorboard = group.add_mutually_exclusive_group()
    tensorboard.add_argument("--enable-tensorboard", "--tensorboard", dest="tensorboard",
        action="store_true",
        help="write event files for TensorBoard to the log folder")  # fmt: skip
    tensorboard.add_argument("--no-tensorboard", dest="tensorboard", action="store_false",
        help="write none (default)")  # fmt: skip


def _detection(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("detection of objects").add_argument
    add("--obj-detection", "--enable-obj-detection", dest="obj_detection", action="store_true",
        help="detect objects in boxes; the model gets an additional class, the "
             "background")  # fmt: skip
    add("--obj-detection-params", type=values.policy_file, metavar="FILE",
        help="weights of the loss and thresholds for detections (YAML)")  # fmt: skip


def _distillation(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("knowledge distillation").add_argument
    add("--kd-teacher", type=str.lower, metavar="NAME", help="network to learn from")
    add("--kd-resume", metavar="FILE", help="checkpoint with the teacher's weights")
    add("--kd-temperature", "--kd-temp", dest="kd_temperature", type=values.positive_number,
        default=DEFAULTS.kd_temperature, metavar="T",
        help="softens both outputs (default: 1)")  # fmt: skip
    add("--kd-distill-wt", "--kd-dw", dest="kd_distill_wt", type=values.number_from_0,
        default=DEFAULTS.kd_distill_wt, metavar="W",
        help="weight of the distance from the teacher (default: 0.5)")  # fmt: skip
    add("--kd-student-wt", "--kd-sw", dest="kd_student_wt", type=values.number_from_0,
        default=DEFAULTS.kd_student_wt, metavar="W",
        help="weight of the loss of the labels (default: 0.5)")  # fmt: skip
    add("--kd-teacher-wt", "--kd-tw", dest="kd_teacher_wt", type=float, default=0.0, metavar="W",
        help="must be 0: the teacher does not learn")  # fmt: skip
    add("--kd-start-epoch", type=values.natural_number, default=0, metavar="N",
        help="first epoch with the teacher (default: 0)")  # fmt: skip
    add("--kd-relationbased", action="store_true",
        help="learn the teacher's outputs themselves, by their mean squared error; results are "
        "then measured by the overall loss")  # fmt: skip


def _embedding(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("embeddings (recognition of identities)").add_argument
    add("--dr", type=values.count, metavar="N",
        help="train vectors of N numbers with sub-centre ArcFace")  # fmt: skip
    add("--scaf-lr", type=values.positive_number, default=DEFAULTS.scaf_lr, metavar="RATE",
        help="learning rate of the centres (default: 1e-4)")  # fmt: skip
    add("--scaf-scale", type=values.positive_number, default=DEFAULTS.scaf_scale, metavar="S",
        help="factor of the cosines (default: 64)")  # fmt: skip
    add("--scaf-margin", type=values.angle, default=DEFAULTS.scaf_margin, metavar="DEGREES",
        help="angle between identities (default: 28.6)")  # fmt: skip
    add("--backbone-checkpoint", metavar="FILE", help="passed to the model")


def _compatibility(parser: argparse.ArgumentParser) -> None:
    """Add what existing scripts may hold: options without effect, and those that are refused."""
    add = parser.add_argument_group("accepted without effect").add_argument
    settings: dict[str, Any] = {"dest": "idle", "action": Idle, "default": ()}
    add("--pretrained", nargs=0, **settings,
        help="networks have no built-in weights; see --exp-load-weights-from")  # fmt: skip
    add("--kd-pretrained", nargs=0, **settings,
        help="teachers have no built-in weights; see --kd-resume")  # fmt: skip
    add("--activation-stats", "--act-stats", nargs="+", metavar="PHASE", **settings,
        help="statistics of an old library; see --enable-tensorboard")  # fmt: skip
    for option, reason in _REFUSED.items():
        parser.add_argument(option, nargs="*", action=Refused, const=reason, dest="no_effect",
                            help=argparse.SUPPRESS)  # fmt: skip


@frozen
class FirmwareChoice:
    """A project to measure in place of the model; `fast`: the accelerator without the C."""

    folder: str
    fast: bool


def parse(words: Sequence[str]) -> tuple[TrainingOptions, FirmwareChoice | Sweep | None]:
    """Parse the command line; usage errors end the program with status 2, as argparse does."""
    parser = arguments()
    parser.set_defaults(**dict.fromkeys(RECIPE))
    args = parser.parse_args(words)
    args.unset = frozenset(name for name in RECIPE if getattr(args, name) is None)
    for name in args.unset:
        setattr(args, name, getattr(DEFAULTS, name, None))
    own_data.with_task(args)
    _check(parser, args)
    refinements.settle(args)
    own_data.settle(args)
    if args.qat_policy.lower() == "none":
        args.qat_policy = None
    beyond: FirmwareChoice | Sweep | None = sweep_of(args, words, parser._option_string_actions)
    if args.firmware:
        beyond = FirmwareChoice(args.firmware, args.firmware_fast)
    del args.no_effect, args.kd_teacher_wt, args.firmware, args.firmware_fast
    return TrainingOptions(**vars(args), command_line=shlex.join(["train.py", *words])), beyond


def arguments() -> Parser:
    """Return the parser of the command line, with options in the groups of the manual."""
    parser = Parser(
        prog="train.py",
        usage="train.py --model NAME --dataset NAME [options]",
        description="Train and evaluate networks for the MAX78000 and MAX78002.",
        epilog="docs/training.md explains the stages, the YAML files and the tasks.",
        allow_abbrev=False,
    )
    for add in (
        _device_and_data, own_data.add_options, _training, refinements.add_options, _checkpoints,
        _display, displays.add_options, _detection, _distillation, searching.add_options,
        sweeping.add_options, _embedding, _compatibility,
    ):  # fmt: skip
        add(parser)
    return parser


def _check(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    """End the run for options that do not go together."""
    wrong = {
        "-8: integers cannot be trained; use it with --evaluate": args.act_mode_8bit
        and not args.evaluate,
        "--save-sample: samples are integers; add --evaluate -8": args.save_sample is not None
        and not (args.evaluate and args.act_mode_8bit),
        "--firmware: it computes with integers; add --evaluate -8": args.firmware is not None
        and not (args.evaluate and args.act_mode_8bit),
        "--firmware-fast: add --firmware": args.firmware_fast and not args.firmware,
        "--firmware: detectors have several outputs, which it does not deliver": args.firmware
        is not None
        and args.obj_detection,
        "--obj-detection: add --obj-detection-params": args.obj_detection
        and args.obj_detection_params is None,
        "--obj-detection-params: add --obj-detection": args.obj_detection_params is not None
        and not args.obj_detection,
        "--regression: the data is of numbers or of objects": args.regression
        and args.obj_detection,
        "--confusion: only classes have a confusion matrix": args.confusion
        and (args.regression or args.obj_detection),
        "--dr: embeddings need classes": args.dr is not None
        and (args.regression or args.obj_detection),
        "--kd-teacher: detectors cannot be distilled": args.kd_teacher is not None
        and args.obj_detection,
        "--kd-resume: add --kd-teacher": args.kd_resume is not None and args.kd_teacher is None,
        "--kd-relationbased: add --kd-teacher": args.kd_relationbased and args.kd_teacher is None,
        "--kd-teacher-wt: must be 0, the teacher does not learn": args.kd_teacher_wt != 0,
        "--kd-distill-wt: it and --kd-student-wt are 0, nothing would be learned":
        args.kd_teacher is not None and args.kd_distill_wt == args.kd_student_wt == 0,
        **displays.conflicts(args),
        **refinements.conflicts(args),
        **searching.conflicts(args),
        **sweeping.conflicts(args),
        **own_data.conflicts(args),
    }  # fmt: skip
    for message, applies in wrong.items():
        if applies:
            parser.error(f"argument {message}")
