"""Windows that slide: programs with --stream against those that compute every window anew.

`make measure WHAT=software-streams` does it for 10,000 hops of many networks.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Hashable
from pathlib import Path

import numpy as np

from ai8xtools.diagnostics import DiagnosticError
from ai8xtools.diagnostics.errors import ToolError
from ai8xtools.software import build
from ai8xtools.software.cores import CORES
from ai8xtools.software.emit.built import Built
from ai8xtools.software.emit.project import Sample
from ai8xtools.software.fuse import fuse
from ai8xtools.software.graph import Convolution, StepGraph, sources_of
from ai8xtools.software.lower import lower
from ai8xtools.software.plan.sliding import sliding_plan
from ai8xtools.software.plan.streaming import parts_of, rows_of, streams
from ai8xtools.software.profile import read_profile
from ai8xtools.synthesis.network import Network
from tests.software.compiled import compiler
from tests.software.networks import random_network

MOST = 1.15
"""Products of a hop, at most, for each of which an operand changed."""

_DRIVER = """#include <stdio.h>
#include <stdlib.h>
#include "cnn.h"

unsigned long long products;

#ifdef CNN_HOP
#define HOP_BYTES CNN_HOP_BYTES
#endif

int main(void)
{
    static int8_t window[CNN_IN_SIZE];
    static int32_t out[(CNN_OUT_BYTES + 3) / 4];
    size_t filled = 0, results = 0;
    unsigned long long told = 0;

    cnn_init();
    while (fread(window + CNN_IN_SIZE - HOP_BYTES, HOP_BYTES, 1, stdin) == 1) {
        unsigned long long before = products;
        size_t i;
#ifdef CNN_HOP
        int status = cnn_stream(window + CNN_IN_SIZE - HOP_BYTES, out);

        filled += HOP_BYTES;
        if (status != (filled < CNN_IN_SIZE ? CNN_MORE : CNN_OK)) {
            return 2;
        }
        if (products - before > CNN_HOP_MACS || (results > 0 && products - before != told)) {
            fprintf(stderr, "%llu products, %llu were told\\n", products - before,
                    (unsigned long long)CNN_HOP_MACS);
            return 3;
        }
        told = products - before;
#else
        filled += HOP_BYTES;
        if (filled >= CNN_IN_SIZE) {
            cnn_run(window, out);
        }
        told = products - before;
#endif
        if (filled >= CNN_IN_SIZE) {
            fwrite(out, CNN_OUT_BYTES, 1, stdout);
            results++;
        }
        for (i = 0; i + HOP_BYTES < CNN_IN_SIZE; i++) {
            window[i] = window[i + HOP_BYTES];
        }
    }
    fprintf(stderr, "%llu\\n", told);
    return 0;
}
"""


def _counting(files: dict[str, str]) -> str:
    """Return a header that counts the products of each kernel that a program calls."""
    declared = files["nn_kernels.h"].split("nn_kernel ")[1:]
    lines = ['#include "nn_kernels.h"', "extern unsigned long long products;"]
    for text in declared:
        name = text.split(";")[0]
        lines.append(
            f"#define {name}(c, r, x, n, o, s) (products += (unsigned long long)(n) * (c)->filters"
            " * ((c)->channels / (c)->groups) * (c)->kernel_rows * (c)->kernel_columns, "
            f"{name}(c, r, x, n, o, s))"
        )
    return "\n".join(lines) + "\n"


def results_of(
    built: Built,
    sample: Sample,
    stream: bytes,
    folder: Path,
    hop_bytes: int,
    flags: tuple[str, ...],
) -> tuple[bytes, int]:
    """Return all outputs of a program for the windows of a stream, and the products of each.

    Raises RuntimeError if it fails.
    """
    files = build.emitted(built, sample, "stream", "").files
    folder.mkdir(parents=True)
    for name, text in {**files, "count.h": _counting(files), "main.c": _DRIVER}.items():
        (folder / name).write_text(text)
    command = compiler()
    assert command is not None
    sources = [name for name in files if name.endswith(".c") and name not in ("cnn.c", "main.c")]
    words = [*command, "-std=c99", "-Wall", "-Wextra", "-Werror", *flags]
    told = f"-DHOP_BYTES={hop_bytes}" if built.plan.sliding is None else "-DSTREAM"
    for line in ([*words, "-include", "count.h", "-c", "cnn.c", "-o", "cnn.o"],
                 [*words, told, "main.c", *sources, "cnn.o", "-o", "main"]):  # fmt: skip
        made = subprocess.run(line, cwd=folder, capture_output=True, text=True, check=False)
        if made.returncode:
            raise RuntimeError(made.stderr)
    ran = subprocess.run([folder / "main"], input=stream, capture_output=True, check=False)
    if ran.returncode:
        raise RuntimeError(f"status {ran.returncode}: {ran.stderr.decode()[-400:]}")
    return ran.stdout, int(ran.stderr)


def changed_products(graph: StepGraph, hop: int) -> int:
    """Return the products of a window of which an operand changed since the last one.

    Rows are told apart by what they are made from, not by what a plan says; a row that was in the
    last window, wherever, is no new one. Those that padding alone makes count each time.
    """
    numbers: dict[Hashable, int] = {}
    before, after = (_identities(graph, start, numbers) for start in (0, hop))
    return sum(
        step.macs // step.out_size[0] * len(set(after[step.target]) - set(before[step.target]))
        for step in graph.steps
        if isinstance(step, Convolution)
    )


def _identities(graph: StepGraph, start: int, numbers: dict[Hashable, int]) -> dict[int, list[int]]:
    """Return a number for each row of each tensor of a window; equal rows have the same."""

    def number(*made_from: Hashable) -> int:
        return numbers.setdefault(made_from, len(numbers))

    rows = {graph.input: [number(start + y) for y in range(graph.tensors[graph.input].rows)]}
    constant: set[int] = set()
    for step in graph.steps:
        made = rows[step.target] = []
        by_rows = streams(step, graph) and getattr(step, "spread", (1, 1))[0] == 1
        for y in range(rows_of(step, graph)):
            if not by_rows:
                made.append(number(step.target, y, *(n for s in sources_of(step) for n in rows[s])))
                continue
            (part,) = parts_of(step, y)
            top = y * getattr(step, "stride", (1, 1))[0] - getattr(step, "pad", (0, 0))[0]
            taken = [tuple(rows[source][part.first : part.end]) for source in sources_of(step)]
            behind = part.end == graph.tensors[sources_of(step)[0]].rows
            made.append(number(step.target, min(top, 0), top - part.end if behind else 0, *taken))
            if constant.issuperset(n for some in taken for n in some):
                made[-1] = number(step.target, y, "of padding", start)
                constant.add(made[-1])
    return rows


def random_stream(seed: int) -> tuple[Network, StepGraph, int] | None:
    """Return a random network for a stream, its graph and its hop; None if no hop suits it."""
    choice = np.random.default_rng(seed)
    network = random_network(seed, rows=int(choice.choice((12, 16, 24, 32, 48))))
    graph = lower(network)
    window = graph.tensors[graph.input].rows
    hops = [n for n in range(1, window) if window % n == 0]
    for hop in map(int, choice.permutation(hops)):
        try:
            sliding_plan(graph, CORES["cortex-m4"], hop, None)
        except DiagnosticError:
            continue
        return network, graph, hop
    return None


def judge(seed: int, folder: Path, hops: int, flags: tuple[str, ...] = ("-O1",)) -> str | None:
    """Return what is wrong with the stream of a random network; "" if none can be made of it."""
    made = random_stream(seed)
    if made is None:
        return ""
    network, graph, hop = made
    sample = build.sample_of(network)
    profile = read_profile(["stm32l4r5", "rp2040", "esp32c3", "ch32v003"][seed % 4])
    profile = profile.resized({"l1": 1 << 20, "flash": 1 << 20})
    sliding = build.streamed(graph, profile, hop, None)
    given = graph.tensors[graph.input]
    rows = given.rows + (hops - 1) * hop
    numbers = np.random.default_rng(seed).integers(-128, 128, rows * given.row_bytes)
    stream = numbers.astype(np.int8).tobytes()
    one = build.planned(fuse(graph), profile, "resident")
    (got, macs), (wanted, _) = (
        results_of(built, sample, stream, folder / f"{seed}-{name}", hop * given.row_bytes, flags)
        for name, built in (("stream", sliding), ("window", one))
    )
    if got != wanted or not wanted:
        pairs = np.frombuffer(got, np.int8), np.frombuffer(wanted, np.int8)
        wrong = np.not_equal(*(one.reshape(hops, -1) for one in pairs)).any(1)
        return f"hop {hop} of {given.rows}: results {np.flatnonzero(wrong)[:5]} of {hops} differ"
    changed = changed_products(graph, hop)
    if macs > MOST * changed:
        return f"{macs:,} products, an operand changed of {changed:,}"
    return None


def main() -> int:
    """Compare many streams; the exit status is 1 if one fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--hops", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--recurrent", action="store_true", help="recurrent networks whose states "
                        "go on, in the place of random ones")  # fmt: skip
    args = parser.parse_args()
    if args.recurrent:
        from tests.software import recurrent_streams

        return recurrent_streams.main(args.hops)
    tried = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(args.seed, args.seed + args.count):
            try:
                wrong = judge(seed, Path(folder), args.hops)
            except (RuntimeError, ToolError) as exc:
                wrong = str(exc)
            tried += wrong != ""
            failed += bool(wrong)
            if wrong:
                print(f"seed {seed}: {wrong}", flush=True)
    print(f"{tried} of {args.count} random networks have streams, {args.hops:,} hops each: "
          f"{failed} failed")  # fmt: skip
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
