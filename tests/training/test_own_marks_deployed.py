"""From pictures with marks on them to firmware that is measured, with the three commands."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.training.test_own_data_deployed import run_here

pytest.importorskip("unicorn", reason="the emulator needs unicorn (extra `emulator`)")


def scenes(count: int) -> list[tuple[np.ndarray, tuple[int, int, int]]]:
    """Return pictures with a bright square, and its place: row, column, side."""
    rng = np.random.default_rng(0)
    result = []
    for _ in range(count):
        side = int(rng.integers(6, 9))
        row, column = (int(n) for n in rng.integers(0, 16 - side, 2))
        picture = rng.integers(0, 60, (16, 16, 3))
        picture[row : row + side, column : column + side] += 180
        result.append((picture.astype(np.uint8), (row, column, side)))
    return result


def write_masks(place: Path) -> None:
    """Write pictures with masks beside them."""
    place.mkdir()
    (place / "classes.txt").write_text("ground\nsquare\n")
    for n, (picture, (row, column, side)) in enumerate(scenes(20)):
        mask = np.zeros((16, 16), np.uint8)
        mask[row : row + side, column : column + side] = 1
        Image.fromarray(picture).save(place / f"{n}.bmp")
        Image.fromarray(mask).save(place / f"{n}.png")


def write_boxes(place: Path) -> None:
    """Write pictures with texts of YOLO beside them."""
    place.mkdir()
    (place / "classes.txt").write_text("square\n")
    for n, (picture, (row, column, side)) in enumerate(scenes(20)):
        centre = f"{(column + side / 2) / 16} {(row + side / 2) / 16}"
        Image.fromarray(picture).save(place / f"{n}.bmp")
        (place / f"{n}.txt").write_text(f"0 {centre} {side / 16} {side / 16}\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "write", "network", "title"),
    [
        ("masks", write_masks, "sizedmasks_16", "mIoU"),
        ("boxes", write_boxes, "sizedboxes_32", "mAP"),
    ],
)
def test_marks_lead_to_firmware_that_is_measured(
    kind: str, write: Callable[[Path], None], network: str, title: str,
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """The firmware is as good as training says of the chip's integers."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "squares")
    (tmp_path / "qat.yaml").write_text("start_epoch: 2\nweight_bits: 8\n")
    said = run_here(
        f"python train.py --model auto --dataset {kind}:squares --epochs 3 -b 4 --qat-policy "
        "qat.yaml --epoch-samples 48 -j 0 --lr 0.005 --deterministic --name own"
    )
    assert f"--model auto: {network}" in said
    measured = re.findall(r"integers of the chip  (.*)", said)[0]
    assert float(measured.split()[0]) > 60
    best = "latest_log_dir/own_qat_best.pth.tar"
    said = run_here(f"python quantize.py {best} q.pth.tar --device MAX78000")
    assert f"These integers have an {title} of {measured} on the test samples" in said
    run_here(
        "python ai8xize.py --model auto --checkpoint-file q.pth.tar --test-dir projects --device "
        "MAX78000 --prefix own --report own.html"
    )
    assert measured in (tmp_path / "own.html").read_text()
    said = run_here(f"python emulate.py projects/own --input {kind}:squares")
    assert f"{title} of the firmware: {measured}\n" in said and "squares" in said
    assert f"As the simulation of {network}: 4 inputs" in said and said.endswith(
        "DONE (4 inputs)\n"
    )
    said = run_here(
        f"python train.py --model auto --dataset {kind}:squares --exp-load-weights-from q.pth.tar "
        "--evaluate -8 -j 0"
    )
    assert f"{title}: {measured}" in said
    assert "PASS (1 inference)" in run_here("python emulate.py projects/own")
    head, line = {
        "boxes": ("nms", r"nothing|square \d+%"),
        "masks": ("segmentation", r"ground \d+"),
    }[kind]
    run_here(
        "python ai8xize.py --model auto --checkpoint-file q.pth.tar --test-dir projects --device "
        f"MAX78000 --prefix head --symbol-prefix own --application minimal --head {head}"
    )
    said = run_here("python emulate.py projects/head")
    assert len(re.findall(rf"^input \d: (?:{line})", said, re.MULTILINE)) == 3
