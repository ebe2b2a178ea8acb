"""Registers that every layer has in every group, as each chip numbers them.

Source: docs/hardware/registers.md, "Lists".
"""

from __future__ import annotations

from collections.abc import Sequence

from device.fields import Field, Register, flag
from device.layer_fields import (
    ABOUT,
    ENABLE_FIELDS,
    INSTANCE_OFFSET,
    LAYER_CONTROL_FIELDS,
    ONED_FIELDS,
    PASSES,
    POST_FIELDS,
    STREAM_DELTA_FIELDS,
    STREAM_RULE,
    TIME_SLOT_OFFSET,
    WINDOW_RULE,
    channel_offset,
    counter_fields,
    last_output,
    line_fields,
    only_field,
    read_pointer,
    write_pointer,
    write_step,
)


def _layer_registers(
    rows: Sequence[tuple[str, int, str, tuple[Field, ...]]],
) -> dict[str, Register]:
    return {
        name: Register(name, number, meaning, fields, ABOUT[name])
        for name, number, meaning, fields in rows
    }


MAX78000_LAYER_REGISTERS = _layer_registers(
    (
        ("RCNT", 0, "Rows", counter_fields("row")),
        ("CCNT", 1, "Columns", counter_fields("column")),
        ("ONED", 2, "1D", ONED_FIELDS),
        ("PRCNT", 3, "Pooling rows", only_field(4, "last row of the window", "window - 1", "last")),
        (
            "PCCNT",
            4,
            "Pooling columns",
            only_field(4, "last column of the window", "window - 1", "last"),
        ),
        (
            "STRIDE",
            5,
            "Stride",
            only_field(4, "stride less one", "pool stride - 1; transposed: 0", "stride"),
        ),
        (
            "WPTR_BASE",
            6,
            "SRAM write ptr",
            write_pointer(17),
        ),
        (
            "WPTR_TOFFS",
            7,
            "Write ptr time slot offs",
            TIME_SLOT_OFFSET,
        ),
        ("WPTR_MOFFS", 8, "Write ptr mask offs", INSTANCE_OFFSET),
        (
            "WPTR_CHOFFS",
            9,
            "Write ptr multi-pass channel offs",
            channel_offset(4),
        ),
        (
            "RPTR_BASE",
            10,
            "SRAM read ptr",
            read_pointer(17),
        ),
        ("LCTL", 11, "Layer control", LAYER_CONTROL_FIELDS),
        (
            "MCNT",
            12,
            "Mask offset and count",
            (
                Field(
                    "last",
                    0,
                    16,
                    "last kernel",
                    "first + (kernel count - 1) x kernel unit; pass-through: "
                    "(output passes - 1) x 8, or 0 where passes are taken for rows",
                ),
                Field(
                    "first",
                    16,
                    16,
                    "first kernel",
                    "8 x ((9 x first column) // kernel size); pass-through: 0",
                ),
            ),
        ),
        ("TPTR", 13, "TRAM ptr max", line_fields(12)),
        ("ENA", 14, "Mask and processor enables", ENABLE_FIELDS),
        ("POST", 15, "Post processing register", POST_FIELDS),
        (
            "STREAM1",
            16,
            "Stream processing start",
            only_field(14, "data words before the layer starts", STREAM_RULE, "start"),
        ),
        (
            "STREAM2",
            17,
            "Stream processing delta",
            (
                *STREAM_DELTA_FIELDS,
                Field("delta2", 16, 12, "data words between two rows", STREAM_RULE),
            ),
        ),
        ("FMAX", 18, "Rollover", only_field(17, "words of the ring buffer", STREAM_RULE)),
        ("LCTL2", 20, "Layer control 2", (PASSES, write_step(4), last_output(8, 24))),
    )
)


def _counter_fields_by_step(what: str, skip: str) -> tuple[Field, ...]:
    """Rows or columns on MAX78002."""
    return (
        Field(
            "last",
            0,
            11,
            "last row or column fetched",
            f"first {what} of the last window: ({what}s - 1 - (window - 1) x pool dilation) // "
            "pool stride x pool stride",
        ),
        Field("pad", 13, 2, "pad less one", "pad - 1; 0 without padding"),
        flag("padded", 15, "pad is not zero", "1 with padding"),
        Field("skip", 16, 16, "words skipped at the end", skip),
    )


def _pool_fields_by_step(what: str) -> tuple[Field, ...]:
    return (
        Field("last", 0, 4, f"last {what} of the window", WINDOW_RULE),
        Field("dilation", 4, 4, "dilation less one", "pool dilation - 1"),
    )


_SKIPPED_ROWS = (
    "(r + (pool stride - 1) x columns) x (read gap + 1) x operands x input passes, with r = 1 for "
    "Conv1d, else r = CCNT.skip"
)

MAX78002_LAYER_REGISTERS = _layer_registers(
    (
        (
            "NXTLYR",
            0,
            "Next Layer",
            (
                Field("layer", 0, 7, "layer to jump to"),
                flag(
                    "jump", 7, "jump to that layer", "1 if the layer that follows is not the next"
                ),
                flag("stop", 8, "stop after this layer", "1 to end the network here"),
            ),
        ),
        ("RCNT", 1, "Rows", _counter_fields_by_step("row", _SKIPPED_ROWS)),
        ("CCNT", 2, "Columns", _counter_fields_by_step("column", "columns - last")),
        ("ONED", 3, "1D", ONED_FIELDS),
        ("PRCNT", 4, "Pooling rows", _pool_fields_by_step("row")),
        ("PCCNT", 5, "Pooling columns", _pool_fields_by_step("column")),
        (
            "STRIDE",
            6,
            "Stride",
            (
                Field("stride", 0, 4, "stride less one", "pool stride - 1; transposed: 0"),
                Field(
                    "words",
                    4,
                    28,
                    "words from one step to the next",
                    "pool stride x operands x input passes x (read gap + 1)",
                ),
            ),
        ),
        (
            "WPTR_BASE",
            7,
            "SRAM write ptr",
            write_pointer(21),
        ),
        (
            "WPTR_TOFFS",
            8,
            "Write ptr time slot offs",
            TIME_SLOT_OFFSET,
        ),
        ("WPTR_MOFFS", 9, "Write ptr mask offs", INSTANCE_OFFSET),
        (
            "WPTR_CHOFFS",
            10,
            "Write ptr multi-pass channel offs",
            channel_offset(8),
        ),
        (
            "RPTR_BASE",
            11,
            "SRAM read ptr",
            read_pointer(21),
        ),
        (
            "LCTL",
            12,
            "Layer control",
            (
                *LAYER_CONTROL_FIELDS,
                flag("read_ahead", 17, "read ahead"),
                Field(
                    "kernel_columns", 18, 4, "kernel columns less one", "0 for pass-through layers"
                ),
                Field("kernel_rows", 22, 4, "kernel rows less one", "0 for pass-through layers"),
                Field(
                    "shift_count",
                    26,
                    4,
                    "read-ahead: passes less one",
                    "with read-ahead: input passes - 1; with tcalc (input passes - 1) // 4. Its "
                    "top bit is also `depthwise_broadcast`",
                ),
                flag("depthwise_broadcast", 29, "depth-wise, output map equals input map"),
                flag("bypass", 30, "all kernels are one"),
            ),
        ),
        ("LCTL2", 13, "Layer control 2", (PASSES, write_step(8), last_output(12, 20))),
        (
            "MCNT1",
            14,
            "Mask count",
            only_field(
                19,
                "last kernel",
                "MCNT2.first + (kernel count - 1) x kernel unit; in the first layer, with calcx4, "
                "a quarter of kernel count x kernel unit, rounded up; not written for pass-through "
                "layers",
                "last",
            ),
        ),
        (
            "MCNT2",
            15,
            "Mask offset",
            only_field(
                19,
                "first kernel",
                "8 x ((9 x first column) // kernel size); calcx4 see "
                "[Four outputs at a time](memory.md#four-outputs-at-a-time); pass-through: "
                "(output passes - 1) x 8",
                "first",
            ),
        ),
        (
            "OCHAN",
            16,
            "Output channel count",
            only_field(
                16,
                "kernels less one",
                "kernel count - 1; calcx4 (kernel count - 1) // 4; bypass: output channels - 1; "
                "depth-wise: (ONED.time_slots + 1) x input passes - 1; pass-through: "
                "ONED.time_slots",
                "last",
            ),
        ),
        ("TPTR", 17, "TRAM ptr max", line_fields(14)),
        ("ENA", 18, "Mask and processor enables", ENABLE_FIELDS),
        ("POST", 19, "Post processing register", POST_FIELDS),
        (
            "STREAM1",
            0x2000,
            "Stream processing start",
            (
                *only_field(15, "data words before the layer starts", STREAM_RULE, "start"),
                flag("fifo_go", 25, "start before the first word arrives"),
            ),
        ),
        (
            "STREAM2",
            0x2008,
            "Stream processing delta",
            (
                *STREAM_DELTA_FIELDS,
                Field("delta2", 16, 14, "data words between two rows", STREAM_RULE),
            ),
        ),
        ("FMAX", 0x2010, "Rollover", only_field(18, "words of the ring buffer", STREAM_RULE)),
    )
)
