"""The firmware of a project on many inputs, with the program's C or the accelerator alone."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from ai8xtools.commands.emulate.arguments import parse
from ai8xtools.emulator import LoadedNetwork
from tests.conftest import ROOT
from tests.emulator.conftest import Emulate
from tests.emulator.trees import c_files, change, generate

COUNT = 6


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return generate(tmp_path_factory.mktemp("generated") / "digits", "--softmax")


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Inputs at random; the first is the project's own sample."""
    path = tmp_path_factory.mktemp("samples") / "samples.npy"
    images = np.random.default_rng(7).integers(-128, 128, (COUNT, 1, 8, 8))
    images[0] = np.load(ROOT / "tests" / "sample_digits.npy").reshape(1, 8, 8)
    np.save(path, images.astype(np.int8))
    return path


def predictions(project: Path, samples: Path) -> np.ndarray:
    """Return what the network predicts, one input after the other."""
    network = LoadedNetwork.of_project(project, "MAX78000")
    return np.array([network.run(image).output()[:, 0, 0].argmax() for image in np.load(samples)])


@pytest.mark.parametrize(
    "options", [(), ("--fifo",), ("--riscv", "--fast-fifo"), ("--api-filename", "none")],
    ids=" ".join,
)  # fmt: skip
def test_the_program_runs_on_every_input(
    options: tuple[str, ...], samples: Path, run: Emulate, tmp_path: Path
) -> None:
    project = generate(tmp_path / "digits", *options)
    status, text = run(project, "--input", samples)
    assert "copies them from input_0; the program runs for each of them" in text
    assert f"As the accelerator alone: {COUNT} inputs" in text
    assert f"As the simulation of digits-chw-ai85.yaml: {COUNT} inputs" in text
    assert (status, text.splitlines()[-1]) == (0, f"DONE ({COUNT} inputs)")


def test_images_are_compared_pixel_by_pixel(samples: Path, run: Emulate, tmp_path: Path) -> None:
    """The answer file tells where each pixel is that the program delivers."""
    project = generate(tmp_path / "images", "--stop-after", "0")
    status, text = run(project, "--input", samples)
    assert f"As the simulation of digits-chw-ai85.yaml: {COUNT} inputs" in text
    assert status == 0
    (project / "answer.npz").unlink()
    status, text = run(project, "--input", samples, "--fast")
    assert "not known in which order the program has the outputs" in text
    assert status == 0


@pytest.mark.parametrize("fast", [(), ("--fast",)], ids=["C", "fast"])
def test_labels_give_accuracy_and_confusion(
    fast: tuple[str, ...], digits: Path, samples: Path, run: Emulate, tmp_path: Path
) -> None:
    wanted = predictions(digits, samples)
    labels = wanted.copy()
    labels[1] = (labels[1] + 1) % 10
    path = tmp_path / "labels.npy"
    np.save(path, labels)
    status, text = run(digits, "--input", samples, "--labels", path, *fast)
    assert status == 0
    assert f"==> Top1: {100 * (COUNT - 1) / COUNT:.3f}" in text
    matrix = np.zeros((10, 10), int)
    np.add.at(matrix, (labels, wanted), 1)
    shown = text.split("==> Confusion:\n")[1].split("]]")[0].replace("[", " ").replace("]", " ")
    assert np.array_equal(np.array(shown.split(), int).reshape(10, 10), matrix)


def test_another_weight_departs_from_the_simulation(
    digits: Path, samples: Path, run: Emulate, tmp_path: Path
) -> None:
    """The project's own comparison is gone, so that nothing but the simulation can tell."""
    project = c_files(digits, tmp_path / "wrong")
    text = (project / "weights.h").read_text()
    word = text.split("0x")[30][:8]
    change(project / "weights.h", (f"0x{word}", f"0x{int(word, 16) ^ 0x7F000000:08x}"))
    (project / "sampleoutput.h").write_text("#define SAMPLE_OUTPUT {0}\n")
    change(project / "main.c", ("return CNN_FAIL;", "return CNN_OK;"))
    status, found = run(project, "--input", samples, "--fast", "--compare", 4)
    assert status == 1
    assert "4 of 4 inputs depart from the simulation of digits-chw-ai85.yaml:" in found
    assert "input 0, value " in found


def test_a_description_that_has_changed_is_not_compared_with(
    digits: Path, samples: Path, run: Emulate, tmp_path: Path
) -> None:
    """The answer file says that the weights are those of the project."""
    project = c_files(digits, tmp_path / "made")
    shutil.copy(digits / "answer.npz", project)
    other = tmp_path / "other.yaml"
    text = (ROOT / "networks" / "digits-chw-ai85.yaml").read_text()
    assert text.count("activate: ReLU") >= 1
    other.write_text(text.replace("activate: ReLU", "activate: None", 1))
    change(project / "cnn.c", (str(ROOT / "networks" / "digits-chw-ai85.yaml"), str(other)))
    status, found = run(project, "--input", samples, "--fast")
    assert status == 0
    assert "other.yaml or its checkpoint has changed since the project was made" in found


def test_a_program_that_reads_its_output_wrongly_departs(
    digits: Path, samples: Path, run: Emulate, tmp_path: Path
) -> None:
    project = c_files(digits, tmp_path / "wrong")
    change(
        project / "cnn.c",
        ("int cnn_unload(uint32_t *out_buf)\n{", "int cnn_unload(uint32_t *out_buf)\n{\n"
         "    static int calls; if (++calls % 50 == 0) { *out_buf = 5; return CNN_OK; }"),
    )  # fmt: skip
    path = tmp_path / "many.npy"
    np.save(path, np.tile(np.load(samples), (20, 1, 1, 1)))
    status, text = run(project, "--input", path)
    assert status == 1
    assert "depart from the accelerator alone:" in text
    assert ", value 0: the accelerator alone " in text
    assert text.endswith("FAIL\n")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("input_0, 16", "input_0, 8", "copies 32 of 64 values of the input from arrays (input_0)"),
        (
            "memcpy32((uint32_t *) 0x50400000, input_0, 16);",
            "for (int i = 0; i < 16; i++) ((volatile uint32_t *) 0x50400000)[i] = input_0[i] * 3;",
            "load_input() ",
        ),
        (
            "memcpy32((uint32_t *) 0x50400000, input_0, 16);",
            "for (int i = 0; i < 16; i++) ((volatile uint32_t *) 0x50400000)[i] = i;",
            "load_input() copies no array: it makes up its data by code",
        ),
    ],
)
def test_data_made_by_code_is_refused_by_name(
    old: str, new: str, message: str, digits: Path, samples: Path, run: Emulate, tmp_path: Path
) -> None:
    project = c_files(digits, tmp_path / "made")
    change(project / "main.c", (old, new))
    status, text = run(project, "--input", samples)
    assert status == 1
    assert text.startswith("E861 the input of the program cannot be replaced: ")
    assert message in text
    assert "--fast" in text


def test_a_network_without_program_runs_fast(
    digits: Path, samples: Path, run: Emulate, tmp_path: Path
) -> None:
    project = c_files(digits, tmp_path / "bare")
    (project / "main.c").unlink()
    status, text = run(project, "--input", samples)
    assert (status, text[:4]) == (1, "E861")
    status, text = run(project, "--input", samples, "--fast")
    assert (status, text.splitlines()[-1]) == (0, f"DONE ({COUNT} inputs)")


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.zeros(COUNT - 1, int), f"one label for each of the {COUNT} inputs, not {COUNT - 1}"),
        (np.full(COUNT, 10), "a label is 10; the network has 10 outputs, with labels from 0 to 9"),
        (np.full(COUNT, -1), "a label is -1"),
        (np.zeros(COUNT), "labels must be integers, not float64"),
        (np.zeros((COUNT, 2), int), "one label for each"),
    ],
)
def test_wrong_labels_are_refused(
    labels: np.ndarray, message: str, digits: Path, samples: Path, run: Emulate, tmp_path: Path
) -> None:
    path = tmp_path / "labels.npy"
    np.save(path, labels)
    status, text = run(digits, "--input", samples, "--labels", path, "--fast")
    assert status == 1
    assert f"E863 {message}" in text or message in text


@pytest.mark.parametrize(
    "words",
    [
        ("--labels", "y.npy"),
        ("--fast",),
        ("--accelerator-only", "--input", "x.npy", "--fast"),
        ("--input", "x.npy", "--compare", "-1"),
    ],
)
def test_wrong_usage_ends_with_status_2(words: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit) as end:
        parse(["project", *words])
    assert end.value.code == 2
