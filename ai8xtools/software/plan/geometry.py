"""The properties of a layer that determine its memory: sizes, windows, bytes."""

from __future__ import annotations

from ai8xtools.software.memory import aligned
from ai8xtools.values import frozen

Size = tuple[int, int]


@frozen(kw_only=True)
class Geometry:
    """A layer as a window that moves over an image; pairs are (rows, columns).

    `reach` are the rows and columns between the first and the last that a result needs, inclusive;
    with pooling behind a convolution, those that a pooled result needs. `kernel` counts the weights
    of a window. Values have `in_bytes` and `out_bytes`; a filter has `filter_bits` of weights, and
    filters come in groups of `filter_step`. `weight_bytes` are those of all weights and biases.
    Input pixels are `spread` apart. `sources` images of the same shape are read together. Partial
    sums are those of `sum_window` results, `sum_stride` apart, for each result that is stored.
    """

    in_size: Size
    channels: int
    out_size: Size
    filters: int
    reach: Size = (1, 1)
    kernel: Size = (1, 1)
    stride: Size = (1, 1)
    pad: Size = (0, 0)
    spread: Size = (1, 1)
    in_bytes: int = 1
    out_bytes: int = 1
    filter_bits: int = 0
    filter_step: int = 1
    weight_bytes: int = 0
    sources: int = 1
    sum_window: Size = (1, 1)
    sum_stride: Size = (1, 1)

    @property
    def row_bytes(self) -> int:
        """Bytes of an input row."""
        return self.in_size[1] * self.channels * self.in_bytes

    @property
    def input_bytes(self) -> int:
        """Bytes of an input image."""
        return self.in_size[0] * self.row_bytes

    @property
    def output_bytes(self) -> int:
        """Bytes of the output image."""
        return self.out_size[0] * self.out_size[1] * self.filters * self.out_bytes

    @property
    def pixels(self) -> int:
        """Pixels of the output image."""
        return self.out_size[0] * self.out_size[1]

    @property
    def pointwise(self) -> bool:
        """Whether each result needs one pixel, the one in its place."""
        one = self.reach == self.stride == self.spread == (1, 1) and self.pad == (0, 0)
        return one and self.in_size == self.out_size

    def bytes_of_filters(self, filters: int) -> int:
        """Bytes of the weights of some filters."""
        whole = min(aligned(filters, self.filter_step), aligned(self.filters, self.filter_step))
        return -(-whole * self.filter_bits // 8)

    def bytes_of_planes(self, filters: int) -> int:
        """Bytes of the weights of some filters for one input channel."""
        return -(-filters * self.filter_bits // (8 * self.channels))

    def needed(self, row: int) -> tuple[int, int]:
        """Return the input rows, first and end, that an output row needs."""
        top = row * self.stride[0] - self.pad[0]
        first = -(-top // self.spread[0])
        end = (top + self.reach[0] - 1) // self.spread[0] + 1
        first, end = max(first, 0), min(max(end, 0), self.in_size[0])
        return min(first, end), end

    def needed_columns(self, first: int, count: int) -> tuple[int, int]:
        """Return the input columns, first and end, that some output columns need."""
        left = first * self.stride[1] - self.pad[1]
        right = (first + count - 1) * self.stride[1] - self.pad[1] + self.reach[1] - 1
        start = max(-(-left // self.spread[1]), 0)
        end = min(max(right // self.spread[1] + 1, 0), self.in_size[1])
        return min(start, end), end

    def ring_rows(self, band: int, *, ahead: bool) -> int:
        """Return the input rows that have to be there for bands of output rows.

        `ahead`: with those that arrive for the next band.
        """
        if self.spread[0] > 1:
            return self._followed(band, ahead=ahead)
        rows = min(self.in_size[0], (band - 1) * self.stride[0] + self.reach[0])
        return min(self.in_size[0], rows + band * self.stride[0]) if ahead else rows

    def _followed(self, band: int, *, ahead: bool) -> int:
        rows = self.out_size[0]
        most = 1
        for first in range(0, rows, band):
            last = min(first + band * (2 if ahead else 1), rows) - 1
            most = max(most, self.needed(last)[1] - self.needed(first)[0])
        return most

    def tile_columns(self, columns: int) -> int:
        """Return the input columns that some output columns need at most."""
        if self.spread[1] > 1:
            starts = range(0, self.out_size[1], columns)
            sizes = (self.needed_columns(x, min(columns, self.out_size[1] - x)) for x in starts)
            return max(max(end - first for first, end in sizes), 1)
        return min(self.in_size[1], (columns - 1) * self.stride[1] + self.reach[1])

    def sum_size(self, band: int, columns: int) -> int:
        """Return the number of partial sums for some rows and columns of one output channel."""
        sizes = [
            (count - 1) * stride + window
            for count, stride, window in zip(
                (band, columns), self.sum_stride, self.sum_window, strict=True
            )
        ]
        return sizes[0] * sizes[1]
