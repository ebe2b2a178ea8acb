"""Reads a header and samples, proves and writes the C of a low-bit network."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ai8xtools.checkpoint.atomic import refuse_other_than_file
from ai8xtools.commands.deliver import Folder, deliver
from ai8xtools.commands.loader.pages import report_files, write_pages
from ai8xtools.commands.lowbit.arguments.loader import LowBitOptions
from ai8xtools.commands.outcome import memory_facts
from ai8xtools.diagnostics import Diagnostic, DiagnosticError, Place, note, refuse_errors, refused
from ai8xtools.quantization.lowbit import packed_inputs
from ai8xtools.reading.npy import NpyError, read_array
from ai8xtools.software.lowbit.emit import Samples, beside, dense_layers, emit, sizes
from ai8xtools.software.lowbit.engine import Run, run
from ai8xtools.software.lowbit.header import read_header
from ai8xtools.software.lowbit.network import LowBitNetwork
from ai8xtools.software.profile import Profile, read_profile
from ai8xtools.writing.packages import STACK_OF_TEST, Package, unsuitable


def create_lowbit(options: LowBitOptions) -> int:
    """Write the project; return the exit status. Raises DiagnosticError."""
    refuse_errors([*unsuitable(options.build, options.name)])
    profile = None if options.mcu is None else read_profile(options.mcu)
    paths = () if options.report is None else report_files(options.report)
    for path in paths:
        refuse_other_than_file(path)
    folder = Folder(
        options.folder,
        options.overwrite,
        (options.header, options.sample, options.labels, options.mcu),
        tuple(("--report", str(path)) for path in paths),
    )
    folder.check_beside()
    folder.check()
    network = read_header(options.header)
    if options.floor:
        network = _without_rounding(network)
    samples = Samples(_inputs(options.sample, network), _labels(options.labels, network))
    if samples.labels is not None and len(samples.labels) != len(samples.inputs):
        raise _refusal(
            options.labels or "",
            f"it has {len(samples.labels)} labels for {len(samples.inputs)} samples",
        )
    files = emit(network, samples, options.command_line, options.compress)
    flash, ram = sizes(network, options.compress)
    code, stack = beside(network, options.compress)
    needs = (("flash", flash + code), ("RAM", ram + stack))
    problems = [] if profile is None else profile.exceeded(flash + code, ram + stack)
    result = run(network, samples.inputs)
    if problems:
        _write_report(options, network, result, needs, profile, problems)
        raise DiagnosticError(problems)
    classes = result.classes
    files |= Package(options.name, "lowbit.h", stack + STACK_OF_TEST).files(options.build, files)
    written = deliver(files, folder)
    taken = {"RAM": ram + stack, "flash": flash + code}
    facts = memory_facts({name: (size, None) for name, size in taken.items()})
    note(subject=folder.path.name, memory=facts)
    _write_report(options, network, result, needs, profile)
    packed = f" (packed: {sizes(network)[0]:,})" if options.compress else ""
    print(f"Weights: {flash:,}{packed} bytes of flash; sums and activations: {ram:,} bytes of RAM")
    for line in dict.fromkeys(_filled(network)):
        print(line)
    print(f"Classes of the samples: {', '.join(map(str, classes[:16].tolist()))}"
          f"{', ...' if len(classes) > 16 else ''}")  # fmt: skip
    print(f"Wrote {written}")
    return 0


def _filled(network: LowBitNetwork) -> Iterator[str]:
    """Yield which rows of weights are longer than their inputs."""
    for layer in dense_layers(network):
        filled = packed_inputs(layer.inputs, layer.encoding) - layer.inputs
        if filled:
            yield (f"L{layer.identifier}: {layer.inputs} inputs; each row is filled up with "
                   f"{filled} codes to whole words")  # fmt: skip


def _without_rounding(network: LowBitNetwork) -> LowBitNetwork:
    """Return a network whose sums are shifted without adding half before."""
    rules = (network.rule, network.window_rule)
    one, other = (replace(rule, rounds=rule.rounds and rule.kind != "shift") for rule in rules)
    return replace(network, rule=one, window_rule=other)


def _write_report(
    options: LowBitOptions,
    network: LowBitNetwork,
    result: Run,
    needs: tuple[tuple[str, int], ...],
    profile: Profile | None,
    problems: Sequence[Diagnostic] = (),
) -> None:
    """Write the page and its twin, if wanted."""
    if options.report is None:
        return
    from ai8xtools.commands.lowbit.page import page_of  # few ask for it

    write_pages(options.report, *page_of(options, network, result, needs, profile, problems))


def _inputs(path: str, network: LowBitNetwork) -> NDArray[np.int8]:
    values = _integers(path)
    inputs = values.reshape(1, -1) if values.ndim <= 1 else values.reshape(len(values), -1)
    if inputs.shape[1] != network.inputs and inputs.size == network.inputs:
        inputs = inputs.reshape(1, -1)
    if not inputs.size or inputs.shape[1] != network.inputs:
        raise _refusal(path, f"the samples have {inputs.shape[1]} values, the network takes "
                       f"{network.inputs}")  # fmt: skip
    if inputs.min() < -128 or inputs.max() > 127:
        raise _refusal(path, f"values reach from {inputs.min()} to {inputs.max()}, the limits are "
                       "-128 and 127")  # fmt: skip
    return inputs.astype(np.int8)


def _labels(path: str | None, network: LowBitNetwork) -> tuple[int, ...] | None:
    if path is None:
        return None
    labels = _integers(path).reshape(-1)
    if labels.size and not 0 <= labels.min() <= labels.max() < network.classes:
        raise _refusal(path, f"labels reach from {labels.min()} to {labels.max()}, the network has "
                       f"{network.classes} classes")  # fmt: skip
    return tuple(labels.tolist())


def _integers(path: str) -> NDArray[np.int64]:
    try:
        array = read_array(path)
    except NpyError as exc:
        raise _refusal(path, f"not a NumPy array: {exc}") from None
    if array.dtype.kind not in "iu":
        raise _refusal(path, f"it holds {array.dtype}, not integers")
    return array.astype(np.int64)


def _refusal(path: str, message: str) -> DiagnosticError:
    return refused("E863", message, Place(path), "docs/low-bit.md tells how samples are made.")
