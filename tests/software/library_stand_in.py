"""A folder with the files of CMSIS 5.9.0 that programs take, in place of a copy of the library.

Names of files, prototypes and what the functions do to their data are the library's; the code is
not: each function is written from its definition alone. Maximum pooling destroys its data.
"""

from __future__ import annotations

from pathlib import Path

from ai8xtools.software.cmsis.functions import FUNCTIONS, prototypes_of

_HEADER = """#ifndef _ARM_NNFUNCTIONS_H
#define _ARM_NNFUNCTIONS_H
#include <stddef.h>
#include <stdint.h>
#include "arm_math_types.h"
%s
#endif
"""
_TYPES = """#ifndef _ARM_MATH_TYPES_H
#define _ARM_MATH_TYPES_H
#include <stdint.h>
#ifndef __GNUC_PYTHON__
#include "cmsis_compiler.h"
#endif
typedef int8_t q7_t;
typedef int16_t q15_t;
typedef int32_t q31_t;
typedef enum { ARM_MATH_SUCCESS = 0, ARM_MATH_SIZE_MISMATCH = -3 } arm_status;
#include <string.h>
static inline int32_t word_of(const void *from)
{
    int32_t word;
    memcpy(&word, from, 4);
    return word;
}
#endif
"""
_COMPILER = """#ifndef __SSAT
static inline int32_t __SSAT(int32_t value, uint32_t bits)
{
    const int32_t most = (int32_t)((1u << (bits - 1)) - 1);
    return value > most ? most : value < -most - 1 ? -most - 1 : value;
}
#endif
"""
_BODIES = {
    "arm_convolve_HWC_q7_basic_nonsquare": """
    static volatile int32_t word;
    (void)bufferA; (void)bufferB; word = word_of(wt);
    for (int y = 0; y < dim_im_out_y; y++) for (int x = 0; x < dim_im_out_x; x++)
    for (int o = 0; o < ch_im_out; o++) {
        int32_t sum = bias[o] * (1 << bias_shift) + ((1 << out_shift) >> 1);
        for (int i = 0; i < dim_kernel_y; i++) for (int j = 0; j < dim_kernel_x; j++) {
            int v = y * stride_y + i - padding_y, u = x * stride_x + j - padding_x;
            if (v < 0 || u < 0 || v >= dim_im_in_y || u >= dim_im_in_x) continue;
            for (int c = 0; c < ch_im_in; c++)
                sum += Im_in[(v * dim_im_in_x + u) * ch_im_in + c] *
                       wt[((o * dim_kernel_y + i) * dim_kernel_x + j) * ch_im_in + c];
        }
        *Im_out++ = (q7_t)__SSAT(sum >> out_shift, 8);
    }
    return ARM_MATH_SUCCESS;""",
    "arm_depthwise_separable_conv_HWC_q7_nonsquare": """
    (void)bufferA; (void)bufferB;
    if (ch_im_in != ch_im_out) return ARM_MATH_SIZE_MISMATCH;
    for (int y = 0; y < dim_im_out_y; y++) for (int x = 0; x < dim_im_out_x; x++)
    for (int o = 0; o < ch_im_out; o++) {
        int32_t sum = bias[o] * (1 << bias_shift) + ((1 << out_shift) >> 1);
        for (int i = 0; i < dim_kernel_y; i++) for (int j = 0; j < dim_kernel_x; j++) {
            int v = y * stride_y + i - padding_y, u = x * stride_x + j - padding_x;
            if (v < 0 || u < 0 || v >= dim_im_in_y || u >= dim_im_in_x) continue;
            sum += Im_in[(v * dim_im_in_x + u) * ch_im_in + o] *
                   wt[(i * dim_kernel_x + j) * ch_im_in + o];
        }
        *Im_out++ = (q7_t)__SSAT(sum >> out_shift, 8);
    }
    return ARM_MATH_SUCCESS;""",
    "arm_fully_connected_q7": """
    (void)vec_buffer;
    for (int o = 0; o < num_of_rows; o++) {
        int32_t sum = bias[o] * (1 << bias_shift) + ((1 << out_shift) >> 1);
        for (int i = 0; i < dim_vec; i++) sum += pV[i] * pM[o * dim_vec + i];
        pOut[o] = (q7_t)__SSAT(sum >> out_shift, 8);
    }
    return ARM_MATH_SUCCESS;""",
    "arm_fully_connected_q7_opt": """
    (void)vec_buffer;
    const int rows = num_of_rows / 4 * 4, columns = dim_vec / WIDE * WIDE;
    for (int o = 0; o < num_of_rows; o++) {
        int32_t sum = bias[o] * (1 << bias_shift) + ((1 << out_shift) >> 1);
        for (int i = 0; i < dim_vec; i++) {
            int at = o * dim_vec + i;
            if (o < rows && i < columns) at = o / 4 * 4 * dim_vec + PLACE(o % 4, i);
            else if (o < rows) at = o / 4 * 4 * dim_vec + columns * 4 + (i - columns) * 4 + o % 4;
            sum += pV[i] * pM[at];
        }
        pOut[o] = (q7_t)__SSAT(sum >> out_shift, 8);
    }
    return ARM_MATH_SUCCESS;""",
    "arm_maxpool_q7_HWC": """
    (void)bufferA;
    for (int y = 0; y < dim_im_out; y++) for (int x = 0; x < dim_im_out; x++)
    for (int c = 0; c < ch_im_in; c++) {
        int most = -128;
        for (int i = 0; i < dim_kernel; i++) for (int j = 0; j < dim_kernel; j++) {
            int v = y * stride + i - padding, u = x * stride + j - padding;
            if (v < 0 || u < 0 || v >= dim_im_in || u >= dim_im_in) continue;
            int value = Im_in[(v * dim_im_in + u) * ch_im_in + c];
            most = value > most ? value : most;
        }
        Im_out[(y * dim_im_out + x) * ch_im_in + c] = (q7_t)most;
    }
    for (int i = 0; i < dim_im_in * dim_im_in * ch_im_in; i++) Im_in[i] = 0x55;""",
    "arm_relu_q7": """
    for (int i = 0; i < size; i++) if (data[i] < 0) data[i] = 0;""",
}
_SQUARE = (
    "Im_in, dim_im_in, dim_im_in, ch_im_in, wt, ch_im_out, dim_kernel, dim_kernel, padding, "
    "padding, stride, stride, bias, bias_shift, out_shift, Im_out, dim_im_out, dim_im_out, "
    "bufferA, bufferB"
)
_SHORT = {
    "arm_convolve_HWC_q7_basic": ("", "arm_convolve_HWC_q7_basic_nonsquare"),
    "arm_convolve_HWC_q7_fast": (
        "if (ch_im_in % 4 || ch_im_out % 2) return ARM_MATH_SIZE_MISMATCH;",
        "arm_convolve_HWC_q7_basic_nonsquare",
    ),
    "arm_depthwise_separable_conv_HWC_q7": ("", "arm_depthwise_separable_conv_HWC_q7_nonsquare"),
}
"""Functions that do what longer ones do, and what they refuse before."""
_SIXTEEN = {
    "arm_convolve_HWC_q15_basic": ("arm_convolve_HWC_q7_basic", ""),
    "arm_convolve_HWC_q15_fast": (
        "arm_convolve_HWC_q7_basic",
        "if (ch_im_in % 2 || ch_im_out % 2 || dim_im_out % 2) return ",
    ),
    "arm_convolve_HWC_q15_fast_nonsquare": (
        "arm_convolve_HWC_q7_basic_nonsquare",
        "if (ch_im_in % 2 || ch_im_out % 2 || dim_im_out_x % 2) return ",
    ),
    "arm_fully_connected_q15": ("arm_fully_connected_q7", ""),
    "arm_fully_connected_q15_opt": ("arm_fully_connected_q7_opt", ""),
    "arm_relu_q15": ("arm_relu_q7", ""),
}
"""Functions of 16 bits: those of 8 bits that do the same, and what they leave undone."""


_PLACES = {
    8: "i / 4 * 16 + i % 2 * 8 + r / 2 * 4 + i % 4 / 2 * 2 + r % 2",
    16: "i / 2 * 8 + r * 2 + i % 2",
}
"""Of `_opt`: where the weight of a row of four and of a column stands."""


def _with_places(text: str, bits: int) -> str:
    """Return C with the macros of its order of weights."""
    wide = f"#define WIDE {4 if bits == 8 else 2}\n"
    return f"{wide}#define PLACE(r, i) (({_PLACES[bits]}))\n{text}" if "PLACE" in text else text


def _source(prototype: str, body: str) -> str:
    """Return a function."""
    return f"{prototype.removesuffix(';')}\n{{{body}\n}}\n"


def write_stand_in(folder: Path) -> Path:
    """Write the folder of a library; return it."""
    library = folder / "CMSIS" / "NN"
    (library / "Include").mkdir(parents=True)
    prototypes = dict(zip(_known(), (prototypes_of([name])[-1] for name in _known()), strict=True))
    prototypes |= {name: _sixteen(prototypes[of], name) for name, (of, _) in _SIXTEEN.items()}
    header = _HEADER % "\n".join(prototypes.values())
    (library / "Include/arm_nnfunctions.h").write_text(header)
    for path, text in (
        ("DSP/Include/arm_math_types.h", _TYPES),
        ("Core/Include/cmsis_compiler.h", _COMPILER),
    ):
        (folder / "CMSIS" / path).parent.mkdir(parents=True)
        (folder / "CMSIS" / path).write_text(text)
    for name in _known():
        own, *parts = FUNCTIONS[name].library
        where = library / "Source" / f"{_subject(name)}Functions"
        where.mkdir(parents=True, exist_ok=True)
        (where / f"{own}.c").write_text(_with_places(_text(name, prototypes), 8))
        for part in parts:
            (where / f"{part}.c").write_text(f"int stand_in_of_{part};\n")
    for name, (of, refused) in _SIXTEEN.items():
        text = _text(of, prototypes)
        where = library / "Source" / f"{_subject(name)}Functions" / f"{name}.c"
        text = _sixteen(text, name, of).replace("(sum >> out_shift, 8)", "(sum >> out_shift, 16)")
        start = text.rindex("\n{") + 2
        text = _with_places(text, 16)
        start = text.rindex("\n{") + 2
        where.write_text(text[:start] + (f"{refused} ARM_MATH_SIZE_MISMATCH;" if refused else "")
                         + text[start:])  # fmt: skip
    return folder


def _sixteen(text: str, name: str, of: str = "") -> str:
    """Return the C of a function of 8 bits, or its prototype, for 16 bits and another name."""
    own = of or text.split("(")[0].split()[-1]
    return (
        text.replace(f" {own}(", f" {name}(")
        .replace("q7_t", "q15_t")
        .replace("q15_t *bufferB", "q7_t *bufferB")
    )


def _known() -> list[str]:
    """Return the functions that the library has."""
    return [name for name, function in FUNCTIONS.items() if function.library]


def _subject(name: str) -> str:
    words = {"conv": "Convolution", "fully": "FullyConnected", "pool": "Pooling"}
    return next((subject for word, subject in words.items() if word in name), "Activation")


def _text(name: str, prototypes: dict[str, str]) -> str:
    """Return the C file of a function; shorter ones bring what they call along."""
    include = '#include "arm_nnfunctions.h"\n'
    if name not in _SHORT:
        return include + _source(prototypes[name], _BODIES[name])
    refused, longer = _SHORT[name]
    helper = f"static_{longer}"
    long_text = _source(prototypes[longer], _BODIES[longer]).replace(longer, helper, 1)
    body = f"\n    {refused}\n    return {helper}({_SQUARE});"
    return include + "static " + long_text + _source(prototypes[name], body)
