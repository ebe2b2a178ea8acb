"""Projects as libraries: what cannot be told apart is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from ai8xtools.diagnostics import DiagnosticError
from ai8xtools.synthesis.emit import ProjectOptions
from ai8xtools.synthesis.library import library_of
from ai8xtools.synthesis.options import EncodeOptions
from ai8xtools.synthesis.place import PlaceOptions
from device import MAX78000
from tests.synthesis.networks import build, describe, sample, weights
from tests.synthesis.stages import encode, place, simulate


@pytest.mark.parametrize(
    ("processors", "group"), [(0b111_0011, 0), (0b111_0111, 3), (0b11_0111, 3)]
)
def test_channels_in_groups_of_different_sizes_are_refused(
    tmp_path: Path, processors: int, group: int
) -> None:
    """Words of 32 bits stand pixel by pixel in groups of channels: only the last may be smaller."""
    layer = {
        "processors": "0x1", "output_processors": hex(processors), "activate": "none",
        "output_width": 32, "op": "Conv2d", "kernel_size": "3x3", "pad": 1,
    }  # fmt: skip
    count = processors.bit_count()
    kernels, biases = weights(count, 1, 3, 3, bits=8, seed=1), weights(count, seed=1)
    network, _ = build(tmp_path, describe(layer), sample(1, 4, 4), [kernels], [biases], MAX78000)
    activations = simulate(network, average_rounding=False)
    program = encode(network, place(network, PlaceOptions()), activations, EncodeOptions())
    options = ProjectOptions("net", symbol_prefix="net")
    if group:
        (output,) = library_of(network, program, options).outputs
        assert output.group == group
    else:
        with pytest.raises(DiagnosticError) as caught:
            library_of(network, program, options)
        assert [one.code for one in caught.value.diagnostics] == ["E912"]
