"""How good the networks of a run are on the test set: in floating point, in QAT, as the chip does.

Source: docs/own-data.md, "How good it is".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import copy
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ai8xtools.diagnostics.errors import InputError
from ai8xtools.training.data.batches import Data
from ai8xtools.training.loop.epochs import Pass, evaluate
from ai8xtools.training.saving import checkpoints
from ai8xtools.training.saving.checkpoints import Loaded
from ai8xtools.training.tasks.anomaly import Anomaly
from ai8xtools.values.accuracy import Measured, capitalized
from datasets.own.record import ACCURACY

Integers = Callable[[str], Mapping[str, Tensor]]
"""Returns the tensors of a trained checkpoint as quantize.py makes integers of them."""
_SCALE = 128
_FLOAT, _QAT, _CHIP = "floating point", "quantization-aware", "integers of the chip"


def judge(
    passes: Pass,
    data: Data,
    best: Mapping[bool, Path],
    build: Callable[[bool], nn.Module],
    integers: Integers,
) -> None:
    """Measure the `best` checkpoints of a run, those of QAT (True) and before it, and the integers
    of the last one, in whose extras the result is noted.

    `build(as_integers)` returns the network without weights. What cannot be measured is reported.
    """
    log, accuracies, doubt, lines, title = passes.log, {}, None, [], "accuracy"
    for name, measured in _measured(passes, data, best, build, integers):
        lines.append(f"  {name:{len(_CHIP)}}  {measured}")
        if not isinstance(measured, str):
            accuracies[name] = asdict(measured)
            doubt, title = measured.doubt, measured.title
    log.say(f"{capitalized(title)} on {data.test.samples} test samples:")
    for line in lines:
        log.say(line)
    log.metrics["accuracy"] = accuracies
    log.save_metrics()
    checkpoints.note(best[max(best)], {ACCURACY: accuracies.get(_CHIP)}, passes.options.safetensors)
    if doubt is not None:
        log.say(doubt)


def _measured(
    passes: Pass,
    data: Data,
    best: Mapping[bool, Path],
    build: Callable[[bool], nn.Module],
    integers: Integers,
) -> Iterator[tuple[str, Measured | str]]:
    for in_qat, path in best.items():
        loaded = checkpoints.read(str(path))
        yield _QAT if in_qat else _FLOAT, _quality(passes, data, loaded, build(False), 1)
    try:
        loaded = Loaded({**integers(str(best[max(best)]))}, None, None, None, None, {})
        yield _CHIP, _quality(passes, data, loaded, build(True), _SCALE)
    except InputError as exc:
        yield _CHIP, f"not measured: {exc.message} [{exc.code}]"


def _quality(passes: Pass, data: Data, loaded: Loaded, model: nn.Module, scale: int) -> Measured:
    """Return how good a network is, whose inputs are whole numbers with a `scale`."""
    checkpoints.load_into(model, loaded)
    model.to(passes.device).to(memory_format=passes.layout)

    def forward(x: Tensor) -> Any:
        return model(x if scale == 1 else torch.round(x * scale).clamp(-scale, scale - 1))

    task = copy(passes.task)
    task.model, task.options = model, replace(task.options, act_mode_8bit=scale > 1)
    own = replace(passes, model=model, forward=forward, task=task, observers=(), average=None,
                  distillation=None)  # fmt: skip
    if isinstance(task, Anomaly):
        assert data.validation is not None
        task.learn_threshold(evaluate(own, data.validation, None))
    return task.quality(evaluate(own, data.test, None), data.test.samples)
