"""Descriptions that fix some places and leave others open."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ai8xtools.diagnostics import Diagnostic, DiagnosticError
from ai8xtools.synthesis.layout import InputPort
from device import MAX78002
from tests.conftest import ROOT
from tests.synthesis.arranged import ADD, CONV, ONE, PASS, arranged, kernels_of
from tests.synthesis.networks import Keys, describe, files, sample

THREE = kernels_of((8, 3, 3, 3), (8, 8, 3, 3), (4, 8, 3, 3))
SHAPE = (3, 8, 8)


def contradiction(folder: Path, *layers: Keys, **more: object) -> Diagnostic:
    """Return the message about keys that cannot be kept."""
    with pytest.raises(DiagnosticError) as caught:
        arranged(folder, *layers, **more)  # type: ignore[arg-type]
    (found,) = [d for d in caught.value.diagnostics if d.code.startswith("E")]
    assert found.code == "E423"
    return found


def test_given_keys_are_kept(tmp_path: Path) -> None:
    layers = (
        {**CONV, "out_offset": 0x2000},
        {**CONV, "processors": "0xff00", "kernel_offset": 40, "out_offset": 0x1234},
        {**CONV, "output_processors": "0x0000.000f.0000.0000", "bias_group": 0},
    )
    found = arranged(tmp_path, *layers, shape=SHAPE, kernels=THREE)
    assert found.layout(0).output_processors == 0xFF00
    assert found.layout(0).out_offset == found.layout(1).in_offset == 0x2000
    assert found.layout(1).out_offset == found.layout(2).in_offset == 0x1234
    assert found.made.placement.kernels[1].first == 40
    assert found.layout(2).output_processors == 0xF << 32


def test_given_processors_with_gaps_are_used_as_they_are(tmp_path: Path) -> None:
    layers = (CONV, {**CONV, "processors": "0x0000.0000.0000.7878"}, CONV)
    found = arranged(tmp_path, *layers, shape=SHAPE, kernels=THREE)
    assert found.layout(0).output_processors == found.layout(1).processors == 0x7878


def test_given_format_and_streaming_exclude_other_ways(tmp_path: Path) -> None:
    planar = arranged(
        tmp_path, {**CONV, "data_format": "CHW"}, CONV, CONV, shape=SHAPE, kernels=THREE
    )
    assert planar.layout(0).processors == 0x111
    streaming = arranged(
        tmp_path, {**CONV, "streaming": True}, CONV, CONV, shape=SHAPE, kernels=THREE
    )
    assert streaming.made.placement.layout.input_port is InputPort.FIFO
    assert streaming.layout(0).streaming and not streaming.layout(1).streaming


RESIDUAL = (
    {**CONV, "name": "a"},
    {**CONV, "name": "b", "in_sequences": "a"},
    {**PASS, "name": "keep", "in_sequences": "a"},
    {**ADD, "name": "sum", "in_sequences": "[keep, b]"},
    {**CONV, "name": "c"},
)


def with_keys(**keys: Keys) -> list[Keys]:
    """Return the residual network with more keys in some of its layers."""
    return [{**layer, **keys.get(str(layer["name"]), {})} for layer in RESIDUAL]


def test_operands_in_different_processors_contradict_each_other(tmp_path: Path) -> None:
    layers = with_keys(a={"output_processors": "0xff"}, b={"output_processors": "0xff00"})
    found = contradiction(tmp_path, *layers, shape=SHAPE, kernels=THREE)
    assert "'output_processors' in line 10 says 0x0000.0000.0000.00ff" in found.message
    assert "'output_processors' in line 18 says 0x0000.0000.0000.ff00" in found.message
    assert found.message.endswith(
        "but they cannot both be kept: layer 2 (keep) leaves them in their processors; layer 3 "
        "(c) combines them"
    )


def test_offsets_of_operands_contradict_each_other(tmp_path: Path) -> None:
    layers = with_keys(keep={"out_offset": 0x100}, b={"out_offset": 0x100})
    found = contradiction(tmp_path, *layers, shape=SHAPE, kernels=THREE)
    assert found.place is not None and found.place.line == 19
    assert "'out_offset' in line 11 says 0x100" in found.message


def test_a_gap_that_nothing_fills_is_refused(tmp_path: Path) -> None:
    layers = with_keys(b={"write_gap": 2})
    found = contradiction(tmp_path, *layers, shape=SHAPE, kernels=THREE)
    assert "'write_gap' is 2, but what is read and written here needs 1" in found.message


def test_a_mask_of_too_few_processors_is_refused(tmp_path: Path) -> None:
    layers = (CONV, {**CONV, "processors": 0x7F}, CONV)
    found = contradiction(tmp_path, *layers, shape=SHAPE, kernels=THREE)
    assert "names 7 processors, 8 channels need 8" in found.message


def test_keys_that_leave_no_room_are_named(tmp_path: Path) -> None:
    layers = (ONE, {**ONE, "in_offset": 0x5000}, ONE)
    kernels = kernels_of((64, 64, 1, 1), (64, 64, 1, 1), (4, 64, 1, 1))
    found = contradiction(tmp_path, *layers, shape=(64, 60, 60), kernels=kernels)
    assert found.message.endswith("without 'in_offset' of layer 1 (line 14) everything fits")
    assert found.place is not None and found.place.line == 14


def test_processors_without_any_offset_leave_offsets_open(tmp_path: Path) -> None:
    layers = [{**CONV, "processors": mask} for mask in ("0x7", "0xff", "0xff00")]
    found = arranged(tmp_path, *layers, shape=SHAPE, kernels=THREE)
    assert [found.layout(i).processors for i in range(3)] == [7, 0xFF, 0xFF00]
    assert found.layout(0).out_offset == found.layout(1).in_offset != 0


@pytest.mark.parametrize(
    ("keys", "others"),
    [
        ({"calcx4": True}, {}),
        ({"readahead": True}, {}),
        ({"next_sequence": 2}, {}),
        ({}, {"unload": "[{processors: 1, channels: 1, dim: 1, offset: 0}]"}),
    ],
)
def test_what_needs_stated_places_is_named(
    tmp_path: Path, keys: Keys, others: dict[str, str]
) -> None:
    layers = ({**CONV, **keys}, CONV, {**CONV, "in_sequences": 0})
    with pytest.raises(DiagnosticError) as caught:
        arranged(
            tmp_path, *layers, shape=SHAPE, kernels=THREE, chip=MAX78002, execute=False, **others
        )
    assert {d.code for d in caught.value.diagnostics if d.code[0] == "E"} == {"E426"}


def test_a_complete_description_does_not_load_the_search(tmp_path: Path) -> None:
    places = {"processors": "0x7", "in_offset": 0, "out_offset": 0x2000}
    text = describe({**CONV, **places, "output_processors": "0xff"})
    options = files(tmp_path, sample(*SHAPE), THREE[:1])
    (tmp_path / "net.yaml").write_text(text)
    program = (
        "import sys; from device import MAX78000; "
        "from ai8xtools.synthesis.pipeline import synthesize; "
        "from ai8xtools.synthesis.options import EncodeOptions, ResolveOptions; "
        f"synthesize({str(tmp_path / 'net.yaml')!r}, MAX78000, ResolveOptions("
        f"{options.sample_input!r}, weight_input={options.weight_input!r}), EncodeOptions()); "
        "sys.exit('ai8xtools.synthesis.arrange.arranging' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False).returncode == 0
