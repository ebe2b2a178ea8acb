"""Networks without places: arranged, executed on the emulated chip, compared with the description.

What the description computes is simulated before anything is added, merged or placed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ai8xtools.synthesis.layout import LayerLayout
from ai8xtools.synthesis.options import EncodeOptions, ResolveOptions, SummaryOptions
from ai8xtools.synthesis.parse import parse
from ai8xtools.synthesis.pipeline import Synthesis, synthesize
from ai8xtools.synthesis.resolve import resolve
from ai8xtools.synthesis.simulate import simulate
from device import MAX78000, Chip
from tests.synthesis.emulated import Emulated, emulated
from tests.synthesis.networks import Keys, describe, files, sample, weights

CONV: dict[str, Any] = {
    "op": "Conv2d", "kernel_size": "3x3", "pad": 1, "activate": "ReLU", "out_offset": None,
}  # fmt: skip
ONE: dict[str, Any] = {**CONV, "kernel_size": "1x1", "pad": 0}
PASS: dict[str, Any] = {"op": "Passthrough", "out_offset": None}
ADD: dict[str, Any] = {"op": "Add", "out_offset": None}


@dataclass(frozen=True)
class Arranged:
    """What became of a description without places."""

    made: Synthesis
    run: Emulated | None

    @property
    def names(self) -> list[str | None]:
        """The names of the executed layers."""
        return [layer.name for layer in self.made.network.executed()]

    def layout(self, name: str | int) -> LayerLayout:
        """Return the layout of a layer, by name or index."""
        layers = self.made.network.layers
        found = next(x for x in layers if name in (x.name, x.index))
        return self.made.placement.layout.layers[found.index]

    @property
    def codes(self) -> list[str]:
        """The codes of the warnings and notices."""
        return [d.code for d in self.made.warnings]


def arranged(
    folder: Path,
    *layers: Keys,
    shape: tuple[int, ...],
    kernels: Sequence[NDArray[Any]],
    chip: Chip = MAX78000,
    biases: Sequence[NDArray[Any]] = (),
    encode: EncodeOptions | None = None,
    execute: bool = True,
    **others: Any,
) -> Arranged:
    """Arrange a network; assert that the chip computes what the description says."""
    text = describe(*({"out_offset": None, **x} for x in layers), **others)
    options = files(folder, sample(*shape), kernels, biases)
    return arranged_text(folder, text, options, chip, encode, execute=execute)


def arranged_text(
    folder: Path,
    text: str,
    options: ResolveOptions,
    chip: Chip,
    encode: EncodeOptions | None = None,
    *,
    execute: bool = True,
    rounding: bool = False,
) -> Arranged:
    """Arrange a description; assert that the chip computes what it says."""
    path = folder / "net.yaml"
    path.write_text(text)
    made = synthesize(
        str(path), chip, options, encode or EncodeOptions(telling=SummaryOptions(cross_check=True))
    )
    plain = resolve(parse(text, placed=False), None, options)[0]
    wanted = simulate(plain, average_rounding=rounding)
    found = made.activations.outputs
    for before, after in zip(plain.outputs(), made.network.outputs(), strict=True):
        assert np.array_equal(wanted.outputs[before.index], found[after.index])
    run = emulated(made.program) if execute else None
    assert run is None or (run.wrong, list(run.run.errors)) == ([], [])
    return Arranged(made, run)


def kernels_of(*shapes: tuple[int, ...]) -> list[NDArray[np.int64]]:
    """Return random weights of some shapes: outputs, inputs, and for kernels rows and columns."""
    return [weights(*shape, seed=i) // 8 for i, shape in enumerate(shapes)]
