"""A project as a library: the content of its public header.

Source: docs/library.md.
"""

from __future__ import annotations

from collections.abc import Sequence

from ai8xtools.software.emit.interface import Naming
from ai8xtools.software.plan.plan import Plan
from ai8xtools.writing.library import Library, LibraryOutput, Shape

_ALIGNMENT = 16


def library_of(
    plan: Plan, naming: Naming, title: str, shape: Shape, results: Sequence[Shape]
) -> Library:
    """Return the library of a plan, with the shapes that callers know, whatever tensors have."""
    tensors = plan.graph.tensors
    names = naming.outputs or ("",) * len(plan.outputs)
    outputs = [
        LibraryOutput(
            result,
            8 * tensors[one.tensor].bytes_per_value,
            one.offset,
            result.channels,
            exponent,
            name,
        )
        for one, result, exponent, name in zip(
            plan.outputs, results, naming.exponents, names, strict=True
        )
    ]
    size = sum(tensors[one.tensor].size_bytes for one in plan.outputs)
    return Library(naming.prefix, title, shape, tuple(outputs), size, naming.classes,
                   naming.fraction)  # fmt: skip


def library_bytes(plan: Plan) -> int:
    """Return the bytes of the data of a plan with the input behind them."""
    return _input_at(plan) + plan.graph.tensors[plan.graph.input].size_bytes


def _input_at(plan: Plan) -> int:
    return -(-plan.arena_bytes // _ALIGNMENT) * _ALIGNMENT


def library_files(library: Library, plan: Plan, files: dict[str, str]) -> dict[str, str]:
    """Return the files of a library."""
    return library.files(
        "software",
        files,
        input_at=_input_at(plan),
        arena_bytes=library_bytes(plan),
        keeps=plan.graph.kept is not None,
    )
