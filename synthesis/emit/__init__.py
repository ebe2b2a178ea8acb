"""Last stage: a `Program` becomes the text of a C project, and the project a folder.

Texts of generated files stand in `templates/`; the modules here prepare values for them, one module
per output. Nothing here knows networks, and nothing but `folder` touches the disk.
Source: spec/generated-project.md.
"""

from synthesis.emit.folder import check_folder, folder_name, write_project
from synthesis.emit.log import log_text
from synthesis.emit.options import ProjectOptions, check_options
from synthesis.emit.project import emit_arrays, emit_project
from synthesis.emit.statistics import format_latency, format_resources, format_statistics

__all__ = [
    "ProjectOptions",
    "check_folder",
    "check_options",
    "emit_arrays",
    "emit_project",
    "folder_name",
    "format_latency",
    "format_resources",
    "format_statistics",
    "log_text",
    "write_project",
]
