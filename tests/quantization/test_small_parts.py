"""Conditions of refusals and warnings one at a time, limits at their values, small problems."""

from __future__ import annotations

import copy
import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ai8xtools.checkpoint import Checkpoint
from ai8xtools.commands.quantize.arrays import read_samples
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.quantization import QuantizationOptions, doubts, foreign, formats, fuse_batchnorm
from ai8xtools.quantization.fixed import (
    Division,
    Rule,
    divided,
    divisor,
    fixed_layer,
    weight_magnitude,
)
from ai8xtools.quantization.fixed.length import weight_sqnr_db
from ai8xtools.quantization.fixed.network import FixedRules, fix_network
from ai8xtools.quantization.fixed.numbers import q_format
from ai8xtools.quantization.fixed.ranges import Summary, summarize
from ai8xtools.quantization.options import LARGEST, Calibration, ClipMethod, check_bits
from ai8xtools.quantization.q15.formats import Guard
from ai8xtools.quantization.q15.graph import Graph, GraphBuilder
from ai8xtools.quantization.q15.network import quantize_network

RANDOM = np.random.default_rng
ONES, ZEROS = np.ones((2, 2), np.float32), np.zeros((2, 2), np.float32)


def refused(code: str, what: Any) -> bool:
    """Whether something is refused, and then with this code."""
    try:
        what()
    except InputError as exc:
        assert exc.code == code
        return True
    return False


# -- samples in files ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "names", [("x",), ("x_train", "y_train"), ("other",), ("x", "y", "groups")]
)
def test_samples_of_an_archive_need_no_labels(names: tuple[str, ...], tmp_path: Path) -> None:
    samples = np.arange(24.0).reshape(2, 3, 4)
    arrays = [samples, *([ONES] * len(names))]
    np.savez(tmp_path / "a.npz", **dict(zip(names, arrays, strict=False)))
    assert np.array_equal(read_samples(str(tmp_path / "a.npz")), samples)


@pytest.mark.parametrize("names", [(), ("a", "b"), ("x", "x_train")])
def test_an_archive_must_say_which_array_holds_samples(
    names: tuple[str, ...], tmp_path: Path
) -> None:
    np.savez(tmp_path / "a.npz", **dict.fromkeys(names, ONES))
    assert refused("E740", lambda: read_samples(str(tmp_path / "a.npz")))


# -- networks of integers in files -------------------------------------------------------------


def stored_network() -> Checkpoint:
    """Return the file of a network with every kind of step."""
    from ai8xtools.quantization.q15.file import StoredNetwork, to_checkpoint

    random = RANDOM(5)
    made = GraphBuilder((2, 4, 3))
    first = made.convolution("a", 0, random.normal(0, 0.3, (4, 2, 3, 3)), None, padding=(1, 1))
    deep = made.convolution("d", first, random.normal(0, 0.5, (4, 1, 1, 1)), None, groups=4)
    both = made.concat("j", [made.add("s", [first, deep]), made.clip("c", deep, 0.0, math.inf)])
    small = made.pool("p", both, True, (2, 2), (2, 1), (1, 0))
    graph = made.finished(made.linear("f", small, random.normal(0, 0.2, (3, 8 * 3 * 2)), None))
    ranges = [2.0] * len(graph.shapes)
    network = quantize_network(graph, ranges, ranges, 8, Guard.WORST)
    return to_checkpoint(StoredNetwork(network, np.ones((4, 3, 2), np.int64), False), "net")


def test_every_number_of_a_stored_network_is_checked() -> None:
    """What is changed is the first step of a kind, an entry of the plan, or a tensor."""
    from ai8xtools.quantization.q15.file import from_checkpoint

    good = stored_network()
    from_checkpoint(good, "file")
    steps = {step["name"]: n for n, step in enumerate(good.network["steps"])}
    weighted = good.network["steps"][steps["a"]]
    layer = weighted["layer"]
    most = good.network["steps"][steps["d"]]["formats"][0] + 31
    wrong: dict[str, list[Any]] = {
        "version": [0, 3, None], "bits": [True, 4, 0, 32, None, "8"], "guard": ["worse", None, ""],
        "input": [[2, 4], [2, 4, 0], [2, 4, 3, 1], [True, 4, 3], [2, 65536, 3], (2, 4, 3), 5,
                  [2.0, 4, 3]],
        "steps": [[], None, [5], {}], "fractions": [[], None, [True] * 9, [1025] * 9, [-1025] * 9,
                                                    good.network["fractions"][:-1]],
        "output": [None, 99, True, -1, 0], "column_major": [0, None, "no"],
        "a.name": [None, 5, "a\nb"], "a.kind": ["conv", None], "a.sources": [[], None, [0, 0], [99],
                                                                           [True], [-1]],
        "a.target": [0, None, True, -1, "1"], "a.groups": [0, 3, None, True, 2, 4],
        "a.stride": [[0, 1], [1], [1, 1, 1], None, [65537, 1], [True, 1]],
        "a.padding": [[-1, 0], [0], None, [1, 65537]], "a.layer": ["other", None],
        "a.formats": [[1, 2], None, [1025, 0, 0], [-1025, 0, 0], [most, 0, 0], [-40, 0, 0]],
        "d.groups": [1, 2], "s.sources": [[1], [0, 1]], "j.sources": [[4], [0, 1]],
        "p.window": [[0, 2], [5, 9], None, [1, 2], [2]], "p.padding": [[2, 0], [0, 2]],
        "p.average": [None, 1], "p.stride": [[0, 1]], "c.low": [None, 0],
        "c.high": [None, 1, -1.0], "a.linear": [True],
    }  # fmt: skip
    for key, values in wrong.items():
        name, _, field = key.rpartition(".")
        for value in values:
            plan = copy.deepcopy(good.network)
            place = plan["steps"][steps[name]] if name else plan
            place[field] = value
            bad = good.with_entries(qformat=plan)
            assert refused("E744", lambda b=bad: from_checkpoint(b, "file")), (key, value)
    state, sample = good.state_dict, good.entries["sample"]
    kernels, bias = state[f"{layer}.weight"], state[f"{layer}.bias"]
    tensors: list[dict[str, Any]] = [
        {f"{layer}.weight": kernels[0]}, {f"{layer}.weight": kernels.astype(np.float32)},
        {f"{layer}.weight": kernels[:0]}, {f"{layer}.weight": kernels[:, :1]},
        {f"{layer}.bias": bias[:-1]}, {f"{layer}.bias": bias.astype(np.uint8)},
        {f"{layer}.bias": np.full_like(bias, 128, np.int16)},
        {f"{layer}.bias": np.full_like(bias, -129, np.int16)},
    ]  # fmt: skip
    for change in tensors:
        bad = good.with_entries(state_dict={**state, **change})
        assert refused("E744", lambda b=bad: from_checkpoint(b, "file")), change
    for other in (sample[:-1], sample[0], sample.astype(np.float32), None, [1]):
        bad = good.with_entries(sample=other)
        assert refused("E744", lambda b=bad: from_checkpoint(b, "file"))
    for value in (-128, 127):
        edge = good.with_entries(sample=np.full_like(sample, value))
        assert from_checkpoint(edge, "file").sample.min() == value
    assert refused("E744", lambda: from_checkpoint(good.with_entries(qformat=[]), "file"))


def test_maps_that_no_step_makes_have_no_fraction() -> None:
    made = GraphBuilder((1, 2, 2))
    made.clip("unused", 0, -1.0, 1.0)
    graph = made.finished(made.pool("p", 0, False, (2, 2), (1, 1)))
    assert quantize_network(graph, [1.0] * 3, [1.0] * 3, 8, Guard.NONE).fractions[2] == 7
    assert [len(graph.users(tensor)) for tensor in range(3)] == [1, 0, 0]


def test_samples_have_numbers_that_are_not_all_zero() -> None:
    pytest.importorskip("torch")
    from ai8xtools.quantization.q15.floating import check_samples, measure

    some, none = np.ones((2, 1, 2, 2)), np.zeros((2, 1, 2, 2))
    check_samples([none, some])
    for wrong, code in (([], "E606"), ([none[:0]], "E606"), ([none], "E740"), ([none] * 2, "E740")):
        assert refused(code, lambda w=wrong: check_samples(w))
    for value in (math.nan, math.inf):
        bad = some.copy()
        bad[1, 0, 1, 1] = value
        assert refused("E740", lambda b=bad: check_samples([some, b]))
    graph = GraphBuilder((1, 2, 2)).finished(0)
    values = np.arange(8.0).reshape(2, 1, 2, 2)
    assert measure(graph, [values[:1], values[1:]], 99.9).percentile[0] == np.percentile(
        np.arange(8.0), 99.9
    )
    for percentile in (100.0, 150.0):
        found = measure(graph, [values], percentile)
        assert found.percentile == found.largest == (7.0,)


def test_percentiles_of_large_maps_are_those_of_evenly_spaced_values(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("torch")
    from ai8xtools.quantization.q15 import floating

    monkeypatch.setattr(floating, "_KEPT_VALUES", 10)
    values = RANDOM(1).normal(0, 1, (3, 1, 3, 4))
    graph = GraphBuilder((1, 3, 4)).finished(0)
    found = floating.measure(graph, [values[:1], values[1:]], 75.0)
    flat = [np.abs(part).ravel()[:: math.ceil(3 * 12 / 10)] for part in (values[:1], values[1:])]
    assert found.percentile[0] == np.percentile(np.concatenate(flat), 75.0)


# -- what forbids quantizing, what makes it doubtful -------------------------------------------


def checkpoint(state: dict[str, Any], **entries: Any) -> Checkpoint:
    arrays = {name: np.asarray(value) for name, value in state.items()}
    return Checkpoint({"state_dict": arrays, **entries})


def test_layers_that_are_lost_are_those_whose_weights_are_all_zero() -> None:
    before = {"a.weight": ONES, "b.weight": ZEROS, "c.weight": -3 * ONES, "d.bias": ZEROS}
    after = {**before, "c.weight": ZEROS, "a.bias": ZEROS}
    found = doubts.lost_layers(before, after)
    assert [line.partition(":")[0] for line in found] == ["b.weight", "c.weight"]
    assert "largest was 3;" in found[1]
    assert "largest" not in found[0]


@pytest.mark.parametrize("noted", [False, True])
@pytest.mark.parametrize("values", [[1.0, 2.0], [1.0, 0.5], []])
def test_quantized_files_are_those_of_whole_numbers_with_a_note(noted: bool, values: Any) -> None:
    made = checkpoint({"a.weight": values, "a.bias": [0.5]},
                      extras={"clipping_method": "MAX"} if noted else {})  # fmt: skip
    whole = 0.5 not in values
    assert refused("E707", lambda: doubts.refuse_quantized(made)) == (noted and whole)
    said = any("already quantized" in line for line in
               doubts.warnings_of(made, QuantizationOptions()))  # fmt: skip
    assert said == (values == [1.0, 2.0])
    small = checkpoint({"a.weight": [1.0, -1.0, 0.0]}, extras={})
    assert doubts.warnings_of(small, QuantizationOptions()) == []


@pytest.mark.parametrize("what", ["activation_threshold", "final_scale"])
@pytest.mark.parametrize("value", [0.0, 1.0, -2.0])
def test_methods_that_leave_out_ranges_are_refused_where_there_are_some(
    what: str, value: float
) -> None:
    state = {"a.b.op.weight": ONES, f"a.b.{what}": np.array(value)}
    calibrated = QuantizationOptions(calibration=Calibration({}))
    for options in (QuantizationOptions(clip_method=ClipMethod.MAX), calibrated):
        found = refused("E711", lambda o=options: doubts.refuse_other_ranges(state, o))
        assert found == bool(value)
    doubts.refuse_other_ranges(state, QuantizationOptions())


def test_each_doubt_is_told_alone() -> None:
    plain = {"a.op.weight": 0.3 * ONES, "a.output_shift": [0.0]}
    later = {**plain, "a.activation_threshold": 0.0, "a.final_scale": 0.0}
    maximum = QuantizationOptions(clip_method=ClipMethod.MAX)

    def said(state: Any, options: Any = None, **entries: Any) -> int:
        made = checkpoint(state, **entries)
        return len(doubts.warnings_of(made, options or QuantizationOptions()))

    assert said(plain) == 1 and said(plain, extras={}) == said(plain, maximum, extras={}) == 0
    for bits, wanted in ((0.0, 0), (8.0, 1)):
        trained = {"b.weight_bits": [0.0], **plain, "a.weight_bits": [bits]}
        assert said(trained, maximum, extras={}) == wanted
        assert said(trained, extras={}) == 0
    for clamp, wanted in (([0.0], 1), ([1.0], 0)):
        assert said({**later, "a.clamp_activation": clamp}, extras={}) == wanted
        assert said({**plain, "a.clamp_activation": clamp}, extras={}) == 0
    assert said({**plain, "a.bn.running_mean": [0.0]}, extras={}) == 1
    assert said({**plain, "a.new": [0.0]}, extras={}) == 1


# -- tensors of other networks -----------------------------------------------------------------


def kinds(*names: str, **shapes: int) -> list[str]:
    state = {name: np.ones((2,) * shapes.get(name.replace(".", "_"), 2)) for name in names}
    return [name for name, _ in foreign.foreign_tensors(state)]


def test_operators_and_bookkeeping_make_a_layer_known() -> None:
    for name in ("op", "conv2d", "conv1d", "linear", "bn"):
        assert kinds(f"a.{name}.weight", f"deep.down.{name}.weight") == []
    for note in ("output_shift", "weight_bits", "bias_bits", "quantize_activation",
                 "shift_quantile"):  # fmt: skip
        assert kinds("a.weight", "b.weight", f"a.{note}") == ["b.weight"]
        assert kinds("a.b.weight", "c.weight", f"a.b.{note}", f"a.{note}") == [
            "a.b.weight", "c.weight",
        ]  # fmt: skip
    for old in ("conv2d", "conv1d", "linear"):  # of 2020, with software layers beside
        assert kinds(f"a.{old}.weight", "fc.weight", "out.weight") == []
        assert kinds(f"a.{old}.weight", "fc.weight", fc_weight=3) == ["fc.weight"]
        assert kinds(f"a.{old}.weight", "fc.weight", "a.output_shift") == ["fc.weight"]
        assert kinds(f"{old}.b.weight", "fc.weight") == [f"{old}.b.weight", "fc.weight"]
    assert kinds("a.op.weight", "fc.weight") == ["fc.weight"]
    assert kinds("fc.weight") == kinds("fc.bias", "weight", "fc.weights") == []
    assert kinds("fc.weight", fc_weight=3) == ["fc.weight"]


def test_one_dimensional_weights_belong_to_a_normalization_or_are_foreign() -> None:
    assert kinds("n.weight", n_weight=1) == ["n.weight"]
    assert kinds("n.weight", "n.running_mean", n_weight=1) == ["n.running_mean"]
    assert kinds("x.bn.weight", "x.bn.running_mean", x_bn_weight=1) == []
    assert kinds("bn.x.running_mean", "running_mean") == ["bn.x.running_mean", "running_mean"]
    for name in ("weight_ih_l0", "weight_hh", "in_proj_bias"):
        assert kinds(name, f"a.b.{name}", f"a.{name}.b") == [name, f"a.b.{name}"]


@pytest.mark.parametrize("count", [0, 1, 8, 9, 11])
def test_eight_foreign_tensors_are_named_and_the_rest_counted(count: int) -> None:
    state = {f"n{n}.weight": np.ones((2, 2, 2)) for n in range(count)}
    try:
        foreign.refuse_foreign(checkpoint({"a.op.weight": ONES, **state}), "be quantized")
    except InputError as exc:
        assert exc.code == "E712"
        named = [n for n in range(count) if f"n{n}.weight (" in exc.message]
        assert named == [*range(min(count, 8))]
        assert (f"and {count - 8} more" in exc.message) == (count > 8)
        assert count
    else:
        assert not count


# -- batch normalization -----------------------------------------------------------------------


def test_fused_channels_are_those_of_their_definition() -> None:
    random = RANDOM(8)
    for shape, transposed, later, given in itertools.product(
        ((3, 2, 2), (2, 3, 2), (3, 3, 2), (3, 4)), (False, True), (False, True), range(8)
    ):
        if transposed and shape[1] != 3:
            continue
        state: dict[str, Any] = {"a.op.weight": random.normal(0, 1, shape),
                                 "a.bn.running_mean": random.normal(0, 1, 3),
                                 "a.bn.running_var": random.uniform(0.5, 2, 3),
                                 "a.bn2.weight": np.ones(3)}  # fmt: skip
        for bit, name in enumerate(("a.op.bias", "a.bn.weight", "a.bn.bias")):
            if given >> bit & 1:
                state[name] = random.normal(0, 1, 3)
        if later:
            state["b.activation_threshold"] = np.zeros(())
        found = fuse_batchnorm(checkpoint(state, arch="old"), None, ["a"] if transposed else [])
        assert found.arch == "old"
        gamma, beta = state.get("a.bn.weight", 1.0), state.get("a.bn.bias", 0.0)
        factor = (1 if later else 0.25) / np.sqrt(state["a.bn.running_var"])
        along = [1] * len(shape)
        along[1 if transposed or shape[0] != 3 else 0] = 3
        weight = state["a.op.weight"] * (gamma * factor).reshape(along)
        bias = (state.get("a.op.bias", 0.0) - state["a.bn.running_mean"]) * gamma * factor
        bias = bias + beta * (1 if later else 0.25)
        assert np.allclose(found.state_dict["a.op.weight"], weight, rtol=1e-5, atol=1e-6)
        assert np.allclose(found.state_dict["a.op.bias"], bias, rtol=1e-5, atol=1e-6)
        left = {"a.op.weight", "a.op.bias", "a.bn2.weight"} | {n for n in state if n[0] == "b"}
        assert set(found.state_dict) == left


def test_variances_of_zero_and_results_that_are_no_numbers() -> None:
    def fused(**changes: Any) -> Any:
        state = {"a.op.weight": np.full((2, 1), 1e-9), "a.bn.running_mean": np.zeros(2),
                 "a.bn.running_var": np.zeros(2), **changes}  # fmt: skip
        return fuse_batchnorm(checkpoint(state), "net").state_dict["a.op.weight"]

    assert fused() == pytest.approx(np.full((2, 1), 2.5), rel=1e-4)
    for bad in ({"a.op.weight": np.full((2, 1), 1e30)}, {"a.op.bias": np.full(2, 1e30)},
                {"a.bn.running_var": np.array([1.0, -1e-30])}, {"a.bn.running_var": np.zeros(3)},
                {"a.op.weight": np.zeros((3, 3))}):  # fmt: skip
        assert refused("E706", lambda b=bad: fused(**b))


# -- options -----------------------------------------------------------------------------------


def test_options_have_their_ranges() -> None:
    for value in (-1.0, 0.0, 1e-30, 1.0, LARGEST, 2 * LARGEST, math.inf, math.nan):
        for name in ("scale", "stddev"):
            wrong = not 0 < value <= 2.0**60
            made = {name: value}
            assert refused("E516", lambda m=made: QuantizationOptions(**m)) == wrong
    for bits in (*range(-1, 18), 2.5):
        wrong = bits not in (1, 2, 4, 8)
        assert refused("E701", lambda b=bits: check_bits(b, "x")) == wrong
        assert refused("E701", lambda b=bits: QuantizationOptions(default_bits=b)) == wrong
        assert refused("E701", lambda b=bits: QuantizationOptions(layer_bits=(8, b))) == wrong
        assert wrong or check_bits(float(bits), "--x") == bits


def test_impossible_bits_are_told_of_an_option_or_of_what_a_file_holds() -> None:
    for where, option in (("--qat-weight-bits", "--qat-weight-bits"), ("a.weight_bits", None)):
        with pytest.raises(InputError) as caught:
            check_bits(3, where)
        assert caught.value.place == option
        assert (where in caught.value.message) == (option is None)


# -- fixed-point weights -----------------------------------------------------------------------


def test_divisors_are_the_least_that_hold_the_weights() -> None:
    assert divisor(0.0, Division.INTEGER) == divisor(0.0, Division.POWER_OF_TWO) == 1
    for magnitude in [2.0**e * f for e in range(-5, 6) for f in (1.0, 1.01, 1.99)]:
        wanted = min(2.0**e for e in range(-12, 12) if 2.0**e >= magnitude)
        assert divisor(magnitude, Division.POWER_OF_TWO) == wanted
        assert divisor(magnitude, Division.INTEGER) == min(
            n for n in range(1, 100) if n >= magnitude
        )
    for bits, by in itertools.product((1, 2, 4, 8, 16), (0.5, 1.0, 3.0)):
        for weight in np.arange(-40, 41) / 16:
            wanted = min(max(round(weight / by * 2 ** (bits - 1)), -(2 ** (bits - 1))),
                         2 ** (bits - 1) - 1)  # fmt: skip
            assert divided(weight, by, bits) == wanted


def test_ratio_of_weights_is_that_of_what_is_stored() -> None:
    weights = RANDOM(3).normal(0, 1, (4, 5))
    for bits, division, magnitude in itertools.product((2, 8), Division, (None, 0.7)):
        by = divisor(magnitude or float(np.abs(weights).max()), division)
        held = divided(weights, by, bits) * by / 2 ** (bits - 1)
        ratio = 10 * math.log10((weights**2).sum() / ((weights - held) ** 2).sum())
        assert weight_sqnr_db(weights, bits, division, magnitude) == pytest.approx(ratio)
    assert weight_sqnr_db(0 * weights, 8, Division.INTEGER) == math.inf


def test_magnitudes_of_weights_follow_their_rule() -> None:
    weights = RANDOM(4).normal(0, 1, (3, 7))
    magnitudes = np.abs(weights)
    assert weight_magnitude(weights, Rule()) == magnitudes.max()
    for number in (10.0, 99.0):
        found = weight_magnitude(weights, Rule("percentile", number))
        assert found == pytest.approx(np.percentile(magnitudes, number))
    deviation = math.sqrt(((magnitudes - magnitudes.mean()) ** 2).mean())
    for number in (1.0, 3.0):
        found = weight_magnitude(weights, Rule("sigma", number))
        assert found == pytest.approx(magnitudes.mean() + number * deviation)


def test_formats_hold_their_magnitude_with_the_fewest_integer_bits() -> None:
    for bits, magnitude in itertools.product((8, 16), [0.0, *(2.0**e * 1.5 for e in range(-9, 9))]):
        found = q_format(magnitude, bits)
        assert found.bits == bits == 1 + found.integer + found.fraction
        assert found.integer == min(n for n in range(20) if magnitude <= 2.0**n)


@pytest.mark.parametrize("division", Division)
def test_shifts_go_up_to_30_bits(division: Division) -> None:
    """Results are shifted right, biases left; a divisor below 1 adds its exponent to both."""
    for magnitude, fraction in itertools.product((1.0, 0.25, 2.0), range(-4, 31)):
        spare = 2 if magnitude == 0.25 and division is Division.POWER_OF_TWO else 0
        weights = np.full((1, 3), magnitude)
        for bias, shift in ((None, 7 + 10 - (10 - fraction)), (2.0 ** (fraction - 10 + 7), None)):
            some = None if bias is None else np.array([bias])
            held = 10 if bias is not None else 10 - fraction
            if shift is None:
                kb = min(7 - math.ceil(math.log2(bias)), 17) if bias else 17
                shift = max(17 - kb, 7)

            def made(w: Any = weights, b: Any = some, m: float = magnitude, k: int = held) -> Any:
                return fixed_layer(w, b, bits=8, division=division, magnitude=m, in_fraction=10,
                                   out_fraction=k)  # fmt: skip

            found = refused("E741", made)
            assert found == (max(shift, 0) + spare > 30)
            if not found:
                layer = made()
                assert (layer.bits, layer.data_bits, layer.spare) == (8, 8, spare)
                assert layer.by * 2**spare == layer.factor
                assert layer.out_shift == 17 - layer.out_fraction >= 0
                assert layer.bias_shift == 17 - layer.bias_fraction >= 0


def one_layer(clip: tuple[float, float] | None = None) -> Graph:
    made = GraphBuilder((1, 2, 2))
    last = made.convolution("a", 0, RANDOM(2).normal(0, 1, (4, 1, 2, 2)), None)
    if clip is not None:
        last = made.clip("c", last, *clip)
    return made.finished(last)


def test_limits_of_values_are_those_that_formats_saturate_at() -> None:
    high = [(math.inf, True), (1.0, True), (127 / 128, True), (3.0, False), (6.0, False)]
    for (limit, fits), low in itertools.product(high, (0.0, -math.inf, "same", -0.3)):
        graph = one_layer((-limit if low == "same" else low, limit))
        ranges: list[Summary | None] = [summarize([-1.0, 1.0])] * len(graph.shapes)
        rules = FixedRules(8, 30.0, Division.INTEGER, Rule(), Rule())
        found = refused("E924", lambda g=graph, r=ranges, by=rules: fix_network(g, r, by))
        assert found == (not fits or low == -0.3)
    graph = GraphBuilder((1, 2, 2))
    several = graph.finished(graph.clip("c", graph.pool("p", 0, True, (1, 1), (1, 1)), -3.0, 9.0))
    ranges = [summarize([1.0])] * 3
    assert refused("E924", lambda: fix_network(several, ranges, rules))


def test_widths_by_ratio_stay_within_the_budget() -> None:
    graph = one_layer()
    ranges: list[Summary | None] = [summarize([-1.0, 1.0])] * len(graph.shapes)
    for few, budget, bits in ((False, None, 16), (True, None, 16), (False, 31, 8), (True, 31, 8),
                              (True, 15, 4), (True, 7, 2), (True, 3, 1), (True, 1, None),
                              (False, 15, None)):  # fmt: skip
        rules = FixedRules(None, 1000.0, Division.INTEGER, Rule(), Rule(), budget, few)
        if bits is None:
            assert refused("E713", lambda r=rules: fix_network(graph, ranges, r))
            continue
        found = fix_network(graph, ranges, rules)
        assert found.lengths.bits == (bits,)
        assert found.lengths.size_bytes == 2 * bits
        assert found.data_bits == 16
        assert found.layers[1].bits == bits


def test_logarithms_and_ratios_at_their_edges() -> None:
    for exponent in range(-60, 61):
        for factor, more in ((1.0, 0), (1 + 2.0**-40, 1), (1.5, 1)):
            assert formats.ceil_log2(2.0**exponent * factor) == exponent + more
    for wrong in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(ValueError, match="logarithm"):
            formats.ceil_log2(wrong)
    assert formats.sqnr_db([3.0, 4.0], [3.0, 4.5]) == pytest.approx(20.0)
    assert formats.sqnr_db([0.0], [1.0]) == -math.inf
    assert formats.sqnr_db([0.0], [0.0]) == math.inf
    assert formats.largest([]) == 0


def test_weights_that_are_levels_leave_a_clip_scalar() -> None:
    """Their noise is none, and nothing is clipped: the scalar is 0, not a division of 0 by 0."""
    from ai8xtools.quantization.lowbit import ENCODINGS, octav

    for name in ("4bitsym", "NF4", "8bit"):
        encoding = ENCODINGS[name]
        levels = np.array(encoding.levels) / encoding.limit
        for by_levels in (False, True):
            with np.errstate(all="raise"):
                found = octav(levels, encoding, 2.0, by_levels=by_levels)
            assert math.isfinite(found)


# -- calibration -------------------------------------------------------------------------------


def test_inputs_with_the_largest_moments_are_rounded_to_the_nearest() -> None:
    """All others can make good for them, and the error is near the least that is possible."""
    torch = pytest.importorskip("torch")
    from ai8xtools.quantization.adaptive import DataRounding, Moments

    errors = []
    added = torch.tensor([*itertools.product(range(-3, 5), repeat=4)])
    for seed in range(12):
        torch.manual_seed(seed)
        seen = torch.randn(1, 4, 60, dtype=torch.float64)
        seen[:, 1:] += seen[:, :1]  # what correlates can make good
        seen[:, seed % 4] *= 30
        moments = Moments.empty(1, 4)
        moments.add(seen, seen)
        rows = torch.randn(1, 3, 4, dtype=torch.float64) / 3
        found = DataRounding(moments).round(rows, 4.0, 8)[0]
        scaled = rows[0] * 4
        greatest = seed % 4
        assert torch.equal(found[:, greatest], (scaled[:, greatest] + 0.5).floor().clamp(-8, 7))

        def error(integers: Any, s: Any = scaled, x: Any = seen[0]) -> Any:
            return ((integers - s) @ x).square().sum(-1)

        for row, weights in enumerate(scaled):
            choices = (weights.floor() + added).clamp(-8, 7)
            best = error(choices, weights).min()
            plain = error((weights + 0.5).floor(), weights)
            errors.append((error(found[row], weights), best, plain))
    found, best, plain = (sum(float(one[n]) for one in errors) for n in range(3))
    assert best <= found <= 1.5 * best
    assert found < 0.7 * plain


@pytest.mark.parametrize("sizes", [[1], [2], [3, 2], [1, 1, 5], [64]])
def test_every_sample_either_shapes_or_judges(sizes: list[int]) -> None:
    torch = pytest.importorskip("torch")
    from ai8xtools.quantization.calibration import Walk

    numbers = torch.arange(sum(sizes))
    walk = Walk(torch.nn.Identity(), torch.nn.Identity(), numbers.split(sizes))
    shaping, judging = (torch.cat(list(some)).tolist() for some in (walk._shaping, walk.judging))
    if sum(sizes) == 1:
        assert shaping == judging == [0]
        return
    halves = [(n + 1) // 2 for n in sizes]
    assert len(shaping) == sum(halves)
    if any(n > 1 for n in sizes):
        assert sorted([*shaping, *judging]) == numbers.tolist()
    assert all(len(part) for part in [*walk._shaping, *walk.judging])


def test_results_of_several_outputs_stand_beside_one_another() -> None:
    torch = pytest.importorskip("torch")
    from ai8xtools.quantization.bit_search import flat_results

    class Several(torch.nn.Module):  # type: ignore[name-defined, misc]
        def forward(self, x: Any) -> Any:
            return x + 1, [x.unflatten(1, (1, -1)) * 2, (x.sum(1, keepdim=True),)]

    batches = [torch.rand(2, 3), torch.rand(4, 3)]
    x = torch.cat(batches) * 128
    wanted = torch.cat([x + 1, 2 * x, x.sum(1, keepdim=True)], 1).double()
    assert torch.equal(flat_results(Several(), batches, 128), wanted)
