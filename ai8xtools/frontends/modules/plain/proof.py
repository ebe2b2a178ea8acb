"""A network of ai8x layers computes what the PyTorch module does that it was made of.

The module itself is run, with its hooks and with what it does in place; the new network is run
without the limits of the chip. Source: docs/own-models.md, "What an import proves".
"""

from __future__ import annotations

import contextlib
import copy
import operator
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.fx.node import map_aggregate

from ai8xtools.diagnostics.errors import InputError, reason_of
from ai8xtools.frontends.modules.plain.unlimited import (
    Recorded,
    RecordedUnlimited,
    Unlimited,
)
from ai8xtools.frontends.modules.tracing import Node, once, path_of

_RANDOM, _EXTREMES = 6, (-1.0, 1.0)
_TOLERANCE = 1e-4  # of the largest magnitude


def prove_module(
    model: nn.Module,
    graph: Any,
    network: fx.GraphModule,
    example: Tensor,
    places: Mapping[Node, Node],
) -> None:
    """Run a module and the network made of it on inputs like `example` [1, C, ...].

    `places` tells which node of the network stands for a node of the traced `graph`. Raises
    InputError E668 naming the first node that departs.
    """
    inputs = [*_inputs(example)]
    with once(), _evaluating(network):
        try:
            expected = [model(x.clone()) for x in inputs]
        except Exception as exc:
            reason = reason_of(exc)
            raise InputError(
                "E647", f"the network cannot be run for random data: {reason}", "--model",
                "The forward function must take all values of -1 to 1.",
            ) from exc  # fmt: skip
        if _agree(network, inputs, expected):
            return
        with contextlib.suppress(Exception):  # not every module can be copied, or has 64 bits
            wide, double = [x.double() for x in inputs], _double(model)
            if _agree(_double(network), wide, [double(x.clone()) for x in wide]):
                return  # it was rounding
        place = _departing(model, graph, network, inputs, expected, places)
    raise InputError(
        "E668", f"the network imported from {type(model).__name__} computes something else, "
        f"first at {place}", "--model",
        "Write this part with modules of PyTorch's own, without hooks, without changes in place.",
    )  # fmt: skip


@contextlib.contextmanager
def _evaluating(network: nn.Module) -> Iterator[None]:
    """Let a network that will be trained compute as behind its training."""
    training = network.training
    network.eval()
    try:
        yield
    finally:
        network.train(training)


def _inputs(example: Tensor) -> Iterator[Tensor]:
    random = torch.Generator().manual_seed(0)
    for _ in range(_RANDOM):
        yield torch.rand(example.shape, generator=random) * 2 - 1
    for value in _EXTREMES:
        yield torch.full_like(example, value)


def _double(model: Any) -> Any:
    return copy.deepcopy(model).double()


def _agree(network: Any, inputs: list[Tensor], expected: list[Any]) -> bool:
    if _agree_at_once(network, inputs, expected):
        return True
    for x, result in zip(inputs, expected, strict=True):
        try:
            output = Unlimited(network).run(x.clone())
        except RuntimeError:  # of shapes
            return False
        if not _equal(result, output):
            return False
    return True


def _agree_at_once(network: Any, inputs: list[Tensor], expected: list[Any]) -> bool:
    """Return whether a network computes all inputs as one batch, in a third of the time.

    The module itself may depend on the size of the batch, or decide by its data.
    """
    try:
        output = Unlimited(network).run(torch.vstack(inputs))
    except RuntimeError:  # of shapes
        return False
    parts: list[Any] = []
    map_aggregate(output, parts.append)
    if not all(isinstance(part, Tensor) and part.shape[:1] == (len(inputs),) for part in parts):
        return False
    split = (map_aggregate(output, operator.itemgetter(n)) for n in range(len(inputs)))
    return all(map(_equal, expected, split))


def _departing(
    model: nn.Module,
    graph: Any,
    network: Any,
    inputs: list[Tensor],
    expected: list[Any],
    places: Mapping[Node, Node],
) -> str:
    """Return the first node of a traced graph whose result departs, or that the module does not
    compute as it was traced."""
    for x, result in zip(inputs, expected, strict=True):
        theirs, ours = Recorded(fx.GraphModule(model, graph)), RecordedUnlimited(network)
        if not _equal(result, theirs.run(x.clone())):
            return "what does not appear in its data flow: a hook, or a change in place"
        with contextlib.suppress(RuntimeError):
            ours.run(x.clone())
        for node, new in places.items():
            their, our = theirs.values.get(node), ours.values.get(new)
            if isinstance(their, Tensor) and not any(
                _equal(f(their), our) for f in (_same, torch.relu, torch.abs)
            ):
                return path_of(node)
    return "its output"


def _same(x: Tensor) -> Tensor:
    return x


def _equal(expected: Any, output: Any) -> bool:
    """Return whether tensors, or structures of them, are equal up to rounding."""
    if isinstance(expected, Tensor) and isinstance(output, Tensor):
        if expected.numel() != output.numel():
            return False
        expected, output = expected.flatten(), output.flatten()
        if not expected.isfinite().all():
            return torch.equal(expected, output)
        close = (expected - output).abs() <= _TOLERANCE * expected.abs().amax().clamp(min=1e-30)
        return bool(close.all())
    if isinstance(expected, dict):
        expected = tuple(expected.values())
    if isinstance(output, dict):
        output = tuple(output.values())
    if isinstance(expected, list | tuple) and isinstance(output, list | tuple):
        return len(expected) == len(output) and all(map(_equal, expected, output))
    return expected is output
