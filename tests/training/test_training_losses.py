"""Losses and measures beyond PyTorch's own: boxes, distillation, embeddings, overlaps."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional

from ai8xtools.training.loop.metrics import OBJECTIVE, OVERALL, Tally
from ai8xtools.training.losses.arcface import SubCenterArcFace
from ai8xtools.training.losses.boxes import (
    decode,
    encode,
    keep_best,
    overlap,
    to_centres,
    to_corners,
)
from ai8xtools.training.losses.multibox import MultiBoxLoss, Objects, Parameters, detect
from ai8xtools.training.network.distillation import DISTILLED, Distillation, divergence
from ai8xtools.training.tasks.classification import ClassificationMeter, SegmentationMeter, overlaps
from ai8xtools.training.tasks.regression import SquaredErrors

FOUND = Parameters(1, 3, 0.1, 0.5, 10)
PRIORS = torch.tensor([[0.25, 0.25, 0.5, 0.5], [0.75, 0.75, 0.5, 0.5], [0.5, 0.5, 1, 1]])


def _boxes(count: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    low, size = torch.rand(2, count, 2, generator=generator)
    return torch.cat([low, low + size * 0.5 + 0.01], 1)


def _greedy(boxes: Tensor, scores: Tensor, limit: float) -> list[int]:
    """Keep the best box that overlaps no kept one, again and again."""
    kept: list[int] = []
    for index in sorted(range(len(boxes)), key=lambda i: -float(scores[i])):
        if all(float(overlap(boxes[[index]], boxes[[k]])) <= limit for k in kept):
            kept.append(index)
    return kept


@given(st.integers(0, 25), st.integers(0, 1000), st.sampled_from([0.0, 0.2, 0.5, 0.9]))
@settings(max_examples=40, deadline=None)
def test_kept_boxes_are_those_of_the_greedy_rule(count: int, seed: int, limit: float) -> None:
    boxes = _boxes(count, seed)
    scores = torch.rand(count, generator=torch.Generator().manual_seed(seed))
    assert keep_best(boxes, scores, limit).tolist() == _greedy(boxes, scores, limit)


def test_overlap_is_intersection_over_union() -> None:
    a = torch.tensor([[0.0, 0, 2, 2], [0, 0, 1, 1]])
    b = torch.tensor([[1.0, 1, 3, 3], [5, 5, 6, 6]])
    assert overlap(a, b).flatten().tolist() == pytest.approx([1 / 7, 0, 0, 0])


def test_boxes_come_back_from_their_codes() -> None:
    boxes, priors = to_centres(_boxes(20, 1)), to_centres(_boxes(20, 2))
    assert torch.allclose(decode(encode(boxes, priors), priors), boxes, atol=1e-5)
    assert torch.allclose(to_centres(to_corners(boxes)), boxes, atol=1e-6)
    code = encode(torch.tensor([0.35, 0.25, 1.0, 0.5]), PRIORS[0])
    assert code.tolist() == pytest.approx([2, 0, 5 * math.log(2), 0], abs=1e-5)


def test_prior_boxes_belong_to_the_objects_they_overlap() -> None:
    loss = MultiBoxLoss(PRIORS, 1, 3)
    boxes = torch.tensor([[0.0, 0, 0.5, 0.5], [0.7, 0.7, 0.8, 0.8]])
    objects = Objects.of([(boxes, torch.tensor([2, 1])), (torch.zeros(0, 4), torch.zeros(0))])
    locations, labels = loss.match(objects)
    assert labels.tolist() == [[2, 1, 0], [0, 0, 0]]  # the second overlaps little, but is the best
    assert torch.allclose(locations[0, 0], torch.zeros(4), atol=1e-5)
    assert torch.allclose(
        decode(locations[0, 1], PRIORS[1]), torch.tensor([0.75, 0.75, 0.1, 0.1]), atol=1e-5
    )


def test_loss_of_boxes_by_hand() -> None:
    """Without hard background: one prior with an object, the hardest of two of background."""
    loss = MultiBoxLoss(PRIORS, alpha=2, neg_pos_ratio=1)
    objects = Objects.of([(torch.tensor([[0.0, 0, 0.5, 0.5]]), torch.tensor([1]))])
    scores = torch.tensor([[[0.0, 1], [3, 0], [0, 2]]])
    locations = torch.zeros(1, 3, 4)
    locations[0, 0, 0] = 0.5  # smooth L1: 0.5 * 0.25
    each = functional.cross_entropy(scores[0], torch.tensor([1, 0, 0]), reduction="none")
    expected = each[0] + each[2] + 2 * 0.125 / 4
    assert float(loss((locations, scores), objects)) == pytest.approx(float(expected), rel=1e-5)
    nothing = Objects.of([(torch.zeros(0, 4), torch.zeros(0))])
    mean = functional.cross_entropy(scores[0], torch.zeros(3).long())
    assert float(loss((locations, scores), nothing)) == pytest.approx(float(mean))


def test_loss_without_objects_has_gradients() -> None:
    scores = torch.zeros(1, 3, 2, requires_grad=True)
    nothing = Objects.of([(torch.zeros(0, 4), torch.zeros(0))])
    MultiBoxLoss(PRIORS, 1, 3)((torch.zeros(1, 3, 4), scores), nothing).backward()
    assert scores.grad is not None
    assert bool(scores.grad.isfinite().all())


def test_found_objects_are_the_best_of_each_class() -> None:
    scores = torch.full((2, 3, 3), -5.0)
    scores[:, :, 0] = 5
    scores[0, 0] = torch.tensor([0.0, 9, 0])
    scores[0, 1] = torch.tensor([0.0, 0, 3])
    (boxes, labels, shares), nothing = detect((torch.zeros(2, 3, 4), scores), PRIORS, FOUND)
    assert labels.tolist() == [1, 2]
    assert boxes.tolist() == [[0, 0, 0.5, 0.5], [0.5, 0.5, 1, 1]]
    assert shares[0] > shares[1] > 0.9
    assert [part.tolist() for part in nothing] == [[[0, 0, 1, 1]], [0], [0]]
    few = Parameters(1, 3, 0.1, 0.5, 1)
    assert len(detect((torch.zeros(2, 3, 4), scores), PRIORS, few)[0][1]) == 1


def test_pair_of_lists_holds_the_same_objects() -> None:
    boxes = [_boxes(2, 0), _boxes(1, 1)]
    labels = [torch.tensor([1, 2]), torch.tensor([1])]
    keypoints = [torch.zeros(2, 8), torch.zeros(1, 8)]
    single = Objects.of(list(zip(boxes, keypoints, labels, strict=True)))
    paired = Objects.of((boxes, labels))
    assert torch.equal(single.boxes, paired.boxes)
    assert single.labels.tolist() == paired.labels.tolist() == [[1, 2], [1, 0]]


def test_divergence_is_that_of_softened_probabilities() -> None:
    student, teacher = torch.randn(2, 5, 3, generator=torch.Generator().manual_seed(0))
    p, q = (functional.softmax(t / 2, 1) for t in (teacher, student))
    expected = (p * (p / q).log()).sum() / 5
    assert float(divergence(student, teacher, 2)) == pytest.approx(float(expected), rel=1e-4)
    images = (t.T.reshape(1, 3, 5, 1) for t in (student, teacher))
    assert float(divergence(*images, 2)) == pytest.approx(float(expected), rel=1e-4)


def test_overall_loss_of_distillation_is_weighted() -> None:
    teacher = nn.Identity()
    x, outputs, loss = torch.randn(4, 3), torch.randn(4, 3), torch.tensor(2.0)
    losses = Distillation(teacher, 0.25, 0.5, 4, False, 0).losses(loss, x, outputs)
    expected = 0.25 * 2 + 0.5 * 16 * divergence(outputs, x, 4)
    assert float(losses[OVERALL]) == pytest.approx(float(expected))
    assert float(losses[OBJECTIVE]) == 2
    assert torch.equal(losses[DISTILLED], divergence(outputs, x, 4))
    related = Distillation(teacher, 0, 1, 1, True, 3, input_range=128)
    assert torch.equal(
        related.losses(loss, 128 * x, outputs)[OVERALL], functional.mse_loss(outputs, x)
    )
    assert [related.applies(epoch) for epoch in (None, 2, 3)] == [True, False, True]


def test_arcface_adds_the_margin_to_the_angle() -> None:
    criterion = SubCenterArcFace(2, 2, margin=30, scale=10, centres=2)
    with torch.no_grad():  # class 0 at 0° and 180°, class 1 at 90° and 270°
        criterion.W.copy_(torch.tensor([[1.0, -1, 0, 0], [0, 0, 1, -1]]))
    angle = math.radians(20)
    x = 3 * torch.tensor([[math.cos(angle), math.sin(angle)]])
    logits = 10 * torch.tensor([[math.cos(math.radians(50)), math.sin(angle)]])
    expected = functional.cross_entropy(logits, torch.tensor([0]))
    assert float(criterion(x, torch.tensor([0])).detach()) == pytest.approx(
        float(expected), rel=1e-5
    )
    assert criterion.logits(-x).argmax(1).tolist() == [0]


def test_loss_of_arcface_grows_with_the_angle_up_to_the_opposite() -> None:
    criterion = SubCenterArcFace(2, 3, margin=30, scale=10, centres=1)
    with torch.no_grad():
        criterion.W.copy_(torch.tensor([[1.0, 0], [0, 1], [0, 0]]))
        angles = torch.linspace(0, math.pi, 50)
        x = torch.stack([angles.cos(), torch.zeros(50), angles.sin()], 1)
        losses = torch.stack([criterion(row.unsqueeze(0), torch.tensor([0])) for row in x])
    assert bool((losses.diff() > 0).all())


def test_overlaps_of_regions() -> None:
    matrix = torch.tensor([[3, 1, 0], [2, 4, 0], [0, 0, 0]])
    assert overlaps(matrix) == [pytest.approx(50), pytest.approx(400 / 7), None]
    meter = SegmentationMeter(["a", "b", "c"])
    outputs = functional.one_hot(torch.tensor([[0, 1], [1, 1]]), 3).permute(2, 0, 1).unsqueeze(0)
    meter.add(outputs.float(), torch.tensor([[[0, 1], [0, 1]]]))
    assert meter.values(final=True) == {"Top1": 75, "mIoU": pytest.approx((50 + 200 / 3) / 2)}
    assert meter.values(final=False) == {"Top1": 75}
    assert meter.by_class()["IoU"]["c"] is None


def test_merged_tallies_are_those_of_all_batches() -> None:
    whole, parts = Tally(ClassificationMeter(7, True)), []
    for size in (3, 5):
        outputs, targets = torch.randn(size, 7), torch.arange(size)
        part = Tally(ClassificationMeter(7, True))
        for tally in (whole, part):
            tally.add_losses({OVERALL: outputs.mean()}, size)
            tally.meter.add(outputs, targets)
        parts.append(part)
    parts[0].merge(parts[1])
    scores, expected = parts[0].scores(final=True), whole.scores(final=True)
    assert scores.as_dict() == expected.as_dict()
    assert set(scores.values) == {"Top1", "Top5"}
    assert scores.confusion is not None
    assert int(scores.confusion.sum()) == 8


def test_loss_that_began_later_is_averaged_over_its_batches() -> None:
    tally = Tally(SquaredErrors())
    tally.add_losses({OVERALL: torch.tensor(1.0)}, 2)
    tally.add_losses({OVERALL: torch.tensor(4.0), DISTILLED: torch.tensor(3.0)}, 1)
    assert tally.scores().losses == {OVERALL: 2, DISTILLED: 3}
