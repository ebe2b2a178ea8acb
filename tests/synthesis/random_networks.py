"""Random legal networks: a chip, one to five layers of any kind, weights, biases and a sample.

The strategy computes channels, passes, processor maps and offsets by itself, from
docs/network-description.md, "What follows from other keys"; docs/errors.md, "Operators of a layer";
resolving, checking and placing are what it is to test.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from ai8xtools.diagnostics import Diagnostic
from ai8xtools.synthesis.layout import InputPort
from ai8xtools.synthesis.mapping import MappedNetwork
from ai8xtools.synthesis.network import Network
from ai8xtools.synthesis.parse import parse
from ai8xtools.synthesis.parse.keys import LAYOUT_KEYS
from ai8xtools.synthesis.resolve import resolve
from device import MAX78000, MAX78002, Chip
from device.channels import channels_per_pass, passes
from device.masks import lowest_bit
from tests.synthesis import random_memory as memory
from tests.synthesis.networks import build, describe, files, mask, sample
from tests.synthesis.random_growth import CHANNELS, FEW, Array, Goal, Growing, Keys
from tests.synthesis.random_layers import add_layer
from tests.synthesis.random_memory import INPUT, Budget, Held
from tests.synthesis.random_operators import draw_pooling

MOST_LAYERS = 5
_PORTS = {"memory": InputPort.MEMORY, "fifo": InputPort.FIFO, "fast": InputPort.FAST_FIFO}


@dataclass(frozen=True)
class RandomNetwork:
    """A drawn network: the keys of its layers, and the arrays behind them.

    `sources` lists by layer what it reads (INPUT: the sample); `weights_of` which entry of
    `kernels` and `biases` it uses, None without weights of that kind. `rounding` is the option that
    averages are rounded.
    """

    chip: Chip
    layers: tuple[Keys, ...]
    others: Keys
    sources: tuple[tuple[int, ...], ...]
    weights_of: tuple[int | None, ...]
    data: Array
    kernels: tuple[Array, ...]
    biases: tuple[Array, ...]
    port: InputPort
    rounding: bool

    @property
    def text(self) -> str:
        """The description."""
        return describe(*self.layers, **self.others)

    def __repr__(self) -> str:
        shapes = [k.shape for k in self.kernels]
        return (
            f"{self.chip.name}, sample {self.data.shape} through {self.port}, rounding "
            f"{self.rounding}, weights {shapes}\n{self.text}"
        )

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        printer.text(repr(self))

    def build(self, folder: Path) -> tuple[MappedNetwork, tuple[Diagnostic, ...]]:
        """Parse and resolve: return the network and the warnings."""
        return build(
            folder,
            self.text,
            self.data,
            self.kernels,
            self.biases,
            self.chip,
            input_port=self.port,
        )

    def without_layout(self, folder: Path) -> Network:
        """Resolve the network for no chip, from a description without keys of the layout."""
        unused = {**dict.fromkeys(LAYOUT_KEYS - {"offset"}), "out_offset": None}
        text = describe(*({**keys, **unused} for keys in self.layers), **self.others)
        resolving = files(folder, self.data, self.kernels, self.biases)
        return resolve(parse(text, placed=False), None, resolving)[0]


@st.composite
def random_networks(
    draw: st.DrawFn, chip: Chip | None = None, *, careful: bool = True
) -> RandomNetwork:
    """Draw a network that is legal on its chip; a careful one draws no warning of wrong words."""
    chip = chip or draw(st.sampled_from([MAX78000, MAX78002]))
    count = draw(st.integers(1, MOST_LAYERS))
    port = draw(st.sampled_from(["memory", "memory", "memory", "fifo", "fast"]))
    stream = draw(st.integers(0, min(count, 3))) if port != "memory" else 0
    growing = Growing(draw, chip, port, Budget(chip), stream, careful=careful)
    growing.binary = chip.has_binary_weights and draw(st.booleans())
    held, data = _sample(growing)
    while len(growing.layers) < count:
        held = _block(growing, held, count - len(growing.layers))
        growing.budget.forget_all_but(held.sources)
    _deliver(growing)
    if data.ndim == 2 and _moves_in_two_directions(growing.layers[0]):
        data = data[..., None]
    others = _leave_to_defaults(growing, held)
    return RandomNetwork(
        chip,
        tuple(growing.layers),
        others,
        tuple(growing.sources),
        tuple(growing.weights_of),
        data,
        tuple(growing.kernels),
        tuple(growing.biases),
        _PORTS[port],
        draw(st.booleans()),
    )


def _moves_in_two_directions(layer: dict[str, Any]) -> bool:
    """Whether a layer's kernel wants an image, not a series; it is 3x3 if nothing else is said."""
    return layer["op"].lower() in ("conv2d", "convtranspose2d") and (
        layer.get("kernel_size") not in ("1x1", 1, [1, 1])
    )


def _sample(growing: Growing) -> tuple[Held, Array]:
    """Draw the sample and where it stands."""
    port = growing.port
    through_fifo = port != "memory"
    planar = growing.chance(25)
    most = (
        {"memory": 16, "fifo": 4, "fast": 1}[port]
        if planar
        else {"fifo": 16, "fast": 4}.get(port, 200)
    )
    channels = growing.one_of([n for n in CHANNELS if n <= most])
    series = not growing.stream and growing.chance(30)
    low = 6 if growing.stream else 1
    sides = st.integers(low, 12 if channels <= 64 else 6)
    dim = (
        (growing.draw(st.integers(1, 40)), 1)
        if series
        else (growing.draw(sides), growing.draw(sides))
    )
    operands = (
        growing.one_of([2, 3, 4]) if not (planar or through_fifo) and growing.chance(15) else 1
    )
    if through_fifo:
        processors = memory.fifo_mask(channels, planar)
    elif planar:
        processors = memory.spread(channels)
    else:
        share = channels_per_pass(channels)
        processors = memory.draw_run(growing.draw, share, aligned=False, last=15)
    offset = 0
    if not through_fifo:
        words = (
            -(-dim[0] * dim[1] // 4) if planar else dim[0] * dim[1] * passes(channels) * operands
        )
        offset = growing.budget.place(growing.draw, INPUT, 4 * words)
    held = Held((INPUT,), channels, dim, processors, offset, operands, 0, planar, through_fifo)
    shape = (channels * operands, dim[0]) if series else (channels * operands, *dim)
    return held, sample(*shape, seed=growing.draw(st.integers(0, 1 << 30)))


def _block(growing: Growing, held: Held, left: int) -> Held:
    """Add a layer, or several that read the same and are joined by the layer behind them."""
    streams = len(growing.layers) < growing.stream
    if left >= 3 and held.several_readers and not streams and growing.chance(40):
        count = growing.draw(st.integers(2, min(4, left - 1)))
        join = growing.one_of([_operands, _operands, _side_by_side, _pass_after_pass])
        joined = join(growing, held, count)
        if joined is not None:
            return joined
    result = add_layer(growing, held, final=left == 1)
    if left > 1 and not growing.layers[-1].get("streaming") and growing.chance(10):
        _keep(growing, len(growing.layers) - 1)
    return result


def _keep(growing: Growing, index: int) -> None:
    """Deliver a layer's output too, so that nobody may overwrite it."""
    growing.layers[index]["output"] = True
    growing.budget.kept.add(index)


def _branches(growing: Growing, held: Held, goals: list[Goal]) -> tuple[Held, ...]:
    """Add one layer for each goal; all read the same."""
    return tuple(add_layer(growing, held, final=False, goal=goal) for goal in goals)


def _common_pooling(growing: Growing, held: Held) -> Keys:
    return draw_pooling(growing, held.dim) if growing.chance(30) else {}


def _reserve(growing: Growing, held: Held, count: int, output_passes: int) -> int:
    """Return an offset with room for the outputs of `count` layers that take turns."""
    first = len(growing.layers)
    room = memory.output_bytes(held.dim[0] * held.dim[1], output_passes * count, 1, 0)
    offset = growing.budget.place(growing.draw, first, room)
    for i in range(first, first + count):
        growing.budget.live[i] = growing.budget.live[first]
    return offset


def _operands(growing: Growing, held: Held, count: int) -> Held:
    """Let layers write the operands of an element-wise operation."""
    pooling = _common_pooling(growing, held)
    several = passes(held.channels) > 1
    first = lowest_bit(held.mask)
    run = held.mask >> first == mask(held.mask.bit_count())
    passing = run and not (several and growing.older and pooling)
    aligned = first % 4 == 0
    passing = passing and (aligned or not several) and growing.chance(60)
    channels = held.channels if passing else growing.one_of(CHANNELS)
    if 100 * passes(channels) * passes(held.channels) * count > growing.budget.columns:
        channels = growing.one_of(FEW)
    passing = passing and channels == held.channels
    share = channels_per_pass(channels)
    processors = held.mask if passing else memory.draw_run(growing.draw, share, aligned=True)
    offset = _reserve(growing, held, count, passes(channels))
    goals = [
        Goal(channels, processors, offset + 4 * i, count - 1, pooling, passing)
        for i in range(count)
    ]
    outputs = _branches(growing, held, goals)
    sources = tuple(s for output in outputs for s in output.sources)
    return Held(sources, channels, outputs[0].dim, processors, offset, count)


def _side_by_side(growing: Growing, held: Held, count: int) -> Held:
    """Let layers write channels that are joined on processors next to each other."""
    pooling = _common_pooling(growing, held)
    channels = [growing.one_of(FEW) for _ in range(count)]
    used = sum(-(-c // 4) for c in channels)
    first = 4 * growing.draw(st.integers(0, 16 - used))
    masks = []
    for c in channels:
        masks.append(mask(c, first))
        first += -(-c // 4) * 4
    offset = _reserve(growing, held, count, 1)
    goals = [Goal(c, m, offset, 0, pooling, False) for c, m in zip(channels, masks, strict=True)]
    outputs = _branches(growing, held, goals)
    sources = tuple(s for output in outputs for s in output.sources)
    return Held(sources, sum(channels), outputs[0].dim, sum(masks), offset)


def _pass_after_pass(growing: Growing, held: Held, count: int) -> Held | None:
    """Let layers write channels that are joined as passes of the same processors."""
    pooling = _common_pooling(growing, held)
    share = growing.one_of([64, 60, 48, 36])
    total = share * count
    costs = 75 * count * passes(held.channels) > growing.budget.columns
    if costs or passes(total) != count or channels_per_pass(total) != share:
        return None
    processors = memory.draw_run(growing.draw, share, aligned=True)
    offset = _reserve(growing, held, count, 1)
    goals = [
        Goal(share, processors, offset + 4 * i, count - 1, pooling, False) for i in range(count)
    ]
    outputs = _branches(growing, held, goals)
    sources = tuple(s for output in outputs for s in output.sources)
    return Held(sources, total, outputs[0].dim, processors, offset)


def _deliver(growing: Growing) -> None:
    """Once a layer is marked, the last one has to be marked too."""
    if growing.budget.kept and growing.chance(80):
        growing.layers[-1]["output"] = True


def _leave_to_defaults(growing: Growing, held: Held) -> Keys:
    """Remove processor maps that are the default anyway, now and then; return global keys."""
    for layer, following in zip(growing.layers, growing.layers[1:], strict=False):
        if layer["output_processors"] == following["processors"] and growing.chance(30):
            del layer["output_processors"]
    last = growing.layers[-1]
    default = hex(mask(channels_per_pass(held.channels)))
    if last["output_processors"] == default and growing.chance(50):
        del last["output_processors"]
    elif growing.chance(20):
        return {"output_map": last.pop("output_processors")}
    return {}
