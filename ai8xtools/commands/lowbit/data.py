"""Pictures of a data set for low-bit networks: grey, as bytes.

Source: docs/low-bit.md, "Training".
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from ai8xtools.diagnostics.errors import InputError

if TYPE_CHECKING:
    from ai8xtools.training.lowbit.epochs import Pictures


_SIZE = (28, 28)
"""Of pictures in folders, before they are deformed and reduced to 16x16: as in MNIST."""


def pictures_of(
    dataset: str, folder: str, *, training: bool
) -> tuple[Pictures, Pictures, tuple[str, ...]]:
    """Return training and test pictures, and the names of the classes.

    Without `training` only the test set is read, and stands for both.
    """
    from ai8xtools.training.catalog.own_data import dataset_named
    from datasets.own.settings import DataSettings

    settings = DataSettings(resize=_SIZE, grayscale=True, augment=())
    entry = dataset_named(dataset, "--dataset", settings, training=training)
    args = SimpleNamespace(act_mode_8bit=False, truncate_testset=False)
    train, test = entry.loader((folder, args), training, True)
    for line in entry.own.notes if entry.own is not None else ():
        print(line)
    tested = _pictures(test, entry.name)
    trained = tested if train is None else _pictures(train, entry.name)
    return trained, tested, tuple(map(str, entry.output))


def _pictures(samples: Any, name: str) -> Pictures:
    """Return the pictures of a data set as bytes."""
    import torch

    from ai8xtools.training.lowbit.epochs import Pictures

    if hasattr(samples, "images") and hasattr(samples, "white"):
        images, labels = samples.images, samples.targets
        if samples.white != 255:
            images = (images.float() * (255 / samples.white)).round().byte()
    else:
        items = [samples[i] for i in range(len(samples))]
        images = torch.stack([((x + 1) * 127.5).round().clamp(0, 255).byte() for x, _ in items])
        labels = torch.tensor([int(label) for _, label in items])
    if images.ndim != 4 or images.shape[1] != 1:
        raise InputError(
            "E630", f"the samples of {name} have the shape {tuple(images.shape[1:])}; low-bit "
            "networks take grey pictures", "--dataset", "Use --grayscale data, such as MNIST.",
        )  # fmt: skip
    return Pictures(images, labels.long())
