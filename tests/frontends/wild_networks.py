"""Random networks as strangers write them, imported, against torch.

Pre-activation blocks, joins of sums and sums of joins, odd sizes, functions in place of modules and
changes in place of data that is read again; half of them also what only microcontrollers compute:
any kernel, activation, normalization, gate, resizing, orders of channels, recurrent layers. Each is
computed by torch in float64, by the graph of operators in which Q15 is quantized, and by the layers
of ai8x that it becomes, before anything is quantized; for microcontrollers also in whole numbers,
of 8 bits or for every third of 15, by the steps of a program.

    python -m tests.frontends.wild_networks --count 2000 --seed 1

With `--compile` the program of each microcontroller is compiled with sanitizers and run, of Q15's
formats (16 bits, every third 8) as well.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

import ai8x
from ai8xtools.commands.q15.network import graph_of
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.frontends.graph import passes
from ai8xtools.frontends.layers import refuse
from ai8xtools.frontends.modules.door import read_module
from ai8xtools.frontends.modules.plain.network import import_network
from ai8xtools.frontends.modules.plain.unlimited import Unlimited
from ai8xtools.quantization.formats import to_fixed
from ai8xtools.quantization.integers import BITS, WIDE, measured
from ai8xtools.quantization.operators import PASSES, quantized
from ai8xtools.quantization.q15.execute import execute as execute_q15
from ai8xtools.quantization.q15.execute import quantize_input
from ai8xtools.quantization.q15.floating import compute, measure
from ai8xtools.quantization.q15.formats import Guard
from ai8xtools.quantization.q15.network import quantize_network
from ai8xtools.software.operators.execute import execute
from ai8xtools.software.operators.lower import Lowering
from ai8xtools.software.operators.storage import laid
from ai8xtools.software.q15.emit import Sample as Known
from ai8xtools.software.q15.emit import emit
from tests.software.compiled import SANITIZED, passed, run_project
from tests.software.graphs import project_of

TOLERANCE = 1e-5  # of the largest magnitude
RELUS = {
    "function": functional.relu, "torch": torch.relu, "method": lambda x: x.relu(),
    "in place": lambda x: functional.relu(x, inplace=True), "method in place": lambda x: x.relu_(),
    "clamp": lambda x: x.clamp(min=0), "maximum": lambda x: torch.clamp_min(x, 0.0),
}  # fmt: skip
JOINS = ("plus", "add", "in place", "method", "three", "twice", "difference")


ACTIVATIONS: tuple[Callable[[int], nn.Module], ...] = (
    lambda _: nn.Sigmoid(), lambda _: nn.Tanh(), lambda _: nn.SiLU(), lambda _: nn.GELU(),
    lambda _: nn.GELU("tanh"), lambda _: nn.ELU(0.7), lambda _: nn.SELU(), lambda _: nn.Mish(),
    lambda _: nn.Softplus(), lambda _: nn.Hardswish(), lambda _: nn.Hardsigmoid(),
    lambda _: nn.LeakyReLU(0.3), lambda _: nn.ReLU6(), nn.PReLU, lambda _: nn.CELU(0.5),
)  # fmt: skip
NORMALIZATIONS: tuple[Callable[..., nn.Module], ...] = (
    lambda channels, axes: (nn.InstanceNorm2d if axes == 2 else nn.InstanceNorm1d)(
        channels, affine=True
    ),
    lambda channels, _: nn.GroupNorm(channels if channels % 2 else 2, channels),
    lambda channels, _: nn.GroupNorm(1, channels), lambda channels, _: nn.LayerNorm(channels),
)  # fmt: skip


class Wild(nn.Module):
    """A network drawn from a seed; `shape` is that of its input."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.random = np.random.default_rng(seed)
        self.axes = int(self.one(2, 2, 1))
        self.shape = (self.one(1, 2, 3), *(self.one(5, 7, 8, 9, 11, 13) for _ in range(self.axes)))
        self.parts = nn.ModuleDict()
        self.steps: list[Any] = []
        channels = self.one(4, 5, 6)
        self.steps.append(self.unary(self.conv(self.shape[0], channels)))
        kinds = (self.preactivation, self.residual, self.joined, self.pooled, self.dense, self.odd)
        kinds += self.one((), (self.active, self.normalized, self.any_kernel, self.transposed,
                               self.resized, self.gated, self.ordered, self.combined,
                               self.recurrent, self.attention, self.masked))  # fmt: skip
        for _ in range(self.one(1, 2, 3)):
            step, channels = self.one(*kinds)(channels)
            self.steps.append(step)
        self.steps.append(self.head(channels))
        self.eval()
        for number, tensor in enumerate((*self.parameters(), *self.buffers())):
            generator = torch.Generator().manual_seed(1000 * seed + number)
            self.spoil(tensor.data, generator)

    @staticmethod
    def spoil(tensor: Tensor, generator: torch.Generator) -> None:
        """Draw weights, and statistics of normalization that are positive."""
        if tensor.ndim > 1:
            tensor.normal_(0, tensor[0].numel() ** -0.5, generator=generator)
        elif tensor.ndim == 1:
            tensor.uniform_(0.4, 1.6, generator=generator)

    def forward(self, x: Tensor) -> Tensor:
        for step in self.steps:
            x = step(x)
        return x

    def one(self, *choices: Any) -> Any:
        return choices[int(self.random.integers(len(choices)))]

    def part(self, module: nn.Module) -> str:
        name = f"part{len(self.parts)}"
        self.parts[name] = module
        return name

    def unary(self, name: str) -> Any:
        return lambda x: self.parts[name](x)

    def conv(self, taken: int, given: int, kernel: int = 3, stride: int = 1) -> str:
        kind: Any = nn.Conv2d if self.axes == 2 else nn.Conv1d
        return self.part(kind(taken, given, kernel, stride, kernel // 2, bias=bool(self.one(0, 1))))

    def norm(self, channels: int) -> str:
        return self.part((nn.BatchNorm2d if self.axes == 2 else nn.BatchNorm1d)(channels))

    def relu(self) -> Any:
        """Return some form of ReLU."""
        if self.one(0, 1, 1):
            return RELUS[self.one(*RELUS)]
        return self.unary(self.part(nn.ReLU(inplace=bool(self.one(0, 1)))))

    def sum(self) -> Any:
        """Return some form of a sum of two results."""
        how = self.one(*JOINS)

        def added(a: Tensor, b: Tensor) -> Tensor:
            if how == "in place":
                a += b
                return a
            return {
                "plus": lambda: a + b, "add": lambda: torch.add(a, b), "method": lambda: a.add_(b),
                "three": lambda: a + b + a, "twice": lambda: (a + b) + (b + a),
                "difference": lambda: a - b,
            }[how]()  # fmt: skip

        return added

    def preactivation(self, channels: int) -> Any:
        """Normalization and ReLU before each convolution; what is rectified may be the input."""
        names = [self.norm(channels), self.conv(channels, channels), self.norm(channels),
                 self.conv(channels, channels)]  # fmt: skip
        first, second, add, bare = self.relu(), self.relu(), self.sum(), self.one(0, 1)

        def step(x: Tensor) -> Tensor:
            y = first(x) if bare else first(self.parts[names[0]](x))
            y = second(self.parts[names[2]](self.parts[names[1]](y)))
            return add(self.parts[names[3]](y), x)

        return step, channels

    def residual(self, channels: int) -> Any:
        """A shortcut with or without a convolution; half of them are halved."""
        given, stride = self.one(channels, channels + 2), self.one(1, 1, 2)
        plain = given == channels and stride == 1
        names = [self.conv(channels, given, stride=stride), self.norm(given),
                 self.conv(given, given), self.conv(channels, given, 1, stride)]  # fmt: skip
        inner, outer, add = self.relu(), self.relu(), self.sum()

        def step(x: Tensor) -> Tensor:
            y = self.parts[names[2]](inner(self.parts[names[1]](self.parts[names[0]](x))))
            return outer(add(y, x if plain else self.parts[names[3]](x)))

        return step, given

    def joined(self, channels: int) -> Any:
        """A join of a sum and a convolution, or a sum of two joins."""
        names = [self.conv(channels, channels) for _ in range(4)]
        add, relu, sums = self.sum(), self.relu(), self.one(0, 1)

        def step(x: Tensor) -> Tensor:
            a, b, c, d = (self.parts[name](x) for name in names)
            if sums:
                return relu(torch.cat((add(a, b), c), 1))
            return relu(add(torch.cat((a, b), 1), torch.cat((c, d), dim=1)))

        return step, 2 * channels

    def dense(self, channels: int) -> Any:
        """What a layer takes is joined with what it gives, before or behind ReLU."""
        name, relu, late = self.conv(channels, 3), self.relu(), self.one(0, 1)

        def step(x: Tensor) -> Tensor:
            if late:
                return relu(torch.cat([x, self.parts[name](x)], 1))
            return torch.cat([relu(self.parts[name](x)), x], dim=-1 - self.axes)

        return step, channels + 3

    def pooled(self, channels: int) -> Any:
        """Pooling of odd sizes, by functions."""
        kind = "max" if self.one(0, 1) else "avg"
        pool = getattr(functional, f"{kind}_pool{self.axes}d")
        window, stride = self.one((2, 2), (3, 2), (2, 1), (3, 3), (1, 2))
        padding = self.one(0, 1) if window == 3 else 0
        name = self.conv(channels, channels)
        return lambda x: self.parts[name](pool(x, window, stride, padding)), channels

    def odd(self, channels: int) -> Any:
        """Sections, factors, strides of data, limits and dropout."""
        kind = self.one("half", "every", "shift", "limit", "dropout", "crop", "weight")
        name = self.conv(channels, channels)
        steps = {
            "half": lambda x: x * 0.5,
            "every": lambda x: x[..., ::2], "shift": lambda x: x + 0.25,
            "limit": lambda x: x.clamp(0, 6), "crop": lambda x: x[..., 1:-1],
            "dropout": lambda x: functional.dropout(x, 0.3, training=self.training),
            "weight": lambda x: 2 * x - x,
        }  # fmt: skip
        return lambda x: self.parts[name](steps[kind](x)), channels

    def active(self, channels: int) -> Any:
        """An activation, or a function that is steep or has a step."""
        name, kind = self.conv(channels, channels), self.one("module", "module", "exp", "sign")
        module = self.part(self.one(*ACTIVATIONS)(channels))
        functions = {"module": self.parts[module], "exp": torch.exp, "sign": torch.sign}
        return lambda x: functions[kind](self.parts[name](x)), channels

    def normalized(self, channels: int) -> Any:
        """Normalization by the statistics of the sample."""
        name, conv = self.part(self.one(*NORMALIZATIONS)(channels, self.axes)), self.one(0, 1)
        inner, axes = self.conv(channels, channels), self.axes

        def step(x: Tensor) -> Tensor:
            y = self.parts[inner](x) if conv else x
            if isinstance(self.parts[name], nn.LayerNorm):
                last, first = (0, *range(2, axes + 2), 1), (0, axes + 1, *range(1, axes + 1))
                return self.parts[name](y.permute(last)).permute(first)
            return self.parts[name](y)

        return step, channels

    def any_kernel(self, channels: int) -> Any:
        """Kernels of any size, stride, dilation and group, padded on any side."""
        kind: Any = nn.Conv2d if self.axes == 2 else nn.Conv1d
        kernel = tuple(self.one(1, 2, 3, 4, 5) for _ in range(self.axes))
        stride, dilation = self.one(1, 1, 2, 3), self.one(1, 1, 2)
        groups, same = self.one(1, 1, channels), self.one(0, 0, 1)
        pads = [self.one(0, 1, 2, 4) for _ in range(2 * self.axes)]
        given = channels * self.one(1, 2)
        settings = {"padding": "same"} if same else {"stride": stride}
        name = self.part(kind(channels, given, kernel, dilation=dilation, groups=groups,
                              **settings))  # fmt: skip
        return lambda x: self.parts[name](x if same else functional.pad(x, pads)), given

    def transposed(self, channels: int) -> Any:
        """A transposed convolution."""
        kind: Any = nn.ConvTranspose2d if self.axes == 2 else nn.ConvTranspose1d
        kernel, stride = self.one((2, 2), (3, 2), (3, 1), (4, 2), (2, 3))
        name = self.part(kind(channels, 5, kernel, stride, padding=self.one(0, 1)))
        return lambda x: self.parts[name](x), 5

    def resized(self, channels: int) -> Any:
        """Nearest or linear interpolation."""
        linear = "bilinear" if self.axes == 2 else "linear"
        mode, factor, name = self.one("nearest", linear), self.one(2, 3), self.conv(channels, 4)
        return lambda x: self.parts[name](
            functional.interpolate(x, scale_factor=factor, mode=mode)), 4  # fmt: skip

    def gated(self, channels: int) -> Any:
        """Squeeze and excitation."""
        names = [self.conv(channels, 3, 1), self.conv(3, channels, 1)]
        relu, kind = self.relu(), self.one("sigmoid", "hardsigmoid")
        axes = tuple(range(2, 2 + self.axes))

        def step(x: Tensor) -> Tensor:
            gate = self.parts[names[1]](relu(self.parts[names[0]](x.mean(axes, keepdim=True))))
            return x * getattr(functional, kind)(gate)

        return step, channels

    def ordered(self, channels: int) -> Any:
        """Channels in another order, in parts, or turned around."""
        kind, name = self.one("shuffle", "chunk", "flip", "every"), self.conv(channels, 6)

        def step(x: Tensor) -> Tensor:
            x = self.parts[name](x)
            if kind == "shuffle":
                return x.unflatten(1, (2, 3)).transpose(1, 2).flatten(1, 2)
            if kind == "chunk":
                a, b, c = x.chunk(3, 1)
                return torch.cat((c, a + b, b), 1)
            if kind == "flip":
                return torch.cat((x[:, 3:], x[:, :3]), 1)
            return torch.cat((x[:, ::2], x[:, 1::2]), 1)

        return step, 6

    def combined(self, channels: int) -> Any:
        """Products, maxima and minima of results, and of results and constants."""
        names = [self.conv(channels, channels) for _ in range(2)]
        kind = self.one("mul", "maximum", "minimum", "square", "abs")

        def step(x: Tensor) -> Tensor:
            a, b = (self.parts[name](x) for name in names)
            if kind == "square":
                return a * a - 0.5
            return a.abs() - b if kind == "abs" else getattr(torch, kind)(a, b)

        return step, channels

    def recurrent(self, channels: int) -> Any:
        """A recurrent layer along the columns, or a series."""
        kind: Any = self.one(nn.GRU, nn.LSTM, nn.RNN)
        name, axes = self.part(kind(channels, 3, batch_first=True)), self.axes

        def step(x: Tensor) -> Tensor:
            y = (x.mean(2) if axes == 2 else x).transpose(1, 2)
            y = self.parts[name](y)[0].transpose(1, 2)
            return y[:, :, None] if axes == 2 else y

        return step, 3

    def attention(self, channels: int) -> Any:
        """Attention of pixels of the mean over rows, or of a series, to each other or before."""
        parts = [self.part(nn.Linear(channels, 4)) for _ in range(3)]
        heads, causal, name = self.one(1, 2), self.one(0, 1), self.part(nn.Linear(4, channels))
        axes = self.axes

        def step(x: Tensor) -> Tensor:
            y = (x.mean(2) if axes == 2 else x).transpose(1, 2)
            q, k, v = (self.parts[part](y).unflatten(2, (heads, -1)).transpose(1, 2)
                       for part in parts)  # fmt: skip
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=bool(causal))
            y = self.parts[name](y.transpose(1, 2).flatten(2)).transpose(1, 2)
            return x + (y[:, :, None] if axes == 2 else y)

        return step, channels

    def masked(self, channels: int) -> Any:
        """What a mask chooses, what is turned around, and borders of other values or cut off."""
        kind = self.one("fill", "where", "flip", "cut", "value")
        name = self.conv(channels, channels)
        steps = {
            "fill": lambda x: x.masked_fill(torch.arange(x.shape[-1]) % 3 == 1, 0.25),
            "where": lambda x: torch.where(torch.arange(x.shape[-1]) > 2, x, -x * x),
            "flip": lambda x: x.flip(-1), "cut": lambda x: functional.pad(x, (-1, 2)),
            "value": lambda x: functional.pad(x, (1, 0), value=0.5),
        }  # fmt: skip
        return lambda x: self.parts[name](steps[kind](x)), channels

    def head(self, channels: int) -> Any:
        """Return the end: a mean and a matrix, or a convolution."""
        kind = self.one("mean", "adaptive", "convolution", "amax")
        name, linear = self.conv(channels, 3, 1), self.part(nn.Linear(channels, 4))
        adaptive = getattr(functional, f"adaptive_avg_pool{self.axes}d")
        axes = tuple(range(2, 2 + self.axes))

        def end(x: Tensor) -> Tensor:
            if kind == "convolution":
                return self.parts[name](x).flatten(1)
            if kind == "adaptive":
                return self.parts[linear](adaptive(x, 1).view(x.size(0), -1))
            return self.parts[linear](x.mean(axes) if kind == "mean" else x.amax(dim=axes))

        return end


def judge(seed: int, folder: Path | None = None) -> dict[str, str]:
    """Return what became of a network by each door: right, refused with its code, or wrong.

    With a folder the programs of microcontrollers are compiled there, and run.
    """
    network = Wild(seed)
    die = (85, 87)[seed % 2]
    ai8x.set_device(die, simulate=False, round_avg=False, verbose=False)
    generator = torch.Generator().manual_seed(seed)
    samples = torch.rand(6, *network.shape, generator=generator) * 2 - 1
    samples[0], samples[1] = samples[0].sign(), 1.0
    try:
        with torch.no_grad():
            wanted = network.double()(samples.double())
    except RuntimeError:  # a map that is smaller than a window
        return {}

    def ours() -> Tensor:
        made: Any = import_network(Wild(seed), samples[:1], "net", {}).network.eval()
        with torch.no_grad():
            return Unlimited(made.double()).run(samples.double())

    def graph() -> Tensor:
        found, _ = graph_of(read_module(Wild(seed), samples[:1]), "net")
        maps = samples.double().numpy().reshape((len(samples), *network.shape, 1)[:4])
        if folder is not None:
            ranges = measure(found, [maps]).largest
            bits = 16 if seed % 3 else 8
            made = quantize_network(found, ranges, ranges, bits, Guard.WORST)
            integers = quantize_input(made, maps)
            output = execute_q15(made, integers)[found.output]
            project = emit(made, Known(integers[0], output[0]), "net", "net")
            if not passed(run_project(project, folder, SANITIZED)):
                return torch.full_like(wanted, float("inf"))
        return torch.from_numpy(compute(found, maps)[found.output])

    def steps() -> Tensor:
        arrays = [*samples.double().numpy()[:, None]]
        operators = passes.improved(read_module(Wild(seed), samples[:1]), PASSES)
        bits = BITS if seed % 3 else WIDE
        whole = quantized(operators, measured(operators, arrays), bits)
        lowering = Lowering(whole.graph, "net")
        refuse(lowering.refusals, "net", "MCU")
        program, results = lowering.graph(), []
        for array in arrays:
            fixed = to_fixed(array, whole.fraction, 8)
            (computed,) = execute(program, laid(fixed))
            (expected,) = passes.results(whole.graph, fixed.astype(float))
            if not np.array_equal(np.ravel(computed), np.ravel(laid(np.asarray(expected)))):
                return torch.full_like(wanted, float("inf"))  # whatever is lost by rounding
            results.append(np.asarray(passes.results(operators, array)[0]))
        if folder is not None and not passed(
            run_project(project_of(whole.graph), folder, SANITIZED)
        ):
            return torch.full_like(wanted, float("inf"))
        return torch.from_numpy(np.concatenate(results))

    verdicts = {}
    chip = f"MAX780{'02' if die == 87 else '00'}"
    for door, run in ((chip, ours), ("Q15", graph), ("MCU", steps)):
        try:
            got = run().reshape(wanted.shape)
        except InputError as refusal:
            verdicts[door] = f"refused {refusal.code}: {refusal.message}"
            continue
        error = float((got - wanted).abs().max() / wanted.abs().max())
        verdicts[door] = "right" if error < TOLERANCE else f"WRONG by {error:.2g}"
    return verdicts


def main() -> int:
    """Judge networks and print a table; return 1 if any is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--compile", action="store_true", help="run the C, too")
    args = parser.parse_args()
    torch.set_num_threads(1)
    counts: Counter[tuple[str, str]] = Counter()
    for seed in range(args.seed, args.seed + args.count):
        with tempfile.TemporaryDirectory() as name:
            verdicts = judge(seed, Path(name) if args.compile else None)
        for door, verdict in verdicts.items():
            kind = verdict.partition(":")[0].partition(" by")[0]
            counts[door, kind] += 1
            if kind == "WRONG" or (kind != "right" and door == "MCU"):
                print(f"seed {seed}, {door}: {verdict}")
    for (door, verdict), count in sorted(counts.items()):
        print(f"{door:9} {verdict:14} {count}")
    return int(any(verdict == "WRONG" for _, verdict in counts))


if __name__ == "__main__":
    sys.exit(main())
