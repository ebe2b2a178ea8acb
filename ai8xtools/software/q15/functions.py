"""The kernels of 16 and 8 bits: their prototypes, and which of them a layer needs.

Functions named arm_* have the prototypes of CMSIS-NN up to 5.9.0, so that a copy of that library
can take their place.
"""

from __future__ import annotations

from ai8xtools.quantization.q15.graph import Graph, Weighted
from ai8xtools.software.cmsis.functions import FUNCTIONS
from ai8xtools.values import frozen


@frozen
class Function:
    """A function of C: the template of its `body`, and parts of the file that it needs.

    `pixels` are computed at a time from a buffer of as many windows; `even`: it wants even numbers
    of channels. `average` and `by_rows` are for pooling.
    """

    name: str
    body: str
    needs: tuple[str, ...] = ()
    pixels: int = 0
    even: bool = False
    average: bool = False
    by_rows: bool = False

    @property
    def library(self) -> tuple[str, ...]:
        """The files of Arm's library that it takes; none: the library does not have it."""
        if self.name in FUNCTIONS:
            return FUNCTIONS[self.name].library
        return (self.name,) if self.name in _OF_LIBRARY else ()

    @property
    def library_pixels(self) -> int:
        """The windows of the buffer that the library's function takes, of ours if it has none."""
        return 2 if self.library and self.body == "depthwise" else self.pixels


_OF_LIBRARY = frozenset({
    "arm_convolve_HWC_q15_basic", "arm_convolve_HWC_q15_fast",
    "arm_convolve_HWC_q15_fast_nonsquare", "arm_fully_connected_q15", "arm_relu_q15",
    "arm_fully_connected_q15_opt",
})  # fmt: skip
_CONVOLUTION = ("products", "pixels", "convolution")


def square(bits: int, *, fast: bool) -> Function:
    """A convolution whose map, kernel, padding and stride are square."""
    name = f"arm_convolve_HWC_{q_of(bits)}_{'fast' if fast else 'basic'}"
    pixels = 1 if bits == 16 and not fast else 2  # the library's buffer has no more windows
    return Function(name, "square", _CONVOLUTION, pixels, even=bits == 16 and fast)


def oblong(name: str, *, even: bool = False) -> Function:
    """A convolution of any map, kernel, padding and stride."""
    return Function(name, "oblong", _CONVOLUTION, 2, even)


def depthwise(bits: int) -> Function:
    """A convolution of each channel by itself; weights in the order row, column, channel."""
    name = "arm_depthwise_separable_conv_HWC_q7_nonsquare"
    name = name if bits == 8 else "nn_depthwise_separable_conv_HWC_q15_nonsquare"
    return Function(name, "depthwise", ("products",))


def grouped(bits: int) -> Function:
    """A convolution of groups of channels, or of pixels that are apart with zeros between them."""
    name = f"nn_convolve_groups_HWC_{q_of(bits)}"
    return Function(name, "groups", ("products", "pixels"), 1)


def linear(bits: int, *, interleaving: bool = False) -> Function:
    """A fully connected layer; with `interleaving` four rows of weights take turns."""
    name = f"arm_fully_connected_{q_of(bits)}"
    if interleaving:
        return Function(f"{name}_opt", "linear_opt", ("products",))
    return Function(name, "linear", ("products", "pixels"))


def pool(bits: int, *, average: bool, by_rows: bool = False) -> Function:
    """Pooling; windows are cut at the border, averages are truncated toward zero.

    `by_rows`: of some rows, from a ring of rows.
    """
    name = f"nn_{'ave' if average else 'max'}pool_{q_of(bits)}_HWC{'_rows' if by_rows else ''}"
    return Function(name, "pool", average=average, by_rows=by_rows)


def relu(bits: int) -> Function:
    """Negative values become 0, in place."""
    return Function(f"arm_relu_{q_of(bits)}", "relu")


def clip(bits: int) -> Function:
    """Limits values, in place."""
    return Function(f"nn_clip_{q_of(bits)}", "clip")


def add(bits: int) -> Function:
    """Adds maps and saturates; the result may take the place of an operand."""
    return Function(f"nn_add_{q_of(bits)}", "add")


def multiply(bits: int) -> Function:
    """Multiplies maps, shifts and saturates."""
    return Function(f"nn_multiply_{q_of(bits)}", "multiply")


def table(bits: int) -> Function:
    """Looks values up; of 16 bits, on straight lines between the points of a table."""
    return Function(f"nn_table_{q_of(bits)}", "table")


def gather(bits: int) -> Function:
    """Copies rows and columns by their numbers."""
    return Function(f"nn_gather_{q_of(bits)}_HWC", "gather")


def flatten(bits: int) -> Function:
    """Copies the values of a map in another order of axes."""
    return Function(f"nn_flatten_{q_of(bits)}", "flatten")


def enlarge(bits: int) -> Function:
    """Repeats each pixel."""
    return Function(f"nn_enlarge_{q_of(bits)}_HWC", "enlarge")


def copy_channels(bits: int) -> Function:
    """Copies the channels of pixels to pixels that are `distance` values apart."""
    return Function(f"nn_copy_channels_{q_of(bits)}", "copy_channels")


def function_of(step: Weighted, graph: Graph, bits: int, *, interleaving: bool = False) -> Function:
    """Return the function of a weighted step, in the order of preference of the library."""
    if step.linear:
        return linear(bits, interleaving=interleaving)
    if step.depthwise:
        return depthwise(bits)
    if step.groups > 1 or step.spread != (1, 1):
        return grouped(bits)
    channels, rows, columns = graph.shapes[step.source]
    filters, out_rows, out_columns = graph.shapes[step.target]
    pairs = (step.kernel, step.padding, step.stride, (rows, columns), (out_rows, out_columns))
    is_square = all(one == other for one, other in pairs)
    even = channels % 2 == 0 and filters % 2 == 0
    if bits == 8:  # the library's fast one works in rows of padding, so it needs as many
        fast = channels % 4 == 0 and filters % 2 == 0 and 2 * step.padding[0] <= out_rows
        return square(8, fast=fast) if is_square else oblong("arm_convolve_HWC_q7_basic_nonsquare")
    even &= out_columns % 2 == 0  # the library computes two pixels at a time, and no single one
    if is_square:
        return square(16, fast=even)
    if even:
        return oblong("arm_convolve_HWC_q15_fast_nonsquare", even=True)
    return oblong("nn_convolve_HWC_q15_nonsquare")


def q_of(bits: int) -> str:
    """Return the name of the type of numbers of `bits` bits: q15 or q7."""
    return f"q{bits - 1}"
