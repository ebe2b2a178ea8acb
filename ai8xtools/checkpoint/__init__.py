"""Reading and writing checkpoint files without torch, executing nothing from them.

`read_checkpoint` gives a `Checkpoint` of plain values and numpy arrays, `write_checkpoint` the file
that `torch.load` reads, `write_safetensors` its twin in that format. `atomic` makes files appear
completely or not at all; `errors` is the exception of rooms that do not print. Only numpy and the
standard library are used. The format is described in docs/checkpoints.md.
"""

from ai8xtools.checkpoint.errors import CheckpointError
from ai8xtools.checkpoint.reader import read_checkpoint, refuse_integers
from ai8xtools.checkpoint.safetensors import twin_of, write_safetensors
from ai8xtools.checkpoint.values import Array, Checkpoint, ClassReference, Value
from ai8xtools.checkpoint.writer import write_checkpoint, write_with_twin

__all__ = [
    "Array",
    "Checkpoint",
    "CheckpointError",
    "ClassReference",
    "Value",
    "read_checkpoint",
    "refuse_integers",
    "twin_of",
    "write_checkpoint",
    "write_safetensors",
    "write_with_twin",
]
