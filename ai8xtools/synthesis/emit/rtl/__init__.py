"""Tests for RTL simulation of the accelerator: a second product of the same `Program`.

Source: docs/rtl.md, "Images".
"""

from ai8xtools.synthesis.emit.rtl.bench import chip_header
from ai8xtools.synthesis.emit.rtl.camera import Camera
from ai8xtools.synthesis.emit.rtl.options import RtlOptions, check_rtl_options, test_name
from ai8xtools.synthesis.emit.rtl.project import emit_rtl, empty_folders, executables
from ai8xtools.synthesis.emit.rtl.regression import add_test, list_problems, regression_line

__all__ = [
    "Camera",
    "RtlOptions",
    "add_test",
    "check_rtl_options",
    "chip_header",
    "emit_rtl",
    "empty_folders",
    "executables",
    "list_problems",
    "regression_line",
    "test_name",
]
