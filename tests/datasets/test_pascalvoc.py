"""Scenes of PascalVOC, from made-up pictures and annotations."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from datasets import pascalvoc
from datasets.errors import DatasetError
from datasets.pascalvoc import pascalvoc_get_datasets, read_objects

OBJECT = (
    "<object><name>{}</name><difficult>{}</difficult><bndbox><xmin>{}</xmin><ymin>{}</ymin>"
    "<xmax>{}</xmax><ymax>{}</ymax></bndbox></object>"
)


def _annotation(*objects: tuple[object, ...]) -> str:
    return f"<annotation>{''.join(OBJECT.format(*o) for o in objects)}</annotation>"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    kit = tmp_path / "PascalVOC" / "VOCdevkit"
    for year, part, name in (
        ("VOC2007", "trainval", "000001"), ("VOC2007", "test", "000002"),
        ("VOC2012", "trainval", "2008_000008"),
    ):  # fmt: skip
        for folder in ("ImageSets/Main", "JPEGImages", "Annotations"):
            (kit / year / folder).mkdir(parents=True, exist_ok=True)
        (kit / year / "ImageSets/Main" / f"{part}.txt").write_text(f"{name}\n")
        pixels = np.zeros((100, 200, 3), np.uint8)
        pixels[20:60, 50:150] = 255
        Image.fromarray(pixels).save(kit / year / "JPEGImages" / f"{name}.jpg", quality=100)
        text = _annotation(("dog", 0, 51, 21, 150, 60), ("cat", 1, 1, 1, 9, 9))
        (kit / year / "Annotations" / f"{name}.xml").write_text(text)
    return tmp_path


def test_boxes_are_parts_of_the_picture(data: Path, integers: Namespace) -> None:
    train, test = pascalvoc_get_datasets((str(data), integers))
    assert train is not None
    assert test is not None
    assert (len(train), len(test)) == (2, 1)
    x, (boxes, labels) = test[0]
    assert x.shape == (3, 256, 320)
    torch.testing.assert_close(boxes, torch.tensor([[0.25, 0.2, 0.75, 0.6]]))
    assert labels.tolist() == [1 + pascalvoc.CLASSES.index("dog")]
    assert float(x[:, 100, 160].min()) == 127
    assert float(x[:, 10, 10].max()) == -128


def test_boxes_follow_the_picture_through_training(data: Path, args: Namespace) -> None:
    train, _ = pascalvoc_get_datasets((str(data), args), load_test=False)
    assert train is not None
    torch.manual_seed(1)
    for _ in range(30):
        x, (boxes, labels) = train[0]
        assert labels.tolist() == [12]
        assert 0 <= float(boxes.min()) <= float(boxes.max()) <= 1
        left, top, right, bottom = (boxes[0] * torch.tensor([320, 256, 320, 256])).tolist()
        centre = x[:, int((top + bottom) / 2), int((left + right) / 2)]
        assert float(centre.min()) > 0.02  # the white object, also when it is darker
        if left > 12:
            assert float(x[:, int((top + bottom) / 2), int(left - 8)].max()) < 0.02


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<annotation>", "it is no annotation"),
        ('<!DOCTYPE a [<!ENTITY b "c">]><a/>', "declares entities"),
        (_annotation(("unicorn", 0, 1, 1, 5, 5)), "the object 'unicorn'"),
        (_annotation(("dog", 0, 6, 1, 5, 5)), "cannot be"),
        (_annotation(("dog", 0, "x", 1, 5, 5)), "it is no annotation"),
    ],
)
def test_faults_of_annotations_are_named(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "a.xml"
    path.write_text(text)
    with pytest.raises(DatasetError, match=message):
        read_objects(path, 10, 10)


def test_scene_without_objects_is_one(tmp_path: Path) -> None:
    path = tmp_path / "a.xml"
    path.write_text("<annotation/>")
    boxes, labels = read_objects(path, 10, 10)
    assert (boxes.shape, labels.shape) == ((0, 4), (0,))


def test_missing_files_are_named(data: Path, args: Namespace) -> None:
    kit = data / "PascalVOC" / "VOCdevkit"
    (kit / "VOC2012" / "Annotations" / "2008_000008.xml").unlink()
    with pytest.raises(DatasetError, match="the file is missing"):
        pascalvoc_get_datasets((str(data), args))
    (kit / "VOC2007" / "ImageSets/Main/test.txt").write_text("../../x\n")
    with pytest.raises(DatasetError, match="no name of a picture"):
        pascalvoc_get_datasets((str(data), args), load_train=False)
    with pytest.raises(DatasetError, match="missing") as info:
        pascalvoc_get_datasets((str(data / "absent"), args))
    assert "robots.ox.ac.uk" in str(info.value.remedy)
