"""What is reported of a network: its description, cost, latency, memory and data in words.

The functions read the network, its placement and its activations; accelerator words are made by
`encode`.
"""

from ai8xtools.synthesis.summarize.statistics import wide_share
from ai8xtools.synthesis.summarize.summary import summarize

__all__ = ["summarize", "wide_share"]
