"""The classes of all test pictures, by training, by the engine in Python and by its C.

Source: docs/low-bit.md, "The report".
"""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ai8xtools.commands.lowbit.files import Trained, network_of
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.software.lowbit.emit import Samples, emit
from ai8xtools.software.lowbit.engine import run
from ai8xtools.software.lowbit.network import LowBitNetwork
from ai8xtools.values import frozen

if TYPE_CHECKING:
    from ai8xtools.training.lowbit.epochs import Pictures

Classes = NDArray[np.int64]
_PART = 500
_COMPILER = "cc"


@frozen
class Agreement:
    """How many of `total` pictures Python and C recognize, and for how many classes differ.

    `differ_in_python` are other classes than those of training, `differ_in_c` than those of Python;
    None for C that was not compiled.
    """

    total: int
    correct_in_python: int
    differ_in_python: int
    correct_in_c: int | None
    differ_in_c: int | None


def compare(trained: Trained, engine: LowBitNetwork, pictures: Pictures, with_c: bool) -> Agreement:
    """Compare the classes of test pictures; raises InputError (E811) if C cannot be compiled."""
    import torch

    from ai8xtools.training.lowbit.pictures import codes, reduced

    inputs = codes(reduced(pictures.images))
    network = network_of(trained, len(trained.classes))
    with torch.no_grad():
        taught = torch.cat([network(part).argmax(1) for part in inputs.split(_PART)]).numpy()
    labels, values = pictures.labels.numpy(), inputs.numpy().astype(np.int8)
    python = python_classes(engine, values)
    c: Classes | None = None
    if with_c:
        with tempfile.TemporaryDirectory() as folder:
            c = c_classes(engine, values, Path(folder))
    return Agreement(
        len(labels), int((python == labels).sum()), int((python != taught).sum()),
        None if c is None else int((c == labels).sum()),
        None if c is None else int((c != python).sum()),
    )  # fmt: skip


def python_classes(network: LowBitNetwork, inputs: NDArray[np.int8]) -> Classes:
    """Return the classes of Python's engine for inputs [number, bytes]."""
    parts = range(0, len(inputs), _PART)
    return np.concatenate([run(network, inputs[i : i + _PART]).classes for i in parts])


def c_classes(network: LowBitNetwork, inputs: NDArray[np.int8], folder: Path) -> Classes:
    """Compile the engine in `folder`, and return its classes; raises InputError (E811)."""
    for name, text in emit(network, Samples(inputs[:1]), "compared").items():
        (folder / name).write_text(text, encoding="utf-8")
    library = folder / "libinference.so"
    command = [_COMPILER, "-O2", "-shared", "-fPIC", "-o", str(library), str(folder / "lowbit.c")]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as exc:
        raise InputError(
            "E811", f"the C cannot be compiled by {_COMPILER} ({type(exc).__name__})",
            "--compare-c", "Install a C compiler, or leave the option out.",
        ) from exc  # fmt: skip
    function = ctypes.CDLL(str(library)).Inference
    function.restype = ctypes.c_uint32
    data = np.ascontiguousarray(inputs)
    return np.array([function(row.ctypes.data_as(ctypes.c_void_p)) for row in data], np.int64)
