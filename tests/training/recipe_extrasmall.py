"""Train ai85netextrasmall by a fixed recipe; print its accuracy for each width of weights.

Usage: recipe_extrasmall.py DATA_FOLDER BITS... Run it on one thread.
"""

from __future__ import annotations

import copy
import sys
from argparse import Namespace
from collections.abc import Sequence

import torch
from torch import Tensor, nn

import ai8x
from datasets.mnist import mnist_get_datasets
from models.ai85net import ai85netextrasmall

EPOCHS = 4
QUANTIZED = 2


def main(folder: str, widths: Sequence[int]) -> None:
    """Train four epochs, the last two with quantized weights."""
    args = Namespace(act_mode_8bit=False, truncate_testset=False)
    train, test = mnist_get_datasets((folder, args))
    assert train is not None
    assert test is not None
    train.augment = None
    x, y = train.batch(torch.arange(len(train)))
    images, labels = test.batch(torch.arange(len(test)))
    ai8x.set_device(85, False, False, verbose=False)
    torch.manual_seed(0)
    model = ai85netextrasmall(num_channels=1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=1e-4)
    for epoch in range(QUANTIZED):
        train_epoch(epoch, model, optimizer, x, y)
    state = torch.get_rng_state()
    for bits in widths:  # what comes before does not depend on the width
        torch.set_rng_state(state)
        quantized, going_on = copy.deepcopy((model, optimizer))
        ai8x.initiate_qat(quantized, {"weight_bits": bits})
        for epoch in range(QUANTIZED, EPOCHS):
            train_epoch(epoch, quantized, going_on, x, y)
        quantized.eval()
        with torch.no_grad():
            hits = (quantized(images).argmax(1) == labels).sum()
        print(f"{100 * int(hits) / len(labels):.2f}")


def train_epoch(
    epoch: int, model: nn.Module, optimizer: torch.optim.Optimizer, x: Tensor, y: Tensor
) -> None:
    """Train one epoch; the last one has a lower learning rate."""
    criterion = nn.CrossEntropyLoss()
    if epoch == EPOCHS - 1:
        optimizer.param_groups[0]["lr"] = 0.01
    model.train()
    for part in torch.randperm(len(x)).split(256):
        loss = criterion(model(x[part]), y[part])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main(sys.argv[1], [int(bits) for bits in sys.argv[2:]])
