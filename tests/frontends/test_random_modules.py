"""Random networks of torch modules, imported, quantized and computed, against torch itself.

`make properties` tries many more.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import ai8x
from ai8xtools.checkpoint import Checkpoint
from ai8xtools.commands.q15.network import graph_of
from ai8xtools.diagnostics import DiagnosticError, Severity
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.frontends.modules.door import read_module
from ai8xtools.frontends.modules.networks import describe
from ai8xtools.frontends.modules.plain.network import import_network
from ai8xtools.frontends.modules.plain.ranges import beyond_range, fit_ranges
from ai8xtools.quantization import Calibration, QuantizationOptions, quantize_checkpoint
from ai8xtools.quantization.calibration import calibrate
from ai8xtools.quantization.q15.execute import execute, quantize_input
from ai8xtools.quantization.q15.floating import compute, measure
from ai8xtools.quantization.q15.formats import Guard
from ai8xtools.quantization.q15.network import quantize_network
from ai8xtools.software.cores import CORES
from ai8xtools.software.fuse import fuse
from ai8xtools.software.lower import lower
from ai8xtools.software.plan.planner import plan
from ai8xtools.software.plan.schemes import Scheme
from ai8xtools.synthesis.configuration import configuration
from ai8xtools.synthesis.options import EncodeOptions, ResolveOptions
from ai8xtools.synthesis.parse import Described
from ai8xtools.synthesis.pipeline import synthesize
from ai8xtools.synthesis.simulate import simulate
from ai8xtools.synthesis.understand import understand
from ai8xtools.synthesis.words import phase_words
from device import MAX78000, MAX78002, Chip
from tests.frontends.random_modules import Drawing, Integers
from tests.software.oracle.whole import Executor

GROUP, SAMPLES = 10, 16
FIRSTS = range(0, GROUP * round(3 * float(os.environ.get("AI8X_PROPERTIES", "1"))), GROUP)
CHIPS: tuple[Chip, ...] = (MAX78000, MAX78002)
MOST_ERROR, MOST_ERROR_Q15 = 0.1, 0.03
WIDTHS = (8, 8, 8, 4, 2, 1, "mixed")


@pytest.fixture(autouse=True)
def device_as_before() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # maps are small
    yield
    torch.set_num_threads(threads)
    ai8x.set_device(85, simulate=False, round_avg=False, verbose=False)


class Case:
    """A network that was drawn, imported and quantized for a chip."""

    def __init__(self, seed: int) -> None:
        self.chip = CHIPS[seed % 2]
        drawn = Drawing(seed, depthwise=self.chip.has_depthwise)
        self.plain, self.shape = drawn.network, drawn.shape
        random = np.random.default_rng(seed)
        self.data = torch.from_numpy(random.integers(-128, 128, (SAMPLES, *self.shape)))
        self.samples = self.data.float() / 128
        self.trained = trained = self._imported(simulate=False)
        self.factors = fit_ranges(trained, [self.samples])
        self.beyond = beyond_range(trained, [self.samples])
        state = {name: tensor.numpy().copy() for name, tensor in trained.state_dict().items()}
        self.bits = self._bits(random, list(self.factors))
        choices = calibrate(trained, self._imported(simulate=True), [self.samples], self.bits)
        chosen = Calibration({choice.name: choice.integers for choice in choices})
        floating = Checkpoint({"state_dict": state, "arch": "net", "epoch": 0, "extras": {}})
        self.checkpoint = quantize_checkpoint(
            floating, QuantizationOptions(calibration=chosen)
        ).checkpoint
        wide = [name for name in self.factors if trained.get_submodule(name).wide]
        self.wanted = Integers(self.plain, self.checkpoint.state_dict, frozenset(wide)).run(
            self.data
        )
        self.wide = bool(wide)

    def _imported(self, simulate: bool) -> Any:
        """Return the network of ai8x layers for one of the two arithmetics."""
        ai8x.set_device(self.chip.die, simulate, round_avg=False, verbose=False)
        network = import_network(self.plain, self.samples[:1], "net", {}).network
        ai8x.fuse_bn_layers(network)
        return network

    def _bits(self, random: np.random.Generator, names: list[str]) -> dict[str, int]:
        width = WIDTHS[int(random.integers(len(WIDTHS)))]
        if isinstance(width, int):
            return dict.fromkeys(names, width)
        return {name: int(random.choice([1, 2, 4, 8])) for name in names}

    def is_precise(self) -> bool:
        """Whether all weights have 8 bits, and all results fit the range of the chip."""
        return set(self.bits.values()) == {8} and not self.beyond

    def error(self) -> float:
        """Return the error of the results of all samples, relative to what torch computes."""
        with torch.no_grad():
            real = self.plain(self.samples).double().numpy()
        name, factor = list(self.factors.items())[-1]
        state = self.checkpoint.state_dict
        shift = int(state[f"{name}.output_shift"].item())
        steps = 2.0 ** (7 + self.bits[name] - 1 - shift) if self.wide else 128
        difference = self.wanted / (steps * factor) - real
        return float(np.sqrt((difference**2).sum() / max((real**2).sum(), 1e-12)))

    def described(self) -> Described:
        """Return the description, as ai8xize.py --model makes it."""
        ai8x.set_device(self.chip.die, simulate=False, round_avg=False, verbose=False)
        found = describe(
            self.trained, self.samples[:1], self.chip, name="net", arch="net", dataset="d"
        )
        return Described(found.text, found.model, found.nodes)

    def options(self, sample: Tensor) -> ResolveOptions:
        maps = sample.numpy().astype(np.int64).reshape((*self.shape, 1)[:3])
        return ResolveOptions(checkpoint_file="net", tensors=self.checkpoint, sample=maps)


def judge(seed: int) -> tuple[str, list[str]]:
    """Return what became of a network, and what is wrong with it."""
    try:
        case = Case(seed)
        source = case.described()
    except InputError as refusal:
        return f"{refusal.code} {refusal.message}", []
    wrong = []
    kind = "taken"
    try:
        made = synthesize(source, case.chip, case.options(case.data[0]), EncodeOptions())
        if not np.array_equal(
            _results(made.activations.outputs, made.network), case.wanted[0].ravel()
        ):
            wrong.append(f"{case.chip.name} computes something else than torch")
        text = configuration(made.network, made.placement.layout, "places")
        again = synthesize(
            Described(text, "net", ("node",) * len(made.network.layers)),
            case.chip,
            case.options(case.data[0]),
            EncodeOptions(),
        )
        if phase_words(again.program) != phase_words(made.program):
            wrong.append("the complete description gives other words")
    except DiagnosticError as refusal:
        kind = "; ".join(str(d) for d in refusal.diagnostics if d.severity is Severity.ERROR)
    if case.is_precise() and case.error() > MOST_ERROR:
        wrong.append(f"integers are off by {case.error():.3f} of the result")
    network, _, _ = understand(source, None, case.options(case.data[0]))
    for data, wanted in zip(case.data[:2], case.wanted[:2], strict=True):
        found = simulate(replace(network, sample=case.options(data).sample), average_rounding=False)
        if not np.array_equal(_results(found.outputs, network), wanted.ravel()):
            wrong.append("the description for MCU computes something else than torch")
    if seed % 5 == 0:  # the rest of the way is tried with all kinds of networks elsewhere
        program = plan(
            fuse(lower(network, average_rounding=False)), CORES["cortex-m4"], Scheme.ROWS
        )
        (result,) = Executor(program).run(network.sample)
        if not np.array_equal(result.ravel(), case.wanted[0].ravel()):
            wrong.append("the program for MCU computes something else than torch")
    return kind, wrong


def judge_q15(seed: int) -> list[str]:
    """Return what is wrong with a network of 16 bits."""
    drawn = Drawing(seed, depthwise=True)
    network, random = drawn.network, np.random.default_rng(seed)
    samples = torch.from_numpy(random.uniform(-1, 1, (SAMPLES, *drawn.shape))).float()
    graph, _ = graph_of(read_module(network, samples[:1]), "net")
    with torch.no_grad():
        real = network.double()(samples.double()).numpy()
    maps = samples.double().numpy().reshape((SAMPLES, *drawn.shape, 1)[:4])
    wrong = []
    if not np.allclose(compute(graph, maps)[graph.output].reshape(real.shape), real, atol=1e-9):
        wrong.append("the graph is not the network")
    ranges = measure(graph, [maps])
    made = quantize_network(graph, ranges.percentile, ranges.largest, 16, Guard.WORST)
    found = execute(made, quantize_input(made, maps))[graph.output].transpose(0, 3, 1, 2)
    difference = found.reshape(real.shape) / 2.0 ** made.fractions[graph.output] - real
    error = float(np.sqrt((difference**2).sum() / max((real**2).sum(), 1e-12)))
    if error > MOST_ERROR_Q15:
        wrong.append(f"16 bits are off by {error:.4f} of the result")
    return wrong


def _results(outputs: Any, network: Any) -> Any:
    (last,) = network.outputs()
    return outputs[last.index].ravel()


@pytest.mark.parametrize("first", FIRSTS)
def test_random_networks_compute_what_torch_does(first: int) -> None:
    """On the accelerator and without it, to the last bit; few are refused."""
    found = {seed: judge(seed) for seed in range(first, first + GROUP)}
    assert {seed: wrong for seed, (_, wrong) in found.items() if wrong} == {}
    refused = [kind for kind, _ in found.values() if kind != "taken"]
    assert len(refused) < GROUP // 2, refused


@pytest.mark.parametrize("first", FIRSTS)
def test_random_networks_of_16_bits_compute_what_torch_does(first: int) -> None:
    found = {seed: judge_q15(seed) for seed in range(first, first + GROUP)}
    assert {seed: wrong for seed, wrong in found.items() if wrong} == {}


def test_networks_as_strangers_write_them_compute_what_torch_does() -> None:
    """`make measure WHAT=doors-fuzz` tries more. What the proof refuses (E668) is a defect."""
    from tests.frontends import wild_networks

    found = [wild_networks.judge(seed) for seed in (2, 57, *range(1001, 1009))]
    verdicts = [verdict.partition(":")[0] for one in found for verdict in one.values()]
    assert {one for one in verdicts if one != "right"} <= {"refused E670"}
    assert verdicts.count("right") > len(verdicts) // 2
