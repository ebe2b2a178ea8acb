"""Objects and classes of pixels that programs find in outputs, in integers, against PyTorch."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import ai8x
from ai8xtools.diagnostics import DiagnosticError
from ai8xtools.training.losses.multibox import Parameters, detect
from ai8xtools.writing.application import Application
from ai8xtools.writing.detector import Detector
from ai8xtools.writing.library import Library, LibraryOutput, Shape
from ai8xtools.writing.templates import render
from models.prior_boxes import in_order_of_priors, prior_boxes

CLASSES = 4
SIZES = {"large": (5, 4), "small": (2, 3)}
RATIOS = {"large": (0.9, 0.5), "small": (1.0, 2.0, 0.5)}
SCALES = {"large": 0.3, "small": 0.6}
PARAMETERS = {"alpha": 1.0, "neg_pos_ratio": 3.0, "min_score": 0.3, "max_overlap": 0.35, "top_k": 9}
PRIORS = prior_boxes(SIZES, SCALES, RATIOS)
Values = Mapping[str, Any]
LIBRARY = """
#define main program
#include "main.c"
#undef main
static const int32_t *given;
void have(const int32_t *all) { given = all; }
int sensor_init(void) { return 0; }
int sensor_start(void) { return 0; }
int sensor_read(sensor_value *to) { (void)to; return 0; }
uint32_t sensor_lost(void) { return 0; }
void sensor_alive(void) {}
void sensor_network(int on) { (void)on; }
int net_init(void) { return 0; }
int net_load_input(const int8_t *v, int order) { (void)v; (void)order; return 0; }
int net_run(net_result *to) { (void)to; return 0; }
int32_t net_integer(const net_result *from, unsigned output, unsigned channel, unsigned row,
                    unsigned column)
{
    static const unsigned shapes[][4] = { SHAPES };
    const unsigned *const shape = shapes[output];
    (void)from;
    return given[shape[3] + (channel * shape[1] + row) * shape[2] + column];
}
void say(void) { decide(1); fflush(stdout); }
"""


def program(folder: Path, made: Application, library: Library, calls: str = "") -> Any:
    """Compile a program for this computer, with a network that gives values back."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler for this computer")
    for name, text in made.applied({}, library).items():
        (folder / name).write_text(text)
    (folder / "net.h").write_text(render("library/library.h.j2", library=library))
    at = np.cumsum([0, *(output.shape.size for output in library.outputs)])
    shapes = ", ".join(
        f"{{ {o.shape.channels}, {o.shape.rows}, {o.shape.columns}, {start} }}"
        for o, start in zip(library.outputs, at, strict=False)
    )
    (folder / "all.c").write_text(LIBRARY.replace("SHAPES", shapes) + calls)
    flags = ["-std=c99", "-O1", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-shared", "-fPIC"]
    sanitizers = ["-fsanitize=undefined", "-fno-sanitize-recover"]
    path = folder / "all.so"
    subprocess.run(
        [compiler, *flags, *sanitizers, "all.c", "-o", str(path)], cwd=folder, check=True
    )
    return ctypes.CDLL(str(path))


def output(name: str, channels: int, rows: int, columns: int, bits: int = 8) -> LibraryOutput:
    return LibraryOutput(Shape(channels, rows, columns), bits, 0, 1, -7, name)


def facts(divisors: tuple[int, int] = (128, 128)) -> Values:
    """Return what a checkpoint says of the outputs in `OUTPUTS`, which stand in another order."""
    names = [f"{kind}.{name}" for kind in ("loc", "cls") for name in SIZES]
    numbers = {"loc": 4, "cls": CLASSES}
    count, order = 0, []
    for kind in ("loc", "cls"):
        maps = []
        for name, (rows, columns) in SIZES.items():
            size = len(RATIOS[name]) * numbers[kind] * rows * columns
            maps.append(torch.arange(count, count + size).reshape(1, -1, rows, columns))
            count += size
        order.append(in_order_of_priors(maps, numbers[kind]).flatten())
    return {
        "outputs": names, "order": torch.cat(order).tolist(), "priors": PRIORS.tolist(),
        "divisors": list(divisors), "parameters": PARAMETERS,
    }  # fmt: skip


OUTPUTS = tuple(
    output(f"{kind}_{name}", len(RATIOS[name]) * numbers, *SIZES[name])
    for name in SIZES for kind, numbers in (("cls", CLASSES), ("loc", 4))
)  # fmt: skip
NETWORK = Library("net", "title", Shape(3, 50, 40), OUTPUTS, 99)
NAMES = ("cat", "dog 100%", "cow")
FINDS = """
int find_all(int32_t *to)
{
    int i, count = find();

    for (i = 0; i < count; i++, to += 6) {
        memcpy(to, &found[i].left, 4 * sizeof *to);
        to[4] = (int32_t)found[i].score;
        to[5] = found[i].label;
    }
    return count;
}
"""


def detector(divisors: tuple[int, int] = (128, 128)) -> Application:
    return Application("minimal", "net", head="nms", detector=Detector(facts(divisors), NAMES))


def expected(values: list[Any], divisors: tuple[int, int]) -> tuple[Any, ...]:
    named = dict(zip((one.name for one in OUTPUTS), values, strict=True))
    locations, scores = (
        in_order_of_priors(
            [torch.from_numpy(named[f"{kind}_{name}"])[None].double() for name in SIZES], numbers
        ) / divisor
        for kind, numbers, divisor in zip(("loc", "cls"), (4, CLASSES), divisors, strict=True)
    )  # fmt: skip
    return detect((locations, scores), PRIORS.double(), Parameters(**PARAMETERS))[0]


@pytest.mark.parametrize("divisors", [(128, 128), (128, 1 << 14)], ids=["8 bits", "32 bits"])
def test_objects_are_those_of_training(divisors: tuple[int, int], tmp_path: Path) -> None:
    """Boxes, scores, classes and their order, for scores of all kinds."""
    c = program(tmp_path, detector(divisors), NETWORK, FINDS)
    rng = np.random.default_rng(0)
    seen = 0
    for number in range(60):
        spread = (20, 60, 127)[number % 3]
        values = []
        for one in OUTPUTS:
            shape = one.shape.channels, one.shape.rows, one.shape.columns
            wide = divisors[1] // 128 if one.name.startswith("cls") else 1
            size = (spread if wide == 1 else 3 * spread) * wide
            values.append(rng.integers(-size - 1, size + 1, shape))
        flat = np.concatenate([one.reshape(-1) for one in values]).astype("i4")
        c.have(flat.ctypes.data_as(ctypes.c_void_p))
        to = np.zeros((64, 6), "i4")
        count = c.find_all(to.ctypes.data_as(ctypes.c_void_p))
        boxes, labels, scores = expected(values, divisors)
        if not scores[0]:
            assert count == 0
            continue
        assert to[:count, 5].tolist() == labels.tolist()
        assert np.abs(to[:count, 4] / 2**30 - scores.numpy()).max() < 1e-6
        assert np.abs(to[:count, :4] / 2**16 - boxes.numpy()).max() < 1e-4
        seen += count
    assert seen > 200


def test_powers_are_those_of_two(tmp_path: Path) -> None:
    calls = "int64_t power(int64_t x) { return head_power(x); }"
    c = program(tmp_path, detector(), NETWORK, calls)
    c.power.restype, c.power.argtypes = ctypes.c_int64, [ctypes.c_int64]
    for x in np.random.default_rng(1).uniform(-31, 19.4, 2000).tolist():
        whole = int(x * 2**32)
        exact = 2.0 ** (30 + whole / 2**32)
        assert abs(c.power(whole) - exact) <= max(exact * 2.0**-26, 2)
    assert c.power(-(2**62)) == 0 and c.power(2**62) == 2**50


def test_what_is_found_is_printed_in_pixels(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    c = program(tmp_path, detector(), NETWORK)
    values = [np.full((o.shape.channels, o.shape.rows, o.shape.columns), 0, "i4") for o in OUTPUTS]
    for number, one in enumerate(OUTPUTS):
        if one.name.startswith("cls"):
            values[number][::CLASSES] = 127  # background
    flat = np.concatenate([one.reshape(-1) for one in values])
    c.have(flat.ctypes.data_as(ctypes.c_void_p))
    c.say()
    assert capfd.readouterr().out == "input 1: nothing\n"
    place = [one.name for one in OUTPUTS].index("cls_small")
    values[place][0, 1, 2], values[place][2, 1, 2] = -128, 127
    flat = np.concatenate([one.reshape(-1) for one in values])
    c.have(flat.ctypes.data_as(ctypes.c_void_p))
    c.say()
    box = PRIORS[len(RATIOS["large"]) * 20 + 3 * 5]
    sides = [box[0] - box[2] / 2, box[1] - box[3] / 2, box[0] + box[2] / 2, box[1] + box[3] / 2]
    limited = [min(max(float(side), 0), 1) for side in sides]
    pixels = [round(side * size) for side, size in zip(limited, (40, 50, 40, 50), strict=True)]
    assert capfd.readouterr().out == (
        f"input 1: dog 100% 53% ({pixels[0]},{pixels[1]})-({pixels[2]},{pixels[3]})\n"
    )


@pytest.mark.parametrize("fold", [1, 4])
def test_classes_of_pixels_are_those_of_training(
    fold: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Unfolded as `ai8x.unfold_batch` does it; of equal values the first."""
    shape = Shape(3 * fold**2, 6, 5)
    library = Library("net", "title", Shape(3 * fold**2, 6, 5), (output("", 3 * fold**2, 6, 5),), 9)
    made = Application("minimal", "net", head="segmentation", names=("sky", "road", "car"))
    row_of = "void row(unsigned n, uint8_t *to) { row_of(n, to); }"
    c = program(tmp_path, made, library, row_of)
    rng = np.random.default_rng(fold)
    values = rng.integers(-3, 3, (shape.channels, 6, 5)).astype("i4")
    c.have(values.ctypes.data_as(ctypes.c_void_p))
    found = np.zeros((6 * fold, 5 * fold), np.uint8)
    for number, row in enumerate(found):
        c.row(number, row.ctypes.data_as(ctypes.c_void_p))
    wanted = ai8x.unfold_batch(torch.from_numpy(values)[None], fold)[0].argmax(0).numpy()
    assert (found == wanted).all()
    c.say()
    shares = [f"{name} {int((wanted == n).sum())}" for n, name in enumerate(made.names)]
    assert capfd.readouterr().out == f"input 1: {', '.join(shares)} of {wanted.size} pixels\n"


def test_a_vector_is_printed_with_its_length(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    library = Library("net", "title", Shape(1, 8, 8), (output("", 3, 1, 1),), 3)
    c = program(tmp_path, Application("minimal", "net", head="l2"), library)
    values = np.array([30, -40, 0], "i4")
    c.have(values.ctypes.data_as(ctypes.c_void_p))
    c.say()
    assert capfd.readouterr().out == "input 1: {76,-102,0}\n"


def _changed(**new: Any) -> Values:
    return {**facts(), **new}


_SWAPPED = [*facts()["order"]]
_SWAPPED[:2] = _SWAPPED[1::-1]


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        (_changed(order=_SWAPPED), "its boxes are in no order that is known"),
        (_changed(order=[-1] * len(_SWAPPED)), "its description is of another network"),
        (_changed(order=facts()["order"][:-9]), "its description is of another network"),
        (_changed(priors=[[0.5, 0.5, 0.1, 0.1]] * len(PRIORS)), "its boxes are in no order"),
        (_changed(priors=[]), "its description is damaged (ZeroDivisionError"),
        (_changed(priors="x"), "its description is damaged (ValueError"),
        (_changed(divisors=[100, 128]), "its description is of another network"),
        (_changed(outputs=["loc.large", "away", "x", "y"]), "the project has no output away"),
        (_changed(divisors=[2.0**30, 128]), "its description has a number that cannot be"),
        (_changed(parameters={**PARAMETERS, "top_k": 0}), "has a number that cannot be"),
        (_changed(parameters={**PARAMETERS, "min_score": float("nan")}), "that cannot be"),
        (_changed(parameters={**PARAMETERS, "max_overlap": float("inf")}), "that cannot be"),
        (_changed(divisors=[float("inf"), 128]), "its description is damaged (OverflowError"),
        ({}, "its description is damaged (KeyError"),
    ],
)
def test_descriptions_of_other_networks_are_refused(told: Values, reason: str) -> None:
    made = Application("minimal", "net", head="nms", detector=Detector(told, NAMES))
    with pytest.raises(DiagnosticError) as caught:
        made.applied({}, NETWORK)
    (complaint,) = caught.value.diagnostics
    assert complaint.code == "E916" and reason in complaint.message


def test_heads_that_do_not_suit_the_network_are_refused() -> None:
    plain = Library("net", "title", Shape(1, 8, 8), (output("", 10, 1, 1),), 10)
    refused: list[Callable[[], object]] = [
        lambda: Application("minimal", "net", head="segmentation").applied({}, plain),
        lambda: Application("minimal", "net", head="segmentation").applied(
            {}, replace(plain, outputs=(output("", 1, 4, 4),))
        ),
        lambda: Application("minimal", "net", head="nms").applied({}, NETWORK),
    ]
    for call, reason in zip(
        refused,
        ("10 channels of 1x1", "1 channels of 4x4", "does not say how objects are found"),
        strict=True,
    ):
        with pytest.raises(DiagnosticError, match=reason):
            call()
