"""The table of weights on the console."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from synthesis.encode.weight_table import weight_table
from tests.synthesis.networks import build, describe, mask, sample


def test_layers_with_weights_have_a_row_each(tmp_path: Path) -> None:
    text = describe(
        {"processors": mask(3), "op": "none", "max_pool": 2, "pool_stride": 2},
        {"processors": mask(3), "op": "conv2d", "kernel_size": "3x3", "pad": 1, "name": "wide"},
    )
    kernels = np.arange(-128, -128 + 54).reshape(2, 3, 3, 3)
    network, _ = build(tmp_path, text, sample(3, 4, 4), [kernels], [np.array([1, 2])])
    assert list(weight_table(network)) == [
        "layer  name  operator  weights  bits  shift  smallest  largest  bias",
        "1      wide  conv2d    2x3x3x3     8      0      -128      -75     2",
    ]
