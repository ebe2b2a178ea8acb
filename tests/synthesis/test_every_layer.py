"""One layer at a time, all small cases: plain integers, the simulation and the words agree.

The words of a layer are executed by the emulator, whose checks must find nothing in them. Both
estimate the same cycles.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ai8xtools.diagnostics import Severity
from ai8xtools.synthesis.check import CONSTRAINTS
from ai8xtools.synthesis.options import EncodeOptions
from ai8xtools.synthesis.place import PlaceOptions
from ai8xtools.synthesis.summarize.latency import latency_terms, layer_cycles
from device import MAX78000, MAX78002, Chip
from device.channels import channels_per_pass
from tests import plain_arithmetic as plain
from tests.synthesis.emulated import emulated
from tests.synthesis.networks import build, describe, mask, sample, weights
from tests.synthesis.stages import check, encode, place, simulate

Array = NDArray[np.int64]
Keys = dict[str, Any]
MISPLACED = {entry.code for entry in CONSTRAINTS if entry.test.__module__.endswith("misplaced")}
"""Warnings of layers for which the vendor's words, and so ours, are not what the chip needs."""
CHIPS = pytest.mark.parametrize("chip", [MAX78000, MAX78002], ids=lambda chip: chip.name)


def computed(
    folder: Path,
    keys: Keys,
    data: Array,
    kernels: Array | None = None,
    bias: Sequence[int] | None = None,
    *,
    chip: Chip = MAX78000,
    rounding: bool = False,
) -> Array:
    """Return what a layer computes; its words do the same, without a finding of the emulator."""
    channels = len(data) // keys.get("operands", 1)
    outputs = channels if kernels is None else keys.get("outputs", len(kernels))
    layer = {
        "processors": mask(channels_per_pass(channels)),
        "output_processors": mask(channels_per_pass(outputs)),
        "activate": "none" if kernels is not None else None,
        **{key: value for key, value in keys.items() if key != "outputs"},
    }
    network, found = build(
        folder,
        describe(layer),
        data,
        [] if kernels is None else [kernels],
        [] if bias is None else [np.array(bias)],
        chip,
    )
    found = (*found, *check(network))
    assert [d for d in found if d.severity is Severity.ERROR] == []
    placement = place(network, PlaceOptions())
    activations = simulate(network, average_rounding=rounding)
    options = EncodeOptions(average_rounding=rounding)
    machine = emulated(encode(network, placement, activations, options))
    if not MISPLACED & {d.code for d in found}:
        assert machine.wrong == []
    # Registers do not tell the rows of a flattened image, which count with a single output
    if chip.estimates_latency and not ("flatten" in keys and outputs == 1):
        terms = latency_terms(network.final, placement.kernels[network.final.index])
        assert machine.cycles == [layer_cycles(network.final, terms)]
    assert [str(finding) for finding in machine.run.findings if not finding.harmless] == []
    return np.asarray(activations.outputs[network.final.index])


def conv(**keys: Any) -> Keys:
    return {"op": "Conv2d", "kernel_size": "1x1", "pad": 0, **keys}


WIDTHS = [(8, 0), (4, 4), (2, 6), (1, 7)]
"""Bits of weights, and what they add to the shift."""


@CHIPS
@pytest.mark.parametrize(("bits", "more"), WIDTHS)
@pytest.mark.parametrize("activation", ["none", "ReLU", "Abs"])
def test_every_shift_of_every_width(
    activation: str, bits: int, more: int, chip: Chip, tmp_path: Path
) -> None:
    """The largest, the smallest and other sums, with a bias."""
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1
    kernels = np.array([low, high, low, high // 2, 0]).reshape(5, 1, 1, 1)
    bias = [0, 3, -7, 127, -128]
    data = np.array([-128, -127, -65, -64, -1, 0, 1, 2, 63, 64, 100, 127]).reshape(1, 3, 4)
    every = [*plain.SHIFTS]
    if (bits, activation, chip) != (8, "none", MAX78000):
        every = every[len(activation) % 3 :: 6]
    for shift in every:
        keys = conv(quantization=bits, output_shift=shift - more, activate=activation)
        found = computed(tmp_path, keys, data, kernels, bias, chip=chip)
        wanted = [
            [
                plain.activated(plain.narrowed(int(w) * int(x) + 128 * b, shift), activation)
                for x in data.reshape(-1)
            ]
            for w, b in zip(kernels.reshape(-1), bias, strict=True)
        ]
        assert found.reshape(5, -1).tolist() == wanted, shift


FLAT = [1, 2, 3, 4, *range(13, 21), *range(30, 35), 48, 63, 64, 65, 128, 255, 256]


@CHIPS
def test_flattened_layers_of_every_number_of_passes(chip: Chip, tmp_path: Path) -> None:
    """16 passes fill a register's field; 17 need another."""
    for pixels in FLAT:
        for width in (8, 2) if pixels in (15, 16, 17, 32) else (8,):
            channels, outputs = (3, 5) if pixels < 40 else (1, 1)
            data = sample(channels, *((1, pixels) if pixels % 2 else (2, pixels // 2)), seed=pixels)
            kernels = weights(outputs, channels * pixels, bits=width, seed=pixels)
            keys = {"op": "linear", "flatten": True, "output_width": 32, "quantization": width}
            found = computed(tmp_path, keys, data, kernels, chip=chip)
            assert found.reshape(-1).tolist() == (kernels @ data.reshape(-1)).tolist(), pixels


@CHIPS
@pytest.mark.parametrize(("rows", "columns"), [(2, 2), (1, 16), (1, 17)])
def test_flattened_layers_of_several_passes_of_channels(
    chip: Chip, rows: int, columns: int, tmp_path: Path
) -> None:
    """The pixels count as often as their channels have passes."""
    data = sample(72, rows, columns)
    kernels = weights(3, data.size)
    keys = {"op": "linear", "flatten": True, "output_width": 32}
    found = computed(tmp_path, keys, data, kernels, chip=chip)
    assert found.reshape(-1).tolist() == (kernels @ data.reshape(-1)).tolist()


TAPS = ["1x1", "3x3", *range(1, 10)]


@CHIPS
@pytest.mark.parametrize(("bits", "more"), WIDTHS)
def test_every_kernel_of_every_width(bits: int, more: int, chip: Chip, tmp_path: Path) -> None:
    """Numbers of kernels that leave every remainder of a byte."""
    for number, taps in enumerate(TAPS):
        for outputs in range(1, 2 + 8 // bits) if taps in ("1x1", 4) else (3 + number % 4,):
            flat = isinstance(taps, int)
            pad = 0 if taps in ("1x1", 1) else number % 3
            size = (taps if flat else 3) + 1
            data = sample(2, size) if flat else sample(2, size, 2 if taps == "1x1" else 3)
            side = (taps,) if flat else (int(taps[0]),) * 2
            kernels = weights(outputs, 2, *side, bits=bits, seed=outputs)
            keys = conv(
                op="Conv1d" if flat else "Conv2d",
                kernel_size=taps,
                pad=pad,
                quantization=bits,
                output_width=32,
            )
            found = computed(tmp_path, keys, data, kernels, chip=chip)
            shape = (outputs, 2, *side, *((1,) if flat else ()))
            image = data.reshape(2, size, -1).tolist()
            wanted = [
                plain.convolved(image, one, (pad, 0 if flat else pad))
                for one in kernels.reshape(shape).tolist()
            ]
            assert found.tolist() == wanted, (taps, outputs)


@pytest.mark.parametrize("bits", [8, 4, 2, 1])
def test_four_outputs_at_once_of_every_width(bits: int, tmp_path: Path) -> None:
    """Down to kernels that fill less than a column of the first of the four parts."""
    for side, outputs, channels in [(3, 4, 3), (1, 4, 1), (3, 8, 2), (1, 24, 66), (3, 24, 5)]:
        data = sample(channels, 3, 3, seed=outputs)
        kernels = weights(outputs, channels, side, side, bits=bits, seed=channels)
        keys = conv(
            kernel_size=f"{side}x{side}", quantization=bits, output_width=32, calcx4=True
        )  # fmt: skip
        found = computed(tmp_path, keys, data, kernels, chip=MAX78002)
        wanted = [plain.convolved(data.tolist(), one, (0, 0)) for one in kernels.tolist()]
        assert found.tolist() == wanted


CHANNELS = [1, 3, 4, 5, 16, 17, 48, 63, 64, 65, 66, 100, 128, 129]


@CHIPS
@pytest.mark.parametrize("bits", [8, 1])
def test_every_spread_of_channels(bits: int, chip: Chip, tmp_path: Path) -> None:
    """Processors, groups and passes, of inputs and outputs."""
    pairs = [*zip(CHANNELS, reversed(CHANNELS), strict=True)]
    if (bits, chip) == (8, MAX78000):
        pairs += [(c, 2) for c in CHANNELS] + [(2, c) for c in CHANNELS]
    for channels, outputs in pairs:
        data = sample(channels, 2, 2, seed=channels)
        kernels = weights(outputs, channels, 1, 1, bits=bits, seed=outputs)
        bias = np.random.default_rng(outputs).integers(-128, 128, outputs)
        keys = conv(quantization=bits, output_width=32 if outputs < 70 else 8)
        found = computed(tmp_path, keys, data, kernels, bias.tolist(), chip=chip)
        sums = kernels[..., 0, 0] @ data.reshape(channels, -1) + 128 * bias[:, None]
        if outputs >= 70:
            sums = np.vectorize(plain.narrowed)(sums, {8: 0, 1: 7}[bits])
        assert found.reshape(outputs, -1).tolist() == sums.tolist(), (channels, outputs)


WINDOWS = [
    (rows, columns, stride, dilation)
    for rows, columns, stride, dilation in [
        *((w, w, s, 1) for w, s in product((1, 2, 3), (1, 2, 3))),
        (2, 3, 2, 1), (3, 1, 2, 1), (1, 4, 3, 1), (16, 16, 16, 1), (5, 4, 2, 1), (1, 16, 7, 1),
        (2, 2, 1, 2), (3, 2, 2, 3), (2, 3, 3, 2),
    ]
]  # fmt: skip


@CHIPS
@pytest.mark.parametrize("kind", ["max", "avg", "rounded avg"])
def test_every_pooling(kind: str, chip: Chip, tmp_path: Path) -> None:
    random = np.random.default_rng(4)
    for rows, columns, stride, dilation in WINDOWS:
        if (dilation > 1) != (chip is MAX78002) and kind != "max":
            continue
        if dilation > 1 and chip is MAX78000:
            continue
        shape = (
            (rows - 1) * dilation + 1 + int(random.integers(0, 2 * stride)),
            (columns - 1) * dilation + 1 + int(random.integers(0, 2 * stride)),
        )
        data = sample(3, *shape, seed=rows)
        name = kind.split()[-1]
        keys: Keys = {"op": "none", "pool_stride": stride}
        if (rows, columns) != (1, 1):
            keys[f"{name}_pool"] = [rows, columns]
        if dilation > 1:
            keys["pool_dilation"] = dilation
        rounding = kind != "avg"
        found = computed(tmp_path, keys, data, chip=chip, rounding=rounding)
        which = "none" if (rows, columns) == (1, 1) else name
        wanted = [
            plain.pooled(
                image, (rows, columns), (stride,) * 2, (dilation,) * 2, which, rounding=rounding
            )
            for image in data.tolist()
        ]
        assert found.tolist() == wanted, (rows, columns, stride, dilation)


def pairs_of_bytes() -> Iterator[tuple[int, int]]:
    special = [-128, -127, -64, -2, -1, 0, 1, 2, 63, 64, 127]
    yield from product(special, special)


@CHIPS
@pytest.mark.parametrize("name", ["add", "sub", "or", "xor"])
def test_every_combination(name: str, chip: Chip, tmp_path: Path) -> None:
    values = np.array([*pairs_of_bytes()]).T.reshape(2, 11, 11)
    found = computed(tmp_path, {"op": name, "operands": 2}, values, chip=chip)
    wanted = [plain.combined(pair, name) for pair in pairs_of_bytes()]
    assert found.reshape(-1).tolist() == wanted
    for operands in range(3, 17)[chip is MAX78002 :: 2]:
        data = np.random.default_rng(operands).choice([-128, -1, 0, 1, 127], (operands, 2, 3))
        found = computed(tmp_path, {"op": name, "operands": operands}, data, chip=chip)
        columns = data.reshape(operands, -1).T.tolist()
        assert found.reshape(-1).tolist() == [plain.combined(c, name) for c in columns], operands


@CHIPS
@pytest.mark.parametrize("pool_first", [True, False])
def test_operands_are_pooled_and_convolved(chip: Chip, pool_first: bool, tmp_path: Path) -> None:
    data, kernels = sample(6, 5, 4), weights(4, 3, 3, 3)
    for name, kind in product(("add", "sub", "or", "xor"), ("max", "avg")):
        keys = conv(
            kernel_size="3x3", pad=1, eltwise=name, operands=2, output_width=32,
            pool_stride=2, pool_first=pool_first, **{f"{kind}_pool": 2},
        )  # fmt: skip

        def pool(image: plain.Image, kind: str = kind) -> list[list[int]]:
            return plain.pooled(image, (2, 2), (2, 2), (1, 1), kind, rounding=True)

        def join(one: plain.Image, two: plain.Image, name: str = name) -> list[list[int]]:
            return [
                [plain.combined(pair, name) for pair in zip(*rows, strict=True)]
                for rows in zip(one, two, strict=True)
            ]

        found = computed(tmp_path, keys, data, kernels, chip=chip, rounding=True)
        both = zip(data[:3].tolist(), data[3:].tolist(), strict=True)
        image = [join(pool(a), pool(b)) if pool_first else pool(join(a, b)) for a, b in both]
        wanted = [plain.convolved(image, one, (1, 1)) for one in kernels.tolist()]
        assert found.tolist() == wanted, (name, kind)


@CHIPS
@pytest.mark.parametrize("pad", [0, 1, 2])
def test_transposed_convolutions(chip: Chip, pad: int, tmp_path: Path) -> None:
    """Test weights stand in the order in which they meet the stretched image."""
    data, kernels = sample(3, 3, 4), weights(2, 3, 3, 3)
    keys = conv(op="ConvTranspose2d", kernel_size="3x3", pad=pad, output_width=32)
    found = computed(tmp_path, keys, data, kernels, chip=chip)
    image = [plain.stretched(channel) for channel in data.tolist()]
    wanted = [plain.convolved(image, one, (2 - pad, 2 - pad)) for one in kernels.tolist()]
    assert found.tolist() == wanted


@pytest.mark.parametrize(("bits", "more"), WIDTHS)
@pytest.mark.parametrize("taps", ["1x1", "3x3"])
def test_depthwise_layers(taps: str, bits: int, more: int, tmp_path: Path) -> None:
    for channels in (1, 4, 7, 16, 17, 33, 64, 66, 130):
        data = sample(channels, 3, 2, seed=channels)
        side = int(taps[0])
        kernels = weights(channels, 1, side, side, bits=bits, seed=channels)
        bias = np.random.default_rng(channels).integers(-128, 128, channels).tolist()
        keys = conv(
            kernel_size=taps, pad=side // 2, groups=channels, quantization=bits, output_shift=-more
        )
        found = computed(tmp_path, keys, data, kernels, bias, chip=MAX78002)
        for c, image in enumerate(data.tolist()):
            sums = plain.convolved([image], kernels[c].tolist(), (side // 2,) * 2)
            wanted = [[plain.narrowed(v + 128 * bias[c], 0) for v in row] for row in sums]
            assert found[c].tolist() == wanted, (channels, c)


@pytest.mark.parametrize("gap", [0, 1, 2, 3])
def test_layers_skip_the_gaps_that_others_leave(gap: int, tmp_path: Path) -> None:
    """What stands in a gap is nobody's; MAX78002 reads around it."""
    first = {**conv(activate="none"), "processors": mask(3), "output_processors": mask(5)}
    second = {**conv(activate="none"), "processors": mask(5), "output_processors": mask(2)}
    text = describe({**first, "write_gap": gap}, {**second, "read_gap": gap})
    kernels = [weights(5, 3, 1, 1), weights(2, 5, 1, 1, seed=4)]
    network, _ = build(tmp_path, text, sample(3, 3, 2), kernels, chip=MAX78002)
    placement = place(network, PlaceOptions())
    activations = simulate(network, average_rounding=False)
    machine = emulated(encode(network, placement, activations, EncodeOptions()))
    assert machine.wrong == []
    found = machine.run.layers[0].words[0]
    assert np.diff(found).tolist() == [gap + 1] * 5
