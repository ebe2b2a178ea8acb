"""What train.py imports before and while it trains."""

# ruff: noqa: F401
import torch._dynamo  # by optimizers
import torch.distributed

import commands.train.arguments
import commands.train.fits
import train
import training.session
