#!/usr/bin/env python3
"""What an import loses and takes: PyTorch networks on each target, quantized after training.

`make measure WHAT=model-table` runs it.

A file holds modules and MODELS, which maps the name of each to the shape of its input. Weights are
random by a seed, statistics of normalization those of noise. Each network goes through quantize.py
and `ai8xize.py --fits json`: correlation with floating point on calibration samples, memory, and
cycles as they are predicted. The microcontroller is a Cortex-M4.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import json
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import ai8xize  # noqa: E402
import quantize  # noqa: E402
from ai8xtools.diagnostics import DiagnosticError  # noqa: E402
from ai8xtools.diagnostics.errors import ToolError  # noqa: E402

_KNOWN = ROOT.parent / "shared/doors/models.py"
_MCU = "stm32l4r5"
_TARGETS = ("MAX78000", "MAX78002", "MCU", "Q15")
_ENOUGH = 0.995
_SAMPLES = 32


def _called(tool: Any, *words: str) -> tuple[int, str, str]:
    """Run a tool in this process; return its status, what it said, and the code of its refusal."""
    output = io.StringIO()
    sys.argv = [f"{tool.__name__}.py", *words]
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(io.StringIO()):
        try:
            status = tool.main()
        except ToolError as exc:
            return 1, output.getvalue(), exc.code
        except DiagnosticError as exc:
            return 1, output.getvalue(), next(one.code for one in exc.diagnostics)
    return int(status or 0), output.getvalue(), ""


def _trained(make: Any, shape: tuple[int, ...], seed: int) -> Any:
    """Return a network in evaluation, with statistics of noise."""
    torch.manual_seed(seed)
    network = make()
    for part in network.modules():
        if isinstance(part, torch.nn.modules.batchnorm._BatchNorm) and part.affine:
            part.weight.data.uniform_(0.5, 1.5)
            part.bias.data.normal_(0, 0.3)
    with torch.no_grad():
        for _ in range(4):
            network(torch.rand(32, *shape) * 2 - 1)
    return network.eval()


def _data(shape: tuple[int, ...]) -> None:
    """Write noise, some of it coarse, as pictures or numbers."""
    random = np.random.default_rng(1)
    fine = random.integers(-128, 128, (_SAMPLES, *shape))
    coarse = random.integers(-128, 128, (_SAMPLES, *(1 for _ in shape)))
    values = np.where(random.random((_SAMPLES, *shape)) < 0.7, fine, coarse)
    classes = np.arange(_SAMPLES) % 4
    if len(shape) == 3:
        np.savez("data.npz", x=(values + 128).astype(np.uint8), y=classes)
    else:
        np.savez("data.npz", x=(values / 128).astype(np.float32), y=classes)


def _row(name: str, shape: tuple[int, ...], target: str) -> tuple[list[str], float | None]:
    """Return a row of the table and the correlation; of a refusal, its code."""
    words = ["net.pth", "q.pth.tar", "--device", target, "--model", f"net.py:{name}"]
    words += ["--import"] if target != "Q15" else []
    status, output, code = _called(quantize, *words, "--calibrate", "npz:data.npz")
    if status:
        return [name, target, f"refused ({code})", "", "", ""], None
    correlations = [
        float(one) for one in re.findall(r"Correlation with \S+ on .*: ([0-9.]+)", output)
    ]
    wide = " (15 bits)" if "data and weights have" in output else ""
    chip = target.startswith("MAX")
    words = ["--checkpoint-file", "q.pth.tar", "--fits", "json"]
    if chip:
        words += ["--device", target, "--model", f"net.py:{name}",
                  "--input-shape", "x".join(map(str, shape))]  # fmt: skip
    else:
        words += ["--device", "MCU", "--mcu", _MCU]
    status, output, code = _called(ai8xize, *words)
    place = target if chip else _MCU
    one = (
        next((row for row in json.loads(output) if row["chip"] == place), None) if output else None
    )
    if one is None or not one["fits"]:
        return [name, target, f"{correlations[-1]:.4f}", "does not fit", code, ""], correlations[-1]
    used = {key: value["used"] for key, value in one["memories"].items()}
    if chip:
        sizes = [f"{used['data']:,}", f"{used['kernel columns']:,} columns"]
    else:
        sizes = [f"{used['SRAM']:,}", f"{used['flash']:,}"]
    cycles = "-" if one["cycles"] is None else f"{one['cycles']:,}"
    return [name, target, f"{correlations[-1]:.4f}{wide}", *sizes, cycles], correlations[-1]


def main() -> int:
    """Print the table; the status is 1 if more than two correlations of a target are too low."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--models", type=Path, default=_KNOWN, metavar="FILE",
                        help="a file with modules and MODELS (default: %(default)s)")  # fmt: skip
    parser.add_argument("--targets", nargs="+", choices=_TARGETS, default=_TARGETS)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="some of the modules")
    args = parser.parse_args()
    if not args.models.is_file():
        print(f"skipped: {args.models} is not there; name a file of your own (--models)")
        return 0
    spec = importlib.util.spec_from_file_location("measured_models", args.models)
    assert spec is not None and spec.loader is not None
    models: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(models)
    print("| network | target | correlation | RAM or data | flash, or kernels | cycles |")
    print("|---|---|---:|---:|---:|---:|")
    low: dict[str, list[str]] = {}
    text = args.models.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        Path("net.py").write_text(text, encoding="utf-8")
        for name in args.only or models.MODELS:
            shape = models.MODELS[name][0]
            network = _trained(getattr(models, name), shape, 1)
            torch.save(network.state_dict(), "net.pth")
            _data(shape)
            for target in args.targets:
                row, correlation = _row(name, shape, target)
                print(f"| {' | '.join(row)} |", flush=True)
                if correlation is not None and correlation < _ENOUGH:
                    low.setdefault(target, []).append(name)
        os.chdir(ROOT)
    for target, names in low.items():
        print(f"{target}: below {_ENOUGH}: {', '.join(names)}")
    return int(any(len(names) > 2 for names in low.values()))


if __name__ == "__main__":
    sys.exit(main())
