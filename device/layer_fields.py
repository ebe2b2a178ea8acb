"""Fields of the layer registers that both chips have, and what each register is for.

Source: docs/hardware/registers.md, "Layer registers, field by field"; docs/hardware/streaming.md,
"Registers".
"""

from __future__ import annotations

from device.fields import Field, flag

ABOUT = {
    "NXTLYR": "Where execution continues after this layer. With 0 the next layer follows. The last "
    "layer of the network is named by LCNT_MAX and needs no `stop`.",
    "RCNT": "How many rows of the input the layer steps through, and the padding above and below.",
    "CCNT": "How many columns of the input the layer steps through, and the padding on both sides.",
    "ONED": "One-dimensional and 1x1 kernels, combination of operands, time slots.",
    "PRCNT": "Height of the pooling window. 0 without pooling.",
    "PCCNT": "Width of the pooling window. 0 without pooling.",
    "STRIDE": "Step from one pooling window to the next, the same for rows and columns.",
    "WPTR_BASE": "First word that this group writes. The data memory instance is counted over the "
    "whole chip: instance n belongs to processors 4n to 4n + 3.",
    "WPTR_TOFFS": "Distance, in the address space of WPTR_BASE, from one time slot to the next.",
    "WPTR_MOFFS": "Distance, in the address space of WPTR_BASE, from one data memory instance to "
    "the next. The write pointer moves by it after every four outputs.",
    "WPTR_CHOFFS": "Distance from one output pass to the next.",
    "RPTR_BASE": "First word of the input. It is the same in the data memory instance of every "
    "processor that takes part.",
    "LCTL": "Input format, pooling kind, activation, sources of the sums, output width.",
    "LCTL2": "Number of input passes, distance of output words, number of outputs.",
    "MCNT": "First and last kernel of the layer in the kernel memory of each processor. Both count "
    "in units of 1/8 of a kernel of 8-bit weights.",
    "MCNT1": "Last kernel of the layer, in the unit of MCNT2.",
    "MCNT2": "First kernel of the layer in the kernel memory of each processor, in units of 1/8 of "
    "a kernel of 8-bit weights.",
    "OCHAN": "Number of outputs that are computed.",
    "TPTR": "Part of the line buffer (TRAM) of each processor in which the layer keeps the rows "
    "that its kernel still needs. Flattened layers of 16 passes or more count passes here.",
    "ENA": "Processors of the group that take part. A layer in which ENA is 0 in every group does "
    "nothing.",
    "POST": "Everything after the sum of products: bias, output shift, weight width, activation; "
    "and the kind of the layer.",
    "STREAM1": "When a streaming layer starts. 0 for layers that do not stream.",
    "STREAM2": "How far a streaming layer lags behind the layer that feeds it.",
    "FMAX": "Size of the ring buffer from which a streaming layer reads. Written for streaming "
    "layers only.",
}
"""What each register is for, for both chips."""

STREAM_RULE = "see [Streaming](streaming.md#registers)"
WINDOW_RULE = "(window - 1) x pool dilation"

ENABLE_FIELDS = (
    Field("processors", 0, 16, "processors that take part", "the 16 bits of P for this group"),
    Field(
        "kernels",
        16,
        16,
        "processors that read kernels",
        "the same; 0 for pass-through and bypass layers",
    ),
)
POST_FIELDS = (
    Field(
        "bias_offset",
        0,
        12,
        "first byte in the bias memory of the group",
        "divided by 4 for calcx4 and depth-wise broadcast layers",
    ),
    flag(
        "bias",
        12,
        "this group adds the bias",
        "1 in the one group that holds the layer's bias; depth-wise and quad: in every group that "
        "holds some of it",
    ),
    Field("shift", 13, 4, "output shift, magnitude", "|output shift|, 0 to 15"),
    flag("shift_right", 17, "the output shift goes to the right", "1 if the shift is negative"),
    Field(
        "flatten_high",
        18,
        4,
        "passes of a flattened layer, bits 7:4",
        "flattened passes of 16 or more: (passes - 1) >> 4",
    ),
    Field("weight_size", 22, 2, "weights: 0 8-bit, 1 1-bit, 2 2-bit, 3 4-bit", "binary: 1"),
    flag("time_slots", 24, "pass-through or depth-wise: one output per time slot"),
    flag("one_by_one", 25, "pass-through of one operand"),
    flag("absolute", 26, "activation Abs"),
    flag("flatten", 27, "flattened layer of 16 passes or more", "1 if passes - 1 is 16 or more"),
    flag("transposed", 28, "transposed convolution"),
    flag("calcx4", 29, "four outputs at a time", "MAX78002"),
    flag("depthwise", 30, "depth-wise convolution", "MAX78002"),
    flag("tcalc", 31, "order of calculation for reading ahead", "MAX78002; see read-ahead"),
)
ONED_FIELDS = (
    Field(
        "time_slots",
        0,
        4,
        "time slots of a pixel, less one",
        "see [Time slots](execution.md#time-slots)",
    ),
    Field(
        "kernel_remainder",
        4,
        4,
        "bytes before the first kernel in its first column",
        "(9 x first column) mod kernel size; 0 for pass-through layers",
    ),
    Field(
        "kernel_length",
        8,
        4,
        "Conv1d: taps; 1 also marks a 1x1 kernel",
        "Conv1d: kernel length. 1x1 kernels (convolution, linear) and pass-through layers of one "
        "operand: 1. All others: 0",
    ),
    flag("conv1d", 12, "one-dimensional convolution"),
    flag("elementwise", 13, "several operands are combined", "1 with 2 or more operands"),
    Field("operation", 14, 2, "combination: 0 sub, 1 add, 2 or, 3 xor"),
    flag(
        "pool_first",
        16,
        "operands are pooled before they are combined",
        "1 with several operands, pooling, and pooling first",
    ),
    flag(
        "elementwise_convolution",
        17,
        "a convolution follows the combination",
        "1 with several operands unless the layer is pass-through",
    ),
    Field("operands", 18, 4, "operands less one", "0 to 15"),
)
LAYER_CONTROL_FIELDS = (
    flag("always", 5, "always set", "1 in every layer"),
    flag("chw", 6, "planar input", "1 for CHW input, first layer only"),
    flag("pool", 7, "pooling", "1 if the window is larger than 1 in one direction"),
    flag("max_pool", 8, "maximum instead of average", "0 for average pooling, else 1"),
    flag("relu", 9, "activation ReLU"),
    flag(
        "shared_output",
        11,
        "outputs go to the memories of all groups",
        "1; 0 only where the outputs of a group are at uneven distances (or, pass-through, at "
        "any distance), which is not known to work",
    ),
    Field(
        "sources",
        12,
        4,
        "other groups that contribute to this one's sums",
        "in the first used group: bit g for every other group g that has processors of the layer "
        "or its bias. 0 in other groups, and for pass-through, depth-wise and quad layers",
    ),
    flag("wide", 16, "32-bit output"),
)
STREAM_DELTA_FIELDS = (
    Field(
        "passes_before",
        0,
        4,
        "passes of the layers before",
        "input passes of all earlier layers together; 0 in the first layer",
    ),
    Field("delta1", 4, 5, "data words between two steps in a row", STREAM_RULE),
)


def counter_fields(what: str) -> tuple[Field, ...]:
    """Return the fields of RCNT or CCNT on MAX78000."""
    return (
        Field("last", 0, 10, f"last {what}", f"{what}s + 2 x pad - 1"),
        Field("pad", 16, 2, f"pad {what}s", "0, 1 or 2"),
    )


def last_output(low: int, width: int) -> Field:
    """Return the field that counts the outputs of a pass."""
    rule = (
        "(highest bit of O - lowest bit of O rounded down to a multiple of 4) x kernel unit; "
        "pass-through: 0"
    )
    return Field("last_output", low, width, "last output kernel, in weight bits", rule)


def write_step(width: int) -> Field:
    """Return the field with the distance of the output words of two pixels."""
    rule = "output passes x (gap + 1) - 1; pass-through: gap"
    return Field("write_step", 4, width, "output words from pixel to pixel, less one", rule)


PASSES = Field(
    "passes",
    0,
    4,
    "input passes less one",
    "flattened layers: the low four bits of passes - 1; 0 where passes are taken for rows",
)


def line_fields(width: int) -> tuple[Field, ...]:
    """Return the fields of TPTR."""
    rule = "see [Line buffers](execution.md#line-buffers)"
    return (
        Field("last", 0, width, "last word", rule),
        Field("first", 16, width, "first word", rule),
    )


def only_field(width: int, meaning: str, rule: str, name: str = "words") -> tuple[Field, ...]:
    """Return the only field of a register, from bit 0."""
    return (Field(name, 0, width, meaning, rule),)


def write_pointer(width: int) -> tuple[Field, ...]:
    """Return the field of WPTR_BASE."""
    rule = "see [Write pointers](execution.md#write-pointers)"
    return only_field(width, "instance and word", rule, "pointer")


def channel_offset(width: int) -> tuple[Field, ...]:
    """Return the field of WPTR_CHOFFS."""
    return only_field(
        width,
        "distance in words",
        "width words x (gap + 1) if there are several output passes, else 0",
    )


def read_pointer(width: int) -> tuple[Field, ...]:
    """Return the field of RPTR_BASE."""
    return only_field(width, "first word of the input", "in_offset / 4", "word")


TIME_SLOT_OFFSET = only_field(
    21,
    "distance in words",
    "convolution or linear layer with a 1x1 kernel: 1. Depth-wise, not broadcast: 0x2000 "
    "(MAX78002: 0x8000). Pass-through: 0x2000 (0x8000) with more than four processors, or with "
    "several operands and several passes; else 0x800 (0x2000). All others: 0",
)
INSTANCE_OFFSET = only_field(
    21, "distance in words", "0x2000 (MAX78002: 0x8000); not written for pass-through layers"
)
