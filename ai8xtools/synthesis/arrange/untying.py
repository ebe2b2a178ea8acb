"""Copies where data would have to stand in two places at once.

Source: docs/placement.md, "Layers that are added or merged".
"""

from __future__ import annotations

from dataclasses import replace

from ai8xtools.diagnostics import Diagnostic, DiagnosticError, Severity
from ai8xtools.synthesis.arrange.bounds import Witness, tied_in_vain
from ai8xtools.synthesis.arrange.graph import channels_of, reading, sources
from ai8xtools.synthesis.arrange.keeping import UnreachableError
from ai8xtools.synthesis.arrange.links import TiedLayerError
from ai8xtools.synthesis.arrange.problem import problem_of
from ai8xtools.synthesis.arrange.rewrites import with_copies
from ai8xtools.synthesis.arrange.rewrites.copying import CopiedPart, copied, copying
from ai8xtools.synthesis.arrange.rewrites.merging import is_special
from ai8xtools.synthesis.arrange.values import Choice, Problem
from ai8xtools.synthesis.layout import LayerLayout, Layout
from ai8xtools.synthesis.network import Layer, Network
from ai8xtools.values import frozen
from device import Chip

_STEPS = 40
"""At most so many copies."""


@frozen
class _State:
    """A network before the copies of `with_copies`, and the reason why its data cannot be placed.

    `stuck` are the layers whose sources should be copied, the best first, by their place in the
    network; none if there is nothing. `size` is the number of maps that are tied together.
    """

    network: Network
    fixed: Layout
    notices: tuple[Diagnostic, ...]
    stuck: tuple[int, ...] = ()
    size: int = 0


def untied(
    network: Network, fixed: Layout, chip: Chip
) -> tuple[Network, Layout, tuple[Diagnostic, ...]]:
    """Return the network with copies by kernels, which may stand anywhere, and a notice of each.

    The result has to be given to `with_copies`; it may still be stuck. Without ties that cannot be
    kept the network stays as it is.
    """
    state = _judged(_State(network, fixed, ()), chip)
    for _ in range(_STEPS):
        tried = [_judged(x, chip) for x in _steps(state)]
        if not tried:
            break
        state = max(tried, key=lambda x: (not x.stuck, -x.size))
    return state.network, state.fixed, state.notices


def _steps(state: _State) -> list[_State]:
    """Return the networks with one copy more for a layer that is stuck."""
    for number in state.stuck:
        reader = state.network.layers[number]
        states = []
        for place, owner in enumerate(sources(state.network, reader)):
            if owner >= 0 and _copies_for(state.network, owner, reader):
                continue
            count = channels_of(state.network, owner)
            notices = list(state.notices)
            changed = copied(
                state.network, state.fixed, reader, place, (CopiedPart(0, count, count),),
                f"{reader} needs them elsewhere than others", notices,
            )  # fmt: skip
            if changed is not None:
                states.append(_State(*changed, tuple(notices)))
        if _passes_on(state, reader):
            states.append(_by_kernels(state, reader))
        if states:
            return states
    return []


def _passes_on(state: _State, layer: Layer) -> bool:
    """Whether a layer without kernels only pools, or puts together what is joined."""
    free = state.fixed.layers[layer.index] == LayerLayout()
    return free and not (layer.has_weights or layer.combination or is_special(layer))


def _by_kernels(state: _State, layer: Layer) -> _State:
    """Return the network in which kernels that copy pass on what a layer passes on."""
    layers = tuple(copying(x) if x is layer else x for x in state.network.layers)
    notice = layer.diagnostic(
        "N425",
        "copies its channels by kernels: the result is needed in other processors than what is "
        "read",
        "op",
        severity=Severity.NOTICE,
    )
    network = replace(state.network, layers=layers)
    return _State(network, state.fixed, (*state.notices, notice))


def _copies_for(network: Network, owner: int, reader: Layer) -> bool:
    """Whether a layer copies for this reader alone."""
    readers = [x.index for x in network.executed() if owner in sources(network, x)]
    return network.layer(owner).copied is not None and readers == [reader.index]


def _judged(state: _State, chip: Chip) -> _State:
    """Find the layers whose sources cannot stand where they have to."""
    network = state.network
    whole, open_, _ = with_copies(network, state.fixed, chip)
    try:
        problem = problem_of(whole, open_, chip, Choice(), {})
    except TiedLayerError as exc:
        stuck, size = [exc.layer], len(whole.layers)
    except (DiagnosticError, UnreachableError):
        return state  # it is refused for another reason
    else:
        witness = tied_in_vain(problem)
        if witness is None:
            return state
        stuck, size = _ties(problem, witness)
    names = {layer.name for layer in network.layers}
    places = [sum(x.name in names for x in whole.layers[:i]) for i in stuck]
    return replace(state, stuck=tuple(places), size=size)


def _ties(problem: Problem, witness: Witness) -> tuple[list[int], int]:
    """Return the layers that tie maps to each other, the last first, and how many are tied."""
    network = problem.network
    largest = max(problem.units, key=lambda unit: len(unit.members))
    tying = [layer.index for layer in network.executed() if reading(network, layer).tied]
    return [*reversed(tying), *witness.layers], len(largest.members)
