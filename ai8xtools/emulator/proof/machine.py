"""The accelerator on expressions: every byte of data memory holds a fingerprint.

Layers are decoded and placed as `machine.batch` does it, and their sums are those of
`machine.arithmetic`; pooling, combination, and what follows the sum are functions that are not
looked into. Bytes that no layer writes and that are no input hold what stands in memory; all
others are unknown at first, as at the second inference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ai8xtools.emulator.decode.config import (
    ActivationFunction,
    ElementwiseOperation,
    Input,
    LayerConfig,
)
from ai8xtools.emulator.errors import EmulatorError
from ai8xtools.emulator.machine.arithmetic import convolve, pooling_places
from ai8xtools.emulator.machine.batch import LayerStep, NetworkBatch
from ai8xtools.emulator.proof.fingerprints import (
    LANES,
    LARGEST_MAGNITUDE,
    PRIME,
    Fingerprints,
    Mixer,
)
from ai8xtools.emulator.state.memory import Memory
from ai8xtools.reading.progress import tracked

_WIDE_BYTES = 4


class Expressions:
    """An accelerator on expressions, whose memory keeps them from one inference to the next.

    `memory` holds what its registers and memories do before the first inference. With `from_start`
    data memory holds just that; else bytes that layers write are unknown at first, and unless the
    network is `alone` in the accelerator, all bytes.
    """

    def __init__(
        self,
        batch: NetworkBatch,
        memory: Memory,
        mixer: Mixer,
        *,
        from_start: bool,
        alone: bool = True,
    ) -> None:
        self._batch, self._mixer = batch, mixer
        content = batch.data_of(memory).view(np.int8)
        self._data = mixer.constants(content)
        if not from_start:
            written = [step.writes for step in batch.steps if step.target == 0]
            if batch.input_positions is not None:
                written.append(batch.input_positions.reshape(-1))
            unknown = np.concatenate(written) if alone else slice(None)
            self._data[unknown] = mixer.numbered("before", len(content))[unknown]

    def infer(
        self,
        image: Fingerprints,
        on_layer: Callable[[Fingerprints], None] = lambda _output: None,
    ) -> Fingerprints:
        """Return the fingerprints of the bytes of the result, [byte, lane].

        `image` [channel, row, column, lane] is the input. `on_layer` gets the output of each layer,
        [output, row, column, lane]. Raises EmulatorError (E880) for sums that accumulators may not
        hold.
        """
        batch, mixer = self._batch, self._mixer
        streams = [mixer.numbered(("before", n), size) for n, size in enumerate(batch.sizes) if n]
        memories = [self._data, *streams]
        if batch.input_positions is not None:
            self._data[batch.input_positions.reshape(-1)] = image.reshape(-1, LANES)
        for step in tracked("Layers on the accelerator", batch.steps):
            on_layer(_execute(step, memories, image, mixer))
        return self._data[batch.result_positions]


def _execute(
    step: LayerStep, memories: Sequence[Fingerprints], image: Fingerprints, mixer: Mixer
) -> Fingerprints:
    inputs = step.config.input
    read = image if step.reads is None else memories[step.source][step.reads]
    operands = read.reshape(inputs.operands, -1, *inputs.size, LANES)
    values = _prepared(operands, step.config, mixer, rounding=step.rounding)
    if step.parameters is not None:
        values = _summed(values, step, mixer)
    flat = values.reshape(-1, LANES)
    if step.config.output.wide:
        flat = wide_bytes(flat, mixer)
    memories[step.target][step.writes] = flat
    return values


def wide_bytes(values: Fingerprints, mixer: Mixer) -> Fingerprints:
    """Return the fingerprints of the bytes of 32-bit values [value, lane], one after the other."""
    parts = [first_bytes(values, mixer)]
    parts += [mixer.of(("byte", i), values) for i in range(1, _WIDE_BYTES)]
    return np.stack(parts, axis=1).reshape(-1, LANES)


def first_bytes(values: Fingerprints, mixer: Mixer) -> Fingerprints:
    """Return the fingerprints of the lowest bytes of 32-bit values."""
    return mixer.of(("byte", 0), values)


def pooled(sums: Fingerprints, count: int, *, maximum: bool, rounding: bool, mixer: Mixer
           ) -> Fingerprints:  # fmt: skip
    """Return the fingerprints of pooled values from the sums of those in each window."""
    if count == 1:
        return sums
    return mixer.of(("max" if maximum else "average", not maximum and rounding, count), sums)


def combined(operands: Fingerprints, operation: str, mixer: Mixer) -> Fingerprints:
    """Return the fingerprints of operands [operand, ...] that become one; the order of those
    behind the first, or of all unless they are subtracted, does not matter."""
    if len(operands) == 1:
        return np.asarray(operands[0])
    first = mixer.of("minuend", operands[0]) if operation == "sub" else operands[0]
    total = (first + operands[1:].sum(axis=0)) % PRIME
    return mixer.of((operation, len(operands)), total)


def finished(sums: Fingerprints, *, wide: bool, shift: int, activation: str, mixer: Mixer
             ) -> Fingerprints:  # fmt: skip
    """Return the fingerprints of outputs from those of the sums; 32 bits are not shifted."""
    return mixer.of(("output", wide, 0 if wide else shift, activation), sums)


def _prepared(
    operands: Fingerprints, config: LayerConfig, mixer: Mixer, *, rounding: bool
) -> Fingerprints:
    inputs = config.input
    if inputs.operands > 1 and not inputs.pool_first:
        operands = combined(operands, _name(inputs.operation), mixer)[None]
    images = np.stack(
        [_pooled(operand, inputs, mixer, rounding and not config.conv1d) for operand in operands]
    )
    return combined(images, _name(inputs.operation), mixer)


def _pooled(image: Fingerprints, inputs: Input, mixer: Mixer, rounding: bool) -> Fingerprints:
    places = pooling_places(inputs)
    sums = sum(image[place] for place in places) % PRIME
    return pooled(sums, len(places), maximum=inputs.max_pool, rounding=rounding, mixer=mixer)


def _name(operation: ElementwiseOperation) -> str:
    return operation.name.lower()


def _summed(values: Fingerprints, step: LayerStep, mixer: Mixer) -> Fingerprints:
    assert step.parameters is not None
    config, output = step.config, step.config.output
    kernels = step.parameters.kernels.astype(np.float64)
    magnitude = np.abs(kernels.reshape(len(kernels), -1)).sum(axis=1).max(initial=0)
    if magnitude >= LARGEST_MAGNITUDE:
        raise EmulatorError(
            "E880", f"layer {config.layer}: the magnitudes of its kernels add up to "
            f"{magnitude:.0f}: it is not proven that its sums stay within 32 bits",
        )  # fmt: skip
    sums = convolve(values, kernels, config).astype(np.int64)
    sums += mixer.constants(step.parameters.bias.astype(np.int64))[:, None, None]
    return finished(sums % PRIME, wide=output.wide, shift=output.shift,
                    activation=_activation(output.activation), mixer=mixer)  # fmt: skip


def _activation(activation: ActivationFunction) -> str:
    return activation.value.lower()
