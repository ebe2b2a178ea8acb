"""Options, samples, entries and places that are doubtful are named by their codes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ai8xtools.diagnostics import Diagnostic, DiagnosticError
from ai8xtools.synthesis.emit import check_options
from ai8xtools.synthesis.emit.rtl.options import RtlOptions, check_rtl_options
from ai8xtools.synthesis.options import EncodeOptions
from ai8xtools.synthesis.pipeline import examine
from ai8xtools.synthesis.place import PlaceOptions
from device import MAX78000
from tests.synthesis.networks import build, describe, files, sample, weights
from tests.synthesis.programs import options
from tests.synthesis.stages import place, place_what_fits
from tests.synthesis.test_resolve import save_checkpoint

CONV: dict[str, Any] = {
    "op": "Conv2d", "kernel_size": "3x3", "pad": 1, "activate": "ReLU", "processors": 7,
}  # fmt: skip


def codes(found: Any) -> list[str]:
    return [one.code for one in found]


@pytest.mark.parametrize("timer", [None, 1])
@pytest.mark.parametrize("one_shot", [False, True])
def test_a_timer_measures_whole_inferences(timer: int | None, one_shot: bool) -> None:
    found = codes(check_options(options(timer=timer, one_shot=one_shot)))
    assert found == (["E092"] if one_shot and timer is not None else [])


@pytest.mark.parametrize("compact", [False, True])
@pytest.mark.parametrize("slow", [0, 2])
def test_slow_loading_is_of_input_that_is_not_loaded_by_a_loop(compact: bool, slow: int) -> None:
    found = codes(
        check_rtl_options(RtlOptions(options(), compact_data=compact, slow_load=slow), "out")
    )
    assert found == (["W041"] if compact and slow else [])


@pytest.mark.parametrize(("shape", "odd"), [((3, 4, 4), False), ((3, 5, 4), True)])
def test_a_sample_of_another_size_is_told(
    shape: tuple[int, ...], odd: bool, tmp_path: Path
) -> None:
    np.save(tmp_path / "sample.npy", sample(3, 4, 4))
    _, told = build(
        tmp_path, describe(CONV), sample(3, 4, 4), [weights(3, 3, 3, 3)], sample_shape=shape,
        sample_input=str(tmp_path / "sample.npy"),
    )  # fmt: skip
    assert ("W235" in codes(told)) is odd


@pytest.mark.parametrize("entry", [None, "conv.later_scale"])
def test_entries_of_later_versions_are_told(entry: str | None, tmp_path: Path) -> None:
    (tmp_path / "net.yaml").write_text(describe(CONV, arch="tinynet"))
    state: dict[str, Any] = {"conv.op.weight": weights(3, 3, 3, 3)}
    state["conv.output_shift"] = 0.0
    if entry is not None:
        state[entry] = 1.0
    file = save_checkpoint(tmp_path / "net.pth.tar", state)
    given = files(tmp_path, sample(3, 4, 4), checkpoint_file=file)
    *_, told = examine(str(tmp_path / "net.yaml"), MAX78000, given, EncodeOptions())
    assert ("W243" in codes(told)) is (entry is not None)


@pytest.mark.parametrize(("offset", "fits"), [(0, True), (8, True), (6, False), (1 << 20, False)])
def test_kernels_begin_at_a_multiple_of_four_columns(
    offset: int, fits: bool, tmp_path: Path
) -> None:
    text = describe({**CONV, "kernel_offset": offset})
    network, _ = build(tmp_path, text, sample(3, 4, 4), [weights(3, 3, 3, 3)])
    found: list[Diagnostic] = []
    try:
        place(network, PlaceOptions())
    except DiagnosticError as refusal:
        found += refusal.diagnostics
    assert codes(found) == ([] if fits else ["E442"])


def test_output_that_follows_its_input_closely_is_told(tmp_path: Path) -> None:
    """With more words between them it overwrites what is read, is doubtful, and is in order."""
    found = []
    for below in range(0, 100, 4):
        layer = {**CONV, "in_offset": 0x1000, "out_offset": 0x1000 - below, "in_place": True}
        network, _ = build(tmp_path, describe(layer), sample(3, 4, 4), [weights(3, 3, 3, 3)])
        told = codes(place_what_fits(network, PlaceOptions())[1])
        found.append([one for one in ("E404", "W416") if one in told])
    assert found == sorted(found, key=[["E404"], ["W416"], []].index)
    assert all(one in found for one in (["E404"], ["W416"], []))
