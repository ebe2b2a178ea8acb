"""Libraries: where the values of an input go, for inputs of every kind; names and options."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ai8xtools.synthesis.emit.options import ProjectOptions, check_options
from ai8xtools.synthesis.layout import InputPort
from ai8xtools.synthesis.library import input_words, library_of
from ai8xtools.synthesis.options import EncodeOptions, PlaceOptions
from device import MAX78002
from tests.synthesis.loaded import words_of
from tests.synthesis.networks import build, describe, mask, sample, weights
from tests.synthesis.stages import encode, place, simulate

CONV = {"op": "conv2d", "kernel_size": "1x1", "pad": 0, "activate": "none", "quantization": 8}
FIFO = {"input_port": InputPort.FIFO}
CASES: dict[str, tuple[dict[str, Any], tuple[int, int, int], dict[str, Any]]] = {
    "CHW": ({"data_format": "CHW", "processors": 0x111}, (3, 5, 7), {}),
    "HWC": ({"data_format": "HWC", "processors": 7}, (3, 5, 7), {}),
    "folded": ({"data_format": "HWC", "processors": hex(mask(48))}, (48, 3, 3), {}),
    "passes": ({"data_format": "HWC", "processors": hex(mask(36))}, (70, 3, 2), {}),
    "FIFO, CHW": ({"data_format": "CHW", "processors": 0x10001}, (2, 4, 4), FIFO),
    "FIFO, HWC": ({"data_format": "HWC", "processors": 15}, (4, 4, 4), FIFO),
    "parts": ({"data_format": "CHW", "processors": 0x11, "kernel_size": "3x3", "pad": 1},
              (2, 8, 4), {"input_split": 2}),
}  # fmt: skip


@pytest.mark.parametrize("kind", CASES)
def test_values_go_where_the_program_loads_them(kind: str, tmp_path: Path) -> None:
    keys, shape, options = CASES[kind]
    taps = 3 if "kernel_size" in keys else 1
    text = describe({**CONV, **keys})
    network, _ = build(
        tmp_path, text, sample(*shape), [weights(2, shape[0], taps, taps)], chip=MAX78002, **options
    )
    activations = simulate(network, average_rounding=False)
    program = encode(network, place(network, PlaceOptions()), activations, EncodeOptions())
    words = input_words(network, program)
    assert words.interleaved is ("CHW" not in kind and kind != "parts")
    made = words_of(words, network.sample)
    for block, one in zip((*program.inputs, *program.fifo), made, strict=True):
        np.testing.assert_array_equal(one, block.words)


def test_numbers_of_outputs_have_the_unit_of_their_weights(tmp_path: Path) -> None:
    layer = {**CONV, "data_format": "HWC", "processors": 7, "quantization": 4, "output_width": 32}
    network, _ = build(tmp_path, describe(layer), sample(3, 4, 4), [weights(6, 3, 1, 1) // 16])
    activations = simulate(network, average_rounding=False)
    program = encode(network, place(network, PlaceOptions()), activations, EncodeOptions())
    (output,) = library_of(network, program, ProjectOptions("net", "net")).outputs
    assert (output.bits, output.group, output.unit) == (32, 4, f"{2.0**-10!r}f")


@pytest.mark.parametrize(
    "options",
    [{"energy": True}, {"riscv": True}, {"unload": False}, {"api_filename": "none"},
     {"one_shot": True}, {"snoop_loop": True}],
    ids=str,
)  # fmt: skip
def test_what_a_library_does_not_have_is_refused(options: dict[str, Any]) -> None:
    assert "E092" in {d.code for d in check_options(ProjectOptions("net", "net", **options))}
    assert "E092" not in {d.code for d in check_options(ProjectOptions("net", **options))}
