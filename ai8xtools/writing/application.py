"""A program around a library: it takes what a sensor delivers and says what the network finds.

Source: docs/applications.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from ai8xtools.bench.description import BenchDescription, OutputShape
from ai8xtools.diagnostics import Diagnostic, DiagnosticError, Place, refuse_errors, refused
from ai8xtools.values import frozen
from ai8xtools.writing.detector import Detector
from ai8xtools.writing.library import Library
from ai8xtools.writing.packages import STACK_OF_TEST, Package
from ai8xtools.writing.templates import render

OPTION = "--application"
ARGMAX = "argmax"
BENCH = "bench"
"""The program that `emulate.py --serial` talks to."""
_WITHOUT_HEADER = (ARGMAX, "segmentation")
HEADS = (ARGMAX, "hysteresis", "top-k", "cosine", "l2", "nms", "segmentation")
"""What becomes of the outputs, by its word."""
_MAIN = "main.c"
_SMALLEST_WINDOW = 64
"""Least rows and columns that are asked of a camera."""
_LARGEST_PICTURE = 48 << 10
"""Bytes of a picture that the camera's driver may hold as a whole; larger ones come by rows."""
_CHUNK = 128
_LEAST_CLASSES = 2
_LINE = 16
"""Bytes of an array in a line of C."""
_PIXEL_BYTES = 2
ZEPHYR = "zephyr"
NO_BOARD = "none"
"""In the place of a board: a program for Zephyr's drivers."""
_ZEPHYR = {
    "minimal": "",
    "microphone": "CONFIG_AUDIO=y\nCONFIG_AUDIO_DMIC=y\n",
    "series": "CONFIG_SENSOR=y\n",
}
"""What Zephyr has a common interface for, with its configuration."""
_NO_ZEPHYR = {"camera": "the camera interface", "microphone": "I2S"}
"""What Zephyr has no driver of for the chips of the accelerator."""
_AXES = 3
_PORTS = {"FTHR_RevA": "MXC_I2C1"}


@frozen
class Names:
    """What is called what in the text of a program."""

    title: str
    sensor: str
    one: str
    piece: str
    lost: str
    loop: str
    steps: str
    time: str
    scale: str = ""
    play: str = ""
    plays: str = ""


KINDS: Mapping[str, Names] = {
    "minimal": Names(
        "the smallest program", "input", "inputs", "input", "inputs",
        "Loads inputs, runs the network, prints the class.",
        "read, load, run, decide", "input %lu",
    ),
    "camera": Names(
        "pictures of a camera", "camera", "the camera", "picture", "pieces of pictures",
        "Takes a picture, runs the network on it and prints the class, for ever.",
        "read, load, ask for the next picture, run, decide", "picture %lu",
        play=" --camera pictures",
        plays="a picture or a folder of them, in the order of their names.",
    ),
    "microphone": Names(
        "a microphone", "microphone", "the microphone", "samples", "samples",
        "Listens; when it is loud, runs the network on a window of samples and prints the class.",
        "read, collect a window, load, run, decide", "%lu ms",
        " * SENSOR_VALUES / (SENSOR_RATE / 1000u)",
        " --microphone sound.wav", "a WAV file of one track, with the rate of the program.",
    ),
    "series": Names(
        "measurements over time", "sensor", "the sensor", "measurement", "measurements",
        "Measures all the time, runs the network on windows and prints the class.",
        "read, collect a window, load, run, decide", "%lu ms", " * SENSOR_PERIOD_MS",
        " --series measurements.csv",
        "a CSV file with a column for each channel, whole numbers as the sensor has them.",
    ),
    BENCH: Names(
        "inputs over a serial line", "serial line", "the serial line", "byte", "bytes",
        "Takes inputs over the serial line, runs the network and gives the outputs back, for ever.",
        "read, collect an input, load, run, answer", "",
    ),
}  # fmt: skip
"""What there is, by its word."""


@frozen
class Application:
    """The program that is asked for: `kind` is a word of `KINDS`, `name` that of the project.

    `data` is the kind of data that the network was trained on ("picture", "sound", "series"; empty:
    not known), of which pictures and series have `fold`ed channels and sounds a `rate` in Hz.
    `header`: prepare.h makes inputs of them. `names` are those of the classes that are marked on
    pictures, `detector` is how objects are found. `head` is one of `HEADS`. `board` is that of the
    vendor's SDK, `ZEPHYR`, or `NO_BOARD` for a driver of the user's own. `chip` is that of the
    accelerator, "" without it.
    """

    kind: str
    name: str
    board: str = NO_BOARD
    data: str = ""
    fold: int = 1
    rate: int = 16000
    header: bool = False
    names: tuple[str, ...] = ()
    detector: Detector | None = None
    head: str = ARGMAX
    chip: str = ""

    def applied(self, files: Mapping[str, str], library: Library) -> dict[str, str]:
        """Return the files of a library with this program in place of the known-answer test.

        Raises DiagnosticError E913 for a network that takes no such data.
        """
        zephyr = self.board == ZEPHYR
        sdk = self.board not in (ZEPHYR, NO_BOARD)
        values: dict[str, Any] = {
            **self._values(library), **self._of_head(library), "library": library,
            "kind": self.kind, "name": self.name, "head": self.head, "names": KINDS[self.kind],
            "sdk": sdk, "zephyr": zephyr, "played": sdk or not self.chip, "chip": self.chip,
            "port": _PORTS.get(self.board, "MXC_I2C2"),
        }  # fmt: skip
        kept = {
            path: text for path, text in files.items()
            if path != _MAIN and not path.endswith(("sampledata.h", "sampleoutput.h"))
            and (path.endswith((".c", ".h")) or not (zephyr and self.chip))
        }  # fmt: skip
        if self.kind == BENCH:
            kept["bench.h"] = render("application/bench.h.j2")
        if self.head not in _WITHOUT_HEADER:
            kept["head.h"] = render("application/head.h.j2", head=self.head)
        if zephyr:
            kept |= self._with_zephyr(kept, library, values.get("channels", 0))
        own = not sdk and (not zephyr or not _ZEPHYR[self.kind])
        drivers = "own" if own else ZEPHYR if zephyr else "sdk"
        return {
            **kept,
            _MAIN: render("application/main.c.j2", **values),
            "sensor.h": render("application/sensor.h.j2", **values),
            "sensor.c": render(f"application/sensor_{drivers}.c.j2", **values),
            "README.md": render("application/README.md.j2", **values),
        }

    def _with_zephyr(self, kept: dict[str, str], library: Library, channels: int) -> dict[str, str]:
        """Return the files with which Zephyr builds the program: with the accelerator the network
        is a module, in the same folder. Raises DiagnosticError E913 where Zephyr has no driver."""
        refuse_errors(undriven(self.kind, self.board, self.chip))
        if channels > _AXES:
            raise DiagnosticError(_not_common(self.kind))
        settings, module = f"CONFIG_MAIN_STACK_SIZE=4096\n{_ZEPHYR[self.kind]}", {}
        sources = {_MAIN, "sensor.c"}
        if self.chip:
            package = Package(library.prefix, f"{library.prefix}.h", STACK_OF_TEST, self.chip)
            files = package.files((ZEPHYR,), {**kept, _MAIN: ""})
            module = {path: files[path] for path in files if path.startswith("zephyr/")}
            settings += f"CONFIG_NETWORK_{library.macro}=y\n"
        else:
            sources |= {path for path in kept if path.endswith(".c")}
        build = render("application/zephyr.txt.j2", library=library, sources=sorted(sources),
                       module=bool(module))  # fmt: skip
        return {**module, "CMakeLists.txt": build, "prj.conf": settings}

    def _values(self, library: Library) -> dict[str, Any]:
        """Return what the templates of the kind need to know of the input."""
        shape = library.input
        expected = {"camera": "picture", "microphone": "sound", "series": "series"}.get(self.kind)
        if expected and self.data not in ("", expected):
            raise self._refused(f"the network was trained on data of the kind {self.data}")
        match self.kind:
            case "camera":
                return self._camera(library)
            case "microphone" | "series" if shape.columns != 1 and shape.rows != 1:
                raise self._refused(
                    f"the input of the network is an image of {shape.rows}x{shape.columns}"
                )
            case "microphone":
                chunk = next(n for n in range(_CHUNK, 0, -1) if shape.size % (4 * n) == 0
                             or n == 1)  # fmt: skip
                return {"chunk": chunk, "rate": self.rate, "prepared": False,
                        "leveled": self.data == "sound"}  # fmt: skip
            case "series":
                return {"channels": shape.channels // self.fold, "steps": shape.pixels * self.fold,
                        "prepared": self.header, "leveled": False}  # fmt: skip
            case "bench":
                return {**self._description(library), "prepared": False, "leveled": False}
            case _:
                return {"size": shape.size, "prepared": False, "leveled": False}

    def _camera(self, library: Library) -> dict[str, Any]:
        shape = library.input
        channels, rest = divmod(shape.channels, self.fold**2)
        rows, columns = shape.rows * self.fold, shape.columns * self.fold
        if rest or channels not in (1, 3):
            raise self._refused(
                f"a camera has 1 or 3 channels, the input of the network {shape.channels}"
            )
        step = -(-_SMALLEST_WINDOW // min(rows, columns))
        picture = rows * columns * step**2 * _PIXEL_BYTES
        return {
            "channels": channels, "rows": rows, "columns": columns, "step": step,
            "by_rows": picture > _LARGEST_PICTURE, "prepared": self.header,
            "leveled": self.data == "picture" and not self.header,
        }  # fmt: skip

    def _of_head(self, library: Library) -> dict[str, Any]:
        """Return what the head needs to know of the outputs; raises DiagnosticError E916."""
        if self.head == "segmentation":
            return {"class_names": self.names, "fold": self._unfolded(library)}
        if self.head != "nms":
            return {}
        if self.detector is None:
            raise self._unsuitable("the checkpoint does not say how objects are found")
        try:
            constants = self.detector.constants(library.outputs)
        except ValueError as exc:
            raise self._unsuitable(str(exc)) from None
        return {**constants, "class_names": self.detector.names, "fold": self.fold}

    def _unfolded(self, library: Library) -> int:
        """Return how many pixels of the picture, on a side, a pixel of the last output
        describes."""
        shape, input_shape = library.outputs[-1].shape, library.input
        if shape.pixels == 1 or shape.channels < _LEAST_CLASSES:
            raise self._unsuitable(
                f"the output has {shape.channels} channels of {shape.rows}x{shape.columns}"
            )
        if self.names and len(self.names) == shape.channels:
            return 1
        for channels in (1, 3):  # of a picture, whose blocks are the pixels of the network
            fold = math.isqrt(input_shape.channels // channels)
            classes, rest = divmod(shape.channels, fold**2 or 1)
            folded = fold > 1 and fold**2 * channels == input_shape.channels
            if folded and not rest and classes >= _LEAST_CLASSES:
                return fold
        return 1

    def _unsuitable(self, why: str) -> DiagnosticError:
        return refused(
            "E916", f"--head {self.head} does not suit the network: {why}", Place(option="--head"),
            "Choose another one.",
        )  # fmt: skip

    def _description(self, library: Library) -> dict[str, Any]:
        """Return the board's description of the network, as lines of C."""
        shape = library.input
        outputs = [
            (o.shape.channels, o.shape.rows, o.shape.columns, o.bits) for o in library.outputs
        ]
        description = BenchDescription(
            self.name, (shape.channels, shape.rows, shape.columns),
            tuple(OutputShape(*output) for output in outputs),
        )  # fmt: skip
        try:
            encoded = description.encoded()
        except ValueError as exc:
            raise self._refused(f"its frames cannot describe {exc}") from None
        lines = [encoded[at : at + _LINE] for at in range(0, len(encoded), _LINE)]
        text = [" ".join(f"0x{byte:02X}," for byte in line) for line in lines]
        return {"output_bytes": description.output_bytes, "told": text}

    def _refused(self, why: str) -> DiagnosticError:
        return DiagnosticError(_no_program(self.kind, why))


def asking(options: Any) -> str | None:
    """Return the option with which options ask for a program; None if none does."""
    asked = {
        OPTION: options.application is not None,
        "--head": options.head != ARGMAX,
        f"--board-name {ZEPHYR}": options.board_name == ZEPHYR,
    }
    return next((option for option, is_set in asked.items() if is_set), None)


def undriven(kind: str | None, board: str, chip: str = "") -> Iterator[Diagnostic]:
    """Yield E913 for a kind of program that Zephyr has no driver for, whatever the network is."""
    if board == ZEPHYR and chip and kind in _NO_ZEPHYR:
        yield _no_program(kind, f"Zephyr has no driver of {_NO_ZEPHYR[kind]} for {chip}")
    elif board == ZEPHYR and kind is not None and kind not in _ZEPHYR:
        yield _not_common(kind)


def _not_common(kind: str) -> Diagnostic:
    return _no_program(
        kind,
        "Zephyr has no interface that all its boards share",
        "Leave out --board-name; where no driver is, write sensor_read().",
    )


def _no_program(
    kind: str,
    why: str,
    remedy: str = "Use --application minimal, and write sensor_read() for your data.",
) -> Diagnostic:
    message = f"no program for a {KINDS[kind].sensor}: {why}"
    return Diagnostic("E913", message, Place(option=OPTION), remedy)
