"""What the debugging options write of each layer, prepared by `summarize`, printed by `emit`.

Source: docs/generated-project.md, "Files for debugging".
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ai8xtools.values import frozen

Tensor = NDArray[np.int64]


@frozen
class OutputWords:
    """The data memory words that a layer writes; one element of each array (int64) for a word.

    `offsets` count words in the data memory of all groups, one memory instance after the other;
    a word holds the channels `first` to `last` of the pixel at `rows` and `columns`.
    """

    offsets: NDArray[np.int64]
    values: NDArray[np.int64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    rows: NDArray[np.int64]
    columns: NDArray[np.int64]


@frozen
class LayerData:
    """A layer as it is computed; arrays are int64 unless noted.

    `settings` are the cells of its line in the file of configurations. `operands` and `unpooled`
    (what is pooled: the combined operands where these come first) are [operand, channel, row,
    column], `pooled` too, or None without pooling. `value` reaches the operator, `accumulator`
    includes the bias, `scaled` is shifted and rounded, `output` clipped and activated.
    `pass_sums` (int32 [pass, channel, row, column]) are the accumulators after each pass without
    bias: None without weights, or where nobody asked.
    """

    index: int
    settings: tuple[str, ...]
    operands: Tensor
    unpooled: Tensor
    pooled: Tensor | None
    value: Tensor
    accumulator: Tensor
    scaled: Tensor
    output: Tensor
    weights: Tensor | None
    bias: Tensor | None
    words: OutputWords
    pass_sums: NDArray[np.int32] | None

    @property
    def arriving(self) -> Tensor:
        """What is combined or, already combined, reaches the operator."""
        return self.unpooled if self.pooled is None else self.pooled
