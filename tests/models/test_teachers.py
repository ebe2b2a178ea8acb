"""Teachers of face recognition: sizes, six channels, backbones from files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from ai8xtools.training.catalog.discovery import find_models
from models import ir
from tests.models.cases import TEACHERS


@pytest.mark.parametrize("name", TEACHERS)
def test_number_of_parameters(name: str) -> None:
    with torch.device("meta"):
        model = find_models()[name].make()
    assert sum(p.numel() for p in model.parameters()) == TEACHERS[name]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the teacher of 50 layers one of few channels and units."""
    monkeypatch.setattr(ir, "_WIDTHS", (64, 64, 64, 512))
    monkeypatch.setattr(ir, "_DEPTHS", {50: (1, 1, 1, 1)})


@torch.no_grad()
@pytest.mark.usefixtures("small")
def test_vector_has_length_one_and_comes_of_the_aligned_face() -> None:
    model = ir.ir_50(dimensions=(16, 16), dimensionality=7).eval()
    x = torch.rand(2, 6, 16, 16)
    vectors = model(x)
    assert vectors.shape == (2, 7)
    torch.testing.assert_close(vectors.norm(dim=1), torch.ones(2))
    assert torch.equal(vectors, model(x[:, 3:]))


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("prefix", ["", "module.", "backbone."])
def test_backbone_of_a_file_is_taken_and_kept(tmp_path: Path, prefix: str) -> None:
    backbone = ir.Backbone(50, True, (32, 32))
    state = {f"{prefix}{name}": tensor for name, tensor in backbone.state_dict().items()}
    file = tmp_path / "backbone.pth"
    torch.save(state, file)
    keywords: dict[str, Any] = {"dimensions": (32, 32), "backbone_checkpoint": str(file)}
    model = ir.ir_se_50(**keywords).train()
    for name, tensor in backbone.state_dict().items():
        assert torch.equal(model.backbone.state_dict()[name], tensor)
    assert [n for n, p in model.named_parameters() if p.requires_grad] == [
        "reduction.weight", "reduction.bias",
    ]  # fmt: skip
    model(torch.rand(4, 3, 32, 32))
    assert torch.equal(model.backbone.input_layer[1].running_mean, torch.zeros(64))  # type: ignore[union-attr]
