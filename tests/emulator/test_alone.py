"""A network without its program, on samples, arrays, pictures and sound: --accelerator-only."""

from __future__ import annotations

import itertools
import re
import shutil
import wave
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ai8xtools.commands.emulate.arguments import parse
from ai8xtools.commands.emulate.inputs import random_input, read_inputs
from ai8xtools.emulator import EmulatorError, NetworkAlone
from datasets.own.preparation import Preparation
from tests.conftest import ROOT
from tests.emulator.conftest import Emulate
from tests.emulator.trees import c_files, change, generate

ONLY = "--accelerator-only"
SHAPE = (1, 8, 8)


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nothing but the network: cnn.c, cnn.h, weights.h."""
    folder = tmp_path_factory.mktemp("generated")
    bare = c_files(generate(folder / "digits"), folder / "bare")
    for name in ("main.c", "softmax.c", "sampledata.h", "sampleoutput.h"):
        (bare / name).unlink()
    return bare


def sample() -> np.ndarray:
    return np.load(ROOT / "tests" / "sample_digits.npy").astype(np.int64).reshape(SHAPE)


@pytest.mark.parametrize(
    ("options", "chip"),
    [
        ((), "MAX78000"),
        (("--fifo",), "MAX78000"),
        (("--no-mexpress", "--sample-output-filename", "none"), "MAX78000"),
        (("--riscv", "--fast-fifo"), "MAX78000"),
        (("--api-filename", "none"), "MAX78000"),
        (("--one-shot",), "MAX78002"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else value,
)
def test_every_kind_of_project_runs_alone(
    options: tuple[str, ...], chip: str, run: Emulate, tmp_path: Path
) -> None:
    project = generate(tmp_path / "digits", *options, chip=chip)
    status, text = run(project, ONLY)
    assert (status, text.splitlines()[-1]) == (0, "PASS (1 inference of the network alone)")
    if "none" not in options:
        (project / "main.c").write_text("this is no C\n")
        for path in project.glob("*_riscv.c"):
            path.unlink()
        assert run(project, ONLY) == (status, text)


def test_wrong_output_fails(run: Emulate, tmp_path: Path) -> None:
    project = generate(tmp_path / "digits")
    header = project / "sampleoutput.h"
    header.write_text(header.read_text().replace("0x00018f4b", "0x00018f4c"))
    assert run(project, ONLY)[1].endswith("FAIL\n")
    (project / "main.c").unlink()
    assert run(project, ONLY)[1].endswith("FAIL\n")


def test_network_without_a_sample_takes_arrays(bare: Path, run: Emulate, tmp_path: Path) -> None:
    np.save(tmp_path / "one.npy", sample())
    status, text = run(bare, ONLY, "--input", tmp_path / "one.npy")
    assert status == 0
    assert text.startswith("Input: 1x8x8 (channels, rows, columns)\nOutput of layer 3: 10x1x1\n")
    assert "0x00018f4b" in text
    assert "[ 102219] -> Class 7: 99.8%\n" in text
    assert text.endswith(
        "Class 7 (99.8%)\nDONE (1 inference of the network alone; there is nothing to compare the "
        "output with)\n"
    )
    np.save(tmp_path / "two.npy", np.stack([sample(), -sample() // 2]))
    text = run(bare, ONLY, "--input", tmp_path / "two.npy")[1]
    assert "\nInput 1:\n" in text
    assert "DONE (2 inferences" in text


def test_network_without_a_sample_runs_on_random_data(
    bare: Path, run: Emulate, tmp_path: Path
) -> None:
    """As applications with a camera: the same every time; what is claimed of it is no PASS."""
    status, text = run(bare)
    assert status == 0
    assert run(bare) == (status, text)
    last = text.splitlines()[-1]
    assert last.startswith("DONE (1 inference of the network alone; the input is random; ")
    np.save(tmp_path / "random.npy", random_input(SHAPE))
    words = [line for line in text.splitlines() if line.startswith("0x")]
    assert words[0] in run(bare, ONLY, "--input", tmp_path / "random.npy")[1]
    known = Path(shutil.copytree(bare, tmp_path / "known"))
    shutil.copy(bare.parent / "digits" / "answer.npz", known)
    assert "\nAs in answer.npz: " in run(known)[1]
    word = re.findall(r"0x[0-9a-f]{8}", (known / "weights.h").read_text())[8]
    change(known / "weights.h", (word, f"0x{int(word, 16) ^ 1:08x}"))
    status, text = run(known)
    assert (status, text.splitlines()[-1]) == (1, "FAIL")


def test_inputs_do_not_influence_each_other(bare: Path) -> None:
    network = NetworkAlone(bare)
    assert network.input_shape == SHAPE
    assert not network.has_sample
    first = network.run(sample()).output()
    network.run(np.zeros(SHAPE, np.int8))
    assert np.array_equal(network.run(sample()).output(), first)
    assert network.output_words()[7] == 102219


def test_picture_is_shifted_to_signed_values(bare: Path, run: Emulate, tmp_path: Path) -> None:
    pictures = pytest.importorskip("PIL.Image")
    path = tmp_path / "seven.png"
    pictures.fromarray((sample()[0] + 128).astype(np.uint8)).save(path)
    assert np.array_equal(read_inputs(path, SHAPE)[0], sample())
    assert "Class 7 (99.8%)\n" in run(bare, ONLY, "--input", path)[1]
    assert "8x8 pixels (width x height), not 9x8" in refused(
        lambda: pictures.new("L", (9, 8)).save(path), path
    )
    assert "4 channels" not in refused(lambda: path.write_bytes(b"x"), path)


def test_colors_become_channels(tmp_path: Path) -> None:
    pictures = pytest.importorskip("PIL.Image")
    values = np.random.default_rng(1).integers(0, 256, (5, 4, 3)).astype(np.uint8)
    pictures.fromarray(values).save(tmp_path / "colors.png")
    image = read_inputs(tmp_path / "colors.png", (3, 5, 4))[0]
    assert np.array_equal(image, values.transpose(2, 0, 1).astype(int) - 128)
    with pytest.raises(EmulatorError, match="48 channels of 64x64, which is no picture"):
        read_inputs(tmp_path / "colors.png", (48, 64, 64))


def write_sound(path: Path, samples: np.ndarray, width: int = 2, tracks: int = 1) -> Path:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(tracks)
        file.setsampwidth(width)
        file.setframerate(16000)
        file.writeframes(samples.tobytes())
    return path


def test_sound_is_cut_into_frames(tmp_path: Path) -> None:
    """A frame has as many samples as there are channels; a short sound ends in silence."""
    sound = (np.arange(10, dtype="<i2") - 5) * 256
    path = write_sound(tmp_path / "a.wav", sound)
    expected = np.array([[-5, -1, 3], [-4, 0, 4], [-3, 1, 0], [-2, 2, 0]])[..., None]
    assert np.array_equal(read_inputs(path, (4, 3, 1))[0], expected)
    eight = write_sound(tmp_path / "b.wav", np.array([0, 128, 255], np.uint8), width=1)
    assert read_inputs(eight, (1, 3, 1))[0].reshape(-1).tolist() == [-128, 0, 127]
    with pytest.raises(EmulatorError, match="10 samples, the network takes 8"):
        read_inputs(path, (4, 2, 1))
    with pytest.raises(EmulatorError, match="mono"):
        read_inputs(write_sound(path, sound, tracks=2), (4, 3, 1))


def refused(make: Callable[[], object], path: Path) -> str:
    make()
    with pytest.raises(EmulatorError) as caught:
        read_inputs(path, SHAPE)
    assert caught.value.code == "E816"
    return caught.value.message


def test_channels_last_are_told_how_to_move(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((4, 8, 8, 1), int))
    with pytest.raises(EmulatorError) as caught:
        read_inputs(tmp_path / "x.npy", SHAPE)
    assert caught.value.remedy is not None
    assert "save numpy.moveaxis(input, -1, -3)" in caught.value.remedy
    np.save(tmp_path / "x.npy", np.moveaxis(np.load(tmp_path / "x.npy"), -1, -3))
    assert len(read_inputs(tmp_path / "x.npy", SHAPE)) == 4


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros((1, 8, 9), int), "must have the shape 1x8x8, not 1x8x9"),
        (np.zeros((2, 2, 1, 8, 8), int), "not 2x2x1x8x8"),
        (np.zeros(SHAPE), "must be integers, not float64"),
        (np.full(SHAPE, 128), "values from -128 to 127, not from 128 to 128"),
        (np.array(3), "not a single number"),
        (np.zeros((0, 1, 8, 8), int), "not 0x1x8x8"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(
    array: np.ndarray, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "x.npy"
    assert message in refused(lambda: np.save(path, array), path)


@pytest.mark.parametrize(
    ("low", "high", "remedy"),
    [(0, 255, "Subtract 128"), (0, 256, "Scale"), (172, 427, "Scale"), (-1, 128, "Scale")],
)
def test_only_values_of_a_byte_become_right_by_subtracting(
    low: int, high: int, remedy: str, tmp_path: Path
) -> None:
    np.save(tmp_path / "x.npy", np.linspace(low, high, 64).astype(int).reshape(SHAPE))
    with pytest.raises(EmulatorError) as caught:
        read_inputs(tmp_path / "x.npy", SHAPE)
    assert (caught.value.remedy or "").startswith(remedy)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.npy", b"junk", "not a NumPy array"),
        ("x.npy", b"", "not a NumPy array"),
        ("x.wav", b"junk", "not a sound"),
        ("x.wav", b"", "not a sound"),
        ("x.txt", b"", "the file extension is not that of an input"),
    ],
)
def test_files_that_are_no_input_are_refused(
    name: str, content: bytes, message: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    assert message in refused(lambda: path.write_bytes(content), path)


def test_missing_file_is_an_error_of_the_system(tmp_path: Path) -> None:
    for name, known in itertools.product(
        ("x.npy", "x.wav", "x.png", "x.pn"), (None, Preparation("picture", SHAPE))
    ):
        with pytest.raises(FileNotFoundError):
            read_inputs(tmp_path / name, SHAPE, known)


def test_a_folder_is_no_input(tmp_path: Path) -> None:
    for known in (None, Preparation("picture", SHAPE)):
        with pytest.raises(EmulatorError, match="this is a folder"):
            read_inputs(tmp_path, SHAPE, known)


def test_channels_that_fill_the_last_pass_are_zeros(tmp_path: Path) -> None:
    """150 features take three passes of 52 processors."""
    rows = np.random.default_rng(0).integers(-128, 128, (2, 150, 1))
    np.save(tmp_path / "x.npy", rows)
    known = Preparation("features", (150, 1, 1))
    found = np.stack(read_inputs(tmp_path / "x.npy", (156, 1, 1), known))
    assert np.array_equal(found[:, :150, :, 0], rows) and not found[:, 150:].any()
    for other in (None, Preparation("features", (149, 1, 1))):
        with pytest.raises(EmulatorError, match="150x1"):
            read_inputs(tmp_path / "x.npy", (156, 1, 1), other)


def test_pictures_without_pillow_are_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "PIL", None)
    (tmp_path / "x.png").touch()
    with pytest.raises(EmulatorError, match="pictures need Pillow"):
        read_inputs(tmp_path / "x.png", SHAPE)


def test_folder_without_a_network(run: Emulate, tmp_path: Path) -> None:
    (tmp_path / "main.c").write_text("int main(void) { return 0; }\n")
    assert "E814 no C file defines functions of a network" in run(tmp_path, ONLY)[1]


def test_several_networks_are_chosen_by_the_user(bare: Path, run: Emulate, tmp_path: Path) -> None:
    folder = c_files(bare, tmp_path / "two")
    other = (folder / "cnn.c").read_text().replace("int cnn_", "int cnn_2_")
    (folder / "cnn_2.c").write_text(other)
    text = run(folder, ONLY)[1]
    assert "E814 it holds 2 networks: cnn, cnn_2 in cnn.c, cnn_2.c" in text
    assert run(folder, ONLY, "--exclude", "cnn_2.c")[0] == 0


def test_other_chip_is_refused(bare: Path, run: Emulate) -> None:
    assert "E803" in run(bare, ONLY, "--device", "MAX78002")[1]


@pytest.mark.parametrize(
    "words",
    [("--input", "x.npy", "--words", "x.npz"), (ONLY, "--words", "x.npz")],
)
def test_wrong_usage(words: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit) as caught:
        parse([*words])
    assert caught.value.code == 2
