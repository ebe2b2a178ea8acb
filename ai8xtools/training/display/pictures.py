"""Pictures: inputs of networks as images, the confusion matrix, rows of maps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor

from ai8xtools.training.catalog.discovery import DatasetEntry
from ai8xtools.training.options import TrainingOptions

Pixels = NDArray[np.uint8]
_DOTS_PER_INCH = 96
_BLACK, _WHITE = (0, 0, 0), (255, 255, 255)


def visible(inputs: Tensor, entry: DatasetEntry, options: TrainingOptions) -> Tensor | None:
    """Return inputs as images [N, 3, H, W] of 0..1, as the data set shows them.

    Without a function of the data set, inputs of one or three channels are shown; others are None.
    """
    if entry.visualize is not None:
        picture = entry.visualize(inputs, options)
        if picture is None:
            return None
        images = torch.as_tensor(picture).float()
    else:
        if inputs.ndim != 4 or inputs.shape[1] not in (1, 3):
            return None
        images = (inputs + 128) / 255 if options.act_mode_8bit else (inputs + 1) / 2
    if images.shape[1] == 1:
        images = images.expand(-1, 3, -1, -1)
    return images[:, :3].clamp(0, 1)


def jet(shares: NDArray[np.floating[Any]]) -> Pixels:
    """Return the colours [..., 3] of values 0..1: from blue through green and yellow to red."""
    centres = np.array([3.0, 2.0, 1.0])
    colours = np.clip(1.5 - np.abs(4 * shares[..., None] - centres), 0, 1)
    return (255 * colours + 0.5).astype(np.uint8)


def text_size(text: str, font: Any) -> tuple[int, int]:
    """Return width and height of a text in pixels."""
    left, top, right, bottom = font.getbbox(text)
    return int(right - left), int(bottom - top)


def shortened(text: str, width: int, font: Any) -> str:
    """Return the text, cut to `width` pixels where it is longer."""
    if text_size(text, font)[0] <= width:
        return text
    while text and text_size(text + "…", font)[0] > width:
        text = text[:-1]
    return text + "…"


def _text_colour(colour: NDArray[np.uint8]) -> tuple[int, int, int]:
    """Return black or white, whichever can be read on a colour."""
    return _BLACK if colour @ np.array([0.299, 0.587, 0.114]) > 128 else _WHITE


def confusion_picture(matrix: NDArray[np.int64], labels: Sequence[str]) -> Pixels:
    """Return the confusion matrix [actual, predicted] as a picture [H, W, 3].

    It has 5 to 20 inches of 96 pixels; a field is coloured by its share of the greatest number, and
    a dot stands for 0.
    """
    classes = len(labels)
    side = int(min(max(5, classes / 2), 20) * _DOTS_PER_INCH)
    margin = min(side // 4, 40 + 9 * max(map(len, labels)))
    field = max(1, (side - margin - 10) // classes)
    font: Any = ImageFont.load_default(max(5, min(14, int(field * 0.45))))
    picture = Image.new("RGB", (side, side), _WHITE)
    draw = ImageDraw.Draw(picture)
    colours = jet(matrix / max(1, int(matrix.max())))
    for row, column in np.ndindex(classes, classes):
        x, y = margin + column * field, margin + row * field
        colour = colours[row, column]
        draw.rectangle((x, y, x + field - 1, y + field - 1), tuple(colour.tolist()))
        number = str(matrix[row, column]) if matrix[row, column] else "."
        if text_size(number, font)[0] < field:
            place = (x + field / 2, y + field / 2)
            draw.text(place, number, _text_colour(colour), font, anchor="mm")
    for index, label in enumerate(labels):
        along = margin + index * field + field / 2
        name = shortened(label, margin - 30, font)
        draw.text((margin - 5, along), name, _BLACK, font, anchor="rm")
        _write_upward(picture, (along, margin - 5), name, font)
    middle = margin + classes * field / 2
    titles: Any = ImageFont.load_default(14)
    draw.text((middle, 12), "Predicted", _BLACK, titles, anchor="mm")
    _write_upward(picture, (12, middle), "Actual", titles, centred=True)
    return np.asarray(picture)


def _write_upward(
    picture: Image.Image, place: tuple[float, float], text: str, font: Any, centred: bool = False
) -> None:
    """Write a text that runs upward from `place`, or has it in its middle."""
    width, height = font.getbbox(text)[2:]
    line = Image.new("L", (int(width) + 1, int(height) + 1), 0)
    ImageDraw.Draw(line).text((0, 0), text, 255, font)
    turned = line.rotate(90, expand=True)
    x = place[0] - turned.width / 2
    y = place[1] - turned.height * (0.5 if centred else 1)
    picture.paste(_BLACK, (int(x), int(y)), turned)


def diverging(values: NDArray[np.floating[Any]], limit: float) -> Pixels:
    """Return colours [..., 3]: white for 0, red up to `limit`, blue down to -`limit`."""
    shares = np.clip(values / max(limit, 1e-30), -1, 1)[..., None]
    colours = np.where(shares > 0, [1, 0.05, 0.3], [0.1, 0.45, 0.9])
    return (255 * (1 - np.abs(shares) * (1 - colours)) + 0.5).astype(np.uint8)


Cell = tuple[str, Pixels]
"""A small picture [H, W, 3] with the line above it."""


def sheet(rows: Sequence[Sequence[Cell]], size: int = 120) -> Image.Image:
    """Return rows of pictures, each fitted into a square of `size` pixels."""
    font: Any = ImageFont.load_default(12)
    gap, line = 8, 18
    width = gap + max(map(len, rows)) * (size + gap)
    picture = Image.new("RGB", (width, gap + len(rows) * (line + size + gap)), _WHITE)
    draw = ImageDraw.Draw(picture)
    for row, cells in enumerate(rows):
        for column, (title, pixels) in enumerate(cells):
            x, y = gap + column * (size + gap), gap + row * (line + size + gap)
            draw.text((x, y), shortened(title, size, font), _BLACK, font)
            fitted = _fitted(pixels, size)
            picture.paste(fitted, (x, y + line))
            box = (x - 1, y + line - 1, x + fitted.width, y + line + fitted.height)
            draw.rectangle(box, outline=(170, 170, 170))
    return picture


def _fitted(pixels: Pixels, size: int) -> Image.Image:
    """Return a picture enlarged or reduced to at most `size` pixels each way."""
    height, width = pixels.shape[:2]
    scale = size / max(height, width)
    target = (max(1, round(width * scale)), max(1, round(height * scale)))
    how: Callable[..., Image.Image] = Image.fromarray(np.ascontiguousarray(pixels)).resize
    sampling = Image.Resampling
    return how(target, sampling.NEAREST if scale > 1 else sampling.BOX)
