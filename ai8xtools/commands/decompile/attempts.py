"""Trying descriptions until one gives the words that were found.

Registers do not say what the loader chooses by itself: where kernels and biases go, and what a
check refuses. Descriptions that leave it open come first, then those that fix it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from ai8xtools.commands.decompile.files import network_files
from ai8xtools.commands.decompile.network import Reconstruction, candidate_network, guesses
from ai8xtools.commands.decompile.words import Agreement, compare, memory_of
from ai8xtools.commands.loader.arguments import parse
from ai8xtools.diagnostics import Diagnostic, DiagnosticError
from ai8xtools.diagnostics.errors import reason_of
from ai8xtools.emulator import EmulatorError
from ai8xtools.emulator.decode.config import LayerConfig
from ai8xtools.emulator.state.memory import Memory
from ai8xtools.synthesis.layout import LayerLayout
from ai8xtools.synthesis.pipeline import Synthesis, synthesize
from ai8xtools.values import frozen
from device.chip import KERNEL_COLUMN_BYTES

_OVERLAPS = "E404"
_USUAL_INCREASE = 2
"""Words that streams wait for beyond what they need, unless an option says otherwise."""


@frozen(slots=False)
class Attempt:
    """A description with options, and what the loader makes of them: words, or a refusal."""

    candidate: Reconstruction
    agreement: Agreement | None
    result: Synthesis | None
    refusal: DiagnosticError | None

    @property
    def distance(self) -> tuple[bool, int]:
        """How far the words are from those that were found."""
        if self.agreement is None:
            return True, 0
        return False, len(self.agreement.departures)

    @property
    def right(self) -> bool:
        """Whether they are the same."""
        return self.agreement is not None and not self.agreement.departures


def best_attempt(memory: Memory, name: str) -> Attempt:
    """Return the description whose words are the most like those in memory.

    Raises EmulatorError as `candidate_network` if no guess leads to a network.
    """
    best: Attempt | None = None
    refusal: EmulatorError | None = None
    for guess in guesses(memory):
        try:
            other = _best_of(memory, candidate_network(memory, name, guess), name)
        except EmulatorError as error:
            refusal = refusal or error
            continue
        except (IndexError, ValueError) as error:
            text = f"registers contradict each other: {reason_of(error)}"
            refusal = refusal or EmulatorError("E890", text)
            continue
        if best is None or other.distance < best.distance:
            best = other
        if best.right:
            break
    if best is None:
        assert refusal is not None
        raise refusal
    return best


def _best_of(memory: Memory, candidate: Reconstruction, name: str) -> Attempt:
    """Return the best of the changes that what departs suggests."""
    best = attempt(memory, candidate, name)
    for change in _CHANGES:
        if best.right:
            break
        for changed in change(best, memory):
            other = attempt(memory, changed, name)
            if other.distance < best.distance:
                best = other
    return best


def attempt(memory: Memory, candidate: Reconstruction, name: str) -> Attempt:
    """Let the loader read the files of a network, and compare the words."""
    files = network_files(candidate, name, "")
    with tempfile.TemporaryDirectory() as folder:
        for file, content in files.items():
            Path(folder, file).write_bytes(content)
        words = command_words(candidate, name, memory.chip.name, folder)
        try:
            options = parse(words)
            result = synthesize(options.config_file, options.chip, options.resolve, options.encode)
        except DiagnosticError as refusal:
            return Attempt(candidate, None, None, refusal)
        except SystemExit:  # of the parser, which has said why
            wrong = Diagnostic("E890", f"options out of their range: {' '.join(candidate.words)}")
            return Attempt(candidate, None, None, DiagnosticError(wrong))
    agreement = compare(memory, memory_of(result.program, result.chip, options.encode.apb_base))
    return Attempt(candidate, agreement, result, None)


def command_words(candidate: Reconstruction, name: str, chip: str, folder: str) -> list[str]:
    """Return the words behind `ai8xize.py` that make a project of the files in a folder."""
    paths = (
        ("--config-file", f"{name}.yaml"),
        ("--checkpoint-file", f"{name}.pth.tar"),
        ("--sample-input", f"sample_{name}.npy"),
    )
    words = ["--device", chip, "--test-dir", folder, "--prefix", f"{name}-project"]
    for option, file in paths:
        words += [option, str(Path(folder, file))]
    return [*words, *candidate.words]


def _with_words(candidate: Reconstruction, *words: str) -> Reconstruction:
    return replace(candidate, words=(*candidate.words, *words))


def _with_layouts(
    candidate: Reconstruction, change: Callable[[int, LayerLayout], LayerLayout]
) -> Reconstruction:
    layers = {index: change(index, layout) for index, layout in candidate.layout.layers.items()}
    return replace(candidate, layout=replace(candidate.layout, layers=layers))


def _overlapping(best: Attempt, _memory: Memory) -> Iterator[Reconstruction]:
    """Outputs that overwrite what was not read: data may overlap."""
    refusal = best.refusal
    if refusal is not None and any(d.code == _OVERLAPS for d in refusal.diagnostics):
        yield _with_words(best.candidate, "--overlap-data")


def _kernels_elsewhere(best: Attempt, _memory: Memory) -> Iterator[Reconstruction]:
    """Kernels where the registers say, or written by the older loader."""
    if best.agreement is not None and not best.agreement.kinds["kernel"]:
        return
    yield _with_words(best.candidate, "--old-kernel-loader")
    columns = {
        one.layer.index: one.decoded.config.kernels.start // KERNEL_COLUMN_BYTES
        for one in best.candidate.layers
        if one.layer.weights is not None
    }
    fixed = _with_layouts(
        best.candidate, lambda index, layout: replace(layout, kernel_offset=columns.get(index))
    )
    yield fixed
    yield _with_words(fixed, "--no-deduplicate-weights")


def _biases_elsewhere(best: Attempt, _memory: Memory) -> Iterator[Reconstruction]:
    """Biases in the groups that the registers say: of all layers, or of those that depart."""
    if best.agreement is not None and not best.agreement.kinds["bias"]:
        return
    groups = {
        one.layer.index: tuple(
            group
            for group, offset in enumerate(one.decoded.config.output.bias_offsets)
            if offset is not None
        )
        for one in best.candidate.layers
        if one.layer.bias is not None and not one.layer.depthwise
    }
    yield _with_layouts(
        best.candidate, lambda index, layout: replace(layout, bias_groups=groups.get(index))
    )


def _streams_otherwise(best: Attempt, memory: Memory) -> Iterator[Reconstruction]:
    """Streams with the settings of the first layer's registers, or that wait for more data."""
    result = best.result
    if result is None or best.agreement is None or not best.agreement.kinds["register"]:
        return
    streams = [one.decoded.config for one in best.candidate.layers if one.layout.streaming]
    if not streams:
        return
    fields = [_stream_fields(memory, config) for config in streams]
    if streams[0] is best.candidate.layers[0].decoded.config:
        yield _with_words(best.candidate, *(
            word for option, value in fields[0].items()
            for word in (f"--override-{option}", str(value))
        ))  # fmt: skip
    later = [(one.layer.index, values) for one, values in zip(
        (one for one in best.candidate.layers if one.layout.streaming), fields, strict=True
    ) if one.layer.index]  # fmt: skip
    if later:
        index, values = later[0]
        own = result.placement.streams[index]
        more = {
            "start": values["start"] - own.start + _USUAL_INCREASE,
            "delta1": values["delta1"] - own.delta1,
            "delta2": values["delta2"] - own.delta2,
        }
        words = (w for name, n in more.items() for w in (f"--increase-{name}", str(n)))
        yield _with_words(best.candidate, *words)


def _stream_fields(memory: Memory, config: LayerConfig) -> dict[str, int]:
    read = partial(memory.register, config.layer, group=config.base_group)
    deltas = read("STREAM2")
    return {
        "start": read("STREAM1")["start"],
        "rollover": config.ring_words,
        "delta1": deltas["delta1"],
        "delta2": deltas["delta2"],
    }


_CHANGES = (_overlapping, _streams_otherwise, _kernels_elsewhere, _biases_elsewhere)
