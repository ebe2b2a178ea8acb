"""Data of one's own: boxes around objects, in files of COCO and of YOLO."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Callable
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
Corners = tuple[int, int, int, int]
NAMES = "disc", "square"


def objects_of(number: int) -> list[tuple[int, Corners]]:
    """Return the class and left, top, right, bottom of the objects on a picture of 40x20."""
    return [(number % 2, (4 + number, 2, 12 + number, 10)), (1, (24, 10, 32, 18))][: 1 + number % 3]


def draw(path: Path, number: int) -> None:
    """Write a picture whose objects are white."""
    pixels = np.zeros((20, 40, 3), np.uint8)
    for _, (left, top, right, bottom) in objects_of(number):
        pixels[top:bottom, left:right] = 255
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path)


def yolo(
    root: Path, picture: str = "{}.png", text: str = "{}.txt", numbers: Any = range(6)
) -> Path:
    """Write pictures with texts of YOLO."""
    for n in numbers:
        draw(root / picture.format(n), n)
        rows = [
            f"{c} {(x + z) / 80} {(y + w) / 40} {(z - x) / 40} {(w - y) / 20}"
            for c, (x, y, z, w) in objects_of(n)
        ]
        (root / text.format(n)).parent.mkdir(parents=True, exist_ok=True)
        (root / text.format(n)).write_text("\n".join(rows))
    (root / "classes.txt").write_text("\n".join(NAMES))
    return root


def content(numbers: Any = range(6), folder: str = "") -> dict[str, Any]:
    """Return the file of COCO for the same pictures; a category is never used."""
    return {
        "images": [
            {"id": 100 + n, "file_name": f"{folder}{n}.png", "width": 40, "height": 20}
            for n in numbers
        ],
        "categories": [
            {"id": i, "name": name} for i, name in ((0, "all"), (7, "square"), (3, "disc"))
        ],
        "annotations": [
            {"id": n, "image_id": 100 + n, "category_id": (3, 7)[c], "bbox": [x, y, z - x, w - y]}
            for n in numbers for c, (x, y, z, w) in objects_of(n)
        ],
    }  # fmt: skip


def coco(root: Path, file: str = "all.json", numbers: Any = range(6), folder: str = "") -> Path:
    """Write pictures with a file of COCO."""
    for n in numbers:
        draw(root / Path(file).parent / folder / f"{n}.png", n)
    (root / file).write_text(json.dumps(content(numbers, folder)))
    return root


def read(folder: Path, **settings: Any) -> tuple[Any, Any, Any]:
    chosen = DataSettings(**settings).over(USUAL)
    data = open_data("boxes", str(folder), chosen)
    return data, *load(data, chosen, ARGS, (True, True))


def fits(item: Any) -> bool:
    """Return whether the picture is white in the boxes, and nowhere else."""
    inputs, (boxes, labels) = item
    _, rows, columns = inputs.shape
    expected = torch.zeros(rows, columns, dtype=torch.bool)
    for left, top, right, bottom in boxes.tolist():
        x = round(left * columns), round(right * columns)
        expected[round(top * rows) : round(bottom * rows), x[0] : x[1]] = True
    shapes = boxes.shape == (len(labels), 4) and bool(((labels > 0) & (labels < 3)).all())
    return torch.equal(inputs[0] > 0, expected) and shapes


def split(root: Path) -> Path:
    coco(root, "train/a.json", range(4))
    return coco(root, "valid/b.json", range(4, 6))


def two_files(root: Path) -> Path:
    for part, numbers in (("train2017", range(4)), ("val2017", range(4, 6))):
        (root / "annotations").mkdir(exist_ok=True, parents=True)
        for n in numbers:
            draw(root / part / f"{n}.png", n)
        facts = json.dumps(content(numbers))
        (root / "annotations" / f"instances_{part}.json").write_text(facts)
    return root


def yolo_parts(root: Path) -> Path:
    for part, numbers in (("train", range(4)), ("test", range(4, 6))):
        yolo(root, f"images/{part}/{{}}.png", f"labels/{part}/{{}}.txt", numbers)
    return root


@pytest.mark.parametrize(
    "write",
    [
        yolo, coco, split, two_files, yolo_parts,
        lambda root: yolo(root, "images/{}.png", "labels/{}.txt"),
        lambda root: coco(root, folder="images/"),
    ],
)  # fmt: skip
def test_objects_are_where_they_are_drawn(tmp_path: Path, write: Callable[[Path], Path]) -> None:
    data, train, test = read(write(tmp_path))
    assert data.classes == NAMES and len(train) + len(test) == 6
    for part, training in ((train, True), (test, False)):
        for item, name in zip(part, data.read(training)[2], strict=True):
            assert fits(item)
            expected = [c + 1 for c, _ in objects_of(int(Path(name).stem))]
            assert item[1][1].tolist() == expected
    assert any(
        "pictures with" in n and "2 classes (disc, square), 3x20x40" in n for n in data.notes
    )


def test_tests_lie_apart_where_folders_or_files_say_so(tmp_path: Path) -> None:
    for n, write in enumerate((split, two_files, yolo_parts)):
        data, train, test = read(write(tmp_path / str(n)))
        assert (len(train), len(test)) == (4, 2)
        assert [Path(name).stem for name in data.read(False)[2]] == ["4", "5"]


def test_boxes_are_cut_and_scaled_as_their_pictures(tmp_path: Path) -> None:
    """What lies outside is lost, and what is cut by less than half is cut."""
    data, train, test = read(coco(tmp_path, numbers=range(0, 12, 3)), resize=(10, 10))
    for part, training in ((train, True), (test, False)):
        for (_, (boxes, labels)), name in zip(part, data.read(training)[2], strict=True):
            left, top, right, bottom = objects_of(int(Path(name).stem))[0][1]
            x = max(0, left - 10) / 20, min(20, right - 10) / 20
            expected = [[x[0], top / 20, x[1], bottom / 20]] if right - 10 >= 4 else []
            assert torch.allclose(boxes, torch.tensor(expected).reshape(-1, 4))
            assert len(labels) == len(expected) == len(boxes)
    assert any("objects; 1 objects more are cut off" in note for note in data.notes)
    _, train, _ = read(tmp_path, resize=(10, 20), stretch=True)
    assert all(fits(item) for item in train if not item[1][0][0, 0] * 20 % 1)


@pytest.mark.parametrize("names", [("mirror",), ("shift",), ("mirror", "shift")])
def test_pictures_and_boxes_are_moved_alike(tmp_path: Path, names: tuple[str, ...]) -> None:
    """But for pixels at the edge, which are repeated, and objects that are beyond it."""
    _, train, _ = read(yolo(tmp_path, numbers=range(3, 12, 3)), augment=names)
    torch.manual_seed(1)
    seen = [pair for _ in range(8) for pair in zip(*train.batch(torch.arange(2)), strict=True)]
    assert all(fits(item) for item in seen)
    assert len({tuple(boxes[0].tolist()) for _, (boxes, _) in seen}) > 2


def test_objects_beyond_the_edge_are_none() -> None:
    torch.manual_seed(0)
    pictures, labels = torch.zeros(200, 1, 20, 20), torch.tensor([1, 2])
    boxes = torch.tensor([[0.95, 0.4, 1.0, 0.6], [0.4, 0.4, 0.6, 0.6]])
    _, targets = moved(pictures, [(boxes, labels)] * 200, ("shift",))
    kept = [kinds.tolist() for _, kinds in targets]
    assert [2] in kept and [1, 2] in kept and [1] not in kept
    assert all(part.min() >= 0 and part.max() <= 1 for part, _ in targets)


def changed(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    """Return what writes another file of COCO."""

    def write(root: Path) -> None:
        facts = content()
        change(facts)
        (coco(root) / "all.json").write_text(json.dumps(facts))

    return write


def line(number: int, text: str) -> Callable[[Path], None]:
    """Return what writes another line of YOLO."""

    def write(root: Path) -> None:
        rows = (yolo(root) / "5.txt").read_text().split("\n")
        rows[number - 1] = text
        (root / "5.txt").write_text("\n".join(rows))

    return write


def without(path: str) -> Callable[[Path], None]:
    return lambda root: (yolo(root) / path).unlink()


def third(key: str, value: Any) -> Callable[[Path], None]:
    return changed(lambda facts: facts["annotations"][2].update({key: value}))


def image(key: str, value: Any) -> Callable[[Path], None]:
    return changed(lambda facts: facts["images"][1].update({key: value}))


@pytest.mark.parametrize(
    ("write", "place", "message"),
    [
        (without("3.txt"), "3.txt", "the file with the boxes of .* is missing"),
        (without("3.png"), "3.txt", "the picture of these boxes is missing"),
        (without("classes.txt"), "classes.txt", "names of the classes is missing"),
        (line(2, "2 0.5 0.5 0.1 0.1"), "5.txt:2", "the class is 2, but classes.txt has 2"),
        (line(2, "-1 0.5 0.5 0.1 0.1"), "5.txt:2", "the class is -1"),
        (line(1, "0 0.5 0.5 0.1"), "5.txt:1", "4 numbers, not 5"),
        (line(1, "0 0.5 x 0.1 0.1"), "5.txt:1", "something else than numbers"),
        (line(1, "0 0.5 nan 0.1 0.1"), "5.txt:1", "the box has no size"),
        (line(1, "0 0.98 0.5 0.1 0.1"), "5.txt:1", "the box is outside of the picture"),
        (line(1, "0 0.5 0.5 0.1 0"), "5.txt:1", "the box has no size"),
        (third("bbox", [30, 2, 11, 4]), "all.json: annotations[2]", "outside of the picture"),
        (third("bbox", [3, 2, 0, 4]), "all.json: annotations[2]", "the box has no size"),
        (third("bbox", [3, 2, 4]), "all.json: annotations[2]", "its bbox is"),
        (third("category_id", 8), "all.json: annotations[2]", "there is no class 8"),
        (third("image_id", 8), "all.json: annotations[2]", "there is no image 8"),
        (image("file_name", "x.png"), "all.json", "x.png is missing"),
        (image("width", 41), "1.png", "40x20 pixels, .* 41x20"),
        (image("width", 0), "all.json: images[1]", "its size is 0x20"),
        (changed(lambda f: f["images"][1].pop("id")), "all.json: images[1]", "it has no id"),
        (changed(lambda f: f.pop("annotations")), "all.json", "no list annotations"),
        (third("category_id", [1]), "all.json: annotations[2]", "it has no category_id"),
        (changed(lambda f: f.update(annotations=[])), "all.json", "no annotation is of one"),
        (changed(lambda f: f.update(images=3)), "all.json", "no list images"),
        (lambda root: (coco(root) / "all.json").write_text("[1]"), "all.json", "no file of COCO"),
        (lambda root: (coco(root) / "all.json").write_text("{"), "all.json", "it is no JSON"),
        (lambda root: (coco(root) / "b.json").write_text("{}"), "", "there are 2 files, all.json"),
        (lambda root: (split(root) / "valid/b.json").unlink(), "train", "needs one .json"),
        (lambda root: (root / "classes.txt").write_text("a"), "", "no pictures with boxes"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_refused_by_name(
    tmp_path: Path, write: Callable[[Path], None], place: str, message: str
) -> None:
    write(tmp_path)
    with pytest.raises(DatasetError, match=message) as caught:
        read(tmp_path)
    assert Path(str(caught.value.place)).name == (place or tmp_path.name) and caught.value.remedy


def test_crowds_are_no_objects(tmp_path: Path) -> None:
    third("iscrowd", 1)(tmp_path)
    data, _, _ = read(tmp_path)
    count = sum(len(kinds) for part in (True, False) for _, kinds in data.read(part)[1])
    assert count == len(content()["annotations"]) - 1


def test_categories_of_tests_are_those_of_training(tmp_path: Path) -> None:
    split(tmp_path)
    facts = content(range(4, 6))
    facts["categories"][1]["name"] = "cube"
    (tmp_path / "valid/b.json").write_text(json.dumps(facts))
    with pytest.raises(DatasetError, match="its categories are not those"):
        read(tmp_path)
