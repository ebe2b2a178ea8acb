"""The layers that a front door finds in a model, and what it cannot express with them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from ai8xtools.diagnostics.errors import InputError
from ai8xtools.values import frozen

WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
"""Words that YAML does not read as text."""

INPUT = -1
"""Stands for the input of the network where layers are numbered."""
HISTORY = -2
"""Stands for the rolling buffer."""
SUMS_BETWEEN = "E677"
"""Whatever the chip, sums of 32 bits are no data of another layer."""
CHANGE = "Change the model here, or compute this part in the application."
"""What to do about what no layer stands for, if nothing better is known."""
EMPTY: Mapping[str, str] = MappingProxyType({})
ELEMENTWISE = {"Add": "add", "Sub": "sub", "BitwiseOr": "or", "BitwiseXor": "xor"}
"""Keys of descriptions for what element-wise layers do."""


@dataclass(slots=True)
class DescribedLayer:
    """A layer of the description.

    `node` is the model's name for it, `weights` that of its tensors (None: it has none of its own).
    `inputs` are numbers of layers, INPUT or HISTORY, joined as `join` says; `keys` what the layer
    does, without its place in memory. `taken` [C, ...] lies in memory before pooling and
    flattening, `shape` [C, ...] after the layer.
    """

    name: str
    inputs: tuple[int, ...]
    join: Literal["elements", "channels"] | None
    keys: dict[str, Any]
    taken: tuple[int, ...]
    shape: tuple[int, ...]
    is_output: bool = False
    node: str = ""
    weights: str | None = None

    @property
    def wide(self) -> bool:
        """Whether the results have 32 bits."""
        return self.keys.get("output_width") == 32


@frozen
class RollingBuffer:
    """Features of the last frames; `entries` is the number of frames."""

    name: str
    entries: int
    channels: int


@frozen
class Refusal:
    """A node of a model that the chip cannot compute: why, and what to use instead.

    `left`: behind the last layer the application can do it. `sums`: it reads sums, as no chip does.
    """

    node: str
    why: str
    remedy: str = CHANGE
    left: bool = False
    sums: bool = False


def wide_data(layers: Sequence[DescribedLayer], remedy: str) -> Iterator[Refusal]:
    """Yield a refusal for each layer whose results of 32 bits another one reads."""
    for reader in layers:
        for wide in (layers[n] for n in reader.inputs if n >= 0 and layers[n].wide):
            yield sums_between(wide, reader, "results of 32 bits", remedy)


def sums_between(layer: DescribedLayer, reader: DescribedLayer, what: str, remedy: str) -> Refusal:
    """Return the refusal of a layer whose sums another one would read."""
    where = f"are data of {reader.node}, which takes"
    if reader.weights is None and reader.keys.keys() & {"max_pool", "avg_pool"}:
        where = "are pooled, or taken in steps, where data has"
    return Refusal(layer.node, f"its {what} {where} 8 bits", remedy, sums=True)


def refuse(
    refusals: Iterable[Refusal],
    model: str,
    by: str = "the accelerator",
    lines: Mapping[str, str] = EMPTY,
    error: type[InputError] = InputError,
) -> None:
    """Raise InputError E670 or E677 that names all nodes, if there are any.

    `by` would compute them, `lines` are FILE:LINE of nodes in the model.
    """
    distinct = list(dict.fromkeys(refusals))
    if not distinct:
        return
    if len(distinct) == 1:
        (one,) = distinct
        what, remedy = f"{one.node}: {one.why}", one.remedy
        what = at_line(what, one.node, lines)
    else:
        groups: dict[tuple[str, str], list[str]] = {}
        for refusal in distinct:
            node = at_line(refusal.node, refusal.node, lines)
            groups.setdefault((refusal.why, refusal.remedy), []).append(node)
        what = f"{len(distinct)} nodes of the model cannot be computed by {by}"
        remedy = "\n  ".join(
            f"{', '.join(nodes)}: {why}. {instead}" for (why, instead), nodes in groups.items()
        )
    if all(refusal.sums for refusal in distinct):
        raise InputError(SUMS_BETWEEN, what, model, remedy)
    raise error("E670", what, model, remedy)


def at_line(text: str, node: str, lines: Mapping[str, str]) -> str:
    """Return a text about a node with its line, where that is known."""
    return f"{text} ({lines[node]})" if node in lines else text


def short(sizes: Sequence[int] | int) -> Any:
    """Return sizes as the description writes them: one number if they are equal."""
    listed = [sizes] if isinstance(sizes, int) else list(sizes)
    return listed[0] if len(set(listed)) == 1 else listed


def times(shape: Sequence[int]) -> str:
    """Return a shape as text such as 64x3x3."""
    return "x".join(map(str, shape))


def unused(proposal: str, taken: Iterable[str]) -> str:
    """Return a name for a layer that no other one has, whatever characters are wanted."""
    names = {name.lower() for name in taken} | {"input", "stop"}
    name = "".join(c if c.isalnum() or c == "_" else "_" for c in proposal).strip("_") or "layer"
    if not name[0].isalpha() or name.lower() in WORDS:
        name = f"layer_{name}"
    numbers = (f"{name}_{number}" for number in range(2, len(names) + 3))
    return name if name.lower() not in names else next(n for n in numbers if n.lower() not in names)
