"""Which of a layer's outputs are channels, and which channels a layer reads."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from ai8xtools.commands.decompile.flow import INPUT, UNKNOWN, Read
from ai8xtools.emulator.decode.config import LayerConfig
from ai8xtools.emulator.decode.locations import output_locations
from ai8xtools.emulator.errors import EmulatorError
from ai8xtools.emulator.machine.arithmetic import LayerParameters
from ai8xtools.values import frozen
from device.channels import channels_per_pass
from device.chip import PROCESSORS, PROCESSORS_PER_INSTANCE
from device.masks import mask_of

Integers = NDArray[np.int64]


@frozen(slots=False)
class DecodedLayer:
    """A layer as the accelerator executes it: registers, kernels and biases, what it reads.

    It flattens images of so many pixels as are `flattened`; 0: it does not. `bias_bytes` are those
    up to the bias of another layer, if one group has all of them.
    """

    config: LayerConfig
    parameters: LayerParameters | None
    read: Read
    flattened: int = 0
    bias_bytes: int | None = None

    def effective(self, effects: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which of the channels that it reads have an effect, if these outputs have: [channel]."""
        if self.parameters is None or not self.config.kind.sums_channels:
            return effects | self.outputs
        pixels = self.flattened or 1
        used = self.parameters.kernels.any(axis=(0, 2, 3))
        return np.asarray(used.reshape(pixels, -1).any(axis=0))

    @property
    def outputs(self) -> NDArray[np.bool_]:
        """Which outputs have kernels: bool [output]."""
        if self.parameters is None:
            return np.zeros(len(output_locations(self.config).word), np.bool_)
        axes = tuple(range(1, self.parameters.kernels.ndim))
        return np.asarray(self.parameters.kernels.any(axis=axes))


@frozen
class Outputs:
    """The channels of a layer: `numbers` are its outputs, [channel]; `mask` their processors."""

    numbers: Integers
    mask: int

    @property
    def count(self) -> int:
        """Number of channels."""
        return len(self.numbers)


@frozen
class Inputs:
    """What a layer reads: positions of the layers whose channels stand one behind the other, how
    many channels that are for each operand, and the first pixel of the source.
    """

    sources: tuple[int, ...]
    channels: int
    pixel: int


def channels_of(
    layers: Sequence[DecodedLayer], *, sparse: bool
) -> tuple[list[Inputs], list[Outputs]]:
    """Return what every layer reads, and its own channels.

    With `sparse` lanes without kernels are no outputs where nothing reads any.
    Raises EmulatorError (E890) for something else than whole outputs of layers, or the input.
    """
    read, effects = _effective_outputs(layers)
    inputs: list[Inputs] = []
    outputs: list[Outputs] = []
    for number, layer in enumerate(layers):
        effective = layer.effective(effects[number])
        inputs_read = inputs_of(layer, outputs, effective)
        own = _outputs(layer, read[number], effects[number], inputs_read.channels, sparse=sparse)
        inputs.append(inputs_read)
        outputs.append(own)
    return inputs, outputs


def _effective_outputs(
    layers: Sequence[DecodedLayer],
) -> tuple[list[NDArray[np.bool_]], list[NDArray[np.bool_]]]:
    """Return which outputs of each layer are read, and which of them have an effect."""
    read = [np.zeros(len(layer.outputs), np.bool_) for layer in layers]
    effects = [np.zeros(len(layer.outputs), np.bool_) for layer in layers]
    for number in reversed(range(len(layers))):
        layer = layers[number]
        if not read[number].any() and layer.parameters is None:
            effects[number][:] = True
        effective = np.broadcast_to(layer.effective(effects[number]), layer.read.writers.shape)
        for writer in np.unique(layer.read.writers).tolist():
            if writer >= 0:
                from_it = layer.read.writers == writer
                read[writer][layer.read.outputs[from_it]] = True
                effects[writer][layer.read.outputs[from_it & effective]] = True
    return read, effects


def _outputs(
    layer: DecodedLayer,
    read: NDArray[np.bool_],
    effects: NDArray[np.bool_],
    channels: int,
    *,
    sparse: bool,
) -> Outputs:
    """Return the channels: a lane that nothing reads is none, nor are the last of several passes.

    Where nothing reads any, they begin in the first lane with kernels. A layer that does not add
    up `channels` has as many.
    """
    config, place = layer.config, output_locations(layer.config)
    lanes = place.instance * PROCESSORS_PER_INSTANCE + place.lane
    passes = config.output.passes if config.kind.sums_channels else config.input.passes
    by_pass = lanes.reshape(passes, -1)
    if not config.kind.sums_channels:
        return Outputs(np.arange(lanes.size)[:channels], mask_of(by_pass[0].tolist()))
    slots = np.asarray(np.any(read.reshape(passes, -1), axis=0))
    if not slots.any():
        slots[_first_lane(layer, passes) :] = True
        if sparse and layer.outputs.any():
            slots = np.asarray(np.any(layer.outputs.reshape(passes, -1), axis=0))
    slots[-1] = True  # the register says so
    chosen = np.flatnonzero(slots)
    numbers = (np.arange(passes)[:, None] * len(slots) + chosen).reshape(-1)
    used = (effects | layer.outputs)[numbers]
    lead = int(chosen[0]) * passes
    stated = None if layer.bias_bytes is None else layer.bias_bytes - lead
    count = _channels(used, len(chosen), passes, stated) if passes > 1 else len(chosen)
    row = config.input.passes
    if layer.flattened and not config.kernels.count % row:
        count = min(count, config.kernels.count // row)
    return Outputs(numbers[:count], mask_of(by_pass[0][chosen].tolist()))


def _first_lane(layer: DecodedLayer, passes: int) -> int:
    """Return in which lane the outputs begin that nothing reads.

    Those before the first kernels have none, unless all lanes have some of whole words.
    """
    own = np.asarray(np.any(layer.outputs.reshape(passes, -1), axis=0))
    first = int(np.flatnonzero(own)[0]) if own.any() else 0
    whole = len(own) % PROCESSORS_PER_INSTANCE == 0
    return 0 if passes > 1 or whole or first >= PROCESSORS_PER_INSTANCE else first


def _channels(used: NDArray[np.bool_], share: int, passes: int, stated: int | None = None) -> int:
    """Return how many channels several passes have: as many as biases, if that is possible.

    Else those up to the last that is used, unless a last pass cannot lack so many.
    """
    least = int(np.flatnonzero(used)[-1]) + 1 if used.any() else 1
    possible = [n for n in range((passes - 1) * PROCESSORS + 1, len(used) + 1)
                if channels_per_pass(n) == share]  # fmt: skip
    if stated is not None and stated in possible:
        return stated
    return least if least in possible else len(used)


def inputs_of(
    layer: DecodedLayer, outputs: Sequence[Outputs], effective: NDArray[np.bool_]
) -> Inputs:
    """Return what a layer reads, if it is something that a description names.

    Layers that pass on what nobody writes may shift a rolling buffer.
    """
    if layer.parameters is None and (layer.read.writers == UNKNOWN).all():
        return Inputs((UNKNOWN,), layer.read.writers.shape[1], 0)
    runs = [_run(layer, operand, outputs, effective)
             for operand in range(layer.config.input.operands)]  # fmt: skip
    number = layer.config.layer
    for run in runs:
        for writer, channels in run:
            whole = writer >= 0 and channels == [*range(outputs[writer].count)]
            if writer != INPUT and not whole:
                raise _inexpressible(number, "reads something else than whole outputs")
    if len({sum(len(channels) for _, channels in run) for run in runs}) > 1:
        raise _inexpressible(number, "combines operands of different sizes")
    if len(runs) > 1 and any(len(run) > 1 for run in runs):
        raise _inexpressible(number, "combines operands of several layers each")
    sources = tuple(writer for run in runs for writer, _ in run)
    count = sum(len(channels) for _, channels in runs[0])
    return Inputs(sources, count, int(layer.read.pixels[0, 0]))


def _inexpressible(number: int, what: str) -> EmulatorError:
    return EmulatorError("E890", f"no description expresses what layer {number} does: it {what}")


def _run(
    layer: DecodedLayer, operand: int, outputs: Sequence[Outputs], effective: NDArray[np.bool_]
) -> list[tuple[int, list[int]]]:
    """Return writers and their channels, one behind the other; lanes that are none are left out."""
    read, config = layer.read, layer.config
    numbers = [{number: c for c, number in enumerate(one.numbers.tolist())} for one in outputs]
    count, passes = len(effective), config.input.passes // (layer.flattened or 1)
    end = count
    if passes > 1:
        end = _channels(effective, count // passes, passes)
    pairs: list[tuple[int, int]] = []
    for column, (writer, number) in enumerate(
        zip(read.writers[operand].tolist(), read.outputs[operand].tolist(), strict=True)
    ):
        if writer == INPUT and column < end:
            pairs.append((writer, column))
        elif writer >= 0 and number in numbers[writer]:
            pairs.append((writer, numbers[writer][number]))
        elif writer != INPUT and column < end:
            pairs.append((INPUT - 1, column))
    return [(w, [c for _, c in part]) for w, part in groupby(pairs, key=lambda pair: pair[0])]
