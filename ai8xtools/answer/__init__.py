"""The answer file of a project: the words it writes to the accelerator, and each layer's output.

ai8xize.py writes it beside the sources, emulate.py reads it. Words and layers are kept as hashes
where they are many; a hash of 16 words still tells which one of them is wrong, and what it should
be. The room knows neither networks nor how words come about.
"""

from ai8xtools.answer.archive import read_answer, write_answer
from ai8xtools.answer.content import (
    PHASES,
    Answer,
    HashedWords,
    LayerAnswer,
    LayerForm,
    Registers,
    StoredBiases,
)
from ai8xtools.answer.errors import AnswerError

FILE_NAME = "answer.npz"

__all__ = [
    "FILE_NAME",
    "PHASES",
    "Answer",
    "AnswerError",
    "HashedWords",
    "LayerAnswer",
    "LayerForm",
    "Registers",
    "StoredBiases",
    "read_answer",
    "write_answer",
]
