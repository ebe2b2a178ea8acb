"""The JSON Schema of the language accepts what the parser accepts, key by key."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from ai8xtools.diagnostics import DiagnosticError
from ai8xtools.synthesis.parse import parse
from ai8xtools.synthesis.parse.keys import DATA_BUFFER_KEYS, GLOBAL_KEYS, LAYER_KEYS, UNLOAD_KEYS
from ai8xtools.synthesis.parse.kinds import KernelSize, KindError
from ai8xtools.synthesis.parse.nodes import compose, scalar
from tests.conftest import ROOT
from tests.synthesis.networks import describe

SCHEMA = json.loads((ROOT / "networks" / "schema.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
KEYS = {f"{k.name} ({name})": k for name, keys in (
    ("global", GLOBAL_KEYS), ("layer", LAYER_KEYS),
    ("unload", UNLOAD_KEYS), ("buffer", DATA_BUFFER_KEYS),
) for k in keys}  # fmt: skip


def plain(node: yaml.Node) -> Any:
    """Return what an editor sees of a node: scalars by the YAML rules of the parser."""
    if isinstance(node, yaml.SequenceNode):
        return [plain(n) for n in node.value]
    if isinstance(node, yaml.MappingNode):
        return {str(key.value): plain(value) for key, value in node.value}
    return scalar(node)


def complaints(text: str) -> list[str]:
    """Return what the schema says about a description."""
    return [e.message for e in VALIDATOR.iter_errors(plain(compose(text, "net.yaml")))]


def test_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


# Whole descriptions


@pytest.mark.parametrize("file", sorted((ROOT / "networks").glob("*.yaml")), ids=lambda p: p.name)
def test_descriptions_of_the_repository_are_valid(file: Path) -> None:
    assert complaints(file.read_text()) == []


def test_legal_descriptions_of_the_known_answers_are_valid(shared: Path) -> None:
    texts = set()
    for case in sorted((shared / "kat" / "cases").iterdir()):
        if json.loads((case / "case.json").read_text())["kind"] == "image":
            texts |= {path.read_text() for path in case.glob("*.yaml")}
    assert len(texts) > 100
    assert [(t[:200], found) for t in texts for found in [complaints(t)] if found] == []


BASE = describe({"processors": 7, "op": "conv2D", "kernel_size": "3X3", "pad": [1, 1]})
MUTATIONS = {
    "unknown global key": ("arch: test", "arch: test\nArch: test"),
    "unknown key of a layer": ("  pad:", "  pads:"),
    "layers missing": ("layers:", "data_buffer:"),
    "arch missing": ("arch: test", "weights: test"),
    "processors of a buffer missing": (
        "layers:",
        "data_buffer:\n- {name: a, channels: 1, dim: 1, offset: 0}\nlayers:",
    ),
    "no layer": (BASE[BASE.index("layers:") :], "layers: []"),
    "layer is a text": (BASE[BASE.index("- #") :], "- conv"),
    "same key twice": ("op: conv2D", "op: conv2D\n  operation: add"),
    "no processor": ("processors: 7", "processors: 0"),
    "processor 64": ("processors: 7", "processors: 0x1.0000.0000.0000.0000"),
    "mask of other digits": ("processors: 7", "processors: 0x00g0"),
    "unknown operation": ("op: conv2D", "op: conv4d"),
    "empty": ("op: conv2D", "op:"),
    "kernel that no layer has": ("3X3", "5x5"),
    "kernel as a list": ("3X3", "[3, 3]"),
    "three sizes": ("[1, 1]", "[1, 1, 1]"),
    "negative": ("[1, 1]", "-1"),
    "text instead of a number": ("[1, 1]", "'1'"),
    "fraction": ("[1, 1]", "1.5"),
    "beyond the range": ("pad: [1, 1]", "max_pool: 17"),
    "quoted boolean": ("pad: [1, 1]", "flatten: 'true'"),
    "two for a boolean": ("pad: [1, 1]", "flatten: 2"),
    "boolean as a width": ("pad: [1, 1]", "quantization: true"),
    "width between": ("pad: [1, 1]", "quantization: 3"),
    "no source": ("pad: [1, 1]", "in_sequences: []"),
    "group 4": ("pad: [1, 1]", "bias_group: [0, 4]"),
    "incomplete unload": ("layers:", "unload: [{processors: 1}]\nlayers:"),
    "short snoop": ("layers:", "snoop: [0, 1]\nlayers:"),
}


@pytest.mark.parametrize("case", MUTATIONS)
def test_illegal_descriptions_are_invalid_and_refused(case: str) -> None:
    old, new = MUTATIONS[case]
    assert complaints(BASE) == [] and BASE.count(old) == 1
    text = BASE.replace(old, new)
    assert complaints(text)
    with pytest.raises(DiagnosticError):
        parse(text)


# Single keys: any value is accepted by both or by neither


WORDS = sorted({
    *("relu", "ReLU", "NONE", "hwc", "Conv2d", "BITWISE_xor", "Or", "bin", "Binary", "add", "stop"),
    *("input", "some name", "3x3", "1X1", "0x0f", "f.f_f", "0x0000.0000.0000.0000", "g", "true"),
    *("0x8000.0000.0000.0000", "1.0000.0000.0000.0000", "0x", "...", ""),
})  # fmt: skip
NUMBERS = st.sampled_from(
    (-1, 0, 1, 2, 3, 4, 8, 9, 16, 17, 32, 1024, 2**32, 2**63, 2**64 - 1, 2**64)
)
SCALARS = st.one_of(
    NUMBERS, st.integers(), st.booleans(), st.none(), st.just(1.5), st.sampled_from(WORDS)
)
LISTS = st.lists(SCALARS, max_size=3) | st.lists(NUMBERS, min_size=32, max_size=32)
VALUES = st.one_of(SCALARS, LISTS, st.just({"a": 1}))


@pytest.mark.parametrize("name", KEYS)
def test_parser_and_schema_accept_the_same_values(name: str) -> None:
    kind = KEYS[name].kind
    validator = jsonschema.Draft202012Validator(kind.schema())

    @settings(max_examples=60, deadline=None, database=None)
    @given(VALUES)
    def agree(value: Any) -> None:
        node = yaml.compose(yaml.safe_dump(value))
        valid = validator.is_valid(plain(node))
        try:
            kind.read(node)
        except KindError:
            assert not valid
        else:  # rules limit kernels further, for each operator
            assert valid or isinstance(kind, KernelSize)

    agree()


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ("pad: 2", "pad: 3"),
        ("stride: 2", "stride: [3, 3]"),
        ("output_pad: 1", "output_pad: 2"),
        ("output_shift: -22", "output_shift: 16"),
        ("out_offset: 0x4fffc", "out_offset: -4"),
    ],
)
def test_editors_know_limits_of_which_the_parser_leaves_the_complaint(good: str, bad: str) -> None:
    key = good.partition(":")[0]
    start = BASE if key in ("pad", "out_offset") else f"{BASE}  {key}: 1\n"
    (line,) = [x for x in start.splitlines() if x.strip().startswith(f"{key}:")]
    assert complaints(start.replace(line, f"  {good}")) == []
    assert complaints(start.replace(line, f"  {bad}"))


@pytest.mark.parametrize("name", KEYS)
def test_every_key_is_described_for_editors(name: str) -> None:
    key = KEYS[name]
    sections = [SCHEMA, *SCHEMA["$defs"].values()]
    found = [
        s["properties"][key.name]["description"] for s in sections if key.name in s["properties"]
    ]
    assert any(text.startswith(key.sentence) for text in found)
