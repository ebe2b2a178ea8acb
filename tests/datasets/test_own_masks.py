"""Data of one's own: masks beside pictures."""

from __future__ import annotations

import re
from argparse import Namespace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from datasets.errors import DatasetError
from datasets.own.moving import moved
from datasets.own.sets import load, open_data
from datasets.own.settings import USUAL, DataSettings

ARGS = Namespace(act_mode_8bit=False, truncate_testset=False)


def scene(root: Path, name: str, number: int, mask: str, size: tuple[int, int] = (12, 10)) -> None:
    """Write a picture that is white where the class is 1, in (columns, rows), and its mask."""
    columns, rows = size
    classes = np.zeros((rows, columns), np.uint8)
    classes[rows // 5 : rows // 2 + number % 3, columns // 5 : columns // 2 + number % 4] = 1
    levels = np.repeat(classes[:, :, None] * 255, 3, 2)
    for path, image in ((name, Image.fromarray(levels)), (mask, Image.fromarray(classes))):
        if image.mode == "L":
            image.putpalette([0, 0, 0, 250, 0, 0, *([0] * 762)])
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        image.save(root / path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Ten pictures with palette masks beside them."""
    for n in range(10):
        scene(tmp_path, f"{n}.png", n, f"{n}_mask.png")
    (tmp_path / "classes.txt").write_text("ground\nthing\n")
    return tmp_path


def read(folder: Path, **settings: Any) -> tuple[Any, Any, Any]:
    chosen = DataSettings(**settings).over(USUAL)
    data = open_data("masks", str(folder), chosen)
    return data, *load(data, chosen, ARGS, (True, True))


def fits(item: tuple[torch.Tensor, torch.Tensor]) -> bool:
    """Return whether the picture is white exactly where the mask says thing."""
    inputs, mask = item
    return torch.equal(inputs[0] > 0, mask == 1) and bool(mask.any()) and mask.dtype == torch.int64


def test_each_pixel_has_its_class_and_tests_are_apart(folder: Path) -> None:
    data, train, test = read(folder)
    assert data.classes == ("ground", "thing") and (len(train), len(test)) == (8, 2)
    assert all(fits(part[n]) for part in (train, test) for n in range(len(part)))
    names = [{*data.read(training)[2]} for training in (True, False)]
    assert not names[0] & names[1] and len(names[0] | names[1]) == 10
    assert any("8 pictures with masks, 2 classes (ground, thing), 3x10x12" in n for n in data.notes)


@pytest.mark.parametrize(
    ("picture", "mask"),
    [
        ("{}.bmp", "{}.png"), ("images/{}.png", "masks/{}.png"), ("a/{}.png", "a/{}_mask.png"),
        ("images/b/{}.bmp", "masks/b/{}.png"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("parts", [False, True])
def test_masks_may_lie_in_several_places(
    tmp_path: Path, picture: str, mask: str, parts: bool
) -> None:
    (tmp_path / "classes.txt").write_text("ground\nthing\n")
    for n in range(6):
        names = [f"{('train', 'test')[n % 2]}/{p}" if parts else p for p in (picture, mask)]
        scene(tmp_path, names[0].format(n), n, names[1].format(n))
    _, train, test = read(tmp_path)
    assert (len(train), len(test)) == ((3, 3) if parts else (5, 1))
    assert all(fits(part[n]) for part in (train, test) for n in range(len(part)))


def test_images_may_have_the_folders_of_training_and_tests(tmp_path: Path) -> None:
    (tmp_path / "classes.txt").write_text("ground\nthing\n")
    for n, part in enumerate(("train", "train", "test")):
        scene(tmp_path, f"images/{part}/{n}.png", n, f"masks/{part}/{n}.png")
    _, train, test = read(tmp_path)
    assert (len(train), len(test)) == (2, 1) and fits(test[0])


@pytest.mark.parametrize("stretch", [None, True])
def test_masks_are_cut_and_scaled_as_their_pictures(tmp_path: Path, stretch: bool | None) -> None:
    (tmp_path / "classes.txt").write_text("ground\nthing\n")
    for n in range(2):
        scene(tmp_path, f"{n}.png", 0, f"{n}_mask.png", (40, 20))
    _, train, _ = read(tmp_path, resize=(10, 10), stretch=stretch)
    inputs, mask = train[0]
    assert inputs.shape == (3, 10, 10) and mask.shape == (10, 10)
    assert fits(train[0])


@pytest.mark.parametrize("mode", ["1", "L"])
def test_white_is_the_second_class_in_black_and_white(folder: Path, mode: str) -> None:
    for path in folder.glob("*_mask.png"):
        levels = np.asarray(Image.open(path)) * np.uint8(255)
        Image.fromarray(levels).convert(mode).save(path)
    _, train, _ = read(folder)
    assert fits(train[0])


@pytest.mark.parametrize("names", [("mirror",), ("shift",), ("mirror", "shift")])
def test_pictures_and_masks_are_moved_alike(folder: Path, names: tuple[str, ...]) -> None:
    _, train, _ = read(folder, augment=names)
    _, plain, _ = read(folder)
    torch.manual_seed(1)
    seen = [train.batch(torch.arange(8)) for _ in range(4)]
    assert all(fits(pair) for x, y in seen for pair in zip(x, y, strict=True))
    still = plain.batch(torch.arange(8))[1]
    assert any(not torch.equal(y, still) for _, y in seen)
    assert "shift" in names or torch.equal(seen[0][1].sum(), still.sum())


def test_pixels_at_the_edge_are_repeated() -> None:
    torch.manual_seed(0)
    picture = torch.arange(400).reshape(1, 1, 20, 20).expand(64, 1, 20, 20)
    x, y = moved(picture, picture[:, 0], ("shift",))
    assert torch.equal(x[:, 0], y)
    rows, columns = y[:, :, 5] // 20, y[:, 5] % 20
    for line in (*rows.tolist(), *columns.tolist()):
        assert all(0 <= b - a <= 1 for a, b in pairwise(line))
        assert abs(line[10] - 10) <= 2
    assert len(rows[:, 10].unique()) == 5


def empty_parts(root: Path) -> None:
    (root / "test").mkdir()
    (root / "train").mkdir()


def wrong_size(root: Path) -> None:
    Image.fromarray(np.zeros((10, 11), np.uint8)).save(root / "3_mask.png")


def colours(root: Path) -> None:
    Image.fromarray(np.zeros((10, 12, 3), np.uint8)).save(root / "3_mask.png")


def beyond(root: Path) -> None:
    mask = np.zeros((10, 12), np.uint8)
    mask[4, 7] = 2
    Image.fromarray(mask).save(root / "3_mask.png")


def white_among_others(root: Path) -> None:
    mask = np.ones((10, 12), np.uint8)
    mask[0, 0] = 255
    Image.fromarray(mask).save(root / "3_mask.png")


def no_text(root: Path) -> None:
    (root / "classes.txt").write_bytes(b"\xff\xfea\n")


def twice(root: Path) -> None:
    (root / "classes.txt").write_text("a\nb\na\n")


@pytest.mark.parametrize(
    ("spoil", "place", "message"),
    [
        (lambda root: (root / "3_mask.png").unlink(), "3_mask.png", "the mask of .* is missing"),
        (lambda root: (root / "3.png").unlink(), "3_mask.png", "the picture of this mask"),
        (lambda root: (root / "3_mask.png").write_text("no"), "3_mask.png", "no picture"),
        (lambda root: (root / "classes.txt").unlink(), "classes.txt", "names of the classes"),
        (lambda root: (root / "classes.txt").write_text("a\n"), "classes.txt", "fewer than 2"),
        (lambda root: (root / "classes.txt").write_text("a\n\nb\n"), "classes.txt:2", "nothing"),
        (empty_parts, "train", "no pictures"),
        (lambda root: (root / "train").mkdir(), "test", "the folder is missing"),
        (no_text, "classes.txt", "no text"),
        (twice, "classes.txt:3", "'a' is also in line 1"),
        (wrong_size, "3_mask.png", "the mask has 11x10 pixels, its picture .*3.png 12x10"),
        (colours, "3_mask.png", r"colours \(RGB\)"),
        (beyond, "3_mask.png", r"row 4, column 7 \(from 0\) has the number 2, but there are 2 cl"),
        (white_among_others, "3_mask.png", "row 0, column 0 .* the number 255"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_refused_by_name(
    folder: Path, spoil: Any, place: str, message: str
) -> None:
    spoil(folder)
    with pytest.raises(DatasetError, match=message) as caught:
        read(folder)
    assert Path(str(caught.value.place)).name == place and caught.value.remedy
    if message.startswith(("row", "colours")):
        assert caught.value.code == "E688"


def test_other_paths_are_refused(tmp_path: Path) -> None:
    (tmp_path / "classes.txt").write_text("a\nb\n")
    scene(tmp_path, "one.png", 0, "one_mask.png")
    for path, message in ((tmp_path / "one.png", "no folder"), (tmp_path / "x", "is missing"),
                          (tmp_path, "one picture")):  # fmt: skip
        with pytest.raises(DatasetError, match=message):
            read(path)
    with pytest.raises(DatasetError, match=re.escape("turn does not apply to marked picture")):
        scene(tmp_path, "two.png", 0, "two_mask.png")
        read(tmp_path, augment=("turn",))
