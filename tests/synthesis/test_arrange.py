"""Places that a description leaves open."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from ai8xtools.diagnostics import DiagnosticError
from ai8xtools.synthesis.configuration import configuration
from ai8xtools.synthesis.layout import InputPort
from ai8xtools.synthesis.options import EncodeOptions, PlaceOptions, ResolveOptions
from ai8xtools.synthesis.pipeline import synthesize
from ai8xtools.synthesis.words import phase_words
from device import MAX78000, MAX78002, Chip
from tests.synthesis.arranged import ADD, CONV, ONE, PASS, Arranged, arranged, kernels_of
from tests.synthesis.networks import Keys

BOTH = pytest.mark.parametrize("chip", [MAX78000, MAX78002], ids=lambda chip: chip.name)


def refused(folder: Path, *layers: Keys, **more: object) -> list[str]:
    """Return the codes of the errors of a network that is refused."""
    with pytest.raises(DiagnosticError) as caught:
        arranged(folder, *layers, **more)  # type: ignore[arg-type]
    return [d.code for d in caught.value.diagnostics if d.code.startswith("E")]


@BOTH
def test_layers_in_a_row_are_placed(tmp_path: Path, chip: Chip) -> None:
    layers = (
        CONV,
        {**CONV, "max_pool": 2, "pool_stride": 2},
        {**CONV, "kernel_size": "1x1", "pad": 0},
        {"op": "Linear", "flatten": True, "output_width": 32},
    )
    kernels = kernels_of((12, 3, 3, 3), (70, 12, 3, 3), (8, 70, 1, 1), (10, 8 * 36))
    found = arranged(tmp_path, *layers, shape=(3, 12, 12), kernels=kernels, chip=chip)
    assert found.made.placement.layout.input_port is InputPort.MEMORY
    assert found.layout(0).processors == 7


def test_the_same_network_gets_the_same_places(tmp_path: Path) -> None:
    kernels = kernels_of(*[(40, 40, 3, 3)] * 12)
    runs = [
        arranged(tmp_path, *[CONV] * 12, shape=(40, 6, 6), kernels=kernels, execute=False)
        for _ in range(2)
    ]
    assert runs[0].made.placement.layout == runs[1].made.placement.layout


RESIDUAL = (
    {**CONV, "name": "a"},
    {**CONV, "name": "b"},
    {**ADD, "name": "sum", "in_sequences": "[a, b]"},
    {**CONV, "name": "c"},
)


def test_operand_that_is_read_elsewhere_is_copied(tmp_path: Path) -> None:
    kernels = kernels_of((8, 3, 3, 3), (8, 8, 3, 3), (4, 8, 3, 3))
    found = arranged(tmp_path, *RESIDUAL, shape=(3, 8, 8), kernels=kernels)
    # the sum is done in front of c
    assert found.names == ["a", "b", "a_copy", "c"]
    assert found.layout("a_copy").write_gap == found.layout("b").write_gap == 1
    assert found.layout("a").write_gap == 0
    assert "N425" in found.codes


def test_max78002_skips_the_gaps_of_an_operand(tmp_path: Path) -> None:
    kernels = kernels_of((8, 3, 3, 3), (8, 8, 3, 3), (4, 8, 3, 3))
    found = arranged(tmp_path, *RESIDUAL, shape=(3, 8, 8), kernels=kernels, chip=MAX78002)
    assert found.names == ["a", "b", "c"]
    assert found.layout("b").read_gap == 1


@BOTH
def test_operands_of_several_passes(tmp_path: Path, chip: Chip) -> None:
    kernels = kernels_of((128, 3, 3, 3), (128, 128, 1, 1), (4, 128, 1, 1))
    layers = ({**CONV, "name": "a"}, {**ONE, "name": "b"}, {**ADD, "in_sequences": "[a, b]"}, ONE)
    found = arranged(tmp_path, *layers, shape=(3, 5, 5), kernels=kernels, chip=chip)
    assert len(found.names) == 4 if chip is MAX78000 else 5


def test_the_sample_as_an_operand_is_copied(tmp_path: Path) -> None:
    layers = ({**CONV, "name": "a"}, {**ADD, "in_sequences": "[input, a]"}, CONV)
    kernels = kernels_of((8, 8, 3, 3), (4, 8, 3, 3))
    found = arranged(tmp_path, *layers, shape=(8, 6, 6), kernels=kernels)
    assert "input_copy" in found.names


def test_a_source_that_is_added_to_itself_is_copied(tmp_path: Path) -> None:
    layers = ({**CONV, "name": "a"}, {**ADD, "in_sequences": "[a, a]"}, CONV)
    kernels = kernels_of((8, 3, 3, 3), (4, 8, 3, 3))
    assert "a_copy" in arranged(tmp_path, *layers, shape=(3, 6, 6), kernels=kernels).names


@pytest.mark.parametrize("counts", [(6, 6), (8, 20), (5, 9, 3), (64, 64), (40, 40), (20, 20, 40)])
@BOTH
def test_joined_channels(tmp_path: Path, counts: tuple[int, ...], chip: Chip) -> None:
    parts = [{**ONE, "name": f"part{i}", "in_sequences": "first"} for i in range(len(counts))]
    join = {**ONE, "in_sequences": str([f"part{i}" for i in range(len(counts))]).replace("'", "")}
    shapes = [(8, 3, 3, 3), *((n, 8, 1, 1) for n in counts), (4, sum(counts), 1, 1)]
    layers = ({**CONV, "name": "first"}, *parts, join)
    arranged(tmp_path, *layers, shape=(3, 4, 4), kernels=kernels_of(*shapes), chip=chip)


def test_join_whose_parts_cross_the_passes_is_refused_with_given_places(tmp_path: Path) -> None:
    layers = (
        {**CONV, "name": "a"},
        {**ONE, "name": "b", "in_sequences": "a"},
        {**ONE, "name": "c", "in_sequences": "[a, b]", "processors": "0x0000.000f.ffff.ffff"},
    )
    kernels = kernels_of((33, 3, 3, 3), (33, 33, 1, 1), (4, 66, 1, 1))
    assert refused(tmp_path, *layers, shape=(3, 4, 4), kernels=kernels) == ["E420"]


def test_part_of_two_joins_and_of_a_sum(tmp_path: Path) -> None:
    layers = (
        {**CONV, "name": "a"},
        {**CONV, "name": "b"},
        {**CONV, "name": "c", "in_sequences": "[a, b]"},
        {**ADD, "name": "sum", "in_sequences": "[b, c]"},
        {**CONV, "name": "d", "in_sequences": "[a, sum]"},
        {**CONV, "name": "e", "in_sequences": "[a, sum, d]"},
    )
    shapes = ((8, 3, 3, 3), (8, 8, 3, 3), (8, 16, 3, 3), (8, 16, 3, 3), (4, 24, 3, 3))
    arranged(tmp_path, *layers, shape=(3, 4, 4), kernels=kernels_of(*shapes))


def test_joins_in_contradictory_order_are_copied(tmp_path: Path) -> None:
    layers = (
        {**CONV, "name": "a"},
        {**CONV, "name": "b"},
        {**CONV, "name": "c", "in_sequences": "[a, b]"},
        {**CONV, "name": "d", "in_sequences": "[c, b, a]"},
    )
    shapes = ((8, 3, 3, 3), (8, 8, 3, 3), (8, 16, 3, 3), (4, 24, 3, 3))
    found = arranged(tmp_path, *layers, shape=(3, 4, 4), kernels=kernels_of(*shapes))
    assert len(found.names) > len(layers)


def test_poolings_are_merged_into_the_convolution(tmp_path: Path) -> None:
    pool = {"op": "Passthrough", "max_pool": 2, "pool_stride": 2}
    kernels = kernels_of((8, 3, 3, 3), (4, 8, 3, 3))
    found = arranged(tmp_path, CONV, pool, pool, CONV, shape=(3, 13, 17), kernels=kernels)
    assert len(found.names) == 2
    assert found.made.network.final.pooling.window == (4, 4)


def test_poolings_of_all_sizes_are_merged_only_where_the_values_are_the_same(
    tmp_path: Path,
) -> None:
    """Windows that stand apart leave pixels out, which one larger window would count."""
    kernels = kernels_of((2, 1, 1, 1), (2, 2, 1, 1))
    merged = set()
    for window, stride, second, step in itertools.product((2, 3), (1, 2, 3), (2, 3), (1, 2)):
        pools = [{**PASS, "max_pool": w, "pool_stride": s}
                 for w, s in ((window, stride), (second, step))]  # fmt: skip
        found = arranged(
            tmp_path, ONE, *pools, ONE, shape=(1, 12, 13), kernels=kernels, execute=False
        )
        if len(found.names) == 2:
            merged.add((window, stride, second, step))
    assert {(2, 2, 2, 2), (3, 2, 2, 1)} <= merged
    assert (2, 3, 2, 1) not in merged


def test_average_after_maximum_stays_apart(tmp_path: Path) -> None:
    pools = [{"op": "Passthrough", f"{kind}_pool": 2, "pool_stride": 2} for kind in ("max", "avg")]
    kernels = kernels_of((8, 3, 3, 3), (4, 8, 3, 3))
    found = arranged(tmp_path, CONV, *pools, CONV, shape=(3, 13, 17), kernels=kernels)
    assert len(found.names) == 3


@BOTH
def test_large_sample_streams(tmp_path: Path, chip: Chip) -> None:
    size = 120 if chip is MAX78000 else 180
    layers = (CONV, {**CONV, "max_pool": 4, "pool_stride": 4}, CONV)
    kernels = kernels_of((4, 8, 3, 3), (8, 4, 3, 3), (4, 8, 3, 3))
    found = arranged(tmp_path, *layers, shape=(8, size, size), kernels=kernels, chip=chip)
    assert found.made.placement.layout.input_port is InputPort.FIFO
    assert found.layout(0).streaming and found.layout(1).streaming


def test_large_grey_sample_is_loaded_planar(tmp_path: Path) -> None:
    layers = ({**CONV, "max_pool": 4, "pool_stride": 4}, CONV)
    kernels = kernels_of((4, 1, 3, 3), (8, 4, 3, 3))
    found = arranged(tmp_path, *layers, shape=(1, 120, 120), kernels=kernels)
    assert found.layout(0).channels_first
    assert found.made.placement.layout.input_port is InputPort.MEMORY


def test_results_overwrite_inputs_as_a_last_resort(tmp_path: Path) -> None:
    kernels = kernels_of((64, 20, 1, 1), (64, 64, 3, 3), (4, 64, 1, 1))
    found = arranged(tmp_path, ONE, CONV, ONE, shape=(20, 85, 85), kernels=kernels)
    assert found.layout(1).in_place
    assert found.codes.count("N424") >= 1


def test_rolling_buffer_gets_a_place(tmp_path: Path) -> None:
    layers = (
        {**CONV, "name": "a", "max_pool": 2, "pool_stride": 2},
        {**PASS, "name": "move", "in_sequences": "past", "in_dim": 4, "in_channels": 8,
         "buffer_shift": 1},
        {**CONV, "name": "add", "in_sequences": "a", "pad": 0, "buffer_insert": 1},
        {"op": "Conv1d", "name": "last", "in_sequences": "past", "in_dim": 5, "in_channels": 8,
         "kernel_size": 3, "pad": 0, "activate": "None"},
    )  # fmt: skip
    buffer = "[{name: past, channels: 8, dim: 5}]"
    kernels = kernels_of((8, 3, 3, 3), (8, 8, 3, 3), (4, 8, 3))
    found = arranged(
        tmp_path, *layers, shape=(3, 6, 6), kernels=kernels, data_buffer=buffer,
    )  # fmt: skip
    place = found.made.placement.layout.buffer_place
    assert place is not None and place.offset is not None
    assert found.layout("move").in_offset == place.offset + 4
    assert found.layout("add").out_offset == place.offset + 16


def test_kernels_that_cannot_fit_are_proven(tmp_path: Path) -> None:
    kernels = kernels_of((64, 3, 3, 3), *[(64, 64, 3, 3)] * 13)
    shape = (3, 8, 8)
    with pytest.raises(DiagnosticError) as caught:
        arranged(tmp_path, *[CONV] * 14, shape=shape, kernels=kernels)
    (found,) = [d for d in caught.value.diagnostics if d.code == "E421"]
    assert "share processors wherever they are: together 832 columns of 768" in found.message


def test_tight_kernels_get_columns_of_their_own(tmp_path: Path) -> None:
    widths = (3, 40, 24, 40, 24, 40, 24, 40, 24, 40, 24, 40, 24, 40, 24)
    shapes = [(b, a, 3, 3) for a, b in itertools.pairwise(widths)]
    arranged(tmp_path, *[CONV] * 14, shape=(3, 6, 6), kernels=kernels_of(*shapes))


def written(folder: Path, *layers: Keys, **more: object) -> tuple[str, Arranged, Arranged]:
    """Write the complete description of a network, and load it alone."""
    first = arranged(folder, *layers, encode=EncodeOptions(PlaceOptions(explain=True)), **more)  # type: ignore[arg-type]
    text = configuration(first.made.network, first.made.placement.layout, "a title")
    options = ResolveOptions(str(folder / "sample.npy"), weight_input=str(folder / "weights.npy"))
    (folder / "written.yaml").write_text(text)
    chip = first.made.chip
    again = synthesize(str(folder / "written.yaml"), chip, options, EncodeOptions())
    assert phase_words(again.program) == phase_words(first.made.program)
    return text, first, Arranged(again, None)


@BOTH
def test_written_description_gives_the_same_words(tmp_path: Path, chip: Chip) -> None:
    kernels = kernels_of((8, 3, 3, 3), (8, 8, 3, 3), (4, 8, 3, 3))
    layers = ({**RESIDUAL[0], "max_pool": [3, 2], "pool_stride": 2}, *RESIDUAL[1:])
    text, first, again = written(tmp_path, *layers, shape=(3, 9, 12), kernels=kernels, chip=chip)
    assert again.names == first.names
    if chip is MAX78000:
        assert "# between them are words of the result of layer 1 (b)" in text
        assert "# added: what layer 3 (c) reads here is needed without gaps elsewhere" in text


def test_written_description_of_a_stream_needs_no_option(tmp_path: Path) -> None:
    layers = (CONV, {**CONV, "max_pool": 4, "pool_stride": 4}, CONV)
    kernels = kernels_of((4, 8, 3, 3), (8, 4, 3, 3), (4, 8, 3, 3))
    text, *_ = written(tmp_path, *layers, shape=(8, 120, 120), kernels=kernels)
    assert "input_port: fifo" in text and "the input takes 57600 bytes" in text


def test_written_description_in_place(tmp_path: Path) -> None:
    kernels = kernels_of((64, 20, 1, 1), (64, 64, 3, 3), (4, 64, 1, 1))
    layers, shape = (ONE, CONV, ONE), (20, 85, 85)
    text, *_ = written(tmp_path, *layers, shape=shape, kernels=kernels, execute=False)
    assert "in_place: true" in text and "0x258 below the result of layer 0, over it" in text


def told(folder: Path, *layers: Keys, **more: object) -> str:
    """Return the message of a network for which there are no places."""
    with pytest.raises(DiagnosticError) as caught:
        arranged(folder, *layers, **more)  # type: ignore[arg-type]
    (found,) = [d for d in caught.value.diagnostics if d.code in ("E421", "E422")]
    return f"{found.message}\n{found.remedy}"


def test_remedies_are_tried(tmp_path: Path) -> None:
    kernels = kernels_of((64, 3, 3, 3), *[(64, 64, 3, 3)] * 13)
    message = told(tmp_path, *[CONV] * 14, shape=(3, 8, 8), kernels=kernels)
    assert "Tried: 4-bit weights in layer 0: not enough." in message
    assert "Tried: 4-bit weights in layer 0, layer 1, layer 2, layer 3: fits." in message
    assert "Tried: 32 instead of 64 outputs of layer 0: not enough." in message
    assert "Tried: MAX78002: fits." in message


def test_too_large_a_map_can_be_pooled_earlier(tmp_path: Path) -> None:
    layers = (CONV, {**CONV, "max_pool": 2, "pool_stride": 2}, CONV)
    kernels = kernels_of((100, 20, 3, 3), (100, 100, 3, 3), (4, 100, 3, 3))
    message = told(tmp_path, *layers, shape=(20, 64, 64), kernels=kernels)
    assert "Tried: MAX78002: fits." in message
    assert "Tried: the pooling of layer 1 in layer 0 instead: fits." in message


@BOTH
@pytest.mark.parametrize("operands", [1, 2])
@pytest.mark.parametrize("channels", [3, 70])
def test_pooling_in_front_of_a_transposed_convolution_gets_a_layer(
    tmp_path: Path, chip: Chip, operands: int, channels: int
) -> None:
    pooled = {
        **CONV, "op": "ConvTranspose2d", "max_pool": 2, "pool_stride": 2, "name": "up",
        "activate": "none",
    }  # fmt: skip
    branch = {**ONE, "in_sequences": "input"}
    if operands == 2:
        pooled |= {"eltwise": "add", "in_sequences": "[0, 1]"}
    layers = [branch] * operands + [pooled]
    kernels = kernels_of(*[(channels, 3, 1, 1)] * operands, (5, channels, 3, 3))
    found = arranged(tmp_path, *layers, shape=(3, 8, 8), kernels=kernels, chip=chip)
    assert "N425" in found.codes and "W373" not in found.codes
    network = found.made.network
    plain = [x for x in network.executed() if not x.pooling.active]
    assert all(x.pool_first for x in plain)  # nothing is said of what is not there


@BOTH
@pytest.mark.parametrize("window", [4, 3, 1])
def test_a_stride_that_is_never_taken_needs_no_layer(
    tmp_path: Path, chip: Chip, window: int
) -> None:
    pooled = {**CONV, "op": "ConvTranspose2d", "max_pool": window, "pool_stride": 4}
    kernels = kernels_of((5, 3, 3, 3))
    found = arranged(tmp_path, pooled, shape=(3, window, window), kernels=kernels, chip=chip)
    assert not {"N425", "W373"} & set(found.codes)


SERIES: Keys = {"op": "Conv1d", "kernel_size": 3, "pad": 0, "dilation": 9, "activate": "none"}


@BOTH
def test_what_stands_behind_words_that_are_not_valid_is_read_there(
    tmp_path: Path, chip: Chip
) -> None:
    first = {**SERIES, "output": True, "name": "spread"}
    kernels = kernels_of((5, 4, 3), (4, 5, 1))
    last = {**SERIES, "kernel_size": 1, "dilation": 1}
    found = arranged(tmp_path, first, last, shape=(4, 26), kernels=kernels, chip=chip)
    spread = found.layout("spread")
    assert spread.out_offset is not None and spread.out_offset > 0
    offset = spread.out_offset + 40
    given = [first, {**last, "in_offset": offset}]
    found = arranged(tmp_path, *given, shape=(4, 26), kernels=kernels, chip=chip)
    assert found.layout("spread").out_offset == offset


def test_binary_kernels_that_are_filled_up_get_two_bits(tmp_path: Path) -> None:
    layer = {**SERIES, "kernel_size": 2, "dilation": 8, "quantization": "bin"}
    kernel = kernels_of((5, 4, 2))[0] % 2 * 2 - 1
    found = arranged(tmp_path, layer, shape=(4, 20), kernels=[kernel], chip=MAX78002)
    assert "N431" in found.codes
    assert found.made.network.layers[0].weight_bits == 2


def test_what_the_loader_chooses_is_right_or_refused(tmp_path: Path) -> None:
    """A bypassed kernel that the description fixes in a stream adds nine pixels."""
    shift = {**CONV, "kernel_size": "1x1", "pad": 0, "bypass": True, "streaming": True}
    with pytest.raises(DiagnosticError, match="W378"):
        arranged(tmp_path, {**CONV, "streaming": True}, shift, {**CONV}, shape=(4, 12, 12),
                 kernels=kernels_of((64, 4, 3, 3), (4, 64, 3, 3)), chip=MAX78002)  # fmt: skip
