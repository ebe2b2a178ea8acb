"""Sample and class names of a checkpoint for a written description.

Source: docs/own-data.md, "What the checkpoint holds".
"""

from __future__ import annotations

from ai8xtools.checkpoint import read_checkpoint
from ai8xtools.checkpoint.errors import CheckpointError
from ai8xtools.commands.loader.options import LoaderOptions

KEY = "own_data"
"""The entry of a checkpoint's `extras`; the rooms that read it are loaded where there is one."""


def with_recorded_data(options: LoaderOptions) -> LoaderOptions:
    """Return the options with sample and class names of the checkpoint, if it holds them.

    What the command line names wins. A checkpoint that cannot be read is refused
    where its weights are used. Raises InputError E506 for an entry of another form.
    """
    path = options.resolve.checkpoint_file
    if path is None or path.lower().endswith(".onnx"):
        return options
    try:
        checkpoint = read_checkpoint(path)
    except CheckpointError:
        return options
    if KEY not in checkpoint.extras:
        return options
    from ai8xtools.commands.loader.own_data import with_record
    from datasets.own.record import recorded_of

    recorded = recorded_of(checkpoint.extras, path)
    return options if recorded is None else with_record(options, recorded, checkpoint)
