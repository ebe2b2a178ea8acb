"""A tiny network for each operator: microcontrollers and Q15 compute what PyTorch does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from ai8xtools.checkpoint import read_checkpoint
from ai8xtools.commands.q15.network import graph_of
from ai8xtools.commands.targets import main
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.frontends.graph import passes
from ai8xtools.frontends.graph.tail import without_shares
from ai8xtools.frontends.modules.door import read_module
from ai8xtools.quantization.formats import to_fixed
from ai8xtools.quantization.integers import BITS, WIDE, measured
from ai8xtools.quantization.operators import PASSES, quantized
from ai8xtools.quantization.q15.floating import compute
from ai8xtools.software.operators.execute import execute
from ai8xtools.software.operators.lower import Lowering
from ai8xtools.software.operators.storage import laid
from tests.software.each_operator import GROUPS, PAGE, ROADS, network_of, rows_of, words_of

OFF = {BITS: 0.15, WIDE: 0.03}
"""Largest error relative to results: of 8 bits one is a step, of 15 bits tables have 8."""


@pytest.mark.parametrize("group", GROUPS)
def test_operators_are_computed_as_torch_does(group: str) -> None:
    """`make measure WHAT=each-operator` brings them to every target and runs the C."""
    for number, name in enumerate(GROUPS[group]):
        model, samples = network_of(group, name)
        read = read_module(model, samples[:1])
        operators, _ = without_shares(passes.improved(read, PASSES))
        arrays = [*samples[:2, None].double().numpy()]
        bits = WIDE if number % 3 == 0 else BITS
        whole = quantized(operators, measured(operators, arrays), bits)
        lowering = Lowering(whole.graph, "net")
        assert lowering.refusals == [], name
        given = to_fixed(arrays[0], whole.fraction, BITS)
        found = execute(lowering.graph(), laid(given))
        wanted = passes.results(whole.graph, given.astype(float))
        with torch.no_grad():
            exact = model(samples[:1])
        exact = exact if isinstance(exact, tuple) else (exact,)
        if "softmax at" in group:
            exact = [np.asarray(one) for one in passes.results(operators, arrays[0])]
        results = zip(found, wanted, whole.fractions, exact, strict=True)
        for ours, integers, fraction, reference in results:
            assert np.array_equal(ours, np.ravel(laid(np.asarray(integers)))), name
            error = np.ravel(np.ldexp(integers, -fraction)) - np.ravel(reference)
            assert np.linalg.norm(error) < OFF[bits] * np.linalg.norm(reference), (name, bits)
        try:
            graph, _ = graph_of(read, "net")
        except InputError as refusal:
            assert refusal.code == "E670", name
            continue
        maps = compute(graph, arrays[0].reshape(1, *graph.shapes[0]))
        np.testing.assert_allclose(maps[graph.output].ravel(), np.ravel(exact[0]), atol=1e-5)


class Zeros(torch.nn.Module):
    """Sums of which some have no weight but 0."""

    def __init__(self) -> None:
        super().__init__()
        self.some, self.none = (torch.nn.Linear(4, 3, bias=False) for _ in range(2))
        torch.nn.init.zeros_(self.none.weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.some(x) + self.none(torch.relu(self.some(x)) @ torch.ones(3, 4))


@pytest.mark.parametrize("bits", [BITS, WIDE])
def test_weights_may_all_be_zero(bits: int) -> None:
    model, sample = Zeros(), np.linspace(-1, 0.9, 4)[None]
    operators = passes.improved(read_module(model, torch.tensor(sample).float()), PASSES)
    whole = quantized(operators, measured(operators, [sample]), bits)
    given = to_fixed(sample, whole.fraction, BITS)
    found = execute(Lowering(whole.graph, "net").graph(), laid(given))[0]
    exact = model.some(torch.tensor(sample).float()).detach().numpy()
    assert np.abs(np.ldexp(found, -whole.fractions[0]) - exact.ravel()).max() < 0.03


def test_q15_has_operators_where_it_has_no_kernels(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    group, name = "split, slice, concatenation, channel shuffle", "pixel shuffle"
    words = [*words_of(group, name, tmp_path), str(tmp_path / "q.pth.tar"), "--device", "Q15"]
    with pytest.raises(InputError, match="it makes 2x2x2x3x4 of 8x3x4"):
        main("quantize.py", [*words, "--calib-percentile", "99"])
    assert not (tmp_path / "q.pth.tar").exists()
    assert main("quantize.py", words) == 0
    said = capsys.readouterr().out
    assert "No kernel of 16 bits for all of it (1: it makes 2x2x2x3x4 of 8x3x4)" in said
    assert (read_checkpoint(tmp_path / "q.pth.tar").network or {})["version"] == 3


def test_the_manual_has_a_row_for_each_kind_of_operator() -> None:
    """`make measure WHAT=each-operator ARGS=--write` writes it; what is refused is named."""
    rows = rows_of(PAGE.read_text(encoding="utf-8"))
    assert [*rows] == [*GROUPS]
    for group, cells in rows.items():
        assert len(cells) == len(ROADS)
        for cell in cells:
            kind, _, names = cell.partition(": ")
            assert kind in ("yes", "refused") and set(names.split("; ")) <= {*GROUPS[group], ""}
