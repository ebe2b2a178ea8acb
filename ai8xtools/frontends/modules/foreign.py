"""Modules that compute but are no layers of ai8x: nothing of them is quantized.

Source: docs/training.md, "Networks without ai8x layers".
"""

from __future__ import annotations

from collections.abc import Iterator

from torch import nn

import ai8x
from ai8xtools.diagnostics.errors import InputError

_SHOWN = 8  # modules named in a message
_HARMLESS = (
    nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.Identity, nn.Flatten,
    nn.Unflatten, nn.Softmax, nn.LogSoftmax, nn.MaxPool1d, nn.MaxPool2d, nn.ModuleList,
    nn.ModuleDict, nn.Sequential, nn.modules.loss._Loss,
)  # fmt: skip
"""These compute nothing in the deployed network, or stand behind its last layer, or give values as
exact as those that they take."""
_OURS = (ai8x.QuantizationAwareModule, ai8x.Eltwise, ai8x.FusedSoftwareLinearReLU)
REMEDY = "Import it: --model FILE:CLASS --import, or build it from the layers of ai8x."


def foreign_modules(model: nn.Module) -> Iterator[tuple[str, str]]:
    """Yield name and type of each module that computes and stands in no layer of ai8x.

    One without weights that the network does not call is left out.
    """
    called = _called(model)
    inside: list[str] = []
    for name, module in model.named_modules():
        if any(name.startswith(f"{outer}.") for outer in inside):
            continue
        kind = type(module)
        if isinstance(module, _OURS) or kind.__module__.startswith("layers."):
            inside.append(name)
        elif kind is not nn.Module and not isinstance(module, _HARMLESS) and _computes(module):
            inside.append(name)
            if called is None or name in called or any(True for _ in module.parameters()):
                yield name, kind.__name__


def _called(model: nn.Module) -> set[str] | None:
    """Return the modules that are nodes of the data flow; None where that cannot be followed."""
    try:
        graph = ai8x.graph_of(model)
    except ai8x.NotTraceableError:
        return None
    return {str(node.target) for node in graph.nodes if node.op == "call_module"}


def _computes(module: nn.Module) -> bool:
    """Return whether a module is one of PyTorch's, or made of one, or has only its own weights."""
    theirs = (kind.__module__ for kind in type(module).__mro__ if kind is not nn.Module)
    if any(name.startswith("torch.nn.") for name in theirs):
        return True
    own = any(True for _ in module.parameters(recurse=False))
    return own and not any(isinstance(one, _OURS) for one in module.modules())


def refuse_foreign(model: nn.Module, doing: str, place: str) -> None:
    """Raise InputError E675 that names the modules, if there are any.

    `doing` is what cannot be done with them, such as "be quantized"; `place` is where it stands.
    """
    modules = list(foreign_modules(model))
    if not modules:
        return
    named = ", ".join(f"{name or 'the network itself'} ({kind})" for name, kind in modules[:_SHOWN])
    more = f" and {len(modules) - _SHOWN} more" if len(modules) > _SHOWN else ""
    raise InputError(
        "E675", f"modules that are no layers of ai8x cannot {doing}: {named}{more}", place, REMEDY
    )
