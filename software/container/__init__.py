"""One binary file for a network (`.nnb`), used in place from flash: writer, reader, execution.

The C reader in `software/runtime/nnb` is the other half: both refuse the same files under the same
names and compute the same bytes.
"""

from software.container.errors import ContainerError
from software.container.execute import run, verify_vectors
from software.container.records import Container
from software.container.soundness import check_executable
from software.container.unpack import unpack

__all__ = [
    "Container",
    "ContainerError",
    "check_executable",
    "run",
    "unpack",
    "verify_vectors",
]
