"""Predicted and counted instructions of the networks of networks/: `make measure WHAT=cost-model`.

Each network has random weights, is planned for a core with enough memory, compiled with -O3 and run
on the emulated core. With --calibrate the coefficients are measured again first, with programs of
random layers: software/costs.json.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ai8xtools.emulator.cpu.architecture import ARCHITECTURES
from ai8xtools.emulator.cpu.compiler import PREFERENCE
from ai8xtools.emulator.cpu.counting import NOTHING
from ai8xtools.emulator.cpu.memory_map import CoreMemory
from ai8xtools.emulator.plain import CopyEngine, compile_plain, run_plain
from ai8xtools.software.build import SCHEMES
from ai8xtools.software.cores import CORES
from ai8xtools.software.emit.project import Sample, emit
from ai8xtools.software.fuse import fuse
from ai8xtools.software.graph import StepGraph
from ai8xtools.software.lower import lower
from ai8xtools.software.plan.cost import channel_work, plane_work
from ai8xtools.software.plan.layers import takes_planes
from ai8xtools.software.plan.plan import Plan
from ai8xtools.software.plan.planner import Planner, Wish, best_plan, plan
from ai8xtools.software.plan.prediction import FILE, predicted, total_work
from ai8xtools.software.plan.schemes import Scheme
from ai8xtools.software.profile import Profile
from ai8xtools.synthesis.network import Activation, Combination, Layer, Network, Operator, Pooling
from ai8xtools.synthesis.simulate import simulate
from tests.networks.deployed import DEPLOYED
from tests.software.forced_schemes import network_of

_LIMIT = 0.15
_SECONDS = 1800.0
_WHOLE = 64 << 20


def counted(made: Plan, network: Network) -> tuple[int, float]:
    """Return the instructions and cycles of an inference on the emulated core.

    An engine makes the copies between levels of memory.
    """
    outputs = simulate(network, average_rounding=False).outputs
    delivered = tuple(outputs[layer.index] for layer in network.outputs())
    levels = made.scheme is None
    files = emit(made, Sample(network.sample, delivered), "net", "")
    with tempfile.TemporaryDirectory() as name:
        for path, text in files.items():
            (Path(name) / path).write_text(text)
        core = ARCHITECTURES[made.core.name]
        program = compile_plain(Path(name), core, engine=levels)
    memory = CoreMemory(flash_bytes=_WHOLE, sram_bytes=_WHOLE)
    run = run_plain(program, count=True, time_limit=_SECONDS, memory=memory,
                    engine=CopyEngine() if levels else None)  # fmt: skip
    if not run.passed:
        raise AssertionError(f"{made.core.name}: wrong result: {run.text[-200:]}")
    total = sum((run.functions or {}).values(), NOTHING)
    return total.instructions, total.cycles


def random_layers(seed: int) -> Network:
    """Return a network of a few layers of ordinary sizes."""
    numbers = np.random.default_rng(seed)
    flat = seed % 6 == 0
    size = (int(numbers.integers(4, 40)), 1 if flat else int(numbers.integers(4, 28)))
    channels = int(numbers.choice((1, 1, 3, 3, 4, 10, 16, 20, 32, 48, 64)))
    sample = numbers.integers(-128, 128, (channels, *size)).astype(np.int64)
    layers: list[Layer] = []
    for index in range(int(numbers.integers(1, 4))):
        layer = _random_layer(numbers, index, channels, size, layers)
        layers.append(layer)
        channels, size = layer.out_channels, layer.out_dim
    order = tuple(range(len(layers)))
    return Network(layers=tuple(layers), order=order, simulated=order, sample=sample)


def _random_layer(
    numbers: np.random.Generator,
    index: int,
    channels: int,
    size: tuple[int, int],
    before: list[Layer],
) -> Layer:
    flat, pooling, pooled = size[1] == 1, Pooling(), size
    if numbers.random() < 0.4 and min(size[0], size[1] if not flat else 9) > 3:
        window = (2, 1 if flat else 2)
        pooling = Pooling(window, window, average=bool(numbers.random() < 0.5))
        pooled = (size[0] // 2, size[1] if flat else size[1] // 2)
    kind = numbers.random()
    filters = int(numbers.choice((1, 2, 3, 4, 10, 12, 16, 20, 32, 60, 64)))
    operator = Operator.CONV1D if flat else Operator.CONV2D
    kernel, pad, groups, sources = (3, 3), (1, 1), 1, None
    if flat:
        kernel, pad = (int(numbers.choice((1, 3, 6))), 1), (0, 0)
        kernel = (min(kernel[0], pooled[0]), 1)
    elif numbers.random() < 0.3:
        kernel, pad = (1, 1), (0, 0)
    flatten, spread, output_pad = kind < 0.15, (1, 1), 0
    settings: dict[str, Any] = {}
    if flatten:
        operator, kernel, pad = Operator.LINEAR, (1, 1), (0, 0)
    elif kind < 0.25:
        groups = filters = channels
    elif kind < 0.35 and not flat and max(pooled) < 20:
        operator, kernel, pad, spread, output_pad = (
            Operator.CONVTRANSPOSE2D,
            (3, 3),
            (1, 1),
            (2, 2),
            1,
        )
    elif kind < 0.5 and before and before[-1].activation is not None:
        operator, kernel, pad, filters = Operator.NONE, (1, 1), (0, 0), channels
        sources = (index - 1, index - 1)
        settings = {"combination": Combination.ADD, "operands": 2}
    elif kind < 0.6:
        operator, kernel, pad, filters = Operator.NONE, (1, 1), (0, 0), channels
    out = tuple(n + 2 * p - k + 1 for n, p, k in zip(pooled, pad, kernel, strict=True))
    if spread != (1, 1):
        out = (2 * pooled[0], 2 * pooled[1])
    inputs = channels * pooled[0] * pooled[1] if flatten else channels // groups
    weighted = operator.weighted
    weights = np.rint(np.clip(numbers.laplace(0, 20, (filters, inputs, *kernel)), -128, 127))
    return Layer(
        index=index, operator=operator, in_channels=channels, out_channels=filters, in_dim=size,
        pooling=pooling, pooled_dim=pooled, kernel=kernel, pad=pad, groups=groups,
        out_dim=(1, 1) if flatten else (out[0], out[1]), flatten=flatten, sources=sources,
        weight_bits=8 if weighted else 0, weights=weights.astype(np.int8) if weighted else None,
        bias=numbers.integers(-128, 128, filters) if weighted else None, shift=-3 * weighted,
        activation=Activation.RELU, stride=spread, output_pad=output_pad, **settings,
    )  # fmt: skip


def measured(
    core: str, count: int, seed: int, kernels: frozenset[str] | None = None
) -> Iterator[tuple[dict[str, float], int, float]]:
    """Yield the work of programs of random layers, with their instructions and cycles.

    Networks without a step are left out. `kernels` are the sets that may be used (None: those of
    the core).
    """
    while count:
        network = random_layers(seed)
        graph = fuse(lower(network))
        scheme = Scheme.ROWS if seed % 4 == 3 else Scheme.RESIDENT
        seed += 1
        if not graph.steps:
            continue
        count -= 1
        made = plan(graph, CORES[core], scheme, kernels)
        yield total_work(made.graph.steps, made.kernels), *counted(made, network)


def joined(core: str, count: int, seed: int) -> Iterator[tuple[dict[str, float], int, float]]:
    """Yield the work of programs in which a pooling reads the results of two layers: copies."""
    for number in range(seed, seed + count):
        numbers = np.random.default_rng(number)
        rows, columns = (int(n) for n in numbers.integers(6, 16, 2))
        channels = int(numbers.choice((4, 8, 16)))
        sample = numbers.integers(-128, 128, (channels, rows, columns)).astype(np.int64)
        weights = numbers.integers(-30, 30, (2, channels, channels, 1, 1)).astype(np.int8)
        size, half = (rows, columns), (rows // 2, columns // 2)
        branches = [
            Layer(index=index, operator=Operator.CONV2D, in_channels=channels,
                  out_channels=channels, in_dim=size, pooled_dim=size, out_dim=size,
                  weight_bits=8, weights=weights[index], sources=(-1,), shift=-3,
                  activation=Activation.RELU)
            for index in range(2)
        ]  # fmt: skip
        pooled = Layer(
            index=2, operator=Operator.NONE, in_channels=2 * channels, out_channels=2 * channels,
            in_dim=size, pooling=Pooling((2, 2), (2, 2)), pooled_dim=half, out_dim=half,
            sources=(0, 1),
        )  # fmt: skip
        order = (0, 1, 2)
        network = Network(layers=(*branches, pooled), order=order, simulated=order, sample=sample)
        made = plan(fuse(lower(network)), CORES[core], Scheme.RESIDENT)
        yield total_work(made.graph.steps, made.kernels), *counted(made, network)


def planes(core: str, count: int, seed: int) -> Iterator[tuple[dict[str, float], int, float]]:
    """Yield the work of programs whose layers are all computed an input channel at a time."""
    profile = Profile("planes", CORES[core], 1 << 24, 1 << 22, dma=3)
    wish = Wish(schemes=SCHEMES["planes"])
    while count:
        network = random_layers(seed)
        graph = fuse(lower(network))
        seed += 1
        if not graph.steps or not all(takes_planes(step) for step in graph.steps):
            continue
        made = Planner(graph, profile, profile.l1, wish).plan()
        work: dict[str, float] = {}
        for task in made.tasks:
            for name, amount in plane_work(task).items():
                work[name] = work.get(name, 0) + amount
        count -= 1
        yield work, *counted(made, network)


def stacks(core: str, count: int, seed: int) -> Iterator[tuple[dict[str, float], int, float]]:
    """Yield the work of programs whose layers are all computed a channel at a time in place."""
    profile = Profile("stacks", CORES[core], 1 << 24, 1 << 22, dma=3)
    wish = Wish(schemes=frozenset({Scheme.CHAIN}))
    for number in range(seed, seed + count):
        network = apart(number)
        made = Planner(fuse(lower(network)), profile, profile.l1, wish).plan()
        work: dict[str, float] = {}
        for task in made.layers:
            for name, amount in channel_work(task).items():
                work[name] = work.get(name, 0) + amount
        yield work, *counted(made, network)


def apart(seed: int) -> Network:
    """Return two layers that do not mix channels."""
    numbers = np.random.default_rng(seed)
    size = (int(numbers.integers(6, 24)), int(numbers.integers(6, 24)))
    channels = int(numbers.choice((3, 8, 16)))
    sample = numbers.integers(-128, 128, (channels, *size)).astype(np.int64)
    layers: list[Layer] = []
    for index in range(2):
        pooling, pooled = Pooling(), size
        if seed % 4 == 3 and min(size) > 5:
            pooling = Pooling((2, 2), (2, 2), average=seed % 3 == 0)
            pooled = (size[0] // 2, size[1] // 2)
        weighted = not index or seed % 4 != 3
        kernel = 3 if weighted and numbers.random() < 0.5 else 1
        weights = np.rint(np.clip(numbers.laplace(0, 20, (channels, 1, kernel, kernel)), -128, 127))
        layers.append(Layer(
            index=index, operator=Operator.CONV2D if weighted else Operator.NONE,
            in_channels=channels, out_channels=channels, in_dim=size, pooling=pooling,
            pooled_dim=pooled, kernel=(kernel, kernel), pad=(kernel // 2, kernel // 2),
            groups=channels if weighted else 1, out_dim=pooled, weight_bits=8 * weighted,
            weights=weights.astype(np.int8) if weighted else None,
            bias=numbers.integers(-128, 128, channels) if weighted else None,
            shift=-3 * weighted, activation=Activation.RELU,
        ))  # fmt: skip
        size = pooled
    return Network(layers=tuple(layers), order=(0, 1), simulated=(0, 1), sample=sample)


def calibrate(core: str, count: int) -> dict[str, list[float]]:
    """Return instructions and cycles for each amount of work."""
    portable = measured(core, count // 4, 15_000, frozenset({"c"}))
    both = joined(core, count // 8, 40_000)
    found = coefficients_of([*measured(core, count, 10_000), *portable, *both])
    found |= coefficients_of([*planes(core, count // 4, 20_000)])
    return found | coefficients_of([*stacks(core, count // 3, 30_000)])


def coefficients_of(
    samples: list[tuple[dict[str, float], int, float]],
) -> dict[str, list[float]]:
    """Return the coefficients that fit programs best, by least squares of relative errors.

    No coefficient is negative.
    """
    names = sorted({name for work, _, _ in samples for name in work})
    work = np.array([[one.get(name, 0.0) for name in names] for one, _, _ in samples])
    found = [_fitted(work, np.array([s[column] for s in samples], float)) for column in (1, 2)]
    return {
        name: [round(float(rates[number]), 4) for rates in found]
        for number, name in enumerate(names)
    }


def _fitted(work: NDArray[np.float64], total: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return coefficients that are not negative, by coordinate descent."""
    scaled = work / total[:, None]
    rates = np.zeros(work.shape[1])
    norms = (scaled**2).sum(axis=0)
    left = np.ones(len(total))
    for _ in range(20_000):
        for column in np.flatnonzero(norms):
            step = scaled[:, column] @ left / norms[column]
            changed = max(rates[column] + step, 0.0)
            left -= (changed - rates[column]) * scaled[:, column]
            rates[column] = changed
    return rates


def planned(graph: StepGraph, core: str) -> Plan:
    """Return the plan whose cost is predicted: each layer as a whole, all of them in L1."""
    profile = Profile("measured", CORES[core], 1 << 28, _WHOLE >> 1, dma=3)
    wish = Wish(schemes=SCHEMES["resident"])
    return best_plan(graph, profile, profile.l1, wish)


def compared(core: str, names: list[str]) -> bool:
    """Print predicted and counted instructions; tell whether all are near."""
    print("| network | core | million instructions | predicted | error | cycles' error |")
    print("|---|---|---|---|---|---|")
    good = True
    for deployed in DEPLOYED:
        if names and deployed.file not in names:
            continue
        with tempfile.TemporaryDirectory() as folder:
            network = network_of(deployed, Path(folder))
        made = planned(fuse(lower(network)), core)
        guess = predicted(total_work([task.step for task in made.layers], made.kernels), core)
        assert guess is not None
        instructions, cycles = counted(made, network)
        errors = guess.instructions / instructions - 1, guess.cycles / cycles - 1
        good &= abs(errors[0]) <= _LIMIT
        print(
            f"| {deployed.file} | {core} | {instructions / 1e6:.2f} | "
            f"{guess.instructions / 1e6:.2f} | {errors[0]:+.1%} | {errors[1]:+.1%} |",
            flush=True,
        )
    return good


def main() -> int:
    """Calibrate if asked, then compare; the exit status is 1 if an error is above 15 %."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("networks", nargs="*", help="files without .yaml (default: all)")
    parser.add_argument("--cores", nargs="+", choices=[*ARCHITECTURES], default=["cortex-m4"])
    parser.add_argument("--calibrate", type=int, metavar="PROGRAMS", help="random programs")
    args = parser.parse_args()
    os.environ.setdefault(PREFERENCE, "zig")
    if args.calibrate:
        content = json.loads(FILE.read_text()) if FILE.is_file() else {}
        content |= {core: calibrate(core, args.calibrate) for core in args.cores}
        FILE.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n")
    results = [compared(core, args.networks) for core in args.cores]
    return int(not all(results))


if __name__ == "__main__":
    sys.exit(main())
