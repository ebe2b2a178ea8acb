"""One handler for each operator of ONNX, by what belongs together.

Defaults, forms of older versions and paddings by name are settled here.
"""

from ai8xtools.frontends.onnx.handlers import (
    constants,
    elements,
    quantized,
    recurrent,
    shapes,
    windows,
)

__all__ = ["constants", "elements", "quantized", "recurrent", "shapes", "windows"]
