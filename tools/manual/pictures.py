"""The two pictures of the README, as SVG: the way from data to firmware, and what the demo gives.

Everything in the second is computed from the trained digits network in `trained/`: its sums for
test images, its accuracy with the arithmetic of the chip, its size and its latency.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import numpy as np
from numpy.typing import NDArray

from device import MAX78000

_INK, _PALE, _BLUE, _GREEN, _ORANGE = "#222222", "#888888", "#0072b2", "#009e73", "#d55e00"
_TEST_IMAGES = 360
_SHOWN = 10


def pipeline() -> str:
    """Return the picture of the way from data and model to verified firmware."""
    tools = [
        _box(16, 168, 150, "your data", ("pictures, sounds, tables", "or a data set"), _PALE),
        _box(16, 92, 150, "your network", ("PyTorch, ONNX", "or layers of ai8x"), _PALE),
        _box(206, 130, 130, "train.py", ("floating point,", "then with QAT"), _BLUE),
        _box(376, 130, 130, "quantize.py", ("integers and", "shifts"), _BLUE),
        _box(546, 130, 150, "ai8xize.py", ("checks, places,", "writes C"), _BLUE),
        _box(16, 16, 320, "--fits", ("memory and time before any training",), _PALE, 44),
        _box(
            736,
            62,
            208,
            "MAX78000, MAX78002",
            ("words of the accelerator in a", "C project"),
            _ORANGE,
        ),
        _box(
            736,
            198,
            208,
            "any microcontroller",
            ("C99, CMSIS-NN, 16 bits, low-bit", "or one binary file"),
            _ORANGE,
        ),
        _box(
            376,
            268,
            320,
            "emulate.py, --verify",
            ("the firmware, executed without a board:", "every word compared"),
            _GREEN,
        ),
    ]
    ways = [
        ((91, 92), (91, 60)),
        ((166, 122), (186, 122), (186, 150), (206, 150)),
        ((166, 198), (186, 198), (186, 170), (206, 170)),
        ((336, 160), (376, 160)),
        ((506, 160), (546, 160)),
        ((696, 150), (716, 150), (716, 92), (736, 92)),
        ((696, 170), (716, 170), (716, 228), (736, 228)),
        ((840, 258), (840, 298), (696, 298)),
        ((944, 92), (956, 92), (956, 310), (696, 310)),
    ]
    title = "From data and a network through training, quantization and code to verified firmware"
    return _svg(968, 346, title, [*map(_arrow, ways), *tools])


def demo() -> str:
    """Return the picture of what `make demo` ends with: digits, the chip's sums, and the facts."""
    from ai8xtools.emulator.words.compare import count_words
    from ai8xtools.synthesis.options import EncodeOptions, ResolveOptions
    from ai8xtools.synthesis.pipeline import synthesize
    from ai8xtools.synthesis.words import phase_words

    root = Path(__file__).resolve().parent.parent.parent
    result = synthesize(
        str(root / "networks" / "digits-chw-ai85.yaml"),
        MAX78000,
        ResolveOptions(
            checkpoint_file=str(root / "trained" / "digits-ai85digitsnet-qat8-q.pth.tar"),
            sample_input=str(root / "tests" / "sample_digits.npy"),
        ),
        EncodeOptions(),
    )
    images, classes = _test_set()
    sums = [_sums(result.network, image) for image in images]
    right = sum(int(s.argmax() == c) for s, c in zip(sums, classes, strict=True))
    costs = result.summary.statistics
    phases = phase_words(result.program).items()
    words = {phase: (part.words, part.control, part.pushes) for phase, part in phases}
    cycles = costs.startup_cycles + sum(layer.cycles or 0 for layer in costs.layers)
    clock = MAX78000.apb_clock_mhz
    facts = [
        (
            f"{right / len(sums):.2%}".replace("%", " %"),
            f"of {len(sums)} test images, as the chip computes",
        ),
        (f"{costs.weight_bytes:,} bytes", f"of weights, of {costs.weight_bytes_total:,}"),
        (f"{cycles:,} cycles", f"{cycles / clock / 1000:.2f} ms at {clock} MHz, estimated"),
        (f"{count_words(words):,} words", "executed in the emulator and compared"),
    ]
    parts = [
        _text(x, 34, size, 17, _GREEN, "bold") + _text(x, 54, what, 11, _PALE)
        for x, (size, what) in zip((16, 270, 470, 690), facts, strict=True)
    ]
    first = [int(np.flatnonzero(classes == digit)[0]) for digit in range(_SHOWN)]
    parts += [_digit(16 + 95 * n, 78, images[i], sums[i]) for n, i in enumerate(first)]
    parts.append(
        _text(
            16,
            262,
            "Below each image: the ten sums of the network, from 0 to 9; "
            "the greatest is the answer.",
            11,
            _PALE,
        )
    )
    return _svg(968, 278, "What the demo ends with: ten digits, and what the chip says", parts)


def _test_set() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return images [n, 1, 8, 8] and classes, divided as in datasets/digits.py (without torch)."""
    from sklearn.datasets import load_digits

    from tools.make_sample import integers

    collection = load_digits()
    chosen = np.random.default_rng(0).permutation(len(collection.target))[:_TEST_IMAGES]
    return integers(collection.images[chosen])[:, np.newaxis], collection.target[chosen]


def _sums(network: Any, image: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the outputs of a network for an image, as the accelerator computes them."""
    from ai8xtools.synthesis.simulate import simulate

    outputs = simulate(replace(network, sample=image), average_rounding=False).outputs
    last: NDArray[np.int64] = outputs[network.final.index]
    return last.reshape(-1)


def _digit(x: int, y: int, image: NDArray[np.int64], sums: NDArray[np.int64]) -> str:
    """Return an image with its ten sums as bars; the greatest has its digit below."""
    size, bars, middle = 10, 8.0, y + 118
    grey = 127 - image[0]
    parts = [_rectangle(x - 1, y - 1, 8 * size + 2, 8 * size + 2, "none", _PALE)]
    parts += [
        _rectangle(
            x + size * column, y + size * row, size, size, "#" + f"{grey[row, column]:02x}" * 3
        )
        for row, column in zip(*np.nonzero(grey < 255), strict=True)
    ]
    best = int(sums.argmax())
    for number, value in enumerate(sums / np.abs(sums).max() * 26):
        top = middle - max(value, 0)
        colour = _GREEN if number == best else _PALE
        parts.append(_rectangle(x + bars * number + 1, top, 6, abs(value), colour))
    parts.append(_text(x + bars * best + 4, y + 160, str(best), 13, _GREEN, "bold", "middle"))
    return "".join(parts)


def _box(
    x: int, y: int, width: int, title: str, lines: Sequence[str], colour: str, height: int = 60
) -> str:
    middle = x + width / 2
    texts = [
        _text(middle, y + 20, title, 14, colour if colour != _PALE else _INK, "bold", "middle")
    ]
    texts += [
        _text(middle, y + 35 + 14 * n, text, 11, _INK, anchor="middle")
        for n, text in enumerate(lines)
    ]
    return _rectangle(x, y, width, height, "#f7f7f7", colour) + "".join(texts)


def _arrow(points: Sequence[tuple[float, float]]) -> str:
    """Return a way of straight lines; its head points along the last one."""
    (x0, y0), (x1, y1) = points[-2:]
    along = ((x1 > x0) - (x1 < x0), (y1 > y0) - (y1 < y0))
    back = [
        (x1 - 7 * along[0] + side * along[1], y1 - 7 * along[1] + side * along[0])
        for side in (-4, 4)
    ]
    path = " ".join(f"{_number(x)},{_number(y)}" for x, y in points)
    head = " ".join(f"{_number(x)},{_number(y)}" for x, y in ((x1, y1), *back))
    line = f'<polyline points="{path}" fill="none" stroke="{_PALE}" stroke-width="1.5"/>'
    return f'{line}<polygon points="{head}" fill="{_PALE}"/>'


def _rectangle(x: float, y: float, width: float, height: float, fill: str, edge: str = "") -> str:
    """Return a rectangle; one with an edge has round corners."""
    places = " ".join(
        f'{name}="{_number(value)}"'
        for name, value in (("x", x), ("y", y), ("width", width), ("height", height))
    )
    return f'<rect {places} fill="{fill}"' + (f' rx="5" stroke="{edge}"/>' if edge else "/>")


def _text(
    x: float,
    y: float,
    text: str,
    size: int,
    colour: str,
    weight: str = "normal",
    anchor: str = "start",
) -> str:
    return (
        f'<text x="{_number(x)}" y="{_number(y)}" font-size="{size}" font-weight="{weight}" '
        f'text-anchor="{anchor}" fill="{colour}">{escape(text)}</text>'
    )


def _number(value: float) -> str:
    """Return a coordinate with at most one digit behind the point."""
    return f"{value:.1f}".removesuffix(".0")


def _svg(width: int, height: int, title: str, parts: Iterable[str]) -> str:
    """Return a whole picture; it is white behind, so that dark pages show it, too."""
    lines = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'font-family="sans-serif" role="img">\n<title>{escape(title)}</title>\n'
        f'<rect width="{width}" height="{height}" rx="8" fill="#ffffff"/>\n{lines}\n</svg>\n'
    )


PICTURES = {"pipeline": pipeline, "demo": demo}
"""What draws docs/pictures/NAME.svg."""
