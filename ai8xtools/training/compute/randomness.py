"""Random numbers that follow from the seed of the run alone, however it is divided or interrupted.

Every batch of data and every epoch of training begins with seeds of its own. A run that is resumed
after an epoch, or divided among processes, therefore draws what the undivided run draws.
"""

from __future__ import annotations

import random
import secrets
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


def new_seed() -> int:
    """Return an unpredictable seed of 63 bits."""
    return secrets.randbits(63)


def derived(*numbers: int) -> int:
    """Return a seed of 63 bits that is derived from numbers: seed, epoch, ...

    Zeros at the end do not count.
    """
    state = np.random.SeedSequence(numbers).generate_state(1, np.uint64)
    return int(state[0]) >> 1


def seed_everything(seed: int) -> None:
    """Seed the generators of Python, NumPy and PyTorch (all devices)."""
    torch.manual_seed(seed)
    _seed_others(seed)


def seed_data(seed: int) -> None:
    """Seed the generators that data sets use: Python, NumPy and PyTorch on the CPU."""
    torch.default_generator.manual_seed(seed)
    _seed_others(seed)


def _seed_others(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed % (1 << 32))


@contextmanager
def preserved() -> Iterator[None]:
    """Restore the state of the generators that data sets use."""
    kept = torch.get_rng_state(), random.getstate(), np.random.get_state()
    try:
        yield
    finally:
        torch.set_rng_state(kept[0])
        random.setstate(kept[1])
        np.random.set_state(kept[2])
