"""What resolving infers from weights, sample and neighbours, and what it refuses."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from ai8xtools.diagnostics import Diagnostic, DiagnosticError, Place, Severity
from ai8xtools.synthesis.layout import InputPort
from ai8xtools.synthesis.mapping import MappedNetwork
from ai8xtools.synthesis.network import Activation
from ai8xtools.synthesis.options import ResolveOptions
from ai8xtools.synthesis.parse import parse
from ai8xtools.synthesis.resolve import resolve
from ai8xtools.synthesis.resolve.integers import complain_unquantized
from ai8xtools.synthesis.resolve.sample import sample_path
from device import MAX78000, MAX78002, Chip
from device.channels import channels_per_pass
from tests.conftest import ROOT
from tests.synthesis.networks import (
    build,
    describe,
    files,
    line_of,
    mask,
    resolved,
    sample,
    weights,
)
from tests.synthesis.stages import check

CONV: dict[str, Any] = {
    "processors": 7,
    "op": "Conv2d",
    "kernel_size": "3x3",
    "pad": 1,
    "activate": "ReLU",
}


def npy_file(array: NDArray[Any]) -> bytes:
    """Return the content of a NumPy file."""
    content = io.BytesIO()
    np.save(content, array)
    return content.getvalue()


LINEAR: dict[str, Any] = {
    "processors": 7,
    "op": "Linear",
    "flatten": True,
    "activate": "none",
}


def refused(call: Any, *args: Any, **options: Any) -> Diagnostic:
    """Return the one complaint of a call."""
    with pytest.raises(DiagnosticError) as caught:
        call(*args, **options)
    (found,) = [d for d in caught.value.diagnostics if d.severity == "error"]
    return found


# Inference


def test_channels_and_sizes_follow_from_weights_and_sample(tmp_path: Path) -> None:
    text = describe(
        CONV,
        {**CONV, "processors": mask(5), "max_pool": 2, "pool_stride": 2, "pad": 0},
        {**LINEAR, "processors": mask(2)},
    )
    kernels = [weights(5, 3, 3, 3), weights(2, 5, 3, 3), weights(10, 2 * 2 * 3)]
    network, warnings = build(tmp_path, text, sample(3, 8, 10), kernels)
    assert warnings == ()
    first, second, third = network.layers
    assert (first.in_channels, first.in_dim, first.out_channels, first.out_dim) == (
        3, (8, 10), 5, (8, 10),
    )  # fmt: skip
    assert (second.in_dim, second.pooled_dim, second.out_dim) == ((8, 10), (4, 5), (2, 3))
    assert (third.in_channels, third.flat_channels, third.out_dim) == (2, 12, (1, 1))
    assert network.order == (0, 1, 2)
    assert network.final is third
    assert third.next_layer is None and first.next_layer == 1


def test_one_dimensional_data_has_one_column(tmp_path: Path) -> None:
    layer = {**CONV, "op": "Conv1d", "kernel_size": 5, "max_pool": 2, "pool_stride": 2, "pad": 2}
    network, _ = build(tmp_path, describe(layer), sample(3, 20), [weights(4, 3, 5)])
    (resolved,) = network.layers
    assert (resolved.in_dim, resolved.pooled_dim, resolved.out_dim) == ((20, 1), (10, 1), (10, 1))
    assert resolved.kernel == (5, 1) and resolved.pad == (2, 0)
    assert resolved.pooling.window == (2, 1) and resolved.pooling.stride == (2, 1)


def test_output_processors_come_from_the_next_layer_else_from_processor_0(tmp_path: Path) -> None:
    text = describe(CONV, {**CONV, "processors": mask(5, 4)})
    kernels = [weights(5, 3, 3, 3), weights(6, 5, 3, 3)]
    network, _ = build(tmp_path, text, sample(3, 4, 4), kernels)
    assert [layer.output_processors for layer in network.layers] == [mask(5, 4), mask(6)]


def test_output_map_wins_over_output_processors_of_the_last_layer(tmp_path: Path) -> None:
    own = {**CONV, "output_processors": mask(2, 8)}
    data, kernels = sample(3, 4, 4), [weights(2, 3, 3, 3)]
    network, _ = build(tmp_path, describe(own), data, kernels)
    assert network.final.output_processors == mask(2, 8)
    text = describe(own, output_map="0x0000.0000.0000.3000")
    network, _ = build(tmp_path, text, data, kernels)
    assert network.final.output_processors == 0x3000


@pytest.mark.parametrize(
    ("channels", "share"), [(1, 1), (63, 63), (64, 64), (65, 36), (100, 52), (128, 64), (1024, 64)]
)
def test_channels_of_a_pass_are_equal_shares_in_fours(channels: int, share: int) -> None:
    assert channels_per_pass(channels) == share


def test_outputs_of_a_wide_last_layer_are_packed_from_processor_0(tmp_path: Path) -> None:
    network, _ = build(tmp_path, describe(CONV), sample(3, 2, 2), [weights(100, 3, 3, 3)])
    assert network.final.output_processors == mask(52)


@pytest.mark.parametrize(("bits", "implicit"), [(8, 0), (4, 4), (2, 6), (1, 7)])
def test_narrow_weights_shift_by_what_their_width_lacks(
    tmp_path: Path, bits: int, implicit: int
) -> None:
    layer = {**CONV, "quantization": bits, "output_shift": -2}
    kernels = [weights(2, 3, 3, 3, bits=bits)]
    network, _ = build(tmp_path, describe(layer), sample(3, 4, 4), kernels)
    assert network.final.weight_bits == bits
    assert network.final.shift == implicit - 2
    np.testing.assert_array_equal(network.final.weights, kernels[0])


def test_offsets_default_to_where_the_layer_before_wrote(tmp_path: Path) -> None:
    text = describe({**CONV, "out_offset": 0x2000}, CONV)
    kernels = [weights(3, 3, 3, 3), weights(3, 3, 3, 3, seed=5)]
    network, _ = build(tmp_path, text, sample(3, 4, 4), kernels, input_offset=0x80)
    assert [layer.in_offset for layer in network.layers] == [0x80, 0x2000]


def test_convolutions_are_padded_by_one_unless_told_and_linear_layers_are_not(
    tmp_path: Path,
) -> None:
    text = describe({**CONV, "pad": None}, {**LINEAR, "processors": mask(2)})
    kernels = [weights(2, 3, 3, 3), weights(4, 2 * 4 * 4)]
    network, _ = build(tmp_path, text, sample(3, 4, 4), kernels)
    assert [layer.pad for layer in network.layers] == [(1, 1), (0, 0)]


def test_transposed_convolution_doubles_the_size(tmp_path: Path) -> None:
    layer = {**CONV, "op": "ConvTranspose2d"}
    network, _ = build(tmp_path, describe(layer), sample(3, 4, 5), [weights(2, 3, 3, 3)])
    (resolved,) = network.layers
    assert resolved.stride == (2, 2) and resolved.output_pad == 1 and resolved.out_dim == (8, 10)


def test_named_sources_add_their_channels_and_operands_share_them(tmp_path: Path) -> None:
    text = describe(
        {**CONV, "name": "a"},
        {**CONV, "processors": mask(4), "name": "b"},
        {**CONV, "processors": mask(9), "in_sequences": "[A, b]", "in_offset": 0},
        {"processors": mask(5), "op": "add", "in_sequences": "[b, 1]", "in_offset": 0},
    )
    kernels = [weights(4, 3, 3, 3), weights(5, 4, 3, 3), weights(5, 9, 3, 3)]
    network, _ = build(tmp_path, text, sample(3, 4, 4), kernels)
    assert network.layers[2].in_channels == 9 and network.layers[2].sources == (0, 1)
    assert (network.layers[3].in_channels, network.layers[3].operands) == (5, 2)


def test_element_wise_first_layer_splits_the_sample(tmp_path: Path) -> None:
    layer = {"processors": 7, "op": "sub"}
    network, _ = build(tmp_path, describe(layer), sample(6, 4, 4))
    assert (network.first.in_channels, network.first.operands) == (3, 2)
    assert network.first.weights is None and network.first.weight_bits == 0


def test_input_as_source_is_the_sample(tmp_path: Path) -> None:
    text = describe(
        {**CONV, "out_offset": 0x4000},
        {**CONV, "in_sequences": "input", "in_offset": 0, "out_offset": 0x4000},
    )
    kernels = [weights(9, 3, 3, 3), weights(2, 3, 3, 3)]
    network, _ = build(tmp_path, text, sample(3, 4, 4), kernels)
    assert network.layers[1].sources == (-1,) and network.layers[1].in_channels == 3


def test_stated_in_dim_reshapes_the_data(tmp_path: Path) -> None:
    text = describe(CONV, {**CONV, "processors": mask(2), "in_dim": (2, 8)})
    kernels = [weights(2, 3, 3, 3), weights(2, 2, 3, 3)]
    network, _ = build(tmp_path, text, sample(3, 4, 4), kernels)
    assert network.layers[1].out_dim == (2, 8)


def test_layers_keep_the_places_of_their_keys(tmp_path: Path) -> None:
    text = describe({**CONV, "name": "stem"})
    network, _ = build(tmp_path, text, sample(3, 4, 4), [weights(2, 3, 3, 3)])
    line, column = line_of(text, "pad")
    assert str(network.first.place_of("groups", "pad")) == f"net.yaml:{line}:{column}"
    said = str(network.first.diagnostic("E999", "wrong", "pad", "mend it"))
    assert said == f"net.yaml:{line}:{column}: error: layer 0 (stem): wrong [E999]\n  mend it"


# Options


def two_layers(folder: Path, chip: Chip = MAX78000, **options: Any) -> MappedNetwork:
    """Resolve two convolutions with biases: 3 -> 4 -> 2 channels, 4x4 pixels."""
    text = describe(CONV, {**CONV, "processors": mask(4), "activate": "none"})
    kernels = [weights(4, 3, 3, 3), weights(2, 4, 3, 3)]
    biases = [np.arange(1, 5), np.arange(1, 3)]
    return build(folder, text, sample(3, 4, 4), kernels, biases, chip, **options)[0]


def test_stop_after_cuts_the_network_and_keeps_the_map_of_the_next_slot(tmp_path: Path) -> None:
    network = two_layers(tmp_path, stop_after=0)
    assert network.order == (0,) and network.final.index == 0
    assert network.final.output_processors == mask(4)
    assert len(network.layers) == 1


def test_next_sequence_stop_ends_the_network(tmp_path: Path) -> None:
    text = describe({**CONV, "next_sequence": "stop"}, {**CONV, "processors": mask(4)})
    kernels = [weights(4, 3, 3, 3), weights(2, 4, 3, 3)]
    network, _ = build(tmp_path, text, sample(3, 4, 4), kernels)
    assert network.order == (0,)
    assert network.final.output_processors == mask(4)


@pytest.mark.parametrize(
    ("no_bias", "kept"), [(frozenset(), [0, 1]), (frozenset({0}), [1]), (None, [])]
)
def test_no_bias_drops_the_biases_of_some_layers_or_all(
    tmp_path: Path, no_bias: frozenset[int] | None, kept: list[int]
) -> None:
    network = two_layers(tmp_path, no_bias=no_bias)
    assert [x.index for x in network.layers if x.bias is not None] == kept


def test_output_width_and_activation_options(tmp_path: Path) -> None:
    network = two_layers(tmp_path, output_width=32, ignore_activation=True)
    assert [x.output_width for x in network.layers] == [8, 32]
    assert [x.activation for x in network.layers] == [None, None]
    assert two_layers(tmp_path).layers[0].activation is Activation.RELU


def test_biases_that_are_all_zero_are_dropped_with_a_warning(tmp_path: Path) -> None:
    text = describe(CONV)
    network, warnings = build(
        tmp_path, text, sample(3, 4, 4), [weights(2, 3, 3, 3)], [np.zeros(2, np.int64)]
    )
    assert network.first.bias is None
    line, column = line_of(text, "op")
    assert [str(w) for w in warnings] == [
        f"net.yaml:{line}:{column}: warning: layer 0: all bias values are zero, "
        "the bias is left out [W269]"
    ]


def test_weights_that_are_all_zero_warn(tmp_path: Path) -> None:
    text = describe(CONV)
    _, warnings = build(tmp_path, text, sample(3, 4, 4), [np.zeros((2, 3, 3, 3), np.int64)])
    line, column = line_of(text, "op")
    assert [str(w) for w in warnings] == [
        f"net.yaml:{line}:{column}: warning: layer 0: all weights are zero [W233]\n"
        "  Train the network."
    ]


# Test weights


def test_wide_test_weights_are_narrowed_as_a_whole(tmp_path: Path) -> None:
    layer = {**CONV, "kernel_size": "1x1", "pad": 0, "processors": 1, "quantization": 4}
    kernel = np.array([127, -100, 5, -1]).reshape(4, 1, 1, 1)
    network, _ = build(tmp_path, describe(layer), sample(1, 2, 2), [kernel])
    assert network.first.weights is not None
    assert network.first.weights.ravel().tolist() == [7, -7, 0, -1]


def test_binary_test_weights_are_signs(tmp_path: Path) -> None:
    layer = {**CONV, "kernel_size": "1x1", "pad": 0, "processors": 1, "quantization": "bin"}
    kernel = np.array([127, -100, 5, 0]).reshape(4, 1, 1, 1)
    network, _ = build(tmp_path, describe(layer), sample(1, 2, 2), [kernel], chip=MAX78002)
    assert network.first.weights is not None
    assert network.first.weights.ravel().tolist() == [1, -1, 1, 1]


def test_file_names_come_from_the_description(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tests").mkdir()
    np.save("tests/sample_tiny.npy", sample(3, 4, 4))
    np.save("tests/weights_tiny.npy", weights(1, 2, 3, 3, 3))
    np.save("tests/bias_small.npy", np.array([3, 4]))
    text = describe(CONV, dataset="Tiny", bias="small")
    network, _ = resolved(text, MAX78000, ResolveOptions())
    assert network.first.bias is not None and network.first.bias.tolist() == [3, 4]
    Path("tests/weights_tiny.npy").rename("tests/other.npy")
    text = describe(CONV, dataset="tiny", weights="other")
    network, _ = resolved(text, MAX78000, ResolveOptions())
    assert network.first.out_channels == 2 and network.first.bias is None


def test_layer_with_weight_source_takes_no_tensor(tmp_path: Path) -> None:
    text = describe(CONV, {**CONV, "weight_source": 0}, CONV)
    kernels = [weights(3, 3, 3, 3), weights(2, 3, 3, 3, seed=9)]
    network, _ = build(tmp_path, text, sample(3, 4, 4), kernels)
    first, copy, last = network.layers
    np.testing.assert_array_equal(first.weights, copy.weights)
    assert (copy.out_channels, last.out_channels) == (3, 2)


def test_layer_with_weight_source_has_the_final_shift_of_its_source(tmp_path: Path) -> None:
    text = describe({**CONV, "output_shift": 2}, {**CONV, "weight_source": 0})
    network, _ = build(tmp_path, text, sample(3, 4, 4), [weights(3, 3, 3, 3)])
    assert [x.shift for x in network.layers] == [2, 2]


# Checkpoints


def save_checkpoint(path: Path, state: dict[str, Any], **others: Any) -> str:
    """Write a checkpoint as training does; values become float32 tensors."""
    tensors = {k: torch.as_tensor(np.asarray(v), dtype=torch.float32) for k, v in state.items()}
    torch.save({"epoch": 1, "arch": "tinynet", "state_dict": tensors, **others}, path)
    return str(path)


def from_checkpoint(
    folder: Path, text: str, data: Any, state: dict[str, Any], chip: Chip = MAX78000, **options: Any
) -> tuple[MappedNetwork, tuple[Diagnostic, ...]]:
    """Resolve a description with a checkpoint; `others` go to the options."""
    path = save_checkpoint(folder / "net.pth.tar", state)
    found = files(folder, data, checkpoint_file=path, **options)
    return resolved(text, chip, found)


def test_of_unquantized_weights_nothing_more_is_said(tmp_path: Path) -> None:
    kernel = np.full((2, 3, 3, 3), 0.25, np.float32)
    state = {"conv1.op.weight": kernel, "conv1.op.bias": [0.5, 0.5]}
    with pytest.raises(DiagnosticError) as caught:
        from_checkpoint(tmp_path, describe(CONV, arch="TinyNet"), sample(3, 4, 4), state)
    assert [problem.code for problem in caught.value.diagnostics] == ["E219"]


@pytest.mark.parametrize(
    ("bits", "value"), [(b, v) for b in (1, 2, 4, 8) for v in (0, -1, 1) if (b, v) != (1, 1)]
)
@pytest.mark.parametrize("chip", [None, MAX78000, MAX78002], ids=str)
def test_width_and_bias_are_those_of_the_checkpoint_whatever_the_weights_are(
    tmp_path: Path, chip: Chip | None, bits: int, value: int
) -> None:
    """Of layers with places, the width of some weights is that of other tools, and a warning."""
    state = {
        "conv1.op.weight": np.full((2, 3, 3, 3), value), "conv1.weight_bits": [bits],
        "conv1.op.bias": np.array([3, -5]) * 2 ** (bits - 1), "conv1.output_shift": [-2],
    }  # fmt: skip
    found = files(tmp_path, sample(3, 4, 4), checkpoint_file=save_checkpoint(tmp_path / "n", state))
    free = {**CONV, "processors": None, "out_offset": None}
    for keys, exact in ((free, True), ({**free, "quantization": bits}, True), (CONV, False)):
        text = describe(keys, arch="TinyNet")
        network, _, told = resolve(parse(text, placed=not exact), chip, found)
        (layer,) = network.layers
        assert layer.bias is not None
        assert layer.bias.tolist() == [3, -5]
        guessed = not exact and (value == 0 or chip is MAX78002)
        assert layer.weight_bits == (bits if not guessed else 1 if value == 0 else -1)
        assert layer.shift == -2 + 8 - abs(layer.weight_bits)
        warned = [d.message for d in told if d.code == "W234"]
        assert len(warned) == (guessed and bits > 1)
        assert all(f"counts {2 ** (bits - 1)} times" in message for message in warned)


def test_weights_taken_for_wider_ones_warn(tmp_path: Path) -> None:
    state = {"conv1.op.weight": weights(2, 3, 3, 3, bits=4), "conv1.weight_bits": [4.0]}
    text = describe({**CONV, "quantization": 8}, arch="TinyNet")
    _, warnings = from_checkpoint(tmp_path, text, sample(3, 4, 4), state)
    assert [w.code for w in warnings] == ["W234"]
    assert "the checkpoint's weights have 4 bits: they count 1/16" in warnings[0].message
    text = describe({**CONV, "quantization": 4}, arch="TinyNet")
    assert from_checkpoint(tmp_path, text, sample(3, 4, 4), state)[1] == ()


def test_checkpoint_gives_weights_bias_bits_and_shift(tmp_path: Path) -> None:
    kernel = weights(2, 3, 3, 3, bits=4)
    state = {
        "conv1.op.weight": kernel,
        "conv1.op.bias": [17.0, -24.0],
        "conv1.output_shift": [-1.0],
        "conv1.weight_bits": [4.0],
        "fc.op.weight": weights(10, 2 * 4 * 4),
    }
    text = describe(CONV, {**LINEAR, "processors": mask(2)}, arch="TinyNet")
    network, warnings = from_checkpoint(tmp_path, text, sample(3, 4, 4), state)
    conv, linear = network.layers
    assert warnings == ()
    assert (conv.weight_bits, conv.shift) == (4, 4 - 1)
    np.testing.assert_array_equal(conv.weights, kernel)
    # Stored biases carry the scale of the weights: floor(17 / 8), floor(-24 / 8).
    assert conv.bias is not None and conv.bias.tolist() == [2, -3]
    assert (linear.weight_bits, linear.shift, linear.bias) == (8, 0, None)


def test_layers_take_the_tensors_that_they_name(tmp_path: Path) -> None:
    """A file in another order, with equal shapes; the layer without a name takes what is left."""
    last, first, middle = (weights(3, 3, 3, 3) for _ in range(3))
    for number, tensor in enumerate((last, first, middle)):
        tensor[0, 0, 0, 0] = number + 1
    state = {
        "module.last.op.weight": last, "module.last.output_shift": [2.0],
        "module.first.op.weight": first, "middle.weight": middle,
    }  # fmt: skip
    layer = {**CONV, "output_processors": 7}
    text = describe(
        {**layer, "weights": "first"}, layer, {**layer, "weights": "last"}, arch="tinynet"
    )
    network, found = from_checkpoint(tmp_path, text, sample(3, 4, 4), state)
    assert not found
    taken = [int(x.weights[0, 0, 0, 0]) for x in network.layers if x.weights is not None]
    assert taken == [2, 3, 1]
    assert [x.shift for x in network.layers] == [0, 0, 2]


def test_name_that_the_checkpoint_lacks_is_refused(tmp_path: Path) -> None:
    text = describe({**CONV, "weights": "conv2"}, arch="tinynet")
    kernel = {"conv1.op.weight": weights(2, 3, 3, 3)}
    found = refused(from_checkpoint, tmp_path, text, sample(3, 4, 4), kernel)
    assert found.code == "E240"
    assert found.message.startswith("layer 0: 'weights' is conv2, but ")
    assert found.remedy == "Did you mean 'conv1'?"


def test_checkpoint_that_was_never_quantized_is_refused(tmp_path: Path) -> None:
    state = {"conv1.op.weight": weights(2, 3, 3, 3) / 128}
    found = refused(
        from_checkpoint, tmp_path, describe(CONV, arch="tinynet"), sample(3, 4, 4), state
    )
    assert str(found) == (
        f"{tmp_path / 'net.pth.tar'}: error: the checkpoint is not quantized: "
        "its weights are fractions [E219]\n"
        "  Quantize the checkpoint with quantize.py and give the result."
    )


def test_kernels_of_ones_do_not_make_a_checkpoint_quantized(tmp_path: Path) -> None:
    state = {
        "conv1.op.weight": weights(2, 3, 3, 3) / 128,
        "fc.op.weight": np.eye(10, 2 * 4 * 4, dtype=np.float32),
    }
    text = describe(CONV, {**LINEAR, "processors": mask(2)}, arch="TinyNet")
    assert refused(from_checkpoint, tmp_path, text, sample(3, 4, 4), state).code == "E219"


@pytest.mark.parametrize(("file", "codes"), [("net.onnx", ["E219"]), ("net.pth.tar", ["W270"])])
def test_only_checkpoints_may_have_fractions_beside_integers(file: str, codes: list[str]) -> None:
    layer: Any = SimpleNamespace(
        error=lambda code, message, *_, remedy: Diagnostic(code, message, remedy=remedy)
    )
    used = [(layer, "whole", np.full(9, 2.0)), (layer, "broken", np.full(9, 0.3))]
    assert [d.code for d in complain_unquantized(used, Place(file))] == codes


@pytest.mark.parametrize(("largest", "code"), [(0.9, "E219"), (1.0, "W270")])
def test_fractions_of_a_graph_below_one_are_all_that_is_left(largest: float, code: str) -> None:
    layer: Any = SimpleNamespace(
        error=lambda code, message, *_, remedy: Diagnostic(code, message, remedy=remedy)
    )
    used = [(layer, "whole", np.full(9, 2.0)), (layer, "broken", np.array([0.3, -largest]))]
    assert [d.code for d in complain_unquantized(used, Place("net.onnx"))] == [code]


def test_one_layer_with_fractions_is_a_warning(tmp_path: Path) -> None:
    state = {
        "conv1.op.weight": weights(2, 3, 3, 3),
        "fc.op.weight": weights(10, 2 * 4 * 4) + 0.5,
    }
    text = describe(CONV, {**LINEAR, "processors": mask(2)}, arch="TinyNet")
    network, (warning,) = from_checkpoint(tmp_path, text, sample(3, 4, 4), state)
    assert network.layers[1].weights is not None
    assert (warning.code, warning.severity) == ("W270", Severity.WARNING)
    assert "the fractions of the weights are dropped (tensor 'fc.op.weight'" in warning.message


def test_fractional_shift_is_refused(tmp_path: Path) -> None:
    state = {"conv1.op.weight": weights(2, 3, 3, 3), "conv1.output_shift": [0.5]}
    found = refused(
        from_checkpoint, tmp_path, describe(CONV, arch="tinynet"), sample(3, 4, 4), state
    )
    assert (found.code, "is 0.5, expected a whole number" in found.message) == ("E205", True)


def test_description_wins_over_the_shift_of_the_checkpoint(tmp_path: Path) -> None:
    state = {"conv1.op.weight": weights(2, 3, 3, 3), "conv1.output_shift": [5.0]}
    text = describe({**CONV, "output_shift": -1}, arch="tinynet")
    network, _ = from_checkpoint(tmp_path, text, sample(3, 4, 4), state)
    assert network.first.shift == -1


def test_transposed_weights_are_turned_around(tmp_path: Path) -> None:
    kernel = weights(3, 2, 3, 3)  # torch: [in, out, rows, columns]
    text = describe({**CONV, "op": "ConvTranspose2d"}, arch="tinynet")
    network, _ = from_checkpoint(tmp_path, text, sample(3, 4, 4), {"up.op.weight": kernel})
    assert network.first.weights is not None
    np.testing.assert_array_equal(
        network.first.weights, kernel[:, :, ::-1, ::-1].transpose(1, 0, 2, 3)
    )


@pytest.mark.parametrize(
    ("chip", "kernel", "bits"),
    [
        (MAX78002, np.where(weights(2, 3, 3, 3) < 0, -1, 1), -1),
        (MAX78000, np.where(weights(2, 3, 3, 3) < 0, -1, 1), 8),
        (MAX78000, np.zeros((2, 3, 3, 3)), 1),
    ],
    ids=["signs on MAX78002", "signs on MAX78000", "zeros"],
)
def test_width_of_special_weights_is_inferred(
    tmp_path: Path, chip: Chip, kernel: Any, bits: int
) -> None:
    text = describe(CONV, arch="tinynet")
    network, _ = from_checkpoint(tmp_path, text, sample(3, 4, 4), {"c.op.weight": kernel}, chip)
    assert network.first.weight_bits == bits


def test_leading_tensors_can_be_skipped_and_surplus_ones_are_ignored(tmp_path: Path) -> None:
    kernels = [weights(2, 3, 3, 3, seed=i) for i in range(3)]
    state = {f"c{i}.op.weight": kernel for i, kernel in enumerate(kernels)}
    text = describe(CONV, arch="tinynet")
    network, _ = from_checkpoint(tmp_path, text, sample(3, 4, 4), state, skip_checkpoint_layers=1)
    np.testing.assert_array_equal(network.first.weights, kernels[1])


def test_batch_normalization_is_refused_or_ignored(tmp_path: Path) -> None:
    state = {"c1.bn.weight": np.ones(3), "c1.op.weight": weights(2, 3, 3, 3)}
    text = describe(CONV, arch="tinynet")
    network, _ = from_checkpoint(tmp_path, text, sample(3, 4, 4), state, ignore_bn=True)
    assert network.first.out_channels == 2
    found = refused(from_checkpoint, tmp_path, text, sample(3, 4, 4), state)
    assert found.code == "E203"
    assert found.remedy == "Fold batch normalization with batchnormfuser.py before quantizing."


def test_checkpoint_without_arch_is_a_warning(tmp_path: Path) -> None:
    text = describe(CONV, arch="anything")
    path = save_checkpoint(tmp_path / "c.pth", {"c.op.weight": weights(2, 3, 3, 3)}, arch=None)
    checkpoint = torch.load(path, weights_only=False)
    del checkpoint["arch"]
    torch.save(checkpoint, path)
    found = files(tmp_path, sample(3, 4, 4), checkpoint_file=path)
    *_, warnings = resolve(parse(text, "net.yaml"), MAX78000, found)
    assert [str(w) for w in warnings] == [
        f"{path}: warning: the checkpoint does not name its architecture [W252]"
    ]


# Refusals about weights: description, tensors of the checkpoint, key that is blamed, complaint

WRONG_TENSORS: dict[str, tuple[dict[str, Any], dict[str, Any], str, str, str | None]] = {
    "E205": (
        CONV,
        {"c.op.weight": weights(2, 3, 3, 3), "c.output_shift": [1.0, 2.0]},
        "op",
        "E205 'c.output_shift' has 2 elements, expected one number",
        None,
    ),
    "E206 stated": (
        {**CONV, "quantization": 4},
        {"c.op.weight": weights(2, 3, 3, 3)},
        "quantization",
        "E206 weights from -128 to 123 do not fit 4 bits (-8 to 7)",
        "Quantize the checkpoint with quantize.py, and give 'quantization' the width it was "
        "quantized to.",
    ),
    "E224 width of the file": (
        CONV,
        {"c.op.weight": weights(2, 3, 3, 3), "c.weight_bits": [3.0]},
        "op",
        "E224 weight_bits is 3, expected 1, 2, 4 or 8",
        None,
    ),
    "E207": (
        CONV,
        {"c.op.weight": weights(2, 3, 3, 3), "c.op.bias": [128.0 * 128, 0.0]},
        "op",
        "E207 the bias reaches from 0 to 128, the limits are -128 and 127",
        "Quantize the checkpoint with quantize.py.",
    ),
    "E208 kernel": (
        CONV,
        {"c.op.weight": weights(2, 3, 1, 1)},
        "kernel_size",
        "E208 weights have a 1x1 kernel, the description says 3x3",
        "Correct 'kernel_size' or 'op', or check that the layers are in the same order.",
    ),
    "E208 rank": (
        CONV,
        {"c.op.weight": weights(2, 3, 3)},
        "op",
        "E208 weights of shape [2, 3, 3] do not belong to conv2d",
        None,
    ),
}


@pytest.mark.parametrize("case", WRONG_TENSORS)
def test_unfit_tensors_are_named_with_layer_limit_and_remedy(tmp_path: Path, case: str) -> None:
    layer, state, key, said, remedy = WRONG_TENSORS[case]
    text = describe(layer, arch="tinynet")
    found = refused(from_checkpoint, tmp_path, text, sample(3, 4, 4), state)
    blamed = "c.op.bias" if case == "E207" else "c.op.weight"
    tensor = f"(tensor '{blamed}' of {tmp_path / 'net.pth.tar'})"
    line, column = line_of(text, key)
    assert f"{found.code} {found.message}" == said.replace(" ", " layer 0: ", 1) + f" {tensor}"
    assert str(found.place) == f"net.yaml:{line}:{column}"
    assert found.remedy == remedy


def test_checkpoint_is_needed_unless_arch_is_test(tmp_path: Path) -> None:
    found = refused(build, tmp_path, describe(CONV, arch="net"), sample(3, 4, 4))
    assert str(found) == (
        "net.yaml:1:7: error: no checkpoint is given, but arch is 'net' [E201]\n"
        "  Add --checkpoint-file with the quantized checkpoint of this network."
    )


def test_checkpoint_of_another_network_is_refused(tmp_path: Path) -> None:
    text = describe(CONV, arch="other")
    state = {"c.op.weight": weights(2, 3, 3, 3)}
    found = refused(from_checkpoint, tmp_path, text, sample(3, 4, 4), state)
    assert str(found) == (
        "net.yaml:1:7: error: 'arch' is 'other', but the checkpoint "
        f"{tmp_path / 'net.pth.tar'} is of 'tinynet' [E202]\n"
        "  Use the checkpoint of this network or correct 'arch'."
    )


def test_too_few_tensors_name_the_first_layer_without_one(tmp_path: Path) -> None:
    text = describe(CONV, {**CONV, "name": "late"}, arch="tinynet")
    state = {"c.op.weight": weights(3, 3, 3, 3)}
    found = refused(from_checkpoint, tmp_path, text, sample(3, 4, 4), state)
    line, column = line_of(text, "op", 1)
    assert str(found) == (
        f"net.yaml:{line}:{column}: error: layer 1 (late): the weights file has tensors for "
        "1 layers, the description needs 2 [E210]\n"
        "  Remove layers from the description or use the network's own checkpoint."
    )


# Refusals about NumPy files

ONE_FRACTION = npy_file(np.ones(3))


def test_missing_test_weights_are_named(tmp_path: Path) -> None:
    path = str(tmp_path / "none.npy")
    found = refused(build, tmp_path, describe(CONV), sample(3, 4, 4), weight_input=path)
    assert str(found) == (
        f"option --weight-input: error: the test weights file '{path}' does not exist [E211]\n"
        "  Check the path. Files are looked up from the current folder; see --weight-input and "
        "--bias-input."
    )


def test_file_without_test_weights_has_too_few(tmp_path: Path) -> None:
    (tmp_path / "empty.npy").touch()
    path = str(tmp_path / "empty.npy")
    found = refused(build, tmp_path, describe(CONV), sample(3, 4, 4), weight_input=path)
    assert found.code == "E210"
    assert found.message.endswith("has tensors for 0 layers, the description needs 1")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (ONE_FRACTION, "the test weights file must hold arrays of integers"),
        (b"hello", "the test weights file is not a sequence of numeric NumPy arrays: "),
    ],
)
def test_damaged_test_weights_are_refused(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "bad.npy"
    path.write_bytes(content)
    found = refused(build, tmp_path, describe(CONV), sample(3, 4, 4), weight_input=str(path))
    assert (found.code, str(found.place)) == ("E211", str(path))
    assert found.message.startswith(said)


def test_pickled_test_weights_are_never_loaded(tmp_path: Path) -> None:
    path = tmp_path / "objects.npy"
    np.save(path, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    found = refused(build, tmp_path, describe(CONV), sample(3, 4, 4), weight_input=str(path))
    assert found.code == "E211" and "it holds '|O', not numbers" in found.message


def test_test_weights_beyond_8_bits_are_refused(tmp_path: Path) -> None:
    kernels = [weights(2, 3, 3, 3) * 2]
    found = refused(build, tmp_path, describe(CONV), sample(3, 4, 4), kernels)
    assert found.code == "E206" and "from -256 to 246 do not fit 8 bits" in found.message


def test_biases_beyond_8_bits_are_refused(tmp_path: Path) -> None:
    biases = [np.array([0, -129])]
    found = refused(build, tmp_path, describe(CONV), sample(3, 4, 4), [weights(2, 3, 3, 3)], biases)
    assert str(found) == (
        f"{tmp_path / 'bias.npy'}: error: a bias reaches from -129 to 0, "
        "the limits are -128 and 127 [E207]"
    )


@pytest.mark.parametrize("length", [1, 3])
def test_biases_of_the_wrong_length_are_refused(tmp_path: Path, length: int) -> None:
    kernels, biases = [weights(2, 3, 3, 3)], [np.arange(length) + 1]
    found = refused(build, tmp_path, describe(CONV), sample(3, 4, 4), kernels, biases)
    assert (found.code, found.message, found.remedy) == (
        "E221",
        f"layer 0: the bias has {length} values for 2 output channels",
        "Use the weights and biases of the same network.",
    )


# Refusals about the sample

REMEDY = "Make one with train.py --evaluate -8 --save-sample 1, or name it with --sample-input."
WRONG_SAMPLES: dict[str, tuple[Any, str]] = {
    "float": (sample(3, 4, 4) * 1.0, "the sample holds float64, expected integers such as int64"),
    "logical": (sample(3, 4, 4) > 0, "the sample holds bool, expected integers such as int64"),
    "shape": (
        sample(1, 3, 4, 4),
        "the sample has the shape [1, 3, 4, 4], expected [channels, rows, columns], [channels, "
        "length] or [features]",
    ),
    "empty": (
        sample(0, 4, 4),
        "the sample has the shape [0, 4, 4], "
        "expected [channels, rows, columns], [channels, length] or [features]",
    ),
    "range": (
        np.full((3, 4, 4), 128),
        "the sample's values reach from 128 to 128, the limits are -128 and 127",
    ),
}


def test_bytes_without_sign_are_told_how_to_shift(tmp_path: Path) -> None:
    data = np.arange(48).reshape(3, 4, 4) * 255 // 47
    found = refused(build, tmp_path, describe(CONV), data, [weights(2, 3, 3, 3)])
    assert str(found).endswith("Subtract 128 from values of 0 to 255.")


@pytest.mark.parametrize("case", WRONG_SAMPLES)
def test_unfit_samples_are_refused(tmp_path: Path, case: str) -> None:
    data, message = WRONG_SAMPLES[case]
    found = refused(build, tmp_path, describe(CONV), data, [weights(2, 3, 3, 3)])
    path = tmp_path / "sample.npy"
    assert str(found) == f"{path}: error: {message} [E212]\n  {REMEDY}"


def test_missing_sample_is_blamed_on_what_names_it(tmp_path: Path) -> None:
    path = str(tmp_path / "none.npy")
    kernels = [weights(2, 3, 3, 3)]
    found = refused(build, tmp_path, describe(CONV), sample(3, 4, 4), kernels, sample_input=path)
    assert str(found) == (
        f"option --sample-input: error: the sample file '{path}' does not exist [E212]\n"
        f"  Check the path. {REMEDY}"
    )
    found = refused(build, tmp_path, describe(CONV), sample(3, 4, 4), kernels, sample_input=None)
    assert str(found) == (
        "net.yaml:2:10: error: the sample file 'tests/sample_tiny.npy' does not exist [E212]\n"
        f"  {REMEDY}"
    )


def test_a_description_of_the_toolchain_has_its_sample_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = describe(CONV, dataset="digits")
    shipped = parse(text, str(ROOT / "networks/net.yaml"))
    assert sample_path(shipped, ResolveOptions()) == str(ROOT / "tests/sample_digits.npy")
    own = "tests/sample_digits.npy"
    assert sample_path(parse(text, "net.yaml"), ResolveOptions()) == own
    (tmp_path / "tests").mkdir()
    (tmp_path / own).touch()
    assert sample_path(shipped, ResolveOptions()) == own


@pytest.mark.parametrize("name", ["none.pth.tar", "none.onnx"])
def test_missing_checkpoint_is_blamed_on_its_option(tmp_path: Path, name: str) -> None:
    text = describe(CONV, arch="tinynet")
    found = refused(build, tmp_path, text, sample(3, 4, 4), checkpoint_file=name)
    assert str(found.place) == f"{name}: option --checkpoint-file"
    assert found.code == "E501"


def test_missing_biases_are_blamed_on_their_option(tmp_path: Path) -> None:
    kernels = [weights(2, 3, 3, 3)]
    found = refused(build, tmp_path, describe(CONV), sample(3, 4, 4), kernels, bias_input="none")
    assert (found.code, str(found.place)) == ("E211", "option --bias-input")


def test_lone_array_of_a_single_layer_needs_an_axis_of_layers(tmp_path: Path) -> None:
    path = tmp_path / "alone.npy"
    np.save(path, weights(2, 3, 3, 3))
    found = refused(build, tmp_path, describe(CONV), sample(3, 4, 4), weight_input=str(path))
    assert found.message.startswith("layer 0: weights of shape [3, 3, 3] do not belong to conv2d")
    assert found.remedy is not None and "weights[None]" in found.remedy


@pytest.mark.parametrize(
    ("key", "option", "given"),
    [
        ("in_offset", "--input-offset", {"input_offset": 0x40}),
        ("output_width", "--output-width", {"output_width": 32}),
        ("calcx4", "--calcx4", {"calcx4": True}),
        ("readahead", "--read-ahead", {"read_ahead": True}),
        ("streaming", "--streaming-layers", {"streaming_layers": frozenset({0})}),
    ],
)
def test_value_of_an_option_stands_at_the_option(
    tmp_path: Path, key: str, option: str, given: dict[str, Any]
) -> None:
    kernels = [weights(2, 3, 3, 3)]
    network, _ = build(tmp_path, describe(CONV), sample(3, 4, 4), kernels, **given)
    assert network.layers[0].place_of(key).option == option
    assert network.layers[0].without(key) == f"leave out {option}"
    network, _ = build(tmp_path, describe(CONV), sample(3, 4, 4), kernels)
    assert network.layers[0].place_of(key).option is None


HUGE = b"{'descr': '<i8', 'fortran_order': False, 'shape': (4000000000000,)}"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"text",
        b"PK\x03\x04 no archive",
        b"\x93NUMPY\x01\x00",
        b"\x93NUMPY\x01\x00" + bytes([len(HUGE) + 1, 0]) + HUGE + b"\n",
    ],
)
def test_file_that_is_no_sample_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.npy"
    path.write_bytes(content)
    found = refused(
        build,
        tmp_path,
        describe(CONV),
        sample(3, 4, 4),
        [weights(2, 3, 3, 3)],
        sample_input=str(path),
    )
    assert found.message.startswith("the sample is not a numeric NumPy array: ")


# Refusals about the layers

WRONG_LAYERS: dict[str, tuple[list[dict[str, Any]], int, str, str, str | None]] = {
    "E209": (
        [{**CONV, "sequence": 32}],
        0,
        "sequence",
        "E209 sequence 32 is beyond the last layer 31 of MAX78000",
        "Merge layers: pooling and combining share one with a convolution.",
    ),
    "E226": (
        [
            {**CONV, "simulated_sequence": 2, "next_sequence": 1},
            {**CONV, "next_sequence": -1},
            CONV,
        ],
        0,
        "simulated_sequence",
        "E226 the simulation continues with layer 2, only 0 to 1 are configured",
        "Correct 'simulated_sequence', or 'next_sequence' so that the network goes there.",
    ),
    "E213": (
        [{**CONV, "next_sequence": 2}, CONV, CONV],
        0,
        "next_sequence",
        "E213 'next_sequence' is 2, expected 1 or stop",
        "Put the layers in the order in which they are executed.",
    ),
    "E213 at the end": (
        [{**CONV, "next_sequence": 2}, CONV],
        0,
        "next_sequence",
        "E213 'next_sequence' is 2, expected 1 or stop",
        "Put the layers in the order in which they are executed.",
    ),
    "E215": (
        [{**CONV, "in_sequences": 1}, CONV],
        0,
        "in_sequences",
        "E215 'in_sequences' names layer 1, only layers before 0 have an output here",
        "Use the number or name of an earlier layer, or input.",
    ),
    "E216 pooling": (
        [{**CONV, "max_pool": 5, "pool_stride": 1}],
        0,
        "max_pool",
        "E216 a 5x5 pooling window leaves nothing of a 4x4 image",
        "The largest window here is 4.",
    ),
    "E216 kernel": (
        [{**CONV, "pad": 0, "max_pool": 2, "pool_stride": 2}],
        0,
        "kernel_size",
        "E216 a 3x3 kernel leaves nothing of a 2x2 image",
        "Add padding or pool less.",
    ),
    "E217": (
        [
            CONV,
            {**CONV, "pad": 0},
            {**CONV, "in_sequences": "[0, 1]", "processors": mask(6)},
        ],
        2,
        "in_sequences",
        "E217 the inputs have different sizes (4x4, 2x2)",
        "Make them equal with pooling, or state in_dim to join their pixels.",
    ),
    "E218 channels": (
        [{**CONV, "in_channels": 4}],
        0,
        "in_channels",
        "E218 the weights are for 3 input channels, the layer has 4",
        "Correct 'in_channels' or the order of the layers.",
    ),
    "E218 channels of a source": (
        [{**CONV, "in_channels": 4, "in_sequences": "[input]"}],
        0,
        "in_channels",
        "E218 the weights are for 3 input channels, the layer has 4",
        "Correct 'in_channels' or the order of the layers.",
    ),
}


@pytest.mark.parametrize("case", WRONG_LAYERS)
def test_impossible_layers_are_refused_at_the_key(tmp_path: Path, case: str) -> None:
    layers, index, key, said, remedy = WRONG_LAYERS[case]
    text = describe(*layers)
    channels = [3] * (len(layers) - 1) + [6 if case == "E217" else 3]
    kernels = [weights(3, ins, 3, 3, seed=i) for i, ins in enumerate(channels)]
    found = refused(build, tmp_path, text, sample(3, 4, 4), kernels)
    line, column = line_of(text, key, index)
    assert f"{found.code} {found.message}" == said.replace(" ", f" layer {index}: ", 1)
    assert str(found.place) == f"net.yaml:{line}:{column}"
    assert found.remedy == remedy


@pytest.mark.parametrize("index", [2, 5])
def test_next_layer_beyond_the_last_one_stops_the_network(tmp_path: Path, index: int) -> None:
    text = describe({**CONV, "next_sequence": index}, CONV)
    kernels = [weights(3, 3, 3, 3, seed=i) for i in range(2)]
    network, warnings = build(tmp_path, text, sample(3, 4, 4), kernels, chip=MAX78002)
    assert network.order == (0,)
    (found,) = (w for w in warnings if w.code == "W271")
    assert found.message == (
        f"layer 0: 'next_sequence' is {index}, beyond the last layer; the network stops here"
    )


def test_fast_fifo_of_all_groups_feeds_processors_of_group_0(tmp_path: Path) -> None:
    text = describe({**CONV, "processors": 7 << 20})
    port = InputPort.FAST_FIFO_QUAD
    found = refused(build, tmp_path, text, sample(3, 4, 4), [weights(3, 3, 3, 3)], input_port=port)
    assert found.code == "E227"
    assert found.message == (
        "layer 0: 'processors' names processor 22, one word for all groups is for processors "
        "0 to 15 of each"
    )


def test_sample_of_fewer_channels_than_operands_is_refused(tmp_path: Path) -> None:
    layer = {"processors": 1, "op": "add"}
    network, _ = build(tmp_path, describe(layer), np.zeros((1, 4, 4), np.int64))
    assert "E349" in {d.code for d in check(network)}


def test_execution_that_comes_back_to_a_layer_is_refused(tmp_path: Path) -> None:
    text = describe(CONV, {**CONV, "next_sequence": 0})
    kernels = [weights(3, 3, 3, 3)] * 2
    found = refused(build, tmp_path, text, sample(3, 4, 4), kernels, chip=MAX78002)
    line, column = line_of(text, "next_sequence", 1)
    assert str(found) == (
        f"net.yaml:{line}:{column}: error: layer 1: execution continues with layer 0, which has "
        "been executed already [E220]\n  End the network with next_sequence: stop."
    )


def test_flattened_layer_needs_weights_for_every_pixel(tmp_path: Path) -> None:
    found = refused(build, tmp_path, describe(LINEAR), sample(3, 2, 2), [weights(4, 13)])
    assert found.message == (
        "layer 0: 13 inputs of the flattened layer are not a multiple of 2x2 pixels"
    )
    assert found.remedy == (
        "The weights are for 13 inputs, no multiple of 3 channels: check the layers in front. "
        "The sample is 3x2x2."
    )


def test_stop_after_a_layer_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    found = refused(two_layers, tmp_path, stop_after=7)
    assert found.code == "E214"
    assert str(found).endswith(": option --stop-after: error: is 7, the last layer is 1 [E214]")
    assert found.place is not None and found.place.file == "net.yaml" and found.place.line


@pytest.mark.parametrize("source", [7, 0, 2])
def test_weight_source_must_be_an_earlier_layer_with_weights(tmp_path: Path, source: int) -> None:
    text = describe({"processors": 7, "op": "none"}, {**CONV, "weight_source": source}, CONV)
    found = refused(build, tmp_path, text, sample(3, 4, 4), [weights(3, 3, 3, 3)])
    assert (found.code, found.message, found.remedy) == (
        "E222",
        f"layer 1: 'weight_source' names layer {source}, which is no earlier layer with weights",
        "Name a convolution layer before this one.",
    )


@pytest.mark.parametrize(
    ("keys", "code", "message"),
    [
        (
            {"quantization": 2},
            "E206",
            "layer 1: the weights of layer 0 do not fit 2 bits (-2 to 1)",
        ),
        (
            {"kernel_size": "1x1", "pad": 0},
            "E208",
            "layer 1: the weights of layer 0 have a 3x3 kernel, this layer has 1x1",
        ),
    ],
)
def test_weights_that_are_used_again_must_fit(
    tmp_path: Path, keys: dict[str, Any], code: str, message: str
) -> None:
    text = describe(CONV, {**CONV, "weight_source": 0, **keys})
    found = refused(build, tmp_path, text, sample(3, 4, 4), [weights(3, 3, 3, 3)])
    assert (found.code, found.message) == (code, message)


@pytest.mark.parametrize("channels", [2, 8])
def test_out_channels_must_be_those_of_the_weights(tmp_path: Path, channels: int) -> None:
    text = describe({**CONV, "out_channels": channels})
    found = refused(build, tmp_path, text, sample(3, 4, 4), [weights(4, 3, 3, 3)])
    line, column = line_of(text, "out_channels")
    assert str(found) == (
        f"net.yaml:{line}:{column}: error: layer 0: the weights are for 4 output channels, "
        f"'out_channels' is {channels} [E218]\n  Remove the key."
    )


def test_conv1d_needs_data_with_one_column(tmp_path: Path) -> None:
    text = describe({**CONV, "op": "Conv1d", "kernel_size": 3})
    found = refused(build, tmp_path, text, sample(3, 4, 4), [weights(2, 3, 3)])
    assert (found.code, found.message, found.remedy) == (
        "E223",
        "layer 0: a Conv1d reads 4x4 pixels, it needs data in one column",
        "Add in_dim: 16 to read the rows one after the other.",
    )


# Samples and test weights that are taken another way than they look


def test_a_sample_of_one_axis_has_a_channel_for_each_value(tmp_path: Path) -> None:
    linear = {"op": "MLP", "processors": 0xF}
    network, _ = build(tmp_path, describe(linear), sample(4, 1, 1)[:, 0, 0], [weights(3, 4)])
    assert network.sample.shape == (4, 1, 1) and network.layers[0].out_channels == 3


def test_channels_that_do_not_suit_are_counted_in_the_remedy(tmp_path: Path) -> None:
    layers = (CONV, CONV, {**CONV, "in_sequences": [0, 1]})
    kernels = [weights(2, 3, 3, 3), weights(2, 2, 3, 3), weights(2, 7, 3, 3)]
    found = refused(build, tmp_path, describe(*layers), sample(3, 4, 5), kernels)
    assert found.remedy == "Correct 'in_sequences', whose layers have [2, 2] channels."


@pytest.mark.parametrize("kind", [np.int8, np.int16, np.uint8, np.int32])
def test_samples_of_any_integer_type_are_taken(tmp_path: Path, kind: type) -> None:
    data = np.clip(sample(3, 4, 5), 0, 127)
    for values in (data, data.astype(kind)):
        network, _ = build(tmp_path, describe(CONV), values, [weights(2, 3, 3, 3)])
        assert network.sample.dtype == np.int64
        np.testing.assert_array_equal(network.sample, data)


def test_a_series_is_no_image(tmp_path: Path) -> None:
    kernels, data = [weights(2, 3, 3, 3)], sample(3, 16)
    found = refused(build, tmp_path, describe(CONV), data, kernels)
    assert found.code == "E212"
    assert found.message == (
        "the sample has the shape [3, 16], the first layer reads an image: expected [channels, "
        "rows, columns], or in_dim in that layer"
    )
    folded, _ = build(tmp_path, describe({**CONV, "in_dim": (4, 4)}), data, kernels)
    assert folded.layers[0].in_dim == (4, 4)
    small = {**CONV, "kernel_size": "1x1", "pad": 0}
    network, _ = build(tmp_path, describe(small), data, [weights(2, 3, 1, 1)])
    assert network.layers[0].in_dim == (16, 1)


@pytest.mark.parametrize(
    ("bits", "values", "lost"),
    [
        (4, [-128, 127], "the lowest 4 bits are dropped"),
        (4, [-16, 15], "the lowest bit is dropped"),
        (4, [-8, 7], None),
        (4, [-128, 112], None),
        (8, [-128, 127], None),
        ("bin", [-2, 1], "of each only the sign is kept"),
        ("bin", [-1, 1], None),
    ],
)
def test_test_weights_that_lose_bits_draw_a_warning(
    tmp_path: Path, bits: int | str, values: list[int], lost: str | None
) -> None:
    kernel = np.resize(np.array(values, np.int64), (2, 3, 3, 3))
    text = describe({**CONV, "quantization": bits})
    _, warnings = build(tmp_path, text, sample(3, 4, 4), [kernel], chip=MAX78002)
    if lost is None:
        assert warnings == ()
        return
    (found,) = warnings
    assert (found.code, found.severity) == ("W242", "warning")
    assert f"the weights need more bits than the layer has: {lost} (from " in found.message


def test_a_loop_of_the_simulation_is_told_at_the_layer_that_goes_back(tmp_path: Path) -> None:
    for back in (1, 2):
        layers = [dict(CONV) for _ in range(4)]
        layers[back]["simulated_sequence"] = 0
        text = describe(*layers)
        kernels = [weights(3, 3, 3, 3, seed=i) for i in range(4)]
        found = refused(build, tmp_path, text, sample(3, 4, 4), kernels)
        line, column = line_of(text, "simulated_sequence", back)
        assert (found.code, str(found.place)) == ("E220", f"net.yaml:{line}:{column}")


@pytest.mark.parametrize(("inputs", "pooled"), [(48, False), (50, False), (50, True)])
def test_the_remedy_for_a_flattened_layer_names_what_is_probably_wrong(
    tmp_path: Path, inputs: int, pooled: bool
) -> None:
    """Weights that suit the image in front, a pooling that leaves it as large, or neither."""
    pool = {"max_pool": 2} if pooled else {}
    text = describe({**CONV, **pool}, {**LINEAR, "in_dim": (7, 1) if not pooled else None})
    data = [weights(3, 3, 3, 3), weights(4, inputs)]
    remedy = str(refused(build, tmp_path, text, sample(3, 4, 4), data).remedy)
    told = {key for key in ("'in_dim'", "'pool_stride'", "inputs") if key in remedy}
    assert told == {"'in_dim'" if inputs == 48 else "'pool_stride'" if pooled else "inputs"}
