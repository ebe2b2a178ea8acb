"""Reading words back: the files of the network that they compute, and what is said of it."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from ai8xtools.commands.decompile.attempts import Attempt, best_attempt, command_words
from ai8xtools.commands.decompile.files import network_files
from ai8xtools.commands.decompile.statements import picture, statements
from ai8xtools.commands.decompile.verdict import Computed, computed, describe_words
from ai8xtools.emulator import EmulatorError
from ai8xtools.emulator.state.memory import Memory
from ai8xtools.writing.folder import check_folder, write_project


def decompile(memory: Memory, name: str, folder: Path, *, sample: str) -> int:
    """Write description, checkpoint and sample of the network that an accelerator is loaded with.

    `sample` is where the input in memory comes from. Returns 0 if the loader makes the same words
    of the files. Raises EmulatorError: the folder exists (E891), the words have no description
    (E890), and as the emulator does; DiagnosticError as writing does.
    """
    if os.path.lexists(folder):
        raise EmulatorError("E891", "the folder exists already", str(folder), "Name another one.")
    check_folder(folder, overwrite=False)
    best = best_attempt(memory, name)
    if best.refusal is not None:
        first = next(d for d in best.refusal.diagnostics if d.severity.is_error)
        raise EmulatorError(
            "E890", f"no description expresses these words: {first.message}", None,
            "emulate.py still executes them.",
        )  # fmt: skip
    proof = computed(memory, best)
    if proof.wrong:
        raise EmulatorError("E890", f"no description was found: {proof.text}")
    candidate = best.candidate
    words = command_words(candidate, name, memory.chip.name, str(folder))
    command = shlex.join(["python", "ai8xize.py", *words])
    title = (
        f"{name} for {memory.chip.name}, read back by emulate.py --decompile; "
        f"{name}.txt tells how each part is known."
    )
    graph, reason = _graph(best)
    lines = [*map(str, statements(candidate, memory)), f"sample: {sample}",
            f"words from these files: {command}"]  # fmt: skip
    files = network_files(candidate, name, title)
    if graph is not None:
        files[f"{name}.onnx"] = graph
    lines += [f"graph: {reason}", "layers:", *picture(candidate)]
    files[f"{name}.txt"] = "\n".join([*lines, *_verdict(best, proof), ""]).encode()
    write_project(files, folder)
    for line in lines:
        print(line)
    print(f"Wrote {', '.join(files)} to {folder}")
    for line in _verdict(best, proof):
        print(line)
    return 0 if best.right else 1


def _graph(best: Attempt) -> tuple[bytes | None, str]:
    """Return the network as ONNX graph, and what is to be said of it."""
    from ai8xtools.commands.decompile.graph import NoGraphError, graph_bytes  # few need it

    assert best.result is not None
    rounding = "--avg-pool-rounding" in best.candidate.words
    try:
        graph = graph_bytes(best.result.network, average_rounding=rounding)
    except NoGraphError as error:
        return None, f"none, {error}"
    return graph, "as ONNX, whose result for the sample was compared"


def _verdict(best: Attempt, proof: Computed) -> list[str]:
    return [f"{proof.text[0].upper()}{proof.text[1:]}.", *describe_words(best)]
