"""Steps that a function of a library computes in one call, on whole tensors."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ai8xtools.values import frozen

DATA, RESULT, WEIGHTS, BIAS, BUFFER, NOTHING = "data", "result", "weights", "bias", "buffer", "NULL"
"""What an argument can be besides a number: the tensors, the constants, and memory to work in."""


@frozen(kw_only=True)
class KernelCall:
    """A call in place of a kernel.

    `arguments` are numbers or the words above. `weights` and `bias` are int8 in the order of the
    library, if there are any. `buffer_bytes` is the memory to work in; behind it stand `copied`
    bytes of the data if the function would destroy what is still needed. `in_place`: no value is
    written behind one that is still to be read. `relu` is the function
    that makes negative results zero, if that is wanted. `wide`: results have 32 bits; `status`:
    the function returns one.
    """

    function: str
    arguments: tuple[int | str, ...]
    weights: NDArray[np.int8] | None = None
    bias: NDArray[np.int8] | None = None
    buffer_bytes: int = 0
    copied: int = 0
    relu: str | None = None
    wide: bool = False
    status: bool = True
    in_place: bool = False

    @property
    def scratch_bytes(self) -> int:
        """Bytes of the buffer and of the copy, each a multiple of four."""
        return -(-self.buffer_bytes // 4) * 4 + -(-self.copied // 4) * 4

    @property
    def functions(self) -> tuple[str, ...]:
        """The functions that are called."""
        return (self.function,) if self.relu is None else (self.function, self.relu)
