"""Every field of a container a little wrong: refused by both readers alike, or computed alike."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ai8xtools.software.container import soundness, unpack
from ai8xtools.software.container.pack import pack
from ai8xtools.software.container.records import NOT_RESIDENT, Element, Flag, Follow, Op, aligned
from ai8xtools.software.container.soundness import arena_bytes, intermediates
from tests.software.compiled import compiler
from tests.software.container_fields import neighbours, planned
from tests.software.containers import Growing, few_bits
from tests.software.nnb_in_c import build_driver, computed, opened, statuses


def small() -> bytes:
    """Return a container with biases, tensors that live side by side, and packed weights."""
    grow = Growing(3, Element.INT8, (3, 3, 2))
    grow.sums(Op.CONV, 4, (2, 2), pad=(1, 1), stride=(2, 2), follow=Follow.ABS)
    first, shape = grow.last, grow.shape
    grow.builder.activation(Element.INT8, shape)  # nobody's, beside the operand
    grow.sums(Op.CONV, 4, out_shift=-1, bits=4)
    grow.step(Op.SUB, [first, grow.last], shape)
    grow.step(Op.CONCAT, [grow.last, first], (2, 2, 8))
    grow.step(Op.AVGPOOL, [grow.last], (1, 1, 8), kernel=(3, 3), pad=(1, 1), stride=(4, 4))
    weights = few_bits(grow, "4bitsym", 5, 8)
    grow.step(Op.FC, [grow.last], (1, 1, 5), weights=weights, follow=Follow.SHIFT_NORM)
    grow.sums(Op.FC, 3, kind=Element.INT32)
    grow.step(Op.CONCAT, [grow.last, grow.last], (1, 1, 6), kind=Element.INT32)
    grow.step(Op.ADD, [grow.last] * 3, (1, 1, 6), kind=Element.INT32)
    return pack(grow.container())


def at_the_end_of_sums(factor: int) -> bytes:
    """Return a container whose sums reach 2^31 times a factor."""
    grow = Growing(1, Element.INT16, (1, 1, 2))
    grow.sums(Op.FC, 1, bits=16, factor=factor)
    return pack(grow.container() if factor <= 1 << 30 else grow.builder.container())


def test_memory_is_that_of_a_plan_only_if_all_tensors_have_a_place_in_it() -> None:
    whole = unpack(planned(small()))
    header, places = whole.header, intermediates(whole)
    assert soundness.planned(whole) and places
    assert arena_bytes(whole) == header.arena_bytes
    lacking = [replace(whole, header=replace(header, flags=header.flags & ~Flag.PLAN))]
    for number in places:
        tensors = [*whole.tensors]
        tensors[number] = replace(tensors[number], arena=NOT_RESIDENT)
        lacking.append(replace(whole, tensors=tuple(tensors)))
    for one in lacking:
        assert not soundness.planned(one)
        assert arena_bytes(one) == sum(aligned(one.tensors[n].size_bytes) for n in places)


@pytest.mark.skipif(compiler() is None, reason="no C compiler")
def test_neighbours_of_a_container_have_the_same_status_and_output(tmp_path: Path) -> None:
    """`make measure WHAT=container-fuzz` has those of larger ones, too."""
    program = build_driver(tmp_path, ("-O0",))
    for blob in (small(), planned(small())):
        changed = [blob, *neighbours(blob)]
        found = statuses(program, changed, tmp_path, "run")
        wanted = [computed(one) for one in changed]
        assert found == wanted
        names = {line.split()[0] for line in wanted}
        assert names >= {"ok", "version", "size", "table", "tensor", "layer", "arena",
                         "unsupported", "overlap"}  # fmt: skip
        assert len({line for line in wanted if line.startswith("ok")}) > 20
    ends = [at_the_end_of_sums(factor) for factor in (1 << 30, (1 << 30) + 1)]
    found = [line.split()[0] for line in statuses(program, ends, tmp_path, "run")]
    assert found == ["ok", "overflow"] == [opened(blob) for blob in ends]
