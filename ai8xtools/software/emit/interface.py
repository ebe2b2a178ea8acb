"""The interface of a project's C, and its files besides the kernels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from ai8xtools.values import frozen
from ai8xtools.writing.application import Application
from ai8xtools.writing.library import INPUT_FRACTION


@frozen
class Library:
    """A library of the user that is compiled with a project.

    `includes` and `sources` are relative to its `folder`.
    """

    folder: str
    includes: tuple[str, ...]
    sources: tuple[str, ...]


@frozen
class Naming:
    """The name of a library and the meaning of its results.

    `classes` are their names, `outputs` those of the layers; an integer of output n times
    2^`exponents[n]` is the number, and a number of the input times 2^`fraction` its integer.
    `application` is the program around it, `power` what the profile knows of clock and energy, by
    its keys.
    """

    prefix: str
    classes: tuple[str, ...]
    exponents: tuple[int, ...]
    fraction: int = INPUT_FRACTION
    application: Application | None = None
    outputs: tuple[str, ...] = ()
    power: Mapping[str, float] = field(default_factory=dict)


@frozen
class Interface:
    """What differs from --device MCU.

    `folder` holds the templates of cnn.c, cnn.h, main.c and README.md, which are told `values`.
    `files` are further C files, content by name, which need `helpers` of the run time; `headers`
    are those that all projects of this kind have. With `naming` it becomes a library.
    """

    folder: str = "software"
    values: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    helpers: tuple[str, ...] = ()
    library: Library | None = None
    headers: tuple[str, ...] = ("cnn.h", "nn.h", "nn_kernels.h", "weights.h")
    naming: Naming | None = None


PLAIN = Interface()
"""That of --device MCU: cnn_run(in, out)."""
