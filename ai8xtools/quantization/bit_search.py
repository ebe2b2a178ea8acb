"""Weight widths by sensitivity: by their effect on the results of the network.

Each layer is quantized with each width, by calibration, while all others keep 8 bits, and the
results on samples are compared with those of the trained network. Then bits are taken away where
that costs least for the memory it frees.
Source: docs/quantization.md, "Bits by sensitivity".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ai8xtools.diagnostics.errors import InputError
from ai8xtools.quantization.calibration import DATA_STEPS, Walk, fill
from ai8xtools.quantization.options import WEIGHT_BITS, LayerIntegers
from ai8xtools.quantization.report import decibels
from ai8xtools.reading.progress import progress, tracked
from ai8xtools.values import frozen

WIDEST = max(WEIGHT_BITS)


@frozen
class Sensitivity:
    """The cost of a layer's widths: number of weights, and by bits the integers and their noise.

    Noise is the squared error of the network's results as a part of their energy.
    """

    name: str
    weights: int
    integers: Mapping[int, LayerIntegers]
    noise: Mapping[int, float]

    def bytes_with(self, bits: int) -> int:
        """Return the bytes that the weights take with so many bits."""
        return -(-self.weights * bits // 8)


@frozen
class Step:
    """A step from 8 bits towards few: bits by layer, bytes of weights.

    `snr_db` is the ratio of signal to noise of the results with all these bits at once, `same` the
    part of samples whose largest result is in the same place as that of the trained network.
    """

    bits: Mapping[str, int]
    size_bytes: int
    snr_db: float
    same: float


def sensitivities(
    trained: nn.Module,
    simulated: nn.Module,
    samples: Sequence[Tensor],
) -> list[Sensitivity]:
    """Measure every layer; `simulated` has 8 bits everywhere afterwards.

    The networks and samples are those of `calibration.calibrate`. Raises InputError E630.
    """
    layers_measured = []
    with torch.no_grad():
        walk = Walk(trained.eval(), simulated.eval(), samples)
        names = walk.order()
        widest = {
            name: walk.choose(name, WIDEST).integers for name in tracked("Calibrating", names)
        }
        layers = dict(simulated.named_modules())
        for name in tracked("Measuring layers", names):
            integers, noise = {WIDEST: widest[name]}, {}
            for bits in WEIGHT_BITS:
                if bits != WIDEST:
                    integers[bits] = walk.choose(name, bits).integers
                fill(layers[name], integers[bits])
                noise[bits] = _compare(trained, simulated, walk.judging)[0]
            fill(layers[name], widest[name])
            layers_measured.append(Sensitivity(name, widest[name].weights.size, integers, noise))
    return layers_measured


def search(
    sensitivities: Sequence[Sensitivity],
    trained: nn.Module,
    simulated: nn.Module,
    samples: Sequence[Tensor],
) -> list[Step]:
    """Return the steps from 8 bits to the fewest; each costs the least noise for the bytes."""
    bits = {layer.name: WIDEST for layer in sensitivities}
    steps = [_measured(sensitivities, bits, trained, simulated, samples)]
    with progress("Searching bits", len(bits) * (len(WEIGHT_BITS) - 1)) as advance:
        while changes := list(_changes(sensitivities, bits)):
            _, name, fewer = min(changes)
            bits = {**bits, name: fewer}
            steps.append(_measured(sensitivities, bits, trained, simulated, samples))
            advance(1)
    return steps


def least_bytes(weights: Iterable[int]) -> int:
    """Return the bytes of layers with so many weights and the fewest bits."""
    return sum(-(-count * min(WEIGHT_BITS) // 8) for count in weights)


def within(steps: Sequence[Step], budget_bytes: int) -> Step:
    """Return the best step within a budget; InputError E713 where none is."""
    fitting = [step for step in steps if step.size_bytes <= budget_bytes]
    if not fitting:
        raise InputError(
            "E713",
            f"{budget_bytes} bytes are less than the weights take with the fewest bits, "
            f"{min(step.size_bytes for step in steps)}",
            "--budget",
            "Allow more, or train a smaller network.",
        )
    return max(fitting, key=lambda step: step.snr_db)


def _changes(
    sensitivities: Sequence[Sensitivity], bits: Mapping[str, int]
) -> Iterable[tuple[float, str, int]]:
    """Yield what fewer bits of a layer cost per byte, its name and these bits."""
    for layer in sensitivities:
        held = bits[layer.name]
        for fewer in (width for width in WEIGHT_BITS if width < held):
            freed = layer.bytes_with(held) - layer.bytes_with(fewer)
            if freed:
                yield (layer.noise[fewer] - layer.noise[held]) / freed, layer.name, fewer


def _measured(
    sensitivities: Sequence[Sensitivity],
    bits: Mapping[str, int],
    trained: nn.Module,
    simulated: nn.Module,
    samples: Sequence[Tensor],
) -> Step:
    layers = dict(simulated.named_modules())
    with torch.no_grad():
        for layer in sensitivities:
            fill(layers[layer.name], layer.integers[bits[layer.name]])
    noise, same = _compare(trained, simulated, samples)
    size = sum(layer.bytes_with(bits[layer.name]) for layer in sensitivities)
    return Step(dict(bits), size, decibels(1.0, noise), same)


def flat_results(model: nn.Module, samples: Sequence[Tensor], steps: int = 1) -> Tensor:
    """Return the results [N, values] of a network for inputs times `steps`, in double precision."""
    with torch.no_grad():
        return torch.cat([_flat(model(batch * steps)) for batch in samples]).double()


def noise_of(expected: Tensor, results: Tensor) -> tuple[float, float]:
    """Return the noise of results [N, values], and the part with the same largest result.

    The factor between the results is the one with the least error.
    """
    power = float((results * results).sum())
    scaled = results * (float((results * expected).sum()) / power if power else 0.0)
    noise = float((scaled - expected).square().sum()) / (float(expected.square().sum()) or 1.0)
    return noise, float((expected.argmax(1) == results.argmax(1)).double().mean())


def _compare(
    trained: nn.Module, simulated: nn.Module, samples: Sequence[Tensor]
) -> tuple[float, float]:
    """Return `noise_of` for the results of a network and of its simulation."""
    return noise_of(flat_results(trained, samples), flat_results(simulated, samples, DATA_STEPS))


def _flat(results: Any) -> Tensor:
    """Return the results [N, values] of a network with one output or several."""
    if isinstance(results, Tensor):
        return results.flatten(1)
    return torch.cat([_flat(one) for one in results], 1)
