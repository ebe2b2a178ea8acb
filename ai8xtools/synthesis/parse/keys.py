"""The language: every key once, with aliases, kind of value, default and a sentence.

Parsing, "did you mean" and the reference documentation are derived from these tables.
Source: docs/network-description.md, "Global keys" and "Keys of a layer".
"""

from __future__ import annotations

from dataclasses import replace

from ai8xtools.synthesis.facts import Fact, Facts
from ai8xtools.synthesis.network import Activation, Combination, Operator
from ai8xtools.synthesis.parse.kinds import (
    Choice,
    Flag,
    Integer,
    Integers,
    KernelSize,
    Kind,
    Mask,
    Pair,
    Reference,
    Text,
)
from ai8xtools.values import frozen

STOP = -1
INPUT = -1


@frozen
class Key:
    """A key of the language. `default` and `sentence` are for readers of the documentation.

    If the value of a layer's key cannot be used, the facts `blocks` are not known.
    """

    name: str
    kind: Kind
    sentence: str
    default: str = ""
    aliases: tuple[str, ...] = ()
    required: bool = False
    limits: Kind | None = None
    """What some operator on some chip can use, if the parser leaves more to later rules."""
    unlimited: Kind | None = None
    """What is accepted where no limits of a chip hold, if that is more."""
    blocks: Facts = Fact.SIZES

    @property
    def accepts(self) -> Kind:
        """Text for readers and editors."""
        return self.limits or self.kind

    @property
    def spellings(self) -> tuple[str, ...]:
        """All names under which the key may stand in a file."""
        return (self.name, *self.aliases)


OPERATIONS: dict[str | int, tuple[Operator, Combination | None]] = {
    "conv1d": (Operator.CONV1D, None),
    "conv2d": (Operator.CONV2D, None),
    "convtranspose2d": (Operator.CONVTRANSPOSE2D, None),
    "linear": (Operator.LINEAR, None),
    "fc": (Operator.LINEAR, None),
    "mlp": (Operator.LINEAR, None),
    "none": (Operator.NONE, None),
    "passthrough": (Operator.NONE, None),
    "add": (Operator.NONE, Combination.ADD),
    "sub": (Operator.NONE, Combination.SUB),
    "or": (Operator.NONE, Combination.OR),
    "bitwiseor": (Operator.NONE, Combination.OR),
    "bitwise_or": (Operator.NONE, Combination.OR),
    "xor": (Operator.NONE, Combination.XOR),
    "bitwisexor": (Operator.NONE, Combination.XOR),
    "bitwise_xor": (Operator.NONE, Combination.XOR),
}
_NEXT = Reference({"stop": STOP})
_SOURCES = Reference({"input": INPUT}, several=True)

LAYER_KEYS = (
    Key("name", Text(), "Name by which other layers refer to this one.", "none", blocks=()),
    Key(
        "sequence",
        Integer(0),
        "Slot of the layer in the list.",
        "the previous slot + 1",
        blocks=Fact.LAYERS,
    ),
    Key("next_sequence", _NEXT, "Layer executed after this one, or stop.", "the next slot"),
    Key("simulated_sequence", _NEXT, "Order of the simulation only.", "next_sequence"),
    Key("snoop_sequence", Integer(0), "Layer that follows when a snoop condition hits.", blocks=()),
    Key(
        "processors",
        Mask(),
        "Processors that hold the input channels.",
        required=True,
        blocks=Fact.PLACES,
    ),
    Key(
        "output_processors",
        Mask(),
        "Processors that receive the output channels.",
        "processors of the next layer",
        blocks=Fact.PLACES,
    ),
    Key(
        "in_offset",
        Integer(0),
        "Byte offset of the input data.",
        "the previous out_offset",
        blocks=Fact.PLACES,
    ),
    Key(
        "out_offset",
        Integer(0),
        "Byte offset of the output data.",
        "0",
        limits=Integer(0, 0x4FFFF),
        blocks=Fact.PLACES,
    ),
    Key("in_channels", Integer(1), "Input channels.", "from the weights"),
    Key("in_dim", Pair(1, second=1), "Input size, to reshape data.", "from the previous layer"),
    Key("in_crop", Pair(0), "Rows dropped before and after.", "[0, 0]"),
    Key("in_sequences", _SOURCES, "Where the input comes from.", "the previous layer"),
    Key("read_gap", Integer(0), "Words skipped between input words.", "0", ("in_skip",)),
    Key(
        "in_channel_skip",
        Integer(0),
        "Input channels skipped with --reshape-inputs.",
        "0",
        blocks=(),
    ),
    Key("out_channels", Integer(1), "Output channels.", "from the weights"),
    Key(
        "data_format",
        Choice({"hwc": False, "little": False, "chw": True, "big": True}),
        "Layout of the first layer's input: HWC (four channels a word) or CHW (four pixels).",
        "HWC",
    ),
    Key(
        "op",
        Choice(OPERATIONS),
        "Main operation.",
        "Conv2d",
        ("operation", "operator", "convolution"),
    ),
    Key(
        "eltwise",
        Choice({c.value: c for c in Combination}),
        "Element-wise combination in front of the operation.",
        "none",
    ),
    Key("operands", Integer(2, 16), "Operands of the element-wise combination.", "2"),
    Key("pool_first", Flag(), "Pool the operands before they are combined.", "true"),
    Key("kernel_size", KernelSize(), "Size of the kernel.", "3x3, Conv1d 9, Linear 1x1"),
    Key(
        "stride",
        Pair(1, 16),
        "Stride of the operation: 2 for ConvTranspose2d, else 1.",
        "1, ConvTranspose2d 2",
        limits=Pair(1, 2),
        unlimited=Pair(1),
    ),
    Key(
        "pad",
        Pair(0),
        "Padding on each side, less than the kernel.",
        "1 for convolutions, else 0",
        limits=Pair(0, 2),
    ),
    Key(
        "dilation",
        Pair(1),
        "Distance of the kernel's taps, in a Conv1d.",
        "1",
        limits=Pair(1, 2047),
    ),
    Key("max_pool", Pair(1, 16), "Window of maximum pooling.", "1", unlimited=Pair(1)),
    Key("avg_pool", Pair(1, 16), "Window of average pooling.", "1", unlimited=Pair(1)),
    Key(
        "pool_stride",
        Pair(1, 16),
        "Stride of pooling, or plain decimation.",
        "1",
        unlimited=Pair(1),
    ),
    Key("pool_dilation", Pair(1, 16), "Distance of the window's taps.", "1", unlimited=Pair(1)),
    Key(
        "output_pad",
        Pair(0),
        "Output padding: 1 for ConvTranspose2d, else 0.",
        "1 for ConvTranspose2d, else 0",
        limits=Pair(0, 1),
    ),
    Key(
        "activate",
        Choice({"relu": Activation.RELU, "abs": Activation.ABS, "none": None}),
        "Activation function.",
        "none",
        ("activation",),
        blocks=(),
    ),
    Key(
        "quantization",
        Choice({1: 1, 2: 2, 4: 4, 8: 8, "bin": -1, "binary": -1}),
        "Bits of a weight.",
        "from the checkpoint",
        blocks=(),
    ),
    Key(
        "output_shift",
        Integer(),
        "Left shift of the sums. Limits: 8-bit weights -15 and 15; 4, 6, 7 less for 4, 2, 1 bits.",
        "from the checkpoint",
        limits=Integer(-22, 15),
        blocks=(),
    ),
    Key("output_width", Choice({8: 8, 32: 32}), "Bits of an output value.", "8", blocks=()),
    Key("groups", Integer(1), "Convolution groups.", "1", ("conv_groups",)),
    Key("flatten", Flag(), "Turn C x H x W into C*H*W channels.", "false"),
    Key("streaming", Flag(), "Work on rows as they arrive.", "false"),
    Key(
        "write_gap",
        Integer(0),
        "Words skipped after each output word.",
        "0",
        blocks=Fact.PLACES,
    ),
    Key(
        "bias_group",
        Integers(0, 3),
        "Groups that may hold the bias.",
        "any",
        ("bias_quadrant",),
        blocks=(),
    ),
    Key(
        "output",
        Flag(),
        "Check and deliver this layer's output.",
        "the final layer only",
        blocks=(),
    ),
    Key(
        "exit_margin",
        Integer(1, (1 << 31) - 1),
        "The network ends here if the largest value exceeds the second by at least so much.",
        "none",
        blocks=(),
    ),
    Key(
        "weights",
        Text(),
        "Name of the layer in the checkpoint: that of its tensors, without .weight or .op.weight.",
        "the next tensors of the file",
        blocks=(),
    ),
    Key("zero_outputs", Integer(1), "Outputs that are zero, behind those of the weights.", "0"),
    Key(
        "copy_channels",
        Integers(0, 1023, count=2),
        "Instead of weights: kernels that copy channels of the input (first, number of them).",
        "none",
        blocks=Fact.LAYERS,
    ),
    Key("weight_source", Reference({}), "Layer whose weights are used again.", blocks=Fact.LAYERS),
    Key(
        "kernel_offset",
        Integer(0),
        "First column of the kernels, a multiple of 4.",
        "the lowest that is free",
        blocks=(),
    ),
    Key(
        "in_place",
        Flag(),
        "The output may overwrite input that has been read by then.",
        "false",
        blocks=(),
    ),
    Key("bypass", Flag(), "All kernels are one.", "false", blocks=Fact.LAYERS),
    Key("calcx4", Flag(), "Four outputs at a time.", "false"),
    Key("readahead", Flag(), "Read ahead.", "false", blocks=()),
    Key("tcalc", Flag(), "Order of calculation.", "with readahead and several passes", blocks=()),
    Key("buffer_shift", Integer(1), "Entries a rolling buffer is shifted by."),
    Key("buffer_insert", Integer(1), "Entries inserted into a rolling buffer."),
)

UNLOAD_KEYS = (
    Key("processors", Mask(), "Processors that hold the channels.", required=True),
    Key("channels", Integer(1), "Channels.", required=True),
    Key("dim", Pair(1, second=1), "Size.", required=True),
    Key("offset", Integer(0), "Byte offset of the data.", required=True),
    Key("width", Choice({8: 8, 32: 32}), "Bits of a value.", "8"),
    Key("write_gap", Integer(0), "Words skipped between words.", "0"),
)

DATA_BUFFER_KEYS = (
    Key("name", Text(), "Name by which layers refer to the buffer.", required=True),
    Key("processors", Mask(), "Processors that hold the channels.", required=True),
    Key("channels", Integer(1), "Channels.", required=True),
    Key("dim", Pair(1, second=1), "Entries and width.", required=True),
    Key("offset", Integer(0), "Byte offset of the data.", required=True),
    Key("width", Choice({8: 8, 32: 32}), "Bits of a value.", "8"),
)

GLOBAL_KEYS = (
    Key("arch", Text(), "Model name, or test for NumPy weights.", required=True, blocks=()),
    Key("dataset", Text(numbers=True), "Name of the sample file.", required=True),
    Key("output_map", Mask(), "Output processors of the final layer."),
    Key("bias", Text(numbers=True), "Name of the test bias file."),
    Key("weights", Text(numbers=True), "Name of the test weights file."),
    Key(
        "input_port",
        Choice({"memory": False, "fifo": True}),
        "How the sample arrives: loaded into memory, or through a FIFO.",
        "as --fifo says",
    ),
    Key("snoop", Integers(0, (1 << 32) - 1, count=32), "Registers of conditional execution."),
)

NESTED_KEYS = {"unload": UNLOAD_KEYS, "data_buffer": DATA_BUFFER_KEYS}
"""Global keys whose value is a list of mappings."""

LAYOUT_KEYS = frozenset({
    "processors", "output_processors", "in_offset", "out_offset", "offset", "read_gap", "write_gap",
    "data_format", "streaming", "bias_group", "calcx4", "readahead", "tcalc", "snoop_sequence",
    "kernel_offset", "in_place", "input_port",
})  # fmt: skip
"""Keys that fix memory and processors and change nothing of what is computed."""


def without_limits(keys: tuple[Key, ...]) -> tuple[Key, ...]:
    """Return the keys with what they accept where no limits of a chip hold."""
    return tuple(replace(key, kind=key.unlimited or key.kind) for key in keys)


def without_layout(keys: tuple[Key, ...]) -> tuple[Key, ...]:
    """Return the keys of which those that fix memory and processors may be missing."""
    return tuple(
        replace(key, required=False) if key.required and key.name in LAYOUT_KEYS else key
        for key in keys
    )
