"""When a network with an early exit ends there: chosen on validation samples, as the chip computes.

Source: docs/early-exit.md, "The margin".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from ai8xtools.checkpoint.exits import EXIT
from ai8xtools.training.data.batches import Data
from ai8xtools.training.loop.epochs import Pass
from ai8xtools.training.saving import checkpoints
from ai8xtools.training.saving.checkpoints import Loaded
from ai8xtools.values import frozen

_SCALE = 128


@frozen
class ExitChoice:
    """A margin, the share of samples that end at the exit, and both accuracies (0 to 1)."""

    margin: int
    share: float
    accuracy: float
    full_accuracy: float


def choose(last: Tensor, early: Tensor, labels: Tensor, loss: float) -> ExitChoice:
    """Return the smallest margin that costs at most a share `loss` of the samples [N].

    `last` and `early` are the scores of both heads [N, classes], in units of the chip.
    """
    two = early.topk(2, 1).values
    margins = (two[:, 0] - two[:, 1]).round().long()
    right_early = (early.argmax(1) == labels).long()
    right_last = (last.argmax(1) == labels).long()
    order = margins.argsort(descending=True, stable=True)
    change = (right_early - right_last)[order].cumsum(0)
    ordered = margins[order]
    ends = torch.ones_like(ordered, dtype=torch.bool)  # samples of equal margins leave together
    ends[:-1] = ordered[:-1] != ordered[1:]
    allowed = ends & (change >= -loss * len(labels)) & (ordered > 0)
    full = float(right_last.double().mean())
    if not allowed.any():
        return ExitChoice(int(margins.max()) + 1, 0.0, full, full)
    taken = int(allowed.nonzero().max())
    return ExitChoice(int(ordered[taken]), (taken + 1) / len(labels),
                  full + float(change[taken]) / len(labels), full)  # fmt: skip


def settle(
    passes: Pass,
    data: Data,
    path: Path,
    build: Callable[[bool], nn.Module],
    integers: Callable[[str], Mapping[str, Tensor]],
) -> None:
    """Choose the margin for the integers of a checkpoint, and note it in its extras.

    `build(True)` returns the network that computes with integers. Raises InputError where the
    checkpoint cannot be quantized.
    """
    options, log = passes.options, passes.log
    model = build(True)
    checkpoints.load_into(model, Loaded({**integers(str(path))}, None, None, None, None, {}))
    model.to(passes.device).eval()
    samples = data.validation if data.validation is not None else data.train
    assert samples is not None and options.exit is not None
    parts: list[tuple[Tensor, Tensor, Tensor]] = []
    with torch.no_grad():
        for batch in samples.of_epoch(0):
            x, labels = passes.place(batch)
            last, early = model(torch.round(x * _SCALE).clamp(-_SCALE, _SCALE - 1))
            parts.append((last, early, labels))
    last, early, labels = (torch.cat(part).cpu() for part in zip(*parts, strict=True))
    chosen = choose(last, early, labels, options.exit_loss / 100)
    log.say(
        f"Early exit behind layer {options.exit}: with a margin of {chosen.margin}, "
        f"{100 * chosen.share:.1f} % of {len(labels)} validation samples end there; accuracy "
        f"{100 * chosen.accuracy:.2f} %, {100 * chosen.full_accuracy:.2f} % without"
    )
    record = {"layer": options.exit, "margin": chosen.margin}
    log.metrics[EXIT] = {**record, "share": chosen.share, "accuracy": chosen.accuracy}
    log.save_metrics()
    checkpoints.note(path, {EXIT: record}, options.safetensors)
