"""Networks of integers, encodings, choices of widths and errors against slow definitions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ai8xtools.diagnostics.errors import InputError
from ai8xtools.quantization import formats
from ai8xtools.quantization.fixed import Division, Rule, choose_lengths, data_magnitude, summarize
from ai8xtools.quantization.fixed.layer import FixedLayer, fixed_layer
from ai8xtools.quantization.fixed.network import _saturating
from ai8xtools.quantization.lowbit import (
    ENCODINGS,
    SIGNED,
    clip_scalar,
    clip_scalars,
    compressed,
    encode,
    expanded,
    octav,
    pack,
    packed_inputs,
    packed_words,
    proportional,
    quantized,
    statistics,
    unpack,
)
from ai8xtools.quantization.lowbit.encodings import TRAINING_ONLY
from ai8xtools.quantization.q15 import execute
from ai8xtools.quantization.q15.formats import (
    Guard,
    LayerFormats,
    QuantizedLayer,
    largest_sum,
    quantize_layer,
)
from ai8xtools.quantization.q15.graph import Clip, Graph, GraphBuilder, Pool, Weighted
from ai8xtools.quantization.q15.network import leaders_of, measured_maps, quantize_network

RANDOM = np.random.default_rng


def windows(shape: tuple[int, int], size: Any, stride: Any, padding: Any) -> Iterator[Any]:
    """Yield the place of each result with the places inside of the map that it reads."""
    rows = (shape[0] + 2 * padding[0] - size[0]) // stride[0] + 1
    columns = (shape[1] + 2 * padding[1] - size[1]) // stride[1] + 1
    for y, x in itertools.product(range(rows), range(columns)):
        places = []
        for i, j in itertools.product(range(size[0]), range(size[1])):
            at = y * stride[0] - padding[0] + i, x * stride[1] - padding[1] + j
            if 0 <= at[0] < shape[0] and 0 <= at[1] < shape[1]:
                places.append((i, j, *at))
        yield y, x, places


GEOMETRY = [
    ((1, 1), (1, 1), (0, 0)), ((3, 2), (1, 2), (1, 0)), ((2, 3), (2, 1), (0, 1)),
    ((3, 3), (2, 3), (1, 1)), ((4, 5), (3, 2), (2, 1)),
]  # fmt: skip


@pytest.mark.parametrize(("size", "stride", "padding"), GEOMETRY)
def test_sums_and_pools_are_those_of_their_windows(size: Any, stride: Any, padding: Any) -> None:
    random = RANDOM(3)
    data = random.integers(-128, 128, (2, 5, 6, 4))
    if all(2 * p <= k for p, k in zip(padding, size, strict=True)):
        for average in (True, False):
            found = execute.pooled(Pool("p", 0, 1, average, size, stride, padding), data)
            for y, x, places in windows((5, 6), size, stride, padding):
                for n, c in itertools.product(range(2), range(4)):
                    values = [int(data[n, r, q, c]) for _, _, r, q in places]
                    mean = math.trunc(Fraction(sum(values), len(values)))
                    assert found[n, y, x, c] == (mean if average else max(values))
    for groups, filters in ((1, 3), (4, 4)):
        kernels = random.integers(-128, 128, (filters, *size, 4 // groups))
        bias = random.integers(-128, 128, filters)
        layer = QuantizedLayer(LayerFormats(7, 7, 5, 3, 0, 0), kernels, bias)
        shape = np.zeros((filters, 4 // groups, *size))
        step = Weighted("c", 0, 1, shape, np.zeros(filters), stride, padding, groups)
        found = execute.weighted_sums(step, layer, data)
        for y, x, places in windows((5, 6), size, stride, padding):
            for n, o in itertools.product(range(2), range(filters)):
                channels = [o] if groups > 1 else range(4)
                total = int(bias[o]) * 2**9 + 2**10
                for i, j, r, q in places:
                    for at, c in enumerate(channels):
                        total += int(kernels[o, i, j, at]) * int(data[n, r, q, c])
                assert found[n, y, x, o] == total


@pytest.mark.parametrize("bits", [8, 16])
def test_sums_wrap_are_shifted_and_saturate(bits: int) -> None:
    edges = [n + d for n in (0, -(1 << 31), 1 << 31, 1 << 32, 255, -256) for d in (-2, -1, 0, 1)]
    edges += [1 << 40, -(1 << 40) + 7]
    for shift in range(31):
        found = execute.finish(np.array(edges), shift, bits)
        for one, got in zip(edges, found.tolist(), strict=True):
            held = (one + 2**31) % 2**32 - 2**31
            assert got == min(max(held // 2**shift, -(2 ** (bits - 1))), 2 ** (bits - 1) - 1)


def example() -> Graph:
    random = RANDOM(5)
    made = GraphBuilder((2, 6, 5))
    first = made.convolution("a", 0, random.normal(0, 0.3, (4, 2, 3, 3)), None, padding=(1, 1))
    limited = made.clip("r", first, 0.0, math.inf)
    grouped = made.convolution("g", limited, random.normal(0, 0.5, (4, 2, 3, 1)),
                               random.normal(0, 1, 4), (1, 2), (1, 0), (1, 2), 2)  # fmt: skip
    deep = made.convolution("d", limited, random.normal(0, 0.5, (4, 1, 1, 1)), None, (1, 2),
                            groups=4)  # fmt: skip
    added = made.add("s", [grouped, deep])
    made.clip("unused", added, -1.0, 1.0)
    both = made.concat("j", [added, made.clip("c", added, -1.0, 1.0)])
    small = made.pool("p", both, True, (2, 3), (2, 1), (0, 1))
    return made.finished(made.linear("f", small, random.normal(0, 0.2, (3, 8 * 3 * 3)), None))


def torch_maps(graph: Graph, x: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
    from ai8xtools.quantization.q15.floating import compute

    return compute(graph, x)


def test_shapes_and_products_of_a_network_are_those_of_its_maps() -> None:
    graph = example()
    found = torch_maps(graph, RANDOM(1).normal(0, 1, (2, 2, 6, 5)))
    for step in graph.steps:
        assert found[step.target].shape[1:] == graph.shapes[step.target]
    assert "unused" not in [step.name for step in graph.steps]
    products = 0
    for step in graph.steps:
        if isinstance(step, Weighted):
            products += step.weights.size * math.prod(graph.shapes[step.target][1:])
    assert graph.macs == products


def test_groups_and_dilation_become_the_same_dense_kernels() -> None:
    import torch

    random = RANDOM(4)
    x = random.normal(0, 1, (1, 6, 7, 8))
    for groups, dilation in itertools.product((1, 2, 3, 6), ((1, 1), (2, 1), (1, 3), (2, 2))):
        weights = random.normal(0, 1, (6, 6 // groups, 2, 3))
        made = GraphBuilder((6, 7, 8))
        target = made.convolution("c", 0, weights, None, (2, 1), (1, 0), dilation, groups)
        (found,) = torch_maps(made.finished(target), x)[target:]
        wanted = torch.nn.functional.conv2d(*map(torch.from_numpy, (x, weights)), None, (2, 1),
                                            (1, 0), dilation, groups)  # fmt: skip
        assert np.allclose(found, wanted.numpy(), atol=1e-12)


def test_transposed_network_computes_the_transposed_maps() -> None:
    graph = example()
    x = RANDOM(6).normal(0, 1, (1, 2, 6, 5))
    one, other = torch_maps(graph, x), torch_maps(graph.transposed(), x.swapaxes(2, 3).copy())
    for step in graph.steps:
        shape = graph.shapes[step.target]
        assert graph.transposed().shapes[step.target] == (shape[0], shape[2], shape[1])
        assert np.allclose(one[step.target].swapaxes(2, 3), other[step.target], atol=1e-9)


@pytest.mark.parametrize("bits", [8, 16])
def test_integers_of_a_network_come_near_its_maps(bits: int) -> None:
    from ai8xtools.quantization.q15.floating import measure

    graph = example()
    samples = RANDOM(7).uniform(-1, 1, (20, 2, 6, 5))
    seen = measure(graph, [samples[:7], samples[7:]])
    maps = torch_maps(graph, samples)
    assert np.allclose(seen.largest[:1], np.abs(samples).max())
    network = quantize_network(graph, seen.largest, seen.largest, bits, Guard.CALIBRATED)
    found = execute.execute(network, execute.quantize_input(network, samples))
    for leader, tensor in zip(leaders_of(graph), range(len(graph.shapes)), strict=True):
        assert network.fractions[tensor] == network.fractions[leader]
    for tensor in measured_maps(graph):
        values = np.ldexp(found[tensor].astype(float), -network.fractions[tensor])
        ratio = formats.sqnr_db(maps[tensor], values.transpose(0, 3, 1, 2))
        assert ratio > (20 if bits == 8 else 66), tensor
    for step in graph.steps:
        if isinstance(step, Clip):
            low, high = network.limits_of(step)
            unit = 2.0 ** network.fractions[step.target]
            ends = formats.limits(bits)
            assert low == max(
                ends[0], -(2**40) if step.low == -math.inf else round(step.low * unit)
            )
            assert high == min(ends[1], 2**40 if step.high == math.inf else round(step.high * unit))


def test_percentile_is_that_of_all_values() -> None:
    from ai8xtools.quantization.q15.floating import measure

    made = GraphBuilder((1, 3, 4))
    graph = made.finished(made.clip("c", 0, -0.5, 0.25))
    samples = RANDOM(2).normal(0, 1, (9, 1, 3, 4))
    found = measure(graph, [samples[:4], samples[4:]], 80.0)
    wanted = [np.abs(samples), np.abs(samples.clip(-0.5, 0.25))]
    assert found.largest == tuple(one.max() for one in wanted)
    assert found.percentile == tuple(np.percentile(one, 80.0) for one in wanted)


def test_guard_takes_as_few_bits_as_keep_sums_within_32() -> None:
    for seed in range(30):
        random = RANDOM(seed)
        weights = random.choice([-1.0, 1.0], (2, int(random.integers(1, 40)), 3, 3))
        bias = random.normal(0, 2.0 ** random.integers(-8, 8), 2)
        for guard, reach in ((Guard.WORST, 1 << 15), (Guard.CALIBRATED, 20000)):
            made = quantize_layer(weights, bias, 12, 10, 16, guard, 10000, "it")
            kept = made.formats
            sums = np.abs(made.weights).reshape(2, -1).sum(1) * reach
            sums += np.abs(made.bias) << kept.bias_lshift
            assert sums.max() + (1 << kept.out_rshift >> 1) < 1 << 31
            if kept.guard_bits:  # one bit less does not do
                kw = kept.kw + 1
                kb = min(formats.power_of_two_fraction(np.abs(bias).max(), 16), 12 + kw)
                ko = min(10, 12 + kw)
                parts = (formats.to_fixed(part, k, 16) for part, k in ((weights, kw), (bias, kb)))
                assert largest_sum(*parts, 12 + kw - kb, 12 + kw - ko, reach) >= 1 << 31
            assert kept.kw + kept.guard_bits == formats.power_of_two_fraction(1.0, 16)
            assert kept.bound >= sums.max()


@pytest.mark.parametrize("name", [n for n in ENCODINGS if n != "None"])
def test_codes_stand_for_the_nearest_level(name: str) -> None:
    encoding = ENCODINGS[name]
    weights = (np.arange(-400, 401) / 128 + 1e-3).astype(np.float32)
    clip = 1.25
    if name == "Ternary":
        clip = float(np.abs(weights).mean(dtype=np.float64))
    levels = np.array(encoding.levels)
    found = quantized(encode(weights, clip, encoding), encoding)
    factor = encoding.limit / clip
    if name.endswith("bitsym"):
        factor = (encoding.limit + 0.5) / clip
    scaled = weights.astype(np.float64) * factor
    if name.startswith("Binary"):
        middle = weights.mean(dtype=np.float64) if name == "Binary" else 0
        assert np.array_equal(found, np.where(weights >= np.float32(middle), 1, -1))
    elif name == "FP130":
        exponent = np.floor(np.log2(np.abs(scaled))).clip(0, 7)
        assert np.array_equal(found, np.sign(weights) * 2**exponent)
    else:
        away = np.abs(scaled - found)
        assert np.all(away <= np.abs(scaled[:, None] - levels).min(1) + 1e-4)


@pytest.mark.parametrize("name", [*ENCODINGS, "1", "2", "4"])
def test_packed_codes_are_the_digits_of_words(name: str) -> None:
    encoding = ENCODINGS[name] if name in ENCODINGS else SIGNED[int(name)]
    for inputs, outputs in ((1, 1), (7, 3), (10, 2), (33, 2)):
        codes = RANDOM(inputs).integers(0, len(encoding.values), (outputs, inputs))
        words = pack(codes, encoding)
        assert len(words) == packed_words(inputs, outputs, encoding)
        assert np.array_equal(unpack(words, inputs, encoding), codes)
        width = packed_inputs(inputs, encoding)
        per_word = 10 if name == "Ternary" else 32 // encoding.bits
        assert width % per_word == 0
        assert 0 <= width - inputs < per_word
        padded = unpack(words, width, encoding)[:, inputs:]
        least = min(map(abs, encoding.values))
        assert all(abs(encoding.values[code]) == least for code in padded.flat)


@pytest.mark.parametrize("name", ["4bitsym", "8bit", "NF4", "Ternary"])
def test_statistics_count_what_occurs(name: str) -> None:
    encoding = ENCODINGS[name]
    codes = np.concatenate([np.repeat(code, 1 + code % 5) for code in range(len(encoding.values))])
    codes = np.concatenate([codes, codes[:3]])
    found = statistics(codes, encoding)
    levels = [float(np.float32(encoding.levels[code])) for code in codes]
    assert found.values == tuple(sorted(set(levels)))
    shares = [levels.count(value) / len(levels) for value in found.values]
    assert found.percent == pytest.approx([100 * share for share in shares])
    entropy = -sum(share * math.log2(share) for share in shares)
    assert found.entropy_bits == pytest.approx(entropy)
    width = 1.6 if name == "Ternary" else encoding.bits
    assert found.capacity_percent == pytest.approx(100 * entropy / width)
    assert (found.least, found.greatest) == (min(levels), max(levels))
    assert found.mean == pytest.approx(np.mean(levels), abs=1e-5)
    assert found.deviation == pytest.approx(np.std(levels), rel=1e-5)


def test_compressed_codes_are_as_short_as_any_words() -> None:
    """The length of an optimal code is the sum of what the merged pairs weigh."""
    for seed in range(40):
        random = RANDOM(seed)
        counts = random.integers(0, 30, random.integers(1, 12))
        counts[0] += 1
        codes = random.permutation(np.repeat(np.arange(len(counts)), counts))
        found = compressed(codes)
        assert np.array_equal(expanded(found, len(codes)), codes)
        some = sorted(n for n in counts.tolist() if n)
        bits = some[0] if len(some) == 1 else 0
        while len(some) > 1:
            pair = some.pop(0) + some.pop(0)
            bits += pair
            some = sorted([*some, pair])
        assert len(found.stream) == -(-bits // 8)
        assert found.lengths.sum() == len(found.symbols)
        assert found.size == len(found.lengths) + len(found.symbols) + len(found.stream)


@pytest.mark.parametrize("name", ["4bitsym", "2bitsym", "8bit", "NF4", "Ternary"])
def test_clip_scalar_is_a_fixed_point_of_its_rule(name: str) -> None:
    encoding = ENCODINGS[name]
    weights = RANDOM(3).normal(0, 0.1, (6, 50)).astype(np.float32)
    magnitudes = np.abs(weights.astype(np.float64)).ravel()
    clip = octav(weights, encoding, 0.3)
    inside = magnitudes <= clip
    noise = 4.0**-encoding.bits_per_weight / 3
    assert clip == pytest.approx(
        magnitudes[~inside].sum() / (noise * inside.sum() + (~inside).sum()), rel=2e-2
    )
    levels = sorted({abs(level) for level in encoding.levels})
    clip = octav(weights, encoding, 0.3, by_levels=True)
    inside = magnitudes <= clip
    scaled = magnitudes[inside] * encoding.limit / clip
    away = [min(abs(one - level) for level in levels) / encoding.limit for one in scaled]
    noise = float(np.mean(np.square(away)))
    if name in ("4bitsym", "NF4"):
        wanted = magnitudes[~inside].sum() / (noise * inside.sum() + (~inside).sum())
        assert clip == pytest.approx(wanted, rel=5e-2)
    assert clip_scalar(weights, encoding, "octav", 0.3) == octav(weights, encoding, 0.3)
    assert clip_scalar(weights, encoding, "octav_cb", 0.3) == clip
    mean = float(magnitudes.mean())
    assert clip_scalar(weights, encoding, "prop", 9.0) == pytest.approx(4 * mean, rel=1e-5)
    assert proportional(weights, 0.5) == pytest.approx(2 * mean, rel=1e-5)
    assert proportional(0 * weights, 0.5) == pytest.approx(2e-5)
    none = TRAINING_ONLY["None"]
    assert clip_scalar(weights, none, "prop") == float(np.abs(weights).max())
    present = np.linspace(0.1, 0.6, 6)
    rows = clip_scalars(weights.reshape(6, 5, 10), encoding, "octav", present)
    assert rows.tolist() == [
        [octav(row, encoding, at)] for row, at in zip(weights, present, strict=True)
    ]
    some = clip_scalars(weights, encoding, "prop", present, 0.5)
    assert some[:, 0].tolist() == pytest.approx((2 * np.abs(weights).max(1)).tolist(), rel=1e-6)
    assert clip_scalars(0 * weights, encoding, "prop", present, 0.5).tolist() == [[2e-5]] * 6
    assert clip_scalars(weights, none, "prop", present).shape == (6, 1)


def test_thresholds_are_lowered_no_further_than_the_budget_needs() -> None:
    for seed in range(60):
        random = RANDOM(seed)
        count = int(random.integers(1, 5))
        sizes = random.integers(1, 40, count).tolist()
        table = {bits: random.integers(0, 60, count).astype(float).tolist() for bits in (1, 2, 4)}
        ratios = random.integers(20, 60, count).astype(float).tolist()
        few = table if seed % 2 else None

        def at(threshold: float, few: Any = few, ratios: Any = ratios) -> tuple[int, ...]:
            widths = {**(few or {}), 8: ratios}
            return tuple(
                min([bits for bits in widths if widths[bits][n] >= threshold], default=16)
                for n in range(len(ratios))
            )

        def bytes_of(bits: tuple[int, ...], sizes: Any = sizes) -> int:
            return sum(-(-n * width // 8) for n, width in zip(sizes, bits, strict=True))

        free = choose_lengths(ratios, sizes, 35.0, None, few)
        assert (free.bits, free.threshold, free.fits) == (at(35.0), 35.0, True)
        assert free.size_bytes == bytes_of(free.bits)
        budget = int(random.integers(1, bytes_of((16,) * count) + 1))
        found = choose_lengths(ratios, sizes, 35.0, budget, few)
        assert found.size_bytes == bytes_of(found.bits)
        known = {35.0, *(t for t in (*itertools.chain(*table.values(), ratios),) if t < 35)}
        fitting = [t for t in known if bytes_of(at(t)) <= budget]
        assert found.fits == bool(fitting)
        if fitting:
            assert found.bits == at(max(fitting))
        else:
            assert found.threshold is None


def test_magnitude_of_data_reaches_the_deviations_asked_for() -> None:
    values = [-3.0, 1.0, 2.0, 2.5]
    found = summarize(values)
    assert (found.low, found.high, found.mean) == (-3.0, 2.5, np.mean(values))
    assert found.deviation == pytest.approx(np.std(values))
    assert data_magnitude(found, Rule("max")) == 3.0
    for number in (0.5, 2.0):
        for some in (found, summarize([-v for v in values])):
            reach = abs(some.mean) + number * some.deviation
            assert data_magnitude(some, Rule("sigma", number)) == pytest.approx(reach)
    assert [str(Rule("sigma", 2.5)), str(Rule())] == ["sigma 2.5", "max"]


def test_stored_shifts_compute_the_same_as_division_by_the_factor() -> None:
    random = RANDOM(12)
    for seed in range(40):
        weights = random.normal(0, 2.0 ** random.integers(-4, 4), (3, 5))
        bias = None if seed % 3 == 0 else random.normal(0, 2, 3)
        for division, bits, data_bits in itertools.product(Division, (4, 8, 16), (8, 16)):
            made = fixed_layer(weights, bias, bits=bits, division=division,
                               magnitude=float(np.abs(weights).max()), data_bits=data_bits,
                               in_fraction=6, out_fraction=int(random.integers(2, 6)))  # fmt: skip
            x = random.integers(-100, 100, (4, 5))
            sums = x @ made.weights.T
            exact = stored(made, sums)
            assert made.finish(sums).tolist() == exact
            relu = [[max(one, 0) for one in row] for row in exact]
            assert made.finish(sums, relu=True).tolist() == relu
            if made.folded:
                left, right = made.stored_shifts
                total = sums + (0 if made.bias is None else made.bias << left)
                again = (total + (1 << right >> 1)) >> right
                assert again.clip(*formats.limits(data_bits)).tolist() == exact
                assert made.stored_factor == 1
                assert 2.0**-made.stored_fraction == made.by / 2 ** (bits - 1)
            else:
                assert made.stored_fraction == bits - 1
            off = np.abs(made.restored - weights).max()
            assert off <= made.by / 2 ** (bits - 1)


def stored(made: FixedLayer, sums: np.ndarray[Any, Any]) -> list[list[int]]:
    """Return the results from their definition, in fractions."""
    low, high = formats.limits(made.data_bits)
    unit = Fraction(2) ** -(made.bits - 1 + made.in_fraction)
    rows = []
    for row in sums.tolist():
        rows.append([])
        for number, one in enumerate(row):
            total = Fraction(made.by) * one * unit
            if made.bias is not None:
                total += int(made.bias[number]) / Fraction(2) ** made.bias_fraction
            found = math.floor(total * Fraction(2) ** made.out_fraction + Fraction(1, 2))
            rows[-1].append(min(max(found, low), high))
    return rows


def test_limits_that_formats_have_are_powers_of_two() -> None:
    for exponent in range(-4, 5):
        assert _saturating(2.0**exponent)
        assert _saturating(2.0**exponent * 127 / 128)
        assert not _saturating(2.0**exponent * 1.25)
        assert not _saturating(-(2.0**exponent))
    assert not _saturating(0.0)


# -- widths by sensitivity ---------------------------------------------------------------------


def test_search_takes_the_cheapest_bits_per_byte_until_none_are_left() -> None:
    from ai8xtools.quantization.bit_search import Sensitivity, _changes, least_bytes

    random = RANDOM(9)
    for _ in range(20):
        layers = [
            Sensitivity(name, int(random.integers(1, 50)), {}, {
                bits: float(random.random()) for bits in (1, 2, 4, 8)
            })
            for name in "abc"
        ]  # fmt: skip
        assert [layer.bytes_with(bits) for layer in layers for bits in (1, 2, 4, 8)] == [
            math.ceil(layer.weights * bits / 8) for layer in layers for bits in (1, 2, 4, 8)
        ]
        for held in itertools.product((1, 2, 4, 8), repeat=3):
            bits = dict(zip("abc", held, strict=True))
            wanted = set()
            for layer in layers:
                for fewer in (1, 2, 4):
                    old, new = (math.ceil(layer.weights * b / 8) for b in (bits[layer.name], fewer))
                    if fewer < bits[layer.name] and new < old:
                        more = layer.noise[fewer] - layer.noise[bits[layer.name]]
                        wanted.add((more / (old - new), layer.name, fewer))
            assert set(_changes(layers, bits)) == wanted
        assert least_bytes(one.weights for one in layers) == sum(
            math.ceil(one.weights / 8) for one in layers
        )


def test_budget_of_just_as_many_bytes_is_enough() -> None:
    from ai8xtools.quantization.bit_search import Step, within

    steps = [Step({"a": b}, 10 * b, float(b), 1.0) for b in (8, 4, 2, 1)]
    for budget in range(10, 90):
        assert within(steps, budget).size_bytes == max(
            10 * b for b in (1, 2, 4, 8) if 10 * b <= budget
        )
    with pytest.raises(InputError):
        within(steps, 9)


def test_noise_is_what_the_best_factor_leaves() -> None:
    import torch

    from ai8xtools.quantization.bit_search import noise_of

    torch.manual_seed(2)
    wanted = torch.randn(6, 4).double()
    got = 3 * wanted + torch.randn(6, 4)
    noise, same = noise_of(wanted, got)
    energy = wanted.square().sum()
    tried = [float((got * f - wanted).square().sum() / energy) for f in torch.linspace(0, 1, 2001)]
    assert min(tried) - 1e-5 <= noise <= min(tried)
    agreeing = sum(int(a.argmax() == b.argmax()) for a, b in zip(wanted, got, strict=True))
    assert same == agreeing / 6
    assert noise_of(wanted, 0 * wanted)[0] == 1.0
    assert noise_of(0 * wanted, 0 * wanted) == (0.0, 1.0)
    assert noise_of(wanted, 5 * wanted)[0] == pytest.approx(0, abs=1e-12)


def test_clipped_outputs_are_those_at_a_limit_whose_value_is_beyond() -> None:
    import torch

    from ai8xtools.quantization.layer_errors import _Output, _right

    sums = _Output()
    assert sums.clipped_part == 0
    wanted = torch.tensor([2.0, 0.99, -1.0, -1.5, 0.5, 127.2 / 128, -1 - 1.5 / 128])
    found = torch.tensor([127, 127, -128, -128, 10, 127, -128]) / 128
    sums.add(wanted, found, 128)
    assert sums.clipped_part == pytest.approx(3 / 7)
    sums.add(wanted, found, None)
    assert sums.clipped_part == pytest.approx(3 / 14)
    ratio = wanted.double().square().sum() / (wanted - found).double().square().sum()
    assert sums.snr_db == pytest.approx(10 * math.log10(ratio))
    scores = torch.eye(4)[[0, 1, 1, 3]]
    assert _right(scores, torch.tensor([0, 1, 2, 3])) == 0.75
    assert _right(scores, None) is None


# -- what layers see, rounding with data -------------------------------------------------------


@pytest.mark.parametrize("kind", ["conv2d", "groups", "conv1d", "linear"])
def test_columns_times_rows_are_what_the_operator_computes(kind: str) -> None:
    import torch
    from torch import nn

    from ai8xtools.quantization.adaptive import DataRounding, Moments, columns, weight_rows

    torch.manual_seed(4)
    op: Any = {
        "conv2d": lambda: nn.Conv2d(3, 4, (3, 2), stride=(1, 2), padding=(1, 0), bias=False),
        "groups": lambda: nn.Conv2d(4, 6, 3, stride=2, padding=2, groups=2, bias=False),
        "conv1d": lambda: nn.Conv1d(3, 4, 3, stride=2, padding=1, dilation=2, bias=False),
        "linear": lambda: nn.Linear(7, 4, bias=False),
    }[kind]().double()  # fmt: skip
    shape = {"conv2d": (5, 3, 6, 7), "groups": (5, 4, 6, 7), "conv1d": (5, 3, 9), "linear": (9, 7)}
    x = torch.rand(shape[kind], dtype=torch.float64) - 0.3
    rows, seen = weight_rows(op, op.weight), columns(op, x)
    assert rows is not None
    with torch.no_grad():
        wanted = op(x)
        wanted = wanted.mT if kind == "linear" else wanted.flatten(2).transpose(0, 1).flatten(1)
        assert torch.allclose((rows @ seen).flatten(0, 1), wanted)

        moments = Moments.empty(rows.shape[0], rows.shape[2])
        assert moments.count == 0
        other = seen + 0.1 * torch.randn_like(seen)
        moments.add(other, seen)
        moments.add(other[:, :, :2], seen[:, :, :2])
        a, b = (torch.cat([one, one[:, :, :2]], 2) for one in (other, seen))
        assert torch.allclose(moments.second, a @ a.mT)
        assert torch.allclose(moments.cross, b @ a.mT)
        assert torch.allclose(moments.seen, a.sum(2))
        assert torch.allclose(moments.expected, b.sum(2))
        assert moments.count == a.shape[2]

        rounding = DataRounding(moments)
        found = rounding.round(rows, 16.0, 4)
        assert torch.equal(found, found.round())
        assert -4 <= found.min() <= found.max() <= 3
        nearest = (rows * 16 + 0.5).floor().clamp(-4, 3)
        fine = rounding.round(rows, 16.0, 1 << 10)
        near = (rows * 16 + 0.5).floor()

        def error(integers: Any) -> float:
            return float(((integers / 16 - rows) @ a).square().sum())

        assert error(fine) < error(near)
        assert nearest.shape == found.shape
        bias = torch.randn(rows.shape[0] * rows.shape[1], dtype=torch.float64)
        moved = rounding.corrected(bias, rows, fine / 16)
        means = (rows @ b).mean(2).flatten() + bias, (fine / 16 @ a).mean(2).flatten() + moved
        assert torch.allclose(*means)
        better = rounding.compensated(rows)
        left = ((better @ a - rows @ b).square().sum(), (rows @ a - rows @ b).square().sum())
        assert left[0] <= left[1]


def test_places_are_thinned_out_evenly_beyond_the_limit() -> None:
    import torch

    from ai8xtools.quantization import adaptive

    for places in (adaptive.MAX_COLUMNS, adaptive.MAX_COLUMNS + 1, 3 * adaptive.MAX_COLUMNS):
        moments = adaptive.Moments.empty(1, 1)
        data = torch.arange(places, dtype=torch.float64).reshape(1, 1, -1)
        moments.add(data, data)
        step = math.ceil(places / adaptive.MAX_COLUMNS)
        assert moments.count == math.ceil(places / step) <= adaptive.MAX_COLUMNS
        assert float(moments.seen) == sum(range(0, places, step))


def test_steps_of_an_output_follow_shift_bits_and_range() -> None:
    import torch

    from ai8xtools.quantization.calibration import output_steps
    from ai8xtools.quantization.report import decibels

    for wide, shift, bits, threshold in itertools.product(
        (False, True), (-3, 0, 2), (1, 8), (None, -1, 2)
    ):
        layer: Any = SimpleNamespace(
            wide=wide, output_shift=torch.tensor([float(shift)]),
            weight_bits=torch.tensor([bits]), has_thresholds=threshold is not None,
            activation_threshold=torch.tensor(float(threshold or 0)),
        )  # fmt: skip
        wanted = 128 * 2.0 ** (bits - 1 - shift - (threshold or 0)) if wide else 128
        assert output_steps(layer) == wanted
    assert decibels(100.0, 1.0) == pytest.approx(20)
    assert (decibels(0.0, 1.0), decibels(0.0, 0.0)) == (-math.inf, math.inf)


def test_scales_to_try_begin_where_nothing_is_clipped() -> None:
    import torch

    from ai8xtools.quantization.calibration import _scales

    for bits, weight, bias in itertools.product(
        (1, 2, 4, 8), (0.0, 2.0**-30, 0.3, 1.0, 1.5, 2.0**20), (None, 0.0, 0.1, 3.0, 700.0)
    ):
        some = None if bias is None else torch.tensor([bias, -bias / 2])
        found = _scales(torch.tensor([weight, -weight / 3]), some, bits)
        fits = [
            s for s in range(-7 - bits, 24 - bits)
            if weight * 2.0**s <= 1 and (bias or 0) * 2.0 ** (bits - 1 + s) <= 128
        ]  # fmt: skip
        first = max(fits, default=-7 - bits)
        if not weight and (first > 0 or not bias):
            first = 0 if not bias or first > 0 else first
        assert found[0] == first
        assert found[-1] <= 23 - bits
        assert len(found) >= 1


def test_error_sums_are_those_of_all_batches_at_once() -> None:
    from ai8xtools.quantization.q15.report import ErrorSums, rows

    graph = example()
    samples = RANDOM(3).uniform(-1, 1, (11, 2, 6, 5))
    maps = torch_maps(graph, samples)
    largest = [float(np.abs(one).max(initial=0)) for one in maps]
    network = quantize_network(graph, largest, largest, 8, Guard.WORST)
    found = execute.execute(network, execute.quantize_input(network, samples))
    sums = ErrorSums(network)
    for part in (slice(0, 4), slice(4, 11)):
        sums.add([one[part] for one in maps], {n: one[part] for n, one in found.items()})
    errors = sums.finished()
    for tensor in measured_maps(graph):
        values = np.ldexp(found[tensor].astype(float), -network.fractions[tensor])
        wanted = formats.sqnr_db(maps[tensor], values.transpose(0, 3, 1, 2))
        assert errors.sqnr_db(tensor) == pytest.approx(wanted)
    most = maps[graph.output].reshape(11, -1).argmax(1), found[graph.output].reshape(11, -1)
    assert errors.agreeing == int((most[0] == most[1].argmax(1)).sum())
    assert errors.samples == 11
    table = rows(network, errors)
    steps = [step for step in graph.steps if isinstance(step, Weighted)]
    assert [row[0] for row in table] == [step.name for step in steps]
    for row, step in zip(table, steps, strict=True):
        kept = network.layers[step.target].formats
        assert row[1:8] == (kept.kx, kept.kw, kept.kb, kept.ko, kept.kx + kept.kw - kept.kb,
                            kept.kx + kept.kw - kept.ko, kept.guard_bits)  # fmt: skip
        assert float(str(row[8])) == pytest.approx(kept.bound / 2**31, abs=6e-4)
        behind = graph.activated(step.target)
        assert float(str(row[9])) == pytest.approx(errors.sqnr_db(behind), abs=0.06)


@pytest.mark.parametrize("shape", [(0,), (), (2, 0, 3)])
def test_tensors_without_values_or_axes_cannot_be_quantized(shape: tuple[int, ...]) -> None:
    from ai8xtools.checkpoint import Checkpoint
    from ai8xtools.quantization import QuantizationOptions, quantize_checkpoint

    state = {"a.op.weight": np.ones(shape, np.float32), "a.output_shift": np.zeros(1, np.float32)}
    with pytest.raises(InputError) as caught:
        quantize_checkpoint(Checkpoint({"state_dict": state}), QuantizationOptions())
    assert caught.value.code == "E705"


@pytest.mark.parametrize("bits", [1, 2, 4, 8])
def test_report_counts_what_lies_beyond_the_integers(bits: int) -> None:
    from ai8xtools.quantization.arithmetic import quantize_weights
    from ai8xtools.quantization.report import Conversion, measure

    limit = 2 ** (bits - 1)
    values = (np.arange(-8 * limit, 8 * limit) / (4 * limit)).astype(np.float32).reshape(4, -1)
    integers = quantize_weights(values, np.float32(1), bits)
    found = measure("it", values, integers, Conversion(np.float32(limit), bits, 0, 1.0))
    wanted = np.floor(values.astype(np.float64) * limit + 0.5)
    assert found.clipped == int(((wanted < -limit) | (wanted > limit - 1)).sum())
    noise = ((values * np.float64(limit) - integers) ** 2).sum()
    ratio = 10 * math.log10(((values * np.float64(limit)) ** 2).sum() / noise)
    assert found.snr_db == pytest.approx(ratio)
    assert (found.low, found.high, found.shape) == (values.min(), values.max(), values.shape)
    exact = measure("it", integers, integers, Conversion(np.float32(1), bits, 0, 1.0))
    assert exact.snr_db == math.inf


@pytest.mark.parametrize("bits", [8, 16])
def test_network_comes_back_from_its_checkpoint(bits: int) -> None:
    from ai8xtools.quantization.q15.file import StoredNetwork, from_checkpoint, to_checkpoint

    graph = example()
    samples = RANDOM(3).uniform(-1, 1, (3, 2, 6, 5))
    largest = [float(np.abs(one).max(initial=0)) for one in torch_maps(graph, samples)]
    network = quantize_network(graph, largest, largest, bits, Guard.WORST)
    x = execute.quantize_input(network, samples)
    for column_major in (False, True):
        stored_one = StoredNetwork(network, x[0], column_major)
        found = from_checkpoint(to_checkpoint(stored_one, "net"), "file")
        assert (found.network.bits, found.network.guard) == (bits, Guard.WORST)
        assert found.column_major == column_major
        assert np.array_equal(found.sample, x[0])
        again = execute.execute(found.network, x)[found.network.graph.output]
        assert np.array_equal(again, execute.execute(network, x)[graph.output])
        names = [[step.name for step in one.steps] for one in (graph, found.network.graph)]
        assert names[0] == names[1]
        kept = [layer.formats for layer in network.layers.values()]
        assert [layer.formats for layer in found.network.layers.values()] == kept


def test_fixed_network_keeps_formats_that_meet_and_its_budget() -> None:
    from ai8xtools.quantization.fixed.network import FixedRules, fix_network

    graph = example()
    samples = RANDOM(3).uniform(-1, 1, (3, 2, 6, 5))
    ranges = [summarize(one) if one.size else None for one in torch_maps(graph, samples)]
    sizes = [step.weights.size for step in graph.steps if isinstance(step, Weighted)]
    for bits, data_bits in ((1, 8), (2, 8), (4, 8), (8, 8), (16, 16), (None, 16)):
        rules = FixedRules(bits, 30.0, Division.POWER_OF_TWO, Rule(), Rule())
        found = fix_network(graph, ranges, rules)
        assert found.data_bits == data_bits
        for tensor, leader in enumerate(leaders_of(graph)):
            assert found.fractions[tensor] == found.fractions[leader]
        for step in graph.steps:
            if isinstance(step, Weighted):
                layer = found.layers[step.target]
                assert layer.in_fraction == found.fractions[step.source]
                assert layer.out_fraction == found.fractions[step.target]
                assert layer.data_bits == data_bits
                assert (layer.bias is not None) == bool(step.bias.any())
        for tensor in measured_maps(graph):
            held = 2.0 ** (data_bits - 1 - found.fractions[tensor])
            some = ranges[tensor]
            assert some is not None
            assert some.magnitude <= held
        widths = found.lengths.bits
        size = sum(-(-n * width // 8) for n, width in zip(sizes, widths, strict=True))
        assert found.lengths.size_bytes == size
        if bits is not None:
            assert widths == (bits,) * len(sizes)
            assert fix_network(graph, ranges, replace(rules, budget=size)).lengths.fits
            with pytest.raises(InputError) as caught:
                fix_network(graph, ranges, replace(rules, budget=size - 1))
            assert caught.value.code == "E713"
