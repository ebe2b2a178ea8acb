"""The command line of tests for RTL simulation: what it writes, and what it refuses."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

import ai8xize
from ai8xtools.commands.loader.arguments import parse
from ai8xtools.synthesis.emit.rtl import RtlOptions
from ai8xtools.synthesis.emit.rtl import test_name as name_of_test
from ai8xtools.synthesis.pipeline import synthesize
from tests.conftest import ROOT

NETWORK = [
    "--device", "MAX78000", "--config-file", "networks/digits-chw-ai85.yaml",
    "--checkpoint-file", "trained/digits-ai85digitsnet-qat8-q.pth.tar", "--prefix", "net",
]  # fmt: skip


def usage(*options: str) -> dict[str, str]:
    """Return what is said of options: message by code and option."""
    complaints = parse([*NETWORK, "--test-dir", "out", *options]).usage
    return {f"{d.code} {d.place.option}": d.message for d in complaints if d.place}


def chosen(*options: str) -> RtlOptions:
    found = parse([*NETWORK, "--test-dir", "out", *options]).rtl
    assert found is not None
    return found


def ran(monkeypatch: pytest.MonkeyPatch, test_dir: Path, *options: str) -> int:
    """Run the tool; return the exit status. Paths of options are relative to the repository."""
    monkeypatch.chdir(ROOT)
    words = ["ai8xize.py", *NETWORK, "--test-dir", str(test_dir), *options]
    monkeypatch.setattr("sys.argv", words)
    from ai8xtools.diagnostics import run

    return run(ai8xize.main)


def test_defaults_differ_from_embedded_projects() -> None:
    found = chosen("--rtl-sim")
    assert found.project.main_filename == "test.c" and found.project.inline_check
    assert found.top_level == "cnn" and found.compact_data and not found.preload_data


@pytest.mark.parametrize("option", ["--softmax", "--energy", "--no-unload"])
def test_options_of_embedded_projects_do_nothing(option: str) -> None:
    found = chosen("--rtl", option)
    project = replace(found.project, command_line=chosen("--rtl").project.command_line)
    assert replace(found, project=project) == chosen("--rtl")


def test_preloading_is_an_rtl_test_without_packed_weights() -> None:
    options = ["--rtl-preload", "--rtl-preload-weights"]
    made = parse([*NETWORK, "--test-dir", "out", *options])
    assert chosen(*options).preload_data and chosen(*options).preload_weights
    assert not made.encode.express
    block = parse([*NETWORK, "--test-dir", "o", "--rtl", "--top-level", "none"])
    assert not block.encode.express


@pytest.mark.parametrize(
    ("options", "option", "reason"),
    [
        (["--rtl-preload", "--fifo"], "--rtl-preload", "a FIFO"),
        (["--rtl-preload", "--zero-sram"], "--rtl-preload", "--zero-sram"),
        (["--rtl", "--rtl-preload-weights", "--verify-kernels"], "--rtl-preload-weights",
         "--verify-kernels"),
        (["--rtl", "--rtl-preload-weights", "--verify-writes"], "--rtl-preload-weights",
         "--verify-writes"),
        (["--rtl", "--rtl-preload-weights", "--mexpress"], "--rtl-preload-weights", "--mexpress"),
        (["--rtl", "--result-output", "--stop-start"], "--result-output", "--stop-start"),
        (["--rtl", "--result-output", "--one-shot"], "--result-output", "--one-shot"),
    ],
)  # fmt: skip
def test_options_that_switch_each_other_off(options: list[str], option: str, reason: str) -> None:
    assert usage(*options)[f"W041 {option}"] == f"it has no effect together with {reason}"
    found = chosen(*options)
    assert not (found.preload_data or found.preload_weights or found.result_output)


def test_weights_are_preloaded_beside_the_old_loader() -> None:
    options = ("--rtl", "--rtl-preload-weights", "--verify-writes", "--old-kernel-loader")
    assert chosen(*options).preload_weights and "W041" not in str(usage(*options))


@pytest.mark.parametrize(
    ("options", "option", "needed"),
    [
        (["--result-output"], "--result-output", "--rtl"),
        (["--autogen", "lists"], "--autogen", "--rtl"),
        (["--input-csv", "cam.csv"], "--input-csv", "--rtl"),
        (["--rtl", "--input-csv-format", "565"], "--input-csv-format", "--input-csv"),
        (["--rtl", "--input-fifo"], "--input-fifo", "--input-csv"),
        (
            ["--rtl", "--fifo", "--input-csv", "c.csv", "--input-fifo"],
            "--input-fifo",
            "--fast-fifo",
        ),
    ],
)
def test_options_that_need_others(options: list[str], option: str, needed: str) -> None:
    assert usage(*options)[f"E095 {option}"] == f"it needs {needed}"


@pytest.mark.parametrize("pair", [("--rtl", "--rtl-preload"), ("-e", "--rtl")], ids=" ".join)
def test_products_exclude_each_other(
    pair: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        usage(*pair)
    assert end.value.code == 2
    assert "not allowed with" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["--rtl", "--fixed-input"], "E092", ["--fixed-input", "Leave out"]),
        (["--rtl", "--verify"], "E092", ["--verify"]),
        (["--rtl", "--result-output", "--no-kat"], "E092", ["--result-output", "--no-kat"]),
        (["--rtl", "--top-level", "None", "--riscv"], "E092", ["--riscv", "--top-level None"]),
        (["--rtl", "--timeout", "0"], "E073", ["--timeout", "is 0, the limits are 1 and"]),
        (["--rtl", "--runtest-filename", "a/b.sv"], "E071", ["--runtest-filename", "a/b.sv"]),
        (["--rtl", "--top-level", "../x"], "E071", ["--top-level", "../x"]),
        (["--rtl", "--runtest-filename", "test.c"], "E072", ["--runtest-filename", "test.c"]),
        (["--rtl", "--top-level", "None", "--input-filename", "output"], "E072",
         ["--input-filename", "'output.mem'"]),
        (["--rtl", "--sample-output-filename", "run_test.sv"], "E072", ["run_test.sv"]),
        (["--rtl", "--runtest-filename", "x.sv", "--sample-output-filename", "x.sv"], "E072",
         ["x.sv"]),
        (["--rtl", "--fifo", "--input-csv", "run.csv", "--sample-output-filename", "run.csv"],
         "E072", ["run.csv"]),
        (["--rtl", "--top-level", "None", "--input-filename", "output-3"], "E072",
         ["output-3.mem"]),
        (["--rtl", "--top-level", "None", "--runtest-filename", "input.mem"], "E072",
         ["input.mem"]),
        (["--rtl", "--log-intermediate", "--runtest-filename", "output.csv"], "E072",
         ["output.csv"]),
        (["--rtl", "--fifo", "--log-intermediate", "--input-csv", "config.csv"], "E072",
         ["config.csv"]),
        (["--rtl", "--runtest-filename", "run_test.log.fail"], "E072", ["run_test.log.fail"]),
        (["--rtl", "--runtest-filename", ".generated.sha256"], "E072", [".generated.sha256"]),
        (["--rtl-preload", "--weight-filename", "data"], "E072", ["'data'"]),
        (["--rtl", "--fifo", "--input-csv", "masks"], "E072", ["--input-csv", "masks"]),
        (["--rtl", "--input-csv", "cam.csv"], "E095", ["--input-csv", "Add --fifo"]),
        (["--rtl", "--fifo", "--input-csv", "c.csv", "--input-csv-format", "565"], "E094",
         ["--input-csv-format", "565", "3 channels"]),
        (["--rtl", "--riscv", "--fast-fifo", "--input-csv", "c.csv", "--input-fifo"], "E094",
         ["--input-fifo", "planar"]),
        (["--rtl", "--autogen", ".", "--autogen_list", "docs"], "E096", ["--autogen_list", "docs"]),
        (["--rtl", "--autogen", ""], "E096", ["--autogen", "is empty"]),
        (["--rtl", "--queue-name", "x y"], "E071", ["--queue-name", "x y"]),
        (["--rtl", "--queue-name", "x:y"], "E071", ["--queue-name", "x:y"]),
        (["--rtl", "--top-level", ""], "E071", ["--top-level"]),
        (["--rtl", "--top-level", "x y"], "E071", ["--top-level", "x y"]),
        (["--rtl", "--autogen", ".", "--autogen_list", ""], "E071", ["--autogen_list"]),
        (["--rtl", "--autogen", "nowhere"], "E096", ["--autogen", "nowhere", "Create it"]),
    ],
)  # fmt: skip
def test_refusals_leave_nothing_behind(
    options: list[str],
    code: str,
    words: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert ran(monkeypatch, tmp_path / "out", *options) == 1
    said = " ".join(capsys.readouterr().err.split())
    assert f"[{code}]" in said and "Traceback" not in said
    assert all(word in said for word in words), said
    assert not (tmp_path / "out").exists()


def test_long_parent_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    parent = tmp_path / ("x" * 120) / ("y" * 120)
    assert ran(monkeypatch, parent, "--rtl") == 1
    assert "[E091]" in capsys.readouterr().err and not (tmp_path / ("x" * 120)).exists()


def test_name_of_a_published_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    options = parse(
        ["--device", "MAX78000", "--config-file", "networks/mnist-chw-ai85.yaml",
         "--checkpoint-file", "trained/mnist-ai85net5-qat8-q.pth.tar", "--prefix", "mnist",
         "--test-dir", "t", "--repeat-layers", "2", "--rtl"]
    )  # fmt: skip
    made = synthesize(options.config_file, options.chip, options.resolve, options.encode)
    assert name_of_test("mnist", made.summary) == (
        "mnist-1x28x28b_0x0s1p1m60_relu-60x28x28l_max2x2s2p2m60_relu-60x16x16l_max2x2s2p1m56_relu"
        "-56x8x8l_avg2x2s2p1m12_relu-12x4x4lf_0x0s1p0m10_repeat2"
    )
    assert made.summary.stream_ratio == 1


def test_folder_and_list_are_written_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("--rtl", "--result-output", "--log-intermediate", "--autogen", str(tmp_path))
    assert ran(monkeypatch, tmp_path / "out", *options) == 0
    (folder,) = (tmp_path / "out").iterdir()
    assert folder.name.startswith("net-1x8x8b_") and (folder / "data-output").is_dir()
    assert (folder / "debug").is_dir() and os.access(folder / "verify-output.py", os.X_OK)
    assert ran(monkeypatch, tmp_path / "out", *options) == 1
    assert "[E060]" in capsys.readouterr().err
    assert ran(monkeypatch, tmp_path / "out", *options, "--overwrite") == 0
    lines = (tmp_path / "autogen_list").read_text().splitlines()
    assert lines == [f"tests/cnn/{folder.name}/run_test:short"]


def test_overwriting_removes_images_that_are_no_longer_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ran(monkeypatch, tmp_path, "--rtl-preload", "--result-output") == 0
    (folder,) = tmp_path.iterdir()
    assert list(folder.glob("data/*.dat"))
    assert ran(monkeypatch, tmp_path, "--rtl", "--overwrite") == 0
    assert not list(folder.glob("data*/*.dat")) and not (folder / "verify-output.py").exists()


def test_camera_of_few_bits_changes_the_sample(tmp_path: Path) -> None:
    import numpy as np

    from ai8xtools.synthesis.resolve.sample import seen_by_camera

    options = ["--rtl", "--fifo", "--input-csv", "c.csv", "--input-csv-format", "565"]
    made = parse([*NETWORK, "--test-dir", "out", *options])
    sample = np.full((3, 1, 1), -1, np.int64)
    assert seen_by_camera(sample, made.resolve).reshape(-1).tolist() == [-8, -4, -8]
    plain = parse([*NETWORK, "--test-dir", "out", "--rtl"])
    assert seen_by_camera(sample, plain.resolve) is sample
