"""MNIST: 60000 and 10000 grey images of handwritten digits, 28x28.

Source: docs/datasets.md, "Images in memory".
"""

from __future__ import annotations

from functools import partial

from datasets.idx import CLASSES, SIZE, read_collection
from datasets.images import RandomAffine, image_loader

ADDRESS = "https://ossci-datasets.s3.amazonaws.com/mnist/"
DIGESTS = {
    "train-images-idx3-ubyte.gz": "f68b3c2dcbeaaa9fbdd348bbdeb94873",
    "train-labels-idx1-ubyte.gz": "d53e105ee54ea40749a09fcbcd1e9432",
    "t10k-images-idx3-ubyte.gz": "9fb629c4189551a2d022fa330f9573f3",
    "t10k-labels-idx1-ubyte.gz": "ec29112dd5afa0611ce80d1b7f02629c",
}


mnist_get_datasets = image_loader(
    partial(read_collection, "MNIST", ADDRESS, DIGESTS), RandomAffine(degrees=10, shear=5, pixels=2)
)
"""Load training and test set; the former is turned, sheared and shifted at random."""


datasets = [
    {
        "name": "MNIST",
        "input": (1, *SIZE),
        "output": tuple(map(str, range(CLASSES))),
        "loader": mnist_get_datasets,
    }
]
