"""What --display-checkpoint prints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from ai8xtools.commands.loader.arguments import parse
from ai8xtools.commands.loader.create import create_project
from ai8xtools.synthesis.parse import parse_file
from ai8xtools.synthesis.resolve.table import checkpoint_table, tensor_table
from ai8xtools.synthesis.resolve.tensors import LayerTensors
from device import MAX78000
from tests.synthesis.networks import describe, files, mask, sample, weights

CONV: dict[str, Any] = {"processors": 7, "op": "Conv2d", "pad": 1, "activate": "ReLU"}


def network(folder: Path) -> dict[str, str]:
    """Write description, checkpoint and sample; return the options that name them."""
    text = describe(
        {**CONV, "name": "stem"},
        {"processors": 15, "op": "Passthrough", "max_pool": 2, "pool_stride": 2},
        {**CONV, "processors": 15, "quantization": 2},
        {**CONV, "processors": 15, "weight_source": 2, "quantization": 2},
        {"processors": mask(4), "op": "Linear", "flatten": True, "activate": "none"},
        arch="tinynet",
    )
    (folder / "net.yaml").write_text(text)
    bias = np.array([-16000, 300, 2, 16383])
    state = {
        "a.op.weight": weights(4, 3, 3, 3),
        "a.op.bias": bias,
        "a.output_shift": [-1],
        "b.op.weight": weights(4, 4, 3, 3, bits=2),
        "fc.op.weight": weights(5, 4 * 2 * 2),
    }
    tensors = {k: torch.as_tensor(np.asarray(v), dtype=torch.float32) for k, v in state.items()}
    path = str(folder / "net.pth.tar")
    torch.save({"epoch": 1, "arch": "tinynet", "state_dict": tensors}, path)
    found = files(folder, sample(3, 4, 4), checkpoint_file=path)
    return {
        "--config-file": str(folder / "net.yaml"),
        "--checkpoint-file": path,
        "--sample-input": str(found.sample_input),
    }


TABLE = """\
   layer    in    out     shape    bits    shift    min    max    bytes  weights         bias min    bias max  bias
--------  ----  -----  --------  ------  -------  -----  -----  -------  ------------  ----------  ----------  ---------
0 (stem)     3      4   4x3x3x3       8       -1   -128    123      108  a.op.weight         -125         127  a.op.bias
       2     4      4   4x4x3x3       2        0     -2      1       36  b.op.weight
       4    16      5  5x16x1x1       8        0   -128    123       80  fc.op.weight
3 layers, 332 weights in 224 bytes, 4 bias bytes"""  # noqa: E501 - as wide as a terminal shows it


def test_names_of_tensors_are_shown_as_they_are(tmp_path: Path) -> None:
    """Exported networks number their tensors: 1.10 is not 1.1."""
    description = parse_file(tmp_path / "net.yaml") if network(tmp_path) else None
    assert description is not None
    ones = np.ones((4, 3, 3, 3), np.int64)
    tensors = {0: LayerTensors(ones, None, 8, 0, "1.10"), 2: LayerTensors(ones, None, 8, 0, "2e3")}
    shown = tensor_table(description, tensors).split()
    assert {"1.10", "2e3"} <= set(shown)


def test_table_has_a_row_for_each_layer_with_tensors_of_its_own(tmp_path: Path) -> None:
    found = network(tmp_path)
    options = files(tmp_path, sample(3, 4, 4), checkpoint_file=found["--checkpoint-file"])
    table = checkpoint_table(found["--config-file"], MAX78000, options)
    assert [line.rstrip() for line in table.splitlines()] == TABLE.splitlines()


def test_option_prints_the_table_before_anything_is_made(tmp_path: Path, capsys: Any) -> None:
    parts = [part for pair in network(tmp_path).items() for part in pair]
    common = ["--device", "MAX78000", "--prefix", "net", "--test-dir", str(tmp_path / "out")]
    options = parse([*common, *parts, "--display-checkpoint", "--no-log"])
    assert create_project(options) == 0
    first, *_, last = capsys.readouterr().out.splitlines()
    assert first.split()[:3] == ["layer", "in", "out"]
    assert last.startswith("Wrote ")
