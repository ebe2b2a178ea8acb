"""What train.py imports before and while it trains."""

# ruff: noqa: F401
import torch._dynamo  # by optimizers
import torch.distributed

import ai8xtools.commands.train.arguments
import ai8xtools.commands.train.fits
import ai8xtools.training.session
import train
