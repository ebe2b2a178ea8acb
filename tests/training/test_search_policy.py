"""Architecture search: its policy, its stages, its evolution."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

import pytest

from ai8x_nas import Architecture, SearchSpace, Stage, UnitSpace
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.training.search.evolution import ChipUse, Evolution, Judges, frontier
from ai8xtools.training.search.policy import Constraints, EvolutionPolicy, read_search_policy
from ai8xtools.training.search.stages import Transition, plan_of, plan_of_text
from tests.conftest import ROOT

SPACE = SearchSpace((UnitSpace(3, 1, (8, 6, 4, 2), (3, 1)),))
STAGES = "elastic_depth: {leveling: true, num_epochs: 2}\n"


@pytest.mark.parametrize("name", ["nas_policy.yaml", "nas_policy_mnist.yaml"])
def test_shipped_policies_are_read(name: str) -> None:
    policy = read_search_policy(str(ROOT / "policies" / name))
    assert policy.kernel and policy.depth and policy.width and policy.teacher and policy.evolution


@pytest.mark.parametrize(
    ("text", "message", "remedy"),
    [
        (STAGES, "start_epoch is missing; it must be a whole number from 0", ""),
        ("start_epoch: -1\n" + STAGES, "start_epoch is -1", ""),
        ("start_epoch: 1", "holds none of elastic_kernel, elastic_depth, elastic_width", ""),
        ("start_epoch: 1\nnum_epochs: 2", "unknown key 'num_epochs' at the top level",
         "It belongs to elastic_kernel, elastic_depth, elastic_width."),
        ("start_epoch: 1\nelastic_width: {num_epochs: 1, level: 2}", "'level' in elastic_width",
         "Allowed are leveling, num_epochs."),
        ("start_epoch: 1\nelastic_width: {num_epochs: 0}", "elastic_width: num_epochs is 0", ""),
        ("start_epoch: 1\nelastic_width: {leveling: 2, num_epochs: 1}", "leveling is 2", ""),
        ("start_epoch: 1\nelastic_width: 3", "elastic_width must hold leveling, num_epochs", ""),
        (STAGES + "start_epoch: 1\nvalidation_freq: 0", "validation_freq is 0", ""),
        (STAGES + "start_epoch: 1\nkd_params: {}", "teacher_model is missing", ""),
        (STAGES + "start_epoch: 1\nkd_params: {teacher_model: best}", "is 'best'; it must be", ""),
        (STAGES + "start_epoch: 1\nkd_params: {teacher_model: full_model, distill_loss: 0,"
         " student_loss: 0}", "nothing would be learned", ""),
        (STAGES + "start_epoch: 1\nkd_params: {teacher_model: full_model, temperature: 0}",
         "temperature is 0", ""),
        (STAGES + "start_epoch: 1\nevolution_search: {population_size: 1}", "from 2", ""),
        (STAGES + "start_epoch: 1\nevolution_search: {prob_mutation: 2}", "from 0 to 1", ""),
        (STAGES + "start_epoch: 1\nevolution_search: {ratio_parent: 0}", "ratio_parent is 0", ""),
        (STAGES + "start_epoch: 1\nevolution_search: {max_cycles: 5}", "'max_cycles' in evol",
         "It belongs to evolution_search: constraints."),
        (STAGES + "start_epoch: 1\nevolution_search: {constraints: {max_num_weights: 3,"
         " min_num_weights: 4}}", "below min_num_weights", ""),
        (STAGES + "start_epoch: 1\nevolution_search: {constraints: {width_options: 8}}",
         "a list of whole numbers", ""),
    ],
)  # fmt: skip
def test_faults_of_a_policy_are_named(text: str, message: str, remedy: str, tmp_path: Path) -> None:
    path = tmp_path / "nas.yaml"
    path.write_text(text)
    with pytest.raises(InputError) as refused:
        read_search_policy(str(path))
    told = [one for one in (refused.value, *refused.value.others) if message in one.message]
    assert [remedy in (one.remedy or "") for one in told] == [True]
    lines = text.count("\n") + 1
    assert re.fullmatch(re.escape(str(path)) + f":[1-{lines}]:[0-9]+", told[0].place or "")


def _policy(tmp_path: Path, text: str):
    path = tmp_path / "nas.yaml"
    path.write_text(text)
    return read_search_policy(str(path))


def test_levels_follow_each_other_and_stages_without_choices_are_left_out(tmp_path: Path) -> None:
    text = "start_epoch: 3\nelastic_kernel: {num_epochs: 4}\n" + STAGES
    plan = plan_of(_policy(tmp_path, text), SPACE)
    assert plan.transitions == (
        Transition(0, Stage.FULL, 0), Transition(3, Stage.KERNEL, 1),
        Transition(7, Stage.DEPTH, 1), Transition(9, Stage.DEPTH, 2),
    )  # fmt: skip
    assert plan.end == 11
    assert [plan.at(e).name for e in (2, 3, 8, 50)] == [
        "nas_stg0_lev0", "nas_stg1_lev1", "nas_stg2_lev1", "nas_stg2_lev2"
    ]  # fmt: skip
    rigid = SearchSpace((UnitSpace(3, 1, (8,), (3,)),))
    assert [t.stage for t in plan_of(_policy(tmp_path, text), rigid).transitions] == [0, 2, 2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("5", "is not such a list"),
        ("[]", "is not such a list"),
        ("[(1, 2)]", "is not such a list"),
        ("__import__('os')", "is not such a list"),
        ("[(1, 4, 1)]", "there is no stage 4"),
        ("[(1, 1, 2)]", "stage 1 of this network has 1 levels"),
        ("[(1, 1, 0)]", "stage 1 of this network has 1 levels"),
        ("[(1.5, 1, 1)]", "three whole numbers"),
        ("[(2, 1, 1), (2, 2, 1)]", "(2, 2, 1) does not come after (2, 1, 1)"),
        ("[(2, 2, 1), (3, 1, 1)]", "(3, 1, 1) does not come after (2, 2, 1)"),
    ],
)
def test_faults_of_a_transition_list_are_named(text: str, message: str, tmp_path: Path) -> None:
    policy = _policy(tmp_path, "start_epoch: 3\n" + STAGES)
    with pytest.raises(InputError, match="E604|stage|list|whole|after") as refused:
        plan_of_text(text, SPACE, policy)
    assert message in refused.value.message
    assert refused.value.code == "E604"


def test_transition_list_replaces_the_policy(tmp_path: Path) -> None:
    policy = _policy(tmp_path, "start_epoch: 3\n" + STAGES)
    plan = plan_of_text("[(4, 1, 1), [6, 3, 3]]", SPACE, policy)
    assert [t.as_list() for t in plan.transitions] == [[0, 0, 0], [4, 1, 1], [6, 3, 3]]


def _cost(architecture: Architecture) -> ChipUse:
    """Cycles grow with widths and kernels; three layers do not fit."""
    (unit,) = architecture.units
    cycles = sum(layer.width * layer.kernel for layer in unit)
    return ChipUse(cycles, cycles, cycles, 0, "too many layers" if len(unit) == 3 else "")


def _rank(architecture: Architecture) -> tuple[float, ...]:
    """Wide layers are the best ones."""
    return (float(sum(layer.width for layer in architecture.units[0])),)


def _evolution(**limits: int) -> Evolution:
    policy = EvolutionPolicy(8, 0.3, 0.5, 0.25, 12, None, Constraints(**limits))
    return Evolution(SPACE, policy, Judges(_cost, _rank), Random(5))


def test_evolution_finds_the_best_network_that_meets_the_constraints() -> None:
    evolution = _evolution(max_cycles=17)
    generations = list(evolution.run())
    best = generations[-1][0]
    # two layers of 1x1 kernels with 8 channels each: 16 cycles
    assert str(best.architecture) == "8k1 8k1"
    assert all(c.cost.cycles <= 17 and not c.cost.refusal for c in evolution.judged.values())
    ranks = [generation[0].rank for generation in generations]
    assert ranks == sorted(ranks)
    assert len(evolution.judged) < len(SPACE)


def test_frontier_has_what_nothing_beats() -> None:
    evolution = _evolution()
    for _ in evolution.run():
        pass
    judged = list(evolution.judged.values())
    best = frontier(judged)
    assert [c.cost.cycles for c in best] == sorted({c.cost.cycles for c in best})
    for one in judged:
        assert any(c.rank >= one.rank and c.cost.cycles <= one.cost.cycles for c in best)


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"max_cycles": 1}, "max_cycles is 1, it has 2"),
        ({"max_weights": 1}, "max_num_weights is 1, it has 2"),
        ({"min_weights": 1000}, "min_num_weights is 1,000, it has 72"),
        ({"max_kernel_columns": 1}, "max_kernel_columns is 1"),
    ],
)
def test_constraints_that_nothing_meets_are_named(limits: dict[str, int], message: str) -> None:
    for search in (lambda: next(_evolution(**limits).run()), _evolution(**limits).check):
        with pytest.raises(InputError) as refused:
            search()
        assert refused.value.code == "E692"
        assert message in refused.value.message
