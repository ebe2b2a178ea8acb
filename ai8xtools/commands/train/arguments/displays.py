"""The options of train.py that say what to show and export."""

from __future__ import annotations

import argparse
from typing import get_args

from ai8xtools.commands.train.arguments import converters as values
from ai8xtools.training.options import Summary


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the group."""
    add = parser.add_argument_group("what to show and export").add_argument
    add("--param-hist", action="store_true",
        help="TensorBoard: histograms of the weights in training")  # fmt: skip
    add("--pr-curves", action="store_true",
        help="TensorBoard: precision and recall of each class in validation")  # fmt: skip
    add("--embedding", action="store_true",
        help="TensorBoard: outputs of up to 100 validation samples as points")  # fmt: skip
    add("--save-csv", metavar="PREFIX",
        help="write labels, predictions and channel means of all test samples to "
        "PREFIX_ytrue.csv, PREFIX_ypred.csv and PREFIX_x.csv")  # fmt: skip
    add("--shap", type=values.count, metavar="N",
        help="draw shap.png in the log folder: which pixels of N test images speak for (red) and "
        "against (blue) each class, by expected gradients (an estimate of SHAP values) against "
        "100 other test images")  # fmt: skip
    add("--summary", choices=get_args(Summary),
        help="print a table (sparsity of the weights, compute effort of layers, model, modules) or "
        "write the graph of the network (png needs Graphviz), then end")  # fmt: skip
    add("--summary-filename", default="model", metavar="NAME",
        help="of the graph, without extension (default: model)")  # fmt: skip
    add("--report", metavar="FILE",
        help="write a page (HTML) at the end: accuracy, which classes are taken for which, loss "
        "and accuracy by epoch; metrics.json of the log folder is for programs")  # fmt: skip
    add("--yaml-template", metavar="FILE",
        help="write a network description for ai8xize.py to start with, then end")  # fmt: skip


def conflicts(args: argparse.Namespace) -> dict[str, bool]:
    """Return messages about options that do not go together, and whether they do not."""
    no_classes = args.regression or args.obj_detection
    return {
        "--pr-curves: precision and recall are measured for classes only": args.pr_curves
        and no_classes,
        "--embedding: only samples of classes are shown as points": args.embedding and no_classes,
        "--save-csv: not together with --save-sample": args.save_csv is not None
        and args.save_sample is not None,
        "--save-csv: objects in boxes do not fit in a table": args.save_csv is not None
        and args.obj_detection,
        "--shap: detectors are not explained": args.shap is not None and args.obj_detection,
        "--report: only of trainings and with --evaluate": args.report is not None
        and (args.summary is not None or args.yaml_template is not None or args.fits is not None),
        "--yaml-template: not together with --summary": args.yaml_template is not None
        and args.summary is not None,
    }
