"""Which layers of a graph in whole numbers deliver their sums, and where sums cannot be.

Results of 32 bits are those of the network; what a layer reads has 8 bits.
Source: docs/checkpoints.md, "ONNX graphs".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ai8xtools.frontends.accelerator.lowering import Parts
from ai8xtools.frontends.layers import DescribedLayer, Refusal, sums_between, wide_data

_ROUND = "Round and limit them first: Mul by 2^-7, Add 0.5, Floor, Clip to -128..127."

_UNIT = 128


class Sums:
    """Layers whose results nothing rounds, by index; `limited` are those of 32 bits on purpose.

    Where `exact`, the graph rounds by itself; else its layers have 8 bits if others read them. With
    `calibrated` integers of an import the last convolution has 8 bits, too, as there.
    """

    def __init__(
        self,
        layers: Sequence[DescribedLayer],
        tensors: Mapping[int, Parts],
        *,
        exact: bool,
        calibrated: bool = False,
    ) -> None:
        self._layers, self._tensors = layers, tensors
        self._exact = exact and not any((one.weights % 1).any() for one in tensors.values())
        self._bare = {
            index for index, one in tensors.items()
            if not one.rounded and not (calibrated and one.spec.op != "Linear")
        }  # fmt: skip
        self._limited = {index for index, layer in enumerate(layers) if layer.wide}

    def leave(self, indices: Sequence[int]) -> bool:
        """Return whether sums are among results, which a graph joins at its end."""
        return self._exact and not (self._bare | self._limited).isdisjoint(indices)

    def deliver(self) -> None:
        """Give sums that leave the network 32 bits."""
        readers = self._readers()
        for index in self._bare - readers.keys():
            layer = self._layers[index]
            if layer.is_output and not _rectifies(layer):
                layer.keys["output_width"] = 32

    def refusals(self) -> Iterator[Refusal]:
        """Yield a refusal for each result of 32 bits that does not leave the network as it is."""
        yield from map(_rectified, filter(_rectifies, map(self._layers.__getitem__, self._limited)))
        yield from wide_data(self._layers, _ROUND)

    def doubts(self) -> Iterator[Refusal]:
        """Yield a refusal for each sum that does not leave the network, and each bias that has to
        be rounded: the graph is computed right only if rounding changes nothing.
        """
        readers = self._readers()
        biases = {index: one.bias for index, one in self._tensors.items() if one.bias is not None}
        for index, bias in biases.items() if self._exact else ():
            odd = bias[bias % _UNIT != 0]
            if odd.size:
                why = f"its bias of {odd[0]:g} is no multiple of {_UNIT}, the unit of the chip's"
                yield Refusal(self._layers[index].node, why, "Round the bias.")
        for index in sorted(self._bare) if self._exact else ():
            layer = self._layers[index]
            if index in readers:
                yield sums_between(layer, readers[index], "sums, which nothing rounds,", _ROUND)
            elif _rectifies(layer):
                yield _rectified(layer)

    def _readers(self) -> Mapping[int, DescribedLayer]:
        return {index: layer for layer in self._layers for index in layer.inputs}


def _rectifies(layer: DescribedLayer) -> bool:
    return bool(layer.keys["activate"] != "None")


def _rectified(layer: DescribedLayer) -> Refusal:
    why = "its results of 32 bits are rectified, the chip delivers them as they are"
    return Refusal(layer.node, why, f"{_ROUND} Or rectify in the application.")
