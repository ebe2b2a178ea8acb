"""The only place that imports torchvision, and only when something of it is needed.

Importing it costs more than a second. The wheel for CUDA beside a torch without CUDA cannot load
its compiled operators and fails on registering what it knows about them; declaring the two it asks
for lets everything run that is written in Python: data sets, transforms, models.
"""

from __future__ import annotations

import functools
import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any


@functools.cache
def torchvision() -> ModuleType:
    """Return the module torchvision, with its data sets."""
    _declare_missing_operators()
    import torchvision
    import torchvision.datasets

    return torchvision


_declared: list[Any] = []  # a library's declarations end with the object


def _declare_missing_operators() -> None:
    """Declare torchvision's compiled operators if its library does not load here."""
    import torch

    spec = importlib.util.find_spec("torchvision")
    if spec is None or spec.origin is None:
        return
    for library in Path(spec.origin).parent.glob("_C*.so"):
        try:
            torch.ops.load_library(str(library))
        except OSError:
            fragment = torch.library.Library("torchvision", "FRAGMENT")
            for name in ("nms", "qnms"):
                fragment.define(
                    f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
                )
            _declared.append(fragment)
