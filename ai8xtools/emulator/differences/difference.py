"""A difference between two projects in words."""

from __future__ import annotations

from enum import Enum

from ai8xtools.values import frozen


class Subject(Enum):
    """What a difference is about; the values are for people, in the order of the report.

    `LAYERS` sum up what registers say, `FILES` change nothing that the chip does.
    """

    LAYERS = "layers"
    REGISTERS = "registers"
    KERNELS = "kernels"
    BIASES = "biases"
    INPUT = "input"
    ORDER = "order of writes"
    OUTPUT = "layout of the output"
    ANSWER = "known answer"
    BEHAVIOUR = "behaviour"
    UNEXPLAINED = "unexplained words"
    FILES = "files"

    @property
    def counts(self) -> bool:
        """Whether such a difference makes two projects different."""
        return {
            Subject.LAYERS: False, Subject.REGISTERS: True, Subject.KERNELS: True,
            Subject.BIASES: True, Subject.INPUT: True, Subject.ORDER: True, Subject.OUTPUT: True,
            Subject.ANSWER: True, Subject.BEHAVIOUR: True, Subject.UNEXPLAINED: True,
            Subject.FILES: False,
        }[self]  # fmt: skip


@frozen
class Difference:
    """One difference in words."""

    subject: Subject
    text: str


def numbers(name: str, values: list[int]) -> str:
    """Return `group 3`, or `groups 0, 1, 3`."""
    if len(values) == 1:
        return f"{name} {values[0]}"
    return f"{name}s {', '.join(map(str, values))}"
