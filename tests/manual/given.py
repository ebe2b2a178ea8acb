"""What readers of the manual have: `python -m tests.manual.given NAME ...` makes it.

Everything is made of the handwritten digits that come with scikit-learn, or of tones.
"""

from __future__ import annotations

import struct
import subprocess
import sys
import wave
from pathlib import Path
from typing import Any

import numpy as np

from ai8xtools.checkpoint import Checkpoint, write_checkpoint
from tests.conftest import ROOT
from tests.manual.pages import blocks


def digits() -> tuple[Any, Any]:
    """Return pictures uint8 [N, 8, 8] and classes 0 to 9."""
    from sklearn.datasets import load_digits

    x, y = load_digits(return_X_y=True)
    return (x.reshape(-1, 8, 8) * 15.9).astype(np.uint8), y


def pictures(folder: Path, count: int = 90, size: int = 32, classes: int = 3) -> None:
    """Write pictures in class folders."""
    from PIL import Image

    x, y = digits()
    for label in range(classes):
        (folder / f"class{label}").mkdir(parents=True)
        for n, picture in enumerate(x[y == label][: count // classes]):
            image = Image.fromarray(picture).resize((size, size)).convert("RGB")
            image.save(folder / f"class{label}" / f"{n}.png")


def unsorted_pictures(folder: Path, size: int) -> None:
    """Write pictures without classes, for the camera."""
    from PIL import Image

    folder.mkdir(parents=True)
    for n, picture in enumerate(digits()[0][:2]):
        Image.fromarray(picture).resize((size, size)).convert("RGB").save(folder / f"{n}.png")


def sounds(folder: Path, count: int = 12) -> None:
    """Write tones of two heights."""
    rng = np.random.default_rng(0)
    for name, height in {"low": 300, "high": 2500}.items():
        (folder / name).mkdir(parents=True)
        for n in range(count):
            phase = 2 * np.pi * height * np.arange(4096) / 16000 + rng.uniform(0, 6)
            sound(folder / name / f"{n}.wav", np.sin(phase))


def sound(path: Path, samples: Any) -> None:
    """Write a sound."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, 16000, 0, "NONE", ""))
        file.writeframes((samples * 12000).astype("<i2").tobytes())


def recordings(folder: Path) -> None:
    """Write recordings of three axes in class folders, in the sensor's own whole numbers."""
    rng = np.random.default_rng(0)
    for label, name in enumerate(("rest", "shake")):
        (folder / name).mkdir(parents=True)
        for n in range(4):
            rows = rng.normal(size=(200, 3)) * (500 + 2000 * label)
            np.savetxt(folder / name / f"{n}.csv", rows, "%.0f", ",", header="x,y,z", comments="")


def large_digits() -> tuple[Any, Any]:
    """Return pictures uint8 [N, 28, 28] and classes 0 to 9."""
    x, y = digits()
    return np.pad(np.kron(x, np.ones((3, 3), np.uint8)), ((0, 0), (2, 2), (2, 2))), y


def arrays() -> None:
    """Write pictures with classes, and one as the chip takes it."""
    x, y = large_digits()
    np.savez("data.npz", x=x[:200], y=y[:200])
    np.save("sample.npy", x[:1].astype(np.int64) - 128)  # [1, 28, 28]


def mnist(folder: Path) -> None:
    """Write the files of MNIST with few digits."""
    large, y = large_digits()
    raw = folder / "MNIST" / "raw"
    raw.mkdir(parents=True)
    for name, part in {"train": slice(0, 600), "t10k": slice(600, 800)}.items():
        head = struct.pack(">IIII", 0x803, len(large[part]), 28, 28)
        (raw / f"{name}-images-idx3-ubyte").write_bytes(head + large[part].tobytes())
        head = struct.pack(">II", 0x801, len(y[part]))
        (raw / f"{name}-labels-idx1-ubyte").write_bytes(head + y[part].astype(np.uint8).tobytes())


def samples(shape: tuple[int, ...]) -> None:
    """Write inputs of a network and their classes."""
    rng = np.random.default_rng(0)
    np.save("samples.npy", rng.integers(-128, 128, (4, *shape)).astype(np.int8))
    np.save("labels.npy", np.arange(4))


def pressure(path: Path) -> None:
    """Write series of one class, to learn what is usual, and others for the test."""
    phase = np.random.default_rng(0).uniform(0, 6, (120, 1, 1))
    x = np.sin(phase + np.arange(40) / 5).astype(np.float32)
    y = np.arange(120) >= 100
    x[y] *= 3
    np.savez(
        path, x_train=x[:80], y_train=y[:80].astype(int), x_test=x[80:], y_test=y[80:].astype(int)
    )


def graph(path: Path, shape: tuple[int, ...], classes: int = 10) -> None:
    """Write an ONNX graph with random weights."""
    import torch
    from torch import nn

    net = nn.Sequential(
        nn.Conv2d(shape[0], 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(8 * (shape[1] // 2) * (shape[2] // 2), classes),
    )  # fmt: skip
    torch.onnx.export(net.eval(), (torch.zeros(1, *shape),), str(path), dynamo=False)


KEYWORDS = """arch: keywords
dataset: keywords
layers:
  - {op: Conv1d, kernel_size: 3, pad: 0, activate: ReLU, processors: 0xffff, in_dim: [64, 1],
     out_offset: 0x2000}
  - {op: Conv1d, kernel_size: 3, pad: 0, max_pool: 4, pool_stride: 4, activate: ReLU,
     processors: 0xffff, out_offset: 0}
  - {op: Linear, flatten: true, activate: None, output_width: 32, processors: 0xffff,
     out_offset: 0x2000}
"""


def keywords() -> None:
    """Write a network of windows of 64 time steps, with random weights, and a sample."""
    rng = np.random.default_rng(0)
    shapes = {"conv1": (16, 16, 3), "conv2": (16, 16, 3), "fc": (4, 16 * 13)}
    state = {}
    for name, shape in shapes.items():
        state[f"{name}.output_shift"] = np.array([-4], np.float32)
        state[f"{name}.weight_bits"] = np.array([8], np.float32)
        state[f"{name}.op.weight"] = rng.integers(-60, 60, shape).astype(np.float32)
    content = {"epoch": 0, "arch": "keywords", "state_dict": state}
    write_checkpoint("keywords-q.pth.tar", Checkpoint(content))
    Path("keywords.yaml").write_text(KEYWORDS)
    np.save("tests/sample_keywords.npy", rng.integers(-128, 128, (16, 64)))


def mine() -> None:
    """Write the network of docs/ten-minutes.md and train it, as that page does."""
    for block in blocks(ROOT / "docs/ten-minutes.md"):
        if "file" in block.notes:
            Path(block.notes["file"]).write_text(block.text)
    subprocess.run([sys.executable, "learn.py"], check=True)


def quantized(source: str, target: str, *options: str) -> None:
    """Quantize a network for the accelerator."""
    words = ["quantize.py", source, target, "--device", "MAX78000", *options]
    subprocess.run([sys.executable, *words], check=True)


GIVEN = {
    "mine": mine,
    "mine-q": lambda: quantized(
        "mine.pth",
        "mine-q.pth.tar",
        "--import",
        "--model",
        "mine.py:Net",
        "--calibrate",
        "digits",
    ),
    "pictures": lambda: pictures(Path("pictures")),
    "new/pictures": lambda: unsorted_pictures(Path("new/pictures"), 64),
    "camera": lambda: unsorted_pictures(Path("pictures"), 64),
    "sounds": lambda: sounds(Path("sounds")),
    "new/sounds": lambda: sound(Path("new/sounds/1.wav"), np.sin(np.arange(16000) / 8)),
    "moves": lambda: recordings(Path("moves")),
    "new/moves": lambda: recordings(Path("new/moves")),
    "pressure.npz": lambda: pressure(Path("pressure.npz")),
    "folder:mnist": lambda: pictures(Path("mnist"), 200, 28, 10),
    "DIR": lambda: mnist(Path("DIR")),
    "data": lambda: mnist(Path("data")),
    "keywords": keywords,
    "samples": lambda: samples((1, 28, 28)),
    "samples:8x8": lambda: samples((1, 8, 8)),
    "net.onnx": lambda: graph(Path("net.onnx"), (1, 28, 28)),
    "data.npz": arrays,
}

if __name__ == "__main__":
    for name in sys.argv[1:]:
        GIVEN[name]()
