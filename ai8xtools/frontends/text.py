"""The text of a network description that fixes no place in memory."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Sequence
from typing import Any

from ai8xtools.frontends.layers import (
    HISTORY,
    INPUT,
    WORDS,
    DescribedLayer,
    Refusal,
    RollingBuffer,
    times,
)
from ai8xtools.values import frozen

_PLAIN = re.compile(r"[A-Za-z_][\w.]*")


@frozen
class ModelDescription:
    """A description made from a model: text, the model's name, the node of each layer.

    `input_shape` is that of the model's input, [C, H, W] or [C, L]; `left` names nodes behind the
    last layer that the application does, `notes` are lines for people, `doubts` what is refused
    should the description depart from the model.
    """

    text: str
    model: str
    nodes: tuple[str, ...]
    input_shape: tuple[int, ...]
    left: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    doubts: tuple[Refusal, ...] = ()


def description_text(
    layers: Sequence[DescribedLayer],
    *,
    arch: str,
    dataset: str,
    title: str,
    buffer: RollingBuffer | None = None,
) -> str:
    """Return the description: what each layer does; `title` becomes a comment.

    Bits of weights come from the checkpoint.
    """
    lines = ["---", *comment(title, ""), f"arch: {scalar(arch)}", f"dataset: {scalar(dataset)}"]
    if buffer is not None:
        lines += ["", "data_buffer:", f"  - name: {scalar(buffer.name)}"]
        lines += [f"    channels: {buffer.channels}", f"    dim: {buffer.entries}"]
    lines += ["", "layers:"]
    several = sum(layer.is_output for layer in layers) > 1
    for index, layer in enumerate(layers):
        keys: dict[str, Any] = {"name": layer.name, "op": layer.keys["op"]}
        keys |= sources(layers, index, buffer)
        if layer.weights is not None:
            keys["weights"] = layer.weights
        keys |= {key: value for key, value in layer.keys.items() if key != "op"}
        if several and layer.is_output:
            keys["output"] = True
        lines += comment(f"{times(layer.taken)} -> {times(layer.shape)}", "  ")
        lines += [*entry(keys), ""]
    return "\n".join(lines[:-1]) + "\n"


def sources(
    layers: Sequence[DescribedLayer], index: int, buffer: RollingBuffer | None = None
) -> dict[str, str]:
    """Return the key that names what a layer reads, unless it is the layer before."""
    inputs = layers[index].inputs
    if inputs == (index - 1,):
        return {}
    special = {INPUT: "input", HISTORY: "" if buffer is None else buffer.name}
    names = [special[n] if n in special else layers[n].name for n in inputs]
    return {"in_sequences": names[0] if len(names) == 1 else f"[{', '.join(names)}]"}


def entry(keys: dict[str, Any]) -> list[str]:
    """Return the lines of an element of the list of layers."""
    body = [f"    {key}: {scalar(value)}" for key, value in keys.items()]
    return [body[0].replace("    ", "  - ", 1), *body[1:]]


def comment(text: str, indent: str) -> list[str]:
    """Return a text as lines of comment."""
    begin = f"{indent}# "
    return textwrap.wrap(
        text, 98, initial_indent=begin, subsequent_indent=begin, break_on_hyphens=False
    )


def scalar(value: Any) -> str:
    """Return a value as the description writes it; lists of layers come as text in brackets."""
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str) or value.startswith(("[", "0x")) or _SIZE.fullmatch(value):
        return str(value)
    plain = _PLAIN.fullmatch(value) and value.lower() not in WORDS
    return value if plain else json.dumps(value, ensure_ascii=False)


_SIZE = re.compile(r"\d+x\d+")
