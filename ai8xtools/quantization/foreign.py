"""Tensors that belong to no layer of ai8x, and that quantizing would silently spoil.

Source: docs/quantization.md, "Networks without ai8x layers".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ai8xtools.checkpoint import Array, Checkpoint, refuse_integers
from ai8xtools.diagnostics.errors import InputError

_OPERATIONS = frozenset({"op", "conv2d", "conv1d", "linear"})
"""Names of the operator in ai8x layers; the latter three in files of 2020."""
_BOOKKEEPING = ("output_shift", "weight_bits", "bias_bits", "quantize_activation", "shift_quantile")
_LOWBIT = "lowbit"
"""Entries of low-bit training in its checkpoints."""
_SHOWN = 8  # tensors named in a message
_BESIDE = (
    "Use layers of ai8x in their place, or train it with train.py --model FILE:CLASS --import."
)
REMEDY = (
    "Import it: quantize.py --import --model FILE:CLASS --calibrate DATASET, or train it with "
    "train.py --model FILE:CLASS --import."
)


def foreign_tensors(state: Mapping[str, Array]) -> Iterator[tuple[str, str]]:
    """Yield the name of each tensor that is computed with outside of ai8x layers, and what it is.

    Files of 2020 name software layers `fc.weight`: such a name is known beside layers of that year,
    or alone.
    """
    weights = [name for name in state if name.endswith(".weight")]
    modern = any(name.rpartition(".")[2] in _BOOKKEEPING for name in state)
    legacy = any(name.split(".")[-2] in _OPERATIONS - {"op"} for name in weights)
    for name, tensor in state.items():
        parts = name.split(".")
        if parts[-1].startswith(("weight_ih", "weight_hh", "in_proj")):
            yield name, "a recurrent or attention layer"
        elif parts[-1] == "running_mean" and parts[-2:-1] != ["bn"]:
            yield name, "batch normalization on its own"
        elif parts[-1] != "weight" or len(parts) < 2 or _is_known(parts, state):
            continue
        elif tensor.ndim < 2 and f"{name.removesuffix('weight')}running_mean" not in state:
            yield name, "a one-dimensional weight"
        elif tensor.ndim > 2 or (tensor.ndim == 2 and (modern or not (legacy or len(weights) < 2))):
            yield name, "a layer of PyTorch"


def _is_known(parts: list[str], state: Mapping[str, Array]) -> bool:
    """Return whether a weight belongs to a layer of ai8x."""
    layer = ".".join(parts[:-2]) or parts[0]
    noted = any(f"{layer}.{name}" in state for name in _BOOKKEEPING) and len(parts) == 2
    return parts[-2] in _OPERATIONS or parts[-2] == "bn" or noted


def refuse_foreign(checkpoint: Checkpoint, doing: str) -> None:
    """Raise InputError E712 that names the tensors of a network that is not made of ai8x layers.

    `doing` is what cannot be done with them, such as "be quantized".
    """
    refuse_integers(checkpoint)
    if _LOWBIT in checkpoint.extras:
        raise InputError(
            "E712",
            f"a low-bit network cannot {doing}: its layers are not those of ai8x",
            remedy="Its weights become a header: quantize.py INPUT MODEL.h --device BITNET.",
        )
    state = checkpoint.state_dict
    tensors = list(foreign_tensors(state))
    if not tensors:
        return
    named = ", ".join(f"{name} ({what})" for name, what in tensors[:_SHOWN])
    more = f" and {len(tensors) - _SHOWN} more" if len(tensors) > _SHOWN else ""
    raise InputError(
        "E712",
        f"tensors that belong to no layer of ai8x cannot {doing}: {named}{more}",
        remedy=_BESIDE if any(name.endswith(".op.weight") for name in state) else REMEDY,
    )
