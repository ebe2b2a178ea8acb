"""Whether a description computes what the words do, and gives the same words."""

from __future__ import annotations

from ai8xtools.commands.decompile.attempts import Attempt
from ai8xtools.commands.proof.delivered import delivered
from ai8xtools.commands.proof.judgement import judge
from ai8xtools.commands.proof.reference import Reference
from ai8xtools.emulator.errors import EmulatorError
from ai8xtools.emulator.firmware.repeated import data_places
from ai8xtools.emulator.state.memory import Memory
from ai8xtools.values import frozen

_SHOWN = 5


@frozen
class Computed:
    """Whether words compute the network that was found: proven, refuted (`wrong`) or neither."""

    text: str
    proven: bool
    wrong: bool


def computed(memory: Memory, best: Attempt) -> Computed:
    """Prove that the words compute the network of the description for every input."""
    assert best.result is not None
    rounding = bool(memory.control_register("CTL")["average_rounding"])
    reference = Reference.of("", best.result.network, average_rounding=rounding)
    addresses = delivered(best.result.program)
    places = data_places(memory, addresses - memory.addresses.apb_base)
    try:
        judgement = judge(reference, memory.snapshot(), places, has_sample=True)
    except EmulatorError as error:
        return Computed(f"not proven: {error.message}", False, False)
    if judgement.proven:
        return Computed("the words compute the network of the description for every input",
                        True, False)  # fmt: skip
    reasons = [*judgement.reasons, *map(str, judgement.findings)]
    if judgement.example is not None:
        return Computed(f"the words compute something else: {'; '.join(reasons[:1])}", False, True)
    return Computed(f"not proven: {'; '.join(reasons[:1])}", False, False)


def describe_words(best: Attempt) -> list[str]:
    """Return lines that tell how the words agree; the last one is the verdict."""
    agreement = best.agreement
    assert agreement is not None
    shown = [str(one) for one in agreement.departures[:_SHOWN]]
    more = len(agreement.departures) - len(shown)
    lines = [*shown, *([f"... and {more} more"] if more > 0 else [])]
    right = max(agreement.words - len(agreement.departures), 0)
    if not agreement.departures:
        return [f"the same words: {agreement.words} of {agreement.words}"]
    kinds = ", ".join(f"{count} of {kind}" for kind, count in sorted(agreement.kinds.items()))
    return [*lines, f"other words: {right} of {agreement.words} are the same; depart: {kinds}"]
