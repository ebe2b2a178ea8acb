"""Parts of what a description is completed with, against loops over small domains."""

from __future__ import annotations

from dataclasses import MISSING, fields
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ai8xtools.diagnostics import Diagnostic, DiagnosticError
from ai8xtools.synthesis.check import check
from ai8xtools.synthesis.network import Layer
from ai8xtools.synthesis.options import ResolveOptions
from ai8xtools.synthesis.parse import Description, parse, read
from ai8xtools.synthesis.resolve import resolve
from ai8xtools.synthesis.resolve.integers import fit, limits, scaled_bias, truncated
from ai8xtools.synthesis.resolve.layout import _deliveries
from ai8xtools.synthesis.resolve.numpy_tensors import tensors_from_numpy
from ai8xtools.synthesis.resolve.sample import (
    other_than_of_data_set,
    progressing,
    progression,
    read_sample,
    seen_by_camera,
)
from ai8xtools.synthesis.resolve.sections import check_sections
from ai8xtools.synthesis.resolve.sequence import execution_order, simulated_order
from ai8xtools.synthesis.resolve.skipping import without_first_layers
from ai8xtools.synthesis.resolve.zero_channels import filled_tensors
from device import MAX78000, MAX78002
from device.channels import channels_per_pass, passes
from tests.synthesis.networks import build, describe, files, mask, sample, weights

CONV: dict[str, Any] = {"op": "Conv2d", "kernel_size": "3x3", "processors": 7}


def described(*layers: dict[str, Any], **others: Any) -> Description:
    return read(describe(*layers, **others)).description


def test_layers_are_executed_up_to_the_first_that_stops_or_repeats() -> None:
    """All jumps of three layers, on a chip that can jump and on one that cannot."""
    targets = ["stop", 0, 1, 2, 3, 4]
    for jumps in product(targets, repeat=3):
        layers = [{**CONV, "next_sequence": jump} for jump in jumps]
        whole = described(*layers)
        for chip, first in product((MAX78000, MAX78002), range(3)):
            problems: list[Diagnostic] = []
            found = execution_order(whole, chip, ResolveOptions(start_layer=first), problems)
            wanted, at, codes = [first], first, []
            while (following := jumps[at]) != "stop":
                if following > 2:
                    if following > max(at + 1, 2):
                        codes = ["E213" if chip is MAX78000 else "W271"]
                    break
                if following != at + 1 and chip is MAX78000:
                    codes = ["E213"]
                    break
                if following in wanted:
                    codes = ["E220"]
                    break
                wanted.append(following)
                at = following
            assert found == (*wanted,)
            assert [p.code for p in problems] == codes
            assert all(p.message.startswith(f"layer {at}: ") for p in problems)


@pytest.mark.parametrize(("order", "ways"), [((0, 1, 2), (1, 2)), ((1, 2), (2,)), ((0, 2), (1, 2))])
def test_simulation_follows_its_own_order(order: tuple[int, ...], ways: tuple[int, ...]) -> None:
    """It may go through every layer between the first and the last one, and ends with that."""
    for step in range(4):
        layers: list[dict[str, Any]] = [dict(CONV) for _ in range(4)]
        layers[order[0]]["simulated_sequence"] = step
        problems: list[Diagnostic] = []
        found = simulated_order(described(*layers), order, problems)
        if step in ways or order[0] < step <= order[-1]:
            assert (found, problems) == ((order[0], *range(step, order[-1] + 1)), [])
        else:
            assert len(problems) == 1
            assert found == (order[0],)


def test_references_move_with_the_layers_left_out() -> None:
    """Numbers count from the first layer that is left; input and stop stay what they are."""
    keys = ("in_sequences", "next_sequence", "simulated_sequence", "snoop_sequence")
    for count, key, target in product(range(4), keys, range(4)):
        layers: list[dict[str, Any]] = [dict(CONV) for _ in range(4)]
        layers[3][key] = target
        whole = described(*layers)
        problems: list[Diagnostic] = []
        found = without_first_layers(whole, count, problems)
        assert [layer.index for layer in found.layers] == [*range(4 - count)]
        moved = found.layers[-1].get(key)
        assert moved == ((target - count,) if key == "in_sequences" else target - count)
        assert [p.code for p in problems] == ["E232"] * (target < count)
    for count in (-1, 4, 5):
        problems = []
        assert without_first_layers(whole, count, problems) is whole
        assert [p.code for p in problems] == ["E225"]


@pytest.mark.parametrize("bits", [1, 2, 4, 8])
def test_test_weights_keep_their_highest_bits(tmp_path: Path, bits: int) -> None:
    """All pairs of extremes that lie around powers of two; what is lost is told."""
    whole = described({**CONV, "kernel_size": "1x1", "quantization": bits, "pad": 0})
    edges = sorted({s * (1 << n) + d for n in (0, 1, 3, 6, 7) for s in (1, -1) for d in (-1, 0, 1)})
    path = tmp_path / "weights.npy"
    for least, most in product(edges, repeat=2):
        if least > most:
            continue
        values = np.array([least, most, most]).reshape(1, 1, 3, 1, 1)
        np.save(path, values)
        problems: list[Diagnostic] = []
        options = ResolveOptions(weight_input=str(path))
        found = tensors_from_numpy(whole, list(whole.layers), options, problems)
        width = next(n for n in range(1, 12) if -(1 << n - 1) <= least and most < 1 << n - 1)
        if width > 8:
            assert [p.code for p in problems] == ["E206"]
            continue
        drop = max(width - bits, 0)
        kept = [value // (1 << drop) for value in (least, most, most)]
        assert found[0].weights.reshape(-1).tolist() == kept
        lost = any(k << drop != v for k, v in zip(kept, (least, most, most), strict=True))
        assert [p.code for p in problems] == ["W242"] * lost
        assert f"lowest {drop} bits" in f"{problems}" or drop < 2 or not lost


@pytest.mark.parametrize("count", range(4))
def test_test_biases_go_to_layers_in_their_order(tmp_path: Path, count: int) -> None:
    """One array of any shape for each layer; layers behind the last array have none."""
    layer = {**CONV, "kernel_size": "1x1", "pad": 0}
    whole = described(layer, layer, layer)
    files = (tmp_path / "weights.npy", tmp_path / "biases.npy")
    kernels = [np.ones((3, 3, 1, 1), np.int64)] * 3
    biases = [np.array([[[low], [0], [high]]]) for low, high in ((-128, 127), (-7, 5), (1, 2))]
    for file, arrays in zip(files, (kernels, biases[:count]), strict=True):
        with file.open("wb") as opened:
            for array in arrays:
                np.save(opened, array)
    options = ResolveOptions(weight_input=str(files[0]), bias_input=str(files[1]), no_bias=(1,))
    try:
        tensors = tensors_from_numpy(whole, list(whole.layers), options, [])
    except DiagnosticError as exc:
        assert not count and exc.diagnostics[0].code == "E211"
        return
    assert count
    expected = {n: None if n == 1 or n >= count else [*biases[n].flat] for n in range(3)}
    assert {n: t.bias if t.bias is None else [*t.bias] for n, t in tensors.items()} == expected
    for outside in (-129, 128):
        np.save(files[1], np.array([outside, 0, 0]))
        with pytest.raises(DiagnosticError, match="E207"):
            tensors_from_numpy(whole, list(whole.layers), options, [])


def test_what_a_description_leaves_open_has_no_effect(tmp_path: Path) -> None:
    """A layer that only copies its input is one of which nothing is known but its sizes."""
    network, _ = build(tmp_path, describe({"op": "none", "processors": 7}), sample(3, 4, 4))
    (layer,) = network.network.layers
    told = ("place", "places")
    for one in fields(Layer):
        if one.default is not MISSING and one.name not in told:
            assert getattr(layer, one.name) == one.default, one.name
    assert (layer.in_channels, layer.out_channels) == (3, 3)
    assert layer.in_dim == layer.pooled_dim == layer.out_dim == (4, 4)


def noted(problems: list[str]) -> Any:
    return lambda code, *_, **__: problems.append(code)


def test_weights_and_biases_have_the_limits_of_their_width() -> None:
    for bits, value in product((1, 2, 4, 8, -1), range(-130, 131)):
        codes: list[str] = []
        inside = value in (-1, 1) if bits < 0 else -(2 ** (bits - 1)) <= value < 2 ** (bits - 1)
        assert fit(np.array([value]), bits, noted(codes)) == inside
        assert codes == ["E206"] * (not inside)
        assert (limits(bits)[0] <= value <= limits(bits)[1]) == (inside or (bits, value) == (-1, 0))
    for stored, unit in ((0, 1), (1, 1), (2, 2), (4, 8), (8, 128)):
        for value in {edge * unit + d for edge in (-129, -128, 0, 127, 128) for d in (-1, 0, 1)}:
            codes = []
            found = scaled_bias(np.array([value]), stored, "b", noted(codes))
            inside = -128 <= value // unit <= 127
            assert (None if found is None else found.tolist()) == (
                [value // unit] if inside else None
            )
            assert codes == ["E207"] * (not inside)
    for number in (2.0**31, -(2.0**31), 2.0**31 + 1, 1.9, -1.9, 0.0):
        cut = truncated(np.array([number]), "w", noted(codes := []))
        assert (cut is None) == (abs(number) > 2**31) == (codes == ["E204"])
        assert cut is None or cut.tolist() == [int(number)]


def test_pixels_of_a_progression_are_words_that_grow() -> None:
    draw = np.random.default_rng(1)
    for channels, words, step in product(range(1, 6), (0, 1, 3, 8), (0, 1, 0x01020304, -1)):
        sample = draw.integers(-128, 128, (channels, 3, 5))
        options = ResolveOptions(synthesize_input=step, synthesize_words=words)
        made = progression(sample, options)
        assert made is not None
        found = progressing(sample, made)
        pixels = sample.reshape(channels, -1)
        for pixel in range(15):
            wanted = pixels[:, pixel].tolist()
            if channels <= 4 and words:
                lanes = [int(v) % 256 for v in pixels[:, pixel % words]]
                word = sum(v << 8 * n for n, v in enumerate(lanes)) + pixel // words * step
                wanted = [((word >> 8 * n) + 128) % 256 - 128 for n in range(channels)]
            assert found.reshape(channels, -1)[:, pixel].tolist() == wanted
    assert progression(sample, ResolveOptions()) is None


@pytest.mark.parametrize(("form", "bits"), [(555, (5, 5, 5)), (565, (5, 6, 5)), (None, (8, 8, 8))])
def test_cameras_see_the_upper_bits(form: int | None, bits: tuple[int, ...]) -> None:
    values = np.arange(-128, 128).reshape(1, 16, 16).repeat(3, axis=0)
    found = seen_by_camera(values, ResolveOptions(camera_format=form))
    for channel, kept in enumerate(bits):
        step = 2 ** (8 - kept)
        assert found[channel].tolist() == (values[channel] // step * step).tolist()
    assert (seen_by_camera(values[:2], ResolveOptions(camera_format=form)) == values[:2]).all()


def test_series_is_refused_where_a_kernel_moves_in_two_directions(tmp_path: Path) -> None:
    path = tmp_path / "sample.npy"
    np.save(path, np.zeros((3, 16), np.int64))
    options = ResolveOptions(sample_input=str(path))
    kernels = [("Conv2d", "1x1", None), ("Conv2d", "2x2", None), ("Conv2d", "3x3", None),
               ("Conv2d", "3x3", "[4, 4]"), ("Conv1d", "3", None)]  # fmt: skip
    for op, size, stated in kernels:
        layer = {"op": op, "kernel_size": size, "in_dim": stated}
        one, last = {"op": "Conv2d", "kernel_size": "1x1"}, {"op": "Conv1d", "kernel_size": 2}
        large = {"op": "Conv2d", "kernel_size": "3x3"}
        refuses = op == "Conv2d" and size != "1x1" and stated is None
        cases = [([layer, one], 0), ([layer, large], 0), ([one, layer, last], 1), ([one, layer], 1)]
        for layers, start in cases:
            keys = described(*layers)
            try:
                found = read_sample(keys, ResolveOptions(
                    sample_input=options.sample_input, start_layer=start))  # fmt: skip
            except DiagnosticError:
                assert refuses
            else:
                assert found.shape == (3, 16, 1)
                assert not refuses


@pytest.mark.parametrize("shape", [(3, 4, 4), (3, 4), (1, 16)])
def test_sample_of_another_size_than_the_models_is_told(shape: tuple[int, ...]) -> None:
    """Other channels alone are told elsewhere; as many values may be folded another way."""
    whole = described(CONV)
    for other in product((1, 3, 4), (4, 8), (1, 4)):
        options = ResolveOptions(sample_input="x.npy", sample_shape=shape)
        found = [*other_than_of_data_set(np.zeros(other), whole, options)]
        sizes = (*shape, 1)[1:3]
        differs = other[1:] != sizes and np.zeros(other).size != np.zeros(shape).size
        assert [d.code for d in found] == ["W235"] * bool(differs)


@pytest.mark.parametrize("key", ["unload", "data_buffer"])
def test_delivered_and_buffered_data_fits_processors_and_memory(key: str) -> None:
    """From the last offset that fits on, a word further does not; gaps count between words."""
    for channels, width, gap, dim in product((3, 64, 65), (8, 32), (0, 2), (1, 3)):
        if key == "data_buffer" and (width, gap) != (8, 0):
            continue
        share = channels_per_pass(channels)
        size = 4 * (width // 8)
        words = dim * dim * passes(channels)
        reach = size * (words + (words - 1) * gap)
        for count, offset in product((share - 1, share, share + 1), (0, 4)):
            if count > 64:
                continue
            section = {
                "processors": (1 << count) - 1,
                "channels": channels,
                "dim": f"[{dim}, {dim}]",
                "offset": MAX78000.instance_bytes - reach + offset,
            }
            section |= {"write_gap": gap, "width": width} if key == "unload" else {"name": "ring"}
            text = "{" + ", ".join(f"{k}: {v}" for k, v in section.items()) + "}"
            whole = described(CONV, **{key: f"[{text}]"})
            exact = channels > 64 or key == "data_buffer"
            wanted = ["E228"] * (count < share or (count > share and exact))
            wanted += ["E229"] * (offset > 0)
            assert [d.code for d in check_sections(whole, MAX78000)] == wanted


@pytest.mark.parametrize("stop", range(3))
def test_results_of_a_network_cut_short_stay_where_the_layer_behind_reads_them(
    tmp_path: Path, stop: int
) -> None:
    """What no layer of the network reads is at the processors of the one that is left out."""
    layers = [{"op": "none", "processors": hex(mask(3, 8 * n))} for n in range(3)]
    options = files(tmp_path, sample(3, 4, 4), stop_after=stop)
    _, layout, _ = resolve(parse(describe(*layers), "net.yaml"), MAX78000, options)
    found = [layout.layers[n].output_processors for n in range(stop + 1)]
    assert found == [None] * stop + [mask(3, 8 * (stop + 1)) if stop < 2 else None]


@pytest.mark.parametrize("usual", [(4,), (3, 4), (3, 4, 4), (1, 3, 4, 4)])
def test_sample_of_another_size_than_that_of_its_data_set_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, usual: tuple[int, ...]
) -> None:
    (tmp_path / "tests").mkdir()
    np.save(tmp_path / "tests" / "sample_tiny.npy", np.zeros(usual, np.int64))
    monkeypatch.chdir(tmp_path)
    options = ResolveOptions(sample_input="x.npy")
    found = [*other_than_of_data_set(np.zeros((3, 8, 8)), described(CONV), options)]
    assert [d.code for d in found] == ["W235"] * (len(usual) in (2, 3))


@pytest.mark.parametrize("usual", [None, b"", b"no numbers", "folder"])
def test_what_cannot_be_read_beside_a_data_set_tells_nothing_of_the_sample(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, usual: bytes | str | None
) -> None:
    path = tmp_path / "tests" / "sample_tiny.npy"
    path.parent.mkdir()
    if isinstance(usual, bytes):
        path.write_bytes(usual)
    elif usual:
        path.mkdir()
    monkeypatch.chdir(tmp_path)
    options = ResolveOptions(sample_input="x.npy")
    assert not [*other_than_of_data_set(np.zeros((3, 8, 8)), described(CONV), options)]


@pytest.mark.parametrize("counts", [(4, 8), (8, 4)])
def test_operands_of_other_channels_are_refused_where_weights_are_for_the_first(
    tmp_path: Path, counts: tuple[int, int]
) -> None:
    def layer(count: int, name: str, read: Any, **keys: Any) -> dict[str, Any]:
        return {"processors": mask(count), "op": "Conv2d", "kernel_size": "3x3", "pad": 1,
                "activate": "none", "name": name, "in_sequences": read, **keys}  # fmt: skip

    text = describe(
        layer(3, "a", "input"),
        layer(3, "b", "input", out_offset=0x2000),
        layer(counts[0], "sum", ["a", "b"], eltwise="add", operands=2),
    )
    shapes = (counts[0], 3, 3, 3), (counts[1], 3, 3, 3), (2, counts[0], 3, 3)
    made, _ = build(tmp_path, text, sample(3, 4, 4), [weights(*shape) for shape in shapes])
    assert made.layers[-1].in_channels == counts[0]
    found = {x.code for x in check(made.network, made.layout, made.chip)}
    assert "E361" in found


def test_bypassed_points_have_nine_ones_beside_streams_in_the_first_nine_layers(
    tmp_path: Path,
) -> None:
    """Line buffers work on rows of 3x3 kernels: such a layer sees, and pads, one pixel more."""
    for number, (index, stream, size) in enumerate(product((8, 9), (0, 1, 2), ("1x1", "3x3"))):
        folder = tmp_path / str(number)
        folder.mkdir()
        layers: list[dict[str, Any]] = [{**CONV, "kernel_size": "1x1", "pad": 0}] * 10
        layers[index] = {**layers[index], "kernel_size": size, "pad": 0, "bypass": True}
        layers[index - stream] = {**layers[index - stream], "streaming": True}
        kernels = [weights(3, 3, 1, 1, seed=i) for i in range(9)]
        network, _ = build(folder, describe(*layers), sample(3, 4, 4), kernels)
        found = network.layer(index)
        nine = stream < 2 and size == "1x1" and index == 8
        assert found.pad == ((1, 1) if nine else (0, 0))
        assert found.kernel == ((3, 3) if nine or size == "3x3" else (1, 1))


def test_what_is_unloaded_needs_a_place_and_has_bytes_without_gaps_unless_stated() -> None:
    given: dict[str, Any] = {"processors": 7, "offset": 64, "width": 32, "write_gap": 2}
    for kept in product((False, True), repeat=4):
        keys = {k: v for (k, v), keep in zip(given.items(), kept, strict=True) if keep}
        whole = described(CONV, unload=[{"channels": 3, "dim": [4, 4], **keys}])
        found = [(x.processors, x.offset, x.width, x.write_gap) for x in _deliveries(whole)]
        placed = "processors" in keys and "offset" in keys
        assert found == [(7, 64, keys.get("width", 8), keys.get("write_gap", 0))] * placed


def test_copied_channels_are_a_slice_of_those_that_are_read() -> None:
    one = {**CONV, "kernel_size": "1x1"}
    for first, count in product(range(7), range(1, 8)):
        (layer,) = described({**one, "copy_channels": [first, count]}).layers
        found = filled_tensors(layer, None, np.ones(6, np.bool_), 1)
        assert (found is not None) == (first + count <= 6)
        if found is not None:
            assert found.weights.astype(bool)[:, :, 0, 0].tolist() == [
                [c == first + n for c in range(6)] for n in range(count)
            ]


def test_tensors_hold_something_within_32_bits() -> None:
    told: list[str] = []

    def noted(code: str, *_: Any, **__: Any) -> None:
        told.append(code)

    for most, kind in product((0, 1, 2**31 - 1, 2**31, 2**31 + 1), (np.int64, np.float64)):
        for values in ([], [most], [-most, 1]):
            told.clear()
            found = truncated(np.array(values, kind), "a", noted)
            assert (found is None) == bool(told) == (not values or most > 2**31)
