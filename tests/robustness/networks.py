"""Small legal networks that together use every key and operator of both chips.

They are starting points: mutations of them are legal or nearly so, which is where defects hide.
Their weights are random; nothing here is meant to be useful.
"""

from __future__ import annotations

from dataclasses import dataclass

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SmallNetwork:
    """A description with the shapes of its sample, weights and biases, and options it needs."""

    name: str
    device: str
    text: str
    sample: Shape
    weights: tuple[Shape, ...]
    biases: tuple[Shape, ...] = ()
    options: tuple[str, ...] = ()


CLASSIFIER = """\
# planar input, pooling of both kinds, a flattened layer
arch: test
dataset: small
bias: small
weights: named
output_map: 0x0000.0000.0000.03ff

layers:
  - name: stem
    data_format: CHW
    processors: 0x0000.0000.0000.0001
    op: Conv2d
    kernel_size: 3x3
    pad: 1
    activate: ReLU
    output_processors: 0x0000.0000.0000.0ff0
    out_offset: 0x2000
  - name: down
    max_pool: 2
    pool_stride: 2
    processors: 0x0000.0000.0000.0ff0
    op: Conv2d
    stride: 1
    pad: [1, 1]
    activate: Abs
    quantization: 4
    output_shift: -2
    bias_group: [0, 1]
    output_processors: 0x0000.0000.ffff.0000
    out_offset: 0x0000
  - name: average
    avg_pool: [2, 2]
    pool_stride: [2, 2]
    processors: 0x0000.0000.ffff.0000
    operation: Conv2d
    kernel_size: 1x1
    pad: 0
    quantization: 2
    activation: None
    output_processors: 0x0000.0000.0000.00ff
    out_offset: 0x2000
  - name: classify
    op: Linear
    flatten: true
    processors: 0x0000.0000.0000.00ff
    out_offset: 0x0000
    output_width: 32
"""

RESIDUAL = """\
---
# interleaved input, a residual block, gaps between words
arch: test
dataset: small

layers:
  - name: lift
    data_format: HWC
    processors: 0x0000.0000.0000.0007
    op: conv2d
    pad: 1
    activate: ReLU
    output_processors: 0x0000.0000.000f.ffff
    out_offset: 0x1000
  - name: shortcut
    processors: 0x0000.0000.000f.ffff
    op: passthrough
    output_processors: 0x0000.0000.000f.ffff
    write_gap: 1
    out_offset: 0x2000
  - name: body
    in_sequences: lift
    in_offset: 0x1000
    processors: 0x0000.0000.000f.ffff
    op: conv2d
    pad: 1
    activate: ReLU
    output_processors: 0x0000.0000.000f.ffff
    write_gap: 1
    out_offset: 0x2004
  - name: join
    in_sequences: [shortcut, body]
    in_offset: 0x2000
    processors: 0x0000.0000.000f.ffff
    eltwise: add
    op: conv2d
    kernel_size: 1x1
    pad: 0
    activate: ReLU
    output_processors: 0x0000.0000.0000.ffff
    out_offset: 0x0000
  - name: head
    avg_pool: 8
    pool_stride: 8
    processors: 0x0000.0000.0000.ffff
    op: conv2d
    kernel_size: 1x1
    pad: 0
    out_offset: 0x1000
"""

SERIES = """\
# one-dimensional data: spread kernels, cropping, a stretched kernel
arch: test
dataset: small

layers:
  - name: front
    in_dim: 32
    processors: 0x00000000000000ff
    op: Conv1d
    kernel_size: 5
    pad: 2
    activate: ReLU
    output_processors: 0x000000000000ffff
    out_offset: 0x2000
  - name: wide_view
    max_pool: 2
    pool_stride: 2
    processors: 0x000000000000ffff
    op: Conv1d
    kernel_size: 3
    dilation: 2
    pad: 0
    activate: Abs
    quantization: 2
    output_shift: 1
    output_processors: 0x0000000000000fff
    out_offset: 0x0000
  - name: middle
    in_crop: [2, 2]
    in_dim: [8, 1]
    in_offset: 0x0008
    in_sequences: [wide_view]
    processors: 0x0000000000000fff
    op: Conv1d
    kernel_size: 1
    pad: 0
    activate: ReLU
    output_processors: 0x0000000000000fff
    out_offset: 0x2000
  - name: classify
    op: MLP
    flatten: true
    processors: 0x0000000000000fff
    out_offset: 0x4000
    output_width: 32
"""

STREAMING = """\
# layers that work on rows as they arrive through the FIFO
arch: test
dataset: small
input_port: fifo

layers:
  - name: s0
    data_format: HWC
    streaming: true
    in_offset: 0x0000
    processors: 0x0000.0000.0000.0007
    op: conv2d
    pad: 1
    activate: ReLU
    output_processors: 0x0000.0000.0000.0ff0
    out_offset: 0x0000
  - name: s1
    streaming: true
    max_pool: 2
    pool_stride: 2
    in_offset: 0x0000
    processors: 0x0000.0000.0000.0ff0
    op: conv2d
    pad: 1
    activate: ReLU
    output_processors: 0x0000.0000.00ff.0000
    out_offset: 0x2000
  - name: tail
    max_pool: 4
    pool_stride: 4
    processors: 0x0000.0000.00ff.0000
    op: conv2d
    kernel_size: 1x1
    pad: 0
    output_processors: 0x0000.0000.0000.000f
    out_offset: 0x4000
"""

UPSAMPLING = """\
# transposed convolutions
arch: test
dataset: small

layers:
  - kernel_offset: 16
    in_place: true
    processors: 0x0000.0000.0000.000f
    op: ConvTranspose2d
    kernel_size: 3x3
    stride: 2
    pad: 1
    output_pad: 1
    activate: ReLU
    output_processors: 0x0000.0000.0000.00f0
    out_offset: 0x2000
  - processors: 0x0000.0000.0000.00f0
    op: ConvTranspose2d
    pad: [0, 0]
    max_pool: 2
    pool_stride: 2
    activate: ReLU
    output_processors: 0x0000.0000.0f00.0000
    out_offset: 0x0000
  - processors: 0x0000.0000.0f00.0000
    op: none
    avg_pool: [3, 2]
    pool_stride: 2
    out_offset: 0x2000
    output_processors: 0x0000.0000.0f00.0000
"""

ELEMENTWISE = """\
# combinations of two and three operands, pooled before and afterwards
arch: test
dataset: small

layers:
  - name: twice
    sequence: 0
    processors: 0x0000.0000.0000.00ff
    op: Add
    operands: 2
    output_processors: 0x0000.0000.0000.00ff
    out_offset: 0x2000
    write_gap: 1
  - name: copy
    sequence: 2
    in_sequences: [0]
    processors: 0x0000.0000.0000.00ff
    in_offset: 0x2000
    op: Passthrough
    output_processors: 0x0000.0000.0000.00ff
    out_offset: 0x2004
    write_gap: 1
  - name: both
    sequence: 3
    in_sequences: [0, 1]
    in_offset: 0x2000
    processors: 0x0000.0000.0000.00ff
    op: Sub
    max_pool: 2
    pool_stride: 2
    pool_first: false
    output_processors: 0x0000.0000.0000.00ff
    out_offset: 0x4000
  - name: last
    sequence: 5
    next_sequence: stop
    processors: 0x0000.0000.0000.00ff
    op: conv2d
    eltwise: xor
    operands: 3
    in_sequences: [both, both, 2]
    activate: None
    out_offset: 0x0000
    output: true
"""

CONCATENATION = """\
# two branches side by side, several outputs, what is delivered stated
arch: test
dataset: small
unload:
  - processors: 0x0000.0000.0000.0ff0
    channels: 8
    dim: [6, 6]
    offset: 0x2000
    width: 8
    write_gap: 0
  - {processors: 0x000000000000000f, channels: 4, dim: 36, offset: 0x1000}

layers:
  - name: left
    processors: 0x0000.0000.0000.0003
    op: conv2d
    activate: ReLU
    output_processors: 0x0000.0000.0000.00f0
    out_offset: 0x2000
    output: true
  - name: right
    in_sequences: input
    in_offset: 0x0000
    processors: 0x0000.0000.0000.0003
    weight_source: left
    op: conv2d
    activate: ReLU
    output_processors: 0x0000.0000.0000.0f00
    out_offset: 0x2000
  - name: together
    in_sequences: [left, right]
    in_offset: 0x2000
    in_channels: 8
    out_channels: 4
    processors: 0x0000.0000.0000.0ff0
    op: conv2d
    groups: 1
    out_offset: 0x1000
    output: true
"""

ROLLING = """\
# a rolling buffer: shifted, filled at the end, read as a series
arch: test
dataset: small
data_buffer:
  - processors: 0x0000.0000.0000.00f0
    dim: 4
    channels: 4
    offset: 0x3000
    name: ring
    width: 8

layers:
  - name: frame
    processors: 0x0000.0000.0000.000f
    in_channel_skip: 0
    op: Conv2d
    activate: ReLU
    output_processors: 0x0000.0000.0000.000f
    out_offset: 0x1000
  - name: shift
    processors: 0x0000.0000.0000.00f0
    output_processors: 0x0000.0000.0000.00f0
    in_offset: 0x3004
    in_channels: 4
    in_dim: 3
    in_sequences: ring
    out_offset: 0x3000
    op: Passthrough
    buffer_shift: 1
  - name: insert
    in_sequences: frame
    in_offset: 0x1000
    processors: 0x0000.0000.0000.000f
    output_processors: 0x0000.0000.0000.00f0
    out_offset: 0x300c
    op: Conv2d
    pad: 0
    buffer_insert: 1
    activate: ReLU
  - name: read
    processors: 0x0000.0000.0000.00f0
    in_offset: 0x3000
    in_channels: 4
    in_dim: 4
    in_sequences: ring
    out_offset: 0x2000
    op: Conv1d
    kernel_size: 3
    pad: 0
    activate: None
"""

WIDE = """\
# several passes, all widths of weights
arch: test
dataset: small

layers:
  - {processors: 0x000000000000000f, out_offset: 0x2000, op: conv2d, activate: ReLU,
     quantization: 8, output_processors: 0x000fffffffffffff, output_shift: 1}
  - {processors: 0x000fffffffffffff, out_offset: 0x0000, op: conv2d, kernel_size: 1x1, pad: 0,
     activate: ReLU, quantization: 1, output_processors: 0xffff000000000000}
  - {processors: 0xffff000000000000, out_offset: 0x4000, op: conv2d, activate: none,
     quantization: 4, output_width: 32}
"""

DEPTHWISE = """\
# channels for themselves, weights of +-1, dilated pooling
arch: test
dataset: small

layers:
  - name: point
    processors: 0x0000.0000.0000.000f
    op: Conv2d
    kernel_size: 1x1
    pad: 0
    quantization: bin
    activate: ReLU
    output_processors: 0x0000.0000.0000.ff00
    out_offset: 0x2000
  - name: deep
    processors: 0x0000.0000.0000.ff00
    op: Conv2d
    conv_groups: 8
    activate: ReLU
    output_processors: 0x0000.0000.0000.ff00
    out_offset: 0x4000
  - name: identity
    processors: 0x0000.0000.0000.ff00
    op: Conv2d
    groups: 8
    bypass: true
    in_channels: 8
    activate: ReLU
    output_processors: 0x0000.0000.0000.00ff
    out_offset: 0x6000
  - name: pool
    max_pool: 2
    pool_dilation: [2, 2]
    pool_stride: 1
    processors: 0x0000.0000.0000.00ff
    op: None
    out_offset: 0x8000
"""

PARALLEL = """\
# reading ahead, four outputs at a time, skipped words
arch: test
dataset: small

layers:
  - processors: 0x0000.0000.0000.000f
    op: conv2d
    activate: ReLU
    readahead: true
    output_processors: 0x0000.0000.0ff0.0000
    out_offset: 0x8000
    write_gap: 1
  - processors: 0x0000.0000.0ff0.0000
    read_gap: 1
    op: conv2d
    activate: ReLU
    calcx4: true
    tcalc: false
    output_processors: 0x0000.0000.0000.fff0
    out_offset: 0x2000
  - processors: 0x0000.0000.0000.fff0
    op: conv2d
    bias_quadrant: 0
    activate: None
    out_offset: 0x4000
"""

CONDITIONAL = """\
# conditional execution
arch: test
dataset: small
snoop: [0x00000000, 0x01010102, 0x02020204, 0x03030306, 0x04040408, 0x0505050a, 0x0606060c,
  0x00000007, 0x01010109, 0x0202020b, 0x0303030d, 0x0404040f, 0x05050511, 0x06060613,
  0x0000000e, 0x01010110, 0x02020212, 0x03030314, 0x04040416, 0x05050518, 0x0606061a,
  0x00000015, 0x01010117, 0x02020219, 0x0303031b, 0x0404041d, 0x0505051f, 0x06060621,
  0x0000001c, 0x0101011e, 0x02020220, 0x03030322]

layers:
  - name: first
    processors: 0x0000.0000.0000.000f
    op: conv2d
    activate: ReLU
    output_processors: 0x0000.0000.0000.00f0
    out_offset: 0x2000
    next_sequence: third
  - name: never
    processors: 0x0000.0000.0000.00f0
    op: conv2d
    activate: ReLU
    out_offset: 0x4000
    output_processors: 0x0000.0000.0000.00f0
  - name: third
    processors: 0x0000.0000.0000.00f0
    op: conv2d
    activate: ReLU
    snoop_sequence: 1
    simulated_sequence: 3
    output_processors: 0x0000.0000.0000.00f0
    out_offset: 0x0000
  - name: last
    processors: 0x0000.0000.0000.00f0
    op: conv2d
    activate: None
    out_offset: 0x6000
"""

EXIT = """\
# an early exit
arch: test
dataset: small

layers:
  - name: first
    processors: 0x0000.0000.0000.0003
    op: conv2d
    activate: ReLU
    output_processors: 0x0000.0000.0000.00ff
    out_offset: 0x2000
  - name: exit
    processors: 0x0000.0000.0000.00ff
    op: linear
    flatten: true
    output_width: 32
    output: true
    exit_margin: 600
    output_processors: 0x0000.0000.0000.000f
    out_offset: 0x4000
  - name: second
    in_sequences: first
    in_offset: 0x2000
    processors: 0x0000.0000.0000.00ff
    op: conv2d
    activate: ReLU
    output_processors: 0x0000.0000.0000.00ff
    out_offset: 0x0000
  - name: classes
    processors: 0x0000.0000.0000.00ff
    op: linear
    flatten: true
    output_width: 32
    output: true
    out_offset: 0x6000
"""

_CLASSIFIER_SHAPES = ((1, 8, 8), ((8, 1, 3, 3), (16, 8, 3, 3), (8, 16, 1, 1), (10, 32)))
_RESIDUAL_SHAPES = ((3, 8, 8), ((20, 3, 3, 3), (20, 20, 3, 3), (16, 20, 1, 1), (4, 16, 1, 1)))
_SERIES_SHAPES = ((8, 32), ((16, 8, 5), (12, 16, 3), (12, 12, 1), (5, 96)))
_STREAMING_SHAPES = ((3, 16, 16), ((8, 3, 3, 3), (8, 8, 3, 3), (4, 8, 1, 1)))
_KERNEL = (4, 4, 3, 3)
_EXIT_SHAPES = ((2, 6, 6), ((8, 2, 3, 3), (4, 8 * 36), (8, 8, 3, 3), (4, 8 * 36)))

NETWORKS = (
    SmallNetwork(
        "classifier", "MAX78000", CLASSIFIER, *_CLASSIFIER_SHAPES, ((8,), (16,)), ("--softmax",)
    ),
    SmallNetwork("classifier-78002", "MAX78002", CLASSIFIER, *_CLASSIFIER_SHAPES, ((8,), (16,))),
    SmallNetwork("residual", "MAX78000", RESIDUAL, *_RESIDUAL_SHAPES),
    SmallNetwork("residual-78002", "MAX78002", RESIDUAL, *_RESIDUAL_SHAPES),
    SmallNetwork("series", "MAX78000", SERIES, *_SERIES_SHAPES),
    SmallNetwork("series-78002", "MAX78002", SERIES, *_SERIES_SHAPES, (), ("--riscv",)),
    SmallNetwork("streaming", "MAX78000", STREAMING, *_STREAMING_SHAPES, (), ("--fifo",)),
    SmallNetwork(
        "streaming-78002", "MAX78002", STREAMING, *_STREAMING_SHAPES, (),
        ("--fast-fifo", "--riscv"),
    ),
    SmallNetwork("upsampling", "MAX78000", UPSAMPLING, (4, 6, 6), (_KERNEL, _KERNEL)),
    SmallNetwork("elementwise", "MAX78000", ELEMENTWISE, (16, 6, 6), ((8, 8, 3, 3),)),
    SmallNetwork(
        "concatenation", "MAX78000", CONCATENATION, (2, 6, 6), ((4, 2, 3, 3), (4, 8, 3, 3))
    ),
    SmallNetwork("exit", "MAX78002", EXIT, *_EXIT_SHAPES),
    SmallNetwork("rolling", "MAX78000", ROLLING, (4, 3, 3), (_KERNEL, _KERNEL, (4, 4, 3))),
    SmallNetwork(
        "wide", "MAX78000", WIDE, (4, 6, 6), ((104, 4, 3, 3), (16, 104, 1, 1), (70, 16, 3, 3))
    ),
    SmallNetwork("depthwise", "MAX78002", DEPTHWISE, (4, 6, 6), ((8, 4, 1, 1), (8, 1, 3, 3))),
    SmallNetwork(
        "parallel", "MAX78002", PARALLEL, (4, 6, 6), ((8, 4, 3, 3), (12, 8, 3, 3), (5, 12, 3, 3)),
        ((8,), (12,), (5,)), ("--mlator",),
    ),
    SmallNetwork("conditional", "MAX78002", CONDITIONAL, (4, 6, 6), (_KERNEL,) * 4),
)  # fmt: skip
