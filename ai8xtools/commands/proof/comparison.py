"""What the accelerator delivers, beside what the network computes: both as expressions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ai8xtools.commands.proof.expressions import network_fingerprints
from ai8xtools.commands.proof.reference import GROUP, Reference
from ai8xtools.emulator import EmulatorError
from ai8xtools.emulator.decode.own_input import loaded_input
from ai8xtools.emulator.machine.batch import NetworkBatch
from ai8xtools.emulator.proof.fingerprints import LANES, Fingerprints, Mixer
from ai8xtools.emulator.proof.machine import Expressions, first_bytes, wide_bytes
from ai8xtools.emulator.state.memory import Memory
from ai8xtools.synthesis.network import Network
from ai8xtools.values import frozen

Integers = NDArray[np.int64]


@frozen(slots=False)
class Question:
    """A network, and a loaded accelerator that may compute it, which may not be `alone` in it."""

    reference: Reference
    batch: NetworkBatch
    memory: Memory
    alone: bool = True

    @cached_property
    def _sources(self) -> Integers:
        """Number of the network's input value for each of the accelerator's; -1 where it has none.

        Both have the same words of each processor, pixel by pixel and in each pass by pass.
        """
        inputs, count = self.batch.steps[0].config.input, len(self.batch.steps[0].config.processors)
        sample = self.reference.network.sample
        if len(sample) % inputs.operands:
            raise EmulatorError(
                "E882", f"the accelerator combines {inputs.operands} images, the network has "
                f"{len(sample)} channels",
            )  # fmt: skip
        numbers: Integers = np.arange(sample.size).reshape(inputs.operands, -1, sample[0].size)
        fill = -numbers.shape[1] % count
        numbers = np.pad(numbers, ((0, 0), (0, fill), (0, 0)), constant_values=-1)
        numbers = numbers.reshape(inputs.operands, -1, count, sample[0].size)
        words = numbers.transpose(0, 2, 3, 1).reshape(inputs.operands, count, -1)
        needed = inputs.passes * inputs.size[0] * inputs.size[1]
        behind = max(needed - words.shape[2], 0)
        words = np.pad(words, ((0, 0), (0, 0), (0, behind)), constant_values=-1)[..., :needed]
        placed = words.reshape(inputs.operands, count, -1, inputs.passes).transpose(0, 3, 1, 2)
        return np.asarray(placed.reshape(self.batch.shape))

    @property
    def size(self) -> int:
        """How many inputs are computed at once."""
        return self.batch.size

    @cached_property
    def loaded(self) -> Integers:
        """The input that is in the memory, as the accelerator reads it."""
        return loaded_input(self.memory).astype(np.int64)

    def placed(self, image: Integers, fill: Integers) -> Integers:
        """Return the input of the accelerator for one of the network, [channel, row, column, ...].

        `fill` has the form of the accelerator's input. It stays in channels that fill up passes,
        and behind the last pixel.
        """
        target, mask = fill.copy(), self._sources >= 0
        target[mask] = image.reshape(-1, *image.shape[3:])[self._sources[mask]]
        return target

    def run(self, images: Sequence[Integers]) -> tuple[NDArray[np.uint8], list[Integers]]:
        """Return the bytes that the accelerator delivers for inputs, [input, byte], and of each
        layer the sums of all values that it computes, [input].

        There are at most `size` inputs.
        """
        sums: list[Integers] = []
        placed = np.stack([self.placed(image, self.loaded) for image in images])
        results = self.batch.run(
            placed.astype(np.int8),
            lambda _config, output: sums.append(output.sum(axis=(0, 1, 2)).astype(np.int64)),
        )
        return results, sums


@frozen
class Comparison:
    """How results differ. `orders` tells of each output which of its values are delivered one after
    the other, `wrong` are the bytes of the result that are others; `missing` says in which layer
    this begins, if in one.
    """

    orders: tuple[Integers, ...]
    wrong: Integers
    missing: str


def compare(question: Question) -> Comparison:
    """Compare expressions; raises EmulatorError as `Expressions`.

    A rolling buffer keeps values of earlier inferences: as many are compared as it takes until it
    holds nothing of the start, and one more; all later ones are like that.
    """
    mixer, network = Mixer(), question.reference.network
    buffer = network.buffer
    accelerator = Expressions(
        question.batch, question.memory, mixer,
        from_start=buffer is not None, alone=question.alone,
    )  # fmt: skip
    beside = mixer.constants(question.loaded)
    earlier: Mapping[int, Fingerprints] | None = None
    for inference in range(1 if buffer is None else buffer.entries + 1):
        image = mixer.numbered(("input", inference), *network.sample.shape)
        earlier = network_fingerprints(
            network, image, mixer, earlier=earlier,
            average_rounding=question.reference.average_rounding,
        )  # fmt: skip
        outputs: list[Fingerprints] = []
        actual = accelerator.infer(question.placed(image, beside), outputs.append)
        comparison = _compared(question, earlier, actual, outputs, mixer)
        if len(comparison.wrong):
            break
    return comparison


def _compared(
    question: Question,
    computed: Mapping[int, Fingerprints],
    actual: Fingerprints,
    produced: Sequence[Fingerprints],
    mixer: Mixer,
) -> Comparison:
    orders: list[Integers] = []
    expected: list[Fingerprints] = []
    for layer in question.reference.outputs:
        values = computed[layer.index]
        start = sum(map(len, expected))
        if layer.output_width == 32:
            orders.append(_order_of_words(first_bytes(values, mixer), actual[start::4]))
            expected.append(wide_bytes(values.reshape(-1, LANES)[orders[-1]], mixer))
        else:
            orders.append(np.arange(values.size // LANES))
            expected.append(values.reshape(-1, LANES))
    wrong = differing(np.concatenate(expected), actual)
    missing = ""
    if len(wrong):
        missing = first_missing(question.reference.network, computed, produced, "the accelerator")
    return Comparison(tuple(orders), wrong, missing)


def _order_of_words(values: Fingerprints, actual: Fingerprints) -> Integers:
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
        rest, place = min(GROUP, channels - channel), channel * pixels
        count = rest
        if pixels > 1:
            count = next(
                (n for n in range(1, rest) if (actual[place + n : place + n + 1]
                                               == flat[channel, 1]).all(axis=1).any()), rest
            )  # fmt: skip
        group = channel + np.arange(count)
        order.append((group * pixels + np.arange(pixels)[:, None]).reshape(-1))
        channel += count
    return np.concatenate(order)


def differing(one: Fingerprints, two: Fingerprints) -> Integers:
    """Return the numbers of bytes that differ; what only one has differs."""
    common = min(len(one), len(two))
    differs = np.ones(max(len(one), len(two)), np.bool_)
    differs[:common] = (one[:common] != two[:common]).any(axis=-1)
    return np.flatnonzero(differs)


def keys_of(values: Fingerprints) -> Integers:
    """Return one number for each fingerprint, which is enough to look for them."""
    return (values[..., 0] << 31 | values[..., 1]).reshape(-1)


def first_missing(
    network: Network,
    computed: Mapping[int, Fingerprints],
    produced: Sequence[Fingerprints],
    name: str,
) -> str:
    """Say which values of a network something with a `name` lacks, of the first layer of which it
    lacks any.
    """
    keys = np.unique(np.concatenate([keys_of(output) for output in produced]))
    for layer in (layer for layer in network.executed() if layer.index in computed):
        values = computed[layer.index]
        lacks = ~np.isin(keys_of(values), keys).reshape(values.shape[:-1])
        if lacks.any():
            channel, row, column = np.argwhere(lacks)[0].tolist()
            count = int(lacks.any(axis=(1, 2)).sum())
            return (
                f"{name} does not compute {layer}, {layer.place}, as the network does: "
                f"{count} of {len(lacks)} channels depart, from channel {channel}, row {row}, "
                f"column {column} on"
            )
    return ""
