"""Chips that do not exist, made of other facts than the real ones."""

from __future__ import annotations

from dataclasses import replace

from device import MAX78000, MAX78002

SMALL = replace(
    MAX78000,
    name="MAX78004",
    die=94,
    flash_bytes=0x100000,
    sram_bytes=0x28000,
    cnn_offset=0x200000,
    bias_bytes=256,
    tram_words=2048,
    kernel_columns=512,
    kernel_columns_first=512,
    instance_bytes=0x6000,
    max_layers=12,
    max_dimension=512,
    apb_clock_mhz=40,
    max_pool_dilation=4,
    estimates_latency=False,
)
"""After MAX78000: smaller memories, fewer layers, dilated pooling; its timing is not known."""

UNPIPELINED = replace(
    MAX78002,
    name="MAX78010",
    die=90,
    flash_bytes=0x180000,
    sram_bytes=0x40000,
    cnn_offset=0x800000,
    bias_bytes=1024,
    kernel_columns=2048,
    kernel_columns_first=2560,
    instance_bytes=0xC000,
    data_parts=3,
    max_layers=48,
    max_start_layer=47,
    apb_clock_mhz=40,
    pll_clock_mhz=None,
    has_pipeline=False,
    has_renamed_registers=False,
    has_trigger_pins=False,
    pads_series_of_passes=True,
)
"""After MAX78002: smaller memories in other parts, no pipeline, no PLL, older register names."""

MADE_UP = (SMALL, UNPIPELINED)
