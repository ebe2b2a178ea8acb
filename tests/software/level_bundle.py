"""Many plans of memory levels as one program in C, whose copies happen when they are waited for.

The program says of each plan whether its outputs are those of the simulation, and how many bytes of
each channel were copied in how many copies; those that nobody waits for, too.
"""

from __future__ import annotations

import random
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from unittest.mock import patch

from ai8xtools.diagnostics import DiagnosticError
from ai8xtools.software.cores import CORES
from ai8xtools.software.emit.project import Sample, emit
from ai8xtools.software.fuse import fuse
from ai8xtools.software.lower import lower
from ai8xtools.software.plan.plan import Plan
from ai8xtools.software.plan.planner import Planner, Wish
from ai8xtools.software.plan.schemes import Scheme
from ai8xtools.software.profile import Profile
from ai8xtools.synthesis.simulate import simulate
from ai8xtools.writing.templates import render
from tests.software.compiled import compiler
from tests.software.level_graphs import DELAYED
from tests.software.networks import random_network
from tests.software.oracle.levels import LevelExecutor
from tests.software.oracle.machine import Copy
from tools.kernel_layer import RUNTIME

_L1 = (64, 128, 200, 256, 300, 400, 512, 700, 1024, 2048)
CHAINS = (
    48, 78, 86, 104, 123, 150, 152, 155, 189, 220, 249, 276, 297, 305, 349, 369, 391, 434, 476,
)  # fmt: skip
"""Random networks that are computed a channel at a time in 200 to 600 bytes: each does so with
another kind of pooling, padding, dilation, or copies ahead."""
_KINDS = ("planes", "rows", "chain", "channels")
_KERNELS = {
    "nn_depthwise": "depthwise.c", "nn_conv_dsp": "conv_dsp.c",
    "nn_conv_dsp_pixel": "conv_dsp_pixel.c", "nn_conv_c": "conv_c.c",
}  # fmt: skip
_HELPERS = (
    "copy.c", "data.c", "join_add.c", "join_or.c", "join_sub.c", "join_xor.c", "keep_max.c",
    "keep_sum.c", "patch.c", "pool_max.c", "pool_mean.c", "roll.c",
)  # fmt: skip
_OWN = ("cnn_run", "cnn_init", "cnn_arena", "main", "judged")
_CHECK = """
const char *judged(void);
const char *judged(void)
{
    if (cnn_init() != CNN_OK || cnn_run(input, result) != CNN_OK) {
        return "no result";
    }
    return differences() ? "differs" : "equal";
}
"""
_MAIN = """#include <stdio.h>
#include "nn.h"
extern unsigned long nn_copied[3], nn_started;
extern uint32_t nn_order;
unsigned nn_copies_left(void);
%s
int main(void)
{
    static const char *(*const judges[])(void) = { %s };
    unsigned i;

    for (i = 0; i < sizeof judges / sizeof judges[0]; i++) {
        const char *told = judges[i]();

        printf("%%s %%lu %%lu %%lu %%lu %%lu %%u\\n", told, nn_copied[0], nn_copied[1],
               nn_copied[2], nn_started, (unsigned long)nn_order, nn_copies_left());
        nn_order = 0;
        nn_copied[0] = nn_copied[1] = nn_copied[2] = nn_started = 0;
    }
    return 0;
}
"""


def planned(seeds: Sequence[int]) -> Iterator[tuple[Plan, Sample]]:
    """Yield plans of random networks in random memories, as far as they fit them."""
    for seed, chain in [*((one, False) for one in seeds), *((one, True) for one in CHAINS)]:
        choice = random.Random(seed)
        network, rounding = random_network(seed), seed % 3 == 0
        found = simulate(network, average_rounding=rounding).outputs
        graph = fuse(lower(network, average_rounding=rounding))
        if chain:
            l1, l2, dma = choice.choice((200, 300, 400, 600)), 512, seed % 2
            wish = Wish(schemes=frozenset({Scheme.CHAIN}))
        else:
            l1, l2, dma = choice.choice(_L1), choice.choice((0, 512, 65536)), choice.choice((0, 1))
            ways = frozenset(choice.sample(list(Scheme), choice.randint(0, 2)))
            wish = Wish(schemes=ways, first=choice.random() < 0.3, in_place=choice.random() < 0.3)
        profile = Profile("c", CORES["cortex-m4"], 1 << 20, l1, l2, 1 << 20, l3_writable=True,
                          dma=dma)  # fmt: skip
        try:
            plan = Planner(graph, profile, l1, wish).plan()
        except DiagnosticError:
            continue
        yield plan, Sample(network.sample, tuple(found[one.index] for one in network.outputs()))


def told(plan: Plan, sample: Sample) -> str:
    """Return the line that the program has to print of a plan: what Python copies, and when."""
    executor = LevelExecutor(plan, delayed=True)
    machine, order = executor.machine, 0
    start, wait = machine.start, machine.wait

    def started(channel: int, copy: Copy) -> None:
        nonlocal order
        order = (order * 31 + copy.size * copy.rows * 8 + channel + 4) % 2**32
        start(channel, copy)

    def waited(channel: int) -> None:
        nonlocal order
        order = (order * 31 + channel) % 2**32
        wait(channel)

    with patch.object(machine, "start", started), patch.object(machine, "wait", waited):
        executor.run(sample.input)
    traffic = machine.traffic
    counts = traffic.inputs, traffic.weights, traffic.outputs, machine.starts, order, 0
    return " ".join(["equal", *map(str, counts)])


def _network(number: int, files: dict[str, str]) -> str:
    """Return a network as one file; its own names have its number."""
    renamed = "".join(f"#define {name} {name}_{number}\n" for name in _OWN)
    parts = [files[name] for name in ("cnn.h", "weights.h", "cnn.c", "sampledata.h", "main.c")]
    text = "".join(parts)
    for name in ("cnn.h", "weights.h", "sampledata.h"):
        text = text.replace(f'#include "{name}"\n', "")
    return renamed + text + _CHECK


def sources(plans: Sequence[tuple[Plan, Sample]]) -> dict[str, str]:
    """Return the files of the program."""
    numbers = range(len(plans))
    networks = {f"net_{n}.c": _network(n, emit(*plans[n], "levels", "")) for n in numbers}
    include, levels = '#include "nn_kernels.h"\n', '#include "nn_levels.h"\n'
    kernels = [(RUNTIME / name).read_text() for name in (*_HELPERS, *_KERNELS.values())]
    runs = [(RUNTIME / f"levels_{kind}.c").read_text() for kind in _KINDS]
    return {
        **networks,
        "main.c": _MAIN % (
            "\n".join(f"const char *judged_{n}(void);" for n in numbers),
            ", ".join(f"judged_{n}" for n in numbers),
        ),
        "nn.h": (RUNTIME / "nn.h").read_text(),
        "nn_levels.h": (RUNTIME / "levels.h").read_text(),
        "nn_kernels.h": render("software/nn_kernels.h.j2", kernels=[*_KERNELS], core="ANY"),
        "nn_kernels.c": include + "".join(one.replace(include, "", 1) for one in kernels),
        "nn_levels.c": levels + "".join(one.replace(levels, "", 1) for one in runs),
        "nn_copies.c": DELAYED.read_text(),
    }  # fmt: skip


def run_bundle(plans: Sequence[tuple[Plan, Sample]], folder: Path) -> list[str]:
    """Return the lines that the program prints."""
    files = sources(plans)
    for name, text in files.items():
        (folder / name).write_text(text)
    command = compiler()
    assert command is not None
    flags = ("-std=c99", "-O0")
    built = subprocess.run(
        [*command, *flags, *(name for name in files if name.endswith(".c")), "-o", "main"],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr[:3000]
    done = subprocess.run([folder / "main"], capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    return [one for one in lines if one.split(" ")[0] in ("equal", "differs", "no")] + (
        [done.stderr[:1000]] if done.stderr or done.returncode else []
    )
