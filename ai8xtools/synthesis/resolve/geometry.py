"""Sizes of a layer: pooling, kernel, padding, and what is left of the image.

Source: docs/network-description.md, "Keys of a layer" and "What follows from other keys".
"""

from __future__ import annotations

from ai8xtools.diagnostics import Diagnostic
from ai8xtools.synthesis.facts import Fact, effects
from ai8xtools.synthesis.network import Operator, Pooling, Size
from ai8xtools.synthesis.parse import LayerDescription
from ai8xtools.synthesis.parse.rules import kernel, operation
from ai8xtools.synthesis.resolve.shapes import output_size, pooled_size
from ai8xtools.values import frozen


class UnresolvableError(Exception):
    """A layer has no size; the layers behind it cannot be checked."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(str(diagnostic))
        self.diagnostic = diagnostic


@frozen
class LayerGeometry:
    """Everything that has a size; pairs are (rows, columns)."""

    in_dim: Size
    pooling: Pooling
    pooled_dim: Size
    kernel: Size
    pad: Size
    stride: Size
    dilation: int
    output_pad: int
    out_dim: Size

    @property
    def pooled_pixels(self) -> int:
        """Pixels of a channel after pooling."""
        return self.pooled_dim[0] * self.pooled_dim[1]


def geometry(layer: LayerDescription, in_dim: Size, *, widened: bool) -> LayerGeometry:
    """Return a layer's sizes from that of its input; raise UnresolvableError if nothing is left.

    `widened`: in place of a 1x1 kernel there is a 3x3 one with more padding.
    """
    operator, _ = operation(layer)
    if operator.one_dimensional and in_dim[1] != 1:
        raise UnresolvableError(
            layer.error(
                "E223",
                f"a Conv1d reads {in_dim[0]}x{in_dim[1]} pixels, it needs data in one column",
                "in_dim",
                "op",
                remedy=f"Add in_dim: {in_dim[0] * in_dim[1]} to read the rows one after the other.",
            )
        )
    if min(in_dim) < 1:
        before, after = layer.get("in_crop")
        raise _nothing_left(
            layer, f"cropping {before} and {after} rows leaves nothing", ("in_crop",), "Crop less."
        )
    pooling = _pooling(layer, operator, in_dim)
    pooled = pooled_size(in_dim, pooling)
    if min(pooled) < 1:
        rows, columns = pooling.window
        raise _nothing_left(
            layer,
            f"a {rows}x{columns} pooling window leaves nothing of a {in_dim[0]}x{in_dim[1]} image",
            ("max_pool", "avg_pool"),
            f"The largest window here is {min(in_dim)}.",
        )
    taps, pad = kernel(layer), _pad(layer, operator)
    if widened:
        taps, pad = (3, 3), (pad[0] + 1, pad[1] + 1)
    transposed = operator.transposed
    stride = layer.get("stride", (2, 2) if transposed else (1, 1))
    stride = (stride[0], 1) if operator.one_dimensional else stride
    dilation = layer.get("dilation", (1,))[0]
    output_pad = layer.get("output_pad", (int(transposed),))[0]
    size = (1, 1) if layer.get("flatten", False) else pooled
    out_dim = output_size(size, operator, taps, pad, stride, dilation, output_pad)
    if min(out_dim) < 1 and transposed:
        raise _nothing_left(
            layer,
            f"'pad' is {max(pad)}: a transposed {taps[0]}x{taps[1]} kernel leaves nothing of a "
            f"{size[0]}x{size[1]} image",
            ("pad", "kernel_size"),
            f"Padding takes away from a transposed convolution: use pad: {max(taps) // 2}.",
        )
    if min(out_dim) < 1:
        spread = f" with dilation {dilation}" if dilation > 1 else ""
        raise _nothing_left(
            layer,
            f"a {taps[0]}x{taps[1]} kernel{spread} leaves nothing of a {size[0]}x{size[1]} image",
            ("dilation", "kernel_size") if spread else ("kernel_size", "pad"),
            f"It reaches over {(max(taps) - 1) * dilation + 1} values: use a smaller dilation."
            if spread
            else "Add padding or pool less.",
        )
    return LayerGeometry(in_dim, pooling, pooled, taps, pad, stride, dilation, output_pad, out_dim)


def _nothing_left(
    layer: LayerDescription, message: str, keys: tuple[str, ...], remedy: str
) -> UnresolvableError:
    following = effects(needs=Fact.SIZES)
    return UnresolvableError(layer.error("E216", message, *keys, remedy=remedy, effects=following))


def _pooling(layer: LayerDescription, operator: Operator, in_dim: Size) -> Pooling:
    """Pooling keys; data in one column is pooled along its length only."""
    average = "max_pool" not in layer and "avg_pool" in layer
    window = layer.get("max_pool", layer.get("avg_pool", (1, 1)))
    stride = layer.get("pool_stride", (1, 1))
    dilation = layer.get("pool_dilation", (1, 1))
    if operator.one_dimensional or in_dim[1] == 1:
        window, stride, dilation = (window[0], 1), (stride[0], 1), (dilation[0], 1)
    return Pooling(window, stride, dilation, average)


def _pad(layer: LayerDescription, operator: Operator) -> Size:
    """Padding: one pixel for convolutions unless stated; only along the data of a Conv1d."""
    rows, columns = layer.get("pad", (1, 1) if operator.convolves else (0, 0))
    return (rows, 0) if operator.one_dimensional else (rows, columns)
