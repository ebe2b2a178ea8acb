"""One binary file for a network (`.nnb`), used in place from flash: writer, reader, execution.

The C reader in `software/runtime/nnb` is the other half: both refuse the same files under the same
names and compute the same bytes.
"""

from ai8xtools.software.container.errors import ContainerError
from ai8xtools.software.container.execute import run, verify_vectors
from ai8xtools.software.container.records import Container
from ai8xtools.software.container.soundness import check_executable
from ai8xtools.software.container.unpack import unpack

__all__ = [
    "Container",
    "ContainerError",
    "check_executable",
    "run",
    "unpack",
    "verify_vectors",
]
