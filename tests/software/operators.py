"""Small networks that together use every operator and key without the accelerator.

Nothing is placed. Each comes with the shapes of its sample and weights; `network_of` makes weights
and biases of random numbers.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from ai8xtools.checkpoint import Checkpoint
from ai8xtools.diagnostics import refuse_errors
from ai8xtools.synthesis.network import Network
from ai8xtools.synthesis.options import ResolveOptions
from ai8xtools.synthesis.understand import understand
from ai8xtools.values import frozen

Shape = tuple[int, ...]


@frozen
class Small:
    """A network: layers as text (YAML), the shape of its sample, and of its weights.

    With the weights' shapes, as a checkpoint has them, stand their bits and the output channels.
    """

    layers: str
    sample: Shape
    weights: tuple[tuple[Shape, int, int], ...] = ()
    more: str = ""
    options: tuple[str, ...] = ()


def _w(*shape: int, bits: int = 8, outputs: int | None = None) -> tuple[Shape, int, int]:
    return shape, bits, shape[0] if outputs is None else outputs


def _t(inputs: int, outputs: int, groups: int = 1) -> tuple[Shape, int, int]:
    """Weights of a transposed convolution."""
    return _w(inputs, outputs // groups, 3, 3, outputs=outputs)


NETWORKS = {
    "conv1d, dilated": Small(
        """
- {op: conv1d, kernel_size: 3, dilation: 4, pad: 2, activate: ReLU}
- {op: conv1d, kernel_size: 9, pad: 0, activate: Abs, max_pool: 2, pool_stride: 2}
- {op: linear, flatten: true, output_width: 32}
""",
        (3, 41), (_w(7, 3, 3), _w(5, 7, 9), _w(4, 50)),
    ),
    "conv1d, lengths 1 to 8": Small(
        """
- {op: conv1d, kernel_size: 8, pad: 2, activate: ReLU}
- {op: conv1d, kernel_size: 1, pad: 0, activate: ReLU, avg_pool: 3, pool_stride: 2}
- {op: conv1d, kernel_size: 5, pad: 1, activate: none}
""",
        (1, 30), (_w(9, 1, 8), _w(3, 9, 1), _w(6, 3, 5)),
    ),
    "a row": Small(
        """
- {op: conv2d, kernel_size: 3x3, pad: 1, activate: ReLU}
- {op: conv2d, kernel_size: 1x1, pad: 0, max_pool: [1, 2], pool_stride: [1, 2], activate: Abs}
- {op: conv2d, kernel_size: 3x3, pad: 2, activate: none}
""",
        (5, 1, 23), (_w(6, 5, 3, 3), _w(4, 6, 1, 1), _w(3, 4, 3, 3)),
    ),
    "a column": Small(
        """
- {op: conv2d, kernel_size: 3x3, pad: 1, activate: ReLU}
- {op: conv2d, pad: 1, avg_pool: [3, 1], pool_stride: [2, 1], activate: none}
""",
        (5, 23, 1), (_w(6, 5, 3, 3), _w(7, 6, 3, 3)),
    ),
    "a pixel": Small(
        """
- {op: conv2d, kernel_size: 3x3, pad: 2, activate: ReLU}
- {op: conv2d, kernel_size: 3x3, pad: 0, activate: none}
- {op: linear, output_width: 32}
""",
        (1, 1, 1), (_w(1, 1, 3, 3), _w(2, 1, 3, 3), _w(3, 2)),
    ),
    "one channel": Small(
        """
- {op: conv2d, activate: ReLU}
- {op: conv2d, activate: Abs, max_pool: 2, pool_stride: 2}
- {op: conv2d, kernel_size: 1x1, pad: 0, activate: none}
""",
        (1, 11, 7), (_w(1, 1, 3, 3), _w(1, 1, 3, 3), _w(1, 1, 1, 1)),
    ),
    "2048 channels": Small(
        """
- {op: conv2d, kernel_size: 1x1, pad: 0, activate: ReLU}
- {op: conv2d, kernel_size: 1x1, pad: 0, activate: none, output_shift: -4}
- {op: linear, flatten: true, output_width: 32}
""",
        (4, 2, 3), (_w(2048, 4, 1, 1), _w(5, 2048, 1, 1), _w(3, 30)),
    ),
    "16 operands": Small(
        """
- {name: a, op: conv2d, activate: none}
- {name: b, in_sequences: input, op: conv2d, activate: ReLU}
- {name: sum, op: add, operands: 16, output: true,
   in_sequences: [a, b, a, b, a, a, a, b, b, b, a, b, a, b, a, b]}
- {name: both, op: conv2d, kernel_size: 1x1, pad: 0, eltwise: sub, operands: 16,
   in_sequences: [sum, b, a, b, sum, b, a, b, a, b, a, b, a, b, a, b], activate: none,
   output: true}
""",
        (3, 5, 6), (_w(4, 3, 3, 3), _w(4, 3, 3, 3), _w(5, 4, 1, 1)),
    ),
    "or, xor": Small(
        """
- {name: a, op: conv2d, activate: none}
- {name: b, in_sequences: input, op: conv2d, activate: none}
- {name: c, op: or, operands: 3, in_sequences: [a, b, input]}
- {name: d, op: xor, in_sequences: [c, a], max_pool: 2, pool_stride: 2, pool_first: false}
- {name: e, op: or, in_sequences: [d, d]}
- {op: conv2d, kernel_size: 1x1, pad: 0, activate: none}
""",
        (4, 6, 5), (_w(4, 4, 3, 3), _w(4, 4, 3, 3), _w(2, 4, 1, 1)),
    ),
    "pooled before and after combining": Small(
        """
- {name: a, op: conv2d, activate: none}
- {name: b, op: conv2d, in_sequences: [a, input], eltwise: add, avg_pool: 2, pool_stride: 2,
   pool_first: true, activate: none}
- {name: c, op: conv2d, in_sequences: [a, input], eltwise: sub, avg_pool: [2, 3],
   pool_stride: [2, 2], pool_first: false, activate: ReLU, kernel_size: 1x1, pad: 0}
""",
        (4, 8, 7), (_w(4, 4, 3, 3), _w(3, 4, 3, 3), _w(2, 4, 1, 1)), "",
    ),
    "groups": Small(
        """
- {op: conv2d, groups: 6, activate: ReLU}
- {op: conv2d, groups: 6, max_pool: 2, pool_stride: 2, kernel_size: 1x1, pad: 0, activate: Abs}
- {op: conv2d, groups: 3, activate: none}
""",
        (6, 9, 8), (_w(6, 1, 3, 3), _w(6, 1, 1, 1), _w(9, 2, 3, 3)),
    ),
    "depthwise, series": Small(
        """
- {op: conv1d, groups: 9, kernel_size: 5, pad: 2, activate: ReLU}
- {op: conv1d, groups: 9, kernel_size: 3, pad: 1, dilation: 2, activate: none}
""",
        (9, 14), (_w(9, 1, 5), _w(9, 1, 3)),
    ),
    "transposed": Small(
        """
- {op: convtranspose2d, pad: 1, activate: ReLU}
- {op: convtranspose2d, pad: 0, max_pool: 2, pool_stride: 2, activate: Abs}
- {op: convtranspose2d, pad: 1, activate: none}
""",
        (3, 3, 4), (_t(3, 5), _t(5, 4), _t(4, 2)),
    ),
    "transposed, of a pixel": Small(
        """
- {op: convtranspose2d, pad: 0, activate: ReLU}
- {op: convtranspose2d, pad: 2, activate: none}
""",
        (2, 1, 1), (_t(2, 3), _t(3, 3)),
    ),
    "transposed, depthwise": Small(
        """
- {op: convtranspose2d, groups: 4, pad: 1, activate: ReLU}
- {op: conv2d, kernel_size: 1x1, pad: 0, activate: none}
""",
        (4, 3, 3), (_t(4, 4, groups=4), _w(2, 4, 1, 1)),
    ),
    "32 bits": Small(
        """
- {op: conv2d, activate: ReLU}
- {op: conv2d, output_width: 32, activate: none}
""",
        (3, 5, 5), (_w(4, 3, 3, 3), _w(3, 4, 3, 3)),
    ),
    "several outputs": Small(
        """
- {name: a, op: conv2d, activate: ReLU, output: true}
- {name: b, op: conv2d, kernel_size: 1x1, pad: 0, activate: none, output: true}
- {name: c, op: linear, flatten: true, output_width: 32, output: true}
""",
        (3, 3, 5), (_w(3, 3, 3, 3), _w(1, 3, 1, 1), _w(3, 15)),
    ),
    "rolling buffer": Small(
        """
- {name: frame, op: conv2d, activate: ReLU}
- {name: shift, op: passthrough, in_sequences: ring, buffer_shift: 1, in_channels: 4, in_dim: 3}
- {name: insert, in_sequences: frame, op: conv2d, pad: 0, buffer_insert: 1, activate: ReLU}
- {name: read, in_sequences: ring, op: conv1d, kernel_size: 3, pad: 0, in_channels: 4, in_dim: 4,
   activate: none}
""",
        (4, 3, 3), (_w(4, 4, 3, 3), _w(4, 4, 3, 3), _w(4, 4, 3)),
        "data_buffer:\n- {name: ring, dim: 4, channels: 4, processors: 0xf0, offset: 0x3000}\n",
    ),
    "order of its own": Small(
        """
- {name: a, op: conv2d, activate: none, next_sequence: c}
- {name: b, op: conv2d, in_sequences: c, kernel_size: 1x1, pad: 0, activate: none,
   next_sequence: stop}
- {name: c, op: conv2d, in_sequences: a, activate: ReLU, next_sequence: b}
""",
        (3, 4, 5), (_w(4, 3, 3, 3), _w(2, 5, 1, 1), _w(5, 4, 3, 3)),
    ),
    "concatenation": Small(
        """
- {name: a, op: conv2d, activate: ReLU}
- {name: b, op: conv2d, in_sequences: input, activate: none}
- {name: c, op: conv2d, in_sequences: [a, b, input], max_pool: 2, pool_stride: 1, activate: Abs}
- {name: d, op: passthrough, in_sequences: [c, c]}
- {name: e, op: conv2d, kernel_size: 1x1, pad: 0, in_sequences: [d, c], activate: none}
""",
        (2, 5, 6), (_w(3, 2, 3, 3), _w(5, 2, 3, 3), _w(4, 10, 3, 3), _w(3, 12, 1, 1)),
    ),
    "crop": Small(
        """
- {op: conv1d, kernel_size: 3, pad: 1, activate: ReLU}
- {op: conv1d, kernel_size: 3, pad: 1, in_crop: [3, 2], activate: none}
- {op: conv1d, kernel_size: 1, pad: 0, in_crop: [0, 4], max_pool: 2, pool_stride: 2, activate: Abs}
""",
        (5, 17), (_w(4, 5, 3), _w(6, 4, 3), _w(2, 6, 1)),
    ),
    "pooled and flattened": Small(
        """
- {op: conv2d, activate: ReLU}
- {op: linear, flatten: true, avg_pool: [3, 2], pool_stride: [3, 2], activate: Abs}
- {op: linear, activate: none}
""",
        (3, 6, 4), (_w(4, 3, 3, 3), _w(5, 16), _w(3, 5)),
    ),
    "bypass": Small(
        """
- {op: conv2d, activate: ReLU}
- {op: conv2d, groups: 4, bypass: true, in_channels: 4, activate: none}
- {op: conv2d, kernel_size: 1x1, pad: 0, activate: none}
""",
        (3, 5, 5), (_w(4, 3, 3, 3), _w(2, 4, 1, 1)),
    ),
    "pooling of every kind": Small(
        """
- {op: passthrough, max_pool: [3, 2], pool_stride: [1, 2]}
- {op: conv2d, avg_pool: [1, 3], pool_stride: [2, 1], activate: none}
- {op: passthrough, max_pool: 2, pool_stride: 1, pool_dilation: [2, 2]}
- {op: passthrough, pool_stride: [2, 2]}
- {op: conv2d, kernel_size: 1x1, pad: 0, avg_pool: [2, 1], pool_stride: [3, 1], activate: none}
""",
        (3, 17, 19), (_w(5, 3, 3, 3), _w(2, 5, 1, 1)),
    ),
    "average of 16x16": Small(
        """
- {op: conv2d, kernel_size: 1x1, pad: 0, activate: none}
- {op: conv2d, avg_pool: 16, pool_stride: 16, kernel_size: 1x1, pad: 0, activate: none}
""",
        (2, 17, 18), (_w(3, 2, 1, 1), _w(2, 3, 1, 1)),
    ),
    "narrow weights": Small(
        """
- {op: conv2d, quantization: 4, activate: ReLU}
- {op: conv2d, quantization: 2, activate: ReLU}
- {op: conv2d, quantization: 1, activate: none}
- {op: conv2d, quantization: 4, kernel_size: 1x1, pad: 0, activate: Abs, output_shift: 3}
- {op: linear, flatten: true, quantization: 2, output_width: 32}
""",
        (3, 5, 6),
        (_w(8, 3, 3, 3, bits=4), _w(9, 8, 3, 3, bits=2), _w(5, 9, 3, 3, bits=1),
         _w(4, 5, 1, 1, bits=4), _w(3, 120, bits=2)),
    ),
    "shifts": Small(
        """
- {op: conv2d, output_shift: 15, activate: none}
- {op: conv2d, output_shift: -15, activate: none}
- {op: conv2d, output_shift: 8, activate: Abs, kernel_size: 1x1, pad: 0}
- {op: conv2d, output_shift: 7, activate: none, kernel_size: 1x1, pad: 0}
- {op: conv2d, output_shift: -7, activate: ReLU}
""",
        (2, 5, 5),
        (_w(3, 2, 3, 3), _w(3, 3, 3, 3), _w(3, 3, 1, 1), _w(4, 3, 1, 1), _w(4, 4, 3, 3)),
    ),
    "weights twice, copied, zero": Small(
        """
- {name: a, op: conv2d, activate: ReLU}
- {name: b, op: conv2d, weight_source: a, activate: none}
- {name: c, op: conv2d, zero_outputs: 2, activate: none}
- {name: d, op: conv2d, kernel_size: 1x1, pad: 0, copy_channels: [1, 3], activate: none}
""",
        (4, 5, 4), (_w(4, 4, 3, 3), _w(3, 4, 3, 3)),
    ),
    "series to image and back": Small(
        """
- {op: conv1d, kernel_size: 3, pad: 1, activate: ReLU}
- {op: conv2d, in_dim: [4, 6], activate: none}
- {op: conv1d, in_dim: 24, kernel_size: 4, pad: 1, activate: none}
""",
        (2, 24), (_w(4, 2, 3), _w(3, 4, 3, 3), _w(2, 3, 4)),
    ),
    "residual": Small(
        """
- {name: lift, op: conv2d, activate: ReLU}
- {name: shortcut, op: passthrough}
- {name: body, op: conv2d, in_sequences: lift, activate: ReLU}
- {name: join, op: conv2d, in_sequences: [shortcut, body], eltwise: add, activate: ReLU}
- {name: head, op: conv2d, avg_pool: 4, pool_stride: 4, kernel_size: 1x1, pad: 0, activate: none}
""",
        (3, 9, 8), (_w(5, 3, 3, 3), _w(5, 5, 3, 3), _w(4, 5, 3, 3), _w(2, 4, 1, 1)),
    ),
    "strides": Small(
        """
- {op: conv2d, kernel_size: 5x3, stride: [2, 3], pad: [2, 0], activate: ReLU}
- {op: conv2d, kernel_size: 1x1, stride: 2, pad: 0, activate: none}
- {op: conv2d, kernel_size: 2x4, stride: [1, 2], pad: [1, 1], activate: Abs, max_pool: 2,
   pool_stride: [1, 1]}
""",
        (3, 17, 31), (_w(4, 3, 5, 3), _w(5, 4, 1, 1), _w(6, 5, 2, 4)),
    ),
    "strides, series": Small(
        """
- {op: conv1d, kernel_size: 10, stride: 4, pad: 4, activate: ReLU}
- {op: conv1d, kernel_size: 3, stride: 2, pad: 1, dilation: 3, activate: none}
""",
        (2, 59), (_w(8, 2, 10), _w(3, 8, 3)),
    ),
    "strides, depthwise": Small(
        """
- {op: conv2d, kernel_size: 3x3, stride: 2, pad: 1, groups: 8, activate: ReLU}
- {op: conv2d, kernel_size: 4x4, stride: 3, pad: 2, groups: 8, activate: none}
- {op: conv2d, kernel_size: 3x3, stride: 2, pad: 1, groups: 2, activate: none}
""",
        (8, 15, 14), (_w(8, 1, 3, 3), _w(8, 1, 4, 4), _w(6, 4, 3, 3)),
    ),
    "stride, then fused pooling": Small(
        """
- {op: conv2d, kernel_size: 3x3, stride: 2, pad: 1, activate: ReLU}
- {op: conv2d, kernel_size: 3x3, max_pool: 2, pool_stride: 2, activate: none, stride: [2, 1]}
- {op: conv2d, kernel_size: 1x1, pad: 0, avg_pool: [2, 2], pool_stride: [2, 2], activate: none}
""",
        (4, 26, 23), (_w(4, 4, 3, 3), _w(5, 4, 3, 3), _w(2, 5, 1, 1)),
    ),
    "windows beyond 16": Small(
        """
- {op: conv2d, kernel_size: 7x9, pad: [3, 4], activate: none}
- {op: conv2d, kernel_size: 1x1, pad: 0, avg_pool: [20, 17], pool_stride: [20, 17],
   activate: none}
""",
        (1, 20, 35), (_w(3, 1, 7, 9), _w(4, 3, 1, 1)),
    ),
    "only passed on": Small("\n- {op: passthrough}\n", (3, 4, 5)),
    "only pooled": Small("\n- {op: passthrough, max_pool: 2, pool_stride: 2}\n", (65, 5, 5)),
    "linear of a vector": Small(
        """
- {op: linear, activate: ReLU}
- {op: linear, activate: none}
- {op: linear, output_width: 32}
""",
        (37, 1, 1), (_w(33, 37), _w(1, 33), _w(2, 1)),
    ),
    "some channels": Small(
        """
- {name: a, op: conv2d, activate: ReLU}
- {name: b, op: conv2d, in_channels: 2, in_channel_skip: 3, in_sequences: a, activate: none}
- {name: c, op: conv2d, in_sequences: [a, b], activate: none}
""",
        (3, 4, 4), (_w(6, 3, 3, 3), _w(3, 2, 3, 3), _w(2, 9, 3, 3)),
        options=("reshape_inputs",),
    ),
}  # fmt: skip


def network_of(small: Small, seed: int = 0) -> Network:
    """Return a network with random weights, biases and sample; extreme ones are among them."""
    rng = np.random.default_rng(seed)
    state = {}
    for number, (shape, bits, outputs) in enumerate(small.weights):
        low, high = -(1 << bits - 1), max((1 << bits - 1) - 1, 0)
        weights = rng.integers(low, high + 1, shape)
        if seed % 2:
            weights = np.where(rng.random(shape) < 0.5, weights, np.where(weights < 0, low, high))
        bias = rng.integers(-128, 128, outputs)
        state[f"layer{number}.op.weight"] = weights.astype(np.float32)
        state[f"layer{number}.op.bias"] = bias.astype(np.float32) * 128 / (1 << 8 - bits)
        state[f"layer{number}.weight_bits"] = np.array([bits])
    tensors = Checkpoint({"epoch": 0, "arch": "small", "extras": {}, "state_dict": state})
    text = f"arch: small\ndataset: small\n{small.more}layers:{small.layers}"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "small.yaml"
        file.write_text(text)
        sample = Path(folder) / "sample.npy"
        np.save(sample, rng.integers(-128, 128, small.sample))
        resolving = ResolveOptions(
            checkpoint_file="small.pth.tar", tensors=tensors,
            sample_input=str(sample), **dict.fromkeys(small.options, True),
        )  # fmt: skip
        network, _, found = understand(str(file), None, resolving)
    refuse_errors(found)
    return network
