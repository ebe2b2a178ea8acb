"""The policy of quantization-aware training.

Source: docs/training.md, "The QAT policy".
"""

from __future__ import annotations

import math
from typing import Any

import torch

from ai8xtools.training.policies.complaints import Complaints
from ai8xtools.training.policies.yaml_file import read_section

_CODE = "E604"
_LATER_KEYS = ("outlier_removal_z_score",)
"""Keys of the second generation of QAT."""
_KEYS = ("start_epoch", "weight_bits", "shift_quantile", *_LATER_KEYS, "overrides")


def read_policy(path: str) -> dict[str, Any]:
    """Return the policy of a YAML file: the keys of `ai8x.initiate_qat` and `start_epoch`.

    Raises InputError with every mistake: line, key, value and what is allowed.
    """
    complaints = Complaints(_CODE, path)
    content = read_section(complaints)
    policy = complaints.keys(content, _KEYS, "the policy")
    start = content.get("start_epoch")
    if type(start) is not int or start < 0:
        complaints.wrong(content, "start_epoch", "a whole number from 0")
    _check_quantile(content, "", complaints)
    z_score = content.get("outlier_removal_z_score", 1.0)
    if type(z_score) not in (int, float) or not 0 < z_score < math.inf:
        complaints.wrong(content, "outlier_removal_z_score", "a number above 0")
    _check_bits(content, "the policy", complaints)
    overrides = policy.setdefault("overrides", {})
    if not isinstance(overrides, dict):
        written = complaints.written(content, "overrides")
        message = f"overrides must hold names of layers, not {written}"
        complaints.add(message, content, "overrides")
        overrides = {}
    for layer, override in overrides.items():
        if not isinstance(override, dict):
            written = complaints.written(overrides, layer)
            message = f"overrides: {layer} must hold weight_bits or shift_quantile, not {written}"
            complaints.add(message, overrides, layer)
            continue
        what = f"overrides: {layer}"
        complaints.keys(override, ("weight_bits", "shift_quantile"), what)
        if "weight_bits" in override or not override:
            _check_bits(override, what, complaints)
        _check_quantile(override, f" of {what}", complaints)
    complaints.refuse()
    return policy


def version_of(policy: dict[str, Any] | None) -> int:
    """Return the generation of QAT that a policy asks for by its keys."""
    return 2 if policy is not None and any(key in policy for key in _LATER_KEYS) else 1


def fits_ranges(choice: str | None, policy: dict[str, Any]) -> bool:
    """Return whether weights have ranges of their own, not those of the largest magnitudes.

    `choice` is "fit" or "vendor"; without it a policy with quantiles is for the latter.
    """
    entries = (policy, *policy.get("overrides", {}).values())
    quantiles = any(entry.get("shift_quantile", 1.0) != 1.0 for entry in entries)
    return choice == "fit" or (choice is None and not quantiles)


def begun(model: torch.nn.Module) -> bool:
    """Return whether the weights of any layer are quantized in training already."""
    return any(int(getattr(module, "weight_bits", 0) or 0) for module in model.modules())


def check_layers(policy: dict[str, Any], model: torch.nn.Module, path: str) -> None:
    """Raise InputError when overrides name layers that `model` does not have."""
    names = [name for name, module in model.named_modules() if hasattr(module, "weight_bits")]
    complaints = Complaints(_CODE, path)
    complaints.keys(policy["overrides"], names, "overrides")
    complaints.refuse()


def _check_quantile(entry: dict[str, Any], what: str, complaints: Complaints) -> None:
    quantile = entry.get("shift_quantile", 1.0)
    if type(quantile) not in (int, float) or not 0 < quantile <= 1:
        name = f"shift_quantile{what}"
        complaints.wrong(entry, "shift_quantile", "above 0, at most 1", name=name)


def _check_bits(entry: dict[str, Any], what: str, complaints: Complaints) -> None:
    bits = entry.get("weight_bits")
    if type(bits) is not int or bits not in (1, 2, 4, 8):
        name = f"weight_bits of {what}"
        complaints.wrong(entry, "weight_bits", "1, 2, 4 or 8", name=name)
