"""Networks that once drew a false finding or a wrong word; each test of random networks has them.

Whatever `make properties` finds is added here, so that the default tests try it every time.
"""

from __future__ import annotations

import numpy as np

from ai8xtools.synthesis.layout import InputPort
from device import MAX78000, MAX78002
from tests.synthesis.networks import sample
from tests.synthesis.random_memory import INPUT
from tests.synthesis.random_networks import RandomNetwork


def _weights(*shape: int) -> np.ndarray:
    return np.random.default_rng(1).integers(-128, 128, shape)


UNEVEN_LAST_PASS = RandomNetwork(
    chip=MAX78000,
    layers=(
        {
            "op": "none",
            "processors": 0x1,
            "output_processors": 0x1,
            "streaming": True,
            "out_offset": 0,
        },
        {
            "op": "Linear",
            "flatten": True,
            "processors": 0x1,
            "out_offset": 0x800,
            "activate": "none",
            "quantization": 8,
            "output_shift": -2,
            "output_processors": 0xFFFFFFFFF0,
        },
    ),
    others={},
    sources=((INPUT,), (0,)),
    weights_of=(None, 0),
    data=sample(1, 6, 6),
    kernels=(_weights(65, 36),),
    biases=(_weights(65),),
    port=InputPort.FIFO,
    rounding=False,
)
"""65 outputs in passes of 36 and 29: seven kernels less than two whole passes have."""

SKIPPED_PIXELS = RandomNetwork(
    chip=MAX78002,
    layers=(
        {
            "op": "Conv2d",
            "kernel_size": "1x1",
            "pad": 0,
            "max_pool": 1,
            "pool_stride": 2,
            "processors": 0x1,
            "output_processors": 0xFFFFFFFFF,
            "out_offset": 0,
            "activate": "none",
            "quantization": 8,
            "output_shift": 1,
        },
        {
            "op": "Conv2d",
            "kernel_size": "1x1",
            "pad": 0,
            "max_pool": 1,
            "pool_stride": 2,
            "processors": 0xFFFFFFFFF,
            "output_processors": 0x1,
            "out_offset": 0x10,
            "activate": "none",
            "quantization": 8,
            "output_shift": -2,
        },
    ),
    others={},
    sources=((INPUT,), (0,)),
    weights_of=(0, 1),
    data=sample(1, 3, 2),
    kernels=(_weights(65, 1, 1, 1), _weights(1, 65, 1, 1)),
    biases=(_weights(65), _weights(1)),
    port=InputPort.FIFO,
    rounding=False,
)
"""A stride skips a pixel of the image; what is left is a single one, as in a flattened image."""

BIAS_IN_FRONT_OF_A_STREAM = RandomNetwork(
    chip=MAX78000,
    layers=(
        {
            "op": "Conv2d",
            "kernel_size": "1x1",
            "pad": 0,
            "processors": 0x1,
            "output_processors": 0x3,
            "out_offset": 0,
            "streaming": True,
            "activate": "none",
            "quantization": 4,
            "output_shift": 1,
        },
        {
            "op": "Conv2d",
            "kernel_size": "1x1",
            "pad": 0,
            "processors": 0x3,
            "output_processors": 0x1,
            "out_offset": 0x800,
            "activate": "none",
            "quantization": 8,
        },
    ),
    others={},
    sources=((INPUT,), (0,)),
    weights_of=(0, 1),
    data=sample(1, 6, 6),
    kernels=(_weights(2, 1, 1, 1) // 16, _weights(1, 2, 1, 1)),
    biases=(_weights(2) // 16, _weights(1) * 0),
    port=InputPort.FIFO,
    rounding=False,
)
"""The bias that the first streaming layer skips looks like one of the layer behind it."""

DILATED_SINGLE_COLUMN = RandomNetwork(
    chip=MAX78002,
    layers=(
        {
            "op": "Conv2d",
            "kernel_size": "1x1",
            "pad": 0,
            "bypass": True,
            "max_pool": 1,
            "pool_stride": 1,
            "pool_dilation": [1, 2],
            "processors": 0x1,
            "out_offset": 0x8,
            "activate": "none",
            "output_shift": 8,
        },
    ),
    others={},
    sources=((INPUT,),),
    weights_of=(None,),
    data=sample(1, 1, 2),
    kernels=(),
    biases=(),
    port=InputPort.MEMORY,
    rounding=False,
)
"""A window of one column is as wide with dilation as without."""

_POINTWISE = {
    "op": "Conv2d", "kernel_size": "1x1", "pad": 0, "activate": "none", "quantization": 8,
}  # fmt: skip
PADDED_BIASES = RandomNetwork(
    chip=MAX78002,
    layers=(
        {
            **_POINTWISE,
            "processors": 0x3,
            "output_processors": 0x1,
            "out_offset": 0,
            "streaming": True,
        },
        {
            **_POINTWISE,
            "processors": 0x1,
            "output_processors": 0x1,
            "out_offset": 0x800,
            "output_shift": 1,
            "streaming": True,
        },
        {
            **_POINTWISE,
            "processors": 0x1,
            "output_processors": 0x6,
            "out_offset": 0,
            "output_shift": 1,
            "streaming": True,
        },
        {
            **_POINTWISE,
            "processors": 0x6,
            "output_processors": 0x30000,
            "out_offset": 0x800,
            "output_shift": 1,
            "groups": 2,
        },
        {
            **_POINTWISE,
            "processors": 0x30000,
            "output_processors": 0x30000,
            "out_offset": 0,
            "output_shift": 1,
            "groups": 2,
        },
    ),
    others={},
    sources=((INPUT,), (0,), (1,), (2,), (3,)),
    weights_of=(0, 1, 2, 3, 4),
    data=sample(2, 6, 6),
    kernels=(
        _weights(1, 2, 1, 1),
        _weights(1, 1, 1, 1),
        _weights(2, 1, 1, 1),
        _weights(2, 1, 1, 1),
        _weights(2, 1, 1, 1),
    ),
    biases=(_weights(1) * 0, _weights(1) * 0, _weights(2) * 0, _weights(2) * 0, _weights(2)),
    port=InputPort.FIFO,
    rounding=False,
)
"""Zeros between the biases of a depth-wise layer are as many as another layer has outputs."""

FILLED_BINARY_PASS = RandomNetwork(
    chip=MAX78002,
    layers=(
        {
            **_POINTWISE,
            "quantization": "bin",
            "processors": 0x1,
            "output_processors": 0xFFFFFFFFF,
            "out_offset": 0x4,
            "output_shift": 1,
            "write_gap": 1,
        },
        {
            **_POINTWISE,
            "processors": 0x1,
            "in_sequences": "input",
            "in_offset": 0,
            "output_processors": 0xFFFFFFFFF,
            "out_offset": 0x8,
            "output_shift": 1,
            "write_gap": 1,
        },
        {
            **_POINTWISE,
            "processors": 0xFFFFFFFFF,
            "in_sequences": [0, 1],
            "in_offset": 0x4,
            "eltwise": "add",
            "out_offset": 0,
            "output_shift": -2,
        },
    ),
    others={},
    sources=((INPUT,), (INPUT,), (0, 1)),
    weights_of=(0, 1, 2),
    data=sample(1, 1, 1),
    kernels=(
        np.where(_weights(65, 1, 1, 1) < 0, -1, 1),
        _weights(65, 1, 1, 1),
        _weights(1, 65, 1, 1),
    ),
    biases=(_weights(65), _weights(65), _weights(1) * 0),
    port=InputPort.MEMORY,
    rounding=False,
)
"""Binary kernels of 65 outputs in passes of 36: what fills the last byte looks like kernels."""

RESET_IN_PLACE = RandomNetwork(
    chip=MAX78002,
    layers=(
        {
            **_POINTWISE,
            "max_pool": 1,
            "pool_stride": 2,
            "processors": 0x1,
            "output_processors": 0xFFFFFFFFF0000,
            "out_offset": 0,
            "output_shift": 1,
        },
        {
            **_POINTWISE,
            "avg_pool": 1,
            "pool_stride": 1,
            "groups": 65,
            "processors": 0xFFFFFFFFF0000,
            "output_processors": 0xFFFFFFFFF,
            "out_offset": 0x10,
            "output_shift": 1,
        },
    ),
    others={},
    sources=((INPUT,), (0,)),
    weights_of=(0, 1),
    data=sample(1, 2, 3),
    kernels=(_weights(65, 1, 1, 1), _weights(65, 1, 1, 1)),
    biases=(_weights(65), _weights(65) * 0),
    port=InputPort.MEMORY,
    rounding=False,
)
"""The layer that resets average pooling reads and writes the same word."""

FILLED_BINARY_CHANNELS = RandomNetwork(
    chip=MAX78002,
    layers=(
        {
            **_POINTWISE,
            "processors": 0x1,
            "output_processors": 0xFFFFFFFFFFFFF0,
            "out_offset": 0,
            "output_shift": 1,
        },
        {
            **_POINTWISE,
            "quantization": "bin",
            "groups": 200,
            "processors": 0xFFFFFFFFFFFFF0,
            "output_processors": 0xFFFFFFFFFFFFF0,
            "out_offset": 0x10,
            "output_shift": 1,
        },
    ),
    others={},
    sources=((INPUT,), (0,)),
    weights_of=(0, 1),
    data=sample(1, 1),
    kernels=(_weights(200, 1, 1, 1), np.where(_weights(200, 1, 1, 1) < 0, -1, 1)),
    biases=(_weights(200), _weights(200)),
    port=InputPort.FIFO,
    rounding=False,
)
"""The same in a depth-wise layer, where each processor has a byte of its own to fill."""

ROWS_BELOW_THE_LAST_STEP = RandomNetwork(
    chip=MAX78002,
    layers=(
        {
            **_POINTWISE,
            "processors": 0x1,
            "pool_stride": 2,
            "out_offset": 0,
            "quantization": 4,
            "output_shift": 1,
        },
    ),
    others={},
    sources=((INPUT,),),
    weights_of=(0,),
    data=sample(1, 2, 1),
    kernels=(_weights(1, 1, 1, 1) // 16,),
    biases=(_weights(1) * 0,),
    port=InputPort.FIFO,
    rounding=False,
)
"""The FIFO delivers a row that no window reads, which the registers do not tell."""

FILLED_BINARY_PASSES = RandomNetwork(
    chip=MAX78002,
    layers=(
        {
            **_POINTWISE,
            "quantization": "bin",
            "processors": 0x1,
            "out_offset": 0x4,
            "output_shift": 1,
        },
    ),
    others={},
    sources=((INPUT,),),
    weights_of=(0,),
    data=sample(1, 1, 1),
    kernels=(np.where(_weights(200, 1, 1, 1) < 0, -1, 1),),
    biases=(_weights(200),),
    port=InputPort.MEMORY,
    rounding=False,
)
"""200 outputs in passes of 52: eight kernels are missing in the last one."""

SINGLE_COLUMN_OF_A_STREAM = RandomNetwork(
    chip=MAX78002,
    layers=tuple(
        {
            **_POINTWISE,
            "quantization": 8,
            "max_pool": 1,
            "pool_stride": stride,
            "processors": 0x1,
            "output_processors": 0x1,
            "out_offset": 0x800 * (index + 1),
            "output_shift": 1,
            "streaming": True,
        }
        for index, stride in enumerate((3, 3, 2))
    ),
    others={},
    sources=((INPUT,), (0,), (1,)),
    weights_of=(0, 1, 2),
    data=sample(1, 6, 6),
    kernels=(_weights(1, 1, 1, 1),) * 3,
    biases=(_weights(1),) * 3,
    port=InputPort.FIFO,
    rounding=False,
)
"""The third layer has an image of one pixel: a stride of two, but not from column to column."""

FLATTENED_SERIES = RandomNetwork(
    chip=MAX78002,
    layers=(
        {
            "op": "Conv1d",
            "kernel_size": 2,
            "pad": 0,
            "dilation": 12,
            "activate": "none",
            "quantization": 8,
            "processors": 0x1,
            "output_processors": 0x1,
            "out_offset": 0x800,
            "output_shift": 1,
        },
        {
            "op": "Linear",
            "flatten": True,
            "activate": "none",
            "quantization": 8,
            "processors": 0x1,
            "output_processors": 0x1,
            "out_offset": 0x0,
            "output_shift": -2,
        },
    ),
    others={},
    sources=((INPUT,), (0,)),
    weights_of=(0, 1),
    data=sample(1, 20),
    kernels=(_weights(1, 1, 2), _weights(1, 8)),
    biases=(_weights(1), _weights(1)),
    port=InputPort.MEMORY,
    rounding=False,
)
"""A dilated series is computed as an image with surplus words, which the next layer leaves out."""

COUNTEREXAMPLES = (
    UNEVEN_LAST_PASS,
    SKIPPED_PIXELS,
    BIAS_IN_FRONT_OF_A_STREAM,
    DILATED_SINGLE_COLUMN,
    PADDED_BIASES,
    FILLED_BINARY_PASS,
    RESET_IN_PLACE,
    FILLED_BINARY_CHANNELS,
    ROWS_BELOW_THE_LAST_STEP,
    FILLED_BINARY_PASSES,
    SINGLE_COLUMN_OF_A_STREAM,
    FLATTENED_SERIES,
)
