"""Reading a network description: values with their places, and what is said of wrong ones."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from ai8xtools.diagnostics import DiagnosticError
from ai8xtools.synthesis.network import Activation, Combination, Operator
from ai8xtools.synthesis.parse import Description, parse, parse_file, rules
from ai8xtools.synthesis.parse.keys import GLOBAL_KEYS, LAYER_KEYS, NESTED_KEYS
from ai8xtools.synthesis.parse.kinds import KindError, Pair
from ai8xtools.synthesis.parse.nodes import MAX_DEPTH, MAX_EVENTS, MAX_FILE_BYTES
from ai8xtools.synthesis.parse.parser import MAX_LAYERS

HEAD = "arch: test\ndataset: tiny\nlayers:\n"
LAYER = "- op: conv2d\n  processors: 1\n  out_offset: 0\n  activate: none\n"
"""Follows HEAD: the next key stands in line 8."""


def complaints(text: str) -> list[str]:
    """Return all complaints about a text, as a person sees them."""
    with pytest.raises(DiagnosticError) as caught:
        parse(text, "net.yaml")
    return [str(d) for d in caught.value.diagnostics]


def layer_value(key: str, value: str) -> Any:
    """Return what a key of the first layer becomes."""
    return parse(f"{HEAD}- processors: 1\n  out_offset: 0\n  {key}: {value}\n").layers[0].get(key)


# Values and their places


def test_values_keep_the_line_and_column_where_they_stand() -> None:
    description = parse("# note\narch: test\ndataset:   x\nlayers:\n  - {processors: 1, pad: 2}\n")
    assert str(description.place_of("dataset")) == "<text>:3:12"
    layer = description.layers[0]
    assert str(layer.place_of("pad")) == "<text>:5:26"
    assert str(layer.place) == "<text>:5:5"
    assert layer.place_of("groups", "pad") == layer.place_of("pad")
    assert layer.place_of("groups") == layer.place


def test_key_words_are_case_insensitive_and_stand_for_values() -> None:
    assert layer_value("op", "CONV2D") == (Operator.CONV2D, None)
    assert layer_value("op", "Bitwise_Or") == (Operator.NONE, Combination.OR)
    assert layer_value("op", "fc") == (Operator.LINEAR, None)
    assert layer_value("activate", "relu") is Activation.RELU
    assert layer_value("activate", "None") is None
    assert layer_value("data_format", "BIG") is True
    assert layer_value("quantization", "Binary") == -1
    assert layer_value("next_sequence", "Stop") == -1
    assert layer_value("in_sequences", "Input") == (-1,)


@pytest.mark.parametrize(
    "text",
    [
        "0xff00",
        "0xFF00",
        "65280",
        "0b1111111100000000",
        "0177400",
        "0x0000.0000.0000.ff00",
        "0000.0000.0000.ff00",
        "0000.0000.0000.FF00",
        '"0xff00"',
        "'ff00'",
        "0xff_00",
        '"0xff_00"',
        "0x0000_0000_0000_ff00",
    ],
)
def test_every_spelling_of_a_mask_means_the_same(text: str) -> None:
    assert layer_value("output_processors", text) == 0xFF00


def test_an_unquoted_number_without_prefix_is_a_decimal_mask() -> None:
    assert layer_value("output_processors", "10") == 10
    assert layer_value("output_processors", "'10'") == 0x10


def test_masks_reach_to_processor_63() -> None:
    assert layer_value("output_processors", "0xffff.ffff.ffff.ffff") == (1 << 64) - 1
    description = parse(f"output_map: 0x8000.0000.0000.0000\n{HEAD}{LAYER}")
    assert description.get("output_map") == 1 << 63


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *((text, True) for text in ("true", "Yes", "on", "1")),
        *((text, False) for text in ("false", "NO", "off", "0")),
    ],
)
def test_flags_take_the_booleans_of_yaml_and_0_and_1(text: str, value: bool) -> None:
    assert layer_value("flatten", text) is value


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("max_pool", "2", (2, 2)),
        ("max_pool", "[2, 3]", (2, 3)),
        ("in_dim", "7", (7, 1)),
        ("in_dim", "[7, 9]", (7, 9)),
        ("kernel_size", "3x3", (3, 3)),
        ("kernel_size", "3X3", (3, 3)),
        ("out_offset", "0x2000", 0x2000),
        ("output_shift", "-3", -3),
        ("in_sequences", "[-1]", (-1,)),
        ("bias_group", "[0, 2]", (0, 2)),
        ("bias_group", "2", (2,)),
        ("name", "'on'", "on"),
    ],
)
def test_numbers_pairs_and_lists(key: str, text: str, value: object) -> None:
    text = f"{HEAD}- processors: 1\n  {key}: {text}\n"
    assert parse(text).layers[0].get(key) == value


def test_file_names_may_be_numbers_and_keep_their_spelling() -> None:
    description = parse(f"arch: test\ndataset: 007\nlayers:\n{LAYER}")
    assert description.get("dataset") == "007"


def test_aliases_are_stored_under_the_name_of_the_key() -> None:
    for key in LAYER_KEYS:
        for alias in key.aliases:
            value = {"op": "conv2d", "activate": "none"}.get(key.name, "1")
            name = "activate" if key.name == "op" else "op"
            other = "none" if key.name == "op" else "conv2d"
            text = f"{HEAD}- processors: 1\n  {name}: {other}\n  {alias}: {value}\n"
            assert key.name in parse(text).layers[0]


def test_gaps_in_the_sequence_are_closed_and_layers_are_sorted() -> None:
    description = parse(
        f"{HEAD}"
        "- {processors: 1, name: late, sequence: 9, op: none, in_sequences: First}\n"
        "- {processors: 1, name: last, op: none}\n"
        "- {processors: 1, name: first, sequence: 2, op: none}\n"
    )
    assert [x.name for x in description.layers] == ["first", "late", "last"]
    assert [x.index for x in description.layers] == [0, 1, 2]
    assert str(description.layers[1]) == "layer 1 (late)"


def test_anchors_and_aliases_repeat_values() -> None:
    text = f"{HEAD}- &a {{processors: &p 0xf, op: none}}\n- *a\n- {{processors: *p, op: none}}\n"
    assert [x.get("processors") for x in parse(text).layers] == [15, 15, 15]


def test_nested_sections_are_lists_of_mappings() -> None:
    text = (
        "unload:\n- {processors: 0xf, channels: 4, dim: [2, 3], offset: 0x100}\n"
        "data_buffer:\n- {processors: 1, channels: 1, dim: 4, offset: 0, name: buf}\n"
        f"{HEAD}{LAYER}  in_sequences: buf\n  in_offset: 0\n  in_dim: 4\n  in_channels: 1\n"
    )
    description = parse(text)
    (unload,) = description.get("unload")
    assert unload.get("dim") == (2, 3)
    assert description.get("data_buffer")[0].get("dim") == (4, 1)
    assert description.layers[0].get("in_sequences") == ("buf",)


def test_defaults_that_matter_are_announced() -> None:
    description = parse(f"{HEAD}- processors: 1\n  max_pool: 2\n")
    assert [str(w) for w in description.warnings] == [
        "<text>:4:3: warning: layer 0: 'op' is not given, Conv2d is used [W150]",
        "<text>:4:3: warning: layer 0: 'out_offset' is not given, 0 is used [W150]",
        "<text>:4:3: warning: layer 0: 'pool_stride' is not given, 1 is used [W150]",
        "<text>:4:3: notice: layer 0: 'activate' is not given, there is no activation [N151]",
    ]
    assert parse(HEAD + LAYER).warnings == ()


# Files


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DiagnosticError) as caught:
        parse_file(str(tmp_path / "none.yaml"))
    (found,) = caught.value.diagnostics
    assert (found.code, str(found.place)) == ("E101", str(tmp_path / "none.yaml"))
    assert found.message == "cannot read the network description: No such file or directory"


def test_folder_instead_of_a_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DiagnosticError, match="Is a directory .E101"):
        parse_file(str(tmp_path))


def test_huge_file_is_refused_before_it_is_parsed(tmp_path: Path) -> None:
    path = tmp_path / "huge.yaml"
    path.write_bytes(b"#" * (MAX_FILE_BYTES + 1))
    with pytest.raises(
        DiagnosticError, match=f"has {MAX_FILE_BYTES + 1} bytes, the limit is {MAX_FILE_BYTES}"
    ):
        parse_file(str(path))


def test_file_of_very_many_values_is_refused_before_it_takes_minutes() -> None:
    text = "arch: test\nlayers: [" + "{}, " * MAX_EVENTS + "]\n"
    (found,) = complaints(text)
    assert found.startswith("net.yaml:2:")
    assert f"the file holds more than {MAX_EVENTS} keys and values up to here [E101]" in found


@pytest.mark.parametrize("character", ["\0", "\x0b", "\x7f", "\ufffe"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\x85", "\u2028"])
def test_control_character_is_located(character: str, end: str) -> None:
    (found,) = complaints(f"arch: test{end}dataset: a{character}b{end}")
    assert found.startswith(
        f"net.yaml:2:11: error: the character U+{ord(character):04X} is not allowed in YAML [E102]"
    )


def test_long_key_is_not_repeated_in_the_message() -> None:
    found = complaints("a" * 500 + ": 1\n")
    assert "a key of 500 characters, the longest known one has fewer than 80 [E114]" in found[0]
    assert max(map(len, found)) < 300


@pytest.mark.parametrize(
    "key", ["kernel_size", "next_sequence", "processors", "pad", "op", "output"]
)
def test_number_too_long_to_print_is_refused(key: str) -> None:
    for number in ("0x" + "f" * 5000, "-0x" + "f" * 5000, "9" * 5000):
        (*_, found) = complaints(f"{HEAD}- {key}: {number}\n")
        assert f"'{key}' is the integer '" in found and len(found) < 400


def test_long_name_is_refused() -> None:
    found = complaints("arch: " + "a" * 251 + "\n")
    assert any(
        "'arch' has 251 characters, the limit is 250, expected a text [E109]" in f for f in found
    )


def test_byte_that_is_not_utf8_is_located(tmp_path: Path) -> None:
    path = tmp_path / "latin.yaml"
    path.write_bytes(b"arch: test\ndataset: caf\xe9\n")
    with pytest.raises(DiagnosticError) as caught:
        parse_file(str(path))
    assert str(caught.value.diagnostics[0]) == (
        f"{path}:2:13: error: byte 0xe9 is not UTF-8 text [E102]\n"
        "  Save the file with UTF-8 encoding."
    )


def test_byte_order_mark_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "bom.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + (HEAD + LAYER).encode())
    assert len(parse_file(str(path)).layers) == 1


# Errors of the file as a whole: text and complaint

NEEDS = "\n  It needs the keys arch, dataset and layers."
WHOLE = {
    "empty file": ("", "net.yaml:1:1: error: the network description is empty [E103]" + NEEDS),
    "only a comment": (
        "# nothing\n",
        "net.yaml:1:1: error: the network description is empty [E103]" + NEEDS,
    ),
    "list as root": (
        "- a\n",
        "net.yaml:1:1: error: the network description is a list, not a mapping of keys [E103]"
        + NEEDS,
    ),
    "text as root": (
        "hello\n",
        "net.yaml:1:1: error: the network description is the text 'hello', "
        "not a mapping of keys [E103]" + NEEDS,
    ),
    "syntax": (
        "arch: a: b\n",
        "net.yaml:1:8: error: not valid YAML: mapping values are not allowed in this context "
        "[E102]\n  Check indentation, colons and brackets on this line and the one before.",
    ),
    "two documents": (
        "--- a\n--- b\n",
        "net.yaml:2:1: error: not valid YAML: but found another document "
        "(expected a single document in the stream that begins in line 1, column 5) [E102]\n"
        "  Check indentation, colons and brackets on this line and the one before.",
    ),
    "tag": (
        f"{HEAD}- processors: !!python/object/apply:os.system ['touch x']\n",
        "net.yaml:4:15: error: the tag 'tag:yaml.org,2002:python/object/apply:os.system' is not "
        "allowed; nothing was executed [E106]\n"
        "  A network description holds plain numbers, texts, lists and mappings only.",
    ),
    "recursive alias": (
        "arch: test\nlayers: &all\n- *all\n",
        "net.yaml:2:9: error: this list or mapping contains itself [E111]\n"
        "  Write the values out instead of using an alias here.",
    ),
    "deep nesting": (
        f"arch: {'[' * 40}{']' * 40}\n",
        f"net.yaml:1:{6 + MAX_DEPTH}: error: nested deeper than {MAX_DEPTH} levels [E111]",
    ),
    "duplicate global key": (
        f"arch: test\narch: test\ndataset: tiny\nlayers:\n{LAYER}",
        "net.yaml:2:1: error: the key 'arch' stands here for the second time, first in line 1 "
        "[E104]\n  Remove one of the two.",
    ),
    "duplicate key of a layer": (
        f"{HEAD}{LAYER}  pad: 1\n  pad: 1\n",
        "net.yaml:9:3: error: the key 'pad' stands here for the second time, first in line 8 "
        "[E104]\n  Remove one of the two.",
    ),
    "list as key": (
        f"{HEAD}{LAYER}  ? [a]\n  : 1\n",
        "net.yaml:8:5: error: a key cannot be a list [E114]",
    ),
    "unknown global key": (
        f"datasett: x\n{HEAD}{LAYER}",
        "net.yaml:1:1: error: unknown key 'datasett' [E105]\n  Did you mean 'dataset'?",
    ),
    "unknown key of a layer": (
        f"{HEAD}{LAYER}  max_pol: 2\n",
        "net.yaml:8:3: error: layer 0: unknown key 'max_pol' [E105]\n  Did you mean 'max_pool'?",
    ),
    "key in capitals": (
        f"{HEAD}{LAYER}  Pad: 1\n",
        "net.yaml:8:3: error: layer 0: unknown key 'Pad' [E105]\n  Did you mean 'pad'?",
    ),
    "unknown nested key": (
        f"unload:\n- {{processors: 1, channels: 1, dim: 1, offset: 0, widht: 8}}\n{HEAD}{LAYER}",
        "net.yaml:2:51: error: unload: unknown key 'widht' [E105]\n  Did you mean 'width'?",
    ),
    "two spellings of one key": (
        f"{HEAD}{LAYER}  groups: 1\n  conv_groups: 1\n",
        "net.yaml:9:3: error: layer 0: 'conv_groups' and 'groups' are the same key [E107]\n"
        "  Keep one of the two.",
    ),
    "no arch": (
        f"dataset: tiny\nlayers:\n{LAYER}",
        "net.yaml:1:1: error: the key 'arch' is missing [E108]\n"
        "  Add it: Model name, or test for NumPy weights.",
    ),
    "no dataset": (
        f"arch: test\nlayers:\n{LAYER}",
        "net.yaml:1:1: error: the key 'dataset' is missing [E108]\n"
        "  Add it: Name of the sample file.",
    ),
    "no layers": (
        "arch: test\ndataset: tiny\n",
        "net.yaml:1:1: error: the key 'layers' is missing [E108]\n  Add it.",
    ),
    "unload without offset": (
        f"unload:\n- {{processors: 1, channels: 1, dim: 1}}\n{HEAD}{LAYER}",
        "net.yaml:2:3: error: unload: the key 'offset' is missing [E108]\n"
        "  Add it: Byte offset of the data.",
    ),
    "layers as a mapping": (
        "arch: test\ndataset: tiny\nlayers: {a: 1}\n",
        "net.yaml:3:9: error: 'layers' is a mapping, expected a list of mappings [E109]\n"
        "  Begin each element of 'layers' with a dash.",
    ),
    "empty layers": (
        "arch: test\ndataset: tiny\nlayers: []\n",
        f"net.yaml:3:9: error: 'layers' has 0 elements, expected 1 to {MAX_LAYERS} [E109]",
    ),
    "layer that is a number": (
        f"{HEAD}{LAYER}- 5\n",
        "net.yaml:8:3: error: an element of 'layers' is the integer '5', expected a mapping [E109]",
    ),
    "slot used twice": (
        f"{HEAD}{LAYER}- {{processors: 1, sequence: 0}}\n",
        "net.yaml:8:29: error: sequence 0 is used for the second time, first in line 4 [E112]\n"
        "  Give each layer a slot of its own.",
    ),
}


@pytest.mark.parametrize("case", WHOLE)
def test_errors_of_the_file_name_place_and_remedy(case: str) -> None:
    text, expected = WHOLE[case]
    assert complaints(text) == [expected]


# Errors of a value: key, text, what is said of it after "layer 0: '<key>' "

PAIR = "expected an integer of at least 0, or a list of two [E109]"
MASK = "expected a mask of processors 0 to 63 such as 0x0000.0000.0000.000f [E109]"
VALUES = [
    ("pad", "-1", f"is -1, {PAIR}\n  The nearest valid value is 0."),
    ("pad", "1.5", f"is the number '1.5', {PAIR}"),
    ("pad", "[1]", f"is a list of 1, {PAIR}"),
    ("pad", "[1, x]", f"is the text 'x', {PAIR}"),
    ("pad", "{a: 1}", f"is a mapping, {PAIR}"),
    ("pad", "~", f"is empty, {PAIR}"),
    ("pad", "true", f"is the boolean 'true', {PAIR}"),
    (
        "max_pool",
        "17",
        "is 17, expected an integer from 1 to 16, or a list of two [E109]\n"
        "  The nearest valid value is 16.",
    ),
    (
        "max_pool",
        "0",
        "is 0, expected an integer from 1 to 16, or a list of two [E109]\n"
        "  The nearest valid value is 1.",
    ),
    (
        "operands",
        "17",
        "is 17, expected an integer from 2 to 16 [E109]\n  The nearest valid value is 16.",
    ),
    ("output_shift", "a lot", "is the text 'a lot', expected an integer [E109]"),
    (
        "flatten",
        '"false"',
        "is the text 'false', expected true or false [E109]\n"
        "  Write true or false, without quotes.",
    ),
    (
        "flatten",
        "2",
        "is the integer '2', expected true or false [E109]\n  Write true or false, without quotes.",
    ),
    (
        "name",
        "yes",
        "is the boolean 'yes', expected a text [E109]\n"
        "  Put the value in quotes if it is meant as text.",
    ),
    (
        "name",
        "5",
        "is the integer '5', expected a text [E109]\n"
        "  Put the value in quotes if it is meant as text.",
    ),
    (
        "quantization",
        "3",
        "is the integer '3', expected one of 1, 2, 4, 8, bin, binary [E109]\n"
        "  The nearest valid value is 4.",
    ),
    (
        "quantization",
        "binry",
        "is the text 'binry', expected one of 1, 2, 4, 8, bin, binary [E109]\n"
        "  Did you mean binary?",
    ),
    (
        "data_format",
        "hcw",
        "is the text 'hcw', expected one of hwc, little, chw, big [E109]\n  Did you mean hwc?",
    ),
    (
        "eltwise",
        "bitwise_or",
        "is the text 'bitwise_or', expected one of add, sub, or, xor [E109]",
    ),
    (
        "output_width",
        "16",
        "is the integer '16', expected one of 8, 32 [E109]\n  The nearest valid value is 8.",
    ),
    (
        "kernel_size",
        "[3, 3]",
        "is a list, expected 1x1 or 3x3 (two-dimensional), or a length from 1 to 9 (Conv1d) [E109]",
    ),
    (
        "kernel_size",
        "3x",
        "is the text '3x', expected 1x1 or 3x3 (two-dimensional), "
        "or a length from 1 to 9 (Conv1d) [E109]",
    ),
    ("output_processors", "0", f"names no processor, {MASK}"),
    ("output_processors", "-1", f"is -1, {MASK}"),
    ("output_processors", "0x1.0000.0000.0000.0000", f"names processor 64, {MASK}"),
    ("output_processors", "all", f"is the text 'all', {MASK}"),
    ("output_processors", "1.5", f"is the number '1.5', {MASK}"),
    ("output_processors", "[1]", f"is a list, {MASK}"),
    (
        "bias_group",
        "[0, 4]",
        "is 4, expected an integer from 0 to 3, or a list [E109]\n  The nearest valid value is 3.",
    ),
    (
        "in_sequences",
        "[]",
        "is an empty list, expected a layer number or name, or input, or a list of these [E109]",
    ),
    (
        "next_sequence",
        "1.5",
        "is the number '1.5', expected a layer number or name, or stop [E109]",
    ),
    (
        "weight_source",
        "[0]",
        "is a list, expected a layer number or name [E109]",
    ),
]


@pytest.mark.parametrize(("key", "text", "said"), VALUES, ids=lambda v: str(v)[:20])
def test_errors_of_values_say_what_was_found_and_expected(key: str, text: str, said: str) -> None:
    column = len(key) + 5
    (found,) = complaints(f"{HEAD}{LAYER}  {key}: {text}\n")
    place, _, rest = found.partition(" error: ")
    assert rest == f"layer 0: '{key}' {said}"
    # An element of a list is named at its own place.
    assert place.startswith(f"net.yaml:8:{column}" if "[" not in text else "net.yaml:8:")


def test_unknown_operation_suggests_the_nearest() -> None:
    (found,) = complaints(f"{HEAD}- processors: 1\n  op: conv3d\n")
    assert found.startswith("net.yaml:5:7: error: layer 0: 'op' is the text 'conv3d', expected one")
    assert found.endswith("Did you mean conv2d?")


def test_unknown_key_without_a_neighbour_lists_the_known_ones() -> None:
    (found,) = complaints(f"qqqq: 1\n{HEAD}{LAYER}")
    assert found == (
        "net.yaml:1:1: error: unknown key 'qqqq' [E105]\n  Known keys: arch, bias, data_buffer, "
        "dataset, input_port, layers, output_map, snoop, unload, weights."
    )


def test_merge_keys_are_unknown_keys() -> None:
    (found,) = complaints(f"{HEAD}{LAYER}  <<: {{pad: 1}}\n")
    assert found.startswith("net.yaml:8:3: error: layer 0: unknown key '<<' [E105]")


def test_list_of_the_wrong_length_is_refused() -> None:
    (found,) = complaints(f"snoop: [1, 2]\n{HEAD}{LAYER}")
    assert "'snoop' is a list of 2, expected a list of 32" in found


def test_a_layer_without_processors_leaves_places_open() -> None:
    fixed, left_open = f"{HEAD}{LAYER}", f"{HEAD}{LAYER}- op: none\n"
    assert parse(fixed).placed and not parse(left_open).placed
    assert not any("out_offset" in str(w) for w in parse(left_open).warnings)


def test_without_limits_of_a_chip_kernels_and_strides_have_every_size() -> None:
    keys = "{op: conv2d, kernel_size: 10x4, stride: [3, 17], avg_pool: [25, 5], pool_stride: 25}"
    text = f"{HEAD}- {keys}\n- {{op: convtranspose2d, kernel_size: 2x2, stride: 4}}\n"
    first, second = parse(text, placed=False, limited=False).layers
    assert first.get("stride") == (3, 17) and first.get("avg_pool") == (25, 5)
    assert second.get("kernel_size") == (2, 2)
    with pytest.raises(DiagnosticError, match="E121.*\n.*\n.*E122"):
        parse(text.replace("17", "16").replace("25", "15"), placed=False)
    with pytest.raises(DiagnosticError, match="is 3x3, conv1d takes a length"):
        parse(f"{HEAD}- {{op: conv1d, kernel_size: 3x3}}\n", placed=False, limited=False)
    with pytest.raises(DiagnosticError, match="is 3, conv2d takes rows x columns"):
        parse(f"{HEAD}- {{kernel_size: 3}}\n", placed=False, limited=False)


def test_too_many_layers_are_refused_at_once() -> None:
    (found,) = complaints(HEAD + "- {}\n" * (MAX_LAYERS + 1))
    assert f"'layers' has {MAX_LAYERS + 1} elements, expected 1 to {MAX_LAYERS}" in found


def test_all_complaints_are_reported_in_the_order_of_the_file() -> None:
    found = complaints("arch: 5\nbogus: 1\nlayers:\n- {processors: 0, pad: -1}\n- {op: linear}\n")
    assert [line.split(" ")[0] for line in found] == [
        "net.yaml:1:1:",  # dataset is missing
        "net.yaml:1:7:",
        "net.yaml:2:1:",
        "net.yaml:4:16:",
        "net.yaml:4:24:",
    ]


# Rules between keys: keys of the layer, the key that is blamed, message

RULES = {
    "E133": (
        "dilation: [1, 2]",
        "dilation",
        "'dilation' is 1/2, rows and columns must be equal [E133]\n  Use dilation: 1.",
    ),
    "E120": (
        "operands: 2",
        "operands",
        "'operands' is 2 without an element-wise operation [E120]\n"
        "  Add eltwise: add (or sub, or, xor), or remove 'operands'.",
    ),
    "E121 conv2d": (
        "kernel_size: 5x5",
        "kernel_size",
        "'kernel_size' is 5x5, conv2d takes 1x1, 3x3 [E121]\n"
        "  Several small kernels replace a large one. "
        "Kernels of other sizes are for --device MCU only.",
    ),
    "E121 linear": (
        "op: linear, kernel_size: 1x1",
        "kernel_size",
        "'kernel_size' is 1x1, a linear layer has none [E121]\n  Remove the key.",
    ),
    "E121 conv1d": (
        "op: conv1d, kernel_size: 10",
        "kernel_size",
        "'kernel_size' is 10, conv1d takes 1, 2, 3, 4, 5, 6, 7, 8, 9 [E121]\n  Use kernel_size: 9. "
        "Kernels of other sizes are for --device MCU only.",
    ),
    "E121 conv1d square": (
        "op: conv1d, kernel_size: 3x3",
        "kernel_size",
        "'kernel_size' is 3x3, conv1d takes 1, 2, 3, 4, 5, 6, 7, 8, 9 [E121]\n"
        "  Use kernel_size: 3.",
    ),
    "E121 conv2d between": (
        "kernel_size: 2x2",
        "kernel_size",
        "'kernel_size' is 2x2, conv2d takes 1x1, 3x3 [E121]\n  Use kernel_size: 3x3. "
        "Kernels of other sizes are for --device MCU only.",
    ),
    "E121 transposed": (
        "op: convtranspose2d, kernel_size: 1x1",
        "kernel_size",
        "'kernel_size' is 1x1, convtranspose2d takes 3x3 [E121]\n  Use kernel_size: 3x3. "
        "Kernels of other sizes are for --device MCU only.",
    ),
    "E122": (
        "stride: 2",
        "stride",
        "'stride' is 2/2, conv2d works with 1 [E122]\n"
        "  Use pool_stride (with or without pooling) to reduce the size. "
        "Other strides are for --device MCU only.",
    ),
    "E122 transposed": (
        "op: convtranspose2d, stride: 1",
        "stride",
        "'stride' is 1/1, convtranspose2d works with 2 [E122]\n"
        "  Remove the key: a transposed convolution always doubles the size. "
        "Other strides are for --device MCU only.",
    ),
    "E123": (
        "pool_dilation: 2",
        "pool_dilation",
        "'pool_dilation' without 'max_pool' or 'avg_pool' [E123]\n  Remove it or add the pooling.",
    ),
    "E124": (
        "pool_first: false, max_pool: 2, pool_stride: 2",
        "pool_first",
        "'pool_first: false' needs pooling and an element-wise operation in the same layer "
        "[E124]\n  Remove the key.",
    ),
    "E125": (
        "op: none, dilation: 1",
        "dilation",
        "'dilation' on a layer without a kernel [E125]",
    ),
    "E126": (
        "op: add, activate: ReLU",
        "activate",
        "'activate' is ReLU on a layer without a convolution [E126]\n"
        "  Put the activation on the layer before or after.",
    ),
    "E127 source": (
        "op: none, buffer_shift: 1",
        "buffer_shift",
        "'buffer_shift' without 'in_sequences' [E127]",
    ),
    "E127 operator": (
        "in_sequences: input, buffer_shift: 1",
        "buffer_shift",
        "'buffer_shift' on a layer that is not a passthrough [E127]",
    ),
    "E128": (
        "buffer_insert: 1",
        "buffer_insert",
        "'buffer_insert' without 'out_offset' [E128]",
    ),
    "E130": (
        "in_sequences: frist",
        "in_sequences",
        "'in_sequences' names 'frist', but no layer has this name [E130]\n  Did you mean 'first'?",
    ),
    "E130 no name": (
        "next_sequence: end",
        "next_sequence",
        "'next_sequence' names 'end', but no layer has this name [E130]\n"
        "  Add name: to that layer.",
    ),
    "E130 list": (
        'in_sequences: "first, first"',
        "in_sequences",
        "'in_sequences' names 'first, first', but no layer has this name [E130]\n"
        "  Write a list: [first, first].",
    ),
    "E131": (
        "in_sequences: 1",
        "in_sequences",
        "'in_sequences' names the layer itself [E131]\n  Name an earlier layer, or input.",
    ),
    "E134": (
        "op: none, weights: conv1",
        "weights",
        "'weights' on a layer without weights [E134]\n  Remove the key.",
    ),
    "E134 twice": (
        "weight_source: first, weights: conv1",
        "weights",
        "'weights' beside 'weight_source' [E134]\n  Keep one of the two.",
    ),
    "E136": (
        "op: none, zero_outputs: 4",
        "zero_outputs",
        "'zero_outputs' on a layer without weights for all channels [E136]\n  Remove the key.",
    ),
    "E137": (
        "op: Conv2d, copy_channels: [0, 4]",
        "copy_channels",
        "'copy_channels' on a layer without 1x1 kernels (Conv1d: kernel_size 1) [E137]",
    ),
    "E131 weights": (
        "weight_source: 1",
        "weight_source",
        "'weight_source' names the layer itself [E131]\n  Name another layer.",
    ),
}


@pytest.mark.parametrize("case", RULES)
def test_rules_between_keys(case: str) -> None:
    keys, blamed, message = RULES[case]
    line = f"- {{processors: 1, {keys}}}"
    column = line.index(f"{blamed}: ") + len(blamed) + 3
    text = f"{HEAD}- {{processors: 1, name: first, op: none, out_offset: 0}}\n{line}\n"
    assert complaints(text) == [f"net.yaml:5:{column}: error: layer 1: {message}"]


def test_names_are_unique_in_any_case_and_two_are_reserved() -> None:
    text = "- {processors: 1, name: a}\n- {processors: 1, name: A}\n- {processors: 1, name: Stop}\n"
    assert complaints(HEAD + text) == [
        "net.yaml:5:25: error: layer 1 (A): the name 'A' already stands in line 4 [E129]\n"
        "  Give each layer a name of its own.",
        "net.yaml:6:25: error: layer 2 (Stop): the name 'Stop' is reserved [E129]",
    ]


def test_reader_of_a_data_buffer_states_what_cannot_be_inferred() -> None:
    buffer = "data_buffer:\n- {processors: 1, channels: 1, dim: 4, offset: 0, name: buf}\n"
    text = f"{buffer}{HEAD}{LAYER}  in_sequences: buf\n  in_dim: 4\n"
    assert complaints(text) == [
        "net.yaml:10:17: error: layer 0: reads a data buffer without in_offset, in_channels [E132]"
        "\n  State in_offset, out_offset, in_dim, in_channels in this layer."
    ]


def test_every_rule_is_tested() -> None:
    codes = {case[:4] for case in RULES} | {"E129", "E132"}
    assert codes == set(re.findall(r"E\d{3}", inspect.getsource(rules)))


# Hostile and damaged input


@pytest.mark.parametrize("value", ["!!bool maybe", "!!int ''", "!!float ''"])
def test_value_that_does_not_fit_its_explicit_tag_is_refused(value: str) -> None:
    assert "[E109]" in complaints(f"{HEAD}{LAYER}  in_offset: {value}\n")[0]


def test_huge_integer_is_refused() -> None:
    value = "0x" + "f" * 6000
    assert (
        "[E109]" in complaints(f"{HEAD}{LAYER}  sequence: {value}\n{LAYER}  sequence: {value}\n")[0]
    )


def test_kernel_without_columns_is_refused() -> None:
    assert complaints(f"{HEAD}- {{processors: 1, op: conv1d, kernel_size: 3x0}}\n")


def test_deeply_nested_file_does_not_end_the_interpreter() -> None:
    code = (
        "from ai8xtools.synthesis.parse import parse\n"
        "from ai8xtools.diagnostics import DiagnosticError\n"
        "try:\n    parse('[' * 100000)\n"
        "except DiagnosticError:\n    print('refused')\n"
    )
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "refused\n")


LEGAL = """\
arch: test
dataset: tiny
output_map: 0x0000.0000.0000.000f
layers:
- name: stem
  processors: 0x0000.0000.0000.0007
  op: Conv2d
  kernel_size: 3x3
  pad: 1
  max_pool: [2, 2]
  pool_stride: 2
  activate: ReLU
  quantization: 4
  out_offset: 0x2000
- name: join
  op: Add
  operands: 2
  in_sequences: [stem, 0]
  processors: 0xf
  output_processors: 15
  output: yes
  out_offset: 0
- op: Linear
  flatten: true
  processors: 0xf
  output_shift: -2
  next_sequence: stop
"""
VALUE = st.one_of(
    st.sampled_from(
        ["", "~", "-1", "0", "1e999", ".nan", "[]", "{}", "[[1]]", "1:30", "no", "'", "*a", "&a 1"]
    ),
    st.sampled_from(["!!python/name:os.system", "!!int x", "? a", "- a", "stop", "input", "stem"]),
    st.integers(-(10**30), 10**30).map(str),
    st.integers(0, 1 << 70).map(hex),
    st.text(max_size=12),
    st.sampled_from([key.name for key in (*LAYER_KEYS, *GLOBAL_KEYS)]),
)


@st.composite
def mutations(draw: st.DrawFn) -> str:
    """Return the legal description after a few deletions, doublings, replacements of values."""
    lines = LEGAL.splitlines()
    for _ in range(draw(st.integers(1, 4))):
        position = draw(st.integers(0, len(lines) - 1))
        kind = draw(st.sampled_from(["delete", "double", "value", "key", "indent", "cut"]))
        line = lines[position]
        if kind == "delete" and len(lines) > 1:
            del lines[position]
        elif kind == "double":
            lines.insert(draw(st.integers(0, len(lines))), line)
        elif kind == "value":
            lines[position] = f"{line.partition(':')[0]}: {draw(VALUE)}"
        elif kind == "key":
            names = [key.name for key in (*LAYER_KEYS, *GLOBAL_KEYS)] + list(NESTED_KEYS)
            lines.insert(position, f"  {draw(st.sampled_from(names))}: {draw(VALUE)}")
        elif kind == "indent":
            lines[position] = draw(st.sampled_from([" ", "- ", "\t", "  - "])) + line
        elif kind == "cut":
            lines[position] = line[: draw(st.integers(0, len(line)))]
    return "\n".join(lines)


def outcome(text: str) -> None:
    """Parse: a description, or diagnostics that all have a code and a place in the file."""
    try:
        assert isinstance(parse(text, "net.yaml"), Description)
    except DiagnosticError as exc:
        assert exc.diagnostics
        for found in exc.diagnostics:
            assert found.code[0] == "E" and found.place is not None
            assert found.place.file == "net.yaml"


def test_the_unmutated_description_is_legal() -> None:
    assert len(parse(LEGAL).layers) == 3


@settings(max_examples=400, deadline=1000)
@given(mutations())
def test_mutated_descriptions_end_in_a_description_or_diagnostics(text: str) -> None:
    outcome(text)


@settings(max_examples=150, deadline=1000)
@given(st.binary(max_size=60), st.integers(0, len(LEGAL)), st.integers(0, 40))
def test_random_bytes_end_in_a_description_or_diagnostics(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, start: int, length: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "mutated.yaml"
    legal = LEGAL.encode()
    path.write_bytes(legal[:start] + data + legal[start + length :])
    try:
        parse_file(str(path))
    except DiagnosticError as exc:
        assert all(found.code.startswith("E1") for found in exc.diagnostics)


@pytest.mark.parametrize(
    "line", ["# FILL IN: sin.", "  # FILL IN: sin.", "  pad: 1  # FILL IN: sin."]
)
def test_places_of_a_template_that_are_left_open_are_refused(line: str) -> None:
    column = line.index("FILL") + 1
    assert complaints(f"{HEAD}{LAYER}{line}\n") == [
        f"net.yaml:8:{column}: error: unfinished: FILL IN: sin. [E135]\n"
        "  Do what it says, then remove the comment."
    ]


@pytest.mark.parametrize("comment", ["# lines with FILL IN need work.", "# Filled in: sin"])
def test_other_comments_are_ignored(comment: str) -> None:
    assert parse(f"{HEAD}{LAYER}{comment}\n").layers


def test_single_layer_without_processors_is_a_slip_where_all_state_offsets() -> None:
    text = "arch: a\ndataset: b\nlayers:\n- {processors: 1, out_offset: 0}\n"
    (slip,) = complaints(text + "- {out_offset: 0x1000}\n")
    assert "layer 1: the key 'processors' is missing [E108]" in slip
    parse(text + "- {pad: 1}\n")
    parse(text + "- {out_offset: 0x1000}\n- {out_offset: 0x2000}\n")


def test_pair_with_a_number_that_cannot_be_used_is_meant_as_a_pair() -> None:
    with pytest.raises(KindError) as refused:
        Pair(1, 16).read(yaml.compose("[0, 2]"))
    assert refused.value.meant == (1, 2) and refused.value.message == "is 0"


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        (f"kernel_size: 3x3\n{HEAD}{LAYER}", "It is a key of layers"),
        (f"{HEAD}{LAYER}  arch: other\n", "It is a key of the whole network"),
        (f"{HEAD}{LAYER}  depthwise: true\n", "Use groups"),
        (f"{HEAD}{LAYER}  filters: 4\n", "Use out_channels"),
        (f"{HEAD}{LAYER}  pad: 1# one\n", "A comment begins with # behind a space."),
        (f"{HEAD}{LAYER}  pad: 1;\n", "Remove the semicolon."),
        (f"{HEAD}{LAYER} \u00a0pad: 1\n", "Indent with ordinary spaces."),
    ],
)
def test_remedies_of_misplaced_keys_comments_and_odd_spaces(text: str, remedy: str) -> None:
    assert any(remedy in found for found in complaints(text)), complaints(text)
