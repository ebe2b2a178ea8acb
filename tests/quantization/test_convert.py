"""What quantization does to the entries of a checkpoint."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ai8xtools.checkpoint import Checkpoint
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.quantization import ClipMethod, QuantizationOptions, Quantized, quantize_checkpoint
from ai8xtools.quantization.options import Calibration, LayerIntegers

WEIGHTS = np.array([[0.5, -0.25], [0.125, 0.0]], np.float32)
BIAS = np.array([0.25, -0.5], np.float32)


def checkpoint(**state: Any) -> Checkpoint:
    """Return a checkpoint; `__` in names stands for a dot."""
    tensors = {
        name.replace("__", "."): np.asarray(
            value, np.float32 if np.asarray(value).dtype.kind == "f" else None
        )
        for name, value in state.items()
    }
    return Checkpoint({"state_dict": tensors, "epoch": 3, "extras": {"best_top1": 90.0}})


def quantize(original: Checkpoint, **options: Any) -> dict[str, Any]:
    return result(original, **options).checkpoint.state_dict


def result(original: Checkpoint, **options: Any) -> Quantized:
    return quantize_checkpoint(original, QuantizationOptions(**options))


def test_layer_is_scaled_by_the_power_of_two_of_its_range() -> None:
    state = quantize(checkpoint(conv__op__weight=WEIGHTS, conv__op__bias=BIAS))
    assert state["conv.op.weight"].tolist() == [[127, -64], [32, 0]]
    assert state["conv.op.bias"].tolist() == [64 * 128, -128 * 128]
    assert state["conv.output_shift"].tolist() == [-1]
    assert list(state) == [
        "conv.op.weight", "conv.op.bias", "conv.weight_bits", "conv.bias_bits",
        "conv.output_shift",
    ]  # fmt: skip
    assert all(tensor.dtype == np.float32 for tensor in state.values())


def test_bias_widens_the_range() -> None:
    state = quantize(checkpoint(a__op__weight=WEIGHTS, a__op__bias=np.array([1.5, 0.0])))
    assert state["a.output_shift"].tolist() == [1]
    assert state["a.op.weight"][0, 0] == 32


def test_stored_quantile_narrows_the_range() -> None:
    weights = np.array([[1.0, 0.25, 0.25, 0.25]])
    state = quantize(checkpoint(a__shift_quantile=[0.5], a__op__weight=weights))
    assert state["a.output_shift"].tolist() == [-2]
    assert state["a.op.weight"].tolist() == [[127, 127, 127, 127]]
    assert state["a.shift_quantile"].tolist() == [0.5]


@pytest.mark.parametrize("method", [None, *ClipMethod])
def test_report_tells_of_a_quantile_only_if_it_made_the_range(method: ClipMethod | None) -> None:
    plain = checkpoint(a__op__weight=WEIGHTS, a__op__bias=BIAS)
    stored = checkpoint(a__shift_quantile=[0.5], a__op__weight=WEIGHTS, a__op__bias=BIAS)
    for original, told in ((plain, False), (stored, method is None)):
        done = result(original, clip_method=method, scale=0.5, stddev=2.0)
        assert [one.stored_quantile for one in done.tensors] == [told, told]


@pytest.mark.parametrize("exponent", [-3, 0, 2])
@pytest.mark.parametrize("bits", [2, 4, 8])
def test_stored_range_is_that_of_weights_and_its_bias_has_eight_bits(
    exponent: int, bits: int
) -> None:
    """Weights reach from -2^exponent to it; the bias, in the same steps, has 8 bits."""
    steps = np.array([[-(2 ** (bits - 1)), 1], [0, -1]])
    bias = np.array([-128, 127])
    done = result(checkpoint(
        a__range_exponent=[exponent], a__weight_bits=[bits],
        a__op__weight=np.ldexp(steps, exponent - bits + 1).astype(float),
        a__op__bias=np.ldexp(bias, exponent - bits + 1).astype(float),
    ))  # fmt: skip
    state = done.checkpoint.state_dict
    assert np.array_equal(state["a.op.weight"], steps)
    assert np.array_equal(state["a.op.bias"], bias * 2.0**bits / 2)
    assert state["a.output_shift"].tolist() == [exponent] and state["a.bias_bits"].tolist() == [8]
    assert [one.bits for one in done.tensors] == [bits, 8]


@pytest.mark.parametrize("bits", [1, 2, 4, 8])
def test_calibrated_integers_are_stored_as_they_are(bits: int) -> None:
    steps, bias = np.float32([[-(2 ** (bits - 1)), 0], [0, -1]]), np.float32([-128, 127])
    layer = LayerIntegers(bits, 3, steps, bias)
    done = result(checkpoint(a__op__weight=WEIGHTS, a__op__bias=BIAS),
                  calibration=Calibration({"a": layer}))  # fmt: skip
    state = done.checkpoint.state_dict
    assert np.array_equal(state["a.op.weight"], steps)
    assert np.array_equal(state["a.op.bias"], bias * 2.0**bits / 2)
    assert [one.gain for one in done.tensors] == [1, 1]  # the shift undoes the whole factor
    names = ("weight_bits", "bias_bits", "output_shift")
    assert [state[f"a.{name}"].tolist() for name in names] == [[bits], [8], [3]]
    assert [one.bits for one in done.tensors] == [bits, 8]


def test_older_names_of_two_parts() -> None:
    state = quantize(checkpoint(fc__weight=WEIGHTS, fc__bias=BIAS))
    assert state["fc.bias"].tolist() == [64 * 128, -128 * 128]
    assert {"fc.weight_bits", "fc.bias_bits", "fc.output_shift"} < set(state)


def test_bookkeeping_keeps_its_place_and_type() -> None:
    original = checkpoint(
        scalar=1.0, a__output_shift=[0.0], a__weight_bits=[4], a__quantize_activation=[False],
        a__adjust_output_shift=[True], a__op__weight=WEIGHTS, a__w_zero_point=[0.0],
        a__base_b_q=[1.0], pool__adjust_output_shift=[True],
    )  # fmt: skip
    state = quantize(original)
    removed = {"a.w_zero_point", "a.base_b_q"}
    assert list(state) == [name for name in original.state_dict if name not in removed]
    assert (state["a.weight_bits"].dtype, state["a.weight_bits"].tolist()) == (np.int64, [4])
    assert state["a.op.weight"].tolist() == [[7, -4], [2, 0]]
    assert state["a.quantize_activation"].tolist() == [1.0]
    assert state["pool.adjust_output_shift"].tolist() == [0.0]
    assert "a.op.weight" in original.state_dict and original.state_dict["a.output_shift"][0] == 0


def test_bits_come_from_description_then_checkpoint_then_option() -> None:
    original = checkpoint(
        a__op__weight=WEIGHTS, b__weight_bits=[2], b__op__weight=WEIGHTS, c__op__weight=WEIGHTS,
        d__op__weight=WEIGHTS,
    )  # fmt: skip
    done = result(original, layer_bits=[1, None, None], default_bits=4)
    assert [report.bits for report in done.tensors] == [1, 2, 4]
    state = done.checkpoint.state_dict
    assert np.array_equal(state["d.op.weight"], WEIGHTS), "beyond the description: untouched"
    assert state["a.weight_bits"].tolist() == [8]


def test_masks_receive_the_shift_when_the_checkpoint_has_masks() -> None:
    original = checkpoint(a__op__weight=WEIGHTS).with_entries(
        compression_sched={"masks_dict": {"a.op.weight": None}, "other": 1}
    )
    done = result(original).checkpoint
    assert done.masks is not None
    assert {name: None if m is None else m.tolist() for name, m in done.masks.items()} == {
        "a.op.weight": None, "a.weight_bits": [8], "a.output_shift": [-1],
    }  # fmt: skip
    assert done.entries["compression_sched"]["other"] == 1
    assert original.masks == {"a.op.weight": None}


@pytest.mark.parametrize(
    ("options", "notes", "first"),
    [
        ({"clip_method": ClipMethod.SCALE, "scale": 0.5},
         {"clipping_method": "SCALE", "clipping_scale": 0.5}, 32),
        ({"clip_method": ClipMethod.MAX}, {"clipping_method": "MAX"}, 32),
        ({"clip_method": ClipMethod.AVGMAX}, {"clipping_method": "AVGMAX"}, 20),
        ({"clip_method": ClipMethod.STDDEV, "stddev": 9.0},
         {"clipping_method": "STDDEV", "clipping_nstds": 9.0}, 32),
        ({}, {"clipping_method": "MAX_BIT_SHIFT"}, 127),
    ],
)  # fmt: skip
def test_method_scales_weights_and_bias_and_is_noted(
    options: dict[str, Any], notes: dict[str, Any], first: int
) -> None:
    original = checkpoint(a__output_shift=[5.0], a__op__weight=WEIGHTS, a__op__bias=BIAS)
    done = result(original, **options).checkpoint
    assert done.extras == {"best_top1": 90.0, **notes}
    state = done.state_dict
    assert state["a.op.weight"][0, 0] == first
    assert (state["a.output_shift"][0] == 5) == bool(options), "only the shift method sets it"
    scale = first / 128 / 0.5 if options else 2
    assert abs(state["a.op.bias"][1] / 128 + 64 * scale) < 1


def test_report_measures_noise_and_clipping() -> None:
    weight, bias = result(checkpoint(a__op__weight=WEIGHTS, a__op__bias=BIAS)).tensors
    assert (weight.name, weight.bits, weight.shift) == ("a.op.weight", 8, -1)
    assert [float(x) for x in (weight.factor, weight.low, weight.high)] == [256, -0.25, 0.5]
    assert weight.clipped == 1
    noise, signal = 1.0, 128**2 + 64**2 + 32**2
    assert weight.snr_db == pytest.approx(10 * np.log10(signal / noise))
    assert bias.snr_db == np.inf


@pytest.mark.parametrize(
    ("state", "code"),
    [
        ({"a__op__weight": WEIGHTS, "a__weight_bits": [3.0]}, "E701"),
        ({"a__op__weight": WEIGHTS, "a__w_zero_point": [1.0]}, "E516"),
        ({"a__op__weight": WEIGHTS, "a__weight_bits": [8, 8]}, "E705"),
        ({"a__op__weight": WEIGHTS, "a__shift_quantile": [1.5]}, "E705"),
        ({"a__op__weight": np.zeros((0, 3))}, "E705"),
        ({"a__op__weight": np.array([True])}, "E705"),
        ({"a__output_shift": [0.0]}, "E705"),
        ({"a__op__weight": np.full((2, 2), 2e18)}, "E705"),
        ({"a__op__weight": WEIGHTS, "a__op__bias": np.full(2, np.inf)}, "E705"),
    ],
)
def test_checkpoint_that_cannot_be_quantized(state: dict[str, Any], code: str) -> None:
    with pytest.raises(InputError) as caught:
        quantize(checkpoint(**state))
    assert caught.value.code == code


@pytest.mark.parametrize(
    "options",
    [
        {"scale": -1.0},
        {"stddev": float("nan")},
        {"scale": 2.0**61},
        {"default_bits": 3},
        {"layer_bits": [8, 5]},
    ],
)
def test_impossible_options(options: dict[str, Any]) -> None:
    with pytest.raises(InputError) as caught:
        QuantizationOptions(**options)
    assert caught.value.code in ("E701", "E516")


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("bits", [1, 8])
@pytest.mark.parametrize("method", [None, *ClipMethod])
@pytest.mark.parametrize("magnitude", [0, 1e-40, 2.0**60])
def test_extreme_weights_give_integers(
    magnitude: float, method: ClipMethod | None, bits: int
) -> None:
    weights = np.array([[magnitude, -magnitude], [0.0, 0.0]])
    original = checkpoint(a__op__weight=weights, a__op__bias=np.array([0.0, 0.25]))
    options = {"clip_method": method, "default_bits": bits, "scale": 2.0**60}
    done = result(original, **options)
    stored = done.checkpoint.state_dict["a.op.weight"]
    assert np.array_equal(stored, np.rint(stored))
    assert -(2 ** (bits - 1)) <= stored.min() <= stored.max() < 2 ** (bits - 1)


def test_layer_that_computes_nothing_is_mentioned() -> None:
    zero, tiny = np.zeros((2, 2)), np.full((2, 2), 1e-12)
    done = result(checkpoint(a__op__weight=zero, b__op__weight=WEIGHTS, c__op__weight=tiny))
    assert len(done.warnings) == 2
    assert done.warnings[0].startswith("a.op.weight: all weights are zero")
    assert done.warnings[1].startswith(
        "c.op.weight: all weights become zero, the largest was 1e-12"
    )


def test_doubtful_input_is_mentioned() -> None:
    original = checkpoint(a__op__weight=WEIGHTS)
    assert result(original).warnings == ()
    integers = result(original).checkpoint
    with pytest.raises(InputError, match="already quantized") as caught:
        result(integers)
    assert caught.value.code == "E707"
    of_others = checkpoint(a__op__weight=integers.state_dict["a.op.weight"])
    assert "already quantized" in result(of_others).warnings[0]
    fewer = result(original, layer_bits=(4,)).warnings
    assert len(fewer) == 1 and "a (4 bits, named 8)" in fewer[0]
    unfused = checkpoint(a__op__weight=WEIGHTS, a__bn__running_mean=[0.0, 0.0])
    assert "batchnormfuser.py" in result(unfused).warnings[0]
    prepared = checkpoint(a__weight_bits=[8], a__op__weight=WEIGHTS)
    assert result(prepared).warnings == ()
    assert "with QAT; MAX changes" in result(prepared, clip_method=ClipMethod.MAX).warnings[0]
    without = Checkpoint({"state_dict": original.state_dict})
    assert "extras" in result(without).warnings[0]


LATER = {"a__output_shift": [0.0], "a__clamp_activation": [True], "a__final_scale": 0.0}


@pytest.mark.parametrize(
    ("threshold", "bits", "shift", "warned"),
    [(2.0, 8, -3, False), (-2.0, 8, 1, False), (30.0, 8, -15, True), (-9.0, 2, 8, False),
     (-11.0, 2, 9, True)],
)  # fmt: skip
def test_threshold_is_part_of_the_output_shift(
    threshold: float, bits: int, shift: int, warned: bool
) -> None:
    found = result(
        checkpoint(**LATER, a__activation_threshold=threshold, a__weight_bits=[bits],
                   a__op__weight=WEIGHTS)
    )  # fmt: skip
    state = found.checkpoint.state_dict
    assert state["a.output_shift"].tolist() == [shift]
    assert state["a.activation_threshold"] == threshold
    assert any("limited to what the accelerator holds" in line for line in found.warnings) == warned


@pytest.mark.parametrize("value", [1.5, np.nan, np.inf, 1e9])
def test_threshold_that_is_no_exponent_is_refused(value: float) -> None:
    with pytest.raises(InputError, match=r"a\.activation_threshold"):
        quantize(checkpoint(**LATER, a__activation_threshold=value, a__op__weight=WEIGHTS))


def test_methods_that_leave_out_thresholds_are_refused() -> None:
    original = checkpoint(**LATER, a__activation_threshold=1.0, a__op__weight=WEIGHTS)
    with pytest.raises(InputError, match="MAX does not take into account") as info:
        quantize(original, clip_method=ClipMethod.MAX)
    assert info.value.code == "E711"


def test_entries_of_the_future_are_named() -> None:
    original = checkpoint(a__output_shift=[0.0], a__op__weight=WEIGHTS, a__new_range=[1.0])
    (warning,) = [line for line in result(original).warnings if line.startswith("a.")]
    assert warning.startswith("a.new_range")


def test_activations_without_limits_are_warned_of() -> None:
    state = {**LATER, "a__clamp_activation": [False], "a__activation_threshold": 0.0}
    warnings = result(checkpoint(**state, a__op__weight=WEIGHTS)).warnings
    assert any("activations were not limited" in line for line in warnings)
