"""quantize.py --device BITNET: a trained low-bit network becomes a header with packed weights.

Source: docs/low-bit.md, "The header".
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tabulate import tabulate

from checkpoint import atomic
from commands.arguments import Parser
from commands.lowbit.files import Trained, read
from commands.same_files import refuse_overwriting
from diagnostics.errors import InputError
from quantization.lowbit import ENCODINGS, Encoding, encode, pack, statistics
from software.lowbit.bounds import prove_sums
from software.lowbit.emit import header, sizes
from software.lowbit.network import Dense, DepthwiseChain, LowBitNetwork, Rule, Windows

_FIRST, _FIRST_BEHIND_CHAIN = 3, 11
_CHAIN, _POOLS = (2, 4, 7), (6, 9)


def quantize_lowbit(words: Sequence[str]) -> int:
    """Write the header and print the statistics; return the exit status."""
    parser = Parser(
        prog="quantize.py",
        usage="%(prog)s INPUT.pth.tar OUTPUT.h --device BITNET",
        description="Pack the weights of a low-bit network into a header.",
    )  # fmt: skip
    option = parser.add_argument
    option("input", metavar="INPUT", help="checkpoint of train.py --model ai85fcbit or the like")
    option("output", metavar="OUTPUT", help="header (.h) to write")
    option("--device", required=True, metavar="NAME", help="BITNET")
    option("--debug", action="store_true", help="show where in the program a failure arises")
    args = parser.parse_args([*words])
    if not args.output.endswith(".h"):
        parser.error("argument OUTPUT: a low-bit network becomes a header, FILE.h")
    refuse_overwriting([(args.output, args.output)], (args.input,))
    trained = read(args.input)
    network, rows = network_of(trained, args.input)
    prove_sums(network)
    text = header(network, f"quantize.py {Path(args.input).name}")
    atomic.write_bytes(args.output, text.encode("ascii", "backslashreplace"))
    heads = ["layer", "encoding", "weights", "bytes", "least", "greatest", "mean", "deviation",
             "entropy (bits)", "capacity (%)"]  # fmt: skip
    print(tabulate(rows, heads, "simple", floatfmt=".4g"))
    flash, ram = sizes(network)
    print(f"Weights: {flash:,} bytes of flash; sums and activations: {ram:,} bytes of RAM")
    print(f"Wrote {args.output}")
    return 0


def network_of(trained: Trained, path: str) -> tuple[LowBitNetwork, list[list[object]]]:
    """Return the network with packed weights, and a row of statistics for each layer."""
    recipe = trained.recipe
    plan = recipe.architecture(len(trained.classes))
    rows: list[list[object]] = []
    stem: DepthwiseChain | Windows | None = None
    first = _FIRST
    if plan.stem == "cnn":
        kernels = [_kernels(trained, f"convs.{i}", rows, path) for i in range(3)]
        stem = DepthwiseChain(_CHAIN, (kernels[0], kernels[1], kernels[2]), _POOLS)
        first = _FIRST_BEHIND_CHAIN
    elif plan.stem == "windows":
        encoding = _encoding(plan.window_encoding)
        layers = tuple(
            _window_layer(trained, f"stem.{i}", i, encoding, rows, path)
            for i in range(len(plan.window_widths))
        )
        stem = Windows(plan.stride, layers, plan.shared)
    dense = tuple(
        _dense(_codes(trained, f"layers.{i}", _encoding(name), rows, path), first + 2 * i,
               _encoding(name))
        for i, name in enumerate(plan.encodings)
    )  # fmt: skip
    group = plan.windows if plan.stem == "windows" and plan.shared_scale else 1
    rule = Rule(plan.rule.kind, plan.rule.bits, plan.rule.rounds, plan.rule.limit)  # type: ignore[arg-type]
    window_rule = Rule(rule.kind, rule.bits, rule.rounds, rule.limit, group)
    return LowBitNetwork(stem, dense, rule, window_rule, plan.fine, recipe.model), rows


def _encoding(name: str) -> Encoding:
    return ENCODINGS["Binary" if name == "BinaryBalanced" else name]


def _tensor(trained: Trained, name: str, path: str) -> NDArray[np.float32]:
    if name not in trained.state:
        raise InputError("E725", f"the tensor {name} is missing", path, "Train the network again.")
    return np.asarray(trained.state[name], np.float32)


def _codes(
    trained: Trained, name: str, encoding: Encoding, rows: list[list[object]], path: str
) -> NDArray[np.int64]:
    """Return the codes of a layer, and add its statistics."""
    weights = _tensor(trained, f"{name}.weight", path)
    clip = float(_tensor(trained, f"{name}.s", path))
    if not clip > 0 or not np.any(weights):
        raise InputError(
            "E725", f"{name}: all weights are zero or its clip scalar {clip:g} is not above zero",
            path, "Train the network again.",
        )  # fmt: skip
    codes = encode(weights, clip, encoding)
    found = statistics(codes, encoding)
    size = int(np.prod(weights.shape) * encoding.bits_per_weight / 8)
    rows.append([name, encoding.name, weights.size, size, found.least, found.greatest, found.mean,
                 found.deviation, found.entropy_bits, found.capacity_percent])  # fmt: skip
    return codes


def _dense(codes: NDArray[np.int64], identifier: int, encoding: Encoding) -> Dense:
    outputs, inputs = codes.shape
    return Dense(identifier, encoding, inputs, outputs, pack(codes, encoding))


def _window_layer(
    trained: Trained,
    name: str,
    number: int,
    encoding: Encoding,
    rows: list[list[object]],
    path: str,
) -> tuple[Dense, ...]:
    """Return the layer of each window, or that of all."""
    codes = _codes(trained, name, encoding, rows, path)
    return tuple(_dense(part, number, encoding) for part in codes)


def _kernels(trained: Trained, name: str, rows: list[list[object]], path: str) -> NDArray[np.int8]:
    """Return the kernels of a convolution [channels, 3, 3]."""
    encoding = ENCODINGS["8bit"]
    codes = _codes(trained, name, encoding, rows, path)
    integers = np.array(encoding.values)[codes]
    return integers.reshape(-1, 3, 3).astype(np.int8)
