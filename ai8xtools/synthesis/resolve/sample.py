"""The sample input: an int64 array [channel, row, column] with values -128 to 127.

Source: docs/writing-a-network.md, "Files of samples and weights".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from ai8xtools.diagnostics import Diagnostic, DiagnosticError, Place, Severity, refused
from ai8xtools.reading import where_else
from ai8xtools.reading.npy import NpyError, read_arrays
from ai8xtools.root import ROOT
from ai8xtools.synthesis.layout import Progression
from ai8xtools.synthesis.network import Tensor
from ai8xtools.synthesis.options import ResolveOptions
from ai8xtools.synthesis.parse import Description
from ai8xtools.synthesis.parse.rules import kernel, operation

_CAMERA_BITS: dict[int | None, tuple[int, int, int]] = {555: (5, 5, 5), 565: (5, 6, 5)}
"""Bits of red, green and blue by format."""
_MOST = 255
"""Of bytes without a sign."""
_LANES = 4
"""Channels that one word of the input holds."""


def sample_path(description: Description, options: ResolveOptions) -> str:
    """Return the sample's file: the option's, else the one named after the data set.

    Where the current folder has none, a description of the toolchain's has that beside it.
    """
    default = f"tests/sample_{str(description.get('dataset')).lower()}.npy"
    own = ROOT / default
    shipped = Path(description.file).resolve().is_relative_to(ROOT / "networks")
    if shipped and own.is_file() and not Path(default).is_file():
        default = str(own)
    return options.sample_input or default


def read_sample(description: Description, options: ResolveOptions) -> Tensor:
    """Return the sample; one-dimensional data gets one column. Raise DiagnosticError if unfit."""
    path = sample_path(description, options)
    place = Place(file=path)
    named = description.place_of("dataset")
    if options.sample_input:
        named = Place(option="--sample-input")
    remedy = "Make one with train.py --evaluate -8 --save-sample 1, or name it with --sample-input."

    def refuse(message: str, where: Place = place, remedy: str = remedy) -> DiagnosticError:
        return refused("E212", message, where, remedy)

    try:
        arrays = read_arrays(path, most=1)
    except FileNotFoundError:
        better = f"{where_else(path)} {remedy}" if options.sample_input else remedy
        raise refuse(f"the sample file '{path}' does not exist", named, better) from None
    except OSError as exc:
        raise refuse(f"the sample file '{path}' cannot be read: {exc.strerror}", named) from None
    except NpyError as exc:
        raise refuse(
            f"the sample is not a numeric NumPy array: {exc}", remedy=exc.remedy or remedy
        ) from None
    if not arrays:
        raise refuse("the sample is not a numeric NumPy array: the file is empty")
    (sample,) = arrays
    if sample.dtype.kind not in "iu":
        raise refuse(f"the sample holds {sample.dtype}, expected integers such as int64")
    if sample.ndim not in (1, 2, 3) or not sample.size:
        raise refuse(
            f"the sample has the shape {list(sample.shape)}, "
            "expected [channels, rows, columns], [channels, length] or [features]"
        )
    if sample.min() < -128 or sample.max() > 127:
        raise refuse(
            f"the sample's values reach from {sample.min()} to {sample.max()}, "
            "the limits are -128 and 127",
            remedy="Subtract 128 from values of 0 to 255."
            if sample.min() == 0 and sample.max() <= _MOST
            else remedy,
        )
    if sample.ndim == 2 and _reads_an_image(description, options):
        raise refuse(
            f"the sample has the shape {list(sample.shape)}, the first layer reads an image: "
            "expected [channels, rows, columns], or in_dim in that layer",
            remedy="If it is an image of one channel, save sample[None].",
        )
    return sample.reshape((*sample.shape, 1, 1)[:3]).astype(np.int64)


def _reads_an_image(description: Description, options: ResolveOptions) -> bool:
    """Whether a kernel moves over the sample in two directions, and nothing says how it is folded.

    It makes no difference for a kernel of one pixel.
    """
    first = (description.layers[options.start_layer :] or description.layers)[0]
    operator, _ = operation(first)
    return operator.two_dimensional and max(kernel(first)) > 1 and "in_dim" not in first


def folded(sample: Tensor, description: Description) -> Tensor:
    """Return the sample with the channels and sizes that a first layer states which flattens it."""
    first = description.layers[0]
    if not (first.get("flatten") and "in_dim" in first and "in_channels" in first):
        return sample
    rows, columns = first.get("in_dim")
    fits = first.get("in_channels") == sample.size and not sample.size % (rows * columns)
    return sample.reshape(-1, rows, columns) if fits else sample


def random_sample(
    description: Description, options: ResolveOptions, problems: list[Diagnostic]
) -> Tensor | None:
    """Return random numbers, always the same, with a notice, if there is no other sample.

    Every other source of a sample wins.
    """
    shape, path = options.sample_shape, Path(sample_path(description, options))
    if shape is None or options.sample_input is not None or path.exists():
        return None
    problems.append(
        Diagnostic(
            "N241",
            "no sample is given: the known answer is that of random data",
            description.place,
            "Name one with --sample-input; train.py --evaluate -8 --save-sample 1 makes it.",
            Severity.NOTICE,
        )
    )
    values = np.random.default_rng(0).integers(-128, 128, shape, np.int64)
    return values.reshape((*shape, 1)[:3])


def other_than_of_data_set(
    sample: Tensor, description: Description, options: ResolveOptions
) -> Iterator[Diagnostic]:
    """Warn of a sample that has another size than the input of the model or the data set.

    Pooling leaves out what is over, so that the sizes of all layers may fit nevertheless.
    """
    if options.sample_input is None:
        return
    usual = Path(sample_path(description, replace(options, sample_input=None)))
    usual_shape, origin = options.sample_shape, "the input of the model"
    if usual_shape is None:
        usual_shape, origin = _shape_of(usual), f"that of its data set ({usual})"
    if (
        usual_shape is None
        or (*usual_shape, 1)[1:3] == sample.shape[1:]
        or sample.size == np.prod(usual_shape)
    ):
        return
    actual, expected = ("x".join(map(str, shape)) for shape in (sample.shape, usual_shape))
    yield Diagnostic(
        "W235",
        f"the sample is {actual}, {origin} is {expected}",
        Place(file=options.sample_input),
        "Check that the sample is for this network; pooling leaves out rows and columns.",
        Severity.WARNING,
    )


def _shape_of(path: Path) -> tuple[int, ...] | None:
    """Return the shape of a sample that may not exist."""
    try:
        (sample,) = read_arrays(path, most=1)
    except (OSError, NpyError, ValueError):
        return None
    return sample.shape if sample.ndim in (2, 3) else None


def seen_by_camera(sample: Tensor, options: ResolveOptions) -> Tensor:
    """Return the sample without the bits that pixels of 15 or 16 bits do not have."""
    kept = _CAMERA_BITS.get(options.camera_format)
    if kept is None or len(sample) != len(kept):
        return sample
    masks = np.array([-1 << 8 - bits for bits in kept], np.int64)
    return sample & masks[:, None, None]


def progression(sample: Tensor, options: ResolveOptions) -> Progression | None:
    """Return how the options derive input words from the first ones; None: they do not."""
    if options.synthesize_input is None:
        return None
    mask = (1 << 8 * min(len(sample), _LANES)) - 1
    return Progression(options.synthesize_words, options.synthesize_input, mask)


def progressing(sample: Tensor, rule: Progression) -> Tensor:
    """Return the sample whose pixels, taken as words of up to four channels, follow a progression.

    A sample of more channels, which `check` refuses, stays as it is.
    Source: docs/generated-project.md, "Arrays".
    """
    channels, *size = sample.shape
    if channels > _LANES or rule.words < 1:
        return sample
    lanes = np.zeros((sample[0].size, _LANES), np.uint8)
    lanes[:, :channels] = (sample.reshape(channels, -1).T & 0xFF).astype(np.uint8)
    rounds, position = np.divmod(np.arange(len(lanes)), rule.words)
    words = lanes.view("<u4").reshape(-1)[position].astype(np.int64) + rounds * rule.step
    values: Tensor = (
        (words & rule.mask).astype("<u4").view(np.int8).reshape(-1, _LANES).astype(np.int64)
    )
    return values[:, :channels].T.reshape(channels, *size)
