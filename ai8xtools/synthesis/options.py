"""Options that change accelerator words; the command line fills one value of each.

Options that change only the generated text are in `synthesis.emit.options`.
Source: docs/options.md, "ai8xize.py".
"""

from __future__ import annotations

from dataclasses import field
from typing import Any

from ai8xtools.synthesis.layout import InputPort
from ai8xtools.values import frozen
from device import Chip
from device.chip import DEFAULT_APB_BASE, GROUPS, PROCESSORS


@frozen
class ResolveOptions:
    """How the description, the weights and the sample become a network."""

    sample_input: str | None = None
    sample_shape: tuple[int, ...] | None = None
    """Of a sample of random numbers that is made if none is named and there is no file."""
    sample: Any = None
    """The sample itself, integers [C, H, W], where no file is named."""
    weight_input: str | None = None
    bias_input: str | None = None
    checkpoint_file: str | None = None
    tensors: Any = None
    """What that file holds, a `checkpoint.Checkpoint`, if it has been read."""
    skip_checkpoint_layers: int = 0
    stop_after: int | None = None
    skip_yaml_layers: int = 0
    reshape_inputs: bool = False
    no_bias: frozenset[int] | None = frozenset()
    """Layers whose bias is ignored; None means all."""
    ignore_bn: bool = False
    ignore_activation: bool = False
    ignore_streaming: bool = False
    allow_streaming: bool = False
    streaming_layers: frozenset[int] = frozenset()
    read_ahead: bool = False
    calcx4: bool = False
    start_layer: int = 0
    input_port: InputPort = InputPort.MEMORY
    input_offset: int | None = None
    output_width: int | None = None
    synthesize_input: int | None = None
    synthesize_words: int = 8
    input_split: int = 1
    camera_format: int | None = None
    """Pixels of three channels in 15 (555) or 16 bits (565): lower bits of the sample are lost."""
    waiving: frozenset[str] = frozenset()
    """Options that turn violations of some constraints into warnings, see `Constraint`."""


@frozen
class StreamOptions:
    """What changes the streams: their settings instead of the computed ones, or more than those.

    `pipeline` off moves the input of MAX78002 by a word less.
    """

    override_start: int | None = None
    override_rollover: int | None = None
    override_delta1: int | None = None
    override_delta2: int | None = None
    increase_start: int = 2
    increase_delta1: int = 0
    increase_delta2: int = 0
    pipeline: bool | None = None


@frozen
class Occupied:
    """What networks that stay in the accelerator beside this one take of its memories.

    `names` are theirs. `columns` is a mask of kernel columns for each processor, `biases` the
    number of bytes from the first one on in each group.
    """

    names: tuple[str, ...] = ()
    columns: tuple[int, ...] = (0,) * PROCESSORS
    biases: tuple[int, ...] = (0,) * GROUPS

    @property
    def beside(self) -> str:
        """The end of a sentence about room that is lacking."""
        return f" beside {' and '.join(self.names)}" if self.names else ""

    @property
    def remedy(self) -> str:
        """What else helps against that, to be added to a remedy."""
        return " Or leave out --also and load one network after the other." if self.names else ""


NOTHING = Occupied()


@frozen
class PlaceOptions:
    """Choices that move things.

    What is occupied, first kernel column, sharing of equal weights, whether data may overlap or a
    complaint about it is an error, the loader with one array per processor, which places layers
    that begin in an upper lane earlier, the rounds of the network, whether places that are chosen
    need a reason, and what changes the streams.
    """

    occupied: Occupied = NOTHING
    weight_start: int = 0
    deduplicate: bool = True
    overlap_data: bool = False
    stops_at_overlaps: bool = True
    old_kernel_loader: bool = False
    repeat_layers: int = 1
    explain: bool = False
    streams: StreamOptions = field(default_factory=StreamOptions)


@frozen
class SummaryOptions:
    """What is reported beyond the description and the cost of a network.

    `keep_layer_logs` is for the verbose log, `keep_layer_data` (all intermediate values of the
    layers) for the files of the debugging options, with `keep_pass_sums` the accumulators after
    every pass too. `latency_terms` is how estimates come about, `cross_check` counts the products
    that are needed, and compares the stages with each other.
    """

    keep_layer_logs: bool = False
    keep_layer_data: bool = False
    keep_pass_sums: bool = False
    latency_terms: bool = False
    cross_check: bool = False

    @property
    def keep_traces(self) -> bool:
        """Whether any output needs the intermediate values of layers."""
        return self.keep_layer_logs or self.keep_layer_data or self.cross_check


@frozen
class EncodeOptions:
    """What changes words beyond the network itself, where things are placed, what is printed.

    `pll` None: as the chip can.
    """

    place: PlaceOptions = field(default_factory=PlaceOptions)
    telling: SummaryOptions = field(default_factory=SummaryOptions)
    apb_base: int = DEFAULT_APB_BASE
    express: bool = True
    ready_select: int = 0
    ready_select_aon: int = 0
    ready_select_fifo: int = 0
    average_rounding: bool = False
    simple_1bit: bool = False
    external_ready: bool = False
    powerdown: bool = False
    init_tram: bool = False
    zero_sram: bool = False
    zero_unused: bool = False
    write_zero_registers: bool = False
    fixed_input: bool = False
    clock_divider: int | None = None
    switch_delay_ms: int | None = None
    fifo_go: bool = False
    pll: bool | None = None
    max_speed: bool = False
    one_shot: bool = False
    link_layer: bool = False
    snoop_loop: bool = False
    check_snoop: bool = False

    def pipelined(self, chip: Chip) -> bool:
        """Whether calculations overlap."""
        return chip.has_pipeline and self.place.streams.pipeline is not False
