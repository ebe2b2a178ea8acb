"""Fifth stage: the exact integers that each layer computes. Memory and addresses are unknown here.

Source: docs/hardware/arithmetic.md.
"""

from synthesis.simulate.simulator import Activations, LayerTrace, simulate

__all__ = ["Activations", "LayerTrace", "simulate"]
