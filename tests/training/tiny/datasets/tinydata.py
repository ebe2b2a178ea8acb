"""Data sets of each kind of task: a bright square of 4x4 on a dark image of 8x8."""

from __future__ import annotations

import random

import numpy as np
import torch


class Squares:
    """Sample i has its square in quarter i modulo 4; `target(image, quarter)` says what it is."""

    def __init__(self, count, args, target):
        self.count, self.target = count, target
        self.scale = 128 if args.act_mode_8bit else 1

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        image, quarter = torch.full((1, 8, 8), -0.5), index % 4
        y, x = 4 * (quarter // 2), 4 * (quarter % 2)
        image[:, y : y + 4, x : x + 4] = 0.5 - (index % 3) / 8
        return image * self.scale, self.target(image, quarter, index)


def class_of(_image, quarter, _index):
    return quarter


def pixels_of(image, quarter, _index):
    return torch.where(image[0] > 0, 1 + quarter % 2, 0)


def number_of(_image, quarter, _index):
    return torch.tensor([quarter / 4])


def objects_of(_image, quarter, index):
    """Return no object in each fifth image."""
    if index % 5 == 4:
        return torch.zeros(0, 4), torch.zeros(0, dtype=torch.int64)
    y, x = 0.5 * (quarter // 2), 0.5 * (quarter % 2)
    return torch.tensor([[x, y, x + 0.5, y + 0.5]]), torch.tensor([1 + quarter % 2])


def broken(_image, quarter, index):
    if index == 7:
        raise OSError("image file is truncated")
    return quarter


def wrong_label(_image, quarter, index):
    return 9 if index == 7 else quarter


def ragged(_image, quarter, index):
    return torch.zeros(1 + index % 2)


def lists(samples):
    """Collate as data sets of objects do: a pair of lists."""
    images, targets = zip(*samples, strict=True)
    return torch.stack(images), tuple(zip(*targets, strict=True))


def loader(target):
    def load(data, load_train=True, load_test=True):
        parts = ((load_train, 48), (load_test, 20))
        return tuple(Squares(count, data[1], target) if wanted else None for wanted, count in parts)

    return load


class Noisy(Squares):
    """Images with random brightness, drawn from all three generators."""

    def __getitem__(self, index):
        image, target = super().__getitem__(index)
        return image + (torch.rand(1) + random.random() + np.random.rand()).item() / 16, target


class QuickNoisy(Noisy):
    """The same by whole batches."""

    def batch(self, indices):
        samples = [self[index] for index in indices.tolist()]
        return torch.stack([x for x, _ in samples]), torch.tensor([y for _, y in samples])


def noisy_loader(kind):
    def load(data, load_train=True, load_test=True):
        return kind(48, data[1], class_of), kind(20, data[1], class_of)

    return load


def record(name, target, output, **more):
    return {"name": name, "input": (1, 8, 8), "output": output, "loader": loader(target), **more}


FOUR = ("nw", "ne", "sw", "se")
datasets = [
    record("tinyclasses", class_of, FOUR),
    {**record("tinynoise", class_of, FOUR), "loader": noisy_loader(Noisy)},
    {**record("tinyquicknoise", class_of, FOUR), "loader": noisy_loader(QuickNoisy)},
    record("tinyweighted", class_of, FOUR, weight=(1, 1, 1, 0.5)),
    record("tinypixels", pixels_of, ("dark", "left", "right", "never")),
    record("tinynumbers", number_of, ("number",)),
    record("tinynumbers4", number_of, FOUR, regression=True),
    record("tinyobjects", objects_of, ("left", "right")),
    record("tinyobjectlists", objects_of, ("left", "right"), collate=lists),
    record("tinybroken", broken, FOUR),
    record("tinywronglabel", wrong_label, FOUR),
    record("tinyragged", ragged, ("number",)),
]
