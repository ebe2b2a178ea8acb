"""Files of the debugging options: exact contents for small networks."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ai8xtools.synthesis.emit import check_options, emit_arrays
from ai8xtools.synthesis.emit.tables import hexadecimal_cells, table
from ai8xtools.synthesis.layout import InputPort
from ai8xtools.synthesis.mapping import MappedNetwork
from ai8xtools.synthesis.place import PlaceOptions
from ai8xtools.synthesis.summarize.layer_data import output_words
from ai8xtools.synthesis.summary import Summary
from device import MAX78000, MAX78002, Chip
from tests.synthesis.networks import build, describe, mask, sample, weights
from tests.synthesis.programs import options
from tests.synthesis.stages import encoding, place, simulate, summarize

POINT: dict[str, Any] = {
    "processors": 1,
    "op": "Conv2d",
    "kernel_size": "1x1",
    "pad": 0,
    "activate": "ReLU",
    "out_offset": "0x2000",
}
DATA = np.array([[[-100, 20, 30, 40], [50, 60, 70, 80]]])
KERNELS = np.array([[[[64]]], [[[-128]]]])
BIAS = np.array([1, -1])


def written(
    folder: Path,
    layer: dict[str, Any],
    data: NDArray[Any] = DATA,
    kernels: Any = (KERNELS,),
    biases: Any = (BIAS,),
    chip: Chip = MAX78000,
    **asked: Any,
) -> dict[str, bytes]:
    """Return the files of a network of one layer."""
    made, _ = build(folder, describe(layer), data, kernels, biases, chip)
    return emit_arrays(summary_of(made), options(**asked))


def summary_of(network: MappedNetwork) -> Summary:
    """Run the remaining stages and keep everything."""
    settings = encoding(keep_layer_data=True, keep_pass_sums=True)
    placement = place(network, PlaceOptions(overlap_data=True))
    activations = simulate(network, average_rounding=False, keep_traces=True)
    return summarize(network, placement, activations, settings)


def records(content: bytes) -> list[NDArray[Any]]:
    """Return all arrays of a NumPy file."""
    stream, found = io.BytesIO(content), []
    while stream.tell() < len(content):
        found.append(np.load(stream, allow_pickle=False))
    return found


def test_words_of_every_layer_with_their_channels_and_pixels(tmp_path: Path) -> None:
    layer = {**POINT, "output_processors": 3}
    files = written(tmp_path, layer, log_intermediate=True)
    assert files["output.csv"].decode().splitlines() == [
        "w,800,6300,0,0-1,0,0",
        "w,801,b,0,0-1,0,1",
        "w,802,10,0,0-1,0,2",
        "w,803,15,0,0-1,0,3",
        "w,804,1a,0,0-1,1,0",
        "w,805,1f,0,0-1,1,1",
        "w,806,24,0,0-1,1,2",
        "w,807,29,0,0-1,1,3",
    ]


def test_numbered_words_are_written_if_they_have_a_name(tmp_path: Path) -> None:
    for name in (None, "none", "None"):
        files = written(tmp_path, POINT, log_intermediate=True, output_pass_filename=name)
        assert set(files) == {"output.csv", "config.csv", "data.npy", "weights.npy", "bias.npy"}
    files = written(tmp_path, POINT, log_intermediate=True, output_pass_filename="p")
    assert files["p.csv"].decode().splitlines()[:2] == ["w,200800,6300,0,1", "w,200801,b,0,2"]


def test_wide_outputs_are_a_word_each(tmp_path: Path) -> None:
    layer = {**POINT, "output_width": 32, "activate": "none", "output_processors": 6 << 16}
    lines = written(tmp_path, layer, log_intermediate=True)["output.csv"].decode().splitlines()
    # group 1: 4 instances of 0x2000 words; four words for a pixel, lanes 1 and 2 are used
    assert lines[:3] == [
        "w,8801,ffffe780,0,0-0,0,0",
        "w,8802,3180,0,1-1,0,0",
        "w,8805,580,0,0-0,0,1",
    ]
    assert len(lines) == 16


def test_groups_of_max78002_stand_further_apart(tmp_path: Path) -> None:
    layer = {**POINT, "output_processors": 3 << 4}
    lines = written(tmp_path, layer, chip=MAX78002, log_intermediate=True)["output.csv"]
    assert lines.startswith(b"w,8800,6300,0,0-1,0,0\n")


def test_words_of_a_ring_buffer_go_round(tmp_path: Path) -> None:
    made, _ = build(tmp_path, describe(POINT), DATA, [KERNELS])
    words = output_words(made.layers[0], np.ones((2, 2, 4), np.int64), MAX78000, 3)
    assert words.offsets.tolist() == [0x800 + i % 3 for i in range(8)]
    assert words.rows.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]


def test_targets_of_streams_are_ring_buffers(tmp_path: Path) -> None:
    conv = {**POINT, "kernel_size": "3x3", "pad": 1, "streaming": True}
    text = describe({**conv, "data_format": "HWC"}, {**conv, "processors": 15, "in_offset": 0x2000})
    kernels = [weights(4, 1, 3, 3), weights(4, 4, 3, 3)]
    made, _ = build(tmp_path, text, sample(1, 16, 16), kernels, input_port=InputPort.FIFO)
    first, second = summary_of(made).layer_data
    ring = int(second.settings[3], 16)
    assert 0 < ring < 256
    assert np.unique(first.words.offsets).tolist() == list(range(0x800, 0x800 + ring))
    assert len(np.unique(second.words.offsets)) == 256


def test_configuration_of_a_layer(tmp_path: Path) -> None:
    layer = {**POINT, "max_pool": 2, "pool_stride": 2, "kernel_size": "3x3", "pad": 1}
    files = written(tmp_path, layer, kernels=[weights(2, 1, 3, 3)], log_intermediate=True)
    assert files["config.csv"].decode() == (
        "l,0,800,0,0,8,0000000000000001,0,0,0,conv2d,conv2d,none,1,1,2x4,1x2,1x2,"
        "max,1,2x2,2x2,1x1,1,1x1,3x3,1x1,1x1,0,0\n"
    )


def test_configuration_of_a_flattened_layer(tmp_path: Path) -> None:
    layer = {"processors": 1, "op": "Linear", "flatten": True, "activate": "none"}
    data, kernel = sample(1, 5, 4), weights(3, 20)
    files = written(
        tmp_path, layer, data, [kernel], chip=MAX78002, biases=(), log_intermediate=True
    )
    assert files["config.csv"].decode() == (
        "l,0,2000,0,0,8,0000000000000001,13,1,1,linear,linear,none,1,1,5x4,5x4,1x1,"
        "no,1,1x1,1x1,1x1,1,0x0,1x1,1x1,1x1,0,0\n"
    )


def test_data_of_a_layer_step_by_step(tmp_path: Path) -> None:
    files = written(tmp_path, {**POINT, "max_pool": 2, "pool_stride": 2}, log_intermediate=True)
    operands, pooled, value, sums, output = records(files["data.npy"])
    assert operands.tolist() == [DATA.tolist()]
    assert pooled.tolist() == [[[[60, 80]]]] and value.tolist() == [[[60, 80]]]
    assert sums.tolist() == [[[60 * 64 + 128, 80 * 64 + 128]], [[-60 * 128 - 128, -80 * 128 - 128]]]
    assert output.tolist() == [[[31, 41]], [[0, 0]]]
    assert records(files["weights.npy"])[0].tolist() == KERNELS.tolist()
    assert records(files["bias.npy"])[0].tolist() == [1, -1]


def test_what_a_layer_lacks_is_an_empty_record(tmp_path: Path) -> None:
    layer = {"processors": 1, "op": "none", "operands": 2, "eltwise": "add"}
    layer = {**layer, "output_processors": 1}
    data = np.concatenate([DATA, DATA])
    made, _ = build(tmp_path, describe(layer), data)
    files = emit_arrays(summary_of(made), options(log_intermediate=True))
    operands, pooled, value, _, output = records(files["data.npy"])
    assert operands.shape == (2, 1, 2, 4) and pooled.shape == (0,)
    assert value.tolist() == output.tolist() == (2 * DATA).clip(-128, 127).tolist()
    assert [r.shape for r in records(files["weights.npy"])] == [(0,)]
    assert [r.shape for r in records(files["bias.npy"])] == [(0,)]


def test_pooling_has_a_file_for_each_channel(tmp_path: Path) -> None:
    layer = {**POINT, "max_pool": 2, "pool_stride": 2}
    files = written(tmp_path, layer, log_pooling=True)
    assert set(files) == {"unpooled-0-L0-ch0.csv", "pooled-0-L0-ch0.csv"}
    stream = io.StringIO()
    np.savetxt(stream, DATA[0], delimiter=",")
    assert files["unpooled-0-L0-ch0.csv"].decode() == stream.getvalue()
    assert files["pooled-0-L0-ch0.csv"] == b"6.000000000000000000e+01,8.000000000000000000e+01\n"


def test_layers_that_do_not_pool_have_no_such_files(tmp_path: Path) -> None:
    assert written(tmp_path, POINT, log_pooling=True) == {}


def test_computation_of_every_output_value(tmp_path: Path) -> None:
    files = written(tmp_path, {**POINT, "output_shift": -1}, debug_computation=True)
    lines = files["compute-0.csv"].decode().splitlines()
    assert lines[0] == "channel,row,column,pass0,bias,sum,scaled,output"
    assert lines[1] == "0,0,0,-6400,128,-6272,-24,0"
    assert lines[2] == "0,0,1,1280,128,1408,6,6"
    assert lines[9] == "1,0,0,12800,-128,12672,50,50"
    assert len(lines) == 17


def test_accumulators_after_every_pass(tmp_path: Path) -> None:
    layer = {**POINT, "processors": hex(mask(36)), "output_width": 32, "activate": "none"}
    data, kernel = sample(72, 1, 1), weights(2, 72, 1, 1)
    files = written(tmp_path, layer, data, [kernel], biases=(), debug_computation=True)
    products = kernel[:, :, 0, 0] * data[:, 0, 0]
    half, whole = products[:, :36].sum(axis=1), products.sum(axis=1)
    assert files[
        "compute-0.csv"
    ].decode() == "channel,row,column,pass0,pass1,bias,sum,scaled,output\n" + "".join(
        f"{i},0,0,{half[i]},{whole[i]},0,{whole[i]},{whole[i]},{whole[i]}\n" for i in (0, 1)
    )


def test_operands_of_a_layer_without_weights(tmp_path: Path) -> None:
    layer = {"processors": 1, "op": "none", "operands": 2, "eltwise": "sub", "output_processors": 1}
    made, _ = build(tmp_path, describe(layer), np.concatenate([DATA, DATA - 1]))
    files = emit_arrays(summary_of(made), options(debug_computation=True))
    lines = files["compute-0.csv"].decode().splitlines()
    assert lines[:2] == ["channel,row,column,operand0,operand1,output", "0,0,0,-100,-101,1"]


def test_hexadecimal_numbers_have_no_leading_zeros() -> None:
    assert table([hexadecimal_cells(np.array([0, 9, 0xABC, 0x10]))]) == b"0\n9\nabc\n10\n"
    assert table([hexadecimal_cells(np.array([0, 0]))]) == b"0\n0\n"


@pytest.mark.parametrize(
    ("changes", "option"),
    [
        ({"output_filename": "config"}, "--output-config-filename"),
        ({"output_weights_filename": "data"}, "--output-weights-filename"),
        ({"output_bias_filename": "../bias"}, "--output-bias-filename"),
        ({"output_data_filename": ""}, "--output-data-filename"),
        ({"output_pass_filename": "output"}, "--output-pass-filename"),
        ({"output_filename": "compute-3", "debug_computation": True}, "--output-filename"),
        ({"log_filename": "pooled-0-L1-ch2.csv", "log_pooling": True}, "--log-filename"),
    ],
)
def test_files_have_names_of_their_own(changes: dict[str, Any], option: str) -> None:
    (found,) = check_options(options(log_intermediate=True, **changes))
    assert found.code in ("E071", "E072") and str(found.place) == f"option {option}"


def test_names_do_not_matter_unless_files_are_written() -> None:
    assert check_options(options(output_filename="config", output_data_filename="/")) == []


def test_known_answer_test_is_needed() -> None:
    (found,) = check_options(options(log_intermediate=True, kat=False))
    assert (found.code, str(found.place)) == ("E092", "option --log-intermediate")


def test_latency_terms_without_a_verbose_log_are_noted() -> None:
    (found,) = check_options(options(debug_latency=True))
    assert (found.code, str(found.place)) == ("W041", "option --debug-latency")
    assert check_options(options(debug_latency=True, verbose=True)) == []
