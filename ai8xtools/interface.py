"""The stages of the tools as functions, for notebooks and programs.

`load` names a network, whose `fits`, `place` and `generate` are what `ai8xize.py --fits`,
`--report` and `ai8xize.py` do; `emulate` of a project is `emulate.py`. Errors are those of the
tools, as exceptions: `ai8xtools.diagnostics.DiagnosticError` and `ToolError`.
Source: docs/python.md.
"""

from __future__ import annotations

import contextlib
import html
import io
import json
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ai8xtools.values import frozen

if TYPE_CHECKING:
    from ai8xtools.commands.loader.options import LoaderOptions
    from ai8xtools.synthesis.fits import ChipFit
    from ai8xtools.synthesis.report import Report


class UsageError(ValueError):
    """Arguments that the tools do not know, or that do not go together."""


def load(
    config_file: str | Path | None = None,
    checkpoint_file: str | Path | None = None,
    *,
    device: str = "MAX78000",
    **options: Any,
) -> Network:
    """Name a network: a description (YAML) with its quantized checkpoint, or `model`.

    `options` are those of `ai8xize.py`, with `_` for `-`; True stands for one without a value, and
    None or False for one that is left out. Nothing is read yet. Raises UsageError for wrong usage.
    """
    from ai8xtools.commands.loader.arguments import parse

    words = {"config_file": config_file, "checkpoint_file": checkpoint_file, "device": device}
    place = {"prefix": "network", "test_dir": "."}  # `generate` says where
    return Network(_called(parse, _line(place | words | options)))


@frozen
class Network:
    """A network that was named by `load`."""

    options: LoaderOptions

    def fits(self) -> Fits:
        """Return what it takes of each chip: memories, cycles, time and energy."""
        from ai8xtools.commands.fits import fits_of
        from ai8xtools.commands.loader.model_sources import described_for

        return Fits(
            tuple(fits_of(described_for(self.options), energy=self.options.project.measured))
        )

    def place(self) -> Placed:
        """Find processors, offsets and words, and return the report of them.

        Raises DiagnosticError with all that the chip does not allow.
        """
        from ai8xtools.commands.loader.create import completed, report_of, synthesized

        options = completed(self.options)
        result = synthesized(options)
        return Placed(report_of(options, result.network, result.placement, result.warnings, result))

    def generate(self, folder: str | Path, *, overwrite: bool = False) -> Project:
        """Write the project into a new folder; return it.

        With `overwrite` the files of one that exists are replaced.
        """
        from ai8xtools.commands.loader.create import create_project

        path = Path(folder)
        project = replace(self.options.project, name=path.name, folder=str(path))
        options = replace(
            self.options, project=project, test_dir=str(path.parent), overwrite=overwrite
        )
        with _printed() as printed:
            create_project(options)
        return Project(path, printed.getvalue())


@frozen
class Fits:
    """What a network takes of each chip."""

    chips: tuple[ChipFit, ...]

    def __str__(self) -> str:
        """Return the table of --fits."""
        from ai8xtools.commands.fits import as_table

        return as_table(self.chips)

    def json(self) -> Any:
        """Return what `--fits json` says."""
        from ai8xtools.commands.fits import as_json

        return json.loads(as_json(self.chips))

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


@frozen
class Placed:
    """A network with its places in the accelerator; `report` has all that is known of them."""

    report: Report

    def json(self) -> Any:
        """Return the JSON of --report."""
        from ai8xtools.synthesis.emit.report_json import report_json

        return json.loads(report_json(self.report))

    def page(self) -> str:
        """Return the page of --report (HTML)."""
        from ai8xtools.synthesis.emit.report import report_page

        return report_page(self.report)

    def _repr_html_(self) -> str:
        page = html.escape(self.page())
        return f'<iframe srcdoc="{page}" style="width: 100%; height: 600px; border: 0"></iframe>'


@frozen
class Project:
    """A project that was generated; `log` is what the tool printed."""

    folder: Path
    log: str = ""

    def emulate(self, inputs: ArrayLike | str | Path | None = None, **options: Any) -> Emulation:
        """Run the firmware: its own program, or its functions on each of `inputs`.

        `inputs` are integers from -128 to 127 [N, channels, rows, columns], or what `emulate.py
        --input` takes; the result has their outputs. `options` are those of `emulate.py`, as for
        `load`. Raises EmulatorError and UsageError.
        """
        from ai8xtools.commands.emulate.arguments import parse
        from ai8xtools.commands.emulate.data_set import run_on_data
        from ai8xtools.commands.emulate.emulate import emulate

        with tempfile.TemporaryDirectory() as scratch:
            if inputs is None or isinstance(inputs, str | Path):
                source = inputs
            else:
                source = Path(scratch, "inputs.npy")
                np.save(source, np.asarray(inputs))
            words = [str(self.folder), *_line({"input": source, **options})]
            chosen = _called(parse, words)
            with _printed() as printed:
                if source is None:
                    status, values = emulate(chosen), None
                else:
                    status, values = run_on_data(self.folder, chosen)
        return Emulation(not status, printed.getvalue(), values)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.log)}</pre>"


@frozen
class Emulation:
    """What an emulated project did: whether all was right, what was printed, and the outputs of the
    inputs [N, values], None if its own program ran."""

    passed: bool
    log: str
    values: NDArray[np.int64] | None = None

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.log)}</pre>"


def _line(options: dict[str, Any]) -> list[str]:
    """Return the words of a command line with these options."""
    words: list[str] = []
    for name, value in options.items():
        if value is None or value is False:
            continue
        words.append(f"--{name.replace('_', '-')}")
        if value is not True:
            words.append(str(value))
    return words


def _called(parse: Any, words: list[str]) -> Any:
    """Parse words as a tool does; what it complains of is raised."""
    with contextlib.redirect_stderr(io.StringIO()) as complaints:
        try:
            return parse(words)
        except SystemExit:
            raise UsageError(complaints.getvalue().strip()) from None


@contextlib.contextmanager
def _printed() -> Iterator[io.StringIO]:
    """Keep what is printed meanwhile."""
    with contextlib.redirect_stdout(io.StringIO()) as text:
        yield text
