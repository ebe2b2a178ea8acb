"""Each network has the known size and computes the same in training and in 8-bit simulation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import ai8x
from ai8xtools.training.catalog.discovery import find_models
from tests.models.cases import BIAS, CASES, COUNTED, LARGE, TEACHERS, title
from tests.models.random_weights import Case, qat_network, quantized, simulated


@pytest.fixture(autouse=True)
def device_as_before() -> Iterator[None]:
    yield
    ai8x.set_device(85, simulate=False, round_avg=False, verbose=False)


def outputs(model: nn.Module, x: Tensor) -> tuple[Tensor, ...]:
    found = model(x)
    return found if isinstance(found, tuple) else (found,)


@pytest.mark.parametrize(("case", "count"), COUNTED, ids=lambda v: v if v is int else None)
def test_number_of_trained_parameters(case: Case, count: int) -> None:
    model = case.make()
    ai8x.fuse_bn_layers(model)
    assert sum(p.numel() for p in model.parameters() if p.requires_grad) == count


def test_every_network_has_a_case() -> None:
    # Those of models/sized.py are one network in many widths, tested with --model auto.
    known = {name for name in find_models() if not name.startswith("sized")}
    assert {case.name for case in CASES} | set(TEACHERS) == known


def marked(case: Case) -> Any:
    return pytest.param(case, id=title(case), marks=pytest.mark.slow if case.name in LARGE else ())


@torch.no_grad()
@pytest.mark.parametrize("case", [marked(case) for case in CASES])
def test_simulation_of_the_quantized_network_equals_training(case: Case) -> None:
    trained = qat_network(case)
    x = case.integers()
    found = outputs(simulated(case, quantized(trained, case.name)), x)
    expected = outputs(trained, x / 128)
    assert len(found) == len(expected)
    for result, wanted in zip(found, expected, strict=True):
        assert torch.equal(result, wanted * scale(case, trained))
        assert len(result.unique()) >= min(result.numel(), 20) // 2  # neither dead nor saturated


def scale(case: Case, model: nn.Module) -> int:
    """Return what one is in integers: of a wide layer, of others, of vectors of length 1."""
    if case.name in ("ai85faceidnet_112", "ai87netmobilefacenet_112"):
        return 1
    return 16384 if any(getattr(m, "wide", False) for m in model.modules()) else 128


@torch.no_grad()
@pytest.mark.parametrize(
    "policy",
    [
        {"weight_bits": 4},
        {"weight_bits": 2, "shift_quantile": 0.95},
        {"overrides": {"conv2": {"weight_bits": 2}, "conv3": {"weight_bits": 4}}},
    ],
)
def test_fewer_bits_and_clipped_weights_are_simulated_alike(policy: dict[str, Any]) -> None:
    case = Case("ai85netextrasmall", (1, 28, 28), {"num_channels": 1, **BIAS})
    trained = qat_network(case, **policy)
    x = case.integers(4)
    found = simulated(case, quantized(trained, case.name))(x)
    bits = policy.get("weight_bits", 8)  # a wide layer counts in products of its weights
    assert torch.equal(found, trained(x / 128) * 16384 / 2 ** (8 - bits))


# Wiring that no count of parameters tells


def test_residual_network_adds_the_inputs_of_three_layers() -> None:
    model: Any = Case("ai85ressimplenet", (3, 32, 32)).make().eval()
    seen: dict[str, Tensor] = {}
    for name in ("conv2", "conv3", "conv5", "conv6", "conv8", "conv9", "conv4", "conv7", "conv10"):
        layer = model.get_submodule(name)
        layer.register_forward_hook(
            lambda _, inputs, output, name=name: seen.update(
                {f"{name} in": inputs[0], name: output}
            )
        )
    model(torch.rand(1, 3, 32, 32) - 0.5)
    for first, second, behind in ((2, 3, 4), (5, 6, 7), (8, 9, 10)):
        total = (seen[f"conv{first}"] + seen[f"conv{second}"]).clamp(-1, 127 / 128)
        assert torch.equal(seen[f"conv{behind} in"], total)


def test_prior_boxes_go_row_by_row_through_the_maps() -> None:
    model: Any = Case("ai85tinierssd", (3, 74, 74), {"num_classes": 11}).make()
    priors = model.priors_cxcy
    assert priors.shape == (1700, 4)
    assert "priors_cxcy" not in model.state_dict()
    first = [0.5 / 18, 0.5 / 18, 0.15 * 0.85**0.5, 0.15 / 0.85**0.5]
    torch.testing.assert_close(priors[0], torch.tensor(first))
    torch.testing.assert_close(priors[5, :2], torch.tensor([1.5 / 18, 0.5 / 18]))
    assert priors[-1, 3] == 1  # 0.725 / sqrt(0.25), cut to the image


def test_prior_boxes_of_faces_follow_rows_and_columns() -> None:
    model: Any = Case("ai85tinierssdface", (3, 224, 168)).make()
    priors = model.priors_cxcy
    assert priors.shape == (1246, 4)
    torch.testing.assert_close(priors[2, :2], torch.tensor([1.5 / 21, 0.5 / 28]))
    torch.testing.assert_close(priors[-1, :2], torch.tensor([4.5 / 5, 6.5 / 7]))


@torch.no_grad()
def test_detector_orders_predictions_as_the_prior_boxes() -> None:
    model: Any = Case("ai85tinierssd", (3, 74, 74), {"num_classes": 3}).make().eval()
    layer = model.pred_convs.get_submodule("cl_fire9")
    layer.op.weight.zero_()
    layer.op.bias.copy_(torch.arange(12) / 16)
    layer.bn = None
    scores = model(torch.rand(1, 3, 74, 74) - 0.5)[1]
    of_map = scores[0, 18 * 18 * 4 : 18 * 18 * 4 + 9 * 9 * 4]
    assert torch.equal(of_map, (torch.arange(12) / 16).view(4, 3).repeat(81, 1))


@torch.no_grad()
def test_autoencoder_gives_its_bottleneck_and_draws_weights_as_told() -> None:
    case = Case("ai85autoencoder", (256, 3), {"bottleNeckDim": 6})
    model: Any = case.make().eval()
    reproduced, bottleneck = model(torch.zeros(2, 256, 3), return_bottleneck=True)
    assert (reproduced.shape, bottleneck.shape) == ((2, 256, 3), (2, 6))
    spread = [
        float(case.make(weight_init=kind).get_submodule("de_lin2").op.weight.abs().max())  # type: ignore[union-attr]
        for kind in ("kaiming", "xavier", "glorot")
    ]
    limits = [(6 / 32) ** 0.5, (6 / 128) ** 0.5, (6 / 128) ** 0.5]
    assert all(0.95 * limit < found <= limit for found, limit in zip(spread, limits, strict=True))
    with pytest.raises(AssertionError, match="kaiming, xavier, glorot"):
        case.make(weight_init="ones")


@torch.no_grad()
def test_face_vectors_have_length_one_and_come_of_three_channels() -> None:
    case = Case("ai85faceidnet_112", (6, 112, 112), {"num_channels": 6, **BIAS})
    model = case.make().eval()
    x = case.integers() / 128
    vector = model(x)
    torch.testing.assert_close(vector.norm(dim=1), torch.ones(1))
    x[:, 3:] = 0
    assert torch.equal(model(x), vector)


NORMALIZED = [case for case, _ in COUNTED if BIAS.items() <= case.keywords.items()]


@pytest.mark.parametrize(
    "case", [case for case in NORMALIZED if case.name != "ai85kws20netv3"], ids=title
)
def test_normalization_asks_for_a_bias(case: Case) -> None:
    with pytest.raises(AssertionError, match="--use-bias"):
        Case(case.name, case.shape, {**case.keywords, "bias": False}, case.die).make()
