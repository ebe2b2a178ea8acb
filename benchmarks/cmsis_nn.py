"""A depthwise layer with CMSIS-NN.

`make measure WHAT=software-benchmarks CMSIS_NN=DIR` measures it.

The library computes with other scales: a multiplier and a shift for each channel, with two
roundings. A power of two as the scale gives outputs that are at most one off.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ai8xtools.emulator.plain import LIBRARY_HEADERS
from ai8xtools.software.graph import Convolution
from tools.kernel_layer import expected

_PARTS = ("ConvolutionFunctions", "NNSupportFunctions")
_MAIN = """#include <stdio.h>
#include "arm_nnfunctions.h"
static const int8_t weights[] = {{ {weights} }};
static const int32_t bias[] = {{ {bias} }};
static int32_t multiplier[{channels}], shift[{channels}];
static const int8_t input[] = {{ {input} }};
static const int8_t expected[] = {{ {expected} }};
static int8_t out[sizeof expected];
static int32_t buffer[16384];
static arm_cmsis_nn_status status;

int cnn_run(void);
__attribute__((noinline)) int cnn_run(void)
{{
    const cmsis_nn_dw_conv_params how = {{
        0, 0, 1, {{ {stride}, {stride_rows} }}, {{ {pad}, {pad_rows} }}, {{ 1, 1 }},
        {{ {low}, 127 }}
    }};
    const cmsis_nn_per_channel_quant_params scales = {{ multiplier, shift }};
    const cmsis_nn_dims in = {{ 1, {rows}, {columns}, {channels} }};
    const cmsis_nn_dims kernel = {{ 1, {kernel_rows}, {kernel_columns}, {channels} }};
    const cmsis_nn_dims start = {{ 1, 1, 1, {channels} }};
    const cmsis_nn_dims made = {{ 1, {out_rows}, {out_columns}, {channels} }};
    const cmsis_nn_context context = {{ buffer, sizeof buffer }};

    status = arm_depthwise_conv_wrapper_s8(&context, &how, &scales, &in, input, &kernel, weights,
                                           &start, bias, &made, out);
    return 0;
}}

int main(void)
{{
    unsigned i, wrong = 0;

    for (i = 0; i < {channels}; i++) {{
        multiplier[i] = 1 << 30; /* a half, in units of 2^-31 */
        shift[i] = 1 - {right};
    }}
    cnn_run();
    for (i = 0; i < sizeof out; i++) {{
        int difference = out[i] - expected[i];

        wrong += difference < -1 || difference > 1;
    }}
    puts(wrong || status != ARM_CMSIS_NN_SUCCESS ? "*** FAIL ***" : "*** PASS ***");
    return wrong != 0;
}}
"""


def depthwise_program(
    library: Path, conv: Convolution, data: NDArray[np.int8]
) -> tuple[dict[str, str], list[str]]:
    """Return the files of a program that computes a depthwise layer, and flags of the compiler.

    `library` is a copy of CMSIS-NN with Include/ and Source/. Raises FileNotFoundError if it has
    no depthwise convolution with a wrapper.
    """
    sources = library / "Source"
    wrapper = sources / _PARTS[0] / "arm_depthwise_conv_wrapper_s8.c"
    if not wrapper.is_file():
        raise FileNotFoundError(f"{wrapper} is not there: name a copy of CMSIS-NN 4 or later")
    files = {
        path.name: path.read_text(encoding="utf-8")
        for part in _PARTS
        for path in (sources / part).glob("*.c")
        if not path.stem.endswith("_f16")
    }
    half = (1 << conv.right) >> 1
    main = _MAIN.format(
        weights=_numbers(conv.weights[:, 0].transpose(1, 2, 0)),
        bias=_numbers(conv.start - half),
        input=_numbers(data),
        expected=_numbers(expected(conv, data)),
        channels=conv.channels,
        right=conv.right,
        low=conv.low,
        rows=conv.in_size[0], columns=conv.in_size[1],
        kernel_rows=conv.kernel[0], kernel_columns=conv.kernel[1],
        out_rows=conv.out_size[0], out_columns=conv.out_size[1],
        pad_rows=conv.pad[0], pad=conv.pad[1],
        stride_rows=conv.stride[0], stride=conv.stride[1],
    )  # fmt: skip
    files |= {"main.c": main, "cnn.h": f"#define CNN_MACS {conv.macs}\n"}
    return files, [f"-I{LIBRARY_HEADERS}", f"-I{(library / 'Include').resolve()}"]


def _numbers(values: NDArray[np.generic]) -> str:
    return ", ".join(map(str, values.reshape(-1).tolist()))
