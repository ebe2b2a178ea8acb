"""How accurate a network of the user's own data was at the end of its training.

Source: docs/own-data.md, "How good it is".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ai8xtools.commands.outcome import accuracy_facts
from ai8xtools.diagnostics import note
from ai8xtools.quantization import QuantizationOptions
from ai8xtools.values.accuracy import doubt_of
from datasets.own.record import recorded_of


def accuracy_lines(
    extras: Mapping[str, Any], path: str, options: QuantizationOptions
) -> Iterator[str]:
    """Yield lines on the accuracy that training has measured, if the checkpoint holds it.

    Training measures the integers that quantize.py makes without options.
    """
    recorded = recorded_of(extras, path)
    if recorded is None or recorded.accuracy is None:
        return
    those = "These integers" if options == QuantizationOptions() else "The integers of training"
    measured = recorded.accuracy
    note(accuracy=accuracy_facts(measured))
    yield f"{those} have an {measured.title} of {measured} on the test samples"
    doubt = doubt_of(measured)
    if doubt is not None:
        yield doubt
