"""The register map of the accelerator: each register once, with its named bit fields.

`Register.pack` builds a word from field values by name, `Register.unpack` takes one apart; the
network loader, the log, the documentation and the emulator all use these declarations.
Source: spec/registers.md sections 2.1, 4, 5.1 and 6.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


class FieldOverflowError(ValueError):
    """A value does not fit the bits of its field; holds register, field, value and limit."""

    def __init__(self, register: str, name: str, value: int, limit: int) -> None:
        super().__init__(f"{register}.{name} is {value}, the register field holds 0 to {limit}")
        self.register = register
        self.field = name
        self.value = value
        self.limit = limit


@dataclass(frozen=True, slots=True)
class Field:
    """Bits `low` to `low + width - 1` of a register and what they mean."""

    name: str
    low: int
    width: int
    meaning: str

    @property
    def limit(self) -> int:
        """Largest value that fits."""
        return (1 << self.width) - 1

    def pack(self, value: int, register: str = "") -> int:
        """Return the word with `value` in this field and zeros elsewhere."""
        if not 0 <= value <= self.limit:
            raise FieldOverflowError(register, self.name, value, self.limit)
        return int(value) << self.low

    def unpack(self, word: int) -> int:
        """Return the value this field has in `word`."""
        return word >> self.low & self.limit


@dataclass(frozen=True, slots=True)
class Register:
    """A 32-bit register: its number in the chip's numbering and its fields.

    Fields may overlap where the hardware gives bits a second meaning; packing ORs them.
    """

    name: str
    number: int
    meaning: str
    fields: tuple[Field, ...] = ()
    by_name: Mapping[str, Field] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_name", {f.name: f for f in self.fields})

    def pack(self, **values: int) -> int:
        """Return the word with the named fields set and all other bits zero.

        Raises FieldOverflowError if a value does not fit, KeyError for an unknown field.
        """
        word = 0
        for name, value in values.items():
            word |= self.by_name[name].pack(value, self.name)
        return word

    def unpack(self, word: int) -> dict[str, int]:
        """Return every field's value in `word`."""
        return {f.name: f.unpack(word) for f in self.fields}


def _flag(name: str, bit: int, meaning: str) -> Field:
    return Field(name, bit, 1, meaning)


# Group control registers (section 5.1); numbers that differ between the chips are filled in below.
_CONTROL_FIELDS = (
    _flag("enable", 0, "run; in the master group: start"),
    Field("ready_select", 1, 2, "memory wait states"),
    _flag("clock_enable", 3, "clock of the group"),
    _flag("external_ready", 4, "external ready signal"),
    _flag("pipeline_off", 5, "MAX78002: no pipeline"),
    _flag("stream_chw", 6, "MAX78002: the start layer streams planar data"),
    _flag("snoop", 7, "snoop registers in use"),
    _flag("one_shot", 8, "stop after each layer"),
    Field("master", 9, 2, "group that synchronizes the others"),
    _flag("external_sync", 11, "synchronized by another group"),
    _flag("done", 12, "interrupt: the network has finished"),
    _flag("average_rounding", 13, "average pooling rounds to nearest"),
    _flag("streaming", 14, "some layer streams"),
    _flag("fifo", 15, "input comes from the FIFO"),
    _flag("mlator", 16, "byte transposing read port"),
    Field("mlator_lane", 17, 2, "byte lane of the transposing read port"),
    _flag("fifo_streaming", 19, "FIFO input with streaming layers"),
    _flag("express", 20, "packed kernel writes"),
    _flag("simple_1bit", 21, "1-bit weights are combined by XOR"),
    _flag("fast_fifo", 22, "the fast FIFO feeds this group"),
    _flag("fast_fifo_group", 23, "fast FIFO group mode"),
    _flag("binary", 30, "1-bit weights mean -1 and +1"),
    _flag("fifo_quad", 31, "one FIFO word for all groups"),
)

_LAYER_COUNT_FIELDS = (
    Field("last", 0, 8, "last hardware layer"),
    Field("first", 8, 8, "first hardware layer"),
)


SNOOP_REGISTERS = tuple(
    f"SNP{unit}_{name}"
    for unit in (1, 2)
    for name in ("A1", "A2", "D1", "D2", "X1", "X2", "C1", "C2", "ACC", "HIT", "MAX", "AM")
)
"""Registers of conditional execution, in the order of the description's `snoop` list."""
SNOOP_RESULTS = tuple(
    f"SNP{unit}_{name}" for unit in (1, 2) for name in ("ACC", "HIT", "MAX", "AM")
)
"""Those that hold results; the rest of the `snoop` list gives the values expected there."""


def control_registers(
    frame_size_number: int, mlator_number: int, snoop_number: int | None = None
) -> dict[str, Register]:
    """Return the group control registers by name; some numbers differ between the chips."""
    registers = (
        Register("CTL", 0, "Control", _CONTROL_FIELDS),
        Register("SRAM", 1, "SRAM control", (Field("value", 0, 32, "timing of the memories"),)),
        Register("LCNT_MAX", 2, "Layer count", _LAYER_COUNT_FIELDS),
        Register("SRAM_TEST", 3, "Memory test", (Field("value", 0, 32, "self test"),)),
        Register(
            "IFRM", frame_size_number, "Input frame size", (Field("size", 0, 22, "FIFO words"),)
        ),
        Register("MLAT", mlator_number, "Transposing read port", (Field("value", 0, 32, "bytes"),)),
    )
    found = {r.name: r for r in registers}
    if snoop_number is not None:
        for i, name in enumerate(SNOOP_REGISTERS):
            fields = (Field("value", 0, 32, "raw value"),)
            found[name] = Register(name, snoop_number + i, f"Snoop {name}", fields)
    return found


# Fields of the per-layer registers that both chips share.
_WRITE_OFFSET = (Field("words", 0, 21, "distance in words"),)
_ENABLE_FIELDS = (
    Field("processors", 0, 16, "processors that take part"),
    Field("kernels", 16, 16, "processors that read kernels"),
)
_POST_FIELDS = (
    Field("bias_offset", 0, 12, "first byte in the bias memory of the group"),
    _flag("bias", 12, "this group adds the bias"),
    Field("shift", 13, 4, "output shift, magnitude"),
    _flag("shift_right", 17, "the output shift goes to the right"),
    Field("flatten_high", 18, 4, "passes of a flattened layer, bits 7:4"),
    Field("weight_size", 22, 2, "weights: 0 8-bit, 1 1-bit, 2 2-bit, 3 4-bit"),
    _flag("time_slots", 24, "pass-through or depth-wise: one output per time slot"),
    _flag("one_by_one", 25, "pass-through of one operand"),
    _flag("absolute", 26, "activation Abs"),
    _flag("flatten", 27, "flattened layer of 16 passes or more"),
    _flag("transposed", 28, "transposed convolution"),
    _flag("calcx4", 29, "four outputs at a time"),
    _flag("depthwise", 30, "depth-wise convolution"),
    _flag("tcalc", 31, "calculate with the transposed order"),
)
_ONED_FIELDS = (
    Field("time_slots", 0, 4, "time slots of a pixel, less one"),
    Field("kernel_remainder", 4, 4, "bytes before the first kernel in its first column"),
    Field("kernel_length", 8, 4, "Conv1d: taps; 1 also marks a 1x1 kernel"),
    _flag("conv1d", 12, "one-dimensional convolution"),
    _flag("elementwise", 13, "several operands are combined"),
    Field("operation", 14, 2, "combination: 0 sub, 1 add, 2 or, 3 xor"),
    _flag("pool_first", 16, "operands are pooled before they are combined"),
    _flag("elementwise_convolution", 17, "a convolution follows the combination"),
    Field("operands", 18, 4, "operands less one"),
)
_LAYER_CONTROL_FIELDS = (
    _flag("always", 5, "always set"),
    _flag("chw", 6, "planar input"),
    _flag("pool", 7, "pooling"),
    _flag("max_pool", 8, "maximum instead of average"),
    _flag("relu", 9, "activation ReLU"),
    _flag("shared_output", 11, "outputs go to the memories of all groups"),
    Field("sources", 12, 4, "other groups that contribute to this one's sums"),
    _flag("wide", 16, "32-bit output"),
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
    _flag("padded", 15, "pad is not zero"),
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
                _flag("jump", 7, "jump to that layer"),
                _flag("stop", 8, "stop after this layer"),
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
                _flag("read_ahead", 17, "read ahead"),
                Field("kernel_columns", 18, 4, "kernel columns less one"),
                Field("kernel_rows", 22, 4, "kernel rows less one"),
                Field("shift_count", 26, 4, "read-ahead: passes less one"),
                _flag("depthwise_broadcast", 29, "depth-wise, output map equals input map"),
                _flag("bypass", 30, "all kernels are one"),
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
                _flag("fifo_go", 25, "start before the first word arrives"),
            ),
        ),
        ("STREAM2", 0x2008, "Stream processing delta", _STREAM_DELTA_FIELDS),
        ("FMAX", 0x2010, "Rollover", (Field("words", 0, 18, "words of the ring buffer"),)),
    )
)
