"""What the accelerator delivers, beside what the network computes: both as expressions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ai8xtools.commands.emulate.proof.expressions import network_fingerprints
from ai8xtools.commands.emulate.simulation import Simulation
from ai8xtools.emulator.machine.batch import NetworkBatch
from ai8xtools.emulator.proof.fingerprints import LANES, Fingerprints, Mixer
from ai8xtools.emulator.proof.machine import first_bytes, result_fingerprints, wide_bytes
from ai8xtools.emulator.state.memory import Memory
from ai8xtools.synthesis.network import Layer
from ai8xtools.synthesis.simulate import simulate
from ai8xtools.values import frozen

Integers = NDArray[np.int64]
Bytes = NDArray[np.uint8]
_GROUP = 4  # channels whose 32-bit values stand side by side, at most


@frozen(slots=False)
class Question:
    """A network, and a loaded accelerator that may compute it."""

    simulation: Simulation
    batch: NetworkBatch
    memory: Memory

    @cached_property
    def outputs(self) -> tuple[Layer, ...]:
        """The layers whose outputs are delivered, in this order."""
        return self.simulation.network.outputs()

    def placed(self, image: Integers, fill: Integers) -> Integers:
        """Return the input of the accelerator for one of the network, [channel, row, column, ...].

        `fill` has the form of the accelerator's input. It stays in channels that fill up passes,
        and behind the last pixel.
        """
        operands = self.batch.steps[0].config.input.operands
        target, source = (
            part.reshape(operands, part.shape[0] // operands, -1, *part.shape[3:])
            for part in (fill.copy(), image)
        )
        channels, pixels = (min(source.shape[i], target.shape[i]) for i in (1, 2))
        target[:, :channels, :pixels] = source[:, :channels, :pixels]
        return target.reshape(fill.shape)

    def expected(self, image: Integers, orders: Sequence[Integers]) -> Bytes:
        """Return the bytes that the network delivers for an input [channel, row, column]."""
        network = replace(self.simulation.network, sample=image)
        rounding = self.simulation.average_rounding
        outputs = simulate(network, average_rounding=rounding).outputs
        return np.concatenate([
            outputs[layer.index].reshape(-1)[order].astype(f"<i{layer.output_width // 8}")
            .view(np.uint8)
            for layer, order in zip(self.outputs, orders, strict=True)
        ])  # fmt: skip

    def found(self, images: Sequence[Integers]) -> Bytes:
        """Return the bytes that the accelerator delivers for inputs: [input, byte]."""
        nothing = np.zeros(self.batch.shape, np.int64)
        placed = np.stack([self.placed(image, nothing) for image in images])
        return self.batch.run(placed.astype(np.int8))


@frozen
class Comparison:
    """How results differ. `orders` tells of each output which of its values are delivered one after
    the other, `wrong` are the bytes of the result that are others; `layer` is the first layer of
    the network of which the accelerator lacks a value.
    """

    orders: tuple[Integers, ...]
    wrong: Integers
    layer: Layer | None


def compare(question: Question) -> Comparison:
    """Compare expressions; raises EmulatorError as `result_fingerprints`."""
    mixer, simulation = Mixer(), question.simulation
    image = mixer.numbered("input", *simulation.network.sample.shape)
    computed = network_fingerprints(
        simulation.network, image, mixer, average_rounding=simulation.average_rounding
    )
    unknown = mixer.numbered("beside the input", *question.batch.shape)
    produced: list[Integers] = []
    found = result_fingerprints(
        question.batch, question.batch.data_of(question.memory), question.placed(image, unknown),
        mixer, lambda _config, output: produced.append(_keys(output)),
    )  # fmt: skip
    orders: list[Integers] = []
    expected: list[Fingerprints] = []
    for layer in question.outputs:
        values = computed[layer.index]
        start = sum(map(len, expected))
        if layer.output_width == 32:
            orders.append(_order_of_words(first_bytes(values, mixer), found[start::4]))
            expected.append(wide_bytes(values.reshape(-1, LANES)[orders[-1]], mixer))
        else:
            orders.append(np.arange(values.size // LANES))
            expected.append(values.reshape(-1, LANES))
    wrong = _differing(np.concatenate(expected), found)
    missing = _first_missing(question, computed, produced) if len(wrong) else None
    return Comparison(tuple(orders), wrong, missing)


def _order_of_words(values: Fingerprints, found: Fingerprints) -> Integers:
    """Return in which order the values [channel, row, column] of 32 bits are delivered.

    Several pixels come one after the other for each group of up to four processors, see
    docs/generated-project.md, "The output"; how many channels a group has is what fits.
    """
    channels = len(values)
    flat = values.reshape(channels, -1, LANES)
    pixels = flat.shape[1]
    order: list[Integers] = []
    channel = 0
    while channel < channels:
        rest, place = min(_GROUP, channels - channel), channel * pixels
        count = rest
        if pixels > 1:
            count = next(
                (n for n in range(1, rest) if (found[place + n : place + n + 1]
                                               == flat[channel, 1]).all(axis=1).any()), rest
            )  # fmt: skip
        group = channel + np.arange(count)
        order.append((group * pixels + np.arange(pixels)[:, None]).reshape(-1))
        channel += count
    return np.concatenate(order)


def _differing(one: Fingerprints, two: Fingerprints) -> Integers:
    """Return the numbers of bytes that differ; what only one has differs."""
    common = min(len(one), len(two))
    differs = np.ones(max(len(one), len(two)), np.bool_)
    differs[:common] = (one[:common] != two[:common]).any(axis=-1)
    return np.flatnonzero(differs)


def _keys(values: Fingerprints) -> Integers:
    """Return one number for each fingerprint, which is enough to look for them."""
    return (values[..., 0] << 31 | values[..., 1]).reshape(-1)


def _first_missing(
    question: Question, computed: Mapping[int, Fingerprints], produced: Sequence[Integers]
) -> Layer | None:
    known = np.unique(np.concatenate(produced))
    network = question.simulation.network
    for layer in map(network.layer, network.simulated):
        if not np.isin(_keys(computed[layer.index]), known).all():
            return layer
    return None
