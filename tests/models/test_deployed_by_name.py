"""Networks without a description deploy by their name alone: places are chosen for them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from torch import nn

from ai8xtools.commands.loader.models import describe_model
from ai8xtools.commands.loader.options import ModelSource
from ai8xtools.synthesis.options import EncodeOptions
from ai8xtools.synthesis.parse import Described
from ai8xtools.synthesis.pipeline import synthesize
from tests.models.cases import BIAS
from tests.models.random_weights import Case, Run
from tests.networks.deployed import Deployed, outputs_of, with_random_weights
from tests.synthesis.emulated import emulated


def _predictors(*maps: str) -> Run:
    return outputs_of(*(f"pred_convs.{kind}_{name}" for kind in ("loc", "cl") for name in maps))


CASES: tuple[tuple[Case, Run], ...] = (
    (Case("ai85kws20netv2", (128, 128)), nn.Module.__call__),
    (Case("ai85audionet", (128, 128), die=87), nn.Module.__call__),
    (Case("ai85netwide", (1, 28, 28), {"num_channels": 1}), nn.Module.__call__),
    (Case("ai85unetsmall", (3, 80, 80), BIAS), nn.Module.__call__),
    (Case("ai85unetmedium", (3, 80, 80), BIAS), nn.Module.__call__),
    (
        Case("ai85tinierssdqr", (3, 120, 160)),
        _predictors("fire8", "fire9", "fire10", "conv12_2"),
    ),
    (
        Case("ai87fpndetector", (3, 128, 128), {"dimensions": (128, 128)}, die=87),
        _predictors("p3", "p4", "p5", "p6", "p7"),
    ),
)


@pytest.mark.parametrize(("case", "run"), CASES, ids=lambda v: getattr(v, "name", ""))
def test_network_is_arranged_and_the_emulated_chip_agrees(
    case: Case, run: Run, tmp_path: Path
) -> None:
    deployed = Deployed("none", case, run=run)
    checkpoint, model = with_random_weights(deployed, tmp_path)
    options = deployed.resolving(tmp_path, checkpoint)
    found = describe_model(ModelSource(case.name), deployed.chip, checkpoint, options.sample_input)
    described = Described(found.text, found.model, found.nodes)
    made = synthesize(described, deployed.chip, options, EncodeOptions())
    outputs = made.activations.outputs
    results = [outputs[layer.index].ravel() for layer in made.network.outputs()]
    np.testing.assert_array_equal(np.concatenate(results), deployed.output(model))
    assert emulated(made.program).wrong == []
