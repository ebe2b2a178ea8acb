"""What train.py writes about a network without training it: tables, graphs, files for other tools.

Modules are imported on demand.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from ai8xtools.training.catalog.discovery import DatasetEntry, ModelEntry
from ai8xtools.training.options import TrainingOptions


def is_requested(options: TrainingOptions) -> bool:
    """Return whether the options ask for an export instead of a run."""
    return options.summary is not None or options.yaml_template is not None


def export(
    model: nn.Module,
    entry: ModelEntry,
    dataset: DatasetEntry,
    policy: dict[str, Any] | None,
    options: TrainingOptions,
    complete: Any = None,
) -> str:
    """Write what the options ask for and return what to print about it.

    `complete` chooses the places of a description (`template.Complete`). `policy` is the policy of
    quantization or None. The network is changed and must not be used afterwards. Raises InputError
    for what cannot be made of this network.
    """
    model.eval()
    example = torch.zeros(1, *dataset.input[: entry.dim + 1])
    if options.yaml_template is not None:
        from ai8xtools.training.export.template import write_template

        return write_template(model, example, policy, options, complete)
    from ai8xtools.training.export import summaries

    return summaries.summarize(model, example, options)
