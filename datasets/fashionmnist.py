"""FashionMNIST: 60000 and 10000 grey images of clothes, 28x28.

Source: docs/datasets.md, "Images in memory".
"""

from __future__ import annotations

from functools import partial

from datasets.idx import SIZE, read_collection
from datasets.images import RandomCrop, image_loader

ADDRESS = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"
_DIGESTS = {
    "train-images-idx3-ubyte.gz": "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
    "train-labels-idx1-ubyte.gz": "25c81989df183df01b3e8a0aad5dffbe",
    "t10k-images-idx3-ubyte.gz": "bef4ecab320f06d8554ea6380940ec79",
    "t10k-labels-idx1-ubyte.gz": "bb300cfdad3c16e7a12a480ee83cd310",
}


fashionmnist_get_datasets = image_loader(
    partial(read_collection, "FashionMNIST", ADDRESS, _DIGESTS), crop=RandomCrop(4, mirror=True)
)
"""Load training and test set; the former is shifted by up to 4 pixels and mirrored."""


datasets = [
    {
        "name": "FashionMNIST",
        "input": (1, *SIZE),
        "output": (
            "top", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag",
            "boot",
        ),
        "loader": fashionmnist_get_datasets,
    }
]  # fmt: skip
