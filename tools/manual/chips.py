"""Tables of what the chips have, from the `Chip` values of `device/`."""

from __future__ import annotations

from collections.abc import Callable

from device import CHIPS, Chip
from device.chip import (
    DEFAULT_APB_BASE,
    GROUPS,
    KERNEL_COLUMN_BYTES,
    PROCESSORS,
    PROCESSORS_PER_GROUP,
    PROCESSORS_PER_INSTANCE,
)
from tools.manual.markdown import by_chip, hexadecimal, size, table, word

_INSTANCES = PROCESSORS // PROCESSORS_PER_INSTANCE

FEATURES = {
    "has_depthwise": "depth-wise convolution",
    "has_binary_weights": "binary weights (-1 and +1)",
    "has_next_layer": "jumps between layers (NXTLYR)",
    "has_extended_modes": "kernel bypass, read-ahead, four outputs at a time, one-shot, "
    "conditional execution, start before the first FIFO word",
    "has_read_gap": "words can be left out between inputs (read gap)",
    "has_pipeline": "pipeline, PLL as clock",
    "counts_by_step": "RCNT and CCNT count up to the last window instead of the padded length",
    "streams_by_line": "streams are set up by the layer's own line, not by the layer before",
    "marks_planar_streams": "CTL says whether the first layer streams planar data",
    "pads_last_stream": "the last streaming layer needs padding",
    "streams_passthrough": "pass-through layers can stream",
    "skips_stream_bias": "the first layer skips a bias byte when it streams",
    "combines_with_bias": "operands can be combined in front of a convolution with bias",
    "pads_series_of_passes": "a padded Conv1d can have several input passes",
    "combines_passes_as_rows": "several operands of several passes are combined as more rows",
    "clears_registers": "the self test clears the registers",
    "needs_average_reset": "average pooling after an element-wise layer needs a layer that resets "
    "the accumulators",
    "synchronizes_fifo": "bit 11 of FIFO control is set",
    "estimates_latency": "a formula for the latency is known",
}
"""What chips can do, or want, by the attribute of `Chip`."""


def _kernel_columns(chip: Chip) -> str:
    more = chip.kernel_columns_first
    if more == chip.kernel_columns:
        return str(more)
    return f"{chip.kernel_columns}; processors 0, 16, 32 and 48: {more}"


def chip_sizes() -> str:
    """Return the sizes of the memories."""
    return by_chip(
        {
            "groups x processors": lambda _: f"{GROUPS} x {PROCESSORS_PER_GROUP}",
            "data memory": lambda c: (
                f"{_INSTANCES} x {size(c.instance_bytes)} = {size(_INSTANCES * c.instance_bytes)}"
            ),
            "words of an instance": lambda c: c.instance_bytes // 4,
            "kernel memory": lambda c: f"{c.kernel_bytes:,} bytes",
            f"columns of {KERNEL_COLUMN_BYTES} bytes in each processor": _kernel_columns,
            "bias memory": lambda c: f"{GROUPS} x {c.bias_bytes} bytes",
            "line buffer of each processor": lambda c: f"{c.tram_words} words",
            "layers": lambda c: c.max_layers,
            "streaming layers": lambda c: c.max_streaming_layers,
            "clock of the accelerator": lambda c: (
                f"{c.apb_clock_mhz} MHz"
                + (f", with the PLL {c.pll_clock_mhz} MHz" if c.pll_clock_mhz else "")
            ),
            "highest clock without pipeline": lambda c: f"{c.max_unpipelined_mhz} MHz",
            "flash memory and SRAM of the core": lambda c: (
                f"{size(c.flash_bytes)}, {size(c.sram_bytes)}"
            ),
        }
    )


def chip_addresses() -> str:
    """Return the offsets and distances that addresses are made of."""
    return by_chip(
        {
            "APB base": lambda _: word(DEFAULT_APB_BASE),
            "CNN offset": lambda c: hexadecimal(c.cnn_offset),
            "group stride": lambda c: hexadecimal(c.group_stride),
            "layer registers, offset": lambda c: hexadecimal(c.layer_registers_offset),
            "bias offset": lambda c: hexadecimal(c.bias_offset),
            "line buffer offset": lambda c: hexadecimal(c.tram_offset),
            "line buffer stride (of processors)": lambda c: hexadecimal(c.tram_stride),
            "kernel offset": lambda c: hexadecimal(c.kernel_offset),
            "kernel stride (of processors)": lambda c: hexadecimal(c.kernel_stride),
            "data offset": lambda c: hexadecimal(c.data_offset),
            "instance stride": lambda c: hexadecimal(c.instance_stride),
            "bytes of an instance": lambda c: hexadecimal(c.instance_bytes),
            "bit of the instance in write pointers": lambda c: c.write_pointer_shift,
        }
    )


def chip_groups() -> str:
    """Return the first address of everything in each group."""
    places: dict[str, Callable[[Chip, int], int]] = {
        "control registers": lambda c, g: c.control_address(g, "CTL"),
        "layer registers": lambda c, g: c.group(g) + c.layer_registers_offset,
        "biases": lambda c, g: c.bias_address(g),
        "line buffers": lambda c, g: c.tram_address(g * PROCESSORS_PER_GROUP),
        "kernels": lambda c, g: c.kernel_address(g * PROCESSORS_PER_GROUP),
        "data": lambda c, g: c.data_address(g * _INSTANCES // GROUPS),
    }
    groups = [f"group {g}" for g in range(GROUPS)]
    return table(
        ["", "", *groups],
        (
            [chip.name, what, *(word(DEFAULT_APB_BASE + of(chip, g)) for g in range(GROUPS))]
            for chip in CHIPS
            for what, of in places.items()
        ),
    )


def chip_limits() -> str:
    """Return the limits of layers."""
    return by_chip(
        {
            "rows and columns": lambda c: c.max_dimension,
            "channels": lambda c: c.max_channels,
            "rows x columns x passes": lambda c: f"below {c.max_frame_words:,}",
            "pooling window": lambda c: f"{c.max_pool} x {c.max_pool}",
            "pool dilation": lambda c: c.max_pool_dilation,
            "output offset": lambda c: f"below {hexadecimal(c.out_offset_limit)}",
            "first layer": lambda c: f"0 to {c.max_start_layer}" if c.max_start_layer else "0",
        }
    )


def chip_features() -> str:
    """Return what each chip can do."""

    def has(name: str) -> Callable[[Chip], str]:
        return lambda chip: "yes" if getattr(chip, name) else "no"

    return by_chip({text: has(name) for name, text in FEATURES.items()})


def memory_tests() -> str:
    """Return the words of the built-in self tests."""
    rows = (
        [chip.name, test.memory, *map(hexadecimal, (test.start, test.done, test.failed))]
        for chip in CHIPS
        for test in chip.memory_tests
    )
    return table(["", "memory", "start", "done", "error"], rows)


# Memories


def memory_sizes() -> str:
    """Return what each memory is for and how large it is."""
    rows: list[list[object]] = [
        ["data memory", "signed bytes, 4 lanes a word", f"{_INSTANCES} instances"],
        ["kernel memory", "columns of 9 bytes", f"{PROCESSORS} processors"],
        ["bias memory", "signed bytes", f"{GROUPS} groups"],
        ["line buffers", "scratch", f"{PROCESSORS} processors"],
    ]
    sizes = (
        [size(chip.instance_bytes), _kernel_columns(chip), chip.bias_bytes, chip.tram_words]
        for chip in CHIPS
    )
    units = ("", " columns", " bytes", " words")
    for column in sizes:
        for row, value, unit in zip(rows, column, units, strict=True):
            row.append(f"{value}{unit if str(value).isdigit() else ''}")
    return table(["memory", "content", "one for each of", *(c.name for c in CHIPS)], rows)


def example_addresses() -> str:
    """Return addresses of some places."""
    places: dict[str, Callable[[Chip], int]] = {
        "kernel column 0 of processor 0": lambda c: c.kernel_address(0),
        "kernel column 5 of processor 17": lambda c: c.kernel_address(17, 5),
        "kernel column 767 of processor 63": lambda c: c.kernel_address(63, 767),
        "bias 10 of group 2": lambda c: c.bias_address(2, 10),
        "data of processors 0 to 3, offset 0": lambda c: c.data_address(0),
        "data of processors 20 to 23 (instance 5), offset 0x2004": lambda c: c.data_address(
            5, 0x2004
        ),
    }
    rows = (
        [what, *(word(DEFAULT_APB_BASE + of(chip)) for chip in CHIPS)]
        for what, of in places.items()
    )
    return table(["place", *(chip.name for chip in CHIPS)], rows)


TABLES: dict[str, Callable[[], str]] = {
    "chip-sizes": chip_sizes,
    "chip-addresses": chip_addresses,
    "chip-groups": chip_groups,
    "chip-limits": chip_limits,
    "chip-features": chip_features,
    "memory-tests": memory_tests,
    "memory-sizes": memory_sizes,
    "example-addresses": example_addresses,
}
