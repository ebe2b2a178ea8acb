"""The data that a run takes from the checkpoint of another run besides the weights."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.optim import Optimizer

from ai8xtools.diagnostics.errors import InputError


def take_optimizer(optimizer: Optimizer, state: dict[str, Any], path: str) -> None:
    """Load the state of an optimizer from the checkpoint `path`.

    Raises InputError E609 when it is damaged or belongs to other parameters: torch would notice
    that only at the first step.
    """
    try:
        optimizer.load_state_dict(state)
        _check_shapes(optimizer)
    except (ValueError, LookupError, TypeError, AttributeError) as exc:
        raise InputError(
            "E609",
            f"the checkpoint's optimizer does not fit this model ({type(exc).__name__}: {exc})",
            path,
            "Add --reset-optimizer.",
        ) from exc


def _check_shapes(optimizer: Optimizer) -> None:
    """Raise ValueError if what is kept for a parameter has another shape."""
    parameters = (p for group in optimizer.param_groups for p in group["params"])
    for number, parameter in enumerate(parameters):
        for name, kept in optimizer.state.get(parameter, {}).items():
            if isinstance(kept, Tensor) and kept.ndim and kept.shape != parameter.shape:
                raise ValueError(
                    f"{name} of parameter {number} has shape {list(kept.shape)}, "
                    f"not {list(parameter.shape)}"
                )


def first_epoch(done: int | None, path: str) -> int:
    """Return the epoch that follows the last one of a checkpoint; InputError E609 without one."""
    if done is None or done < 0:
        raise InputError(
            "E609",
            f"the checkpoint is of epoch {done}; to continue, the last epoch must be known",
            path,
            "Take only its weights with --exp-load-weights-from.",
        )
    return done + 1
