"""`make measure WHAT=arrange-table`: every network with places by hand, arranged without them.

Each description is stripped of all places, arranged, generated, and executed on the emulated chip;
all words of the expected output are compared, and the output with that of the description by hand.
With --models the networks of networks/ are made from their models alone.
Cycles are those of the latency estimate, which both chips share. Time is processor time of the
stage alone.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from unittest import mock

import numpy as np

from ai8xtools.diagnostics import DiagnosticError
from ai8xtools.diagnostics.errors import ToolError
from ai8xtools.synthesis.arrange import arranging
from ai8xtools.synthesis.options import EncodeOptions, PlaceOptions, SummaryOptions
from ai8xtools.synthesis.pipeline import Synthesis, synthesize
from ai8xtools.synthesis.summarize.latency import latency_terms
from tests.arranging.cases import Case, default_kat, own_cases, vendor_cases
from tests.synthesis.emulated import emulated


@dataclass(frozen=True)
class Row:
    """What became of a network; `failure` is empty if it was arranged and verified."""

    name: str
    seconds: float
    cycles: int = 0
    by_hand: int = 0
    columns: int = 0
    words: int = 0
    mode: str = ""
    layers: int = 0
    failure: str = ""

    @property
    def ratio(self) -> float:
        """Cycles as a part of those by hand."""
        return self.cycles / self.by_hand if self.by_hand else 0.0

    def __str__(self) -> str:
        if self.failure:
            return f"{self.name:36} FAILED {self.failure}"
        return (
            f"{self.name:36} {self.cycles:>8} {self.ratio:7.4f} {self.columns:>5} {self.words:>6} "
            f"{self.seconds:6.3f} {self.layers:>3} {self.mode}"
        )


def cycles(result: Synthesis) -> int:
    """Return the estimated cycles of a network, start included."""
    total = 1
    for layer in result.mapped.executed():
        count = latency_terms(layer, result.placement.kernels[layer.index]).total
        total += (15 * count + 9) // 10 if layer.streaming else count
    return total


def row(case: Case, folder: Path, models: bool) -> Row:
    """Arrange a network and execute it; with `models` what it computes comes from the model."""
    encode, checked = (
        EncodeOptions(PlaceOptions(overlap_data=True)),
        EncodeOptions(telling=SummaryOptions(cross_check=True)),
    )
    hand = synthesize(case.description, case.chip, case.by_hand, encode)
    path = folder / "stripped.yaml"
    try:
        path.write_text(case.from_model() if models else case.stripped())
    except ToolError as refusal:
        return Row(case.name, 0.0, failure=refusal.message)
    seconds = [0.0]
    stage = arranging.arrange

    def timed(*given: object) -> object:
        begin = time.process_time()
        try:
            return stage(*given)  # type: ignore[arg-type]
        finally:
            seconds[0] += time.process_time() - begin

    try:
        with mock.patch.object(arranging, "arrange", timed):
            made = synthesize(str(path), case.chip, case.left_open, checked)
    except DiagnosticError as refusal:
        return Row(case.name, seconds[0], failure=str(refusal).splitlines()[0])
    run = emulated(made.program)
    failure = f"{len(run.wrong)} words differ" if run.wrong else "; ".join(map(str, run.run.errors))
    for one, other in zip(hand.network.outputs(), made.network.outputs(), strict=True):
        a, b = hand.activations.outputs[one.index], made.activations.outputs[other.index]
        if not np.array_equal(a, b):
            failure = "computes something else than the description by hand"
    return Row(
        case.name, seconds[0], cycles(made), cycles(hand),
        max((k.first + k.length for k in made.placement.kernels.values()), default=0),
        _words(made), _mode(made), len(made.network.layers), failure,
    )  # fmt: skip


def _words(made: Synthesis) -> int:
    """Return the words of an instance up to the highest that a layer writes without streaming."""
    ends = []
    for layer in made.mapped.executed():
        if not layer.streaming:
            pixels = layer.out_dim[0] * layer.out_dim[1] * layer.out_passes
            step = (layer.write_gap + 1) * layer.output_words_per_value
            ends.append(layer.out_offset // 4 + pixels * step - layer.write_gap)
    return max(ends)


def _mode(made: Synthesis) -> str:
    """Return how the sample arrives, as the chapter of the vendor's tool abbreviates it."""
    layout = made.placement.layout
    streaming = sum(bool(x.streaming) for x in layout.layers.values())
    planar = layout.layers[made.network.first.index].channels_first
    over = sum(bool(x.in_place) for x in layout.layers.values())
    mode = f"F{streaming}" if layout.input_port.is_fifo else "C" if planar else "H"
    return mode + (f"i{over}" if over else "")


def cases(folder: Path, kat: Path, models: bool) -> Iterator[Case]:
    """Yield all networks, or those of which there are models."""
    yield from own_cases(folder)
    if not models:
        yield from vendor_cases(folder, kat)


def main() -> int:
    """Print the table; return 1 if a network is not arranged, wrong, or slower than by hand."""
    parser = argparse.ArgumentParser(prog="make measure WHAT=arrange-table", description=__doc__)
    parser.add_argument("globs", nargs="*", default=["*"], help="names of networks")
    parser.add_argument("--kat", type=Path, default=default_kat())
    parser.add_argument("--folder", type=Path, help="keeps weights from one run to the next")
    parser.add_argument("--models", action="store_true", help="networks/ from the models alone")
    args = parser.parse_args()
    print(f"{'network':36}   cycles   ratio  cols  words  CPU s layers mode")
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.folder or Path(temporary)
        for case in cases(folder, args.kat, args.models):
            if any(fnmatch(case.name, glob) for glob in args.globs):
                rows.append(row(case, folder, args.models))
                print(rows[-1], flush=True)
    if not rows:
        return 1
    good = [r for r in rows if not r.failure]
    slow = [r for r in good if r.ratio > 1]
    seconds = [r.seconds for r in rows]
    print(
        f"{len(good)} of {len(rows)} arranged and verified, {len(slow)} slower than by hand; "
        f"search median {statistics.median(seconds):.3f} s, worst {max(seconds):.3f} s"
    )
    return int(len(good) < len(rows) or bool(slow))


if __name__ == "__main__":
    sys.exit(main())
