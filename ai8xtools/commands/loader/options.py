"""What a command line of ai8xize.py asks for, as one value."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ai8xtools.values import frozen
from ai8xtools.values.accuracy import Measured

if TYPE_CHECKING:
    from ai8xtools.diagnostics import Diagnostic
    from ai8xtools.frontends.layers import Refusal
    from ai8xtools.synthesis.emit import ProjectOptions
    from ai8xtools.synthesis.emit.rtl import RtlOptions
    from ai8xtools.synthesis.options import EncodeOptions, ResolveOptions
    from ai8xtools.synthesis.parse import Source
    from ai8xtools.synthesis.residents import Resident
    from device import Chip


@frozen
class Output:
    """Outputs besides the project, and what the tool does in its place.

    `report` is the file of the page of --report. `check_only` ends after the checks, `verify` runs
    the project's functions in the emulator, `prove` shows that they compute the network for every
    input, `checkpoint_table` prints the tensors first, `fits`
    prints what the network takes of every chip, as "table" or "json", and nothing else.
    `configuration` is the file of the complete description.
    `verify_project` and `compare_project` are folders of a project that is compared, word by word
    or in words for people; nothing is written then. `strict` refuses what is known not to work.
    """

    report: str | None = None
    check_only: bool = False
    verify: bool = False
    prove: bool = False
    checkpoint_table: bool = False
    verify_project: str | None = None
    compare_project: str | None = None
    configuration: str | None = None
    strict: bool = False
    fits: str | None = None

    @property
    def existing(self) -> str | None:
        """The folder of a project that is compared."""
        return self.verify_project or self.compare_project


@frozen
class ModelSource:
    """A model in place of a description: a name of models/ or FILE:CLASS.

    `dataset` tells its input and classes, `input_shape` [C, H, W] or [C, L] its input, of which a
    network of several frames takes `frames`. `data_entry` is the data set that a checkpoint tells.
    `left` are nodes behind the last layer, which the application computes. `prove` compares the
    network with the graph that it was made of; `doubts` say why it may depart.
    """

    model: str
    dataset: str | None = None
    input_shape: tuple[int, ...] | None = None
    frames: int | None = None
    data_entry: Any = None
    left: tuple[str, ...] = ()
    prove: bool = True
    doubts: tuple[Refusal, ...] = ()

    @property
    def is_graph(self) -> bool:
        """Whether it is an ONNX graph."""
        return self.model.lower().endswith(".onnx")


@frozen
class LoaderOptions:
    """A network description with the options of each stage.

    `model` is what the description has to be made from first, in place of `config_file`.

    `resolve` changes the network, `encode` the words, `project` only the text. `rtl` is how a test
    for RTL simulation is written; without it an embedded project is made. `usage` are the
    complaints about options that mean nothing beside others. `test_dir` is the folder in which the
    project's is created, with further `files` (name, content); one that exists is replaced with
    `overwrite` only. `silencing` are the options given that keep some messages from being shown.
    `also` are folders of projects beside whose networks, the `residents`, this one is loaded.
    `accuracy` is what training measured on test samples, if it did; `doubt` is a sentence about a
    network that is hardly better than chance, to be said last.
    """

    config_file: Source
    chip: Chip
    test_dir: str
    resolve: ResolveOptions
    encode: EncodeOptions
    project: ProjectOptions
    model: ModelSource | None = None
    rtl: RtlOptions | None = None
    usage: tuple[Diagnostic, ...] = ()
    overwrite: bool = False
    files: tuple[tuple[str, bytes], ...] = ()
    output: Output = Output()
    silencing: frozenset[str] = frozenset()
    also: tuple[str, ...] = ()
    residents: tuple[Resident, ...] = ()
    accuracy: Measured | None = None
    doubt: str | None = None

    @property
    def folder(self) -> Path:
        """The folder of the embedded project."""
        return Path(self.project.folder)

    @property
    def description_name(self) -> str:
        """The name of the file with the description, or what stands for it."""
        described = self.config_file
        return Path(described).name if isinstance(described, str) else str(described)

    def visible(self, diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
        """Leave out what the user asked not to be told."""
        return [d for d in diagnostics if d.effects.silenced_by not in self.silencing]

    @property
    def text(self) -> ProjectOptions:
        """The options of all texts; those of a test for RTL simulation differ."""
        return self.project if self.rtl is None else self.rtl.project


def inputs(options: LoaderOptions) -> list[str | None]:
    """Return the files that are read."""
    chosen = options.resolve
    described = options.config_file if isinstance(options.config_file, str) else None
    sources = (chosen.checkpoint_file, chosen.sample_input, chosen.weight_input, chosen.bias_input)
    return [described, *sources]
