"""All stages together: everything that is wrong with a file is said in one run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ai8xtools.diagnostics import Diagnostic, DiagnosticError
from ai8xtools.synthesis.options import EncodeOptions, ResolveOptions
from ai8xtools.synthesis.pipeline import Synthesis, examine, synthesize
from device import MAX78000
from tests.synthesis.networks import describe, files, sample, weights

CONV: dict[str, Any] = {"processors": 7, "op": "Conv2d", "pad": 1, "activate": "ReLU"}
KERNELS = [weights(3, 3, 3, 3, seed=i) for i in range(4)]


def written(
    folder: Path, text: str, kernels: list[NDArray[Any]], data: NDArray[Any], **options: Any
) -> tuple[str, ResolveOptions]:
    """Write a description and what belongs to it."""
    path = folder / "net.yaml"
    path.write_text(text)
    return str(path), files(folder, data, kernels, [], **options)


def complaints(folder: Path, *layers: dict[str, Any], **options: Any) -> list[Diagnostic]:
    """Return the errors that `examine` raises for layers of three channels on 8x8 pixels."""
    path, resolving = written(
        folder, describe(*layers), KERNELS[: len(layers)], sample(3, 8, 8), **options
    )
    with pytest.raises(DiagnosticError) as refusal:
        examine(path, MAX78000, resolving, EncodeOptions())
    return [d for d in refusal.value.diagnostics if d.severity == "error"]


def codes(folder: Path, *layers: dict[str, Any], **options: Any) -> list[tuple[str, int]]:
    """Return code and layer of each error."""
    found = complaints(folder, *layers, **options)
    return [(d.code, int(d.message.split("layer ")[1][0])) for d in found]


def test_errors_of_all_stages_are_reported_together(tmp_path: Path) -> None:
    found = codes(
        tmp_path,
        {**CONV, "colour": "red"},
        {**CONV, "output_shift": 40},
        {**CONV, "bias_group": 2},
        {**CONV, "out_offset": 0x4000},
    )
    assert found == [("E105", 0), ("E301", 1), ("E325", 2)]


def test_errors_of_keys_and_of_memory_are_reported_together(tmp_path: Path) -> None:
    found = codes(tmp_path, {**CONV, "out_offset": 0}, {**CONV, "output_shift": 40})
    # with layer 0 mended, layer 1 overwrites nothing
    assert sorted(found) == [("E301", 1), ("E404", 0)]


def test_misspelled_key_counts_as_the_one_that_was_meant(tmp_path: Path) -> None:
    (unknown, wrong) = complaints(tmp_path, {**CONV, "output_shfit": 40})
    assert (unknown.code, unknown.remedy) == ("E105", "Did you mean 'output_shift'?")
    assert (wrong.code, wrong.place and wrong.place.line) == ("E301", unknown.place.line)  # type: ignore[union-attr]


def test_correct_spelling_wins_over_a_misspelled_one(tmp_path: Path) -> None:
    assert codes(tmp_path, {**CONV, "output_shfit": 40, "output_shift": 1}) == [("E105", 0)]


def test_damaged_layer_is_not_judged_but_others_are(tmp_path: Path) -> None:
    found = codes(
        tmp_path,
        {**CONV, "pad": 5},
        {**CONV, "max_pool": "two", "pad": 3},
        {**CONV, "pad": 4},
    )
    # behind layer 1 nothing is said that follows from its size or from the weights; a padding of 3
    # is wrong whatever these are
    assert found == [("E302", 0), ("E302", 1), ("E109", 1), ("E302", 2)]


def test_unknown_source_does_not_hide_other_errors(tmp_path: Path) -> None:
    found = codes(tmp_path, CONV, {**CONV, "in_sequences": "nobody"}, {**CONV, "pad": 3})
    assert found == [("E130", 1), ("E302", 2)]


def test_weights_that_do_not_fit_do_not_hide_other_errors(tmp_path: Path) -> None:
    found = codes(tmp_path, CONV, {**CONV, "kernel_size": "1x1", "pad": 0}, {**CONV, "pad": 3})
    assert found == [("E208", 1), ("E302", 2)]


def test_missing_files_do_not_hide_other_errors(tmp_path: Path) -> None:
    found = complaints(
        tmp_path, {**CONV, "pad": 3}, weight_input="none.npy", sample_input="neither.npy"
    )
    assert [d.code for d in found] == ["E211", "E212", "E302"]
    found = complaints(tmp_path, {**CONV, "pad": 3}, weight_input="none.npy")
    assert [d.code for d in found] == ["E211", "E302"]


def test_lost_operation_hides_no_keys_of_other_layers(tmp_path: Path) -> None:
    found = codes(tmp_path, {**CONV, "op": "Conv3d"}, {**CONV, "pad": 3})
    assert found == [("E109", 0), ("E302", 1)]


def test_missing_processors_are_reported_with_errors_of_other_layers(tmp_path: Path) -> None:
    bare = {key: value for key, value in CONV.items() if key != "processors"}
    assert codes(tmp_path, CONV, bare, {**CONV, "pad": 3}) == [("E108", 1), ("E302", 2)]


def test_complaints_come_in_the_order_of_the_file(tmp_path: Path) -> None:
    first, second = {**CONV, "sequence": 1, "pad": 3}, {**CONV, "sequence": 0, "pad": 4}
    found = complaints(tmp_path, first, second)
    assert [d.message for d in found] == [
        "layer 1: 'pad' is 3, the limit for a 3x3 kernel is 2",
        "layer 0: 'pad' is 4, the limit for a 3x3 kernel is 2",
    ]


def test_key_that_changes_no_size_hides_nothing(tmp_path: Path) -> None:
    found = codes(
        tmp_path,
        {**CONV, "processors": 15},
        {**CONV, "output_shift": 40},
        {**CONV, "output_width": 33},
    )
    assert found == [("E320", 0), ("E301", 1), ("E109", 2)]


def test_errors_of_the_order_do_not_hide_others(tmp_path: Path) -> None:
    found = complaints(tmp_path, {**CONV, "pad": 3}, stop_after=9)
    assert [d.place.option for d in found if d.code == "E214" and d.place] == ["--stop-after"]
    assert "E302" in {d.code for d in found}


def test_list_of_layers_may_be_misspelled(tmp_path: Path) -> None:
    text = describe({**CONV, "pad": 3}).replace("layers:", "Layers:")
    path, resolving = written(tmp_path, text, KERNELS[:1], sample(3, 8, 8))
    with pytest.raises(DiagnosticError) as refusal:
        examine(path, MAX78000, resolving, EncodeOptions())
    errors = [d for d in refusal.value.diagnostics if d.severity == "error"]
    assert [d.code for d in errors] == ["E105", "E302"]
    assert errors[0].remedy == "Did you mean 'layers'?"


def test_consequences_are_left_out(tmp_path: Path) -> None:
    assert codes(tmp_path, {**CONV, "pad": 7}, CONV, CONV) == [("E302", 0)]


def test_missing_flatten_is_suggested_once(tmp_path: Path) -> None:
    linear = {"processors": 7, "op": "Linear", "activate": "none"}
    path, resolving = written(
        tmp_path, describe(CONV, linear), [KERNELS[0], weights(2, 192)], sample(3, 8, 8)
    )
    with pytest.raises(DiagnosticError) as refusal:
        examine(path, MAX78000, resolving, EncodeOptions())
    (found,) = (d for d in refusal.value.diagnostics if d.severity == "error")
    assert (found.code, found.remedy) == ("E360", "Add flatten: true.")


# Options that change which layers and channels there are


def result(folder: Path, text: str, data: NDArray[Any], **options: Any) -> Synthesis:
    """Synthesize a network of 3x3 convolutions from three to three channels."""
    path, resolving = written(folder, text, KERNELS, data, **options)
    return synthesize(path, MAX78000, resolving, EncodeOptions())


LAST = {**CONV, "in_sequences": 1, "in_offset": 0, "out_offset": 0x2000}


def test_first_layers_are_left_out_and_references_follow(tmp_path: Path) -> None:
    second = {**CONV, "in_offset": 0x4000, "out_offset": 0}
    text = describe(CONV, second, LAST)
    made = result(tmp_path, text, sample(3, 8, 8), skip_yaml_layers=1)
    text = describe(second, {**LAST, "in_sequences": 0})
    rest = result(tmp_path, text, sample(3, 8, 8))
    assert [layer.sources for layer in made.network.layers] == [None, (0,)]
    assert np.array_equal(made.activations.outputs[1], rest.activations.outputs[1])


@pytest.mark.parametrize("name", ["", "front"])
def test_reference_to_a_layer_left_out_is_refused(tmp_path: Path, name: str) -> None:
    last = {**LAST, "in_sequences": name or 0}
    (found,) = complaints(tmp_path, {**CONV, "name": name or None}, CONV, last, skip_yaml_layers=1)
    assert found.code == "E232"
    assert found.message == (
        "layer 2: 'in_sequences' names layer 0, which --skip-yaml-layers 1 leaves out"
    )


def test_some_layer_must_remain(tmp_path: Path) -> None:
    (found,) = complaints(tmp_path, CONV, CONV, skip_yaml_layers=2)
    assert str(found).endswith(
        "net.yaml:11:3: option --skip-yaml-layers: error: leaves out 2 layers, the description "
        "has 2 [E225]\n"
        "  Use a number from 0 to 1."
    )


def test_layer_reads_some_channels_of_its_source(tmp_path: Path) -> None:
    some = {**CONV, "processors": 6, "in_channels": 2, "in_channel_skip": 1}
    kernels = [weights(4, 3, 3, 3), weights(3, 2, 3, 3)]
    text = describe({**CONV, "output_processors": 15}, some)
    path, resolving = written(tmp_path, text, kernels, sample(3, 8, 8), reshape_inputs=True)
    made = synthesize(path, MAX78000, resolving, EncodeOptions())
    source = made.activations.outputs[0]
    alone = describe({**CONV, "processors": 3})
    path, resolving = written(tmp_path, alone, kernels[1:], source[1:3].copy())
    wanted = synthesize(path, MAX78000, resolving, EncodeOptions())
    assert np.array_equal(made.activations.outputs[1], wanted.activations.outputs[0])
    through = {**some, "op": "none", "pad": None, "activate": None}
    text = describe({**CONV, "output_processors": 15}, through)
    path, resolving = written(tmp_path, text, kernels[:1], sample(3, 8, 8), reshape_inputs=True)
    passed = synthesize(path, MAX78000, resolving, EncodeOptions())
    assert np.array_equal(passed.activations.outputs[1], source[1:3])


def test_layer_does_not_read_more_channels_than_there_are(tmp_path: Path) -> None:
    some = {**CONV, "in_channel_skip": 1}
    (found,) = complaints(tmp_path, CONV, some, reshape_inputs=True)
    assert found.message == (
        "layer 1: layer 0 gives 3x8x8, but the weights or keys of this layer need 3x8x8 behind "
        "1 channels"
    )


# Remedies that name a value


def test_offset_that_is_named_resolves_an_overlap(tmp_path: Path) -> None:
    layers = [{**CONV, "out_offset": 0}, {**CONV, "out_offset": 0x4000}]
    (found,) = complaints(tmp_path, *layers)
    assert (found.code, found.remedy) == (
        "E404",
        "The lowest out_offset that leaves it alone is 0x100.",
    )
    path, resolving = written(
        tmp_path, describe({**CONV, "out_offset": 0x100}, {**CONV, "out_offset": 0}),
        KERNELS[:2], sample(3, 8, 8),
    )  # fmt: skip
    examine(path, MAX78000, resolving, EncodeOptions())


def test_there_may_be_no_such_offset(tmp_path: Path) -> None:
    path, resolving = written(
        tmp_path, describe({**CONV, "out_offset": 0x2F00}), KERNELS[:1], sample(3, 72, 72)
    )
    with pytest.raises(DiagnosticError) as refusal:
        examine(path, MAX78000, resolving, EncodeOptions())
    (found,) = (d for d in refusal.value.diagnostics if d.code == "E404")
    assert found.remedy == (
        "There is no room for the whole output beside it; pool more, or use other processors."
    )
