"""Programs without accelerator and without board: any core, flash, RAM and a console.

`compile_plain` makes a program of C files for a core, `run_plain` runs it and measures what it
takes. Source: docs/emulator.md, "Cores without an accelerator".
"""

from ai8xtools.emulator.plain.compiling import LIBRARY_HEADERS, PlainProgram, compile_plain
from ai8xtools.emulator.plain.engine import CopyEngine
from ai8xtools.emulator.plain.running import PlainRun, run_plain
from ai8xtools.emulator.plain.sensors import BENCH, PlainSensor, sensor_of

__all__ = [
    "BENCH",
    "LIBRARY_HEADERS",
    "CopyEngine",
    "PlainProgram",
    "PlainRun",
    "PlainSensor",
    "compile_plain",
    "run_plain",
    "sensor_of",
]
