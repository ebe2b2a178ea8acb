"""Pictures of 16x16 as the engine takes them, augmented afresh for every epoch.

Source: docs/low-bit.md, "Training".
"""

from __future__ import annotations

import functools
import math

import torch
from torch import Tensor
from torch.nn import functional

from ai8xtools.values import frozen

SIZE = 16
MEAN, DEVIATION = 0.1307, 0.3081
_CHUNK = 4096
_PRECISION = 22


@frozen
class PictureAugmentation:
    """How far pictures are turned (two angles in degrees), moved (part of the size) and scaled;
    `elastic` is the probability of an elastic deformation."""

    rotation: float = 10.0
    second_rotation: float = 10.0
    shift: float = 0.1
    least_scale: float = 0.9
    greatest_scale: float = 1.1
    elastic: float = 0.0


def reduced(images: Tensor) -> Tensor:
    """Return uint8 images [N, 1, rows, columns] in 16x16, with the integers of Pillow's bilinear
    filter: columns first, then rows, each rounded to 8 bits."""
    across = _filtered(images.double(), images.shape[3])
    down = _filtered(across.transpose(2, 3), images.shape[2])
    return down.transpose(2, 3).to(torch.uint8)


def _filtered(values: Tensor, size: int) -> Tensor:
    """Reduce the last axis; sums stay below 2^32, so that float64 is exact."""
    sums = values @ _coefficients(size).T.to(values.device)
    return torch.floor((sums + (1 << (_PRECISION - 1))) / (1 << _PRECISION)).clamp(0, 255)


@functools.cache
def _coefficients(size: int) -> Tensor:
    """Return the triangle filter [16, size] in fixed point.

    Source: Pillow, concepts, "Filters"; its coefficients have 22 bits.
    """
    scale = max(size / SIZE, 1.0)
    table = torch.zeros((SIZE, size), dtype=torch.float64)
    for place in range(SIZE):
        centre = (place + 0.5) * size / SIZE
        first, end = max(int(centre - scale + 0.5), 0), min(int(centre + scale + 0.5), size)
        weights = [max(0.0, 1 - abs((i - centre + 0.5) / scale)) for i in range(first, end)]
        fixed = [int(0.5 + w / sum(weights) * (1 << _PRECISION)) for w in weights]
        table[place, first:end] = torch.tensor(fixed, dtype=torch.float64)
    return table


def codes(pixels: Tensor) -> Tensor:
    """Return uint8 pictures [N, 1, 16, 16] as codes [N, 256], float32 whole numbers."""
    values = ((pixels.float() / 255 - MEAN) / DEVIATION).flatten(1)
    return (127 * values / values.abs().amax(1, keepdim=True)).round().clamp(-128, 127)


def augmented(images: Tensor, how: PictureAugmentation, generator: torch.Generator) -> Tensor:
    """Return codes [N, 256] of deformed copies of uint8 images [N, 1, rows, columns]."""
    parts = [
        codes(reduced(_deformed(part.float(), how, generator).round().byte()))
        for part in images.split(_CHUNK)
    ]
    return torch.cat(parts)


def _deformed(images: Tensor, how: PictureAugmentation, generator: torch.Generator) -> Tensor:
    def drawn(low: float, high: float) -> Tensor:
        chances = torch.rand(len(images), generator=generator, device=images.device)
        return chances * (high - low) + low

    turned = drawn(-how.rotation, how.rotation) + drawn(-how.second_rotation, how.second_rotation)
    angle = turned * (math.pi / 180)
    scale = drawn(how.least_scale, how.greatest_scale)
    cosine, sine = torch.cos(angle) / scale, torch.sin(angle) / scale
    moves = [2 * drawn(-how.shift, how.shift) for _ in range(2)]
    rows = (torch.stack([cosine, -sine, moves[0]], 1), torch.stack([sine, cosine, moves[1]], 1))
    matrix = torch.stack(rows, 1)
    grid = functional.affine_grid(matrix, list(images.shape), align_corners=False)
    if how.elastic > 0:
        chosen = (drawn(0, 1) < how.elastic).float().reshape(-1, 1, 1, 1)
        grid = grid + chosen * _elastic(images, generator)
    return functional.grid_sample(images, grid, align_corners=False)


def _elastic(images: Tensor, generator: torch.Generator) -> Tensor:
    """Return displacements [N, rows, columns, 2]: noise, smoothed (sigma 4 pixels, strength 40)."""
    count, _, rows, columns = images.shape
    size = (count, 2, rows, columns)
    noise = torch.rand(size, generator=generator, device=images.device) * 2 - 1
    flat = _smoothing(rows).to(noise.device) @ noise @ _smoothing(columns).to(noise.device)
    pixels = 40 * flat
    sizes = noise.new_tensor([2 / columns, 2 / rows]).reshape(1, 2, 1, 1)
    return (pixels * sizes).permute(0, 2, 3, 1)


@functools.cache
def _smoothing(size: int) -> Tensor:
    """Return the matrix [size, size] of a Gaussian filter, zero beyond the border."""
    reach = 12
    kernel = torch.exp(-(torch.arange(-reach, reach + 1) ** 2) / (2 * 4.0**2))
    places = torch.arange(size)
    distance = (places[:, None] - places[None, :]).clamp(-reach - 1, reach + 1)
    padded = functional.pad(kernel / kernel.sum(), (1, 1))
    return padded[distance + reach + 1]
