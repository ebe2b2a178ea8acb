#!/usr/bin/env python3
"""Write an input for a network loader test from a digit that comes with scikit-learn.

The 8x8 image is enlarged to the size asked for, so that no image of another collection is copied:

    tools/make_sample.py --size 28 tests/sample_mnist.npy
    tools/make_sample.py --size 8 tests/sample_digits.npy

With --lowbit the first four digits, 0 to 3, become samples of low-bit networks:

    tools/make_sample.py --lowbit tests/sample_lowbit.npy
"""

from __future__ import annotations

import argparse
import io
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from ai8xtools.checkpoint import atomic
from ai8xtools.diagnostics import run

WHITE = 16  # the brightest value of the collection


def enlarge(image: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """Return the square image with `size` rows and columns, interpolated linearly."""
    places = (np.arange(size) + 0.5) * len(image) / size - 0.5
    own = np.arange(len(image))
    rows = np.stack([np.interp(places, own, column) for column in image.T], axis=1)
    return np.stack([np.interp(places, own, row) for row in rows])


def make_sample(index: int, size: int) -> NDArray[np.int64]:
    """Return digit `index` as int64 [1, size, size] of -128..127."""
    return integers(enlarge(load_digits().images[index], size))[np.newaxis]


def integers(brightness: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return brightness as the integers that a network takes, -128..127."""
    return np.clip(np.round((brightness / WHITE - 0.5) * 256), -128, 127).astype(np.int64)


def lowbit_samples() -> NDArray[np.int8]:
    """Return the digits 0 to 3 as low-bit networks take them, int8 [4, 256].

    They fill 12 of 16 rows and columns, about as digits of MNIST do.
    """
    from ai8xtools.software.lowbit.engine import input_codes

    framed = (np.pad(enlarge(image, 12), 2) for image in load_digits().images[:4])
    pictures = [picture / WHITE for picture in framed]
    return np.stack([input_codes((picture - 0.1307) / 0.3081).reshape(-1) for picture in pictures])


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--size", type=int, default=28, help="rows and columns (default: 28)")
    parser.add_argument(
        "--index", type=int, choices=range(1797), default=7, metavar="N",
        help="which image, 0 to 1796 (default: 7, a seven)",
    )  # fmt: skip
    parser.add_argument("--lowbit", action="store_true", help="four samples for low-bit networks")
    parser.add_argument("file", help="the .npy file to write")
    args = parser.parse_args()
    buffer = io.BytesIO()
    sample = lowbit_samples() if args.lowbit else make_sample(args.index, args.size)
    np.save(buffer, sample, allow_pickle=False)
    atomic.write_bytes(args.file, buffer.getvalue())
    return 0


if __name__ == "__main__":
    sys.exit(run(main))
