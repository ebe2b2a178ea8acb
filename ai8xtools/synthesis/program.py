"""The program of the accelerator: everything that reaches the chip, in order, and nothing of C.

`encode` builds it, the modules of `emit` print it, `words` lists what the bus will see. Addresses
are absolute bus addresses, words are unsigned 32-bit integers, arrays are numpy `uint32` unless
their comment says otherwise. Titles, comments and labels name blocks and words where they stand,
for the C file and the log; all text for people is in `Summary`.
Source: docs/hardware/execution.md, "The life of a program"; docs/hardware/memory.md;
docs/generated-project.md.
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ai8xtools.values import frozen
from device import Chip

Words = NDArray[np.uint32]

_ALTERNATING = (0x55555555, 0xAAAAAAAA)
_FEW_WORDS = 256


@frozen
class Write:
    """One 32-bit store to a register.

    `label` is how the log names the register (`R00`, `F1024`, `L0 G1 R05`). A `skipped` write has
    the value 0 that the register has anyway: the log lists it, the program does not contain it.
    `verifiable` is whether reading back gives the value that was written.
    """

    address: int
    value: int
    comment: str
    label: str = ""
    skipped: bool = False
    verifiable: bool = True


@frozen
class Wait:
    """Read the register until all bits of `mask` are set."""

    address: int
    mask: int


@frozen
class Check:
    """Read the register; any bit of `mask` means failure."""

    address: int
    mask: int


@frozen
class Clear:
    """Set `size_bytes` bytes from `address` to zero."""

    address: int
    size_bytes: int
    comment: str


@frozen
class TimerStart:
    """The moment at which the inference time starts to count."""


ProgramStep = Write | Wait | Check | Clear | TimerStart


@frozen
class Block:
    """Steps that belong together, with a title for readers (empty: none)."""

    title: str
    steps: tuple[ProgramStep, ...]


@frozen
class KernelBlock:
    """Kernel columns that stand next to each other, as the loader transfers them.

    `address` is what the loader is given: in express form the processor's base with a quarter of
    the distance in its low bits, else the address of the first column. `words` holds the bytes of
    all columns packed big-endian (express) or four words per column.
    """

    processor: int
    address: int
    words: Words


@frozen
class BiasBlock:
    """Bias bytes of one group (`values`: uint8), stored one per 32-bit word from `address` on."""

    group: int
    address: int
    values: NDArray[np.uint8]


@frozen
class InputBlock:
    """Sample data for one place in data memory; `number` names the array (`SAMPLE_INPUT_4`).

    Blocks of the same number follow each other, also in the array.
    """

    number: int
    address: int
    words: Words


@frozen
class FifoStream:
    """Words that are pushed into a FIFO, one after the other.

    `number` names the array; a word may be stored to `data_address` when
    `(status & full_mask) == 0`. With `stored_words`, the words after these many are the same
    again, each time `step` more, cut by `mask`.
    """

    number: int
    data_address: int
    status_address: int
    full_mask: int
    words: Words
    stored_words: int | None = None
    step: int = 0
    mask: int = 0xFFFFFFFF

    @property
    def stored(self) -> Words:
        """The words that the program holds."""
        return self.words[: self.stored_words]


@frozen
class ExpectedOutput:
    """Words of the known answer, sorted by mask and address: `(word & mask) == value`.

    `layers` (int64) tells the layer that writes each; empty where nobody wants to know.
    """

    addresses: Words
    masks: Words
    values: Words
    layers: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))

    def __len__(self) -> int:
        return len(self.addresses)


@frozen
class UnloadPiece:
    """Up to four channels that share words of one data memory instance, in one output pass.

    `channel` is the layer's first channel here, `lanes` the byte (8 bit) or word (32 bit) lanes of
    the successive channels, `address` the first pixel's word, `stride_bytes` the distance to the
    next pixel.
    """

    address: int
    lanes: tuple[int, ...]
    channel: int
    stride_bytes: int


@frozen
class TransposingPort:
    """The port of a group that reads one byte lane, four pixels a word (the mlator).

    The control register selects a lane, the write pointer of hardware layer 0 and the step in its
    second control register say where it starts; `released` is the control word that ends it.
    """

    group: int
    control_address: int
    data_address: int
    pointer_address: int
    step_address: int
    released: int


@frozen
class TransposedChannel:
    """A channel as a port reads it: control word, pointer and step; the first read is void."""

    port: TransposingPort
    selected: int
    pointer: int
    step: int


@frozen
class UnloadLayer:
    """One output layer as `cnn_unload` delivers it.

    8 bit: byte [channel][pixel] (planar). 32 bit: one word per channel if there is one pixel, else
    words in the order piece, pixel, lane. `layer` is the index of the layer,
    -1 the one that is executed last. `transposed` are its channels as the transposing ports read
    them, empty where they cannot. What the accelerator holds is multiplied by 2^`scale`,
    which is not known where layers of several scales write the data. Scaled values of 8 bits take
    16 in the result, with `widened` all of them. An integer that the accelerator holds, times
    2^`exponent`, is the number.
    """

    width: Literal[8, 32]
    channels: int
    pixels: int
    pieces: tuple[UnloadPiece, ...]
    layer: int = -1
    transposed: tuple[TransposedChannel, ...] = ()
    scale: int = 0
    scale_known: bool = True
    widened: bool = False
    exponent: int = 0

    @property
    def in_halfwords(self) -> bool:
        """Whether values of 8 bits are delivered in 16."""
        return self.width == 8 and bool(self.scale or self.widened)

    @property
    def value_bytes(self) -> int:
        """Bytes of a value in the result."""
        return 2 if self.in_halfwords else self.width // 8

    @property
    def size_bytes(self) -> int:
        """Bytes this layer takes in the result."""
        return self.channels * self.pixels * self.value_bytes


@frozen
class EarlyExit:
    """The network ends early if the largest value of `scores` exceeds the second by `margin`.

    Otherwise the program writes `resume`, which starts the other layers.
    """

    margin: int
    scores: UnloadLayer
    resume: tuple[Block, ...]


@frozen
class Power:
    """What `cnn_enable` does: groups to power, their clock, and the delay of the load switches.

    `clock_mhz` is the clock of an inference, `start_divider` what it then needs instead of
    `clock_divider`, `pipelined` whether its calculations overlap.
    """

    groups_mask: int
    switch_delay_ms: int
    clock_source: Literal["PCLK", "IPLL"]
    clock_divider: int
    start_divider: int | None
    clock_mhz: float
    pipelined: bool = False

    @property
    def loading_mhz(self) -> float:
        """Clock of the accelerator while the core loads it."""
        return self.clock_mhz * (self.start_divider or self.clock_divider) / self.clock_divider


@frozen
class Program:
    """Everything that reaches the accelerator, phase by phase, and what to expect of it.

    Phases are named after the functions of the generated C: power (cnn_enable), init, kernels,
    biases, configure, inputs (load_input), start. Text for people is in `Summary`.
    """

    chip: Chip
    apb_base: int
    groups: tuple[int, ...]
    express: bool
    power: Power
    init: tuple[Block, ...]
    kernels: tuple[KernelBlock, ...]
    biases: tuple[BiasBlock, ...]
    configure: tuple[Block, ...]
    inputs: tuple[InputBlock, ...]
    start: tuple[Block, ...]
    interrupt_mask: int
    expected: ExpectedOutput
    unload: tuple[UnloadLayer, ...]
    output_count: int
    output_width: Literal[8, 32]
    softmax_shift: int
    snoop_results: tuple[Write, ...] = ()
    """Registers of conditional execution with the values they should hold after the inference."""
    fifo: tuple[FifoStream, ...] = ()
    """Input through FIFOs, word by word in turn; `inputs` is empty then."""
    exit: EarlyExit | None = None
    """Where the network may end early; `unload` is the last layer then."""

    @property
    def control_addresses(self) -> tuple[int, ...]:
        """Addresses of the control registers of the groups."""
        return tuple(self.apb_base + self.chip.control_address(g, "CTL") for g in self.groups)

    @property
    def master_control(self) -> int:
        """Address of the control register that starts the network."""
        return self.control_addresses[0]


def pattern(count: int) -> Words:
    """Return so many words of alternating bits, which need no array in a program."""
    return np.resize(np.array(_ALTERNATING, np.uint32), count)


def with_pattern(program: Program) -> Program:
    """Return a program that takes no sample: memory gets a pattern, FIFOs a few words repeatedly.

    These are the first words of the sample, so many that all rounds are equal.
    """

    def repeated(stream: FifoStream) -> FifoStream:
        count = next(n for n in range(_FEW_WORDS, 0, -1) if len(stream.words) % n == 0)
        words = np.resize(stream.words[:count], len(stream.words))
        return replace(stream, words=words, stored_words=count, step=0, mask=0xFFFFFFFF)

    inputs = tuple(replace(b, words=pattern(len(b.words))) for b in program.inputs)
    return replace(program, inputs=inputs, fifo=tuple(map(repeated, program.fifo)))
