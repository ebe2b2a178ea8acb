"""What ai8xize.py takes from a checkpoint that was trained on data of the user's own.

Source: docs/own-data.md, "What the checkpoint holds".
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, replace

import numpy as np

from ai8xtools.checkpoint import Checkpoint, read_checkpoint
from ai8xtools.commands.loader.options import LoaderOptions, ModelSource
from ai8xtools.commands.loader.prepare_code import HEADER, prepare_header
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.values.accuracy import doubt_of
from ai8xtools.values.separation import Separation
from datasets.own.preparation import DESCRIPTION, DETECTOR_FILE
from datasets.own.record import WIDE, Recorded, recorded_of

AUTO = "auto"


def with_own_data(options: LoaderOptions, source: ModelSource) -> tuple[LoaderOptions, ModelSource]:
    """Return the options with sample and class names of the checkpoint, and the model.

    What the command line names wins. A checkpoint of other data changes nothing. Raises InputError
    E689 for `--model auto` without a checkpoint that names its network.
    """
    path = options.resolve.checkpoint_file
    if path is None or path.lower().endswith(".onnx"):
        if source.model == AUTO:
            raise InputError(
                "E689", "the network is that of the checkpoint, and none is named", "--model",
                "Add --checkpoint-file FILE.",
            )  # fmt: skip
        return options, source
    checkpoint = read_checkpoint(path)
    model = replace(source, model=_network(source, checkpoint, path))
    recorded = recorded_of(checkpoint.extras, path)
    if recorded is None:
        return options, model
    from ai8xtools.training.catalog.own_data import entry_of

    return with_record(options, recorded, checkpoint), replace(model, data_entry=entry_of(recorded))


def with_record(
    options: LoaderOptions, recorded: Recorded, checkpoint: Checkpoint
) -> LoaderOptions:
    """Return the options with the sample, the classes, and the description of the data."""
    resolve, project = options.resolve, options.project
    own_sample = resolve.sample_input is None and resolve.synthesize_input is None
    if own_sample:
        sample = recorded.sample.astype(np.int64)
        resolve = replace(resolve, sample=sample.reshape(recorded.preparation.shape))
    threshold = None
    if isinstance(recorded.accuracy, Separation):
        threshold = int(recorded.accuracy.threshold * 128**2)
    if options.rtl is None and recorded.preparation.target:
        project = replace(project, printer=(HEADER, "print_number(*output)"))
    elif options.rtl is None and threshold is not None:
        project = replace(project, printer=(HEADER, "print_anomaly(output)"))
    elif options.rtl is None and not recorded.is_marked and recorded.settings.task is None:
        project = replace(project, labels=recorded.classes, softmax=project.unload)
    one = _integer_of_one(checkpoint)
    header = prepare_header(recorded.preparation, recorded.classes[0], one, threshold)
    files = [(DESCRIPTION, _json(recorded, one, own_sample=own_sample))]
    files += [] if header is None else [(HEADER, header.encode())]
    if recorded.detector is not None:
        detector = {key: np.asarray(value).tolist() if key in ("order", "priors") else value
                    for key, value in recorded.detector.items()}  # fmt: skip
        files.append((DETECTOR_FILE, (json.dumps(detector) + "\n").encode()))
    return replace(
        options, resolve=resolve, project=project, files=tuple(files),
        accuracy=recorded.accuracy, doubt=doubt_of(recorded.accuracy),
    )  # fmt: skip


def _network(source: ModelSource, checkpoint: Checkpoint, path: str) -> str:
    """Return the name of the network; `auto` is what the checkpoint says."""
    if source.model != AUTO:
        return source.model
    if not checkpoint.arch:
        raise InputError(
            "E689", "the checkpoint does not name its network", path, "Name it with --model."
        )
    return str(checkpoint.arch)


def _integer_of_one(checkpoint: Checkpoint) -> float:
    """Return the integer that stands for 1.0 in the output of a quantized network.

    Wide results are not shifted, so that they have the scale of the layer's weights.
    """
    layer, state = checkpoint.extras.get(WIDE, ""), checkpoint.state_dict
    bits, shift = (state.get(f"{layer}.{name}") for name in ("weight_bits", "output_shift"))
    if not layer or bits is None or shift is None:
        return 128.0
    return math.ldexp(128.0, int(bits.item()) - 1 - int(shift.item()))


def _json(recorded: Recorded, one: float, *, own_sample: bool) -> bytes:
    """Return the description of the data for the project: emulate.py reads it.

    The class of its sample is known if that is the checkpoint's `own_sample`.
    """
    number = recorded.sample_class if own_sample else None
    content = {
        "classes": recorded.classes,
        "sample_class": None if number is None else recorded.classes[number],
        "preparation": recorded.preparation.as_dict(),
        "source": recorded.source,
        "settings": recorded.settings.as_dict(),
        "accuracy": None if recorded.accuracy is None else asdict(recorded.accuracy),
        "one": one,
    }
    return (json.dumps(content, indent=2) + "\n").encode()
