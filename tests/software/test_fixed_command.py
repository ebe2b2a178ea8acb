"""quantize.py --device FIXED: from a checkpoint to a container, and what is refused."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from ai8xtools.commands.targets import main
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.quantization.fixed import Division, Rule, summarize
from ai8xtools.quantization.fixed.length import choose_lengths
from ai8xtools.quantization.fixed.network import FixedRules, fix_network
from ai8xtools.quantization.lowbit import SIGNED
from ai8xtools.quantization.q15.graph import Graph, GraphBuilder
from ai8xtools.software.container import unpack, verify_vectors
from ai8xtools.software.container.execute import run_all
from ai8xtools.software.container.from_fixed import FixedLowering, fixed_input
from ai8xtools.software.container.pack import pack
from ai8xtools.software.container.records import Element, Op
from tests.conftest import ROOT

RANDOM = np.random.default_rng(11)
DIGITS = str(ROOT / "trained/digits-ai85digitsnet-qat8.pth.tar")


def graph() -> Graph:
    """A network with every kind of step."""
    builder = GraphBuilder((3, 8, 7))
    normal = RANDOM.normal
    one = builder.convolution("one", 0, normal(0, 0.3, (4, 3, 3, 3)), normal(0, 1, 4),
                              padding=(1, 1))  # fmt: skip
    one = builder.clip("relu", one, 0.0, np.inf)
    two = builder.convolution("two", one, normal(0, 2.0, (4, 1, 3, 3)), None, padding=(1, 1),
                              groups=4)  # fmt: skip
    both = builder.add("sum", [one, two])
    joined = builder.concat("both", [both, one])
    pooled = builder.pool("max", joined, False, (2, 2), (2, 2))
    mean = builder.pool("mean", pooled, True, (2, 1), (2, 1))
    return builder.finished(builder.linear("full", mean, normal(0, 0.1, (5, 48)), normal(0, 9, 5)))


def rules(bits: int | None = None, division: Division = Division.POWER_OF_TWO) -> FixedRules:
    return FixedRules(bits, 35.0, division, Rule(), Rule())


@pytest.mark.parametrize("division", Division)
@pytest.mark.parametrize(("bits", "error"), [(None, 0.02), (16, 0.002), (8, 0.2), (4, 0.6)])
def test_results_are_close_to_floating_point(
    bits: int | None, error: float, division: Division
) -> None:
    from ai8xtools.quantization.q15.floating import compute

    network = graph()
    samples = RANDOM.normal(0, 1, (6, 3, 8, 7))
    maps = compute(network, samples)
    ranges = [summarize(one) if one.size else None for one in maps]
    made = fix_network(network, ranges, rules(bits, division))
    lowering = FixedLowering(made)
    container = unpack(pack(lowering.container()))
    assert {container.tensors[0].type} == {Element.INT8 if bits in (4, 8) else Element.INT16}
    exact = maps[network.output]
    for sample, wanted in zip(samples, exact, strict=True):
        tensors = run_all(container, fixed_input(made, sample[None])[0])
        found = tensors[container.layers[-1].output].transpose(2, 0, 1)
        values = np.ldexp(found, -made.fractions[network.output])
        assert np.abs(values - wanted).max() < error * np.abs(exact).max()
    assert Op.COPY not in {layer.op for layer in container.layers}


def test_digits_become_a_container(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "digits.nnb"
    line = [DIGITS, str(file), "--device", "FIXED", "--calib", "digits",
            "--calibration-samples", "32", "--report-samples", "4"]  # fmt: skip
    assert main("quantize.py", line) == 0
    told = capsys.readouterr().out
    assert "conv1" in told and "of 4 samples" in told
    container = unpack(file.read_bytes())
    assert verify_vectors(container) == 1
    assert (
        main("quantize.py", [*line, "--div", "int", "--bits", "16", "--data-range", "sigma", "8"])
        == 0
    )
    wide = unpack(file.read_bytes())
    assert all(wide.tensors[layer.weights].type == Element.INT16 for layer in wide.layers
               if layer.op in (Op.CONV, Op.FC))  # fmt: skip
    before = file.read_bytes()
    with pytest.raises(InputError) as refused:
        main("quantize.py", [*line, "--flash", "1K"])
    assert refused.value.code == "E713" and file.read_bytes() == before


def test_four_bits_where_they_reach_the_ratio(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "digits.nnb"
    line = [DIGITS, str(file), "--device", "FIXED", "--calib", "digits",
            "--calibration-samples", "32", "--report-samples", "4", "--few-bits"]  # fmt: skip
    assert main("quantize.py", [*line, "--sqnr", "14.4"]) == 0
    assert "fewer bits from 14.40 dB on" in capsys.readouterr().out
    container = unpack(file.read_bytes())
    types = {container.tensors[one.weights].type for one in container.layers if one.constants}
    assert types == {Element.PACKED, Element.INT8}
    assert verify_vectors(container) == 1
    assert main("quantize.py", [*line, "--flash", "12K"]) == 0
    assert len(file.read_bytes()) < 14 << 10
    with pytest.raises(SystemExit):
        main("quantize.py", [*line, "--bits", "8"])


def test_lengths_with_four_bits() -> None:
    few = {4: [20.0, 10.0]}

    def bits(threshold: float, budget: int | None = None) -> tuple[int, ...]:
        return choose_lengths([40.0, 30.0], [100, 100], threshold, budget, few).bits

    assert bits(35) == (8, 16)
    assert bits(35, 200) == (8, 8)
    assert bits(35, 150) == (4, 8)
    assert bits(35, 100) == (4, 4)
    assert not choose_lengths([40.0], [100], 35, 49, {4: [20.0]}).fits


def test_the_fewest_bits_that_reach_the_ratio_are_taken() -> None:
    few = {4: [20.0, 10.0], 1: [1.0, math.inf], 2: [8.0, 0.0]}

    def bits(threshold: float, budget: int | None = None) -> tuple[int, ...]:
        return choose_lengths([40.0, 30.0], [80, 80], threshold, budget, few).bits

    assert bits(35) == (8, 1) and bits(9) == (4, 1) and bits(5) == (2, 1)
    assert bits(35, 30) == (2, 1) and bits(35, 20) == (1, 1)
    assert not choose_lengths([40.0, 30.0], [80, 80], 35, 19, few).fits


@pytest.mark.parametrize("bits", ["1", "2"])
def test_one_and_two_bits_are_stored_as_such(
    bits: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "digits.nnb"
    line = [DIGITS, str(file), "--device", "FIXED", "--calib", "digits", "--calibration-samples",
            "32", "--report-samples", "4", "--bits", bits]  # fmt: skip
    assert main("quantize.py", line) == 0
    container = unpack(file.read_bytes())
    weights = [container.tensors[one.weights] for one in container.layers if one.constants]
    assert {one.encoding for one in weights} == {SIGNED[int(bits)].identifier}
    assert all(8 * one.size_bytes < int(bits) * one.elements + 32 * one.count for one in weights)
    assert verify_vectors(container) == 1


def test_pooling_with_padding_is_stored() -> None:
    builder = GraphBuilder((2, 5, 5))
    made = builder.pool("mean", 0, True, (3, 3), (2, 2), (1, 1))
    network = builder.finished(builder.linear("full", made, np.ones((1, 18)), None))
    lowering = FixedLowering(fix_network(network, [summarize([1.0])] * 3, rules()))
    assert unpack(pack(lowering.container())).layers[0].pad == (1, 1)


def test_limits_that_no_format_has_are_refused() -> None:
    builder = GraphBuilder((1, 2, 2))
    made = builder.convolution("one", 0, np.ones((1, 1, 1, 1)), None)
    network = builder.finished(builder.clip("ReLU6", made, 0.0, 6.0))
    with pytest.raises(InputError, match="ReLU6") as refused:
        fix_network(network, [summarize([1.0])] * 3, rules())
    assert refused.value.code == "E924"


def test_steps_without_a_layer_are_refused_by_name() -> None:
    builder = GraphBuilder((1, 4, 4))
    one = builder.convolution("spread", 0, np.ones((1, 1, 2, 2)), None, spread=(2, 2))
    two = builder.pool("ceil", one, False, (2, 2), (2, 2), ceil=True)
    three = builder.multiply("square", [builder.table("sigmoid", two, np.tanh), two])
    network = builder.finished(builder.clip("relu", three, 0.0, math.inf))
    with pytest.raises(InputError, match="layer for spread, ceil, sigmoid, square$") as refused:
        fix_network(network, [summarize([1.0])] * len(network.shapes), rules())
    assert refused.value.code == "E924"


def test_wrong_usage_ends_with_status_2(tmp_path: Path) -> None:
    base = [DIGITS, str(tmp_path / "a.nnb"), "--device", "FIXED", "--calib", "digits"]
    for words in (["--data-range", "sigma"], ["--data-range", "percentile", "99"],
                  ["--weight-range", "sigma", "x"], ["--sqnr", "nan"],
                  ["--bits", "12"]):  # fmt: skip
        with pytest.raises(SystemExit) as ended:
            main("quantize.py", [*base, *words])
        assert ended.value.code == 2
