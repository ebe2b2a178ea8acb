"""Small YAML files: every fault is one complaint that names the file."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ai8xtools.diagnostics.errors import InputError
from ai8xtools.training.policies.yaml_file import Complaints, read_section

Train = Callable[..., Any]
BOMB = "start_epoch: [&x0 [1, 1, 1, 1, 1, 1, 1, 1], " + ", ".join(
    f"&x{n} [{', '.join([f'*x{n - 1}'] * 8)}]" for n in range(1, 30)
) + "]"  # fmt: skip
"""A kilobyte that stands for 8^30 numbers."""
MERGES = "x0: &x0 {a: 1, b: 2}\n" + "".join(
    f"x{n}: &x{n} {{<<: [*x{n - 1}, *x{n - 1}, *x{n - 1}]}}\n" for n in range(1, 30)
)


@pytest.mark.parametrize(
    ("content", "place", "message"),
    [
        (b"", "", "must hold keys with values"),
        (b"- 1", "", "must hold keys with values"),
        (b"a: 1\nb: [", ":2:5", "not valid YAML: expected the node content"),
        (b"a: 1\na: 2", ":2:1", "the key a occurs twice"),
        (b"a: !!python/name:os.system x", ":1:4", "not valid YAML: could not determine"),
        (b"a: 2026-13-45", "", "not valid YAML: month must be in 1..12"),
        (b"a: " + b"[" * 3000, ":1:35", "nested too deeply"),
        (b"a: !!bool maybe", "", "not valid YAML"),
        (b"a: !!int ''", "", "not valid YAML"),
        (b"a: " + b"1" * 20_000, ":1:4", "a number of 20000 characters"),
        (b"a: &x [*x]", ":1:4", "contains itself"),
        (BOMB.encode(), ":1:1", "aliases stand for more than 20000 values"),
        (MERGES.encode(), ":1:1", "aliases stand for more than 20000 values"),
        (b"a: [" + b"1," * 20_000 + b"]", ":1:19997", "more than 10000 keys"),
        (b"a: " + b"x" * (10 << 20), "", "it has 10485763 bytes, the limit is 262144"),
        (b"{[1]: 2}", ":1:2", "not valid YAML: found unhashable key"),
        (b"a: 1\n---\nb: 2", ":2:1", "not valid YAML"),
        (b"\xff\xfe\x00", "", "not text in UTF-8"),
    ],
)
def test_file_that_cannot_be_used_is_named(
    content: bytes, place: str, message: str, tmp_path: Path
) -> None:
    file = tmp_path / "file.yaml"
    file.write_bytes(content)
    with pytest.raises(InputError, match=message) as info:
        complaints = Complaints("E604", str(file))
        read_section(complaints)
        complaints.refuse()
    assert (info.value.code, info.value.place) == ("E604", f"{file}{place}")


@pytest.mark.parametrize(
    ("option", "text", "message"),
    [
        ("--qat-policy", "start_epoch: '1'\nweight_bits: 8", "start_epoch is '1'; it must be a wh"),
        ("--qat-policy", "start_epoch: 1\nweight_bits: '8'", "weight_bits of the policy is '8'; "),
        (
            "--qat-policy", "start_epoch: 1\nweight_bits: 8\noverrides: [conv]",
            "overrides must hold names of layers, not ['conv']",
        ),
        (
            "--qat-policy", "start_epoch: 1\nweight_bits: 8\noverrides: {conv2: {weight_bits: 4}}",
            "unknown key 'conv2' in overrides",
        ),
        ("--compress", "policies: 3", "policies is 3; it must be a list"),
        ("--compress", "lr_schedulers: {x: {class: [a]}}", "lr_schedulers: x has the class ['a']"),
    ],
)  # fmt: skip
def test_wrong_value_is_shown_before_the_run(
    option: str, text: str, message: str, tiny: Train
) -> None:
    Path("file.yaml").write_text(text)
    done = tiny("tinyclassifier", "tinyclasses", option, "file.yaml")
    assert done.status == 1
    assert re.search(r"file\.yaml:[1-3]:\d+: error: " + re.escape(message), done.error)
    assert not Path("logs").exists()


def test_policy_that_begins_after_the_last_epoch_is_mentioned(tiny: Train) -> None:
    Path("qat.yaml").write_text("start_epoch: 5\nweight_bits: 8")
    done = tiny("tinyclassifier", "tinyclasses", "--qat-policy", "qat.yaml")
    assert done.status == 0
    assert "start_epoch is 5, but the run ends after 1 epochs" in done.log
