#!/usr/bin/env python3
"""The four networks of MLPerf Tiny on a Cortex-M4 without the accelerator.

`make measure WHAT=software-mlperf` runs it.

Shapes are those of the benchmark, weights are random; the residual network has no ReLU behind its
additions. Each network goes through ai8xize.py --device MCU, is compiled with -O3 and run on the
emulated core, where its outputs are compared. The yardstick: cycles for each product of X-CUBE-AI,
from inferences per second that were published for a NUCLEO-L4R5ZI at 120 MHz.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import yaml

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from ai8xtools.checkpoint import Checkpoint, write_checkpoint  # noqa: E402
from ai8xtools.commands import targets  # noqa: E402
from ai8xtools.emulator.cpu.architecture import ARCHITECTURES  # noqa: E402
from ai8xtools.emulator.cpu.compiler import PREFERENCE  # noqa: E402
from ai8xtools.emulator.cpu.counting import NOTHING  # noqa: E402
from ai8xtools.emulator.plain import compile_plain, run_plain  # noqa: E402

_SHARE = 0.6
"""Instructions for each product, at most, of the published cycles."""
_SECONDS = 300.0
_SPREAD = 24.0
"""Of random weights."""
_MCU, _CORE = "stm32l4r5", "cortex-m4"


@dataclass
class Network:
    """A description as it grows, and its tensors.

    `sample` is the shape [channels, rows, columns] of the input, `shape` that of the last result.
    """

    name: str
    sample: tuple[int, int, int]
    layers: list[dict[str, Any]] = field(default_factory=list)
    state: dict[str, Any] = field(default_factory=dict)
    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(1))

    def __post_init__(self) -> None:
        """Begin with the input."""
        self.shape = self.sample

    def conv(
        self,
        filters: int,
        kernel: tuple[int, int] = (3, 3),
        *,
        stride: int = 1,
        pad: tuple[int, int] = (1, 1),
        depthwise: bool = False,
        relu: bool = True,
        **keys: Any,
    ) -> str:
        """Add a convolution; return its name."""
        channels, *size = self.shape
        groups = channels if depthwise else 1
        keys |= {"op": "Conv2d", "kernel_size": f"{kernel[0]}x{kernel[1]}", "pad": list(pad)}
        keys |= {"stride": stride} if stride > 1 else {}
        keys |= {"groups": groups} if depthwise else {}
        rows, columns = (
            (n + 2 * p - k) // stride + 1 for n, p, k in zip(size, pad, kernel, strict=True)
        )
        name = self._layer((filters, channels // groups, *kernel), relu, keys)
        self.shape = filters, rows, columns
        return name

    def linear(self, outputs: int, *, relu: bool = False, **keys: Any) -> None:
        """Add a fully connected layer on all channels of a pixel."""
        self._layer((outputs, self.shape[0]), relu, keys | {"op": "Linear"})
        self.shape = outputs, 1, 1

    def add(self, *sources: str) -> str:
        """Add the results of layers."""
        name = f"add{len(self.layers)}"
        self.layers.append({"name": name, "op": "Add", "in_sequences": [*sources]})
        return name

    def pooled(self) -> dict[str, Any]:
        """Return the keys of global average pooling."""
        return {"avg_pool": [*self.shape[1:]], "pool_stride": [*self.shape[1:]]}

    def _layer(self, shape: tuple[int, ...], relu: bool, keys: dict[str, Any]) -> str:
        name = f"layer{len(self.layers)}"
        weights = np.clip(np.rint(self.random.normal(0, _SPREAD, shape)), -128, 127)
        products = int(np.prod(shape[1:]))
        shift = -max(0, round(np.log2(_SPREAD / 128 * products**0.5)))
        self.state[f"{name}.weight"] = weights.astype(np.float32)
        self.state[f"{name}.bias"] = np.rint(self.random.normal(0, 20, shape[0])).astype(np.float32)
        self.layers.append(
            {"name": name, **keys, "weights": name, "output_shift": shift}
            | {"activate": "ReLU" if relu else "none"}
        )
        return name

    def files(self, folder: Path) -> list[str]:
        """Write description, checkpoint and sample; return the options that name them."""
        description, checkpoint = folder / "net.yaml", folder / "net.pth.tar"
        text = {"arch": self.name, "dataset": "random", "layers": self.layers}
        description.write_text(yaml.safe_dump(text, sort_keys=False), encoding="utf-8")
        write_checkpoint(checkpoint, Checkpoint({"arch": self.name, "state_dict": self.state}))
        sample = folder / "sample.npy"
        np.save(sample, self.random.integers(-128, 128, self.sample))
        return [
            "--config-file", str(description), "--checkpoint-file", str(checkpoint),
            "--sample-input", str(sample),
        ]  # fmt: skip


def resnet() -> Network:
    """Image classification: ResNet-8 on 32x32."""
    network = Network("resnet8", (3, 32, 32))
    before = network.conv(16)
    for filters, stride in ((16, 1), (32, 2), (64, 2)):
        start = network.shape
        network.conv(filters, stride=stride, in_sequences=[before])
        after = network.conv(filters, relu=False)
        if stride > 1:
            shape, network.shape = network.shape, start
            before = network.conv(
                filters, (1, 1), stride=stride, pad=(0, 0), relu=False, in_sequences=[before]
            )
            assert network.shape == shape
        before = network.add(before, after)
    network.linear(10, **network.pooled())
    return network


def ds_cnn() -> Network:
    """Keyword spotting: DS-CNN on 49x10."""
    network = Network("dscnn", (1, 49, 10))
    network.conv(64, (10, 4), stride=2, pad=(5, 1))
    for _ in range(4):
        network.conv(64, depthwise=True)
        network.conv(64, (1, 1), pad=(0, 0))
    network.linear(12, **network.pooled())
    return network


def mobilenet() -> Network:
    """Visual wake words: MobileNet v1 of a quarter of the width on 96x96."""
    network = Network("mobilenet", (3, 96, 96))
    network.conv(8, stride=2)
    strides = ((16, 1), (32, 2), (32, 1), (64, 2), (64, 1), (128, 2), *[(128, 1)] * 5, (256, 2))
    for filters, stride in (*strides, (256, 1)):
        network.conv(network.shape[0], stride=stride, depthwise=True)
        network.conv(filters, (1, 1), pad=(0, 0))
    network.linear(2, **network.pooled())
    return network


def autoencoder() -> Network:
    """Anomaly detection: fully connected layers."""
    network = Network("autoencoder", (640, 1, 1))
    for outputs in (*[128] * 4, 8, *[128] * 4):
        network.linear(outputs, relu=True)
    network.linear(640)
    return network


_NETWORKS = ((resnet, 2.1), (ds_cnn, 3.3), (mobilenet, 3.5), (autoencoder, 3.4))


def _measured(network: Network, published: float, scheme: str) -> tuple[str, bool]:
    """Return a line of the table, and whether the result is right and within its bound."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        words = [*network.files(folder), "--prefix", "net", "--test-dir", name]
        words += ["--device", "MCU", "--mcu", _MCU, "--scheme", scheme]
        with contextlib.redirect_stdout(io.StringIO()):
            targets.main("ai8xize.py", words)
        header = (folder / "net" / "cnn.h").read_text(encoding="utf-8")
        compiled = compile_plain(folder / "net", ARCHITECTURES[_CORE])
        run = run_plain(compiled, count=True, time_limit=_SECONDS)
    total = sum((run.functions or {}).values(), NOTHING)
    assert compiled.macs is not None
    each, bound = total.instructions / compiled.macs, _SHARE * published
    data = re.search(r"CNN_FLASH_BYTES (\d+)", header)
    assert data is not None
    flash = run.code_bytes + int(data[1])
    cells = (
        network.name, scheme, f"{compiled.macs:,}", f"{run.arena_bytes:,}", f"{flash:,}",
        f"{total.instructions / 1e6:.2f}", f"{each:.2f}", f"{bound:.2f}",
        f"{total.cycles / compiled.macs:.2f}", f"{published}",
    )  # fmt: skip
    good = bool(run.passed) and each <= bound
    return f"| {' | '.join(cells)} |{'' if run.passed else ' WRONG RESULT'}", good


def main() -> int:
    """Print the table; the status is 1 if a result is wrong or a bound is exceeded."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    os.environ.setdefault(PREFERENCE, "zig")  # what the bounds are for
    print(
        "| network | plan | MACs | RAM | flash | million instructions | per MAC | bound "
        "| cycles per MAC (estimate) | published |"
    )
    print(f"|{'---|' * 10}")
    good = True
    for network, published in _NETWORKS:
        for scheme in ("resident", "rows"):
            line, fine = _measured(network(), published, scheme)
            good &= fine
            print(line, flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
