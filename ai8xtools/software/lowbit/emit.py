"""The C of a low-bit network: engine with the functions it needs, header, console program."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ai8xtools.quantization.lowbit import TRITS, Encoding, packed_inputs
from ai8xtools.software.lowbit.bounds import first_plane_bits, prove_sums
from ai8xtools.software.lowbit.coded import CodedLayers, coded_layers, saved_bytes
from ai8xtools.software.lowbit.engine import run
from ai8xtools.software.lowbit.header import fields_of
from ai8xtools.software.lowbit.network import (
    WINDOW,
    Dense,
    DepthwiseChain,
    LowBitNetwork,
    Rule,
    Windows,
)
from ai8xtools.values import frozen
from ai8xtools.writing.files import distinct
from ai8xtools.writing.templates import render

_FORMS = {
    "Binary": "binary", "BinarySym": "binary", "Ternary": "ternary", "8bit": "byte",
    "4bit": "complement", "sint4": "complement", "FP130": "power", "2bitsym": "symmetric",
    "4bitsym": "symmetric",
}  # fmt: skip
"""How an encoding's sums are combined; those that are missing here multiply each by a constant."""


_PER_LINE = 8
_BESIDE = {type(None): (2048, 192), Windows: (3072, 304), DepthwiseChain: (4608, 352)}
_BESIDE_CODED = (512, 160)
_RAM_BYTES = 2048 - _BESIDE[Windows][1]
"""The RAM of the smallest cores without a stack."""


@frozen
class Samples:
    """Inputs int8 [number, bytes] for the console program, and their labels if they are known."""

    inputs: NDArray[np.int8]
    labels: tuple[int, ...] | None = None


def emit(
    network: LowBitNetwork, samples: Samples, title: str, compress: bool = False
) -> dict[str, str]:
    """Return the files of a project by path; raises DiagnosticError if a sum could overflow.

    With `compress` weights of fully connected layers are stored as Huffman codes.
    """
    prove_sums(network)
    classes = run(network, samples.inputs).classes
    coded = coded_layers(network) if compress else {}
    head = {"title": title, "inputs": network.inputs, "classes": network.classes}
    return distinct(
        [
            ("lowbit.h", render("software/lowbit/lowbit.h.j2", **head)),
            ("lowbit.c", render("software/lowbit/engine.c.j2", **head, **_engine(network, coded))),
            ("model.h", header(network, title, coded)),
            ("sampledata.h", _sample_file(samples, classes, title)),
            ("main.c", render("software/lowbit/main.c.j2", title=title,
                              labelled=samples.labels is not None)),
            ("Makefile", render("software/lowbit/Makefile.j2")),
        ]
    )  # fmt: skip


def header(network: LowBitNetwork, title: str, coded: CodedLayers | None = None) -> str:
    """Return the header of a network: sizes and packed weights under the names of the format."""
    dense = [_dense_layer(layer, network.rule, coded) for layer in network.layers]
    layers = [*_stem_layers(network), *dense]
    most = max(layer.inputs for layer in dense_layers(network))
    return render(
        "software/lowbit/model.h.j2",
        title=title,
        name=network.name,
        layers=layers,
        most_inputs=most,
        fine=int(network.fine),
        windows=_header_windows(network),
        coded=bool(coded),
    )


def dense_layers(network: LowBitNetwork) -> tuple[Dense, ...]:
    """Return all fully connected layers, those of windows first."""
    if isinstance(network.stem, Windows):
        return (*(layer for row in network.stem.layers for layer in row), *network.layers)
    return network.layers


def sizes(network: LowBitNetwork, compress: bool = False) -> tuple[int, int]:
    """Return the bytes of weights in flash, and of sums and activations in RAM."""
    flash = sum(layer.words.nbytes for layer in dense_layers(network))
    if compress:
        flash -= saved_bytes(network)
    counts = _sizes(network)
    ram = 4 * counts["sums"] + counts["activations"]
    stem = network.stem
    if isinstance(stem, DepthwiseChain):
        flash += sum(kernels.nbytes for kernels in stem.kernels)
        planes = 14 * 14 * (2 if first_plane_bits(stem) <= 16 else 4) + 6 * 6 * 4
        ram = 4 * counts["sums"] + max(counts["activations"], planes)
    elif isinstance(stem, Windows):
        ram += WINDOW * WINDOW
        if _one_by_one(network):
            ram += 5 * _row(stem)
    return flash, ram


def beside(network: LowBitNetwork, compress: bool = False) -> tuple[int, int]:
    """Return the bytes of code in flash, and of the stack in RAM, that come to those of `sizes`.

    They were measured: the code of the engine and the deepest stack of the console program on
    RV32EC, at -Os and -O3, are less for all encodings and rules.
    """
    code, stack = _BESIDE[type(network.stem)]
    if compress:
        code, stack = code + _BESIDE_CODED[0], stack + _BESIDE_CODED[1]
    return code, stack


def _one_by_one(network: LowBitNetwork) -> bool:
    """Whether windows are computed one at a time, and again for each scale that they share.

    So it is where the sums of all windows would not leave room in RAM for a stack.
    """
    stem = network.stem
    if not isinstance(stem, Windows) or len(stem.layers) == 1:
        return False
    group, count = network.window_rule.group, len(stem.positions)
    sums = max(count * row[0].outputs for row in stem.layers)
    suitable = group == count or (group == 1 and len(stem.layers) == 2)
    return suitable and 5 * sums + WINDOW * WINDOW > _RAM_BYTES


def _row(windows: Windows) -> int:
    """Return the greatest number of outputs of a window's layers but the last."""
    return max(row[0].outputs for row in windows.layers[:-1])


def _engine(network: LowBitNetwork, coded: CodedLayers) -> dict[str, Any]:
    """Return the values for the template of the engine."""
    rules = _rules(network)
    names = {rule: f"scale_{number}" for number, rule in enumerate(rules)}
    packed = [layer for layer in dense_layers(network) if layer.identifier not in coded]
    used = {layer.encoding.name: layer.encoding for layer in packed}
    rests = {layer.encoding.name for layer in packed if _call(layer)["rest"]}
    streams = {layer.encoding.name: layer.encoding for layer in network.layers
               if layer.identifier in coded}  # fmt: skip
    kinds = {rule.kind for rule in rules}
    return {
        "used": [
            _kernel(encoding, network.fine) | {"rest": name in rests}
            for name, encoding in used.items()
        ],
        "streams": [_kernel(encoding, network.fine) for encoding in streams.values()],
        "scales": [_scale(rule, name) for rule, name in names.items()],
        "shifts": bool(kinds & {"shift", "max"}),
        "reciprocals": "reciprocal" in kinds,
        "chain": _chain(network, names),
        "windows": _windows(network, names),
        "layers": [_call(layer) | {"coded": layer.identifier in coded,
                                   "scale": names.get(_plain(network.rule))}
                   for layer in network.layers],
        "sizes": _sizes(network),
    }  # fmt: skip


def _plain(rule: Rule) -> Rule:
    """Return the rule without its group, which is the number of values that a call is given."""
    return Rule(rule.kind, rule.bits, rule.rounds, rule.limit)


def _rules(network: LowBitNetwork) -> list[Rule]:
    rules = []
    if network.stem is not None or len(network.layers) > 1:
        rules.append(_plain(network.rule))
    if isinstance(network.stem, Windows) and len(network.stem.layers) > 1:
        rules.append(_plain(network.window_rule))
    return list(dict.fromkeys(rules))


def _kernel(encoding: Encoding, fine: bool) -> dict[str, Any]:
    """Return a function for fully connected layers: its name, and how it reads and combines."""
    places = range(32 - encoding.bits, -1, -encoding.bits)
    table = encoding.table if fine else encoding.values
    return {
        "name": encoding.name.lower(),
        "word": "uint16" if encoding.name == "Ternary" else "uint32",
        "codes": len(encoding.values),
        "bits": encoding.bits,
        "places": list(places),
        "form": _FORMS.get(encoding.name, "products"),
        "products": [list(signed_powers(value)) for value in table],
    }


def signed_powers(value: int) -> Iterator[tuple[int, bool]]:
    """Yield exponents of powers of two whose sum is `value`, and whether each is subtracted.

    No two exponents are neighbours, which takes the fewest terms. The first one is added if any is.
    """
    terms, place = [], 0
    while value:
        if value & 1:
            digit = 2 - value % 4
            terms.append((place, digit < 0))
            value -= digit
        value >>= 1
        place += 1
    yield from sorted(terms, key=lambda term: term[1])


def _scale(rule: Rule, name: str) -> dict[str, Any]:
    about = {
        "shift": "Shift sums so that the greatest one is at most the limit.",
        "max": "Shift sums, and multiply by eighths up to the limit.",
        "reciprocal": "Multiply sums so that the greatest one becomes the limit.",
    }[rule.kind]
    return {"name": name, "about": about, "kind": rule.kind, "limit": rule.limit,
            "bits": rule.bits, "rounds": int(rule.rounds)}  # fmt: skip


def _call(layer: Dense, weights: str = "") -> dict[str, Any]:
    """Return how a layer's function is called."""
    per_word = TRITS if layer.encoding.name == "Ternary" else 32 // layer.encoding.bits
    return {
        "id": layer.identifier,
        "function": f"fc_{layer.encoding.name.lower()}",
        "weights": weights,
        "words": layer.inputs // per_word,
        "rest": layer.inputs % per_word,
        "inputs": layer.inputs,
        "outputs": layer.outputs,
    }


def _chain(network: LowBitNetwork, names: dict[Rule, str]) -> dict[str, Any] | None:
    chain = network.stem
    if not isinstance(chain, DepthwiseChain):
        return None
    return {"channels": chain.channels, "ids": chain.identifiers, "shift": chain.shift,
            "plane": "int16" if first_plane_bits(chain) <= 16 else "int32",
            "scale": names[_plain(network.rule)]}  # fmt: skip


def _windows(network: LowBitNetwork, names: dict[Rule, str]) -> dict[str, Any] | None:
    windows = network.stem
    if not isinstance(windows, Windows):
        return None
    layers = []
    for place, row in enumerate(windows.layers):
        weights = f"Ls{place}_weights"
        if not windows.shared:
            weights += f" + window * {row[0].words.size}"
        layers.append(_call(row[0], weights))
    return {
        "layers": layers,
        "count": len(windows.positions),
        "stride": windows.stride,
        "again": _one_by_one(network),
        "row": _row(windows) if len(windows.layers) > 1 else 0,
        "first_pass": len(windows.layers) - 1 if network.window_rule.group == 1 else 0,
        "group": network.window_rule.group,
        "scale": names.get(_plain(network.window_rule)),
        "joined": names[_plain(network.rule)],
    }


def _sizes(network: LowBitNetwork) -> dict[str, int]:
    """Return the numbers of sums and of activations that exist at the same time."""
    sums = [layer.outputs for layer in network.layers]
    stem = network.stem
    if isinstance(stem, DepthwiseChain):
        sums.append(4 * stem.channels)
    elif isinstance(stem, Windows):
        kept = stem.layers[-1:] if _one_by_one(network) else stem.layers
        sums += [len(stem.positions) * row[0].outputs for row in kept]
    inner = [size for size in sums if size != network.classes] or [1]
    return {"sums": max(sums), "activations": max(inner)}


def _header_windows(network: LowBitNetwork) -> dict[str, int] | None:
    """Return what the header says of windows."""
    stem = network.stem
    if not isinstance(stem, Windows):
        return None
    return {"count": len(stem.positions), "stride": stem.stride, "shared": int(stem.shared)}


def _dense_layer(layer: Dense, rule: Rule, coded: CodedLayers | None = None) -> dict[str, Any]:
    fields = {
        "active": "",
        "bitperweight": layer.encoding.identifier,
        "incoming_weights": packed_inputs(layer.inputs, layer.encoding),
        "outgoing_weights": layer.outputs,
        "inputs": layer.inputs,
        **fields_of(rule),
    }
    coding = (coded or {}).get(layer.identifier)
    if coding is None:
        return {"id": layer.identifier, "fields": fields} | _array(layer.words)
    parts = {"lengths": coding.lengths, "codes": coding.symbols, "stream": coding.stream}
    arrays = [{"name": name, **_array(values)} for name, values in parts.items()]
    return {"id": layer.identifier, "fields": fields, "arrays": arrays}


def _array(values: NDArray[Any]) -> dict[str, str]:
    """Return type and lines of an array in C: words in hexadecimal, bytes in decimal."""
    form = "d" if values.dtype == np.int8 else f"#0{2 * values.itemsize + 2}x"
    numbers = [format(value, form) for value in values.reshape(-1).tolist()]
    lines = [", ".join(numbers[i : i + _PER_LINE]) for i in range(0, len(numbers), _PER_LINE)]
    return {"type": values.dtype.name, "lines": ",\n".join(lines)}


def _stem_layers(network: LowBitNetwork) -> Iterator[dict[str, Any]]:
    stem = network.stem
    if isinstance(stem, DepthwiseChain):
        yield from _convolutions(stem)
    elif isinstance(stem, Windows):
        for place, row in enumerate(stem.layers):
            words = np.concatenate([layer.words for layer in row])
            fields = _dense_layer(row[0], network.window_rule)["fields"]
            yield {"id": f"s{place}", "fields": fields} | _array(words)


def _convolutions(chain: DepthwiseChain) -> Iterator[dict[str, Any]]:
    """Yield the three convolutions and the two poolings behind the second and third."""
    size = 16
    for place, (number, kernels) in enumerate(zip(chain.identifiers, chain.kernels, strict=True)):
        fields = {
            "active": "", "type": "Conv2d", "in_channels": chain.channels if place else 1,
            "out_channels": chain.channels, "incoming_x": size, "incoming_y": size,
            "outgoing_x": size - 2, "outgoing_y": size - 2, "kernel_size": 3, "stride": 1,
            "padding": 0, "groups": chain.channels if place else 1, "bitperweight": 8,
        }  # fmt: skip
        yield {"id": number, "fields": fields} | _array(kernels)
        size -= 2
        if place:
            fields = {
                "active": "", "type": "MaxPool2d", "pool_size": 2, "incoming_x": size,
                "incoming_y": size, "outgoing_x": size // 2, "outgoing_y": size // 2,
            }  # fmt: skip
            size //= 2
            yield {"id": chain.pools[place - 1], "fields": fields, "type": None}


def _sample_file(samples: Samples, classes: NDArray[np.int64], title: str) -> str:
    labels = samples.labels
    return render(
        "software/lowbit/sampledata.h.j2",
        title=title,
        inputs=[", ".join(map(str, row)) for row in samples.inputs.tolist()],
        classes=", ".join(map(str, classes.tolist())),
        labels=None if labels is None else ", ".join(map(str, labels)),
    )
