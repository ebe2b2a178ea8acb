"""How much the integers of an imported network agree with the network that they come from.

Source: docs/own-models.md, "What an import loses".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, fx, nn

from ai8xtools.diagnostics import Diagnostic, Place, Severity, print_diagnostics
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.frontends.modules.plain.unlimited import Unlimited
from ai8xtools.quantization.calibration import DATA_STEPS
from ai8xtools.quantization.layer_errors import network_errors

ENOUGH = 0.98
"""A correlation from which on nobody is warned."""


def correlation(trained: nn.Module, simulated: nn.Module, samples: Sequence[Tensor]) -> float:
    """Return the correlation of the integers' results with those of the network before, whose data
    has no limits; of several outputs the smallest. Outputs that never change do not count.

    `samples` are batches [N, ...] in -1..127/128.
    """
    source: Any = Unlimited(trained).run if isinstance(trained, fx.GraphModule) else trained
    with torch.no_grad():
        expected = [_outputs(source(batch.clone())) for batch in samples]
        results = [_outputs(simulated(batch * DATA_STEPS)) for batch in samples]
    pairs = zip(zip(*expected, strict=True), zip(*results, strict=True), strict=True)
    each = (torch.stack([torch.cat([part.double().flatten() for part in parts]) for parts in pair])
            for pair in pairs)  # fmt: skip
    varied = [pair for pair in each if pair[0].max() > pair[0].min()]
    return min((float(torch.corrcoef(pair).nan_to_num()[0, 1]) for pair in varied), default=1.0)


def tell_agreement(
    trained: nn.Module, simulated: nn.Module, samples: Sequence[Tensor], path: str
) -> None:
    """Print the correlation, and a warning with the layer that costs most where it is low."""
    agreement = correlation(trained, simulated, samples)
    if is_enough(agreement, sum(map(len, samples)), path):
        return
    errors = network_errors(trained, simulated, samples).layers
    worst = min(errors, key=lambda layer: (layer.alone_snr_db, -layer.output_clipped))
    clipped = f", {100 * worst.output_clipped:.1f} % of its results are limited"
    why = f"; {worst.name} costs most: with it alone in integers the results have an SNR of "
    why += f"{worst.alone_snr_db:.1f} dB" + clipped * (worst.output_clipped > 0)
    remedy = "Train the layers of ai8x with QAT, or give this layer channels of similar size."
    warn(agreement, path, why, remedy)


def is_enough(agreement: float, samples: int, path: str) -> bool:
    """Print a correlation; return whether nobody is warned."""
    print(f"Correlation with {path} on {samples} calibration samples: {agreement:.4f}")
    return agreement >= ENOUGH


def warn(agreement: float, path: str, why: str, remedy: str) -> None:
    """Warn of a low correlation."""
    loss = "the integers lose much of the network: their results have a correlation of "
    loss += f"{agreement:.3f} with those of the source{why}"
    print_diagnostics([Diagnostic("W759", loss, Place(file=path), remedy, Severity.WARNING)])


def refuse_low(agreement: float, least: float, source: str, path: str, cure: str) -> None:
    """Raise InputError E760 for a correlation below what the user accepts."""
    if agreement < least:
        raise InputError(
            "E760", f"the integers lose too much of the network: their results have a correlation "
            f"of {agreement:.4f} with those of {source}, {least:g} is asked for", path,
            f"{cure}, or accept it (--least-correlation).",
        )  # fmt: skip


def _outputs(results: Any) -> Sequence[Tensor]:
    if isinstance(results, Tensor):
        return [results]
    parts = results.values() if isinstance(results, dict) else results
    return [one for part in parts for one in _outputs(part)]
