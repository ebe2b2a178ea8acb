"""Messages lead to the cure: what people do wrong, and what they are told about it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ai8xtools.checkpoint import read_checkpoint, write_checkpoint
from ai8xtools.checkpoint.values import Checkpoint
from ai8xtools.commands.loader.arguments import parse
from ai8xtools.commands.loader.create import create_project
from ai8xtools.diagnostics import Diagnostic, Severity
from tests.robustness.arrays import array_file
from tests.robustness.mistakes import (
    Mistake,
    files_with_several,
    judged,
    lines_of,
    mistakes,
    said,
)
from tests.robustness.starts import CHECKPOINT, DESCRIPTION, SAMPLE, Start, own_starts

STARTS = {start.name: start for start in own_starts()}
GAPS = "    write_gap: 1\n    out_offset: 0x200"
LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:abc\nsize 123\n"


def errors(
    folder: Path, name: str, old: str = "", new: str = "", *options: str, **files: bytes
) -> list[Diagnostic]:
    """Return the errors about one of the networks with another text or other files."""
    start = STARTS[name]
    text = start.files[DESCRIPTION].decode()
    assert old in text
    contents = {**start.files, DESCRIPTION: text.replace(old, new, 1).encode(), **files}
    found = said(Mistake("", "", (*start.args, *options), contents), folder)
    return [d for d in found if d.severity is Severity.ERROR]


def line_of(name: str, old: str) -> int:
    """Return the line in which a text begins."""
    text = STARTS[name].files[DESCRIPTION].decode()
    return text[: text.index(old)].count("\n") + 1


@pytest.mark.parametrize(
    ("name", "old", "new", "message", "remedy"),
    [
        ("residual", GAPS + "0", "    out_offset: 0x2000",
         "layer 1 (shortcut): the output is overwritten by that of layer 2 (body)",
         "Add write_gap: 1 to layer 1 (shortcut)"),
        ("residual", GAPS + "4", "    out_offset: 0x2004",
         "overwrites the output of layer 1", "Add write_gap: 1 to layer 2 (body)"),
        ("residual", "    eltwise: add\n", "",
         "weights are for 20 input channels, the layer has 40", "Add eltwise: add"),
        ("residual", "out_offset: 0x1000", "out_offset: 0x2fffc", "'out_offset' is 0x2fffc",
         "This output fits at 0x7f00 at most."),
        ("residual", "out_offset: 0x1000", "out_offset: 0x8000", "needs 256 bytes at 0x8000",
         "The highest out_offset that fits is 0x7f00."),
        ("residual", "[shortcut, body]", "[shortcut, body, lift]", "need 2 x 20x8x8",
         "Add operands: 3"),
        ("residual", "in_offset: 0x1000", "in_offset: 0x1800", "input 0 is read from 0x1800",
         "Use in_offset: 0x1000."),
        ("mnist (trained)", "    max_pool: 2\n    pool_stride: 2\n", "",
         "layer 3 (conv4) gives 12x7x7 (tensor 'fc.op.weight')",
         "weights are for 192 inputs, 12 channels of 4x4: perhaps pooling"),
        ("mnist (trained)", "    avg_pool: 2\n    pool_stride: 2\n", "",
         "layer 3 (conv4) gives 12x8x8", "12 channels of 4x4: perhaps pooling"),
        ("mnist (trained)", "    flatten: true\n", "    flatten: true\n    in_dim: [7, 7]\n",
         "not a multiple of 7x7 pixels", "Remove 'in_dim'"),
        ("mnist (trained)", "    pad: 2\n", "    pad: 0\n", "layer 3 (conv4) gives 12x3x3",
         "perhaps padding is missing"),
        ("series", "dilation: 2\n", "dilation: 2000\n", "kernel with dilation 2000",
         "use a smaller dilation"),
        ("series", "in_sequences: [wide_view]", "in_sequences: [front]",
         "weights are for 12 input channels, the layer has 16", "Correct 'in_sequences'"),
        ("classifier", "quantization: 4", "quantization: bin", "MAX78000 has none",
         "MAX78002 has it."),
        ("mnist (trained)", "activate: ReLU", "activate: LeakyReLU", "is the text 'LeakyReLU'",
         "Did you mean relu?"),
        ("mnist (trained)", "op: Conv2d", 'op: "Conv2d', "that begins in line 14", "Check"),
        ("rolling", "in_sequences: ring", "in_sequences: rnig", "names 'rnig'", "mean 'ring'"),
    ],
)  # fmt: skip
def test_message_names_the_cause_and_the_cure(
    tmp_path: Path, name: str, old: str, new: str, message: str, remedy: str
) -> None:
    found = errors(tmp_path, name, old, new)
    assert any(message in d.message and remedy in (d.remedy or "") for d in found), found


@pytest.mark.parametrize(
    ("shape", "remedy"),
    [
        ((28, 28, 1), "save sample.transpose(2, 0, 1)"),
        ((28, 28), "save sample[None]"),
        ((64, 64, 3), "sample"),
        ((1, 64, 64), "The sample is 1x64x64."),
    ],
)
def test_sample_in_another_order_or_size_is_named(
    tmp_path: Path, shape: tuple[int, ...], remedy: str
) -> None:
    data = array_file([np.zeros(shape, np.int64)])
    found = errors(tmp_path, "mnist (trained)", **{SAMPLE: data})
    assert any(remedy in f"{d.message} {d.remedy}" for d in found), found


@pytest.mark.parametrize(("side", "warned"), [(28, False), (29, True), (32, True)])
def test_sample_of_another_size_that_happens_to_fit_is_named(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    side: int,
    warned: bool,
) -> None:
    start = STARTS["mnist (trained)"]
    monkeypatch.chdir(tmp_path)
    Path("tests").mkdir()
    np.save("tests/sample_mnist.npy", np.zeros((1, 28, 28), np.int64))
    for name, content in start.files.items():
        Path(name).write_bytes(content)
    np.save(SAMPLE, np.zeros((1, side, side), np.int64))
    create_project(parse([*start.args, "--test-dir", "out", "--prefix", "p"]))
    said_of = f"the sample is 1x{side}x{side}, that of its data set (tests/sample_mnist.npy) is"
    assert (said_of in capsys.readouterr().err) == warned


@pytest.mark.parametrize("shape", [(1, 28, 40), (1, 9, 9)])
def test_sample_is_named_where_channels_do_not_fit(tmp_path: Path, shape: tuple[int, ...]) -> None:
    found = errors(tmp_path, "mnist (trained)", **{SAMPLE: array_file([np.zeros(shape, np.int64)])})
    assert any(f"The sample is {'x'.join(map(str, shape))}." in str(d) for d in found), found


def test_layer_that_is_left_out_is_named_by_its_tensors(tmp_path: Path) -> None:
    text = STARTS["mnist (trained)"].files[DESCRIPTION].decode()
    begin, end = text.index("  # pooled to 60x8x8"), text.index("  # averaged to")
    found = said(
        Mistake("", "", STARTS["mnist (trained)"].args, {
            **STARTS["mnist (trained)"].files,
            DESCRIPTION: (text[:begin] + text[end:]).encode(),
        }),
        tmp_path,
    )  # fmt: skip
    told = [f"{d.message} {d.remedy}" for d in found]
    assert any("takes the tensors of 'conv3'" in x and "is missing in front" in x for x in told)
    assert any("has tensors for 5 layers, 4 layers here take some" in x for x in told)


def test_hints_are_not_said_of_a_network_without_errors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    start = STARTS["residual (checkpoint)"]
    text = start.files[DESCRIPTION].decode()
    shorter = text[: text.index("  - name: head")]
    files = {**start.files, DESCRIPTION: shorter.encode()}
    assert said(Mistake("", "", start.args, files), tmp_path) == []
    assert "N246" not in capsys.readouterr().err


def test_bias_out_of_range_is_named_by_its_tensor(tmp_path: Path) -> None:
    path = tmp_path / "bias.pth.tar"
    path.write_bytes(STARTS["mnist (trained)"].files[CHECKPOINT])
    stored = read_checkpoint(path)
    state = dict(stored.state_dict)
    state["fc.op.bias"] = np.full(10, 1 << 20, np.float32)
    write_checkpoint(path, Checkpoint({"arch": stored.arch, "state_dict": state}))
    found = errors(tmp_path, "mnist (trained)", **{CHECKPOINT: path.read_bytes()})
    assert [d.code for d in found] == ["E207"]
    assert "(tensor 'fc.op.bias' of net.pth.tar)" in found[0].message


@pytest.mark.parametrize(
    ("files", "message", "remedy"),
    [
        ({CHECKPOINT: LFS}, "it is a Git LFS pointer", "Run `git lfs pull` there."),
        ({SAMPLE: LFS}, "it is a Git LFS pointer", "Run `git lfs pull` there."),
        ({SAMPLE: b"\xef\xbf\xbdNUMPY\x01\x00v\x00{"}, "converted as text", "Copy the original"),
        ({SAMPLE: b"\x93NUMPY\x01\x00v\x00{'descr'\r\n: 1}"}, "", ""),
    ],
)
def test_damaged_files_are_recognized(
    tmp_path: Path, files: dict[str, bytes], message: str, remedy: str
) -> None:
    (found,) = errors(tmp_path, "mnist (trained)", **files)
    assert message in found.message and remedy in (found.remedy or "")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--sofmax",), "--sofmax; did you mean --softmax?"),
        (("--fast-fifo",), "Add --riscv"),
        (("--mexpress", "--no-mexpress"), "--no-mexpress: not allowed with argument --mexpress"),
        (("--fifo", "--input-split", "2"), "--input-split 2"),
        (("--sample-input", "sampel.npy"), "did you mean sample.npy?"),
        (("--config-file", "ent.yaml"), "did you mean net.yaml?"),
        (("--checkpoint-file", "net.pth"), "did you mean net.pth.tar?"),
    ],
)
def test_options_that_do_not_go_together_or_miss_their_file_are_named(
    tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    found = errors(tmp_path, "mnist (trained)", "", "", *options)
    assert any(message in str(d) for d in found), found


def test_line_key_value_and_remedy_of_mistakes_are_named(tmp_path: Path) -> None:
    made = [*mistakes(75, seed=5)]
    missed = [m.what for m in made if not all(judged(m, said(m, tmp_path)).values())]
    assert missed == [] and {m.reader for m in made} > {"description", "qat", "schedule"}


def test_several_mistakes_are_told_in_one_run(tmp_path: Path) -> None:
    """Where one makes unknown what another is about, it may be told after the first is mended."""
    missed: list[str] = []
    count = 0
    for several in files_with_several((3,) * 12, seed=6, apart=True):
        found = said(several[0], tmp_path)
        count += len(several)
        missed += [m.what for m in several if not all(judged(m, found).values())]
    assert count > 30 and len(missed) <= count * 0.05, missed


@pytest.mark.parametrize(
    ("name", "changes", "messages"),
    [
        ("residual", {"pad: 1": "pad: 7", "    op: conv2d": "    op: Conv3d"},
         ("'pad' is 7, the limit for a 3x3 kernel is 2", "is the text 'Conv3d'")),
        ("upsampling", {"pad: 1": "pad: 7"}, ("'pad' is 7, the limit for a 3x3 kernel is 2",)),
        ("rolling", {"0000.00f0\n    dim": "0000.01f0\n    dim"},
         ("data_buffer: 'processors' names 5, 4 channels need 4",)),
        ("rolling", {"0000.00f0\n    dim": "0000.0070\n    dim", "00f0\n    in_offset: 0x3000":
                     "0070\n    in_offset: 0x3000", "frame\n    in": "fraem\n    in"},
         ("'processors' names 3, 4 channels need 4", "names 3, 4 input channels need 4",
          "names 'fraem'")),
    ],
)  # fmt: skip
def test_no_mistake_hides_another(
    tmp_path: Path, name: str, changes: dict[str, str], messages: tuple[str, ...]
) -> None:
    text = STARTS[name].files[DESCRIPTION].decode()
    for old, new in changes.items():
        assert old in text, text
        text = text.replace(old, new, 1)
    files = {**STARTS[name].files, DESCRIPTION: text.encode()}
    found = [
        f"{d.message} {d.remedy}" for d in said(Mistake("", "", STARTS[name].args, files), tmp_path)
    ]
    assert all(any(message in x for x in found) for message in messages), found


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("conditional", {"op: conv2d": "op: Conv3d", "f0\n    op": "70\n    op"},
         "'processors' 0x0000.0000.0000.0070 names 3, 4 input channels need 4"),
        ("residual", {"arch: test": "arch: ''", "out_offset: 0x2000": "out_offset: 0x200000"},
         "'out_offset' is 0x200000"),
        ("residual", {"pad: 1": "pad: 7", "000f.ffff\n    op: conv": "001f.ffff\n    op: conv"},
         "names 21, 20 input channels need 20"),
        ("residual", {"op: conv2d": "op: conv", "in_sequences: lift": "in_sequences: lfit",
                      "0000.ffff\n    op: conv2d": "0001.ffff\n    op: conv2d"},
         "names 17, 16 input channels need 16"),
        ("classifier (safetensors)", {"stride: 1": "stride: 3", "00ff\n    out_offset: 0x0000":
                                      "01ff\n    out_offset: 0x0000"},
         "names 9, 8 input channels need 8"),
    ],
)  # fmt: skip
def test_masks_and_offsets_behind_a_value_that_cannot_be_used_are_judged(
    tmp_path: Path, name: str, changes: dict[str, str], message: str
) -> None:
    text = STARTS[name].files[DESCRIPTION].decode()
    for old, new in changes.items():
        assert old in text, text
        text = text.replace(old, new, 1)
    files = {**STARTS[name].files, DESCRIPTION: text.encode()}
    found = said(Mistake("", "", STARTS[name].args, files), tmp_path)
    wrong = [d for d in found if d.severity is Severity.ERROR]
    assert any(message in d.message for d in wrong), found
    assert len(wrong) == len(changes), found


def test_nothing_is_assumed_of_a_network_that_makes_no_sense_then(tmp_path: Path) -> None:
    text = STARTS["mnist (trained)"].files[DESCRIPTION].decode()
    text = text.replace("    max_pool: 2\n", "    max_pool: two\n", 1)
    files = {**STARTS["mnist (trained)"].files, DESCRIPTION: text.encode(), CHECKPOINT: LFS}
    found = said(Mistake("", "", STARTS["mnist (trained)"].args, files), tmp_path)
    assert [d.code for d in found if d.severity is Severity.ERROR] == ["E502", "E109"]


def test_lines_are_those_of_keys_with_values() -> None:
    start: Start = STARTS["mnist (trained)"]
    found = {line.key for line in lines_of(start.files[DESCRIPTION].decode())}
    assert {"arch", "processors", "pool_stride", "flatten"} <= found and "layers" not in found
