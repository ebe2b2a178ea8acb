"""The fewest instructions for a product that a kernel of each kind can need on a core.

A tile has some sums in registers; each step loads operands that the tile shares, and multiplies and
adds them. What follows once for each output (`_END`), or for each patch, is divided by the products
it serves. Weights and data have 8 bits in memory, and loads of a word bring four of them. Calls,
loops, borders and addresses count for nothing: what a kernel takes above is its own. Words that
follow each other are one load where the core has LDM or LDRD.

| kind | a step | products |
|---|---|---|
| pairs, Cortex-M4 | 8 SMLAD, 2 SXTB16, a load of the pixels' pairs, one of weights | 16 |
| one pixel by four filters, Cortex-M4 | 2 loads, 2 SXTB16, 6 SMLAD, 4 SXTAB16 | 16 |
| two pixels in a word, Cortex-M4 | 4 MLA, 3 loads | 8 |
| the same, RV32IMC | 4 products, 4 sums, 4 loads | 8 |
| the same, Cortex-M0+, whose product destroys an operand | 2 products, 2 sums, 2 loads | 4 |
| without a multiplier | 2 loads, and for each nibble 3 for a place, a load, a sum, a store | 2 |
| depthwise, Cortex-M4: a row, 3 pixels by 2 channels | 6 loads, 8 SXTB16, 18 SMLABB, SMLATT | 18 |
| the same, RV32IMC: 3 pixels by 1 channel | 8 loads, 9 products, 9 sums | 9 |
| the same, Cortex-M0+: 6 pixels by 1 channel | 57 instructions | 18 |

A product of the Cortex-M0+ destroys an operand: eighteen take eighteen of the registers that loads
and copies filled, so the eleven values that are loaded need seven copies. A signed byte is loaded
from the sum of two of eight low registers only. Three weights, a column and its copy leave three:
an address and two offsets, which reach two columns, so eight columns need three additions to the
address. These are 11 loads, 7 copies, 3 additions, 18 products and 18 sums. The sums of the pixels
are in the high registers, of which there are six, and each is moved before it is shifted. (Three
pixels take 30 for 9 products.) Without saturation or conditional instructions a limit takes a
difference, a comparison and a branch.

The place of a bucket without a multiplier is its base and four times a nibble: RISC-V addresses
memory by one register, and a nibble of a byte is cut out and moved to bits 2 to 5. A byte that has
one of them there already has the other one in two pieces, which takes as many for both. Emptying
the buckets of up to 256 inputs takes 6 instructions for each of 30 (`_EMPTIED`).

Sums of two pixels in a word are 16-bit numbers: whenever they might not be, which the weights of a
layer decide, both are taken out: 4 instructions a word (`_TAKEN_OUT`).
"""

from __future__ import annotations

import numpy as np

from ai8xtools.software.graph import Convolution
from ai8xtools.software.kernels.lanes import common_runs, input_bounds

_END = {"cortex-m4": 3, "cortex-m0plus": 5, "rv32imc": 4, "rv32ec": 4}
"""An output: shifted, limited (by one instruction, by two that compare, by three), stored."""
_TAKEN_OUT = 4
_PAIRS = (8 + 2 + 2) / 16
_WIDENED = (1 + 2 + 2 + 1) / 4
"""A value of a patch in pairs: a word is loaded, taken apart, added to the sum of inputs, stored;
each filter uses it."""
_PIXEL = (2 + 2 + 6 + 4) / 16
_SHARED = (1 + 2 + 3) / 4
"""An input of a single pixel, for what all filters share: a word is loaded, taken apart, added to
the sum of inputs (twice), and to that of the products of neighbors."""
_LANES = {"cortex-m4": (4 + 3) / 8, "rv32imc": (4 + 4 + 4) / 8, "cortex-m0plus": (2 + 2 + 2) / 4}
_NIBBLES = (2 + 2 * 6) / 2
_EMPTIED = 2 * 15 * (1 + 1 + 1 + 3)
"""A bucket: loaded, cleared, added to those above it; their sum, for both pixels."""
_LONGEST = 256
_DEPTHWISE = {
    "cortex-m4": (6 + 8 + 18) / 18, "rv32imc": (8 + 9 + 9) / 9,
    "cortex-m0plus": (11 + 7 + 3 + 18 + 18) / 18 + 1 / 9,
}  # fmt: skip


def least(conv: Convolution, core: str, kernel: str) -> float:
    """Return the fewest instructions for a product of a layer of 8 bits with a kernel, by name."""
    products = conv.weights[0].size
    end = _END[core] / products
    if kernel == "nn_depthwise":
        return _DEPTHWISE[core] + end
    if kernel == "nn_conv_dsp":
        return _PAIRS + _WIDENED / conv.filters + end
    if kernel == "nn_conv_dsp_pixel":
        return _PIXEL + _SHARED / conv.filters + end
    if kernel == "nn_conv_nomul":
        return _NIBBLES + _EMPTIED * -(-products // _LONGEST) / (2 * products) + end
    return _LANES[core] + _TAKEN_OUT / (2 * _run(conv)) + end


def _run(conv: Convolution) -> float:
    """Return the mean length of the longest runs whose sums have 16 bits, filter by filter."""
    low, high = input_bounds(conv.input, conv.kernel[0] * conv.kernel[1])
    flat = conv.weights.transpose(0, 2, 3, 1).reshape(conv.filters, -1)
    counts = [len(common_runs(one[None], low, high)) for one in flat]
    return float(flat.shape[1] / np.mean(counts))
