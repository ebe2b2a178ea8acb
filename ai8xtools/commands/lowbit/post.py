"""What rounding after training costs: accuracy of the same weights at fewer and fewer bits.

Source: docs/low-bit.md, "The report".
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ai8xtools.commands.lowbit.files import Trained, network_of
from ai8xtools.values import frozen

if TYPE_CHECKING:
    from ai8xtools.training.lowbit.epochs import Pictures
    from ai8xtools.training.lowbit.network import LowBitWeights

ENCODINGS = ("None", "8bit", "4bitsym", "2bitsym", "Ternary", "Binary")
"""From weights as they were trained, not rounded, down to one bit."""


@frozen
class Rounded:
    """Of `total` pictures so many are `correct` with weights of an encoding and so many bits."""

    encoding: str
    bits: float
    correct: int
    total: int

    @property
    def percent(self) -> float:
        """The accuracy."""
        return 100 * self.correct / self.total


def correct_as_trained(trained: Trained, pictures: Pictures) -> Rounded:
    """Return the accuracy of a network with the encodings that it was trained with."""
    return _measured(trained, "as trained", 0.0, pictures)


def rounded_after_training(trained: Trained, pictures: Pictures) -> tuple[Rounded, ...]:
    """Return the accuracy at each of `ENCODINGS`, with the clip scalar of OCTAV.

    Dense layers and windows are rounded anew; convolutions keep their eight bits.
    """
    recipe = trained.recipe
    count = len(recipe.widths) + 1
    rows = []
    for name in ENCODINGS:
        changed = replace(recipe, encodings=(name,) * count, window_encoding=name)
        bits = {"None": 32.0, "Ternary": 1.6, "Binary": 1.0}.get(name) or float(name[0])
        rows.append(
            _measured(Trained(changed, trained.classes, trained.state), name, bits, pictures, True)
        )
    return tuple(rows)


def _measured(
    trained: Trained, name: str, bits: float, pictures: Pictures, anew: bool = False
) -> Rounded:
    from ai8xtools.training.lowbit.loop import evaluate
    from ai8xtools.training.lowbit.pictures import codes, reduced

    network = network_of(trained, len(trained.classes))
    for layer in network.quantizers() if anew else ():
        _choose_clip(layer)
    inputs = codes(reduced(pictures.images))
    correct = evaluate(network, inputs, pictures.labels)
    return Rounded(name, bits, correct, len(inputs))


def _choose_clip(layer: LowBitWeights) -> None:
    if layer.weight.ndim < 4:
        layer.s.fill_(1.0)
        layer.update_clip("octav", 0.25)
