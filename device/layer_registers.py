"""Registers that every layer has in every group, as each chip numbers them.

Source: spec/registers.md sections 2.1, 4 and 6.
"""

from __future__ import annotations

from device.fields import Field, Register, flag

# Fields of the per-layer registers that both chips share.
_WRITE_OFFSET = (Field("words", 0, 21, "distance in words"),)
_ENABLE_FIELDS = (
    Field("processors", 0, 16, "processors that take part"),
    Field("kernels", 16, 16, "processors that read kernels"),
)
_POST_FIELDS = (
    Field("bias_offset", 0, 12, "first byte in the bias memory of the group"),
    flag("bias", 12, "this group adds the bias"),
    Field("shift", 13, 4, "output shift, magnitude"),
    flag("shift_right", 17, "the output shift goes to the right"),
    Field("flatten_high", 18, 4, "passes of a flattened layer, bits 7:4"),
    Field("weight_size", 22, 2, "weights: 0 8-bit, 1 1-bit, 2 2-bit, 3 4-bit"),
    flag("time_slots", 24, "pass-through or depth-wise: one output per time slot"),
    flag("one_by_one", 25, "pass-through of one operand"),
    flag("absolute", 26, "activation Abs"),
    flag("flatten", 27, "flattened layer of 16 passes or more"),
    flag("transposed", 28, "transposed convolution"),
    flag("calcx4", 29, "four outputs at a time"),
    flag("depthwise", 30, "depth-wise convolution"),
    flag("tcalc", 31, "calculate with the transposed order"),
)
_ONED_FIELDS = (
    Field("time_slots", 0, 4, "time slots of a pixel, less one"),
    Field("kernel_remainder", 4, 4, "bytes before the first kernel in its first column"),
    Field("kernel_length", 8, 4, "Conv1d: taps; 1 also marks a 1x1 kernel"),
    flag("conv1d", 12, "one-dimensional convolution"),
    flag("elementwise", 13, "several operands are combined"),
    Field("operation", 14, 2, "combination: 0 sub, 1 add, 2 or, 3 xor"),
    flag("pool_first", 16, "operands are pooled before they are combined"),
    flag("elementwise_convolution", 17, "a convolution follows the combination"),
    Field("operands", 18, 4, "operands less one"),
)
_LAYER_CONTROL_FIELDS = (
    flag("always", 5, "always set"),
    flag("chw", 6, "planar input"),
    flag("pool", 7, "pooling"),
    flag("max_pool", 8, "maximum instead of average"),
    flag("relu", 9, "activation ReLU"),
    flag("shared_output", 11, "outputs go to the memories of all groups"),
    Field("sources", 12, 4, "other groups that contribute to this one's sums"),
    flag("wide", 16, "32-bit output"),
)
_STREAM_DELTA_FIELDS = (
    Field("passes_before", 0, 4, "passes of the layers before"),
    Field("delta1", 4, 5, "data words between two steps in a row"),
    Field("delta2", 16, 14, "data words between two rows"),
)


def _layer_registers(
    rows: tuple[tuple[str, int, str, tuple[Field, ...]], ...],
) -> dict[str, Register]:
    return {name: Register(name, number, meaning, fields) for name, number, meaning, fields in rows}


MAX78000_LAYER_REGISTERS = _layer_registers(
    (
        ("RCNT", 0, "Rows", (Field("last", 0, 10, "last row"), Field("pad", 16, 2, "pad rows"))),
        (
            "CCNT",
            1,
            "Columns",
            (Field("last", 0, 10, "last column"), Field("pad", 16, 2, "pad columns")),
        ),
        ("ONED", 2, "1D", _ONED_FIELDS),
        ("PRCNT", 3, "Pooling rows", (Field("last", 0, 4, "last row of the window"),)),
        ("PCCNT", 4, "Pooling columns", (Field("last", 0, 4, "last column of the window"),)),
        ("STRIDE", 5, "Stride", (Field("stride", 0, 4, "stride less one"),)),
        ("WPTR_BASE", 6, "SRAM write ptr", (Field("pointer", 0, 17, "instance and word"),)),
        ("WPTR_TOFFS", 7, "Write ptr time slot offs", _WRITE_OFFSET),
        ("WPTR_MOFFS", 8, "Write ptr mask offs", _WRITE_OFFSET),
        (
            "WPTR_CHOFFS",
            9,
            "Write ptr multi-pass channel offs",
            (Field("words", 0, 4, "distance in words"),),
        ),
        ("RPTR_BASE", 10, "SRAM read ptr", (Field("word", 0, 17, "first word of the input"),)),
        ("LCTL", 11, "Layer control", _LAYER_CONTROL_FIELDS),
        (
            "MCNT",
            12,
            "Mask offset and count",
            (Field("last", 0, 16, "last kernel"), Field("first", 16, 16, "first kernel")),
        ),
        (
            "TPTR",
            13,
            "TRAM ptr max",
            (Field("last", 0, 12, "last word"), Field("first", 16, 12, "first word")),
        ),
        ("ENA", 14, "Mask and processor enables", _ENABLE_FIELDS),
        ("POST", 15, "Post processing register", _POST_FIELDS),
        (
            "STREAM1",
            16,
            "Stream processing start",
            (Field("start", 0, 14, "data words before the layer starts"),),
        ),
        (
            "STREAM2",
            17,
            "Stream processing delta",
            (*_STREAM_DELTA_FIELDS[:2], Field("delta2", 16, 12, "data words between two rows")),
        ),
        ("FMAX", 18, "Rollover", (Field("words", 0, 17, "words of the ring buffer"),)),
        (
            "LCTL2",
            20,
            "Layer control 2",
            (
                Field("passes", 0, 4, "input passes less one"),
                Field("write_step", 4, 4, "output words from pixel to pixel, less one"),
                Field("last_output", 8, 24, "last output kernel, in weight bits"),
            ),
        ),
    )
)

_MAX78002_COUNT_FIELDS = (
    Field("last", 0, 11, "last row or column fetched"),
    Field("pad", 13, 2, "pad less one"),
    flag("padded", 15, "pad is not zero"),
    Field("skip", 16, 16, "words skipped at the end"),
)
_MAX78002_POOL_FIELDS = (
    Field("last", 0, 4, "last row or column of the window"),
    Field("dilation", 4, 4, "dilation less one"),
)

MAX78002_LAYER_REGISTERS = _layer_registers(
    (
        (
            "NXTLYR",
            0,
            "Next Layer",
            (
                Field("layer", 0, 7, "layer to jump to"),
                flag("jump", 7, "jump to that layer"),
                flag("stop", 8, "stop after this layer"),
            ),
        ),
        ("RCNT", 1, "Rows", _MAX78002_COUNT_FIELDS),
        ("CCNT", 2, "Columns", _MAX78002_COUNT_FIELDS),
        ("ONED", 3, "1D", _ONED_FIELDS),
        ("PRCNT", 4, "Pooling rows", _MAX78002_POOL_FIELDS),
        ("PCCNT", 5, "Pooling columns", _MAX78002_POOL_FIELDS),
        (
            "STRIDE",
            6,
            "Stride",
            (
                Field("stride", 0, 4, "stride less one"),
                Field("words", 4, 28, "words from one step to the next"),
            ),
        ),
        ("WPTR_BASE", 7, "SRAM write ptr", (Field("pointer", 0, 21, "instance and word"),)),
        ("WPTR_TOFFS", 8, "Write ptr time slot offs", _WRITE_OFFSET),
        ("WPTR_MOFFS", 9, "Write ptr mask offs", _WRITE_OFFSET),
        (
            "WPTR_CHOFFS",
            10,
            "Write ptr multi-pass channel offs",
            (Field("words", 0, 8, "distance in words"),),
        ),
        ("RPTR_BASE", 11, "SRAM read ptr", (Field("word", 0, 21, "first word of the input"),)),
        (
            "LCTL",
            12,
            "Layer control",
            (
                *_LAYER_CONTROL_FIELDS,
                flag("read_ahead", 17, "read ahead"),
                Field("kernel_columns", 18, 4, "kernel columns less one"),
                Field("kernel_rows", 22, 4, "kernel rows less one"),
                Field("shift_count", 26, 4, "read-ahead: passes less one"),
                flag("depthwise_broadcast", 29, "depth-wise, output map equals input map"),
                flag("bypass", 30, "all kernels are one"),
            ),
        ),
        (
            "LCTL2",
            13,
            "Layer control 2",
            (
                Field("passes", 0, 4, "input passes less one"),
                Field("write_step", 4, 8, "output words from pixel to pixel, less one"),
                Field("last_output", 12, 20, "last output kernel, in weight bits"),
            ),
        ),
        ("MCNT1", 14, "Mask count", (Field("last", 0, 19, "last kernel"),)),
        ("MCNT2", 15, "Mask offset", (Field("first", 0, 19, "first kernel"),)),
        ("OCHAN", 16, "Output channel count", (Field("last", 0, 16, "kernels less one"),)),
        (
            "TPTR",
            17,
            "TRAM ptr max",
            (Field("last", 0, 14, "last word"), Field("first", 16, 14, "first word")),
        ),
        ("ENA", 18, "Mask and processor enables", _ENABLE_FIELDS),
        ("POST", 19, "Post processing register", _POST_FIELDS),
        (
            "STREAM1",
            0x2000,
            "Stream processing start",
            (
                Field("start", 0, 15, "data words before the layer starts"),
                flag("fifo_go", 25, "start before the first word arrives"),
            ),
        ),
        ("STREAM2", 0x2008, "Stream processing delta", _STREAM_DELTA_FIELDS),
        ("FMAX", 0x2010, "Rollover", (Field("words", 0, 18, "words of the ring buffer"),)),
    )
)
