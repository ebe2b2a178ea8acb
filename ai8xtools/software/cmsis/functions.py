"""The functions that programs call: which Arm's library has, and what ours are made of."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from ai8xtools.values import frozen

FOLDER = Path(__file__).resolve().parent.parent / "runtime" / "cmsis"
_CONVOLUTION = "arm_convolve_HWC_q7_basic_nonsquare"
_DEPTHWISE = "arm_depthwise_separable_conv_HWC_q7_nonsquare"
_POOLING = "arm_maxpool_nonsquare_q7_HWC_nonsquare"
_RESULTS = "q7_results"
_SUMS = (_RESULTS, "q7_sums")
_KEEP = ("keep_max.c",)
_PRODUCTS = ("arm_nn_mat_mult_kernel_q7_q15", "arm_q7_to_q15_no_shift")
_REORDERED = ("arm_nn_mat_mult_kernel_q7_q15_reordered", "arm_q7_to_q15_reordered_no_shift")


@frozen
class Function:
    """A function: `parts` are what ours consists of besides, in front of it.

    `library` are the files of Arm's library that it takes; none: the library does not have it.
    `helpers` are files of the run time that ours takes.
    """

    name: str
    parts: tuple[str, ...] = ()
    library: tuple[str, ...] = ()
    helpers: tuple[str, ...] = ()


FUNCTIONS = {
    one.name: one
    for one in (
        Function(
            "arm_convolve_HWC_q7_basic", (*_SUMS, _CONVOLUTION),
            ("arm_convolve_HWC_q7_basic", *_PRODUCTS),
        ),
        Function(
            "arm_convolve_HWC_q7_fast", (*_SUMS, _CONVOLUTION),
            ("arm_convolve_HWC_q7_fast", *_REORDERED),
        ),
        Function(_CONVOLUTION, _SUMS, (_CONVOLUTION, *_PRODUCTS)),
        Function(
            "arm_depthwise_separable_conv_HWC_q7", (_RESULTS, _DEPTHWISE),
            ("arm_depthwise_separable_conv_HWC_q7",),
        ),
        Function(_DEPTHWISE, (_RESULTS,), (_DEPTHWISE,)),
        Function(
            "arm_fully_connected_q7", (*_SUMS, "q7_rows"),
            ("arm_fully_connected_q7", _REORDERED[1]),
        ),
        Function(
            "arm_fully_connected_q7_opt", (_RESULTS,), ("arm_fully_connected_q7_opt", _REORDERED[1])
        ),
        Function("arm_fully_connected_q7_q31", (*_SUMS, "q7_rows")),
        Function("arm_maxpool_q7_HWC", (_POOLING,), ("arm_pool_q7_HWC",), _KEEP),
        Function("arm_maxpool_q7_HWC_nonsquare", (_POOLING,), (), _KEEP),
        Function(_POOLING, (), (), _KEEP),
        Function("arm_relu_q7", ("arm_relu32_q7",), ("arm_relu_q7",)),
        Function("arm_relu32_q7"),
    )
}  # fmt: skip
_PROTOTYPE = re.compile(r"^(?:arm_status|void) (arm_\w+)\([^)]*\)", re.MULTILINE)


def text_of(functions: Iterable[str]) -> str:
    """Return the C of functions and of all that they need, each part once."""
    return "\n".join(_text(part, number) for number, part in enumerate(parts_of(functions)))


def prototypes_of(functions: Iterable[str]) -> list[str]:
    """Return the prototypes of functions and of those that these need."""
    matches = (_PROTOTYPE.search(_read(part)) for part in parts_of(functions))
    return [prototype[0] + ";" for prototype in matches if prototype]


def parts_of(functions: Iterable[str]) -> tuple[str, ...]:
    """Return the names of the files of functions, dependencies first."""
    return tuple(dict.fromkeys(_parts(functions)))


def _parts(functions: Iterable[str]) -> Iterator[str]:
    for name in functions:
        yield from FUNCTIONS[name].parts
        yield name


def _read(part: str) -> str:
    return (FOLDER / f"{part}.c").read_text(encoding="utf-8")


def _text(part: str, number: int) -> str:
    """Return the text of a part; only the first includes the header."""
    text = _read(part)
    return text if number == 0 else text.partition("\n")[2].lstrip("\n")
