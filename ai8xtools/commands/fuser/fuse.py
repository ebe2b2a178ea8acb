"""Fold the batch normalization of a checkpoint into the weights and biases before it."""

from __future__ import annotations

from ai8xtools.checkpoint import read_checkpoint, write_checkpoint
from ai8xtools.commands.following import quantize_it
from ai8xtools.commands.fuser.arguments import FuserOptions
from ai8xtools.commands.same_files import refuse_overwriting
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.quantization import fuse_batchnorm, refuse_foreign


def fuse(options: FuserOptions) -> None:
    """Read one checkpoint and write the other, completely or not at all."""
    refuse_overwriting([(options.output, options.output)], (options.input,))
    checkpoint = read_checkpoint(options.input)
    try:
        refuse_foreign(checkpoint, "be fused")
        fused = fuse_batchnorm(checkpoint, options.architecture, options.transposed)
    except InputError as exc:
        exc.place = exc.place or options.input
        raise
    write_checkpoint(options.output, fused)
    print(f"New checkpoint is saved to: {options.output}")
    quantize_it(options.input, options.output)
