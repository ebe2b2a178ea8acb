"""Networks of ordinary PyTorch modules, made into networks of ai8x layers (--import).

Source: docs/own-models.md, "An ordinary PyTorch network".
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, fx, nn

import ai8x
from ai8xtools.checkpoint import read_checkpoint, refuse_integers
from ai8xtools.checkpoint.errors import CheckpointError
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.frontends.modules.foreign import foreign_modules
from ai8xtools.frontends.modules.mixed import with_rectifiers
from ai8xtools.frontends.modules.plain.network import Imported, import_network
from ai8xtools.training.catalog.discovery import LAYER_KEYWORDS, ModelEntry
from device import MAX78000, chip_of_die

_NOTES, _LEFT, _COMPLETED = "notes of the import", "left to the application", "completed"
UNPROVEN = "results were not compared with those of the source (--no-prove-import)"
_COUNTS = ("n_averaged",)
State = Mapping[str, Tensor]


def plain_state(path: str) -> dict[str, Tensor] | None:
    """Return the tensors of a file if they are of an ordinary network, None for ai8x layers.

    The file may be a checkpoint or a state_dict itself; it is data and nothing of it is executed.
    """
    checkpoint = read_checkpoint(path, bare=True)
    refuse_integers(checkpoint, path)
    state = checkpoint.state_dict
    if any(name.endswith((".op.weight", ".output_shift")) for name in state):
        return None
    return {name: torch.from_numpy(tensor.copy()) for name, tensor in state.items()}


def imported(
    entry: ModelEntry,
    name: str,
    state: State | None,
    path: str | None,
    *,
    asked: bool = True,
    prove: bool = True,
) -> ModelEntry:
    """Return the entry of a network that is imported when it is made.

    `name` is what --model said. `state` are the tensors of the ordinary network at `path`, None
    leaves those that its constructor gives. A network of ai8x layers stays as it is, and so does
    one with other weights beside them if the user has not `asked` for it: nothing quantizes those.
    With `prove` its results are compared with those of the ordinary network.
    """

    def make(**keywords: Any) -> nn.Module:
        plain = {k: v for k, v in keywords.items() if k not in LAYER_KEYWORDS}
        size = (keywords["num_channels"], *keywords["dimensions"])
        example = torch.zeros(1, *size[: entry.dim + 1])
        model = with_rectifiers(entry.make(**plain), example, {})
        layers = (isinstance(one, ai8x.QuantizationAwareModule) for one in model.modules())
        foreign = [model.get_submodule(one) for one, _ in foreign_modules(model)]
        weights = (weight for one in foreign for weight in one.parameters())
        if any(layers) and (not foreign or (not asked and any(True for _ in weights))):
            network: nn.Module = entry.make(**keywords)
            return network
        if state is not None:
            load_plain(model, state, path)
        model = taking_vectors(model, example)
        layer_keywords = {k: keywords[k] for k in LAYER_KEYWORDS if keywords.get(k)}
        result = import_network(model, example, name, layer_keywords, prove=prove)
        return with_notes(result if prove else replace(result, notes=(*result.notes, UNPROVEN)))

    return replace(entry, make=make)


def completed(entry: ModelEntry, name: str, *, prove: bool = True) -> ModelEntry:
    """Return the entry of a network that is imported when it is made if it consists of layers of
    ai8x and computes between them what these do not, such as sums without limits.

    Its batch normalization is fused then. What an import refuses as well stays as it is, and so
    does a network of which it folds factors or parameters into weights: those of a checkpoint,
    which are loaded later, would lack them.
    """

    def make(**keywords: Any) -> nn.Module:
        network: nn.Module = entry.make(**keywords)
        ours = any(isinstance(one, ai8x.QuantizationAwareModule) for one in network.modules())
        if not ours or isinstance(network, fx.GraphModule):
            return network
        size = (keywords["num_channels"], *keywords["dimensions"])
        example = torch.zeros(1, *size[: entry.dim + 1])
        common = {k: keywords[k] for k in LAYER_KEYWORDS if keywords.get(k)}
        whole = copy.deepcopy(network)
        assert ai8x.dev is not None
        chip = chip_of_die(ai8x.dev.device) or MAX78000
        network = with_rectifiers(network, example, common)
        from ai8xtools.frontends.modules.networks import is_describable  # few networks come here

        if any(foreign_modules(network)) or is_describable(network, example, chip):
            return network
        ai8x.fuse_bn_layers(whole)
        try:
            made = with_notes(import_network(whole, example, name, common, prove=prove))
        except InputError:
            return network
        before, after = whole.state_dict(), made.state_dict()
        lost = before.keys() - after.keys()
        weights = {name for name in before if name.endswith((".op.weight", ".op.bias"))} - lost
        if _of_others(whole, lost) or any(
            not torch.equal(before[name], after[name]) for name in weights
        ):
            return network
        made.meta[_COMPLETED] = lost
        return made

    return replace(entry, make=make)


def _of_others(network: nn.Module, names: Set[str]) -> bool:
    """Return whether a tensor is not one that layers of ai8x have by themselves."""
    parts = (*ai8x.MaxPool2d(2).state_dict(), "op.", "bn.")
    layers = tuple(f"{name}.{part}" for name, one in network.named_modules()
                   if isinstance(one, ai8x.QuantizationAwareModule) for part in parts)  # fmt: skip
    return any(not name.startswith(layers) for name in names)


def is_completed(network: nn.Module) -> bool:
    """Return whether a network is one that `completed` imported: its weights need calibration."""
    return _COMPLETED in getattr(network, "meta", {})


def uncalled(network: nn.Module) -> Set[str]:
    """Return the tensors of a completed network that stand for layers that it does not call."""
    names: Set[str] = getattr(network, "meta", {}).get(_COMPLETED, frozenset())
    return names


def with_notes(result: Imported) -> Any:
    """Return the network of an import, which remembers what `notes_of` tells."""
    network: Any = result.network
    network.meta[_NOTES] = result.notes
    network.meta[_LEFT] = result.left
    return network


def notes_of(network: nn.Module) -> list[str]:
    """Return lines about what the import of a network has rewritten, or left to the application."""
    meta = getattr(network, "meta", {})
    left = [f"Left to the application: {node}" for node in meta.get(_LEFT, ())]
    return [*(f"Import: {note}" for note in meta.get(_NOTES, ())), *left]


def _unwrapped(state: State, own: State) -> State:
    """Return tensors by the names that a network has, without what wrapped it in training:
    DataParallel, torch.compile, averaging, or a module of a user's such as Lightning's.
    """
    tensors = {name: tensor for name, tensor in state.items() if name not in _COUNTS or name in own}
    while not tensors.keys() <= own.keys():
        prefixes = {name.partition(".")[0] for name in tensors}
        if len(prefixes) > 1 or not all("." in name for name in tensors):
            break
        tensors = {name.partition(".")[2]: tensor for name, tensor in tensors.items()}
    return tensors


def taking_vectors(model: nn.Module, example: Tensor) -> nn.Module:
    """Return a network that takes features as data sets give them: [1, C, 1, ...].

    One that takes only vectors [1, C] flattens them first; others stay as they are.
    """
    if example.ndim < 3 or example.numel() != example.shape[1]:
        return model
    training = model.training
    model.eval()
    try:
        takes = [_computes(model, x) for x in (example, example.flatten(1))]
    finally:
        model.train(training)
    if takes == [False, True]:
        kind = type(model)
        forward = {"forward": lambda self, x: kind.forward(self, x.flatten(1))}
        model.__class__ = type(kind.__name__, (kind,), forward)
    return model


@torch.no_grad()
def _computes(model: nn.Module, x: Tensor) -> bool:
    """Return whether a network can compute an input."""
    try:
        model(x)
    except Exception:
        return False
    return True


def load_plain(model: nn.Module, state: State, path: str | None) -> None:
    """Fill an ordinary network; CheckpointError E676 for tensors of another one."""
    own = model.state_dict()
    state = _unwrapped(state, own)
    missing = [name for name in own if name not in state and not name.endswith("tracked")]
    surplus = [name for name in state if name not in own]
    reshaped = [name for name in own if name in state and own[name].shape != state[name].shape]
    if missing or surplus or reshaped:
        names = [*missing, *reshaped, *surplus]
        counts = f"{len(missing)} missing, {len(reshaped)} of another shape, {len(surplus)} surplus"
        raise CheckpointError(
            "E676",
            f"the weights are not those of {type(model).__name__}: {counts}, first {names[0]}",
            path,
            _remedy(missing, surplus),
        )
    model.load_state_dict(state, strict=False)


def _remedy(missing: Sequence[str], surplus: Sequence[str]) -> str:
    """Return what to do about tensors of another network, or of one that contains the network."""
    inside = [name for name in surplus if missing and name.endswith(f".{missing[0]}")]
    if not inside:
        return "Compare --model with the network that was saved."
    path = inside[0].removesuffix(f".{missing[0]}")
    return f"Save the part of it that is the network: {path}.state_dict()."
