"""The policy of quantization-aware training.

Source: docs/training.md, "The QAT policy".
"""

from __future__ import annotations

import math
from typing import Any

import torch

from diagnostics.errors import InputError
from training.policies.yaml_file import read_mapping, refuse_unknown_keys, shown

_CODE = "E604"
_LATER_KEYS = ("outlier_removal_z_score",)
"""Keys of the second generation of QAT."""
_KEYS = ("start_epoch", "weight_bits", "shift_quantile", *_LATER_KEYS, "overrides")


def read_policy(path: str) -> dict[str, Any]:
    """Return the policy of a YAML file: the keys of `ai8x.initiate_qat` and `start_epoch`.

    Raises InputError with the key, its value and what is allowed.
    """
    policy = read_mapping(path, _CODE)
    refuse_unknown_keys(policy, _KEYS, "the policy", path, _CODE)
    start = policy.get("start_epoch")
    if type(start) is not int or start < 0:
        raise InputError(
            _CODE, f"start_epoch is {shown(start)}; it must be a whole number from 0", path
        )
    _check_quantile(policy, "", path)
    z_score = policy.get("outlier_removal_z_score", 1.0)
    if type(z_score) not in (int, float) or not 0 < z_score < math.inf:
        raise InputError(
            _CODE, f"outlier_removal_z_score is {shown(z_score)}; it must be a number above 0", path
        )
    _check_bits(policy, "the policy", path)
    overrides = policy.setdefault("overrides", {})
    if not isinstance(overrides, dict):
        raise InputError(
            _CODE, f"overrides must hold names of layers, not {shown(overrides)}", path
        )
    for layer, override in overrides.items():
        if not isinstance(override, dict):
            raise InputError(
                _CODE,
                f"overrides: {layer} must hold weight_bits or shift_quantile, "
                f"not {shown(override)}",
                path,
            )
        what, keys = f"overrides: {layer}", ("weight_bits", "shift_quantile")
        refuse_unknown_keys(override, keys, what, path, _CODE)
        if "weight_bits" in override or not override:
            _check_bits(override, what, path)
        _check_quantile(override, f" of {what}", path)
    return policy


def version_of(policy: dict[str, Any] | None) -> int:
    """Return the generation of QAT that a policy asks for by its keys."""
    return 2 if policy is not None and any(key in policy for key in _LATER_KEYS) else 1


def fits_ranges(wanted: str | None, policy: dict[str, Any]) -> bool:
    """Return whether weights have ranges of their own, not those of the largest magnitudes.

    `wanted` is the choice "fit" or "vendor"; without it a policy with quantiles is for the latter.
    """
    entries = (policy, *policy.get("overrides", {}).values())
    quantiles = any(entry.get("shift_quantile", 1.0) != 1.0 for entry in entries)
    return wanted == "fit" or (wanted is None and not quantiles)


def begun(model: torch.nn.Module) -> bool:
    """Return whether the weights of any layer are quantized in training already."""
    return any(int(getattr(module, "weight_bits", 0) or 0) for module in model.modules())


def check_layers(policy: dict[str, Any], model: torch.nn.Module, path: str) -> None:
    """Raise InputError when an override names a layer that `model` does not have."""
    names = [name for name, module in model.named_modules() if hasattr(module, "weight_bits")]
    refuse_unknown_keys(policy["overrides"], tuple(names), "overrides", path, _CODE)


def _check_quantile(entry: dict[str, Any], what: str, path: str) -> None:
    quantile = entry.get("shift_quantile", 1.0)
    if type(quantile) not in (int, float) or not 0 < quantile <= 1:
        raise InputError(
            _CODE,
            f"shift_quantile{what} is {shown(quantile)}; it must be above 0, at most 1",
            path,
        )


def _check_bits(entry: dict[str, Any], what: str, path: str) -> None:
    bits = entry.get("weight_bits")
    if type(bits) is not int or bits not in (1, 2, 4, 8):
        raise InputError(
            _CODE, f"weight_bits of {what} is {shown(bits)}; it must be 1, 2, 4 or 8", path
        )
