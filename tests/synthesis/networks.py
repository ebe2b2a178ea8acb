"""Small networks for the tests of the loader: descriptions as text, weights and sample as files.

A test states only what it is about; keys that every description needs are added here. Every key
stands on a line of its own, so that a test can say which line a message must name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ai8xtools.diagnostics import Diagnostic
from ai8xtools.synthesis.arrange import complete
from ai8xtools.synthesis.mapping import MappedNetwork, map_network
from ai8xtools.synthesis.options import ResolveOptions
from ai8xtools.synthesis.parse import parse
from ai8xtools.synthesis.resolve import resolve
from device import MAX78000, Chip

Keys = Mapping[str, Any]
FILE = "net.yaml"


def mask(count: int, first: int = 0) -> int:
    """Return a mask of neighbouring processors."""
    return (1 << count) - 1 << first


def describe(*layers: Keys, **others: Any) -> str:
    """Return the text of a description; layers get `out_offset` and global keys as needed."""
    lines = [f"{key}: {_text(value)}" for key, value in {**_GLOBALS, **others}.items()]
    lines.append("layers:")
    for index, layer in enumerate(layers):
        keys = {"out_offset": 0x4000 if index % 2 == 0 else 0, **layer}
        lines.append(f"- # layer {index}")
        lines += [f"  {key}: {_text(value)}" for key, value in keys.items() if value is not None]
    return "\n".join(lines) + "\n"


_GLOBALS = {"arch": "test", "dataset": "tiny"}


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(list(value)) if isinstance(value, tuple) else str(value)


def line_of(text: str, key: str, layer: int | None = 0) -> tuple[int, int]:
    """Return line and column of a key's value, in a layer or (None) among the global keys."""
    lines = text.splitlines()
    start = 0 if layer is None else lines.index(f"- # layer {layer}")
    for number, line in enumerate(lines[start:], start + 1):
        name, colon, _ = line.partition(": ")
        if name.strip() == key and colon:
            return number, len(name) + 3
    raise KeyError(key)


def weights(*shape: int, bits: int = 8, seed: int = 1) -> NDArray[np.int64]:
    """Return random test weights that use the whole range of `bits`."""
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1
    values = np.random.default_rng(seed).integers(low, high + 1, shape)
    values.flat[0] = low  # so that the loader sees the intended width
    return values


def sample(*shape: int, seed: int = 2) -> NDArray[np.int64]:
    """Return a random sample [channels, rows, columns] of 8-bit values."""
    return np.random.default_rng(seed).integers(-128, 128, shape)


def save(path: Path, arrays: Sequence[NDArray[Any]]) -> str:
    """Write consecutive arrays as the loader reads them: a lone one gets an axis of layers."""
    if len(arrays) == 1:
        arrays = [np.asarray(arrays[0])[None]]
    with path.open("wb") as file:
        for array in arrays:
            np.save(file, array)
    return str(path)


def files(
    folder: Path,
    data: NDArray[Any],
    kernels: Sequence[NDArray[Any]] = (),
    biases: Sequence[NDArray[Any]] = (),
    **options: Any,
) -> ResolveOptions:
    """Write the arrays to the folder and return options that name them."""
    np.save(folder / "sample.npy", data)
    named: dict[str, Any] = {"sample_input": str(folder / "sample.npy")}
    if len(kernels):
        named["weight_input"] = save(folder / "weights.npy", kernels)
    if len(biases):
        with (folder / "bias.npy").open("wb") as file:
            for bias in biases:
                np.save(file, bias)
        named["bias_input"] = str(folder / "bias.npy")
    return ResolveOptions(**{**named, **options})


def build(
    folder: Path,
    text: str,
    data: NDArray[Any],
    kernels: Sequence[NDArray[Any]] = (),
    biases: Sequence[NDArray[Any]] = (),
    chip: Chip = MAX78000,
    **options: Any,
) -> tuple[MappedNetwork, tuple[Diagnostic, ...]]:
    """Parse and resolve: return the network on the chip, and the warnings."""
    return resolved(text, chip, files(folder, data, kernels, biases, **options))


def resolved(
    text: str, chip: Chip, options: ResolveOptions
) -> tuple[MappedNetwork, tuple[Diagnostic, ...]]:
    """Parse and resolve with given options: return the network on the chip, and the warnings."""
    network, fixed, warnings = resolve(parse(text, FILE), chip, options)
    layout = complete(network.layers, network.order, fixed)
    return map_network(network, layout, chip), warnings
