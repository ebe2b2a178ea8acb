"""From integers of 16 or 8 bits to a project for a microcontroller.

`build_qformat(stored, profile)` is all that a program needs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ai8xtools.diagnostics import Diagnostic, DiagnosticError, Place
from ai8xtools.quantization.formats import Int64s
from ai8xtools.quantization.q15.execute import execute
from ai8xtools.quantization.q15.file import StoredNetwork
from ai8xtools.quantization.q15.network import QuantizedNetwork
from ai8xtools.software.build import first_fitting, flash_problems, memory_problems, schemes_of
from ai8xtools.software.cmsis.tree import read_library
from ai8xtools.software.emit.built import Built, Need
from ai8xtools.software.emit.interface import Library
from ai8xtools.software.emit.text import amount
from ai8xtools.software.plan.plan import NoRoomError
from ai8xtools.software.plan.schemes import Scheme
from ai8xtools.software.profile import Profile
from ai8xtools.software.q15.calls import Program, program
from ai8xtools.software.q15.emit import (
    COLUMN_MAJOR,
    ROW_MAJOR,
    Sample,
    emit,
    flash_bytes,
    interface_of,
)
from ai8xtools.values import frozen

CODE_BYTES, STACK_BYTES = 6144, 512
"""Of the kernels and the calls at -O3 and of their stack, the most of the cores: estimates."""
_GROUPS_CODE, _GROUPS_STACK = 1024, 128
"""Of the function of groups, besides."""
_ASKING_BYTES, _COUNTER_BYTES = 48, 2
"""Stack of a step that asks another for rows, and the counter of its own."""


@frozen(slots=False, kw_only=True)
class QformatBuilt(Built):
    """A project, and what its steps call."""

    program: Program


def build_qformat(
    stored: StoredNetwork,
    profile: Profile,
    scheme: str = "auto",
    *,
    sample: Int64s | None = None,
    library: str | None = None,
    interleaving: bool = False,
    name: str = "network",
    command_line: str = "",
) -> QformatBuilt:
    """Return the project of a network for a microcontroller; `scheme` is a word of --scheme.

    `sample` [row, column, channel] takes the place of the stored one; `library` is a folder with a
    copy of CMSIS 5, without one all functions are ours. With `interleaving` fully connected layers
    take the weights of `_opt`. Raises DiagnosticError if the network does not fit (E905) or
    the copy is of no use (E940 to E943, E901).
    """
    network = stored.network
    built = planned(network, profile, scheme, library=library, interleaving=interleaving)
    data = stored.sample if sample is None else sample
    target = network.graph.output
    output = execute(network, data[None], wanted=(target,))[target][0]
    order = COLUMN_MAJOR if stored.column_major else ROW_MAJOR
    files = emit(network, Sample(data, output), name, command_line, profile.core.name, order,
                 built.interface, interleaving=interleaving, code=built.program)  # fmt: skip
    return replace(built, files=files)


def planned(
    network: QuantizedNetwork,
    profile: Profile,
    scheme: str = "auto",
    *,
    library: str | None = None,
    interleaving: bool = False,
) -> QformatBuilt:
    """Return the project of a network without its files; raises as `build_qformat` does."""
    programs = (
        program(network, word, profile.core, library=library is not None,
                interleaving=interleaving)
        for word in (schemes_of(scheme) if library is None else (Scheme.RESIDENT,))
    )  # fmt: skip
    built = first_fitting(
        (QformatBuilt(code.plan, need_of(network, code, profile), program=code)
         for code in programs), profile,
    )  # fmt: skip
    problems = [
        *memory_problems(built.need, profile, built.plan.name, built.plan.blocks),
        *flash_problems(built.need, profile, _weight_bytes(network)),
    ]
    if problems:
        raise NoRoomError(problems)
    copy = None if library is None else _library(network, built.program, library)
    return replace(built, interface=interface_of(copy))


def need_of(network: QuantizedNetwork, code: Program, profile: Profile) -> Need:
    """Return what a network takes; input and output stand in memory of the caller."""
    longest = max(task.count for task in code.plan.tasks)
    groups = any(one.body == "groups" for one in code.functions)
    own = STACK_BYTES + _GROUPS_STACK * groups + _ASKING_BYTES * (longest - 1)
    stack = max(profile.stack, own)
    counters = _COUNTER_BYTES * len(code.row_steps)
    code_bytes = CODE_BYTES + _GROUPS_CODE * groups
    return Need(code.plan.arena_bytes, counters, stack, flash_bytes(network), code_bytes)


def _weight_bytes(network: QuantizedNetwork) -> dict[str, int]:
    return {
        step.name: network.layers[step.target].weights.size * network.bits // 8
        for step in network.graph.steps
        if step.target in network.layers
    }


def _library(network: QuantizedNetwork, code: Program, folder: str) -> Library:
    """Return what the project takes of a copy of CMSIS 5."""
    worst = max((layer.formats.bound for layer in network.layers.values()), default=0)
    if network.guard.wraps and worst >= 1 << 31:
        raise DiagnosticError(
            Diagnostic("E901", "sums of this network may leave 32 bits, which Arm's functions do "
                       "not define", Place(option="--cmsis-nn"),
                       "Quantize with --acc-guard worst, or leave --cmsis-nn out.")
        )  # fmt: skip
    return read_library(folder, [name for one in code.functions for name in one.library])


def plan_text(built: QformatBuilt, network: QuantizedNetwork, profile: Profile) -> str:
    """Return what runs in which order, where everything stands and what it takes."""
    return "\n".join(_lines(built, network, profile))


def _lines(built: QformatBuilt, network: QuantizedNetwork, profile: Profile) -> Iterator[str]:
    graph, code, need = network.graph, built.program, built.need
    yield f"Plan: {code.plan.name}, {len(graph.steps)} steps, {graph.macs:,} MACs"
    for step, call in zip(code.steps, code.calls, strict=True):
        channels, rows, columns = graph.shapes[step.target]
        functions = ", ".join(one.name for one in call.functions)
        yield f"  {step.name:32} {f'{rows}x{columns}x{channels}':>14}  {functions}"
    yield f"Memory: {code.plan.arena_bytes:,} bytes"
    yield f"  {'offset':>8} {'bytes':>8}  {'steps':>9}  of"
    for block in sorted(code.plan.blocks, key=lambda one: (one.offset, one.first)):
        lives = f"{block.first}..{block.last}"
        yield f"  {block.offset:8} {block.size:8}  {lives:>9}  {block.name}"
    yield (
        f"RAM: {amount(need.ram, profile.l1)} bytes: {need.arena:,} of memory above, "
        f"{need.stack:,} kept for the stack"
    )
    yield (
        f"Flash: {amount(need.flash, profile.flash)} bytes: {need.weights:,} of weights, about "
        f"{need.code:,} of code"
    )
