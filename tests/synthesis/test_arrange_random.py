"""Random networks without their places: each is arranged, and computes the same on the chip.

They are drawn with places, which are then left out, so that some are known to exist: none may be
refused. `make measure WHAT=arrange-properties` tries many more. Small chains that nearly fill
the memories are judged by trying everything, with arithmetic of its own.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise, permutations, product
from pathlib import Path

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from ai8xtools.diagnostics import DiagnosticError, Severity, has_errors
from ai8xtools.synthesis.options import EncodeOptions, SummaryOptions
from ai8xtools.synthesis.parse.keys import LAYOUT_KEYS
from ai8xtools.synthesis.pipeline import synthesize
from device import MAX78000
from tests.synthesis.arranged import CONV, arranged, arranged_text, kernels_of
from tests.synthesis.emulated import emulated
from tests.synthesis.networks import describe, files
from tests.synthesis.random_networks import RandomNetwork, random_networks
from tests.synthesis.stages import check

FACTOR = float(os.environ.get("AI8X_PROPERTIES", "1"))
"""How many times more networks to try than by default."""


def trying(count: int) -> settings:
    """Return settings for so many examples, times what the environment asks for."""
    return settings(
        max_examples=max(1, round(count * FACTOR)),
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )


def without_places(drawn: RandomNetwork) -> str:
    """Return the description of a network without any key of a place."""
    unused = {**dict.fromkeys(LAYOUT_KEYS - {"offset"}), "out_offset": None}
    others = {key: value for key, value in drawn.others.items() if key != "output_map"}
    return describe(*({**keys, **unused} for keys in drawn.layers), **others)


def is_legal(drawn: RandomNetwork, folder: Path) -> bool:
    """Whether the network is accepted with the places that it was drawn with."""
    try:
        network, found = drawn.build(folder)
    except DiagnosticError:
        return False
    return not has_errors((*found, *check(network)))


@trying(28)
@given(drawn=random_networks())
def test_random_networks_are_arranged(tmp_path_factory: object, drawn: RandomNetwork) -> None:
    folder: Path = tmp_path_factory.mktemp("net")  # type: ignore[attr-defined]
    assume(is_legal(drawn, folder))
    options = replace(files(folder, drawn.data, drawn.kernels, drawn.biases), input_port=drawn.port)
    encode = EncodeOptions(
        telling=SummaryOptions(cross_check=True), average_rounding=drawn.rounding
    )
    arranged_text(
        folder, without_places(drawn), options, drawn.chip, encode, rounding=drawn.rounding
    )


@trying(28)
@given(drawn=random_networks(careful=False))
def test_status_0_means_that_the_chip_computes_what_is_described(
    tmp_path_factory: object, drawn: RandomNetwork
) -> None:
    """Networks that are legal and that the vendor's tool has no right words for, too.

    With the places that were drawn, a warning has to tell; without, nothing wrong is written.
    """
    folder: Path = tmp_path_factory.mktemp("net")  # type: ignore[attr-defined]
    options = replace(files(folder, drawn.data, drawn.kernels, drawn.biases), input_port=drawn.port)
    encode = EncodeOptions(average_rounding=drawn.rounding)
    with suppress(DiagnosticError):
        path = folder / "net.yaml"
        path.write_text(drawn.text)
        made = synthesize(str(path), drawn.chip, options, encode)
        if not any(d.effects.unsound for d in made.warnings):
            run = emulated(made.program)
            assert (run.wrong, list(run.run.errors)) == ([], [])
    try:
        arranged_text(
            folder, without_places(drawn), options, drawn.chip, encode, rounding=drawn.rounding
        )
    except DiagnosticError as refusal:
        told = [d for d in refusal.diagnostics if d.severity is Severity.ERROR]
        assert {d.code for d in told} <= {"E420", "E421"}, told


Layers = tuple[tuple[int, int], ...]
"""Processors and columns, in blocks of four, of each layer."""


def exists(layers: Layers, capacity: int) -> bool:
    """Whether there are starts and columns for kernels, tried one by one.

    A packing can always be pushed down, one layer after the other in the order of its columns: so
    it is enough to try all orders, each layer at the lowest columns above those before it.
    """
    choices = [range(0, 65 - width, 4) for width, _ in layers]
    return any(
        _stacked(starts, layers, order) <= capacity
        for starts in product(*choices)
        for order in permutations(range(len(layers)))
    )


def _stacked(starts: tuple[int, ...], layers: Layers, order: tuple[int, ...]) -> int:
    """Return how high layers reach that are stacked in an order."""
    tops: list[tuple[int, int, int]] = []
    for i in order:
        begin, end = starts[i], starts[i] + layers[i][0]
        below = max((top for low, high, top in tops if low < end and begin < high), default=0)
        tops.append((begin, end, below + layers[i][1]))
    return max(top for _, _, top in tops)


@trying(40)
@given(
    channels=st.lists(st.sampled_from([20, 24, 32, 40, 44, 64]), min_size=4, max_size=4),
    blocks=st.sampled_from([16, 18, 20, 24]),
)
def test_chains_are_refused_only_if_no_packing_exists(
    tmp_path_factory: object, channels: list[int], blocks: int
) -> None:
    """The chip has little kernel memory, so that few layers fill it."""
    folder: Path = tmp_path_factory.mktemp("net")  # type: ignore[attr-defined]
    chip = replace(MAX78000, kernel_columns=4 * blocks, kernel_columns_first=4 * blocks)
    first = {**CONV, "data_format": "HWC", "streaming": False}
    kernels = kernels_of(*((after, before, 3, 3) for before, after in pairwise(channels)))
    layers = tuple((before, after // 4) for before, after in pairwise(channels))
    try:
        arranged(
            folder, first, CONV, CONV, shape=(channels[0], 3, 3), kernels=kernels, chip=chip,
            execute=False,
        )  # fmt: skip
        fits = True
    except DiagnosticError as refusal:
        assert {d.code for d in refusal.diagnostics if d.code[0] == "E"} <= {"E421", "E422"}
        fits = False
    assert fits == exists(layers, blocks)
