"""The only names a checkpoint may mention, and what each of them means to us.

A pickle calls Python objects by name. Here a name is looked up in one table whose values are
functions of this module and inert records; nothing is ever imported on behalf of a file.
Source: docs/checkpoints.md, "What is refused, and why nothing can be executed".
"""

from __future__ import annotations

import collections
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ai8xtools.checkpoint.errors import CheckpointError
from ai8xtools.checkpoint.values import ClassReference
from ai8xtools.values import frozen

BFLOAT16 = "bfloat16"
# Storage class of module torch -> numpy dtype without byte order. bfloat16 has no numpy twin.
STORAGE_DTYPES = {
    "FloatStorage": "f4",
    "DoubleStorage": "f8",
    "HalfStorage": "f2",
    "BFloat16Storage": BFLOAT16,
    "LongStorage": "i8",
    "IntStorage": "i4",
    "ShortStorage": "i2",
    "CharStorage": "i1",
    "ByteStorage": "u1",
    "BoolStorage": "?",
}
OPTIMIZERS = (
    ("torch.optim.sgd", "SGD"),
    ("torch.optim.adam", "Adam"),
    ("torch.optim.adamw", "AdamW"),
)
MAX_DIMENSIONS = 16
MAX_ELEMENTS = 1 << 48
"""More than any memory holds: the product of the sizes of a shape, zeros left out."""
_NUMBER_CODES = ("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "b1")


@frozen
class StorageType:
    """A storage class such as `torch.FloatStorage`; `dtype` as in STORAGE_DTYPES."""

    dtype: str

    @property
    def item_bytes(self) -> int:
        """Bytes of one element."""
        return 2 if self.dtype == BFLOAT16 else np.dtype(self.dtype).itemsize


@frozen
class StorageRecord:
    """A block of `count` elements kept under `key` beside the pickle."""

    type: StorageType
    key: str
    count: int


@frozen
class TensorRecord:
    """A strided view of a storage; offset and strides count elements."""

    storage: StorageRecord
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


@dataclass(slots=True)
class NumberType:
    """A numpy dtype of single numbers; its byte order arrives after the object itself."""

    code: str
    order: str = "<"


@frozen
class Constructor:
    """A callable name: `build` receives the arguments found in the file and checks them."""

    name: str
    build: Callable[[tuple[Any, ...]], Any]


def printable(text: str, limit: int = 80) -> str:
    """Return text of a file, escaped and shortened, so that it is safe to print on a terminal."""
    shown = text[:limit].encode("unicode_escape").decode("ascii")
    return shown + ("..." if len(text) > limit else "")


_SAVE_AGAIN = "Do not open this file with torch.load; save the network's state_dict again."
_WHOLE_NETWORK = (
    "A whole network (torch.save(model, FILE)) is passed as its tensors, torch.save({'epoch': 0, "
    "'arch': NAME, 'state_dict': model.state_dict()}, FILE), and its class as --model FILE.py:CLASS"
    " (ai8xize.py, quantize.py --calibrate, train.py)."
)


def look_up(module: str, name: str, meanings: Mapping[tuple[str, str], Any]) -> Any:
    """Return the meaning of a name; raise CheckpointError E504 naming it when it is not known."""
    try:
        return meanings[module, name]
    except KeyError:
        standard = module.partition(".")[0] in sys.stdlib_module_names
        raise CheckpointError(
            "E504",
            f"the file names the Python object {printable(module)}.{printable(name)}, "
            "which no checkpoint needs; it was refused and nothing was executed",
            remedy=_SAVE_AGAIN if standard else f"{_SAVE_AGAIN} {_WHOLE_NETWORK}",
        ) from None


def malformed(what: str) -> CheckpointError:
    """Return the error for a pickle whose parts do not fit together."""
    return CheckpointError(
        "E503", f"the file is damaged: {what}", remedy="Copy or create the checkpoint again."
    )


def _is_size(value: Any) -> bool:
    return type(value) is int and value >= 0


def _sizes(value: Any) -> tuple[int, ...]:
    if not isinstance(value, tuple | list) or not all(map(_is_size, value)):
        raise malformed("a tensor's shape or strides are not sizes")
    if len(value) > MAX_DIMENSIONS:
        raise malformed(f"a tensor with {len(value)} dimensions")
    return tuple(value)


def checked_shape(shape: Sequence[int], what: str) -> tuple[int, ...]:
    """Return a shape that numpy can have; malformed if an empty tensor claims an impossible one."""
    if math.prod(max(size, 1) for size in shape) > MAX_ELEMENTS:
        raise malformed(f"{what} has a shape beyond all memory")
    return tuple(shape)


def _ordered_dict(args: tuple[Any, ...]) -> collections.OrderedDict[Any, Any]:
    if args:
        raise malformed("an OrderedDict with arguments")
    return collections.OrderedDict()


def _tensor(args: tuple[Any, ...]) -> TensorRecord:
    if len(args) < 4 or not isinstance(args[0], StorageRecord) or not _is_size(args[1]):
        raise malformed("a tensor without storage or offset")
    shape, strides = _sizes(args[2]), _sizes(args[3])
    if len(shape) != len(strides):
        raise malformed(f"a tensor with {len(shape)} dimensions and {len(strides)} strides")
    return TensorRecord(args[0], args[1], shape, strides)


def _parameter(args: tuple[Any, ...]) -> TensorRecord:
    if not args or not isinstance(args[0], TensorRecord):
        raise malformed("a parameter that is not a tensor")
    return args[0]


def _size(args: tuple[Any, ...]) -> tuple[int, ...]:
    return _sizes(args[0] if args else ())


def _text(args: tuple[Any, ...]) -> str:
    if not args or not isinstance(args[0], str):
        raise malformed("a device or layout that is not text")
    return args[0]


def _encode(args: tuple[Any, ...]) -> bytes:
    texts = len(args) == 2 and all(isinstance(arg, str) for arg in args)
    if not texts or args[1] not in ("latin1", "latin-1"):
        raise malformed("bytes that are not written as latin-1 text")
    return str(args[0]).encode("latin-1")


def _number_type(args: tuple[Any, ...]) -> NumberType:
    if not args or not isinstance(args[0], str) or args[0] not in _NUMBER_CODES:
        raise malformed("a numpy dtype that is not a plain number")
    return NumberType(args[0])


def _number(args: tuple[Any, ...]) -> Any:
    """Return a numpy scalar as the Python number of the same value."""
    if len(args) != 2 or not isinstance(args[0], NumberType) or not isinstance(args[1], bytes):
        raise malformed("a numpy number without dtype or bytes")
    dtype = np.dtype(args[0].code).newbyteorder(args[0].order)  # type: ignore[arg-type]
    if len(args[1]) != dtype.itemsize:
        raise malformed("a numpy number of the wrong length")
    return np.frombuffer(args[1], dtype)[0].item()


_CONSTRUCTORS = {
    ("collections", "OrderedDict"): _ordered_dict,
    ("torch._utils", "_rebuild_tensor_v2"): _tensor,
    ("torch._utils", "_rebuild_parameter"): _parameter,
    ("torch.nn.parameter", "Parameter"): _parameter,
    ("torch", "Size"): _size,
    ("torch", "device"): _text,
    ("torch.serialization", "_get_layout"): _text,
    ("_codecs", "encode"): _encode,
    ("numpy", "dtype"): _number_type,
    ("numpy.core.multiarray", "scalar"): _number,
    ("numpy._core.multiarray", "scalar"): _number,
}
KNOWN: dict[tuple[str, str], Any] = {
    **{(m, n): Constructor(f"{m}.{n}", build) for (m, n), build in _CONSTRUCTORS.items()},
    **{("torch", name): StorageType(dtype) for name, dtype in STORAGE_DTYPES.items()},
    **{(module, name): ClassReference(module, name) for module, name in OPTIMIZERS},
}
