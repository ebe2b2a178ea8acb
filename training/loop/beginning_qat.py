"""What quantization-aware training begins with when weights get ranges of their own.

Source: docs/quantization.md, "Ranges of weights".
"""

from __future__ import annotations

from torch import Tensor, nn

import ai8x
from training.data.batches import Batches
from training.loop.epochs import Pass

SAMPLES = 256
"""At least so many samples of the training set tell the means of results."""


def choose_integers(passes: Pass, trained: nn.Module, train: Batches, epoch: int) -> None:
    """Choose the ranges of weights and correct the biases of a model that QAT has just begun for.

    `trained` is the model before. All processes get the biases of the first one.
    """
    model, inputs = passes.model, list[Tensor]()
    ai8x.fit_ranges(model)
    for batch in train.of_epoch(epoch):
        inputs.append(passes.place(batch)[0])
        if sum(map(len, inputs)) >= SAMPLES:
            break
    ai8x.correct_biases(model, trained, inputs)
    if passes.share.divided:
        agreed = passes.share.agree({n: p.data for n, p in model.named_parameters()})
        model.load_state_dict(agreed, strict=False)
