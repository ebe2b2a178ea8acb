"""What is said of names, numbers and tensors that do not go together: for all small cases."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations, product
from pathlib import Path
from typing import Any

import pytest

from ai8xtools.diagnostics import Diagnostic, DiagnosticError, Place
from ai8xtools.synthesis.options import EncodeOptions
from ai8xtools.synthesis.parse import Entry, parse
from ai8xtools.synthesis.pipeline import examine
from ai8xtools.synthesis.resolve.naming import paired
from ai8xtools.synthesis.resolve.skipping import without_first_layers
from device import MAX78000
from tests.synthesis.networks import build, describe, files, sample, weights
from tests.synthesis.test_resolve import save_checkpoint

CONV: dict[str, Any] = {"processors": 7, "op": "Conv2d", "pad": 1, "activate": "ReLU"}
ADD: dict[str, Any] = {"processors": 7, "op": "Add", "in_sequences": "[0, 1]"}


def codes(problems: tuple[Diagnostic, ...]) -> list[str]:
    """Return the codes of messages."""
    return [problem.code for problem in problems]


@pytest.mark.parametrize("option", ["no_bias", "streaming_layers"])
def test_layers_in_options_are_named_exactly_if_there_are_none(tmp_path: Path, option: str) -> None:
    kernels = [weights(3, 3, 3, 3, seed=i) for i in range(3)]
    text = describe(CONV, CONV, CONV)
    for index in (-1, 0, 1, 2, 3, 9):
        given = {option: frozenset({index})}
        _, said = build(tmp_path, text, sample(3, 4, 4), kernels, **given)
        assert codes(said).count("W041") == (index not in range(3))


def test_layers_with_the_channels_of_the_weights_are_named(tmp_path: Path) -> None:
    """A third layer names a source whose channels are those of its weights, or not."""
    for outs in product((3, 4, 5), repeat=2):
        text = describe(
            CONV,
            {**CONV, "processors": hex((1 << outs[0]) - 1)},
            {**CONV, "in_sequences": "input"},
        )
        kernels = [weights(outs[0], 3, 3, 3), weights(outs[1], outs[0], 3, 3), weights(2, 5, 3, 3)]
        with pytest.raises(DiagnosticError) as caught:
            build(tmp_path, text, sample(3, 4, 4), kernels)
        (found,) = (d for d in caught.value.diagnostics if d.code == "E218")
        _, named, listed = str(found.remedy).partition("have the outputs of ")
        fitting = [str(i) for i, count in enumerate(outs) if count == 5]
        assert [x for x in ("0", "1", "2") if x in listed] == fitting
        assert bool(named) == bool(fitting)


def test_the_first_layer_with_the_name_of_other_tensors_is_hinted_at() -> None:
    """Where its own tensors come earlier in the file, it stands twice; else one is missing."""
    seen = set()
    for names in permutations("abcx", 3):
        description = parse(describe(*({**CONV, "name": name} for name in names)))
        problems: list[Diagnostic] = []
        found = paired(description.layers, [("a",), ("b",), ("c",)], Place(), problems)
        assert [number for _, number in found] == [0, 1, 2]
        away = [i for i, x in enumerate(names) if x != "x" and x != "abc"[i]]
        assert codes(tuple(problems)) == ["N245"] * bool(away)
        if away:
            name, taken = names[away[0]], "abc"[away[0]]
            later = name > taken
            said = problems[0].message
            assert f"'{name}'" in said and f"'{taken}'" in said
            assert ("later" in said, "earlier" in said) == (later, not later)
            assert ("missing" in str(problems[0].remedy)) == later
            seen.add(later)
    assert seen == {True, False}


KEYS = ("in_sequences", "next_sequence", "simulated_sequence", "snoop_sequence", "weight_source")


@pytest.mark.parametrize("key", KEYS)
def test_references_are_counted_from_the_first_layer_that_remains(key: str) -> None:
    """Numbers fall by those left out, names and what stands for no layer stay."""
    whole = parse(describe(*({**CONV, "name": f"n{i}"} for i in range(5))))
    for count, value in product(range(1, 5), [*range(-2, 5), "n1", "n4", "stop", (4, -1, "n3", 3)]):
        last = whole.layers[4]
        entries = {**last.entries, key: Entry(value, last.place)}
        described = replace(whole, layers=(*whole.layers[:4], replace(last, entries=entries)))
        problems: list[Diagnostic] = []
        found = without_first_layers(described, count, problems)
        several = value if isinstance(value, tuple) else (value,)
        moved = tuple(x - count if isinstance(x, int) and x >= 0 else x for x in several)
        assert found.layers[-1].get(key) == (moved if isinstance(value, tuple) else moved[0])
        assert [layer.index for layer in found.layers] == list(range(5 - count))
        lost = {"n1": 1, "n3": 3, "n4": 4, "stop": -1}
        numbers = [x if isinstance(x, int) else lost[x] for x in several]
        assert codes(tuple(problems)) == ["E232"] * any(0 <= n < count for n in numbers)


@pytest.mark.parametrize("scale", [0.5, 16.0, -16.0, [1.0, 2.0]])
@pytest.mark.parametrize("wrong", [0, 1])
def test_a_final_scale_that_is_none_is_the_only_complaint(
    tmp_path: Path, wrong: int, scale: Any
) -> None:
    """Of a sum whose other operand is not scaled, nothing more is said."""
    path = tmp_path / "net.yaml"
    first = {**CONV, "out_offset": 0, "output_processors": 7, "write_gap": 1}
    second = {**first, "in_sequences": "input", "in_offset": 0x2000, "out_offset": 4}
    first = {**first, "in_offset": 0x2000}
    path.write_text(describe(first, second, {**ADD, "in_offset": 0, "out_offset": 0x4000},
                             arch="tinynet"))  # fmt: skip
    state: dict[str, Any] = {
        f"{name}.op.weight": weights(3, 3, 3, 3, seed=i) for i, name in enumerate("ab")
    }
    state[f"{'ab'[wrong]}.final_scale"] = scale
    options = files(
        tmp_path, sample(3, 4, 4), checkpoint_file=save_checkpoint(tmp_path / "n.pth.tar", state)
    )
    with pytest.raises(DiagnosticError) as caught:
        examine(str(path), MAX78000, options, EncodeOptions())
    assert [d.code for d in caught.value.diagnostics if d.severity == "error"] == ["E516"]
