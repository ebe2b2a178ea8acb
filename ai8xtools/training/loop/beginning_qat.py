"""The start of quantization-aware training when weights get their own ranges.

Source: docs/quantization.md, "Ranges of weights".
"""

from __future__ import annotations

from torch import Tensor

import ai8x
from ai8xtools.training.data.batches import Batches
from ai8xtools.training.loop.epochs import Pass

SAMPLES = 256
"""At least so many samples of the training set are what single bits start from."""


def choose_integers(passes: Pass, train: Batches, epoch: int) -> None:
    """Choose the ranges of weights of a model that QAT has just begun for, and start single bits.

    All processes get the parameters of the first one.
    """
    model, inputs = passes.model, list[Tensor]()
    ai8x.fit_ranges(model)
    for batch in train.of_epoch(epoch):
        inputs.append(passes.place(batch)[0])
        if sum(map(len, inputs)) >= SAMPLES:
            break
    ai8x.start_single_bits(model, inputs)
    if passes.share.divided:
        agreed = passes.share.agree({n: p.data for n, p in model.named_parameters()})
        model.load_state_dict(agreed, strict=False)
