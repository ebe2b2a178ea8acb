"""The kernels in C, and which of them a convolution gets on a core."""

from ai8xtools.software.kernels.registry import PORTABLE, Core, Kernel, Packed
from ai8xtools.software.kernels.table import IN_TILES, KERNELS, choose

__all__ = ["IN_TILES", "KERNELS", "PORTABLE", "Core", "Kernel", "Packed", "choose"]
