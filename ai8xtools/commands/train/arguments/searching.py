"""The options of train.py for architecture search."""

from __future__ import annotations

import argparse

from ai8xtools.commands.train.arguments import converters as values
from ai8xtools.training.options import TrainingOptions

_DEFAULTS = TrainingOptions(arch="", dataset="")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the group."""
    add = parser.add_argument_group("architecture search").add_argument
    add("--nas", action="store_true",
        help="train an elastic network (of ai8x_nas), then look for its best part")  # fmt: skip
    add("--nas-policy", type=values.policy_file, default=_DEFAULTS.nas_policy, metavar="FILE",
        help="stages of the training, and the search after it (YAML; default: nas_policy.yaml of "
        "the folder policies beside train.py)")  # fmt: skip
    add("--nas-kd-resume-from", metavar="FILE",
        help="with --resume-from: checkpoint of the teacher (default: the one "
        "beside it)")  # fmt: skip
    add("--nas-stage-transition-list", metavar="LIST",
        help='first epoch, stage and level of each step, "[(10, 1, 1), ...]", in place of those '
        "that follow from the policy")  # fmt: skip


def conflicts(args: argparse.Namespace) -> dict[str, bool]:
    """Return messages about options that do not go together, and whether they do not."""
    if not args.nas:
        return {
            f"{option}: add --nas": value is not None
            for option, value in (
                ("--nas-kd-resume-from", args.nas_kd_resume_from),
                ("--nas-stage-transition-list", args.nas_stage_transition_list),
            )
        }
    return {
        "--nas: it trains; --evaluate measures the chosen network": args.evaluate,
        "--nas: its teacher is the network itself (kd_params of --nas-policy); leave out "
        "--kd-teacher": args.kd_teacher is not None,
        "--nas: elastic networks sort into classes": args.obj_detection or args.dr is not None,
        "--nas: averaged weights have no statistics of parts; leave out --ema":
        args.ema is not None,
        "--nas: its stages last as long as the policy says; leave out --early-stop":
        args.early_stop is not None,
        "--nas: parts of a network are not compiled; leave out --compiler-mode":
        args.compiler_mode != "none",
        "--nas-kd-resume-from: add --resume-from": args.nas_kd_resume_from is not None
        and args.resume_from is None,
    }  # fmt: skip
