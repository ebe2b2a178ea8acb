"""Last stage: a `Program` and its `Summary` become the text of a C project.

Texts of generated files stand in `templates/`; the modules here prepare values for them, one module
per output. Nothing here knows networks or touches the disk; `writing.folder` writes the files.
Source: docs/generated-project.md.
"""

from ai8xtools.synthesis.emit.fitting import fitted
from ai8xtools.synthesis.emit.footprint import Footprint, footprint, format_footprint
from ai8xtools.synthesis.emit.log import log_text
from ai8xtools.synthesis.emit.options import ProjectOptions, check_options
from ai8xtools.synthesis.emit.outputs import check_outputs
from ai8xtools.synthesis.emit.project import emit_arrays, emit_project
from ai8xtools.synthesis.emit.statistics import format_latency, format_resources, format_statistics

__all__ = [
    "Footprint",
    "ProjectOptions",
    "check_options",
    "check_outputs",
    "emit_arrays",
    "emit_project",
    "fitted",
    "footprint",
    "format_footprint",
    "format_latency",
    "format_resources",
    "format_statistics",
    "log_text",
]
