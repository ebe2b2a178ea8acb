"""The kernels in C, and which of them a convolution gets on a core."""

from software.kernels.registry import PORTABLE, Core, Kernel, Packed
from software.kernels.table import choose

__all__ = ["PORTABLE", "Core", "Kernel", "Packed", "choose"]
