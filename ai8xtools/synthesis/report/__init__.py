"""What a report shows of a network on the chip, as values: `emit` only draws them.

A report is made of whatever is known: of a network that is refused because something does not fit
the memories, the layers, what could be placed, and the complaints.
"""

from ai8xtools.synthesis.report.build import build_report
from ai8xtools.synthesis.report.values import InstanceUse, KernelArea, LayerRow, Report, Usage

__all__ = ["InstanceUse", "KernelArea", "LayerRow", "Report", "Usage", "build_report"]
