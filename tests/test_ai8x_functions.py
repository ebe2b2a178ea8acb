"""Images, quantiles, grids, limits and histograms against slow definitions of the same."""

from __future__ import annotations

import itertools
import math
from argparse import Namespace
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import ai8x
from ai8xtools.layers import ranges, steps
from ai8xtools.layers.damage import output_damage, weight_damage
from ai8xtools.layers.images import bayer_filter, fold, normalize, unfold_batch
from ai8xtools.layers.limits import pool_limits
from ai8xtools.layers.parts import PoolingKind
from ai8xtools.layers.quantiles import interp, quantile
from ai8xtools.layers.rounding import Grid
from ai8xtools.layers.scales import Flow, agreed_exponents
from ai8xtools.layers.weight_ranges import best_range, squared_error


@pytest.fixture(autouse=True)
def _leave_no_trace() -> Iterator[None]:
    ai8x.set_device(85, simulate=False, round_avg=False, verbose=False)
    yield
    ai8x.set_device(85, simulate=False, round_avg=False, verbose=False)


def numbered(*shape: int) -> Tensor:
    return torch.arange(math.prod(shape), dtype=torch.float32).reshape(shape)


@pytest.mark.parametrize("integers", [False, True])
def test_images_become_all_256_values(integers: bool) -> None:
    bytes_of_image = torch.arange(256) / 255
    found = normalize(Namespace(act_mode_8bit=integers))(bytes_of_image)
    exact = [Fraction(int(b), 255) for b in range(256)]
    wanted = [min(round((b - Fraction(1, 2)) * 256), 127) for b in exact]
    assert (found * (1 if integers else 128)).tolist() == wanted
    beyond = normalize(Namespace(act_mode_8bit=integers))(torch.tensor([-1.0, 2.0]))
    assert (beyond * (1 if integers else 128)).tolist() == [-128, 127]


@pytest.mark.parametrize(("channels", "ratio"), [(1, 2), (3, 2), (2, 3), (3, 1)])
def test_folding_moves_each_pixel_to_its_channel_and_back(channels: int, ratio: int) -> None:
    image = numbered(channels, 2 * ratio, 3 * ratio)
    folded = fold(ratio)(image)
    assert folded.shape == (channels * ratio * ratio, 2, 3)
    for c, y, x in itertools.product(range(channels), range(2 * ratio), range(3 * ratio)):
        place = ((y % ratio) * ratio + x % ratio) * channels + c
        assert folded[place, y // ratio, x // ratio] == image[c, y, x]
    two = torch.stack([folded, -folded])
    assert torch.equal(unfold_batch(two, ratio), torch.stack([image, -image]))


def test_mosaic_has_green_blue_over_red_green() -> None:
    image = numbered(3, 5, 6)
    mosaic = bayer_filter()(image)
    assert mosaic.shape == (1, 5, 6)
    colours = ((1, 2), (0, 1))
    for y, x in itertools.product(range(5), range(6)):
        assert mosaic[0, y, x] == image[colours[y % 2][x % 2], y, x]


@pytest.mark.parametrize("count", [1, 2, 3, 7, 16])
def test_quantile_chooses_by_middles_and_interpolates_by_ends(count: int) -> None:
    values = torch.from_numpy(np.random.default_rng(count).permutation(count) ** 2.0).float()
    ordered = sorted(values.tolist())
    places = [Fraction(2 * k + 1, 2 * count) for k in range(count)]
    for q in (Fraction(n, 128) for n in range(129)):
        if q in places and q.denominator & (q.denominator - 1):
            continue  # float32 has neither
        wanted = below = ordered[-1]
        if q != 1 and count > 1:
            index = min(max(sum(place <= q for place in places), 1), count - 1) - 1
            below = ordered[index]
            wanted = below + float(q * (count - 1) - index) * (ordered[index + 1] - below)
        assert quantile(values, float(q)).item() == pytest.approx(wanted, rel=1e-5, abs=1e-5)
        assert quantile(values, float(q), "lower").item() == below
        standing = torch.tensor([float(place) for place in places])
        samples = torch.tensor(ordered)
        found = interp(float(q), standing, samples).item()
        assert found == pytest.approx(wanted, rel=1e-5, abs=1e-5)
        assert interp(float(q), standing, samples, "lower").item() == below


ROUNDED = {
    "none": lambda x: x,
    "half up": lambda x: math.floor(x + Fraction(1, 2)),
    "half even": round,
    "toward zero": math.trunc,
    "down": math.floor,
}


@pytest.mark.parametrize("rounding", ROUNDED)
@pytest.mark.parametrize(("low", "high"), [(-4, 3), (0, 3), (-math.inf, math.inf)])
def test_grid_rounds_limits_and_passes_gradients_inside(
    rounding: Any, low: float, high: float
) -> None:
    for steps_, unit, positive in itertools.product((1.0, 8.0, 0.5), (1.0, 0.25), (False, True)):
        if positive and low != 0:
            continue
        grid = Grid(rounding, low, high, steps_, unit, positive)
        exact = [Fraction(n, 16) / Fraction(steps_) for n in range(-100, 101)]
        x = torch.tensor([float(one) for one in exact], requires_grad=True)
        y = grid(x)
        y.sum().backward()
        plain = rounding == "none"
        inner = [one if plain else ROUNDED[rounding](one * Fraction(steps_)) for one in exact]
        held = [float(min(max(one, low), high)) * (1.0 if plain else unit) for one in inner]
        assert y.tolist() == held
        passes = [low <= one <= high for one in inner]
        if positive:
            passes = [inside and one > 0 for inside, one in zip(passes, exact, strict=True)]
        assert x.grad is not None
        assert x.grad.tolist() == [float(inside) for inside in passes]
        moved = x.detach().clone().requires_grad_()
        changed = grid(moved * 1.0, overwrite=True)
        changed += 5  # as models do with shortcuts
        changed.sum().backward()
        assert moved.grad is not None and moved.grad.tolist() == x.grad.tolist()
        again = x.detach().clone()
        assert grid.snap(again).tolist() == held
        assert again.tolist() == x.tolist()  # not overwritten
        assert grid(again, overwrite=True).tolist() == held


@pytest.mark.parametrize(("device", "dilations"), [(84, 1), (85, 1), (87, 16)])
def test_pooling_allows_what_the_documentation_lists(device: int, dilations: int) -> None:
    ai8x.set_device(device, simulate=False, round_avg=False, verbose=False)
    step, most = (2, 4) if device == 84 else (1, 16)

    def allowed(kind: PoolingKind, size: Any, stride: Any, dilation: int) -> bool:
        return all(value in ok for _, value, ok in pool_limits(kind, size, stride, dilation))

    for kind in PoolingKind:
        least = step
        if device != 84:
            for number in range(20):
                assert allowed(kind, number, 1, 1) == (1 <= number <= most)
                assert allowed(kind, (least, number), 1, 1) == (1 <= number <= most)
                assert allowed(kind, (number, least), 1, 1) == (1 <= number <= most)
                assert allowed(kind, 2, number, 1) == (1 <= number <= most)
                assert allowed(kind, 2, (1, number), 1) == (1 <= number <= most)
                assert allowed(kind, 2, (number, 1), 1) == (1 <= number <= most)
        top = dilations if kind is PoolingKind.MAX else 1
        for number in range(20):
            assert allowed(kind, 2, 1, number) == (1 <= number <= top)


def accepted(make: Any) -> bool:
    try:
        make()
    except AssertionError:
        return False
    return True


@pytest.mark.parametrize("device", [85, 87])
def test_convolutions_allow_what_the_documentation_lists(device: int) -> None:
    ai8x.set_device(device, simulate=False, round_avg=False, verbose=False)
    for kernel, stride, padding in itertools.product(range(5), range(5), range(4)):
        ok = kernel in (1, 3) and padding <= 2
        if kernel:
            some = {"kernel_size": kernel, "stride": stride, "padding": padding}
            assert accepted(lambda s=some: ai8x.Conv2d(2, 2, **s)) == (ok and 1 <= stride <= 3)
            assert accepted(
                lambda s=some: ai8x.FusedMaxPoolConv2d(2, 2, **s)  # type: ignore[attr-defined]
            ) == (ok and stride == 1)
            assert accepted(lambda s=some: ai8x.ConvTranspose2d(2, 2, **s)) == (ok and stride == 2)
    for kernel, dilation, padding in itertools.product(range(1, 11), range(1, 10), range(4)):
        ok = kernel <= 9 and padding <= 2
        if padding or kernel > 3:
            ok = ok and (kernel - 1) * dilation < 9
        found = accepted(
            lambda k=kernel, d=dilation, p=padding: ai8x.Conv1d(2, 2, k, dilation=d, padding=p)
        )
        assert found == ok, (kernel, dilation, padding)
    for channels in (64, 65):
        for padding in (0, 1):
            found = accepted(lambda c=channels, p=padding: ai8x.Conv1d(c, 2, 3, padding=p))
            assert found == (device == 85 or channels == 64 or padding == 0)
    depthwise = accepted(lambda: ai8x.Conv2d(4, 4, 3, groups=4))
    assert depthwise == (device == 87)


@pytest.mark.parametrize("bits", [1, 2, 4, 8])
def test_parameters_are_rounded_and_limited_to_their_bits(bits: int) -> None:
    values = torch.arange(-300, 300) / 256
    limit = 2 ** (bits - 1)
    for index in (0, 1):  # weights, bias
        widths = (bits, 8) if index == 0 else (8, bits)
        parts = steps.quantize_clamp_parameters(*widths)
        found = parts[2 + index](parts[index](values))
        wanted = [
            min(max(math.floor(v * limit + 0.5), -limit), limit - 1) / limit
            for v in values.tolist()
        ]
        assert found.tolist() == wanted
    unrounded = steps.quantize_clamp_parameters(None, 0)
    assert all(torch.equal(part(values), values) for part in unrounded)


def test_histograms_say_how_many_values_lie_in_each_range() -> None:
    """Merged, no count is lost, and the edges are those of all."""
    random = np.random.default_rng(2)
    module = nn.Identity()
    module.histograms, module.measured_name = [], "it"  # type: ignore[assignment]
    for scale in (0.3, 1.0, 2.5):
        ranges._count(module, None, torch.from_numpy(random.normal(0.2, scale, 500)))
    ranges._count(module, None, torch.full((7,), 0.25))
    assert [counts.sum() for counts, _, _ in module.histograms] == [500, 500, 500, 7]
    total, edges = ranges.merged(module.histograms)  # type: ignore[arg-type]
    assert total.shape == edges.shape == (ranges.BINS + 1,)
    assert total.sum() == pytest.approx(1507, abs=1e-6)
    lows, highs = ([one[place] for one in module.histograms] for place in (1, 2))
    assert (edges[0], edges[-1]) == (min(lows), max(highs))
    with pytest.raises(ranges.NotFiniteError, match="it"):
        ranges._count(module, None, torch.tensor([1.0, math.nan]))
    with pytest.raises(ranges.NotFiniteError, match="it"):
        ranges._count(module, None, torch.tensor([-math.inf, 0.0]))


@pytest.mark.parametrize("seed", range(8))
def test_range_of_activations_has_the_least_squared_error(seed: int) -> None:
    random = np.random.default_rng(seed)
    values = np.sort(random.normal(0, 2.0 ** random.integers(-6, 6), ranges.BINS + 1))
    counts = random.integers(0, 5, ranges.BINS + 1).astype(np.float64)
    counts[0] = 0
    kept = values[counts > 0]
    first = math.ceil(math.log2(np.abs(kept).max()))

    def error(t: int) -> float:
        stored = np.clip(np.rint(values * 128 / 2.0**t), -128, 127) * 2.0**t / 128
        return float((counts * (stored - values) ** 2).sum())

    wanted = min(range(first, first - 5, -1), key=error)
    assert ranges.best_exponent(counts, values, 1e9) == wanted


@pytest.mark.parametrize("scale", [1.0, 0.01])
def test_values_far_from_the_mean_do_not_count(scale: float) -> None:
    """Zeros are counted apart, and do not move the mean."""
    edges = scale * np.arange(12.0)
    counts = np.array([9, 0, 0, 0, 5, 8, 5, 0, 0, 0, 1, 1.0])
    middles = np.concatenate([[0.0], edges[:-1] + scale / 2])
    inner = np.repeat(middles[1:], counts[1:].astype(int))
    mean, deviation = inner.mean(), inner.std()
    for z in (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0):
        found = ranges.without_outliers(counts, edges, z)
        near = np.abs(middles - mean) <= z * deviation
        assert found.tolist() == np.where(near, counts, 0).tolist()
    nothing = np.zeros(12)
    assert ranges.without_outliers(nothing, edges, 1.0) is nothing


@pytest.mark.parametrize("bits", [1, 2, 4, 8])
@pytest.mark.parametrize("power", [-40, -17, -15, -3, 0, 9, 15, 18, 40])
def test_range_of_any_weights_is_one_that_an_output_shift_expresses(bits: int, power: int) -> None:
    torch.manual_seed(power % 7)
    weight, bias = torch.randn(9) * 2.0**power, torch.randn(3) * 2.0**power
    shifts = range(max(-15, bits - 23), min(15, 7 + bits) + 1)
    for some in (bias, None):
        found = best_range(weight, some, bits)
        assert found in shifts
        largest = max(float(p.abs().max()) for p in (weight, some) if p is not None)
        errors = {r: squared_error(weight, some, bits, r) for r in shifts}
        first = min(max(math.ceil(math.log2(largest)), shifts[0]), shifts[-1])
        last = max(min(math.ceil(math.log2(float(weight.abs().max()))), shifts[-1]) - 5, shifts[0])
        assert errors[found] == min(errors[r] for r in shifts if min(first, last) <= r <= first)
    assert best_range(torch.zeros(4), torch.zeros(2), bits) == 0


def small_flows() -> Iterator[tuple[dict[str, int], list[set[str]]]]:
    names = "abcd"
    pairs = [set(pair) for pair in itertools.combinations([*names, "in"], 2)]
    random = np.random.default_rng(4)
    for _ in range(200):
        exponents = dict(zip(names, random.integers(-3, 4, 4).tolist(), strict=True))
        chosen = random.permutation(len(pairs))[: random.integers(0, 4)]
        yield exponents, [pairs[number] for number in chosen]


def test_layers_that_meet_have_the_largest_of_their_ranges() -> None:
    from ai8xtools.layers.scales import _INPUT

    for exponents, groups in small_flows():
        layers: Any = {name: Namespace(activation_threshold=t) for name, t in exponents.items()}
        meetings = [{_INPUT if name == "in" else name for name in group} for group in groups]
        found = agreed_exponents(Flow(layers, meetings=meetings))
        for name in exponents:
            together = {name}
            for _ in range(5):  # until nothing is added any more
                for group in meetings:
                    together |= group if group & together else set()
            wanted = 0 if _INPUT in together else max(exponents[n] for n in together)
            assert found[name] == wanted


def test_damage_of_weights_and_outputs_is_that_of_their_definition() -> None:
    torch.manual_seed(1)
    layer = ai8x.FusedConv2dReLU(3, 4, 3, padding=1, bias=True)  # type: ignore[attr-defined]
    with torch.no_grad():
        layer.op.weight.normal_(0, 0.4)
        layer.op.bias.uniform_(-0.2, 0.2)
    ai8x.initiate_qat(layer, {"weight_bits": 4})
    layer.use_range(-1)
    layer.eval()
    held = layer.op.weight.detach() * 2 * 8  # range 1/2, 4 bits
    stored = (held + 0.5).floor().clamp(-8, 7)
    ratio = 10 * math.log10(float(held.square().sum() / (stored - held).square().sum()))
    found = weight_damage(layer)
    assert found.snr_db == pytest.approx(ratio, rel=1e-4)
    outside = ((held + 0.5).floor() > 7) | ((held + 0.5).floor() < -8)
    assert found.clipped == pytest.approx(100 * float(outside.float().mean()))

    x = torch.rand(2, 3, 6, 6) * 2 - 1
    output = layer(x).detach()
    op = layer.op
    with torch.no_grad():
        wanted = torch.nn.functional.conv2d(x, op.weight, op.bias, padding=1).relu()
    ratio = 10 * math.log10(float(wanted.square().sum() / (output - wanted).square().sum()))
    clipped = 100 * float((wanted * 128 >= 127.5).float().mean())
    damage = output_damage(layer, x, output)
    assert damage.snr_db == pytest.approx(ratio, rel=1e-4)
    assert damage.clipped == pytest.approx(clipped)
    assert 0 < clipped < 100


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_large_tensors_are_rounded_part_by_part(
    monkeypatch: pytest.MonkeyPatch, layout: torch.memory_format
) -> None:
    x = torch.randn(7, 3, 4, 5).to(memory_format=layout)
    grid = Grid("half up", -128, 127, 128.0, 1 / 128)
    whole = grid.snap(x)
    monkeypatch.setattr("ai8xtools.layers.rounding._CACHED", 150)
    parts = grid.snap(x)
    assert torch.equal(parts, whole) and parts.stride() == whole.stride()
    assert torch.equal(grid(x, overwrite=True), whole) and torch.equal(x, whole)


def test_twins_of_onnx_round_like_the_steps() -> None:
    from ai8xtools.layers import elementary
    from ai8xtools.layers.onnx_twins import ClampONNX, RoundingONNX, exact_twin

    x = torch.arange(-400, 401) / 256
    for rounding, steps_, unit in itertools.product(ROUNDED, (1.0, 8.0), (1.0, 0.125)):
        grid = Grid(rounding, steps=steps_, unit=unit)  # type: ignore[arg-type]
        wanted = x * steps_ * unit if rounding == "none" else grid.snap(x)
        assert torch.equal(RoundingONNX(grid)(x), wanted)
    for step in (elementary.Quantize(4), elementary.Round(), elementary.RoundQat(),
                 elementary.FloorQat(), elementary.AvgPoolFloor(), elementary.Floor()):  # fmt: skip
        assert torch.equal(exact_twin(step)(x), step(x)), type(step)
    for low, high in ((None, None), (-1.0, None), (None, 0.5), (-0.5, 0.25)):
        found = ClampONNX(low, high)(x).tolist()
        ends = -math.inf if low is None else low, math.inf if high is None else high
        assert found == [min(max(one, ends[0]), ends[1]) for one in x.tolist()]


def test_what_is_read_by_several_layers_is_scaled_once_and_only_at_the_end() -> None:
    """The network computes what it did before, whatever its layers are divided by."""
    torch.manual_seed(3)

    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = ai8x.Conv2d(2, 3, 3, padding=1, bias=True)
            self.b = ai8x.Conv2d(3, 3, 3, padding=1, bias=True)
            self.add = ai8x.Add()
            self.c = ai8x.Conv2d(3, 2, 1, bias=True)

        def forward(self, x: Tensor) -> Any:
            x = self.a(x)
            y = self.add(x, self.b(x))
            return self.c(y), y

    model = Two().eval()
    x = torch.rand(2, 2, 5, 5) - 0.5
    from ai8xtools.layers.scales import apply_scales
    from ai8xtools.layers.training_steps import use_thresholds

    use_thresholds(model)
    with torch.no_grad():
        for layer in (model.a, model.b, model.c):
            layer.op.weight.normal_(0, 0.1)
        wanted = model(x)
        for layer, t in ((model.a, 1), (model.b, -2), (model.add, 2), (model.c, 1)):
            layer.activation_threshold.fill_(t)
        apply_scales(model)
        found = model(x)
    assert [int(m.activation_threshold) for m in (model.a, model.b, model.c)] == [2, 0, -1]
    assert torch.allclose(found[0], wanted[0], atol=1e-6)
    assert torch.allclose(found[1], wanted[1] / 4, atol=1e-6)  # c reads it as well


@pytest.mark.parametrize("bits", [1, 2, 8])
@torch.no_grad()
def test_corrected_biases_make_good_for_what_rounding_takes_from_the_mean(bits: int) -> None:
    from ai8xtools.layers.bias_correction import correct_biases, layers_in_order

    torch.manual_seed(6)

    def made() -> Any:
        conv = ai8x.Conv2d(2, 3, 3, padding=1, bias=True)
        return nn.Sequential(conv, ai8x.Conv2d(3, 2, 1, bias=False)).train()

    trained, model = made(), made()
    trained[0].op.weight.normal_(0, 0.2)
    model.load_state_dict(trained.state_dict())
    ai8x.initiate_qat(model, {"weight_bits": bits})
    ai8x.fit_ranges(model)
    inputs = [torch.rand(4, 2, 5, 5) - 0.2 for _ in range(2)]
    before = model[0].op.bias.clone()
    correct_biases(model, trained, inputs, widest=bits - 1)
    assert torch.equal(model[0].op.bias, before)
    correct_biases(model, trained, inputs, widest=bits)
    unit = 2.0 ** (int(model[0].range_exponent) - bits + 1)
    limit = 2 ** (bits - 1)
    held = (model[0].op.weight / unit + 0.5).floor().clamp(-limit, limit - 1) * unit
    x = torch.cat(inputs)
    lost = torch.nn.functional.conv2d(x, model[0].op.weight - held, padding=1).mean((0, 2, 3))
    assert torch.allclose(model[0].op.bias, before + lost, atol=1e-5)
    assert model.training
    assert trained.training
    assert [name for name, _ in layers_in_order(model, x, bits)] == ["0"]


@pytest.mark.parametrize("simulate", [False, True])
def test_quantize_rounds_to_its_bits_or_divides_by_them(simulate: bool) -> None:
    from ai8xtools.layers.elementary import Quantize

    ai8x.set_device(85, simulate=simulate, round_avg=False, verbose=False)
    x = torch.arange(-600, 600) / 8 if simulate else torch.arange(-600, 600) / 512
    for bits, extra in itertools.product((-6, -2, 0, 1, 2, 4, 8), (0, 1, -1, -4)):
        found = Quantize(bits, extra)(x).tolist()
        if simulate:
            by = 1.0 if bits == 1 else 2.0 ** (bits + extra - 1)
            wanted = [math.floor(one / by + 0.5) for one in x.tolist()]
        else:
            steps_ = 2.0 ** (bits - extra - 1)
            wanted = [math.floor(one * steps_ + 0.5) * 2.0 ** (1 - bits) for one in x.tolist()]
        assert found == wanted


def test_output_shift_is_the_exponent_of_the_least_power_of_two_that_holds() -> None:
    from ai8xtools.layers.elementary import output_shift_of

    for exponent in range(-20, 21):
        for value in (2.0**exponent, 2.0**exponent * 1.25, 2.0**exponent * 1.75):
            least = math.ceil(math.log2(value))
            assert output_shift_of(torch.tensor(value)) == min(max(least, -15), 15)


def test_optimizer_that_is_made_anew_keeps_the_state_of_what_is_left() -> None:
    torch.manual_seed(1)
    model = nn.Sequential(
        ai8x.FusedConv2dBNReLU(2, 3, 3, bias=True),  # type: ignore[attr-defined]
        ai8x.Conv2d(3, 4, 1, bias=True),
    )
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    optimizer.param_groups[0]["lr"] = 0.025
    model(torch.rand(2, 2, 5, 5)).square().sum().backward()
    optimizer.step()
    momenta = {id(p): optimizer.state[p].get("momentum_buffer") for p in model.parameters()}
    ai8x.fuse_bn_layers(model)
    renewed = ai8x.update_optimizer(model, optimizer)
    assert renewed.param_groups[0]["lr"] == 0.025
    assert renewed.param_groups[0]["momentum"] == 0.9
    kept = [p for p in renewed.param_groups[0]["params"] if p.requires_grad]
    assert [id(p) for p in kept] == [id(p) for p in model.parameters() if p.requires_grad]
    found = renewed.state[model[0].op.weight]["momentum_buffer"]
    assert torch.equal(found, momenta[id(model[0].op.weight)])
