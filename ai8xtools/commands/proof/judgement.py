"""Whether a loaded accelerator computes a network for every input."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ai8xtools.commands.proof.comparison import Question, compare
from ai8xtools.commands.proof.counterexample import Counterexample, counterexample
from ai8xtools.commands.proof.reference import Reference
from ai8xtools.emulator import Accelerator, EmulatorError, LayerFinding
from ai8xtools.emulator.machine.batch import NetworkBatch
from ai8xtools.emulator.state.memory import Memory
from ai8xtools.values import frozen

Integers = NDArray[np.int64]


@frozen
class Judgement:
    """A network is computed for every input if there are no `reasons` against it.

    `example` is an input for which it is not, `findings` are what the emulator finds suspicious,
    `notes` tell what is not judged.
    """

    reasons: tuple[str, ...]
    notes: tuple[str, ...]
    example: Counterexample | None
    place: str
    findings: tuple[LayerFinding, ...]

    @property
    def proven(self) -> bool:
        """Whether the network is computed for every input."""
        return not self.reasons and self.example is None and not self.findings


def judge(
    reference: Reference,
    memory: Memory,
    places: tuple[Integers, Integers],
    *,
    has_sample: bool,
    own_sample: bool = True,
    alone: bool = True,
) -> Judgement:
    """Compare a network with an accelerator whose `memory` holds all that is written before it is
    started, and at `places` afterwards the bytes of the result, instances and offsets.

    With `has_sample` a sample is in the memory, too: that of the network, or without `own_sample`
    perhaps another one. Unless the network is `alone`, others use data memory. Raises
    EmulatorError if the accelerator cannot run.
    """
    accelerator = Accelerator(memory.chip, memory.addresses.apb_base)
    accelerator.memory = memory.snapshot()
    run = accelerator.run()
    findings = tuple(finding for finding in run.findings if not (finding.harmless or finding.flow))
    data = accelerator.memory.data_bytes
    actual = data[places[0], places[1] % data.shape[1]]
    accelerator.memory = memory
    reasons: list[str] = []
    notes: list[str] = []
    question, orders, wrong = None, reference.usual_orders, True
    try:
        question = Question(reference, NetworkBatch(accelerator, places), memory, alone)
        if has_sample:
            difference = _of_sample(question)
            if own_sample:
                reasons += difference
            elif difference:
                has_sample = False
                notes.append(f"how the program loads its input is not judged: {difference[0]}")
        comparison = compare(question)
        orders = comparison.orders
        if comparison.missing:
            reasons.append(comparison.missing)
        elif len(comparison.wrong):
            reasons.append(f"cnn_unload() delivers another value as byte {comparison.wrong[0]}")
        wrong = len(comparison.wrong) > 0
    except EmulatorError as error:
        reasons.append(error.message)
    example = None
    if has_sample and question is not None:
        sample = reference.network.sample
        expected = reference.result(reference.outputs_for(sample), orders)
        example = Counterexample.of(sample, "the sample", expected, actual)
    if example is None and question is not None and wrong:
        example = counterexample(question, orders)
    place = "" if example is None else reference.place(example.byte, orders)
    return Judgement(tuple(reasons), tuple(notes), example, place, findings)


def _of_sample(question: Question) -> list[str]:
    """Return why the sample is not loaded as it stands in the network, if that is so."""
    loaded = question.loaded
    placed = question.placed(question.reference.network.sample, loaded)
    wrong = np.argwhere(placed != loaded)
    if not len(wrong):
        return []
    channel, row, column = wrong[0].tolist()
    return [
        f"the first layer does not read the sample of {question.reference.name}: channel "
        f"{channel}, row {row}, column {column} is {loaded[tuple(wrong[0])]}, "
        f"not {placed[tuple(wrong[0])]}"
    ]
