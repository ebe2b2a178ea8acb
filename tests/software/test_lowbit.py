"""Low-bit networks: packing, requantization, the C, and known answers where they are."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest

from ai8xtools.commands.targets import main
from ai8xtools.diagnostics import DiagnosticError
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.emulator.cpu.architecture import ARCHITECTURES
from ai8xtools.emulator.plain import compile_plain, run_plain
from ai8xtools.quantization.lowbit import (
    ENCODINGS,
    compressed,
    encode,
    expanded,
    octav,
    pack,
    statistics,
    unpack,
)
from ai8xtools.software.lowbit.coded import coded_layers
from ai8xtools.software.lowbit.emit import Samples, beside, emit, header, signed_powers, sizes
from ai8xtools.software.lowbit.engine import input_codes, run
from ai8xtools.software.lowbit.header import read_header
from ai8xtools.software.lowbit.network import Dense, DepthwiseChain, LowBitNetwork, Rule, Windows
from ai8xtools.software.lowbit.requantize import reciprocal, requantize
from tests.conftest import ROOT
from tests.software.lowbit_answers import bitnet_cases, lowact_cases, same_in_c

RANDOM = np.random.default_rng(5)


def dense(number: int, name: str, inputs: int, outputs: int) -> Dense:
    encoding = ENCODINGS[name]
    codes = RANDOM.integers(0, len(encoding.values), (outputs, inputs))
    return Dense(number, encoding, inputs, outputs, pack(codes, encoding))


@pytest.mark.parametrize(
    ("name", "levels", "word"),
    [
        ("4bitsym", [7.5, -7.5, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5], 0x7F08192A),
        ("2bitsym", [1.5, 0.5, -0.5, -1.5] * 4, 0x4B4B4B4B),
        ("FP130", [1, 2, 4, 128, -1, -2, -64, -128], 0x012789EF),
        ("sint4", [0, 1, 7, -8, -1, -2, 3, -4], 0x0178FE3C),
        ("8bit", [1, -1, 127, -128], 0x01FF7F80),
        ("Binary", [1, -1] * 16, 0xAAAAAAAA),
        ("Ternary", [1, -1, 0, 1, 1, 0, -1, -1, 0, 1], 0x304B),
    ],
)
def test_levels_are_packed_from_the_upper_bits_down(
    name: str, levels: list[float], word: int
) -> None:
    encoding = ENCODINGS[name]
    codes = np.array([[encoding.levels.index(level) for level in levels]])
    assert pack(codes, encoding).tolist() == [word]
    assert np.array_equal(unpack(pack(codes, encoding), len(levels), encoding), codes)


@pytest.mark.parametrize("name", ENCODINGS)
@pytest.mark.parametrize("inputs", [1, 31, 64])
def test_rows_that_do_not_fill_their_words_are_padded(name: str, inputs: int) -> None:
    encoding = ENCODINGS[name]
    codes = RANDOM.integers(0, len(encoding.values), (3, inputs))
    assert np.array_equal(unpack(pack(codes, encoding), inputs, encoding), codes)


@pytest.mark.parametrize("name", [name for name in ENCODINGS if "Binary" not in name])
def test_a_weight_at_a_level_gets_its_code(name: str) -> None:
    encoding = ENCODINGS[name]
    factor = {"8bit": 128, "4bit": 8, "sint4": 8, "FP130": 128, "Ternary": 1}.get(name)
    factor = factor or {"2bitsym": 2, "4bitsym": 8}.get(name, 1)
    weights = np.array(encoding.levels) / factor
    assert encode(weights, 1.0, encoding).tolist() == list(range(len(encoding.levels)))


@pytest.mark.parametrize("name", ENCODINGS)
def test_integers_of_levels_are_levels_to_scale(name: str) -> None:
    """Those of a normal distribution times 127 or 2048, rounded; all others exactly."""
    encoding = ENCODINGS[name]
    levels = np.array(encoding.levels)
    if name.startswith("NF"):
        assert np.abs(np.array(encoding.values) - 127 * levels).max() <= 0.5
        assert np.abs(np.array(encoding.table) - 2048 * levels).max() <= 0.5
        assert max(levels) == 1 and min(levels) == -1 and np.all(np.diff(levels) > 0)
    else:
        offset = 0.01 if name == "4bit" else 0.0
        scale = 2 if name.endswith("bitsym") else 1
        assert np.allclose(np.array(encoding.values), scale * (levels - offset), rtol=0, atol=1e-9)
        assert encoding.table == encoding.values
    assert max(map(abs, encoding.values)) <= 128
    assert len(set(encoding.values)) == len(levels) <= 1 << encoding.bits


def test_levels_of_nf4_are_quantiles_of_a_normal_distribution() -> None:
    """Seven from the tail to the middle below zero, eight above; the outermost ones are 1."""
    normal, tail = NormalDist(), 0.9677083
    below = [-normal.inv_cdf(p) for p in np.linspace(tail, 0.5, 8)]
    above = [normal.inv_cdf(p) for p in np.linspace(0.5, tail, 9)[1:]]
    want = np.array([*below, *above]) / above[-1]
    assert np.abs(np.array(ENCODINGS["NF4"].levels) - want).max() < 1e-4


def test_clip_scalar_leaves_less_error_than_its_neighbours() -> None:
    weights, encoding = RANDOM.normal(size=4000), ENCODINGS["4bitsym"]
    clip = octav(weights, encoding)

    def error(scalar: float) -> float:
        levels = np.array(encoding.levels)[encode(weights, scalar, encoding)]
        return float(((levels * scalar / 8 - weights) ** 2).mean())

    assert error(clip) < min(error(0.8 * clip), error(1.25 * clip))


def test_entropy_of_equal_shares_is_the_number_of_bits() -> None:
    encoding = ENCODINGS["4bitsym"]
    found = statistics(np.arange(16).reshape(1, 16), encoding)
    assert (found.entropy_bits, found.capacity_percent, found.mean) == (4.0, 100.0, 0.0)


@pytest.mark.parametrize("value", [0, 1, -1, 7, 127, -2048, 1481, 1426])
def test_constants_become_few_shifts(value: int) -> None:
    terms = list(signed_powers(value))
    assert sum((-1 if minus else 1) << place for place, minus in terms) == value
    assert len(terms) <= 6


@pytest.mark.parametrize("greatest", [1, 14, 15, 16, 240, 241, 2**20 + 1, 2**31 - 1])
@pytest.mark.parametrize("limit", [15, 127])
def test_reciprocals_have_their_bits(greatest: int, limit: int) -> None:
    shift, factor = reciprocal(greatest, limit, 8)
    assert 128 <= factor <= 255
    assert factor * greatest <= limit * 2.0**shift < (factor + 1) * greatest


def test_sums_below_zero_give_zeros() -> None:
    sums = np.array([[-5, -1, -128]])
    for kind in ("shift", "max", "reciprocal"):
        assert not requantize(sums, Rule(kind, 8, limit=15)).values.any()


def test_a_picture_without_light_is_refused() -> None:
    with pytest.raises(ValueError, match="other than zero"):
        input_codes(np.zeros(256, np.float32))


def networks() -> list[LowBitNetwork]:
    kernels = [RANDOM.integers(-128, 128, (3, 3, 3)).astype(np.int8) for _ in range(3)]
    chain = DepthwiseChain((2, 4, 7), (kernels[0], kernels[1], kernels[2]), (6, 9))
    shift, low = Rule(), Rule("reciprocal", 8, limit=15)
    windows = Windows(4, ((dense(0, "NF4", 64, 5),), (dense(1, "NF4", 5, 3),)), shared=True)
    many = Windows(2, ((dense(0, "NF4", 64, 24),), (dense(1, "NF4", 24, 2),)), shared=True)
    deep = Windows(
        2,
        tuple(
            (dense(i, "4bitsym", *size),) for i, size in enumerate([(64, 18), (18, 16), (16, 2)])
        ),
        shared=True,
    )
    last = (dense(0, "NF4", 50, 10),)
    own = Windows(8, (tuple(dense(0, "sint4", 64, 6) for _ in range(4)),), shared=False)
    head = (dense(0, "NF4", 27, 10),)
    return [
        *(LowBitNetwork(None, (dense(3, name, 37, 7), dense(5, name, 7, 3)), shift, shift)
          for name in ENCODINGS),
        LowBitNetwork(chain, (dense(11, "Ternary", 12, 4),), shift, shift),
        LowBitNetwork(windows, head, low, Rule("reciprocal", 8, limit=15, group=9), fine=True),
        *(LowBitNetwork(one, last, low, Rule("reciprocal", 8, limit=15, group=group), fine=True)
          for one in (many, deep) for group in (1, 25)),
        LowBitNetwork(own, (dense(0, "sint4", 24, 10),), Rule("max", limit=15), shift, fine=True),
    ]  # fmt: skip


@pytest.mark.parametrize("network", networks(), ids=lambda one: type(one.stem).__name__)
def test_c_computes_what_python_does(network: LowBitNetwork) -> None:
    inputs = RANDOM.integers(-128, 128, (12, network.inputs)).astype(np.int8)
    inputs[0], inputs[1], inputs[2] = -128, 127, 0
    assert not [*same_in_c(network, inputs)]


def skewed(number: int, name: str, inputs: int, outputs: int) -> Dense:
    encoding = ENCODINGS[name]
    codes = RANDOM.binomial(len(encoding.values) - 1, 0.3, (outputs, inputs))
    return Dense(number, encoding, inputs, outputs, pack(codes, encoding))


@pytest.mark.parametrize(
    ("names", "coded"),
    [
        (("4bitsym", "NF4", "4bitsym"), [3, 5, 7]),
        (("2bitsym", "sint4", "Binary"), [3, 5]),
        (("FP130", "NF2", "Ternary"), [3, 5]),
        (("8bit", "8bit", "8bit"), []),
    ],
)
def test_c_computes_the_same_with_compressed_weights(
    names: tuple[str, str, str], coded: list[int]
) -> None:
    sizes_of = ((3, 60, 40), (5, 40, 33), (7, 33, 3))
    layers = tuple(
        skewed(number, name, inputs, outputs)
        for name, (number, inputs, outputs) in zip(names, sizes_of, strict=True)
    )
    network = LowBitNetwork(None, layers, Rule(), Rule())
    assert [*coded_layers(network)] == coded
    assert (sizes(network, compress=True)[0] < sizes(network)[0]) is bool(coded)
    inputs = RANDOM.integers(-128, 128, (5, 60)).astype(np.int8)
    assert not [*same_in_c(network, inputs, compress=True)]


@pytest.mark.parametrize(
    "counts", [[0, 5], [1, 1, 1], [0, 40, 1, 2, 3, 9], [2**i for i in range(16)]]
)
def test_compressed_codes_come_back(counts: list[int]) -> None:
    codes = np.repeat(np.arange(len(counts)), np.minimum(counts, 5000))
    RANDOM.shuffle(codes)
    found = compressed(codes)
    assert np.array_equal(expanded(found, len(codes)), codes)
    shares = np.array([n for n in np.minimum(counts, 5000) if n]) / len(codes)
    entropy = -(shares * np.log2(shares)).sum()
    assert entropy * len(codes) <= 8 * len(found.stream) <= (entropy + 1) * len(codes) + 7


def test_windows_that_share_a_scale_fit_the_smallest_ram() -> None:
    shape = ((dense(0, "NF4", 64, 32),), (dense(1, "NF4", 32, 8),))
    layers = (dense(0, "NF4", 200, 64), dense(1, "NF4", 64, 64), dense(2, "NF4", 64, 10))
    rule = Rule("reciprocal", 8, limit=15, group=25)
    network = LowBitNetwork(Windows(2, shape, True), layers, rule, rule, fine=True)
    assert sizes(network) == (9_920, 5 * 200 + 64 + 5 * 32)


@pytest.mark.parametrize(("core", "level"), [("rv32ec", "-Os"), ("rv32emc", "-O3")])
def test_convolutions_of_64_channels_fit_the_smallest_ram(
    core: str, level: str, tmp_path: Path
) -> None:
    """Variables as the linker counts them, and the deepest stack of the whole console program."""
    network = read_header(str(ROOT / "trained" / "mnist-lowbit-cnn.h"))
    samples = Samples(RANDOM.integers(-128, 128, (1, 256)).astype(np.int8))
    for name, text in emit(network, samples, "").items():
        (tmp_path / name).write_text(text)
    found = run_plain(compile_plain(tmp_path, ARCHITECTURES[core], level))
    assert found.passed and found.ram_bytes == sizes(network)[1] == 1024 + 392 + 144
    code, stack = beside(network)
    assert found.code_bytes <= code and found.stack_bytes <= stack
    assert found.ram_bytes + found.stack_bytes <= 2048


def test_sums_beyond_32_bits_are_refused() -> None:
    encoding = ENCODINGS["8bit"]
    words = np.full((1, 40_000), 0x80808080, np.uint32).reshape(-1)
    layer = Dense(3, encoding, 160_000, 1, words)
    with pytest.raises(DiagnosticError, match=r"L3: a sum can reach 26\d+; .*E901"):
        [*same_in_c(LowBitNetwork(None, (layer,), Rule(), Rule()), np.zeros((1, 4), np.int8))]


@pytest.mark.parametrize("case", ["fc_fp130_64", "fc_ternary_post"])
def test_exported_networks_are_reproduced(case: str, shared: Path, tmp_path: Path) -> None:
    folder = shared / "kat-software" / "bitnet"
    for name in ("inputs.npz", f"{case}.json", f"{case}.npz"):
        (tmp_path / name).symlink_to(folder / name)
    assert [*bitnet_cases(tmp_path)] == [(case, [])]


def test_activations_of_four_bits_are_reproduced(shared: Path, tmp_path: Path) -> None:
    (tmp_path / "bitnet").symlink_to(shared / "kat-software" / "bitnet")
    (tmp_path / "lowact").mkdir()
    names = ("req_max_floor_group9", "table_nf2_int8", "win4_unshared_sint4_shift_round")
    for name in names:
        for ending in (".json", ".npz"):
            path = shared / "kat-software" / "lowact" / f"{name}{ending}"
            (tmp_path / "lowact" / path.name).symlink_to(path)
    assert [*lowact_cases(tmp_path / "lowact")] == [(name, []) for name in names]


@pytest.mark.parametrize("network", networks(), ids=lambda one: type(one.stem).__name__)
def test_header_holds_the_whole_network(network: LowBitNetwork, tmp_path: Path) -> None:
    (tmp_path / "model.h").write_text(header(network, "made here"))
    inputs = RANDOM.integers(-128, 128, (5, network.inputs)).astype(np.int8)
    found, expected = run(read_header(str(tmp_path / "model.h")), inputs), run(network, inputs)
    for one, other in zip(found.layers, expected.layers, strict=True):
        assert np.array_equal(one.sums, other.sums)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("L3_weights[] = {", "L3_weights[] = {}; {", "has 0 numbers"),
        ("};", "", "missing or not complete"),
        ("0x", "zz", "other than numbers"),
        ("uint32_t L3", "uint16_t L3", "uint16_t, not uint32_t"),
        ("L3_bitperweight 4", "L3_bitperweight 3", "is 3; known encodings are"),
        ("L3_outgoing_weights 7", "L3_outgoing_weights seven", "it must be a whole number"),
        ("L3_outgoing_weights 7", "L3_outgoing_weights 6", "its layer needs"),
        ("L3_incoming_weights 40", "L3_incoming_weights 36", "is 36, but the layer in front"),
        ("_active", "_passive", "it has no layer"),
        ("L5_act_bits 8", "L5_act_bits 8", ""),
        ("L3_act_rule 0", "L3_act_rule 17", "0, 1 or 18 to 24"),
    ],
)
def test_damaged_headers_are_refused(old: str, new: str, message: str, tmp_path: Path) -> None:
    layers = (dense(3, "4bitsym", 37, 7), dense(5, "4bitsym", 7, 3))
    text = header(LowBitNetwork(None, layers, Rule(), Rule()), "made here")
    assert old in text
    (tmp_path / "model.h").write_text(text.replace(old, new))
    if not message:
        assert read_header(str(tmp_path / "model.h")).classes == 3
        return
    with pytest.raises(DiagnosticError, match=message):
        read_header(str(tmp_path / "model.h"))


def test_command_writes_a_project_that_passes(tmp_path: Path) -> None:
    network = networks()[3]
    (tmp_path / "model.h").write_text(header(network, "made here"))
    np.save(tmp_path / "samples.npy", RANDOM.integers(-128, 128, (4, network.inputs)))
    command = [
        sys.executable, ROOT / "ai8xize.py", "--device", "BITNET", "--prefix", "small",
        "--checkpoint-file", tmp_path / "model.h", "--sample-input", tmp_path / "samples.npy",
        "--test-dir", tmp_path, "--mcu", "ch32v003",
    ]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)
    subprocess.run(["make", "-s", "-C", tmp_path / "small"], check=True, capture_output=True)
    result = subprocess.run([tmp_path / "small" / "main"], capture_output=True, text=True)
    assert result.returncode == 0 and "*** PASS ***" in result.stdout


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        (np.zeros((2, 3), np.int8), "the network takes 37"),
        (np.zeros((1, 37)), "holds float64, not integers.*E863"),
        (np.full((1, 37), 200), "the limits are -128 and 127"),
    ],
)
def test_samples_that_do_not_fit_are_refused(
    samples: np.ndarray, message: str, tmp_path: Path
) -> None:
    (tmp_path / "model.h").write_text(header(networks()[3], "made here"))
    np.save(tmp_path / "samples.npy", samples)
    words = ["--device", "BITNET", "--checkpoint-file", str(tmp_path / "model.h")]
    words += ["--sample-input", str(tmp_path / "samples.npy"), "--prefix", "x"]
    with pytest.raises(DiagnosticError, match=message):
        main("ai8xize.py", [*words, "--test-dir", str(tmp_path)])
    assert not (tmp_path / "x").exists()


def project(tmp_path: Path, network: LowBitNetwork, *words: str) -> Path:
    """Write a project of a network that is given inputs of zero, and return its folder."""
    (tmp_path / "model.h").write_text(header(network, ""))
    np.save(tmp_path / "samples.npy", np.zeros((1, network.inputs), np.int8))
    line = ["--device", "BITNET", "--checkpoint-file", str(tmp_path / "model.h"), "--prefix", "x"]
    line += ["--sample-input", str(tmp_path / "samples.npy"), "--test-dir", str(tmp_path), *words]
    assert main("ai8xize.py", line) == 0
    return tmp_path / "x"


def test_rounding_is_left_out_to_compare(tmp_path: Path) -> None:
    layers = (dense(3, "4bitsym", 32, 8), dense(5, "4bitsym", 8, 3))
    network = LowBitNetwork(None, layers, Rule(), Rule())
    folder = project(tmp_path, network, "--shiftnorm", "floor", "--overwrite")
    assert "L3_act_round 0" in (folder / "model.h").read_text()
    folder = project(tmp_path, network, "--overwrite")
    assert "L3_act_round 1" in (folder / "model.h").read_text()


def test_rows_that_are_filled_up_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    layers = (dense(3, "4bitsym", 250, 8), dense(5, "Ternary", 8, 3))
    project(tmp_path, LowBitNetwork(None, layers, Rule(), Rule()))
    printed = capsys.readouterr().out
    assert "L3: 250 inputs; each row is filled up with 6 codes" in printed
    assert "L5: 8 inputs; each row is filled up with 2 codes" in printed


def test_compressed_weights_fit_where_packed_ones_do_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    layers = (skewed(3, "4bitsym", 256, 112), skewed(5, "4bitsym", 112, 10))
    network = LowBitNetwork(None, layers, Rule(), Rule())
    with pytest.raises(DiagnosticError, match="bytes of flash, 16,944 are needed"):
        project(tmp_path, network, "--mcu", "ch32v003")
    project(tmp_path, network, "--mcu", "ch32v003", "--compress-weights")
    assert "(packed: 14,896) bytes of flash" in capsys.readouterr().out


def test_networks_that_need_more_ram_are_refused(tmp_path: Path) -> None:
    layers = (dense(3, "Binary", 32, 400), dense(5, "Binary", 400, 3))
    with pytest.raises(DiagnosticError, match="has 2,048 bytes of RAM, 2,192 are needed"):
        project(tmp_path, LowBitNetwork(None, layers, Rule(), Rule()), "--mcu", "ch32v003")
    layers = (dense(3, "8bit", 32, 500), dense(5, "8bit", 500, 3))
    with pytest.raises(DiagnosticError) as refused:
        project(tmp_path, LowBitNetwork(None, layers, Rule(), Rule()), "--mcu", "ch32v003")
    assert [one.message.split(", ")[-1] for one in refused.value.diagnostics] == [
        "19,548 are needed", "2,692 are needed"
    ]  # fmt: skip


def test_networks_that_are_too_large_are_refused(tmp_path: Path) -> None:
    layers = (dense(3, "8bit", 256, 64), dense(5, "8bit", 64, 10))
    (tmp_path / "model.h").write_text(header(LowBitNetwork(None, layers, Rule(), Rule()), ""))
    np.save(tmp_path / "samples.npy", np.zeros((1, 256), np.int8))
    words = ["--device", "BITNET", "--checkpoint-file", str(tmp_path / "model.h"), "--mcu"]
    words += ["ch32v003", "--sample-input", str(tmp_path / "samples.npy"), "--prefix", "x"]
    with pytest.raises(DiagnosticError, match="has 16,384 bytes of flash, 19,072 are needed"):
        main("ai8xize.py", [*words, "--test-dir", str(tmp_path)])


@pytest.mark.parametrize("number", [0, 11, 12, 13, -1])
def test_report_shows_needs_and_layers(number: int, tmp_path: Path) -> None:
    network = networks()[number]
    project(tmp_path, network, "--report", str(tmp_path / "r.html"))
    page, facts = (tmp_path / "r.html").read_text(), json.loads((tmp_path / "r.json").read_text())
    assert "It fits." in page and "no limit" in page and len(page) < 300_000
    assert facts["version"] == 1 and [need["of"] for need in facts["needs"]] == [None, None]
    assert facts["steps"][-1]["output"] == f"{network.classes}×1×1"
    stored = sum(step["weight_bytes"] for step in facts["steps"])
    assert facts["needs"][0]["used"] == stored + beside(network)[0]


def test_report_of_a_network_that_does_not_fit(tmp_path: Path) -> None:
    layers = (dense(3, "8bit", 256, 64), dense(5, "8bit", 64, 10))
    with pytest.raises(DiagnosticError, match="16,384 bytes of flash, 19,072 are needed"):
        project(tmp_path, LowBitNetwork(None, layers, Rule(), Rule()), "--mcu", "ch32v003",
                "--report", str(tmp_path / "r.html"))  # fmt: skip
    page, facts = (tmp_path / "r.html").read_text(), json.loads((tmp_path / "r.json").read_text())
    assert not facts["fits"] and facts["messages"][0]["code"] == "E905"
    assert "It does not fit." in page and "2,688" in page and not (tmp_path / "x").exists()


def test_report_never_takes_the_place_of_the_header(tmp_path: Path) -> None:
    layers = (dense(3, "8bit", 256, 64), dense(5, "8bit", 64, 10))
    with pytest.raises(InputError, match="input and output are the same file"):
        project(tmp_path, LowBitNetwork(None, layers, Rule(), Rule()),
                "--report", str(tmp_path / "model.h"))  # fmt: skip
    assert "Rule" not in (tmp_path / "model.h").read_text() and not (tmp_path / "x").exists()
