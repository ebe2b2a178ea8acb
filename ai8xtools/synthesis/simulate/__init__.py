"""Fifth stage: the exact integers that each layer computes. Memory and addresses are unknown here.

Source: docs/hardware/arithmetic.md.
"""

from ai8xtools.synthesis.simulate.simulator import Activations, LayerTrace, simulate

__all__ = ["Activations", "LayerTrace", "simulate"]
