"""Train ai85netextrasmall by a fixed recipe; print its accuracy per epoch.

Usage: recipe_extrasmall.py DATA_FOLDER BITS. Run it on one thread.
"""

from __future__ import annotations

import sys
from argparse import Namespace

import torch
from torch import nn

import ai8x
from datasets.mnist import mnist_get_datasets
from models.ai85net import ai85netextrasmall


def main(folder: str, bits: int) -> None:
    """Train four epochs, the last two with quantized weights."""
    args = Namespace(act_mode_8bit=False, truncate_testset=False)
    train, test = mnist_get_datasets((folder, args))
    assert train is not None
    assert test is not None
    train.augment = None
    x, y = train.batch(torch.arange(len(train)))
    ai8x.set_device(85, False, False, verbose=False)
    torch.manual_seed(0)
    model = ai85netextrasmall(num_channels=1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=1e-4)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(4):
        if epoch == 2:
            ai8x.initiate_qat(model, {"weight_bits": bits})
        if epoch == 3:
            optimizer.param_groups[0]["lr"] = 0.01
        model.train()
        for part in torch.randperm(len(x)).split(256):
            loss = criterion(model(x[part]), y[part])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            images, labels = test.batch(torch.arange(len(test)))
            hits = (model(images).argmax(1) == labels).sum()
        print(f"{100 * int(hits) / len(labels):.2f}")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
