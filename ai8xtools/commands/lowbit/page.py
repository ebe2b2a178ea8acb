"""The report of a low-bit project: what it takes, its layers, and their outputs for a sample."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ai8xtools.commands.lowbit.arguments.loader import LowBitOptions
from ai8xtools.commands.software.page import PIXELS, Shown, StepRow, limit, pages_of
from ai8xtools.diagnostics import Diagnostic
from ai8xtools.software.lowbit.engine import LayerResults, Run
from ai8xtools.software.lowbit.network import Dense, DepthwiseChain, LowBitNetwork, Windows
from ai8xtools.software.profile import UNLIMITED, Profile
from ai8xtools.synthesis.emit import ProjectOptions
from ai8xtools.synthesis.emit.report_pictures import picture_of
from ai8xtools.synthesis.report.build import output_range
from ai8xtools.values import frozen

_CHAIN_PIXELS = 14 * 14 + 12 * 12 + 4 * 4
"""Outputs of the three convolutions in front, of each channel."""
_TAPS = 9


@frozen
class _Part:
    """How a layer is stored, its weights in bytes, and how many weights are applied."""

    kernel: str
    weights: int
    products: int


def page_of(
    options: LowBitOptions,
    network: LowBitNetwork,
    result: Run,
    needs: Sequence[tuple[str, int]],
    profile: Profile | None,
    problems: Sequence[Diagnostic],
) -> tuple[str, str]:
    """Return page and JSON; `needs` are bytes of flash and RAM, `result` is that of the samples."""
    rows = tuple(_rows(network, result))
    slowest = max(rows, key=lambda row: row.share)
    products = sum(row.products for row in rows)
    sizes = (UNLIMITED,) * 2 if profile is None else (profile.flash, profile.l1)
    named = (("Flash", limit(sizes[0])), ("RAM", limit(sizes[1])))
    shown = Shown(
        core="any" if profile is None else profile.core.name,
        scheme="low-bit",
        needs=tuple(
            (name, needed, of) for (name, of), (_, needed) in zip(named, needs, strict=True)
        ),
        rows=rows,
        cycles=None,
        sentence=f"{slowest.share:.0%} of the {products:,} weights that an inference applies are "
        f"in {slowest.name}; none takes a multiplication.",
        text="\n".join(
            f"{row.name:16} {row.kernel:24} {row.shape:>10} {row.weights:>8,} bytes" for row in rows
        ),
    )
    project = ProjectOptions(options.name, command_line=options.command_line)
    return pages_of(shown, project, problems)


def _rows(network: LowBitNetwork, result: Run) -> Iterator[StepRow]:
    parts = [*_parts(network)]
    whole = max(sum(part.products for part in parts), 1)
    for number, (part, layer) in enumerate(zip(parts, result.layers, strict=True)):
        values = _maps(layer)
        yield StepRow(
            layer=number,
            name=layer.name,
            kind="layer",
            kernel=part.kernel,
            products=part.products,
            cycles=None,
            share=part.products / whole,
            shape="×".join(map(str, values.shape)),
            weights=part.weights,
            result=output_range(values, wide=layer.activations is None),
            picture=picture_of(number, values, PIXELS // len(parts)),
        )


def _maps(layer: LayerResults) -> NDArray[np.int64]:
    """Return what a layer makes of the first sample [channel, row, column]."""
    values = layer.sums if layer.activations is None else layer.activations
    maps: NDArray[np.int64] = values[0].reshape(len(values[0]), -1, 1)
    return maps


def _parts(network: LowBitNetwork) -> Iterator[_Part]:
    match network.stem:
        case DepthwiseChain() as chain:
            weights = sum(kernels.nbytes for kernels in chain.kernels)
            applied = chain.channels * _CHAIN_PIXELS * _TAPS
            yield _Part("3x3 convolutions of 8 bits", weights, applied)
        case Windows() as windows:
            count = len(windows.positions)
            for row in windows.layers:
                yield _joined(row, count if windows.shared else 1)
        case _:
            pass
    for layer in network.layers:
        yield _joined((layer,), 1)


def _joined(layers: Sequence[Dense], times: int) -> _Part:
    """Return layers that compute side by side, each so many times."""
    encodings = dict.fromkeys(layer.encoding.name for layer in layers)
    products = sum(layer.inputs * layer.outputs for layer in layers) * times
    return _Part(", ".join(encodings), sum(layer.words.nbytes for layer in layers), products)
