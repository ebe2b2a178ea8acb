# ruff: noqa: ARG005 - calls get two results
"""Every function of torch and every method of its tensors, between layers and at the end.

Each is called with a few arguments on a map, a series and a vector. A network that torch computes
is imported for the accelerator and for kernels of 16 bits: taken and right, or refused. Nothing
else may happen, whatever the function is.

    python -m tests.frontends.every_function    # about 4 minutes
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

import ai8x
from ai8xtools.commands.q15.network import _compare, graph_of
from ai8xtools.commands.quantize.samples import as_maps
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.frontends.modules.door import read_module
from ai8xtools.frontends.modules.plain.network import import_network

Function = Callable[[Any, Any], Any]
SHAPES = ((3, 6, 6), (3, 12), (7,))
ARGUMENTS: tuple[tuple[Any, ...], ...] = (
    (), (1,), (-1,), (2,), (0.5,), (2, 1), (0, 1), (1, True), (3, 1, 1), (1, 2, 3), (1, 0, 2),
    ((2, 3),), ((3, 3),), ((1, 2, 2, 1),),
)  # fmt: skip
RANDOM = {"dropout", "alpha_dropout", "rrelu", "gumbel_softmax", "bernoulli", "multinomial"}
RANDOM |= {"rand_like", "randn_like", "empty_like", "new_empty", "randint_like"}
SYSTEM = {"backward", "cuda", "xpu", "ipu", "hpu", "mtia", "pin_memory", "share_memory_", "set_",
          "resize_", "resize_as_", "register_hook", "retain_grad", "apply_", "map_", "map2_",
          "record_stream", "__class__"}  # fmt: skip
"""What is not about values, or ends the process."""


class Between(nn.Module):
    """A function of two results of layers; a fully connected layer follows, but at the end."""

    def __init__(self, shape: tuple[int, ...], function: Function, end: bool) -> None:
        super().__init__()
        kinds: Any = {3: nn.Conv2d, 2: nn.Conv1d}
        self.a, self.b = (
            kinds[len(shape)](3, 4, 3, padding=1) if len(shape) > 1 else nn.Linear(shape[0], 8)
            for _ in "ab"
        )
        self.function, self.last = function, None if end else nn.LazyLinear(5)

    def forward(self, x: Tensor) -> Any:
        found = self.function(self.a(x), self.b(x))
        return found if self.last is None else self.last(found.flatten(1))


def functions() -> Iterator[tuple[str, Function]]:
    """Yield calls of all functions, with what to print of them."""

    def method(name: str, given: Any) -> Function:
        return lambda a, b: getattr(a, name)(*given)

    def free(function: Any, given: Any) -> Function:
        return lambda a, b: function(a, *given)

    for place in (Tensor, functional, torch):
        for name in sorted(dir(place)):
            found = getattr(place, name, None)
            hidden = name.startswith("_") and not name.startswith("__")
            known = place is torch and (hasattr(Tensor, name) or isinstance(found, type))
            if hidden or known or not callable(found) or name in RANDOM | SYSTEM:
                continue
            if name.startswith("__") and place is not Tensor:
                continue
            make, what = (method, name) if place is Tensor else (free, found)
            for given in ARGUMENTS:
                yield f"{name}{given}", make(what, given)
            if place is Tensor:
                yield f"{name}(b)", lambda a, b, name=name: getattr(a, name)(b)
            else:
                yield f"{name}(a, b)", lambda a, b, found=found: found(a, b)
                yield f"{name}([a, b], 1)", lambda a, b, found=found: found([a, b], 1)


def network_of(shape: tuple[int, ...], function: Function, end: bool, x: Tensor) -> Any:
    """Return a network that computes numbers for each sample of a batch; None for others."""
    torch.manual_seed(0)
    first: Function = lambda a, b: function(a, b)[0]  # noqa: E731
    try:
        with torch.no_grad():
            several = isinstance(Between(shape, function, True)(x[:1]), tuple | list)
            network = Between(shape, first if several else function, end).eval()
            one, all_ = network(x[:1]), network(x)
        good = one.dtype == torch.float32 and bool(one.isfinite().all())
        same = one.shape[:1] == (1,) and all_.shape == (len(x), *one.shape[1:])
    except Exception:  # whatever torch says of arguments that do not fit
        return None
    return network if good and same else None


def outcome(network: Any, x: Tensor, road: str) -> str:
    """Return "right", the code of a refusal, or what is raised else."""
    try:
        if road == "accelerator":
            import_network(network, x[:1], "net", {})
        else:
            graph, left = graph_of(read_module(network, x[:1]), "net")
            with torch.no_grad():
                _compare(network(x).double(), graph, as_maps(x), left, "net", "net")
    except InputError as refusal:
        return refusal.code
    except Exception as exc:  # what this looks for
        return f"{type(exc).__name__}: {str(exc)[:80]}"
    return "right"


def main() -> int:
    """Try all, and print a table; return 1 if anything else than a refusal is raised."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    ai8x.set_device(87, simulate=False, round_avg=False, verbose=False)
    counts: Counter[tuple[str, str]] = Counter()
    for shape in SHAPES:
        x = torch.rand(6, *shape, generator=torch.Generator().manual_seed(0)) * 2 - 1
        for shown, function in functions():
            for end in (False, True):
                network = network_of(shape, function, end, x)
                for road in ("accelerator", "kernels") if network is not None else ():
                    found = outcome(network, x, road)
                    counts[road, found] += 1
                    if found not in ("right", "E647", "E670"):
                        where = "at the end" if end else "between"
                        print(f"{shown} {where}, {shape}, {road}: {found}", flush=True)
    for key, count in sorted(counts.items()):
        print(*key, count)
    return int(any(code != "right" and not code.startswith("E6") for _, code in counts))


if __name__ == "__main__":
    sys.exit(main())
