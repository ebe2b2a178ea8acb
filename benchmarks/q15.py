#!/usr/bin/env python3
"""Instructions of kernels of 16 and 8 bits on emulated cores.

`make measure WHAT=qformat-benchmarks` runs it.

Whole layers with padding and output, -O3, random weights; every result is compared. Cycles are an
estimate (docs/emulator.md). The yardsticks are those of CMSIS-NN 5.9.0, quoted, not run: the same
layers with its fast and its basic function.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from ai8xtools.emulator.cpu.architecture import ARCHITECTURES  # noqa: E402
from ai8xtools.emulator.cpu.compiler import PREFERENCE  # noqa: E402
from ai8xtools.emulator.cpu.counting import NOTHING  # noqa: E402
from ai8xtools.emulator.plain import compile_plain, run_plain  # noqa: E402
from ai8xtools.quantization.q15.execute import execute, quantize_input  # noqa: E402
from ai8xtools.quantization.q15.floating import measure  # noqa: E402
from ai8xtools.quantization.q15.formats import Guard  # noqa: E402
from ai8xtools.quantization.q15.graph import Graph, GraphBuilder  # noqa: E402
from ai8xtools.quantization.q15.network import quantize_network  # noqa: E402
from ai8xtools.software.q15.calls import program  # noqa: E402
from ai8xtools.software.q15.emit import Sample, emit  # noqa: E402

_RNG = np.random.default_rng(1)


def _convolution(channels: int, filters: int, groups: int = 1) -> Graph:
    builder = GraphBuilder((channels, 16, 16))
    weights = _RNG.normal(size=(filters, channels // groups, 3, 3))
    padding = (1, 1)
    target = builder.convolution("conv", 0, weights, None, (1, 1), padding, (1, 1), groups)
    return builder.finished(target)


def _linear() -> Graph:
    builder = GraphBuilder((256,))
    return builder.finished(builder.linear("fc", 0, _RNG.normal(size=(64, 256)), None))


_CASES = (
    ("3x3, 16x16x16 to 16", _convolution(16, 16), 16, "cortex-m4", "2.2 / 2.9", 2.0),
    ("3x3, 16x16x16 to 16", _convolution(16, 16), 16, "cortex-m0plus", "9.6 / 9.4", None),
    ("3x3, 16x16x3 to 5", _convolution(3, 5), 16, "cortex-m4", "-", None),
    ("depthwise 3x3, 16x16x16", _convolution(16, 16, 16), 16, "cortex-m4", "-", None),
    ("fully connected, 256 to 64", _linear(), 16, "cortex-m4", "1.9", 1.9),
    ("fully connected, 256 to 64", _linear(), 16, "cortex-m0plus", "7.7", None),
    ("3x3, 16x16x16 to 16", _convolution(16, 16), 8, "cortex-m4", "2.03 / -", None),
    ("3x3, 16x16x16 to 16", _convolution(16, 16), 8, "cortex-m0plus", "9.7 / -", None),
)


def main() -> int:
    """Print the table; the status is 1 if a result is wrong or a bound is exceeded."""
    os.environ.setdefault(PREFERENCE, "zig")  # what the bounds are for
    print("| layer | bits | core | function | instructions per product | cycles (estimate) "
          "| CMSIS-NN | bound |\n|---|---|---|---|---|---|---|---|")  # fmt: skip
    good = True
    for name, graph, bits, core, yardstick, bound in _CASES:
        samples = _RNG.normal(size=(1, *graph.shapes[0]))
        ranges = measure(graph, [samples]).largest
        network = quantize_network(graph, ranges, ranges, bits, Guard.WORST)
        inputs = quantize_input(network, samples)
        outputs = execute(network, inputs)[graph.output]
        files = emit(network, Sample(inputs[0], outputs[0]), "layer", "a benchmark", core)
        with tempfile.TemporaryDirectory() as folder:
            for path, text in files.items():
                (Path(folder) / path).write_text(text, encoding="utf-8")
            compiled = compile_plain(Path(folder), ARCHITECTURES[core])
            run = run_plain(compiled, count=True, time_limit=300)
        total = sum((run.functions or {}).values(), NOTHING)
        each = total.instructions / graph.macs
        good &= bool(run.passed) and (bound is None or each <= bound)
        function = program(network).functions[0].name
        print(f"| {name} | {bits} | {core} | `{function}` | {each:.2f} | "
              f"{total.cycles / graph.macs:.2f} | {yardstick} | {bound or '-'} |"
              f"{'' if run.passed else ' WRONG RESULT'}", flush=True)  # fmt: skip
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
