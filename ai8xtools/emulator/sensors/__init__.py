"""What is connected to a board: camera, microphone and other sensors that play recordings, and the
timers that wake a program which waits for them.

Source: docs/emulator.md, "Recordings in the place of sensors".
"""

from ai8xtools.emulator.sensors.camera import FRAME_SECONDS
from ai8xtools.emulator.sensors.connected import LOW_POWER, OFF, RESTART, SYSTEM_TIMER, Sensors
from ai8xtools.emulator.sensors.recorded import Recorded
from ai8xtools.emulator.sensors.serial import NAME as UART
from ai8xtools.emulator.sensors.serial import ClosedLineError, Line, Serial, line_pair

__all__ = [
    "FRAME_SECONDS",
    "LOW_POWER",
    "OFF",
    "RESTART",
    "SYSTEM_TIMER",
    "UART",
    "ClosedLineError",
    "Line",
    "Recorded",
    "Sensors",
    "Serial",
    "line_pair",
]
