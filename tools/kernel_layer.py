"""Convolutions as a program: for tests of kernels, and to count their instructions.

The expected output is computed here, with 64-bit sums, from the definition of the layer alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ai8xtools.diagnostics import Place
from ai8xtools.software.graph import Convolution, Interval
from ai8xtools.software.kernels.registry import Kernel
from ai8xtools.values import frozen

Integers = NDArray[np.int64]

RUNTIME = Path(__file__).parent.parent / "ai8xtools" / "software" / "runtime"
_TYPES = {"int8": "int8_t", "uint8": "uint8_t", "uint32": "uint32_t"}
_LAYER = """#define SCRATCH_{number} {scratch}
static const {type} weights_{number}[] NN_ALIGNED = {{ {weights} }};
static const int32_t start_{number}[] = {{ {start} }};
static const int8_t input_{number}[] = {{ {input} }};
static const {element} expected_{number}[] = {{ {expected} }};
static const nn_conv conv_{number} = {{
    weights_{number}, start_{number}, {channels}, {filters}, {width}, {groups}, {flush}, {pad},
    {kernel_rows}, {kernel_columns}, {dilation}, {spread}, {stride}, {right}, {low}, {flags}
}};
static {element} out_{number}[sizeof expected_{number} / sizeof expected_{number}[0]];
static uint32_t scratch_{number}[SCRATCH_{number} + 1];

void compute_{number}(void);
unsigned check_{number}(void);

void compute_{number}(void)
{{
    int y, i;
    unsigned x;

    scratch_{number}[SCRATCH_{number}] = MARK;
    for (y = 0; y < {rows}; y++) {{
        const int8_t *rows[{kernel_rows}];

        for (i = 0; i < {kernel_rows}; i++) {{
            int row = y * {stride_rows} + i * {dilation} - {pad_rows};

            rows[i] = row < 0 || row >= {height} ? NULL : input_{number} + row * {row_bytes};
        }}
        for (x = 0; x < {columns}; x += {piece}) {{
            unsigned count = {columns} - x < {piece} ? {columns} - x : {piece};

            {function}(&conv_{number}, rows, x, count,
                out_{number} + (y * {columns} + (int)x) * {filters}, scratch_{number});
        }}
    }}
}}

unsigned check_{number}(void)
{{
    unsigned i, wrong = scratch_{number}[SCRATCH_{number}] != MARK;

    for (i = 0; i < sizeof out_{number} / sizeof out_{number}[0]; i++) {{
        wrong += out_{number}[i] != expected_{number}[i];
    }}
    return wrong;
}}
"""
_LAYERS = """#include "nn_kernels.h"
#define MARK 0x5a5aa5a5u
"""
_HEADER = """#ifndef NN_KERNELS_H
#define NN_KERNELS_H
#include "nn.h"
const int8_t *nn_patch(const nn_conv *conv, const int8_t *const *rows, int32_t x, int8_t *to);
{prototypes}#endif
"""
_MAIN = """#include <stdio.h>
{declarations}
int cnn_run(void);
__attribute__((noinline)) int cnn_run(void)
{{
    {runs}
    return 0;
}}

int main(void)
{{
    unsigned wrong = 0;

    cnn_run();
    {checks}
    puts(wrong ? "*** FAIL ***" : "*** PASS ***");
    return wrong != 0;
}}
"""


@frozen
class Trial:
    """A layer, the kernel that computes it, and data int8 [row, column, channel].

    The kernel is called for `piece` pixels at a time, 0: for whole rows.
    """

    conv: Convolution
    kernel: Kernel
    data: NDArray[np.int8]
    piece: int = 0


def layer(
    size: tuple[int, int],
    weights: NDArray[np.int8],
    start: Integers,
    *,
    pad: tuple[int, int] = (0, 0),
    groups: int = 1,
    dilation: int = 1,
    stride: tuple[int, int] = (1, 1),
    right: int = 7,
    low: int = -128,
    signed: bool = True,
    wide: bool = False,
    absolute: bool = False,
) -> Convolution:
    """Return a layer: `size` rows and columns of the input, weights int8 [O, I / groups, kH, kW].

    `start` is int64 [O]. Inputs are -128 to 127, or 0 to 127 if not `signed`.
    """
    filters, channels = weights.shape[0], weights.shape[1] * groups
    reach = [(k - 1) * dilation for k in weights.shape[2:]]
    out_size = tuple(
        (n + 2 * p - r - 1) // s + 1 for n, p, r, s in zip(size, pad, reach, stride, strict=True)
    )
    return Convolution(
        source=0,
        target=1,
        layer=0,
        name="layer",
        place=Place(),
        weights=weights,
        start=start,
        groups=groups,
        in_size=size,
        out_size=(out_size[0], out_size[1]),
        pad=pad,
        dilation=dilation,
        stride=stride,
        right=right,
        low=low,
        absolute=absolute,
        wide=wide,
        input=_interval(channels, -128 if signed else 0),
        output=_interval(filters, low),
    )


def expected(conv: Convolution, data: NDArray[np.int8]) -> Integers:
    """Return the output, int64 [row, column, filter], of data, int8 [row, column, channel]."""
    (rows, columns), step = conv.out_size, conv.dilation
    pads = [(conv.pad[0],) * 2, (conv.pad[1],) * 2, (0, 0)]
    padded = np.pad(data.astype(np.int64), pads)
    inputs, outputs = conv.channels // conv.groups, conv.filters // conv.groups
    sums = np.broadcast_to(conv.start, (rows, columns, conv.filters)).astype(np.int64)
    for group in range(conv.groups):
        filters = slice(group * outputs, (group + 1) * outputs)
        read = slice(group * inputs, (group + 1) * inputs)
        for i, j in np.ndindex(*conv.kernel):
            window = padded[i * step :: conv.stride[0], j * step :: conv.stride[1], read]
            window = window[:rows, :columns]
            sums[:, :, filters] += window @ conv.weights[filters, :, i, j].T.astype(np.int64)
    if conv.wide:
        return sums
    if conv.right >= 0:
        sums //= 1 << conv.right
    else:
        sums = np.clip(sums, -128, 127) * (1 << -conv.right)
    return np.clip(np.abs(sums) if conv.absolute else sums, conv.low, 127)


def program(trials: Sequence[Trial]) -> dict[str, str]:
    """Return the files of a program that computes layers and says whether all are right."""
    kernels = {trial.kernel.function: trial.kernel for trial in trials}
    numbers = range(len(trials))
    main = _MAIN.format(
        declarations="\n".join(
            f"void compute_{n}(void);\nunsigned check_{n}(void);" for n in numbers
        ),
        runs="\n    ".join(f"compute_{n}();" for n in numbers),
        checks="\n    ".join(
            f'if (check_{n}()) {{\n        puts("layer {n} is wrong");\n        wrong++;\n    }}'
            for n in numbers
        ),
    )
    names = dict.fromkeys(n for one in kernels.values() for n in (*one.helpers, one.source))
    sources = [(RUNTIME / name).read_text(encoding="utf-8") for name in names]
    prototypes = "".join(f"nn_kernel {name};\n" for name in kernels)
    return {
        "main.c": main,
        "nn.h": (RUNTIME / "nn.h").read_text(encoding="utf-8"),
        "nn_kernels.h": _HEADER.format(prototypes=prototypes),
        "nn_kernels.c": "".join(sources),
        "cnn.h": f"#define CNN_MACS {sum(trial.conv.macs for trial in trials)}\n",
        "layers.c": _LAYERS + "".join(_source(n, trial) for n, trial in enumerate(trials)),
    }


def _source(number: int, trial: Trial) -> str:
    """Return the C of one layer."""
    conv, kernel = trial.conv, trial.kernel
    packed = kernel.pack(conv)
    return _LAYER.format(
        number=number,
        scratch=-(-kernel.scratch_bytes(conv) // 4),
        type=_TYPES[packed.values.dtype.name],
        weights=_numbers(packed.values),
        start=_numbers(kernel.start(conv).astype(np.int32)),
        input=_numbers(trial.data),
        element="int32_t" if conv.wide else "int8_t",
        expected=_numbers(expected(conv, trial.data)),
        channels=conv.channels,
        filters=conv.filters,
        width=conv.in_size[1],
        groups=conv.groups,
        flush=packed.flush,
        pad=conv.pad[1],
        kernel_rows=conv.kernel[0],
        kernel_columns=conv.kernel[1],
        dilation=conv.dilation,
        spread=conv.spread[1],
        stride=conv.stride[1],
        stride_rows=conv.stride[0],
        right=conv.right,
        low=conv.low,
        flags=int(conv.absolute) + 2 * int(conv.wide),
        rows=conv.out_size[0],
        columns=conv.out_size[1],
        pad_rows=conv.pad[0],
        height=conv.in_size[0],
        row_bytes=conv.in_size[1] * conv.channels,
        piece=trial.piece or conv.out_size[1],
        function=kernel.function,
    )


def _interval(channels: int, low: int) -> Interval:
    return Interval(np.full(channels, low, np.int64), np.full(channels, 127, np.int64))


def _numbers(values: NDArray[np.generic]) -> str:
    return ", ".join(map(str, values.reshape(-1).tolist()))
