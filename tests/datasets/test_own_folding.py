"""Pictures that are larger than the input of the network: blocks of pixels become its channels."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import ai8x
from ai8xtools.commands.loader.prepare_code import prepare_header
from ai8xtools.training.catalog.own_data import dataset_named
from datasets.errors import DatasetError
from datasets.own.preparation import Preparation, folded, integers
from datasets.own.sets import open_data
from datasets.own.settings import AUTO_FOLD, USUAL, DataSettings
from tests.datasets.conftest import opened


def naively(pixels: Any, fold: int) -> Any:
    """Return a picture [H, W, C] as [C * fold^2, H / fold, W / fold], value by value."""
    rows, columns, channels = pixels.shape
    result = np.zeros((channels * fold**2, rows // fold, columns // fold), pixels.dtype)
    for y, x, c in np.ndindex(*pixels.shape):
        place = (y % fold * fold + x % fold) * channels + c
        result[place, y // fold, x // fold] = pixels[y, x, c]
    return result


def pictures(root: Path, size: tuple[int, int] = (12, 24), count: int = 5) -> Path:
    """Write pictures of noise, rows x columns, of two classes."""
    rng = np.random.default_rng(0)
    for name in ("a", "b"):
        (root / name).mkdir(parents=True)
        for n in range(count):
            pixels = rng.integers(0, 256, (*size, 3), np.uint8)
            Image.fromarray(pixels).save(root / name / f"{n}.png")
    return root


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("fold", [1, 2, 3])
def test_blocks_become_channels_as_in_other_data_sets(fold: int, channels: int) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (6, 12, channels), np.uint8)
    plain = pixels.transpose(2, 0, 1)
    wanted = naively(pixels, fold)
    assert np.array_equal(folded(plain, fold), wanted)
    assert np.array_equal(folded(np.stack([plain, plain[:, ::-1]]), fold)[0], wanted)
    assert np.array_equal(ai8x.fold(fold)(torch.from_numpy(plain.copy())).numpy(), wanted)


@pytest.mark.parametrize("grayscale", [False, True])
def test_pictures_are_read_larger_and_folded(tmp_path: Path, grayscale: bool) -> None:
    folder, channels = pictures(tmp_path), 1 if grayscale else 3
    data, train, test = opened(f"folder:{folder}", resize=(4, 6), fold=3, grayscale=grayscale)
    assert data.preparation.shape == (9 * channels, 4, 6) == tuple(train[0][0].shape)
    assert data.preparation.unfolded == (channels, 12, 18)
    _, _, names = data.read(False)
    with Image.open(names[1]) as image:
        pixels = np.asarray(image.convert("L" if grayscale else "RGB").crop((3, 0, 21, 12)))
    wanted = naively(integers(pixels.reshape(12, 18, channels)), 3)
    assert np.array_equal(wanted, (test[1][0] * 128).numpy())
    (alone,) = data.preparation.inputs_of(Path(names[1]))  # as emulate.py --input reads it
    assert np.array_equal(alone, wanted)
    assert f"{9 * channels}x4x6, folded by 3 from {channels}x12x18" in data.notes[0]


def test_pictures_are_changed_before_they_are_folded(tmp_path: Path) -> None:
    folder = pictures(tmp_path)
    whole = opened(f"folder:{folder}", augment=("mirror",))[1]
    train = opened(f"folder:{folder}", augment=("mirror",), fold=2)[1]
    every, seen = torch.arange(len(train)), []
    for data in (whole, train):
        torch.manual_seed(0)
        seen.append(data.batch(every)[0].numpy())
    assert np.array_equal(folded(seen[0], 2), seen[1])
    assert not np.array_equal(seen[1], opened(f"folder:{folder}", fold=2)[1].batch(every)[0])


@pytest.mark.parametrize(
    ("size", "grayscale", "fold"),
    [((40, 40), False, 4), ((40, 40), True, 8), ((40, 19), True, 3), ((9, 40), False, 1)],
)
def test_processors_and_the_smallest_picture_limit_the_fold(
    tmp_path: Path, size: tuple[int, int], grayscale: bool, fold: int
) -> None:
    folder = pictures(tmp_path, (50, 50), 4)
    with Image.open(folder / "b" / "1.png") as image:
        image.resize(size[::-1]).save(folder / "b" / "1.png")
    settings = DataSettings(resize=(5, 5), fold=AUTO_FOLD, grayscale=grayscale, test_share=0.01)
    own = dataset_named(f"folder:{folder}", "--dataset", settings.over(USUAL)).own
    assert own is not None and own.preparation.fold == own.settings.fold == fold
    record = own.record(("a", "b"), (torch.zeros(own.preparation.shape), 0), 128)["own_data"]
    again = open_data("folder", str(folder), DataSettings.of(record["settings"]))
    assert again.preparation == Preparation.of(record["preparation"]) == own.preparation


def test_a_network_that_was_trained_takes_smaller_pictures(tmp_path: Path) -> None:
    how = Preparation("picture", (12, 8, 8), fold=2)
    settings = DataSettings(resize=(8, 8), fold=AUTO_FOLD).over(USUAL)
    data = open_data("folder", str(pictures(tmp_path, (10, 10))), settings, how)
    assert data.preparation == how and data.read(True)[0].shape[1:] == (3, 16, 16)


def test_arrays_of_pictures_are_folded(tmp_path: Path) -> None:
    x = np.random.default_rng(0).integers(0, 256, (10, 6, 6, 3), np.uint8)
    np.savez(
        tmp_path / "x.npz", x_train=x[2:], y_train=np.arange(8) % 2, x_test=x[:2], y_test=[0, 1]
    )
    data, _, test = opened(f"npz:{tmp_path / 'x.npz'}", fold=2)
    assert data.preparation.shape == (12, 3, 3)
    assert np.array_equal(naively(integers(x[1]), 2), (test[1][0] * 128).numpy())


@pytest.mark.parametrize(
    ("kind", "settings", "message"),
    [
        ("folder", {"fold": 5}, "24x12 pixels, no multiples of --fold 5"),
        ("folder", {"fold": 3, "resize": (8, 8)}, "24x12 pixels, fewer than the 24x24 of --fold 3"),
        ("folder", {"fold": 19, "resize": (1, 1)}, "1083 channels; the chip takes 1024"),
        ("folder", {"fold": AUTO_FOLD}, "the size of the network's input is not known"),
        ("npz", {"fold": AUTO_FOLD}, "the size of the network's input is not known"),
        ("npz", {"fold": 4}, "6x6 pixels, no multiples of --fold 4"),
        ("numbers", {"fold": 2}, "npz: has no pictures that can be folded"),
        ("series", {"fold": 2}, "series: has no pictures that can be folded"),
        ("csv", {"fold": 2}, "csv: has no pictures that can be folded"),
        ("sounds", {"fold": 2}, "sounds: has no pictures that can be folded"),
        ("masks", {"fold": AUTO_FOLD}, "masks: has no pictures that can be folded"),
        ("boxes", {"fold": 1}, "boxes: has no pictures that can be folded"),
    ],
)
def test_what_cannot_be_folded_is_refused(
    tmp_path: Path, kind: str, settings: dict[str, Any], message: str
) -> None:
    place = pictures(tmp_path / "x") if kind == "folder" else tmp_path / "x.npz"
    if kind != "folder":
        x = np.zeros((8, 5)) if kind == "numbers" else np.zeros((8, 6, 6), np.uint8)
        np.savez(place, x=x, y=np.arange(8) % 2)
    with pytest.raises(DatasetError) as refusal:
        opened(f"{kind.replace('numbers', 'npz')}:{place}", **settings)
    assert message in refusal.value.message and refusal.value.code in ("E625", "E687")


@pytest.mark.skipif(shutil.which("gcc") is None, reason="compiles C")
@pytest.mark.parametrize("channels", [1, 3])
def test_the_c_code_folds_as_in_training(tmp_path: Path, channels: int) -> None:
    how = Preparation("picture", (9 * channels, 4, 8), fold=3)
    pixels = np.random.default_rng(0).permutation(np.arange(12 * 24 * channels) % 256)
    pixels = pixels.astype(np.uint8).reshape(12, 24, channels)  # every level
    header = prepare_header(how)
    assert header is not None and prepare_header(Preparation("picture", (3, 4, 4))) is None
    (tmp_path / "prepare.h").write_text(header)
    (tmp_path / "main.c").write_text(
        '#include <stdio.h>\n#include "prepare.h"\n'
        "int main(void) { static uint8_t in[PREPARE_SIZE]; static int8_t out[PREPARE_SIZE];\n"
        "if (fread(in, sizeof in, 1, stdin) != 1) return 1;\n"
        "prepare_input(in, out); return fwrite(out, sizeof out, 1, stdout) != 1; }\n"
    )
    flags = "-std=c99 -Wall -Wextra -Wconversion -Werror main.c -o main"
    subprocess.run(["gcc", *flags.split()], cwd=tmp_path, check=True)
    out = subprocess.run(
        [tmp_path / "main"], input=pixels.tobytes(), capture_output=True, check=True
    )
    found = np.frombuffer(out.stdout, np.int8).reshape(how.shape)
    assert np.array_equal(found, naively(integers(pixels), 3))
    assert np.array_equal(found, how.of_bytes(pixels.transpose(2, 0, 1)))
