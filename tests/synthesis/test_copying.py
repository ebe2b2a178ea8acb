"""Layers of the vendor's descriptions that copy a map, without weights in a fresh checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ai8xtools.diagnostics import DiagnosticError
from ai8xtools.synthesis.network import Network
from ai8xtools.synthesis.simulate import simulate
from tests.synthesis.networks import describe, mask, sample, weights
from tests.synthesis.test_resolve import CONV, from_checkpoint

COPY: dict[str, Any] = {
    **CONV, "processors": mask(4), "output_processors": mask(4), "kernel_size": "1x1", "pad": 0,
    "activate": "None", "in_sequences": [0], "out_offset": 0x1004, "write_gap": 1,
}  # fmt: skip
DEEPER = {
    **CONV, "processors": mask(4), "output_processors": mask(4), "in_sequences": [0],
    "out_offset": 0x1000, "write_gap": 1,
}  # fmt: skip
JOINED = {
    **CONV, "processors": mask(4), "output_processors": mask(5), "in_sequences": [2, 1],
    "in_offset": 0x1000, "out_offset": 0x2000,
}  # fmt: skip
FIRST = {**CONV, "output_processors": mask(4), "out_offset": 0x4000}
STATE = {
    "first.op.weight": weights(4, 3, 3, 3),
    "deeper.op.weight": weights(4, 4, 3, 3, seed=3),
    "joined.op.weight": weights(5, 8, 3, 3, seed=4),
}


def resolved(
    folder: Path, copy: dict[str, Any], state: dict[str, Any]
) -> tuple[Network, list[str]]:
    text = describe(FIRST, copy, DEEPER, JOINED, arch="TinyNet")
    network, complaints = from_checkpoint(folder, text, sample(3, 4, 4), state)
    return network.network, [str(complaint) for complaint in complaints]


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_a_layer_without_weights_copies_if_all_others_fit(tmp_path: Path, bits: int) -> None:
    """As with the weights that the vendor's step adds: 64 times an identity, shifted by one."""
    copy = {**COPY, "quantization": bits}
    network, complaints = resolved(tmp_path, copy, STATE)
    outputs = simulate(network, average_rounding=False).outputs
    np.testing.assert_array_equal(outputs[1], outputs[0])
    assert outputs[0].any()
    (told,) = (text for text in complaints if "[N248]" in text)
    assert "layer 1" in told and "has no weights for it; it copies what it reads" in told
    added = np.eye(4)[:, :, None, None] * 2 ** (bits - 2)
    items = list(STATE.items())
    full = dict([*items[:1], ("pt.op.weight", added), *items[1:]])
    full |= {"pt.output_shift": 1.0, "pt.weight_bits": float(bits)}
    same, complaints = resolved(tmp_path, copy, full)
    assert not any("[N248]" in text for text in complaints)
    np.testing.assert_array_equal(simulate(same, average_rounding=False).outputs[3], outputs[3])


@pytest.mark.parametrize("scale", [1, 4, 64, 2])
def test_weights_that_only_copy_are_left_out_if_no_layer_needs_them(
    tmp_path: Path, scale: int
) -> None:
    text = describe(FIRST, {**DEEPER, "in_sequences": None}, arch="TinyNet")
    items = list(STATE.items())[:2]
    added = np.eye(4)[:, :, None, None] * scale
    state = dict([*items[:1], ("pt.op.weight", added), *items[1:]])
    if scale == 2:  # another layer's
        with pytest.raises(DiagnosticError, match="E208"):
            from_checkpoint(tmp_path, text, sample(3, 4, 4), state)
        return
    network, complaints = from_checkpoint(tmp_path, text, sample(3, 4, 4), state)
    np.testing.assert_array_equal(network.layers[1].weights, STATE["deeper.op.weight"])
    assert any("'pt.op.weight' only copies" in str(one) for one in complaints)
    assert "N249" in [one.code for one in complaints]


def test_an_identity_that_a_layer_takes_stays(tmp_path: Path) -> None:
    """Weights behind those of the last layer are not used, as in the vendor's tool."""
    first = {**FIRST, "processors": mask(4), "kernel_size": "1x1", "pad": 0}
    text = describe(first, arch="TinyNet")
    state = {"a.op.weight": np.eye(4)[:, :, None, None] * 64, "b.op.weight": weights(4, 4, 1, 1)}
    network, complaints = from_checkpoint(tmp_path, text, sample(4, 4, 4), state)
    np.testing.assert_array_equal(network.layers[0].weights, state["a.op.weight"])
    assert "N249" not in [one.code for one in complaints]


@pytest.mark.parametrize(
    "changes",
    [
        {"activate": "ReLU"},
        {"output_processors": mask(5)},
        {"output_shift": 1},
        {"kernel_size": "3x3"},
        {"quantization": 1},
        {"in_sequences": None},
    ],
)
def test_other_layers_need_weights(tmp_path: Path, changes: dict[str, Any]) -> None:
    with pytest.raises(DiagnosticError) as caught:
        resolved(tmp_path, {**COPY, **changes}, STATE)
    assert not any("[N248]" in str(one) for one in caught.value.diagnostics)


def test_weights_that_fit_no_layer_are_refused_as_before(tmp_path: Path) -> None:
    state = {**STATE, "joined.op.weight": weights(5, 7, 3, 3, seed=4)}
    with pytest.raises(DiagnosticError) as caught:
        resolved(tmp_path, COPY, state)
    assert {"E208"} <= {one.code for one in caught.value.diagnostics}
