"""Every constraint of the hardware: a network that violates it, and what is said about it."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ai8xtools.diagnostics import Severity
from ai8xtools.synthesis.check import CONSTRAINTS, check_network
from ai8xtools.synthesis.check.constraint import Constraint, Kind
from ai8xtools.synthesis.layout import InputPort
from ai8xtools.synthesis.mapping import MappedNetwork
from device import MAX78000, MAX78002, Chip
from tests.synthesis.networks import build, describe, line_of, mask, sample, weights
from tests.synthesis.stages import check

CONV: dict[str, Any] = {
    "processors": 7,
    "op": "Conv2d",
    "kernel_size": "3x3",
    "pad": 1,
    "activate": "ReLU",
}
PLAIN: dict[str, Any] = {"processors": 7, "op": "none"}
ONE: dict[str, Any] = {**CONV, "processors": 1}
NEWER = "Remove the key, or use --device MAX78002."
CONV1D: dict[str, Any] = {**ONE, "op": "Conv1d", "kernel_size": 3}
DEPTHWISE: dict[str, Any] = {**CONV, "groups": 3}
LINEAR: dict[str, Any] = {
    "processors": 7,
    "op": "Linear",
    "flatten": True,
    "activate": "none",
}
Shape = tuple[int, ...]


HAS_IT = "MAX78002 has it."
OF_SIZES = (
    "Check the sample, which is 3x4x4, the pooling and the order of the layers, and that the "
    "checkpoint belongs to this network."
)


@dataclass(frozen=True)
class Violation:
    """A network that breaks one constraint, and the complaints with its code.

    `found` are (layer, key, message, remedy); key "" stands for the layer itself.
    """

    code: str
    layers: list[dict[str, Any]]
    kernels: list[Shape]
    found: list[tuple[int, str, str, str | None]]
    sample: Shape = (3, 4, 4)
    chip: Chip = MAX78000
    bias: int = 0
    options: dict[str, Any] = field(default_factory=dict)
    others: dict[str, str] = field(default_factory=dict)
    final_scales: tuple[int, ...] = ()

    def text(self) -> str:
        """Return the description."""
        return describe(*self.layers, **self.others)

    def network(self, folder: Path) -> MappedNetwork:
        """Return the resolved network."""
        widths = (x.get("quantization", 8) for x in self.layers)
        bits = (8 if width == "bin" else width for width in widths)
        kernels = [weights(*k, bits=b) for k, b in zip(self.kernels, bits, strict=False)]
        biases = [np.arange(1, self.bias + 1)] if self.bias else []
        data = np.zeros(self.sample, np.int64)
        made = build(folder, self.text(), data, kernels, biases, self.chip, **self.options)[0]
        if not self.final_scales:
            return made
        pairs = [*zip(made.network.layers, self.final_scales, strict=True)]
        layers = tuple(replace(layer, final_scale=scale) for layer, scale in pairs)
        return replace(made, network=replace(made.network, layers=layers))


POOL_EARLIER = "Pool in a layer before."
OTHERWISE = "; the chip is not expected to compute the known answer"
RING = {"data_buffer": "[{name: ring, processors: 7, channels: 3, dim: 4, offset: 0x3000}]"}
READS_RING: dict[str, Any] = {
    **PLAIN,
    "in_sequences": "ring",
    "in_offset": 0x3000,
    "in_dim": 4,
    "in_channels": 3,
}
MADE = {"input_port": InputPort.FIFO, "synthesize_input": 1}
GAPLESS = "Use write_gap: 0 in layer 0."
UNUSED_GROUP = "Use one of 0, or leave the key out."

VIOLATIONS = [
    # Operators
    Violation(
        "E301",
        [{**CONV, "output_shift": 16}],
        [(2, 3, 3, 3)],
        [
            (
                0,
                "output_shift",
                "'output_shift' is 16, the limits for 8-bit weights are -15 and 15",
                "The nearest valid value is 15.",
            )
        ],
    ),
    Violation(
        "E301",
        [{**CONV, "output_shift": -20, "quantization": 4}],
        [(2, 3, 3, 3)],
        [
            (
                0,
                "output_shift",
                "'output_shift' is -20, the limits for 4-bit weights are -19 and 11",
                "The nearest valid value is -19.",
            )
        ],
    ),
    Violation(
        "E302",
        [{**PLAIN, "pad": 1}],
        [],
        [(0, "pad", "'pad' is 1 on a layer without a kernel", "Remove the key.")],
    ),
    Violation(
        "E302",
        [{**CONV, "pad": 3}],
        [(2, 3, 3, 3)],
        [
            (
                0,
                "pad",
                "'pad' is 3, the limit for a 3x3 kernel is 2",
                "Use pad: 2.",
            )
        ],
    ),
    Violation(
        "E302",
        [{**CONV, "kernel_size": "1x1", "pad": None}],
        [(2, 3, 1, 1)],
        [
            (
                0,
                "kernel_size",
                "'pad' is 1, the limit for a 1x1 kernel is 0",
                "Use pad: 0.",
            )
        ],
    ),
    Violation(
        "E303",
        [{**CONV, "output_pad": 1}],
        [(2, 3, 3, 3)],
        [(0, "output_pad", "'output_pad' is 1, only ConvTranspose2d has one", None)],
    ),
    Violation(
        "E302",
        [{**CONV, "op": "ConvTranspose2d", "pad": 3}],
        [(2, 3, 3, 3)],
        [(0, "pad", "'pad' is 3, the limits are 0 and 2", None)],
    ),
    Violation(
        "E303",
        [{**CONV, "op": "ConvTranspose2d", "output_pad": 0}],
        [(2, 3, 3, 3)],
        [(0, "output_pad", "'output_pad' is 0, only 1 is possible", None)],
    ),
    Violation(
        "E304",
        [{**CONV, "max_pool": 2, "pool_stride": 1, "pool_dilation": 2}],
        [(2, 3, 3, 3)],
        [(0, "pool_dilation", "'pool_dilation' is 2, the limit of MAX78000 is 1", None)],
    ),
    Violation(
        "E304",
        [{**ONE, "max_pool": 16, "pool_stride": 1, "pool_dilation": 2}],
        [(2, 1, 3, 3)],
        [
            (
                0,
                "pool_dilation",
                "the pooling window reaches over 31 pixels, the limit is 16",
                None,
            )
        ],
        sample=(1, 32, 32),
        chip=MAX78002,
    ),
    Violation(
        "E305",
        [{**CONV, "max_pool": 2, "pool_stride": (1, 2)}],
        [(2, 3, 3, 3)],
        [
            (
                0,
                "pool_stride",
                "'pool_stride' is 1/2, rows and columns must be equal",
                "Use pool_stride: 1.",
            )
        ],
    ),
    Violation(
        "E306",
        [{**LINEAR, "processors": hex(mask(36)), "output_processors": 3}],
        [(2, 66 * 4)],
        [
            (
                0,
                "flatten",
                "'flatten' of 66 channels, which do not fill 2 passes of 36",
                "Use a multiple of 8 channels in the layer before.",
            )
        ],
        sample=(66, 2, 2),
    ),
    Violation(
        "W318",
        [{**CONV, "processors": hex(mask(36)), "quantization": 4}],
        [(2, 66, 3, 3)],
        [
            (
                0,
                "quantization",
                "4-bit weights for 66 channels, which do not fill 2 passes of 36; the chip is "
                "not expected to compute the known answer",
                "Use 8-bit weights or 72 channels.",
            )
        ],
        sample=(66, 4, 4),
    ),
    Violation(
        "W319",
        [{**LINEAR, "output_processors": 6}],
        [(2, 3 * 16)],
        [
            (
                0,
                "output_processors",
                "the outputs of a flattened layer begin between two multiples of 4; the chip is "
                "not expected to compute the known answer",
                "Begin the output processors at a multiple of 4.",
            )
        ],
    ),
    Violation(
        "E306",
        [{**LINEAR, "max_pool": 2, "pool_stride": 2}],
        [(4, 12)],
        [(0, "flatten", "'flatten' together with pooling", POOL_EARLIER)],
    ),
    Violation(
        "E306",
        [{**CONV, "flatten": True}],
        [(4, 12, 3, 3)],
        [(0, "flatten", "'flatten' on a conv2d layer, it needs op: Linear", None)],
        sample=(3, 2, 2),
    ),
    Violation(
        "E306",
        [{**LINEAR, "processors": 1}],
        [(2, 289)],
        [
            (
                0,
                "flatten",
                "'flatten' of 17x17 = 289 pixels, the limit is 256",
                "Pool before flattening.",
            )
        ],
        sample=(1, 17, 17),
    ),
    Violation(
        "E306",
        [{**LINEAR, "groups": 2}],
        [(4, 6)],
        [(0, "groups", "'flatten' together with 'groups'", None)],
        sample=(3, 2, 2),
    ),
    Violation(
        "E386",
        [{**CONV, "output_width": 32}],
        [(2, 3, 3, 3)],
        [
            (
                0,
                "activate",
                "'activate' is ReLU on a final layer with 32-bit output",
                "Remove the activation or use output_width: 8.",
            )
        ],
    ),
    Violation(
        "W307",
        [{**CONV, "output_width": 32}, {**CONV, "processors": 3}],
        [(2, 3, 3, 3), (2, 2, 3, 3)],
        [(0, "output_width", "32-bit output of a layer that feeds another", "Remove the key.")],
    ),
    Violation(
        "E308",
        [{**PLAIN, "output_shift": 1}],
        [],
        [(0, "output_shift", "'output_shift' is 1 on a layer without a kernel", None)],
    ),
    Violation(
        "E308",
        [{**PLAIN, "output_width": 32}],
        [],
        [(0, "output_width", "'output_width' is 32 on a layer without a kernel", None)],
    ),
    Violation(
        "E308",
        [{**PLAIN, "out_channels": 4}],
        [],
        [
            (
                0,
                "out_channels",
                "4 output channels for 3 input channels on a layer without a kernel",
                None,
            )
        ],
    ),
    Violation(
        "E309",
        [{**PLAIN, "processors": mask(36), "max_pool": 2, "pool_stride": 2}],
        [],
        [
            (
                0,
                "max_pool",
                "pooling without a convolution in 2 passes, the limit of MAX78000 is 1",
                "Pool in the next convolution layer instead.",
            )
        ],
        sample=(72, 4, 4),
    ),
    Violation(
        "E310",
        [{**CONV1D, "eltwise": "add"}],
        [(2, 1, 3)],
        [
            (
                0,
                "eltwise",
                "'add' in front of a Conv1d",
                "Use a separate layer (op: Add) before the convolution.",
            )
        ],
        sample=(2, 8),
    ),
    Violation(
        "E310",
        [
            {
                **PLAIN,
                "op": "add",
                "operands": 3,
                "max_pool": 2,
                "pool_stride": 2,
                "pool_first": False,
            }
        ],
        [],
        [
            (
                0,
                "pool_first",
                "'pool_first: false' with 3 operands, the limit is 2",
                None,
            )
        ],
        sample=(9, 4, 4),
    ),
    Violation(
        "E310",
        [
            {
                **PLAIN,
                "op": "add",
                "operands": 3,
                "processors": mask(36),
                "max_pool": 2,
                "pool_stride": 2,
            }
        ],
        [],
        [
            (
                0,
                "operands",
                "3 operands of 2 passes together with pooling or a convolution",
                "Combine in a layer of its own.",
            )
        ],
        sample=(3 * 72, 4, 4),
    ),
    Violation(
        "E311",
        [{**CONV, "eltwise": "add"}],
        [(2, 3, 3, 3)],
        [
            (
                0,
                "eltwise",
                "an element-wise operation, a convolution and a bias in one layer",
                "Drop the bias (--no-bias) or combine in a layer of its own.",
            )
        ],
        sample=(6, 4, 4),
        chip=MAX78002,
        bias=2,
    ),
    Violation(
        "E312",
        [{**CONV, "dilation": 2}],
        [(2, 3, 3, 3)],
        [
            (
                0,
                "dilation",
                "'dilation' is 2 on a conv2d layer, only Conv1d has one",
                None,
            )
        ],
    ),
    Violation(
        "E312",
        [{**CONV1D, "kernel_size": 1, "pad": 0, "dilation": 2}],
        [(2, 1, 1)],
        [(0, "dilation", "'dilation' with a kernel of one tap", None)],
        sample=(1, 8),
    ),
    Violation(
        "E313",
        [{**CONV, "groups": 3}],
        [(3, 1, 3, 3)],
        [(0, "groups", "'groups' is 3, MAX78000 has no grouped convolutions", HAS_IT)],
    ),
    Violation(
        "E313",
        [{**CONV, "groups": 3}],
        [(6, 1, 3, 3)],
        [
            (
                0,
                "groups",
                "'groups' is 3 for 3 input and 6 output channels, all three must be equal",
                None,
            )
        ],
        chip=MAX78002,
    ),
    Violation(
        "E314",
        [{**CONV, "quantization": "bin"}],
        [(2, 3, 3, 3)],
        [(0, "quantization", "binary weights, MAX78000 has none", HAS_IT)],
    ),
    Violation(
        "E314",
        [
            {**CONV, "quantization": "bin"},
            {**CONV, "processors": 3, "quantization": 1},
        ],
        [(2, 3, 3, 3), (2, 2, 3, 3)],
        [(0, "quantization", "binary weights in a network with 1-bit weights", None)],
        chip=MAX78002,
    ),
    Violation(
        "E315",
        [{**CONV, "readahead": True, "tcalc": True, "snoop_sequence": 0}],
        [(2, 3, 3, 3)],
        [
            (0, "readahead", "'readahead' is not supported by MAX78000", NEWER),
            (0, "tcalc", "'tcalc' is not supported by MAX78000", NEWER),
            (0, "snoop_sequence", "'snoop_sequence' is not supported by MAX78000", NEWER),
        ],
    ),
    Violation(
        "E316",
        [DEPTHWISE | {"output_processors": 0b1110, "bias_group": 0}],
        [(3, 1, 3, 3)],
        [
            (
                0,
                "output_processors",
                "the outputs of a depth-wise layer begin between two multiples of 4",
                None,
            ),
            (0, "bias_group", "'bias_group' on a depth-wise layer", None),
        ],
        chip=MAX78002,
    ),
    Violation(
        "E316",
        [DEPTHWISE | {"processors": mask(20, 1), "groups": 20}],
        [(20, 1, 3, 3)],
        [
            (
                0,
                "processors",
                "the inputs of a depth-wise layer of several groups begin between two multiples "
                "of 4",
                None,
            )
        ],
        sample=(20, 4, 4),
        chip=MAX78002,
    ),
    Violation(
        "E317",
        [{**CONV1D, "kernel_size": 4, "pad": 1, "max_pool": 2, "pool_stride": 2, "dilation": 3}],
        [(2, 1, 4)],
        [
            (0, "kernel_size", "a Conv1d with dilation 3 and 4 taps, the limit is 3", None),
            (0, "max_pool", "a Conv1d with dilation 3 and pooling", None),
            (0, "pad", "a Conv1d with dilation 3 and padding", None),
        ],
        sample=(1, 64),
    ),
    Violation(
        "E317",
        [{**CONV1D, "pad": 0, "dilation": 5, "out_offset": "0x10"}],
        [(2, 1, 3)],
        [
            (
                0,
                "out_offset",
                "'out_offset' is 0x10, a Conv1d with three taps and dilation 5 needs at least 0x14",
                None,
            )
        ],
        sample=(1, 64),
    ),
    # Processors
    Violation(
        "E320",
        [{**CONV, "processors": 0x30}],
        [(2, 3, 3, 3)],
        [
            (
                0,
                "processors",
                "'processors' 0x0000.0000.0000.0030 names 2, 3 input channels need 3",
                "For example 0x0000.0000.0000.0070.",
            )
        ],
    ),
    Violation(
        "E320",
        [{**CONV, "processors": mask(64)}],
        [(2, 72, 3, 3)],
        [
            (
                0,
                "processors",
                "'processors' 0xffff.ffff.ffff.ffff names 64, "
                "72 input channels in 2 passes need 36",
                "For example 0x0000.000f.ffff.ffff.",
            )
        ],
        sample=(72, 4, 4),
    ),
    Violation(
        "E320",
        [{**CONV, "processors": 0x11, "data_format": "CHW"}],
        [(2, 3, 3, 3)],
        [
            (
                0,
                "processors",
                "'processors' 0x0000.0000.0000.0011 names 2, 3 input channels need 3",
                "For example 0x0000.0000.0000.0111.",
            )
        ],
    ),
    Violation(
        "E321",
        [{**CONV, "output_processors": 7}],
        [(2, 3, 3, 3)],
        [
            (
                0,
                "output_processors",
                "'output_processors' 0x0000.0000.0000.0007 names 3, 2 output channels need 2",
                "For example 0x0000.0000.0000.0003.",
            )
        ],
    ),
    Violation(
        "E321",
        [CONV, {**CONV, "processors": 1}],
        [(2, 3, 3, 3), (2, 2, 3, 3)],
        [
            (
                0,
                "",
                "the next layer's 'processors' (line 13) 0x0000.0000.0000.0001 names 1, "
                "2 output channels need 2",
                "For example 0x0000.0000.0000.0003.",
            )
        ],
    ),
    Violation(
        "E322",
        [CONV, {**CONV, "processors": 0x11, "data_format": "CHW"}],
        [(2, 3, 3, 3), (2, 2, 3, 3)],
        [(1, "data_format", "'data_format' is CHW on a later layer", "Remove the key.")],
    ),
    Violation(
        "E323",
        [{**CONV, "processors": 0x70, "data_format": "CHW"}],
        [(2, 3, 3, 3)],
        [
            (
                0,
                "processors",
                "'processors' 0x0000.0000.0000.0070 has several of 4 to 7 with CHW data, "
                "one of each four is possible",
                "Use every fourth processor (0x1111...), or data_format: HWC.",
            )
        ],
    ),
    Violation(
        "E323",
        [{**PLAIN, "op": "add", "processors": 1, "data_format": "CHW"}],
        [],
        [
            (
                0,
                "data_format",
                "CHW data of 1 channels, the limit is one pass and one operand",
                None,
            )
        ],
        sample=(2, 4, 4),
    ),
    Violation(
        "E324",
        [{**CONV, "processors": mask(3, 16), "output_processors": mask(2, 16)}],
        [(2, 3, 3, 3)],
        [
            (
                0,
                "processors",
                "no layer uses processors 0 to 15",
                "Move a layer's processors to group 0.",
            )
        ],
    ),
    Violation(
        "E325",
        [{**CONV, "bias_group": (0, 3)}],
        [(2, 3, 3, 3)],
        [(0, "bias_group", "'bias_group' names group 3, used are 0", UNUSED_GROUP)],
    ),
    Violation(
        "E325",
        [{**CONV, "bias_group": 3}],
        [(2, 3, 3, 3)],
        [
            (
                0,
                "bias_group",
                "'bias_group' names group 3, used are 0; a bias that stands there is not added",
                UNUSED_GROUP,
            )
        ],
        bias=2,
    ),
    Violation(
        "E326",
        [{**PLAIN, "output_processors": 0b10101}],
        [],
        [
            (
                0,
                "output_processors",
                "in group 0, 3 channels pass through, but 'output_processors' "
                "0x0000.0000.0000.0015 "
                "has no run of 3 there",
                "Give the next layer the same processors.",
            )
        ],
    ),
    Violation(
        "E327",
        [{**PLAIN, "processors": mask(64), "in_channels": 1025}],
        [],
        [
            (0, "in_channels", "1025 input channels, the limit is 1024", None),
            (0, "op", "1025 output channels, the limit is 1024", None),
        ],
        sample=(1025, 1, 1),
    ),
    # Data memory
    Violation(
        "E340",
        [{**CONV, "out_offset": "0x20000"}],
        [(2, 3, 3, 3)],
        [
            (
                0,
                "out_offset",
                "'out_offset' is 0x20000, the limits are 0 and 0x1ffff",
                "This output fits at 0x7fc0 at most.",
            )
        ],
    ),
    Violation(
        "E341",
        [{**CONV, "in_offset": "0x7fc4"}],
        [(2, 3, 3, 3)],
        [
            (
                0,
                "in_offset",
                "the input needs 64 bytes at 0x7fc4, a memory instance of MAX78000 has 32768",
                "The highest in_offset that fits is 0x7fc0.",
            )
        ],
    ),
    Violation(
        "E342",
        [{**CONV1D, "kernel_size": 2, "dilation": 10, "pad": 0, "out_offset": 0x7FB4}],
        [(2, 1, 2)],
        [
            (
                0,
                "out_offset",
                "the output needs 80 bytes at 0x7fb4, a memory instance of MAX78000 has 32768",
                "The highest out_offset that fits is 0x7fb0.",
            )
        ],
        sample=(1, 20, 1),
    ),
    Violation(
        "E342",
        [{**CONV, "out_offset": "0x7fc4"}],
        [(2, 3, 3, 3)],
        [
            (
                0,
                "out_offset",
                "the output needs 64 bytes at 0x7fc4, a memory instance of MAX78000 has 32768",
                "The highest out_offset that fits is 0x7fc0.",
            )
        ],
    ),
    Violation(
        "E342",
        [{**ONE, "output_width": 32, "activate": "none"}],
        [(1, 1, 3, 3)],
        [
            (
                0,
                "out_offset",
                "the output needs 36864 bytes at 0x4000, a memory instance of MAX78000 has 32768",
                "Pool more, use fewer channels or output_width: 8.",
            )
        ],
        sample=(1, 48, 48),
    ),
    Violation(
        "E343",
        [{**CONV1D, "pad": 2, "in_dim": 1023}],
        [(1, 1, 3)],
        [
            (0, "op", "the output has 1025x1 pixels, the limit is 1024 in a row or column", None),
            (0, "pad", "the input has 1027x1 pixels with padding, the limit is 1024", None),
        ],
        sample=(1, 1023),
    ),
    Violation(
        "E343",
        [{**CONV1D, "pad": 0, "in_dim": 1025}],
        [(1, 1, 3)],
        [(0, "in_dim", "the input has 1025x1 pixels, the limit is 1024 in a row or column", None)],
        sample=(1, 1025),
    ),
    Violation(
        "E344",
        [{**PLAIN, "processors": mask(64), "in_dim": (1024, 1024)}],
        [],
        [(0, "in_dim", "a frame of 2097152 words, the limit is 2097151", None)],
        sample=(128, 1, 1),
    ),
    Violation(
        "E345",
        [{**CONV, "write_gap": 16}],
        [(2, 3, 3, 3)],
        [
            (
                0,
                "write_gap",
                "'write_gap' is 16 with 1 output passes, which makes steps of 17 words; "
                "the limit is 16",
                None,
            )
        ],
    ),
    Violation(
        "E346",
        [{**CONV, "read_gap": 1}],
        [(2, 3, 3, 3)],
        [(0, "read_gap", "'read_gap' is 1, MAX78000 has none", HAS_IT)],
    ),
    Violation(
        "E346",
        [{**CONV, "processors": mask(36), "in_skip": 1}],
        [(2, 72, 3, 3)],
        [(0, "in_skip", "'read_gap' with 2 input passes", None)],
        sample=(72, 4, 4),
        chip=MAX78002,
    ),
    Violation(
        "W347",
        [{**CONV, "in_offset": 2, "out_offset": "0x4001"}],
        [(2, 3, 3, 3)],
        [
            (0, "in_offset", "'in_offset' is 0x2, not a multiple of 4", "Use 0x0."),
            (0, "out_offset", "'out_offset' is 0x4001, not a multiple of 4", "Use 0x4000."),
        ],
    ),
    Violation(
        "W348",
        [CONV, {**CONV, "processors": 3, "in_offset": 0}],
        [(2, 3, 3, 3), (2, 2, 3, 3)],
        [
            (
                1,
                "in_offset",
                "'in_offset' is 0x0, layer 0 wrote to 0x4000",
                "Remove the key, or name the source with in_sequences.",
            )
        ],
    ),
    Violation(
        "E349",
        [{**CONV, "in_channels": 3}],
        [(2, 3, 3, 3)],
        [
            (
                0,
                "in_channels",
                "the sample SAMPLE has 2x4x4 values, the layer reads 3x4x4",
                "Use a sample of this data set, or correct the description.",
            )
        ],
        sample=(2, 4, 4),
    ),
    # Streaming and FIFOs
    Violation(
        "E350",
        [CONV, {**CONV, "processors": 3, "streaming": True}],
        [(2, 3, 3, 3), (2, 2, 3, 3)],
        [
            (
                1,
                "streaming",
                "a streaming layer behind layer 0, which does not stream",
                "Let all layers up to this one stream, or remove the key.",
            )
        ],
    ),
    Violation(
        "E351",
        [{**CONV, "streaming": True}],
        [(2, 3, 3, 3)],
        [
            (
                0,
                "streaming",
                "the first layer streams, but the input does not come from a FIFO",
                "Add --fifo (or --fast-fifo), or --ignore-streaming.",
            )
        ],
    ),
    Violation(
        "E352",
        [{**CONV, "streaming": True}] * 9,
        [(3, 3, 3, 3)] * 9,
        [(0, "streaming", "9 streaming layers, the limit is 8", None)],
        options={"input_port": InputPort.FIFO},
    ),
    Violation(
        "E353",
        [{**CONV, "streaming": True, "pad": 0}],
        [(2, 3, 3, 3)],
        [(0, "pad", "the last streaming layer has no padding", None)],
        options={"input_port": InputPort.FIFO},
    ),
    Violation(
        "E354",
        [{**LINEAR, "streaming": True}],
        [(2, 12)],
        [(0, "streaming", "'streaming' together with 'flatten'", None)],
        sample=(3, 2, 2),
        options={"input_port": InputPort.FIFO},
    ),
    Violation(
        "E354",
        [{**PLAIN, "streaming": True}],
        [],
        [(0, "streaming", "'streaming' on a layer without a convolution", None)],
        chip=MAX78002,
        options={"input_port": InputPort.FIFO},
    ),
    Violation(
        "E355",
        [{**CONV, "processors": hex(0xF000F000F000F | 1 << 4), "in_channels": 17}],
        [(2, 17, 3, 3)],
        [
            (
                0,
                "in_channels",
                "17 input channels through the FIFOs, the limit is 16 with HWC data",
                None,
            ),
            (
                0,
                "processors",
                "'processors' 0x000f.000f.000f.001f has processors that the FIFOs do not reach; "
                "they reach 0x000f.000f.000f.000f",
                None,
            ),
        ],
        sample=(17, 4, 4),
        options={"input_port": InputPort.FIFO},
    ),
    Violation(
        "E356",
        [{**CONV, "processors": mask(5), "in_channels": 5, "output_width": 32, "activate": "none"}],
        [(2, 5, 3, 3)],
        [
            (
                0,
                "in_channels",
                "5 input channels through the fast FIFO, the limit is 4",
                None,
            ),
            (0, "output_width", "32-bit output of the layer that the fast FIFO feeds", None),
        ],
        sample=(5, 4, 4),
        options={"input_port": InputPort.FAST_FIFO},
    ),
    Violation(
        "E356",
        [PLAIN],
        [],
        [(0, "op", "the fast FIFO feeds a layer without a convolution", None)],
        options={"input_port": InputPort.FAST_FIFO},
    ),
    Violation(
        "W357",
        [{**CONV, "streaming": True}],
        [(2, 3, 3, 3)],
        [(0, "streaming", "a bias in a streaming layer", None)],
        bias=2,
        options={"input_port": InputPort.FIFO},
    ),
    Violation(
        "E358",
        [{**CONV, "processors": 1, "data_format": "CHW"}],
        [(2, 1, 3, 3)],
        [
            (
                0,
                "data_format",
                "--synthesize-input with 1 channels of CHW data, it makes up to 4 channels of "
                "HWC data",
                None,
            )
        ],
        sample=(1, 4, 4),
        options={**MADE, "synthesize_words": 4},
    ),
    Violation(
        "E358",
        [CONV],
        [(2, 3, 3, 3)],
        [
            (
                0,
                "",
                "--synthesize-words is 5, the image has 16 pixels",
                "Use a divisor of 16.",
            ),
            (0, "", "--synthesize-input is 0x1000000, the limits are 0 and 0xffffff", None),
        ],
        options={**MADE, "synthesize_input": 1 << 24, "synthesize_words": 5},
    ),
    Violation(
        "E338",
        [{**CONV, "data_format": "HWC"}],
        [(2, 3, 3, 3)],
        [
            (
                0,
                "data_format",
                "--input-split 2 splits CHW data in memory, the input is HWC data or comes from "
                "a FIFO",
                None,
            )
        ],
        options={"input_split": 2},
    ),
    Violation(
        "E338",
        [{**CONV, "processors": 1, "data_format": "CHW"}],
        [(2, 1, 3, 3)],
        [(0, "", "--input-split is 3, the image has 4 rows", "Use a divisor of 4.")],
        sample=(1, 4, 4),
        options={"input_split": 3},
    ),
    Violation(
        "E338",
        [{**CONV, "processors": 1, "data_format": "CHW"}],
        [(2, 1, 3, 3)],
        [
            (
                0,
                "",
                "--input-split 8 needs 49152 bytes at 0x0, a memory instance of MAX78000 has 32768",
                None,
            )
        ],
        sample=(1, 32, 700),
        options={"input_split": 8},
    ),
    Violation(
        "W380",
        [{**CONV, "processors": 1, "data_format": "CHW"}],
        [(2, 1, 3, 3)],
        [
            (
                0,
                "data_format",
                "--input-split 2 loads the image in parts, the layer reads it as a whole; the "
                "chip is not expected to compute the known answer",
                "Leave the option out, unless the program sets up the layer for each part.",
            )
        ],
        sample=(1, 4, 4),
        options={"input_split": 2},
    ),
    # Sources
    Violation(
        "E360",
        [CONV, {**LINEAR, "processors": 3}],
        [(2, 3, 3, 3), (4, 16)],
        [
            (
                1,
                "op",
                "layer 0 gives 2x4x4, but the weights or keys of this layer need 1x4x4",
                "The weights are for 16 inputs, 2 channels of 8 pixels: perhaps pooling or a "
                "layer is missing in front of this layer. The sample is 3x4x4.",
            )
        ],
    ),
    Violation(
        "E360",
        [CONV, {**PLAIN, "op": "add", "processors": 3, "in_sequences": "[0]", "in_offset": 0}],
        [(2, 3, 3, 3)],
        [
            (
                1,
                "in_sequences",
                "layer 0 gives 2x4x4, but the weights or keys of this layer need 2 x 2x4x4",
                OF_SIZES,
            )
        ],
    ),
    Violation(
        "E361",
        [
            {**CONV, "output_processors": 3},
            {**CONV, "processors": 3, "output_processors": 7},
            {**PLAIN, "op": "add", "in_sequences": "[0, 1]", "in_offset": 0},
        ],
        [(2, 3, 3, 3), (3, 2, 3, 3)],
        [
            (2, "in_sequences", "the operands have 2, 3 channels, they must be equal", None),
        ],
    ),
    Violation(
        "E369",
        [
            {**CONV, "output_processors": 3},
            {**CONV, "processors": 3, "output_processors": 7},
            {**PLAIN, "op": "add", "in_sequences": "[0, 1]", "in_offset": 0},
        ],
        [(2, 3, 3, 3), (3, 2, 3, 3)],
        [
            (
                2,
                "in_sequences",
                "the operands are written to the processors 0x0000.0000.0000.0003, "
                "0x0000.0000.0000.0007, they must be equal",
                "Give the layers that are combined the same output_processors.",
            ),
        ],
    ),
    Violation(
        "E361",
        [
            {**CONV, "output_processors": 3},
            {**CONV, "processors": 3, "pad": 0, "output_processors": 3},
            {
                **PLAIN,
                "op": "add",
                "processors": 3,
                "in_sequences": "[0, 1]",
                "in_offset": 0,
                "in_dim": (2, 5),
            },
        ],
        [(2, 3, 3, 3), (2, 2, 3, 3)],
        [(2, "in_sequences", "the operands have the sizes 4x4, 2x2, they must be equal", None)],
    ),
    Violation(
        "E392",
        [
            {**CONV, "output_processors": 3},
            {**CONV, "processors": 3, "output_processors": 3},
            {**PLAIN, "op": "add", "processors": 3, "in_sequences": "[0, 1]", "in_offset": 0},
        ],
        [(2, 3, 3, 3), (2, 2, 3, 3)],
        [
            (
                2,
                "in_sequences",
                "its data are to be multiplied by different final scales: layer 0 2^1, layer 1 2^3",
                "Train the network again: layers whose results meet get one range of activations.",
            )
        ],
        final_scales=(1, 3, 0),
    ),
    # What is unusual, but possible
    Violation(
        "W362",
        [
            {**PLAIN, "write_gap": 1, "out_offset": 0x1000},
            {**PLAIN, "write_gap": 2, "out_offset": 0x2004, "in_sequences": "input"},
            {**PLAIN, "op": "add", "in_sequences": "[0, 1]", "in_offset": 0x1000},
        ],
        [],
        [
            (
                2,
                "in_sequences",
                "the inputs are written with the gaps 1, 2",
                "Use write_gap: 1 in layer 1.",
            )
        ],
    ),
    Violation(
        "W362",
        [
            {**PLAIN, "out_offset": 0x1000},
            {**PLAIN, "out_offset": 0x2004, "in_sequences": "input"},
            {**PLAIN, "op": "add", "in_sequences": "[0, 1]", "in_offset": 0x1000},
        ],
        [],
        [
            (
                2,
                "in_sequences",
                "the operands are written with write_gap 0, 2 operands need 1",
                "Add write_gap: 1 to the layers that are combined.",
            )
        ],
    ),
    Violation(
        "W363",
        [{**PLAIN, "read_gap": 2}],
        [],
        [
            (
                0,
                "read_gap",
                "'read_gap' is 2, the network's input is loaded without gaps",
                "Use read_gap: 0.",
            )
        ],
        chip=MAX78002,
    ),
    Violation(
        "W363",
        [{**PLAIN, "write_gap": 1}, PLAIN],
        [],
        [(1, "processors", "'read_gap' is 0, layer 0 writes with write_gap 1", GAPLESS)],
    ),
    Violation(
        "W362",
        [
            {**PLAIN, "write_gap": 2, "out_offset": 0x1000},
            {**PLAIN, "write_gap": 2, "out_offset": 0x1004, "in_sequences": "input"},
            {**CONV, "in_sequences": "[0, 1]", "in_offset": 0x1000, "read_gap": 0},
        ],
        [(2, 6, 3, 3)],
        [
            (
                2,
                "in_sequences",
                "the inputs are written with write_gap 2, 2 passes need 1",
                "Use write_gap: 1 in the layers that are joined.",
            )
        ],
        chip=MAX78002,
    ),
    Violation(
        "W363",
        [
            {**PLAIN, "write_gap": 1, "out_offset": 0x1000},
            {**PLAIN, "in_sequences": 0, "in_offset": 0x1000},
        ],
        [],
        [(1, "in_sequences", "'read_gap' is 0, layer 0 writes with write_gap 1", GAPLESS)],
    ),
    Violation(
        "W363",
        [
            {**PLAIN, "write_gap": 1, "out_offset": 0x1000},
            {**PLAIN, "write_gap": 1, "out_offset": 0x1004, "in_sequences": "input"},
            {
                **PLAIN,
                "op": "add",
                "in_sequences": "[0, 1]",
                "in_offset": 0x1000,
                "read_gap": 1,
            },
        ],
        [],
        [
            (
                2,
                "read_gap",
                "'read_gap' is 1, the inputs are written with write_gap 1",
                "Use read_gap: 0.",
            )
        ],
        chip=MAX78002,
    ),
    Violation(
        "W363",
        [
            {**PLAIN, "write_gap": 1, "out_offset": 0x1000},
            {
                **PLAIN,
                "write_gap": 1,
                "out_offset": 0x1000,
                "in_sequences": "input",
                "output_processors": 0x70,
            },
            {**CONV, "processors": 0x77, "in_sequences": "[0, 1]", "in_offset": 0x1000},
        ],
        [(2, 6, 3, 3)],
        [
            (
                2,
                "in_sequences",
                "'read_gap' is 0, the inputs are written with write_gap 1",
                "Use read_gap: 1.",
            )
        ],
        chip=MAX78002,
    ),
    Violation(
        "W364",
        [{**PLAIN, "output_processors": 7}, {**PLAIN, "processors": 0xE}],
        [],
        [
            (
                1,
                "processors",
                "'processors' 0x0000.0000.0000.000e reads 0x0000.0000.0000.0008, which no input "
                "is written to",
                "The inputs are written to 0x0000.0000.0000.0007.",
            )
        ],
    ),
    Violation(
        "W365",
        [
            {**PLAIN, "out_offset": 0x1000},
            {**PLAIN, "in_sequences": "input", "out_offset": 0x1000},
            {**PLAIN, "processors": 0x3F, "in_sequences": "[0, 1]", "in_offset": 0x1000},
        ],
        [],
        [
            (
                2,
                "in_sequences",
                "layer 0 and layer 1 both write to the processors 0x0000.0000.0000.0007",
                "Give the layers that are joined output_processors of their own.",
            )
        ],
    ),
    Violation(
        "W365",
        [
            {**PLAIN, "output_processors": 0x70, "out_offset": 0x1000},
            {**PLAIN, "output_processors": 7, "in_sequences": "input", "out_offset": 0x1000},
            {**PLAIN, "processors": 0x77, "in_sequences": "[0, 1]", "in_offset": 0x1000},
        ],
        [],
        [
            (
                2,
                "in_sequences",
                "layer 1 stands on lower processors than layer 0, but is joined behind it",
                "List the inputs in the order of their processors.",
            )
        ],
    ),
    Violation(
        "E389",
        [{**PLAIN, "out_offset": 0x1000}, {**PLAIN, "in_sequences": 0, "in_offset": 0}],
        [],
        [
            (
                1,
                "in_offset",
                "input 0 is read from 0x0, layer 0 writes to 0x1000",
                "Use in_offset: 0x1000.",
            )
        ],
    ),
    Violation(
        "W366",
        [
            {**PLAIN, "out_offset": 0x1000},
            {**PLAIN, "in_sequences": 0, "in_offset": 0, "in_dim": "[2, 8]"},
        ],
        [],
        [
            (
                1,
                "in_offset",
                "input 0 is read from 0x0, layer 0 writes to 0x1000",
                "Use in_offset: 0x1000.",
            )
        ],
    ),
    Violation(
        "W383",
        [
            {**PLAIN, "output_processors": 7, "out_offset": 0x1000},
            {
                **PLAIN,
                "output_processors": 0x38,
                "out_offset": 0x1000,
                "in_sequences": "input",
            },
            {**CONV, "processors": 0x3F, "in_sequences": "[0, 1]", "in_offset": 0x1000},
        ],
        [(2, 6, 3, 3)],
        [
            (
                2,
                "in_sequences",
                "layer 0 and layer 1 are joined, but do not stand where they are read, or share "
                f"words of an instance{OTHERWISE}",
                "Let each of them begin at a multiple of 4 behind the one before it, with the same "
                "offset; in several passes at the word of its pass, with a write_gap of the passes "
                "less one.",
            )
        ],
    ),
    Violation(
        "W379",
        [{**PLAIN, "output_processors": 0xE}],
        [],
        [
            (
                0,
                "output_processors",
                f"data passes from lane 0 to lane 1 in group 0{OTHERWISE}",
                "Move it by a multiple of 4 processors, or not at all.",
            )
        ],
    ),
    Violation(
        "E385",
        [{**CONV1D, "pad": 0, "dilation": 5, "out_offset": "0x100"}],
        [(2, 1, 3)],
        [
            (
                0,
                "dilation",
                "64 samples through the FIFO for a Conv1d with dilation 5, of which the hardware "
                "needs a multiple; it would wait for more",
                "Use an input of a multiple of 5 samples, or no FIFO.",
            )
        ],
        sample=(1, 64),
        options={"input_port": InputPort.FIFO},
    ),
    Violation(
        "W381",
        [{**CONV, "processors": 0xE}],
        [(2, 3, 3, 3)],
        [
            (
                0,
                "processors",
                "'processors' 0x0000.0000.0000.000e leaves out lanes of the FIFOs; the chip is not "
                "expected to compute the known answer",
                "Fill the first four processors of each group from the first on before the next "
                "group begins, for example 0x0000.0000.0000.0007.",
            )
        ],
        options={"input_port": InputPort.FIFO},
    ),
    Violation(
        "W382",
        [
            {**CONV, "streaming": True, "output_processors": 7, "out_offset": 0x2000},
            {**CONV, "streaming": True},
            {**CONV, "in_sequences": 0, "in_offset": 0x2000},
        ],
        [(3, 3, 3, 3), (3, 3, 3, 3), (2, 3, 3, 3)],
        [
            (
                2,
                "in_sequences",
                "it reads the output of layer 0, of which a stream keeps some rows only; the chip "
                "is not expected to compute the known answer",
                "Let the layers up to this one do without streaming, or compute it again.",
            )
        ],
        options={"input_port": InputPort.FIFO},
    ),
    Violation(
        "W367",
        [CONV1D, ONE],
        [(1, 1, 3), (1, 1, 3, 3)],
        [
            (
                1,
                "op",
                "conv2d on data of one column behind a Conv1d",
                "State in_dim to fold the series into an image.",
            )
        ],
        sample=(1, 8),
    ),
    Violation(
        "E330",
        [{**CONV1D, "processors": mask(36)}],
        [(1, 66, 3)],
        [
            (
                0,
                "pad",
                "'pad' is 1 on a Conv1d of 66 channels, MAX78002 pads up to 64",
                "Use pad: 0.",
            )
        ],
        sample=(66, 8),
        chip=MAX78002,
    ),
    Violation(
        "E331",
        [{**CONV, "calcx4": True}],
        [(6, 3, 3, 3)],
        [
            (
                0,
                "calcx4",
                "'calcx4' with 6 output channels, not a multiple of 4",
                "Use a multiple of 4 channels, or remove 'calcx4'.",
            )
        ],
        chip=MAX78002,
    ),
    Violation(
        "N332",
        [CONV, CONV],
        [(3, 3, 3, 3), (3, 3, 3, 3)],
        [
            (
                1,
                "processors",
                "3 input channels, a multiple of 4 would use less energy",
                None,
            )
        ],
    ),
    Violation(
        "N333",
        [{**CONV, "max_pool": 2, "pool_stride": 2}],
        [(3, 3, 3, 3)],
        [(0, "max_pool", "the first layer pools its input", None)],
    ),
    Violation(
        "W334",
        [{**CONV, "quantization": 4, "output_processors": 6}],
        [(2, 3, 3, 3)],
        [
            (
                0,
                "output_processors",
                "4-bit weights with outputs that begin in lane 1; the chip is not "
                "expected to compute the known answer",
                "Begin the output processors at a multiple of 4.",
            )
        ],
    ),
    Violation(
        "W370",
        [{**CONV, "output_processors": hex(mask(36, 1))}],
        [(66, 3, 3, 3)],
        [
            (
                0,
                "output_processors",
                f"66 outputs, 2 passes of them, begin in lane 1{OTHERWISE}",
                "Begin the output processors at a multiple of 4.",
            )
        ],
    ),
    Violation(
        "W371",
        [{**CONV, "kernel_size": "1x1", "pad": 0, "output_processors": 5}],
        [(2, 3, 1, 1)],
        [
            (
                0,
                "output_processors",
                "unused processors between the outputs, and kernels that do not take one column "
                f"each{OTHERWISE}",
                "Use output processors ('output_map' for the last layer) without gaps, for example "
                "0x0000.0000.0000.0003.",
            )
        ],
    ),
    Violation(
        "W372",
        [{**CONV1D, "pad": 0, "dilation": 3, "quantization": "bin"}],
        [(2, 1, 3)],
        [
            (
                0,
                "quantization",
                f"binary weights in a kernel that is filled up with zeros to 7x1{OTHERWISE}",
                "Use quantization: 2 with weights of -1 and 1.",
            )
        ],
        sample=(1, 12, 1),
        chip=MAX78002,
    ),
    Violation(
        "W373",
        [{**CONV, "op": "ConvTranspose2d", "max_pool": 4, "pool_stride": 4}],
        [(2, 3, 3, 3)],
        [
            (
                0,
                "pool_stride",
                f"'pool_stride' is 4 in front of a ConvTranspose2d{OTHERWISE}",
                "Use pool_stride: 1.",
            )
        ],
    ),
    Violation(
        "W373",
        [{**CONV, "op": "ConvTranspose2d", "max_pool": 2, "pool_stride": 2}],
        [(2, 3, 3, 3)],
        [
            (
                0,
                "pool_stride",
                f"'pool_stride' is 2 in front of a ConvTranspose2d{OTHERWISE}",
                POOL_EARLIER,
            )
        ],
    ),
    Violation(
        "W374",
        [{**CONV1D, "pad": 0, "dilation": 5, "activate": "none", "output_width": 32}],
        [(2, 1, 3)],
        [
            (
                0,
                "output_width",
                f"a Conv1d with three taps, dilation 5 and 32-bit outputs{OTHERWISE}",
                "Use output_width: 8 without write_gap.",
            )
        ],
        sample=(1, 20, 1),
    ),
    Violation(
        "W375",
        [{**LINEAR, "processors": 0x111, "data_format": "CHW"}],
        [(2, 3 * 16)],
        [
            (
                0,
                "flatten",
                f"'flatten' of a sample in CHW format{OTHERWISE}",
                "Load the sample into memory as HWC.",
            )
        ],
    ),
    Violation(
        "W378",
        [
            {**CONV, "streaming": True},
            {**CONV, "processors": 3, "kernel_size": "1x1", "pad": 0, "bypass": True},
        ],
        [(2, 3, 3, 3)],
        [
            (
                1,
                "bypass",
                "a bypassed 1x1 kernel in or behind a streaming layer runs as 3x3 and adds nine "
                "pixels",
                "Put a layer in between, or use weights.",
            )
        ],
        chip=MAX78002,
        options={"input_port": InputPort.FIFO},
    ),
    Violation(
        "W377",
        [{**DEPTHWISE, "processors": 0x15, "output_processors": 7}],
        [(3, 1, 3, 3)],
        [
            (
                0,
                "output_processors",
                "the outputs of a depth-wise layer leave out other processors than the inputs"
                f"{OTHERWISE}",
                "Give the next layer the same processors.",
            )
        ],
        chip=MAX78002,
    ),
    Violation(
        "W384",
        [{**DEPTHWISE, "processors": 0x3F3F, "output_processors": 0x3F3F}],
        [(12, 1, 3, 3)],
        [
            (
                0,
                "output_processors",
                "the outputs of a depth-wise layer are at uneven distances in a group, which the "
                "chip is not known to support",
                "Give this layer and the next processors without gaps, for example "
                "0x0000.0000.0000.0fff.",
            )
        ],
        sample=(12, 4, 4),
        chip=MAX78002,
    ),
    Violation(
        "W376",
        [{**CONV, "activate": "none", "output_processors": 6, "output_width": 32}],
        [(2, 3, 3, 3)],
        [
            (
                0,
                "output_processors",
                "32-bit outputs that leave lanes out in front or in between; the known answer "
                "expects zeros there, and the chip may compute something else",
                "Use output processors without gaps that begin at a multiple of 4.",
            )
        ],
    ),
    Violation(
        "E335",
        [{**CONV, "calcx4": True}],
        [(68, 3, 3, 3)],
        [
            (
                0,
                "calcx4",
                "'calcx4' with 2 output passes and 3 processors, it needs 64",
                "Use at most 64 output channels, or remove 'calcx4'.",
            )
        ],
        chip=MAX78002,
    ),
    Violation(
        "W387",
        [LINEAR],
        [(2, 3)],
        [(0, "flatten", "'flatten' of 1x1 pixels changes nothing", "Remove the key.")],
        sample=(3, 1, 1),
    ),
    Violation(
        "N336",
        [PLAIN, PLAIN],
        [],
        [(1, "op", "layer 0 passes its data through too, one layer can do both", None)],
    ),
    Violation(
        "N336",
        [
            {**PLAIN, "op": "Add"},
            {**PLAIN, "max_pool": 2, "pool_stride": 2},
        ],
        [],
        [
            (
                1,
                "max_pool",
                "layer 0 combines and this one pools, one layer can do both",
                "Pool in layer 0 and add pool_first: false to it.",
            )
        ],
        sample=(6, 4, 4),
    ),
    Violation(
        "N337",
        [{**CONV, "kernel_size": "1x1", "pad": 0, "streaming": True}],
        [(2, 3, 1, 1)],
        [
            (
                0,
                "kernel_size",
                "the 1x1 kernel is stored as 3x3, in or behind a streaming layer",
                None,
            )
        ],
        options={"input_port": InputPort.FIFO},
    ),
    Violation(
        "N388",
        [{**DEPTHWISE, "output_processors": 0x70}],
        [(3, 1, 3, 3)],
        [
            (
                0,
                "output_processors",
                "a depth-wise layer whose outputs go to other processors, which is slower",
                "Give the next layer the same processors.",
            )
        ],
        chip=MAX78002,
    ),
    Violation(
        "W339",
        [{**PLAIN, "output": True}, {**PLAIN, "name": "last"}],
        [],
        [
            (
                1,
                "op",
                "the final layer is no output, its result is neither checked nor delivered "
                "(layer 0 is)",
                "Add output: true here too if it is wanted.",
            )
        ],
    ),
    Violation(
        "E359",
        [{**CONV, "streaming": True, "next_sequence": 2}, CONV, CONV],
        [(3, 3, 3, 3)] * 3,
        [
            (
                0,
                "next_sequence",
                "'next_sequence' is 2 in a streaming layer, expected 1 or stop",
                "Put the streaming layers one behind the other.",
            )
        ],
        chip=MAX78002,
        options={"input_port": InputPort.FIFO},
    ),
    Violation(
        "W368",
        [{**CONV, "in_channel_skip": 1}],
        [(2, 3, 3, 3)],
        [
            (
                0,
                "in_channel_skip",
                "'in_channel_skip' is 1, which has no effect",
                "Add --reshape-inputs.",
            )
        ],
    ),
    # Simulation
    Violation(
        "E393",
        [
            {**PLAIN, "simulated_sequence": 2},
            {**PLAIN, "name": "skipped"},
            {**PLAIN, "in_sequences": "skipped"},
        ],
        [],
        [
            (
                2,
                "in_sequences",
                "'in_sequences' names layer 1 (skipped), which is not simulated before",
                "Correct 'simulated_sequence' so that the layer is simulated first.",
            )
        ],
    ),
    Violation(
        "E394",
        [{**PLAIN, "simulated_sequence": "stop"}, {**PLAIN, "output": True}],
        [],
        [
            (
                1,
                "output",
                "'output' is true, but the layer is not simulated",
                "Remove it, or correct 'simulated_sequence' and 'next_sequence'.",
            )
        ],
    ),
    Violation(
        "E395",
        [PLAIN, {**CONV, "in_sequences": "input", "in_dim": (4, 5)}],
        [(3, 3, 3, 3)],
        [
            (
                1,
                "in_sequences",
                "the inputs are 3x4x4, but the weights or keys of this layer need 3x4x5",
                "Check 'in_sequences', 'in_dim' and 'in_crop', and the sizes of sample and buffer.",
            )
        ],
    ),
    Violation(
        "E395",
        [{**CONV1D, "in_dim": 16, "in_crop": (9, 9)}],
        [(2, 1, 3)],
        [
            (
                0,
                "in_crop",
                "the inputs are 1x16x1 less 9 and 9 rows, but the weights or keys of this layer "
                "need 1x16x1",
                "Check 'in_sequences', 'in_dim' and 'in_crop', and the sizes of sample and buffer.",
            )
        ],
        sample=(1, 16),
    ),
    Violation(
        "E396",
        [
            {**CONV, "output_processors": 7},
            {**CONV, "pad": 0, "output_processors": 3},
            {**PLAIN, "in_sequences": "[0, 1]", "in_dim": 20, "in_channels": 3},
        ],
        [(3, 3, 3, 3), (2, 3, 3, 3)],
        [
            (
                2,
                "in_sequences",
                "the inputs are 3x4x4 and 2x2x2; with different sizes, the channels must be equal",
                "Make the sizes equal with pooling.",
            )
        ],
    ),
    Violation(
        "E397",
        [PLAIN, {**PLAIN, "in_sequences": "0", "buffer_shift": 1, "max_pool": 2}],
        [],
        [
            (
                1,
                "in_sequences",
                "'buffer_shift' on a layer that does not read the data buffer",
                "Name the buffer of 'data_buffer', and nothing else, in 'in_sequences'.",
            ),
            (
                1,
                "buffer_shift",
                "'buffer_shift' on a layer that does more than pass data through",
                None,
            ),
        ],
        others=RING,
    ),
    Violation(
        "E397",
        [PLAIN, {**READS_RING, "buffer_shift": 4}],
        [],
        [
            (
                1,
                "buffer_shift",
                "'buffer_shift' is 4, the buffer has 4 entries",
                "The largest shift that keeps something is 3.",
            )
        ],
        others=RING,
    ),
    Violation(
        "E328",
        [{**PLAIN, "exit_margin": 5}],
        [],
        [
            (
                0,
                "exit_margin",
                "MAX78000 always starts with the first layer, so that it cannot go on behind an "
                "early exit",
                NEWER,
            ),
            (0, "exit_margin", "the last layer is no early exit", "Remove the key."),
        ],
    ),
    Violation(
        "E398",
        [{**PLAIN, "buffer_insert": 1}],
        [],
        [
            (
                0,
                "buffer_insert",
                "'buffer_insert' without a 'data_buffer'",
                "Describe the buffer with the global key data_buffer.",
            )
        ],
    ),
    Violation(
        "E398",
        [{**PLAIN, "buffer_insert": 1}],
        [],
        [
            (
                0,
                "buffer_insert",
                "'buffer_insert' is 1, but the layer gives 3x4x4 for a buffer of 3x4x1",
                "The output must have the buffer's channels, and as many pixels as the entries "
                "need.",
            )
        ],
        others=RING,
    ),
]


def place_in(text: str, layer: int, key: str) -> str:
    """Return where a key's value stands, or the layer itself."""
    if key:
        line, column = line_of(text, key, layer)
    else:
        line, column = text.splitlines().index(f"- # layer {layer}") + 2, 3
    return f"net.yaml:{line}:{column}"


@pytest.mark.parametrize(
    "case", VIOLATIONS, ids=[f"{v.code}-{i}" for i, v in enumerate(VIOLATIONS)]
)
def test_violation_is_reported_with_place_message_and_remedy(
    tmp_path: Path, case: Violation
) -> None:
    network = case.network(tmp_path)
    found = [d for d in check(network, consequences=True) if d.code == case.code]
    text = case.text()
    expected = [
        (
            place_in(text, layer, key),
            f"{network.layer(layer)}: {message}".replace("SAMPLE", network.network.sample_file),
            remedy,
        )
        for layer, key, message, remedy in case.found
    ]
    assert [(str(d.place), d.message, d.remedy) for d in found] == expected
    severity = {"W": Severity.WARNING, "N": Severity.NOTICE}.get(case.code[0], Severity.ERROR)
    assert {d.severity for d in found} == {severity}


OF_NETWORKS = {c.code for c in CONSTRAINTS if c.kind is Kind.NETWORK}
OF_CHIPS = {c.code for c in CONSTRAINTS if c.kind is Kind.HARDWARE}


@pytest.mark.parametrize(
    "case", [v for v in VIOLATIONS if v.code in OF_NETWORKS - OF_CHIPS], ids=lambda v: v.code
)
def test_what_is_true_of_networks_is_found_without_a_chip(tmp_path: Path, case: Violation) -> None:
    network = case.network(tmp_path)
    found = check_network(network.network, consequences=True)
    assert {d.code for d in found} <= OF_NETWORKS
    assert set(found) <= set(check(network, consequences=True))
    assert [d.message for d in found if d.code == case.code] == [
        f"{network.layer(layer)}: {message}".replace("SAMPLE", network.network.sample_file)
        for layer, _, message, _ in case.found
    ]


@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=lambda c: f"{c.code}-{c.kind}")
def test_constraints_of_networks_take_neither_chip_nor_layout(constraint: Constraint) -> None:
    kinds = {p.annotation for p in inspect.signature(constraint.test).parameters.values()}
    if constraint.kind is Kind.NETWORK:
        assert kinds <= {"Layer", "Network", "object"} and "Layer" in kinds
    else:
        assert constraint.kind is Kind.HARDWARE
        assert kinds <= {"MappedLayer", "MappedNetwork", "Chip"} and "MappedLayer" in kinds


@pytest.mark.parametrize("code", sorted({c.code for c in CONSTRAINTS}))
def test_every_complaint_of_a_constraint_has_a_violation(code: str) -> None:
    complaints = [
        inspect.getsource(c.test).count("yield Finding(") for c in CONSTRAINTS if c.code == code
    ]
    tested = sum(len(v.found) for v in VIOLATIONS if v.code == code)
    assert min(complaints) > 0
    assert tested >= sum(complaints)


def test_layer_that_is_never_executed_follows_the_one_before_it(tmp_path: Path) -> None:
    layers = [{**PLAIN, "next_sequence": 2}, PLAIN, {**PLAIN, "in_sequences": 0}]
    network, _ = build(tmp_path, describe(*layers), np.zeros((3, 4, 4), np.int64), chip=MAX78002)
    assert network.order == (0, 2)
    assert network.predecessor(network.layer(1)) is network.layer(0)
    assert not [d for d in check(network) if d.severity is Severity.ERROR]


def test_violations_of_waived_constraints_only_warn(tmp_path: Path) -> None:
    case = next(v for v in VIOLATIONS if v.code == "E325")
    (found,) = check(case.network(tmp_path), {"--ignore-bias-groups"})
    assert (found.code, found.severity) == ("E325", Severity.WARNING)


def test_constraints_have_codes_of_their_own_and_a_reason() -> None:
    codes = [(c.code, c.kind) for c in CONSTRAINTS]
    assert len(set(codes)) == len(codes)
    effects = {c.code: (c.effects, c.covers, c.waived_by) for c in CONSTRAINTS}
    for constraint in CONSTRAINTS:
        assert constraint.code[1] == "3" and constraint.code[0] in "EWN"
        assert len(constraint.reason) > 20 and constraint.reason.endswith(".")
        assert constraint.name == constraint.test.__name__.replace("_", " ")
        # what is true of the mathematics and what of a chip may share a code, and then its effects
        assert effects[constraint.code] == (
            constraint.effects,
            constraint.covers,
            constraint.waived_by,
        )


LEGAL: dict[str, tuple[list[dict[str, Any]], list[Shape], Shape, Chip]] = {
    "convolutions and linear": (
        [CONV, {**CONV, "processors": 3, "max_pool": 2, "pool_stride": 2}, LINEAR],
        [(2, 3, 3, 3), (3, 2, 3, 3), (10, 3 * 2 * 2)],
        (3, 4, 4),
        MAX78000,
    ),
    "planar input": (
        [{**CONV, "processors": 0x111, "data_format": "CHW"}],
        [(2, 3, 3, 3)],
        (3, 4, 4),
        MAX78000,
    ),
    "limits reached": (
        [{**ONE, "output_shift": -15, "pad": 2, "max_pool": 16, "pool_stride": 16}],
        [(1, 1, 3, 3)],
        (1, 32, 32),
        MAX78000,
    ),
    "1024 channels": (
        [{**CONV, "processors": mask(64), "kernel_size": "1x1", "pad": 0}],
        [(1024, 1024, 1, 1)],
        (1024, 1, 1),
        MAX78002,
    ),
    "256 pixels flattened": (
        [{**LINEAR, "processors": 1}],
        [(2, 256)],
        (1, 16, 16),
        MAX78000,
    ),
}


@pytest.mark.parametrize("case", LEGAL)
def test_legal_networks_pass_without_errors_and_warnings(tmp_path: Path, case: str) -> None:
    layers, kernels, shape, chip = LEGAL[case]
    violation = Violation("", layers, kernels, [], sample=shape, chip=chip)
    found = check(violation.network(tmp_path))
    assert [d for d in found if d.severity is not Severity.NOTICE] == []


def test_absurd_sizes_are_refused_without_working_on_them(tmp_path: Path) -> None:
    layers = [{**CONV, "pad": 10**6, "write_gap": 1}]
    network = Violation("", layers, [(2, 3, 3, 3)], []).network(tmp_path)
    found = check(network, consequences=True)
    assert {"E302", "E342", "E343"} <= {d.code for d in found}


def test_all_violations_are_reported_at_once(tmp_path: Path) -> None:
    layers = [
        {**CONV, "output_shift": 16, "pad": 3, "out_offset": 0x20000},
        {**CONV, "processors": 3},
    ]
    found = check(Violation("", layers, [(2, 3, 3, 3), (2, 2, 3, 3)], []).network(tmp_path))
    assert {"E301", "E302", "E340"} <= {d.code for d in found}


@pytest.mark.parametrize("before", [0, 1, 2])
def test_cropped_rows_are_skipped_by_the_place_that_is_read(before: int, tmp_path: Path) -> None:
    """Anywhere else the layer would read rows of the source that were to be cropped, or others."""
    layer = {"processors": 1, "op": "Conv2d", "kernel_size": "1x1", "pad": 0, "activate": "none"}
    for offset in range(0, 0x40, 4):
        text = describe(
            layer,
            dict(
                layer, in_sequences="[0]", in_crop=f"[{before}, 1]", in_dim=f"[{3 - before}, 4]",
                in_offset=0x4000 + offset, out_offset=0,
            ),
        )  # fmt: skip
        network, _ = build(
            tmp_path, text, sample(1, 4, 4), [weights(1, 1, 1, 1), weights(1, 1, 1, 1, seed=2)]
        )
        codes = {d.code for d in check(network)}
        assert ("E389" in codes) == (offset != 4 * 4 * before), offset
