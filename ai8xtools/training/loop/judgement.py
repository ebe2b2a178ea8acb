"""How good the networks of a run are on the test set: in floating point, in QAT, as the chip does.

Source: docs/own-data.md, "How good it is".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path

import torch
from torch import Tensor, nn

from ai8xtools.diagnostics.errors import InputError
from ai8xtools.training.data.batches import Batches
from ai8xtools.training.loop.epochs import Pass, evaluate
from ai8xtools.training.loop.metrics import Scores
from ai8xtools.training.saving import checkpoints
from ai8xtools.training.saving.checkpoints import Loaded
from ai8xtools.training.tasks.classification import Classification, Segmentation
from ai8xtools.training.tasks.embedding import Embedding
from ai8xtools.training.tasks.task import Task
from ai8xtools.values.accuracy import Accuracy
from datasets.own.record import ACCURACY

Integers = Callable[[str], Mapping[str, Tensor]]
"""Returns the tensors of a trained checkpoint as quantize.py makes integers of them."""
_SCALE = 128
_FLOAT, _QAT, _CHIP = "floating point", "quantization-aware", "integers of the chip"


def is_judged(task: Task) -> bool:
    """Return whether samples of one's own are classified."""
    if not isinstance(task, Classification) or isinstance(task, Embedding | Segmentation):
        return False
    return task.is_own


def accuracy_of(scores: Scores) -> Accuracy | None:
    """Return the accuracy of a pass, None where none was counted class by class."""
    return None if scores.confusion is None else Accuracy.of(scores.confusion.tolist())


def judge(
    passes: Pass,
    test: Batches,
    best: Mapping[bool, Path],
    build: Callable[[bool], nn.Module],
    integers: Integers,
) -> None:
    """Measure the `best` checkpoints of a run, those of QAT (True) and before it, and the integers
    of the last one, in whose extras the result is noted.

    `build(as_integers)` returns the network without weights. What cannot be measured is reported.
    """
    log, accuracies, doubt = passes.log, {}, None
    log.say(f"Accuracy on {test.samples} test samples:")
    for name, accuracy in _measured(passes, test, best, build, integers):
        log.say(f"  {name:{len(_CHIP)}}  {accuracy}")
        if isinstance(accuracy, Accuracy):
            accuracies[name] = asdict(accuracy)
            doubt = accuracy.doubt
    log.metrics["accuracy"] = accuracies
    log.save_metrics()
    checkpoints.note(best[max(best)], {ACCURACY: accuracies.get(_CHIP)}, passes.options.safetensors)
    if doubt is not None:
        log.say(doubt)


def _measured(
    passes: Pass,
    test: Batches,
    best: Mapping[bool, Path],
    build: Callable[[bool], nn.Module],
    integers: Integers,
) -> Iterator[tuple[str, Accuracy | str]]:
    for in_qat, path in best.items():
        loaded = checkpoints.read(str(path))
        yield _QAT if in_qat else _FLOAT, _accuracy(passes, test, loaded, build(False), 1)
    try:
        loaded = Loaded({**integers(str(best[max(best)]))}, None, None, None, None, {})
        yield _CHIP, _accuracy(passes, test, loaded, build(True), _SCALE)
    except InputError as exc:
        yield _CHIP, f"not measured: {exc.message} [{exc.code}]"


def _accuracy(
    passes: Pass, test: Batches, loaded: Loaded, model: nn.Module, scale: int
) -> Accuracy:
    """Return the accuracy of a network, whose inputs are whole numbers with a `scale`."""
    checkpoints.load_into(model, loaded)
    model.to(passes.device).to(memory_format=passes.layout)

    def forward(x: Tensor) -> Tensor:
        inputs = x if scale == 1 else torch.round(x * scale).clamp(-scale, scale - 1)
        outputs: Tensor = model(inputs)
        return outputs

    own = replace(passes, model=model, forward=forward, observers=(), average=None,
                  distillation=None)  # fmt: skip
    accuracy = accuracy_of(evaluate(own, test, None))
    assert accuracy is not None, "only what is counted class by class is judged"
    return accuracy
