"""The layers reproduce the known answers of the reference, all but two of them to the bit."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np
import torch

import ai8x


def _load(shared: Path) -> dict[str, dict[str, Any]]:
    """Return the cases: number to {"meta": dict, "in0": array, "out": array, "sd": dict}."""
    cases: dict[str, dict[str, Any]] = {}
    with np.load(shared / "checkpoints/vectors/ai8x-layers.npz", allow_pickle=False) as file:
        for key in file.files:
            number, name = key.split("/", 1)
            case = cases.setdefault(number, {"sd": {}})
            if name == "meta":
                case["meta"] = json.loads(bytes(file[key]).decode())
            elif name.startswith("sd/"):
                case["sd"][name[3:]] = torch.from_numpy(file[key])
            else:
                case[name] = torch.from_numpy(file[key])
    return cases


def _layer_output(case: dict[str, Any], meta: dict[str, Any]) -> torch.Tensor:
    kwargs = dict(meta.get("kwargs", {}))
    if meta.get("simulate"):
        kwargs |= {"weight_bits": 8, "bias_bits": 8, "quantize_activation": True}
    layer = getattr(ai8x, meta["cls"])(*meta["args"], **kwargs)
    if meta["case"] == "float-bn-fused":
        layer.bn = None
    assert list(layer.state_dict()) == list(case["sd"])
    layer.load_state_dict(case["sd"])
    return layer.eval()(case["in0"])


def _output(case: dict[str, Any]) -> torch.Tensor:
    meta = case["meta"]
    ai8x.set_device(
        meta.get("device", 85), meta.get("simulate", False), meta.get("round_avg", False), False
    )
    if meta["case"] in ("float", "qat", "simulate", "float-bn-eval", "float-bn-fused"):
        return _layer_output(case, meta)
    match meta["case"]:
        case "eltwise":
            operands = [case[k] for k in sorted(case) if k.startswith("in")]
            return getattr(ai8x, meta["cls"])()(*operands)
        case "fold":
            return ai8x.fold(meta["fold_ratio"])(case["in0"])
        case "unfold_batch":
            return ai8x.unfold_batch(case["in0"], meta["fold_ratio"])
        case "bayer_filter":
            return ai8x.bayer_filter()(case["in0"])
        case "normalize":
            return ai8x.normalize(Namespace(act_mode_8bit=meta["act_mode_8bit"]))(case["in0"])
        case _:
            return ai8x.quantile(case["in0"], meta["q"])


def _equal(case: dict[str, Any]) -> bool:
    output, expected = _output(case), case["out"]
    # Sums of fractions depend on the order that the processor's library chooses, in convolutions as
    # in matrix products; sums of integers and of quantized values are exact in any order.
    fractions = case["meta"]["case"].startswith("float")
    if fractions:
        return torch.allclose(output, expected, rtol=0, atol=2e-6)
    return torch.equal(output, expected)


@torch.no_grad()
def test_all_layer_vectors_are_equal(shared: Path) -> None:
    cases = _load(shared)
    assert len(cases) == 253
    assert [(n, case["meta"]) for n, case in cases.items() if not _equal(case)] == []
