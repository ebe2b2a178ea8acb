"""What WHAT=software-benchmarks CMSIS_NN=DIR runs of a library, tried with one of our own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ai8xtools.emulator.cpu.architecture import ARCHITECTURES
from ai8xtools.emulator.plain import compile_plain, run_plain
from benchmarks import software_networks
from benchmarks.cmsis_nn import depthwise_program
from tools.kernel_layer import layer

HEADER = """
#include <stdint.h>
#include <string.h>
typedef enum { ARM_CMSIS_NN_SUCCESS } arm_cmsis_nn_status;
typedef struct { void *buf; int32_t size; } cmsis_nn_context;
typedef struct { int32_t n, h, w, c; } cmsis_nn_dims;
typedef struct { int32_t w, h; } cmsis_nn_tile;
typedef struct { int32_t min, max; } cmsis_nn_activation;
typedef struct {
    int32_t input_offset, output_offset, ch_mult;
    cmsis_nn_tile stride, padding, dilation;
    cmsis_nn_activation activation;
} cmsis_nn_dw_conv_params;
typedef struct { int32_t *multiplier, *shift; } cmsis_nn_per_channel_quant_params;
arm_cmsis_nn_status arm_depthwise_conv_wrapper_s8(
    const cmsis_nn_context *, const cmsis_nn_dw_conv_params *,
    const cmsis_nn_per_channel_quant_params *, const cmsis_nn_dims *, const int8_t *,
    const cmsis_nn_dims *, const int8_t *, const cmsis_nn_dims *, const int32_t *,
    const cmsis_nn_dims *, int8_t *);
"""
SOURCE = """
#include "arm_nnfunctions.h"
arm_cmsis_nn_status arm_depthwise_conv_wrapper_s8(
    const cmsis_nn_context *context, const cmsis_nn_dw_conv_params *how,
    const cmsis_nn_per_channel_quant_params *scales, const cmsis_nn_dims *in, const int8_t *data,
    const cmsis_nn_dims *kernel, const int8_t *weights, const cmsis_nn_dims *start,
    const int32_t *bias, const cmsis_nn_dims *made, int8_t *out)
{
    (void)context;
    (void)start;
    for (int y = 0; y < made->h; y++)
        for (int x = 0; x < made->w; x++)
            for (int c = 0; c < in->c; c++) {
                int64_t sum = bias[c];
                for (int i = 0; i < kernel->h; i++)
                    for (int j = 0; j < kernel->w; j++) {
                        int row = y * how->stride.h + i - how->padding.h;
                        int column = x * how->stride.w + j - how->padding.w;
                        if (row >= 0 && row < in->h && column >= 0 && column < in->w)
                            sum += data[(row * in->w + column) * in->c + c] *
                                   weights[(i * kernel->w + j) * in->c + c];
                    }
                sum = (sum * scales->multiplier[c] + (1 << 30)) >> 31;
                sum = (sum + (1 << -scales->shift[c] >> 1)) >> -scales->shift[c];
                sum = sum < how->activation.min ? how->activation.min : sum;
                *out++ = (int8_t)(sum > how->activation.max ? how->activation.max : sum);
            }
    return ARM_CMSIS_NN_SUCCESS;
}
"""


@pytest.fixture
def library(tmp_path: Path) -> Path:
    folder = tmp_path / "library"
    for name in ("Include", "Source/ConvolutionFunctions", "Source/NNSupportFunctions"):
        (folder / name).mkdir(parents=True)
    (folder / "Include" / "arm_nnfunctions.h").write_text(HEADER)
    wrapper = folder / "Source/ConvolutionFunctions/arm_depthwise_conv_wrapper_s8.c"
    wrapper.write_text(SOURCE)
    return folder


@pytest.mark.parametrize("wrong", [0, 40])
def test_the_library_computes_the_same_layer(library: Path, wrong: int, tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    weights = random.integers(-60, 60, (4, 1, 3, 3)).astype(np.int8)
    start = random.integers(-50, 50, 4) * 128 + 64
    conv = layer((5, 4), weights, start, pad=(1, 1), groups=4, stride=(2, 1), low=0)
    data = random.integers(-128, 128, (5, 4, 4)).astype(np.int8)
    files, flags = depthwise_program(library, conv, data)
    place = tmp_path / "program"
    place.mkdir()
    for name, text in files.items():
        changed = text.replace("sum = bias[c]", f"sum = bias[c] + {wrong} * 128")
        (place / name).write_text(changed)
    run = run_plain(compile_plain(place, ARCHITECTURES["cortex-m4"], flags=flags))
    assert run.text == ("*** FAIL ***\n" if wrong else "*** PASS ***\n")


def test_a_folder_that_is_no_library_is_named(tmp_path: Path) -> None:
    conv = layer((1, 1), np.ones((2, 1, 1, 1), np.int8), np.zeros(2, np.int64), groups=2)
    with pytest.raises(FileNotFoundError, match="name a copy of CMSIS-NN"):
        depthwise_program(tmp_path, conv, np.ones((1, 1, 2), np.int8))


def test_networks_that_are_not_there_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert software_networks.known_networks(tmp_path)
    assert capsys.readouterr().out.count("left out") == len(software_networks.NETWORKS)


@pytest.mark.parametrize(("ring_bytes", "good"), [(13_312, True), (12_000, False)])
def test_rings_above_their_bound_are_named(
    ring_bytes: int,
    good: bool,
    shared: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    case = software_networks.Case("cats-dogs", "catsdogs", ring_bytes, {})
    monkeypatch.setattr(software_networks, "NETWORKS", (case,))
    folder = shared / "kat-software/cmsis-software-nn"
    assert software_networks.known_networks(folder) == good
    assert ("EXCEEDED" in capsys.readouterr().out) != good
