"""One handler for each module or function of PyTorch's, by what belongs together."""

from ai8xtools.frontends.modules.handlers import (
    elements,
    recurrent,
    shapes,
    sizes,
    weights,
    windows,
)

__all__ = ["elements", "recurrent", "shapes", "sizes", "weights", "windows"]
