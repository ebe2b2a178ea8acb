"""Values that contradict themselves are reported by `validate`: layer and invariant."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ai8xtools.diagnostics import run
from ai8xtools.synthesis.invariants import InvariantError
from ai8xtools.synthesis.layout import LayerLayout
from ai8xtools.synthesis.mapping import MappedLayer, MappedNetwork
from ai8xtools.synthesis.network import Activation, Combination, Layer, Network
from ai8xtools.synthesis.options import EncodeOptions, SummaryOptions
from ai8xtools.synthesis.pipeline import synthesize
from ai8xtools.synthesis.place import BiasRange, KernelMemory, Placement, PlaceOptions
from ai8xtools.synthesis.place.validation import (
    biases_are_where_their_range_says,
    kernels_are_where_their_range_says,
)
from device import MAX78002
from tests.synthesis.networks import build, describe, files, mask, sample, weights
from tests.synthesis.stages import place

Keys = dict[str, Any]
CONV: Keys = {
    "processors": mask(4),
    "op": "Conv2d",
    "kernel_size": "3x3",
    "pad": 1,
    "activate": "none",
}
LAYERS: tuple[Keys, ...] = (
    {**CONV, "name": "first"},
    {**CONV, "name": "second", "groups": 4, "max_pool": 2, "pool_stride": 2},
    {"processors": mask(4), "op": "none", "output": True},
    {"processors": mask(4), "op": "Linear", "flatten": True, "activate": "none"},
)
SHAPES = ((4, 4, 3, 3), (4, 1, 3, 3), (3, 16))


@pytest.fixture
def network(tmp_path: Path) -> MappedNetwork:
    """A convolution, a pooled depth-wise one, a copy, and a classifier; with biases."""
    kernels = [weights(*shape, seed=i) for i, shape in enumerate(SHAPES)]
    biases = [np.arange(1, shape[0] + 1) * (i + 1) for i, shape in enumerate(SHAPES)]
    text = describe(*({"out_offset": 0x1000 * (i + 1), **x} for i, x in enumerate(LAYERS)))
    return build(tmp_path, text, sample(4, 4, 4), kernels, biases, MAX78002)[0]


@pytest.fixture
def placement(network: MappedNetwork) -> Placement:
    """The network's placement."""
    return place(network, PlaceOptions())


def changed(network: MappedNetwork, position: int, **changes: Any) -> MappedNetwork:
    """Return the network with one layer's values replaced."""

    def of(kind: type) -> Keys:
        names = {field.name for field in fields(kind)}
        return {name: value for name, value in changes.items() if name in names}

    def with_other(layers: Sequence[Any], changes: Keys) -> tuple[Any, ...]:
        return tuple(replace(x, **changes) if i == position else x for i, x in enumerate(layers))

    index = network.layers[position].index
    given = replace(network.layout.layers[index], **of(LayerLayout))
    return replace(
        network,
        layers=with_other(network.layers, changes),
        network=replace(network.network, layers=with_other(network.network.layers, of(Layer))),
        layout=replace(network.layout, layers={**network.layout.layers, index: given}),
    )


def violations(validate: Callable[[], None]) -> list[str]:
    """Return the lines of the exception."""
    with pytest.raises(InvariantError) as caught:
        validate()
    return str(caught.value).splitlines()


def test_sound_values_pass(network: MappedNetwork, placement: Placement) -> None:
    network.network.validate()
    network.validate()
    placement.validate(network.network, network.chip)


def bigger(layer: MappedLayer) -> Any:
    """Return a layer's hardware with one weight more."""
    assert layer.hardware.weights is not None
    return replace(layer.hardware, weights=layer.hardware.weights + np.int8(1))


WRONG_LAYERS: list[tuple[str, int, Callable[[Any], Keys]]] = [
    ("execution goes on in order", 0, lambda _: {"next_layer": 3}),
    ("sources are there before", 1, lambda _: {"sources": (2,)}),
    ("sources are there before", 1, lambda _: {"sources": (-2,)}),
    ("values read are those written", 1, lambda _: {"sources": (0, 0)}),
    ("values read are those written", 0, lambda _: {"in_crop": (1, 0)}),
    ("pooling leaves its size", 1, lambda _: {"pooled_dim": (3, 3)}),
    ("operator leaves its size", 0, lambda _: {"out_dim": (2, 2)}),
    ("operator leaves its size", 0, lambda _: {"pad": (0, 0)}),
    ("processors are as many as channels", 0, lambda _: {"processors": mask(3)}),
    ("processors are as many as channels", 0, lambda _: {"output_processors": mask(5)}),
    ("operands are combined", 0, lambda _: {"combination": Combination.ADD}),
    ("operands are combined", 0, lambda _: {"operands": 2}),
    ("weights have the shape of the operator", 0, lambda _: {"weights": None}),
    ("weights have the shape of the operator", 0, lambda _: {"kernel": (1, 1), "pad": (0, 0)}),
    ("weights have the shape of the operator", 1, lambda _: {"groups": 1}),
    ("weights fit their width", 0, lambda _: {"weight_bits": 4}),
    ("weights fit their width", 0, lambda x: {"weights": x.weights * 0, "weight_bits": -1}),
    ("weights fit their width", 2, lambda _: {"weight_bits": 3}),
    ("bias is one byte for each output", 0, lambda x: {"bias": x.bias[:2]}),
    ("bias is one byte for each output", 0, lambda x: {"bias": x.bias + 127}),
    ("bias is one byte for each output", 0, lambda x: {"bias": x.bias * 0}),
    ("result fits its registers", 0, lambda _: {"shift": 16}),
    ("result fits its registers", 0, lambda _: {"output_width": 16}),
    ("result fits its registers", 2, lambda _: {"activation": Activation.RELU}),
    ("offsets are not negative", 0, lambda _: {"out_offset": -4}),
    ("hardware has the same weights", 0, lambda x: {"hardware": bigger(x)}),
    ("hardware has the same weights", 0, lambda x: {"hardware": replace(x.hardware, weights=None)}),
]


@pytest.mark.parametrize("case", WRONG_LAYERS, ids=lambda c: c[0])
def test_contradiction_in_a_layer_is_reported_with_its_name(
    network: MappedNetwork, case: Any
) -> None:
    invariant, index, change = case
    wrong = changed(network, index, **change(network.layers[index]))

    def validate() -> None:
        wrong.network.validate()
        wrong.validate()

    named = [line for line in violations(validate) if line.endswith(f"[{invariant}]")]
    assert any(line.startswith(f"{network.layers[index]}: ") for line in named)


def test_a_layer_without_channels_is_a_contradiction(network: MappedNetwork) -> None:
    wrong = changed(network, 1, in_channels=0, processors=0)
    assert any("[processors are as many as channels]" in x for x in violations(wrong.validate))


def numbered(network: Network, index: int) -> Network:
    """Return the network with another number of the second layer."""
    first, second, *rest = network.layers
    return replace(network, layers=(first, replace(second, index=index), *rest))


def named(network: Network, name: str) -> Network:
    """Return the network with another name of the second layer."""
    first, second, *rest = network.layers
    return replace(network, layers=(first, replace(second, name=name), *rest))


WRONG_NETWORKS: list[tuple[str, Callable[[Network], Network]]] = [
    ("layers are numbered", lambda n: numbered(n, 5)),
    ("order names layers once", lambda n: replace(n, order=(0, 1, 1, 3))),
    ("order names layers once", lambda n: replace(n, simulated=(0, 9))),
    ("sample is an image of bytes", lambda n: replace(n, sample=n.sample * 2)),
    ("sample is an image of bytes", lambda n: replace(n, sample=n.sample[0])),
    ("names are different", lambda n: named(n, "First")),
]


@pytest.mark.parametrize("case", WRONG_NETWORKS, ids=lambda c: c[0])
def test_contradiction_in_the_network_is_reported(network: MappedNetwork, case: Any) -> None:
    invariant, change = case
    assert violations(change(network.network).validate)[0].endswith(f"[{invariant}]")


def moved(placement: Placement, index: int, **changes: Any) -> Placement:
    """Return the placement with another kernel range."""
    kernels = dict(placement.kernels)
    kernels[index] = replace(kernels[index], **changes)
    return replace(placement, kernels=kernels)


def poked(placement: Placement, processor: int, column: int, owner: int = 0) -> Placement:
    """Return the placement with another byte and owner in one column."""
    memory = placement.kernel_memory
    data, owners = memory.data.copy(), memory.owner.copy()
    data[processor, column, 4] ^= 0x55
    owners[processor, column] = owner
    return replace(placement, kernel_memory=KernelMemory(data, owners))


def biased(placement: Placement, index: int, *offsets: int | None) -> Placement:
    """Return the placement with other bias offsets of a layer."""
    return replace(placement, biases={**placement.biases, index: BiasRange(offsets)})


COLUMNS = "layers with weights have columns"
KERNELS = "kernels are where their range says"
BIASES = "biases are where their range says"
WRONG_PLACEMENTS: list[tuple[str, str, Callable[[Placement], Placement]]] = [
    (COLUMNS, "layer 0 (first)", lambda p: moved(p, 0, length=0)),
    (COLUMNS, "layer 0 (first)", lambda p: moved(p, 0, first=2)),
    (COLUMNS, "layer 2", lambda p: moved(p, 2, length=1)),
    (COLUMNS, "kernels are placed", lambda p: replace(p, kernels={})),
    (KERNELS, "layer 0 (first)", lambda p: moved(p, 0, first=8000)),
    (KERNELS, "layer 3", lambda p: moved(p, 3, first=p.kernels[0].first)),
    (KERNELS, "layer 0 (first)", lambda p: poked(p, 3, p.kernels[0].first + 1)),
    (KERNELS, "layer 0 (first)", lambda p: poked(p, 3, p.kernels[0].first, owner=3)),
    (KERNELS, "column 700 of processor 20", lambda p: poked(p, 20, 700, owner=-1)),
    (BIASES, "layer 0 (first)", lambda p: replace(p, biases={1: p.biases[1], 3: p.biases[3]})),
    (BIASES, "layer 2", lambda p: biased(p, 2, 0, None, None, None)),
    (BIASES, "layer 0 (first)", lambda p: biased(p, 0, 1, None, None, None)),
    (BIASES, "layer 0 (first)", lambda p: biased(p, 0, *2 * p.biases[0].offsets[:1], None, None)),
    (BIASES, "layer 1 (second)", lambda p: biased(p, 1, 600, None, None, None)),
    (BIASES, "layer 3", lambda p: biased(p, 3, None, 0, None, None)),
    (BIASES, "layer 0 (first)", lambda p: replace(p, bias_memory=(p.bias_memory[0] + 1,) * 4)),
]


@pytest.mark.parametrize("case", WRONG_PLACEMENTS, ids=lambda c: f"{c[0]}, {c[1]}")
def test_contradiction_in_the_placement_is_reported(
    network: MappedNetwork, placement: Placement, case: Any
) -> None:
    invariant, place_of, change = case
    wrong = change(placement)
    lines = violations(lambda: wrong.validate(network.network, network.chip))
    assert any(line.startswith(place_of) and line.endswith(f"[{invariant}]") for line in lines)


@pytest.mark.parametrize(
    ("index", "offset", "lost"),
    [(0, 0, "the sample"), (1, 0x1000, "layer 0"), (3, 0x3000, "layer 2")],
)
def test_data_that_is_lost_is_reported_unless_that_is_allowed(
    network: MappedNetwork, placement: Placement, index: int, offset: int, lost: str
) -> None:
    wrong = replace(placement, layout=changed(network, index, out_offset=offset).layout)
    (line,) = violations(lambda: wrong.validate(network.network, network.chip))
    assert line.startswith(f"{network.layers[index]}: overwrites 0x{offset:x} to ")
    assert line.endswith(f" of {lost} [data lives until it is read]")
    wrong.validate(network.network, network.chip, overlaps=True)


@pytest.mark.defect
def test_debugging_validates_and_a_contradiction_is_a_defect_of_the_tool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "net.yaml"
    path.write_text(describe(CONV))
    options = files(tmp_path, sample(4, 4, 4), [weights(2, 4, 3, 3)])
    debugging = EncodeOptions(telling=SummaryOptions(cross_check=True))
    synthesize(str(path), MAX78002, options, debugging)

    def broken(*_: Any, overlaps: bool = False) -> None:
        raise InvariantError("layer 0: something is wrong [some invariant]")

    monkeypatch.setattr(Placement, "validate", broken)
    synthesize(str(path), MAX78002, options, EncodeOptions())

    def main() -> None:
        synthesize(str(path), MAX78002, options, debugging)

    assert run(main) == 1
    assert "E009" in (text := capsys.readouterr().err)
    assert "InvariantError: layer 0: something is wrong" in " ".join(text.split())


@pytest.mark.parametrize(
    ("inputs", "outputs", "channels", "groups"),
    [
        (0x7, 0xF0, 3, False),
        (0x7, 0x1E, 3, False),
        (mask(36), mask(36), 70, False),
        (0x3F << 4, 0x3F << 4, 6, True),
        (0x3F << 4, 0x3F << 8, 6, True),
        (mask(40), mask(40), 40, True),
        (mask(20), mask(20, 4), 20, True),
    ],
)
def test_every_byte_of_biases_and_kernels_is_looked_at(
    tmp_path: Path, inputs: int, outputs: int, channels: int, groups: bool
) -> None:
    """One bit is changed at a time: exactly the bytes of the layer's biases are noticed."""
    count = channels if groups or channels > 64 else outputs.bit_count()
    layer = {"op": "Conv2d", "kernel_size": "3x3", "pad": 1, "activate": "none",
             "processors": hex(inputs), "output_processors": hex(outputs),
             "groups": channels if groups else None}  # fmt: skip
    kernel = weights(count, 1 if groups else channels, 3, 3)
    made, _ = build(tmp_path, describe(layer), sample(channels, 2, 2), [kernel],
                    [weights(count, seed=3)], chip=MAX78002)  # fmt: skip
    found = place(made, PlaceOptions(overlap_data=True))
    assert [*kernels_are_where_their_range_says(found, made)] == []
    noticed = 0
    for image in found.bias_memory:
        for index in range(len(image)):
            assert [*biases_are_where_their_range_says(found, made)] == []
            image[index] ^= 1
            noticed += any(biases_are_where_their_range_says(found, made))
            image[index] ^= 1
    assert noticed == count
    memory = found.kernel_memory
    assert not memory.data[:, 700:].any()
    memory.data[1, 701, 0] = memory.data[2, 700, 0] = 1
    assert [*kernels_are_where_their_range_says(found, made)] == [
        "column 701 of processor 1 holds something for nobody"
    ]
    memory.data[1, 701, 0] = memory.data[2, 700, 0] = 0
    columns = np.argwhere(memory.owner >= 0)
    for processor, column in columns[:: max(1, len(columns) // 5)]:
        for byte in (0, 4, 8):
            memory.data[processor, column, byte] ^= 1
            assert [*kernels_are_where_their_range_says(found, made)]
            memory.data[processor, column, byte] ^= 1
        memory.owner[processor, column] = -1
        assert [*kernels_are_where_their_range_says(found, made)]
        memory.owner[processor, column] = 0
