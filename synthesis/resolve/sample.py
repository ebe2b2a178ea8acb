"""The sample input: an int64 array [channel, row, column] with values -128 to 127.

Source: spec/network-description.md section 1.5.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from diagnostics import Diagnostic, DiagnosticError, Place
from synthesis.network import Tensor
from synthesis.options import ResolveOptions
from synthesis.parse import Description


def sample_path(description: Description, options: ResolveOptions) -> str:
    """Return the sample's file: the option's, else the one named after the data set."""
    default = f"tests/sample_{str(description.get('dataset')).lower()}.npy"
    return options.sample_input or default


def read_sample(description: Description, options: ResolveOptions) -> Tensor:
    """Return the sample; one-dimensional data gets one column. Raise DiagnosticError if unfit."""
    path = sample_path(description, options)
    place = Place(file=path)
    remedy = "Make one with train.py --evaluate -8 --save-sample 1, or name it with --sample-input."

    def refuse(message: str, where: Place = place) -> DiagnosticError:
        return DiagnosticError(Diagnostic("E212", message, where, remedy))

    try:
        with Path(path).open("rb") as file:
            sample = np.load(file, allow_pickle=False)
    except FileNotFoundError:
        raise refuse(
            f"the sample file '{path}' does not exist", description.place_of("dataset")
        ) from None
    except (ValueError, EOFError, OSError) as exc:
        raise refuse(f"the sample is not a numeric NumPy array: {exc}") from None
    if not isinstance(sample, np.ndarray) or sample.dtype != np.int64:
        kind = getattr(sample, "dtype", type(sample).__name__)
        raise refuse(f"the sample holds {kind}, expected int64")
    if sample.ndim not in (2, 3) or not sample.size:
        raise refuse(
            f"the sample has the shape {list(sample.shape)}, "
            "expected [channels, rows, columns] or [channels, length]"
        )
    if sample.min() < -128 or sample.max() > 127:
        raise refuse(
            f"the sample's values reach from {sample.min()} to {sample.max()}, "
            "the limits are -128 and 127"
        )
    return sample.reshape((*sample.shape, 1)[:3])
