"""Programs around a network: recordings in, lines on the console out, and no hang without data."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import wave
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits

from ai8xtools.commands import targets
from ai8xtools.commands.emulate.recordings import Played
from ai8xtools.diagnostics import DiagnosticError
from ai8xtools.emulator import EmulatorError
from ai8xtools.writing.application import HEADS, KINDS, Application
from ai8xtools.writing.library import Library, LibraryOutput, Shape
from ai8xtools.writing.templates import render
from tests.conftest import ROOT
from tests.emulator.conftest import Emulate

CHIP, CORE = ("--device", "MAX78000"), ("--device", "MCU", "--mcu", "stm32l4r5")
LATER = pytest.mark.skipif("AI8X_PROPERTIES" not in os.environ, reason="make properties")
_OF_PICTURES = ("nms", "segmentation")  # tests/writing compile them
_CLASSES = [0, 1, 2, 3]
OUTPUT = LibraryOutput(Shape(10, 1, 1), 32, 0, 1, -7)


def create(folder: Path, target: tuple[str, ...], kind: str, *words: str) -> Path:
    line = [
        *target, "--config-file", str(ROOT / "networks" / "digits-chw-ai85.yaml"),
        "--checkpoint-file", str(ROOT / "trained" / "digits-ai85digitsnet-qat8-q.pth.tar"),
        "--sample-input", str(ROOT / "tests" / "sample_digits.npy"), "--prefix", "net",
        "--test-dir", str(folder), "--symbol-prefix", "net", "--application", kind, *words,
    ]  # fmt: skip
    assert targets.main("ai8xize.py", line) == 0
    return folder / "net"


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Digits 0 to 3 as pictures of 64x64 pixels."""
    folder = tmp_path_factory.mktemp("photos")
    for number, image in enumerate(load_digits().images[: len(_CLASSES)]):
        pixels = np.kron((image * 255 / 16).astype(np.uint8), np.ones((8, 8), np.uint8))
        Image.fromarray(pixels).save(folder / f"{number}.png")
    return folder


@pytest.fixture(scope="module")
def camera(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return create(tmp_path_factory.mktemp("camera"), CHIP, "camera")


def write_sound(path: Path, samples: Any, rate: int = 16000, tracks: int = 1) -> None:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(tracks)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(np.asarray(samples, "<i2").tobytes())


SDK = """#ifndef MXC_H
#define MXC_H
#include "sdk-prototypes.h"
#include <stddef.h>
typedef struct { volatile uint32_t dmach0, fifoch0; } mxc_i2s_regs_t;
typedef struct { int none; } mxc_icc_regs_t;
extern mxc_i2s_regs_t *MXC_I2S;
extern mxc_icc_regs_t *MXC_ICC0;
extern mxc_wdt_regs_t *MXC_WDT0;
extern mxc_i2c_regs_t *MXC_I2C2;
#define MXC_F_I2S_DMACH0_RX_LVL_POS 24
#define MXC_F_I2S_INTFL_RX_OV_CH0 1u
#define MXC_F_I2S_INTEN_RX_THD_CH0 2u
#define E_NO_ERROR 0
#define CONSOLE_UART 0
typedef enum { MXC_UART_IBRO_CLK = 2 } mxc_uart_clock_t;
mxc_uart_regs_t *MXC_UART_GET_UART(int number);
int MXC_UART_Init(mxc_uart_regs_t *uart, unsigned int baud, mxc_uart_clock_t clock);
unsigned int MXC_UART_GetRXFIFOAvailable(mxc_uart_regs_t *uart);
unsigned int MXC_UART_GetTXFIFOAvailable(mxc_uart_regs_t *uart);
int MXC_UART_ReadCharacterRaw(mxc_uart_regs_t *uart);
int MXC_UART_WriteCharacterRaw(mxc_uart_regs_t *uart, uint8_t character);
enum { MXC_SYS_CLOCK_IPO, MXC_SYS_CLOCK_ERTCO, MXC_SYS_PERIPH_CLOCK_CNN, WUT_IRQn, I2S_IRQn };
int MXC_SYS_Clock_Select(int clock);
int MXC_SYS_ClockSourceEnable(int clock);
void MXC_SYS_ClockEnable(int clock);
void MXC_SYS_ClockDisable(int clock);
void MXC_ICC_Enable(mxc_icc_regs_t *icc);
void SystemCoreClockUpdate(void);
void NVIC_EnableIRQ(int irq);
void MXC_NVIC_SetVector(int irq, void (*handler)(void));
#endif
"""

NETWORK = """#include <stdint.h>
#define NET_CNN_INFERENCE_TIMER 0
extern volatile uint32_t net_cnn_time;
"""


def spent_by_phase(text: str) -> dict[str, list[float]]:
    """Return times, cycles awake and asleep, and microjoules by the phases of a program."""
    table = re.findall(r"^(\w[\w, ]*?)  +([\d,]+) +([\d,]+) +([\d,]+) +([\d.,]+) uJ", text, re.M)
    return {name: [float(one.replace(",", "")) for one in row] for name, *row in table}


def lines(text: str) -> list[str]:
    """Return the lines of the console that name a class."""
    return re.findall(r"^\w+ \d+: class \d+", text, re.MULTILINE)


def test_camera_says_what_is_on_the_pictures(
    camera: Path, photos: Path, run: Emulate, tmp_path: Path
) -> None:
    """The same loop on the accelerator and without it, whose pixels are not of 565 bits."""
    expected = [f"picture {number + 1}: class {number}" for number in _CLASSES]
    status, text = run(camera, "--camera", photos, "--power")
    assert (status, lines(text)) == (0, expected)
    spent = spent_by_phase(text)
    awake, asleep = (sum(one[n] for name, one in spent.items() if "once" not in name)
                     for n in (1, 2))  # fmt: skip
    assert awake + asleep == pytest.approx(4 * 3_333_300, rel=0.02)  # a picture takes 33.333 ms
    (percent,) = re.findall(r"4 inferences in 0.1\d\d s: awake ([\d.]+) % of", text)
    assert float(percent) == pytest.approx(100 * awake / (awake + asleep), abs=0.06)
    cycles = 2 * 4 * 3734  # of the accelerator, whose clock is half that of the core
    assert cycles <= spent["inference"][2] < 1.03 * cycles
    (inference,) = re.findall(
        r"Energy: +([\d.]+) uJ .* for an inf", (camera / "log.txt").read_text()
    )
    assert 4 * float(inference) < spent["inference"][3] < 5 * float(inference)
    characters = sum(len(line) + 1 for line in text.splitlines() if line.startswith("picture "))
    assert spent["console"][:2] == [characters, round(characters * 1e9 / 115200)]
    assert f"note: the camera delivers 4 pictures of {photos}\n" in text
    last = text.splitlines()[-1]
    assert last == f"DONE (4 inferences; 4 pictures of {photos}; nothing is said of the output)"
    (moves := tmp_path / "moves.csv").write_text("1\n")
    words = ("--camera", photos, "--power", "--series", moves)
    status, text = run(create(tmp_path, CORE, "camera"), *words)
    assert (status, lines(text)) == (0, expected)
    assert f"note: --series: the program has taken nothing from {moves}\n" in text
    spent = spent_by_phase(text)
    assert spent["inference"][:1] == [4] and spent["inference"][1] > 100 * spent["load"][1] > 0
    pictures = sum(sum(one[1:3]) for name, one in spent.items() if "once" not in name)
    assert pictures == pytest.approx(4 * 120 * 33_333, abs=9)
    assert text.splitlines()[-1] == f"DONE (4 pictures of {photos}; nothing is said of the output)"


def test_rows_that_come_too_fast_are_counted(
    photos: Path, run: Emulate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Large pictures come by rows; a program that is too slow between them says so."""
    monkeypatch.setattr("ai8xtools.writing.application._LARGEST_PICTURE", 0)
    project = create(tmp_path, CHIP, "camera")
    if "AI8X_PROPERTIES" in os.environ:
        status, text = run(project, "--camera", photos)
        assert (status, len(lines(text))) == (0, 4) and "lost" not in text
    source = project / "sensor.c"
    slow = "        release_camera_stream_buffer();"
    assert slow in source.read_text()
    source.write_text(source.read_text().replace(slow, f"        MXC_Delay(3000);\n{slow}"))
    status, text = run(project, "--camera", photos)
    assert not lines(text) and status == 1
    assert re.search(r"^\d\d pieces of pictures lost$", text, re.MULTILINE)


def test_camera_that_delivers_nothing_ends_in_a_message(camera: Path, run: Emulate) -> None:
    status, text = run(camera, "--camera", "none")
    assert status == 1
    assert text.count("No data from the camera within 1000 ms\n") == 3
    assert "Giving up" in text and "wrong word" not in text
    assert text.splitlines()[-1] == (
        "NOT PASSED: the program never started the accelerator; it ended with status 1"
    )


def test_recordings_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    def refused(sensor: str, name: str, *asked: int) -> str:
        with pytest.raises(EmulatorError) as caught:
            recorded = Played(**{sensor: str(tmp_path / name)}).recorded(tmp_path)
            list(getattr(recorded, sensor)(*asked))
        assert caught.value.code == "E872" and caught.value.remedy
        return caught.value.message

    Image.new("L", (63, 64)).save(tmp_path / "small.png")
    assert "has 63x64 pixels, the camera's window 64x64" in refused("camera", "small.png", 64, 64)
    write_sound(tmp_path / "slow.wav", np.zeros(10), rate=8000)
    assert "8000 samples a second, the program" in refused("microphone", "slow.wav", 16000)
    write_sound(tmp_path / "two.wav", np.zeros(10), tracks=2)
    assert "has 2 tracks, a microphone one" in refused("microphone", "two.wav", 16000)
    (tmp_path / "units.csv").write_text("x,y,z\n1,2,3\n4,0.5,6\n")
    assert refused("series", "units.csv", 3).startswith("line 3, column y: 0.5 is no number that")
    (tmp_path / "large.csv").write_text("1,2,3\n4,5,40000\n")
    assert "line 2, column 2: 40000 " in refused("series", "large.csv", 3)
    (tmp_path / "empty").mkdir()
    assert "no files of camera" in refused("camera", "empty", 1, 1)
    with pytest.raises(FileNotFoundError):
        Played(microphone=str(tmp_path / "missing")).recorded(tmp_path)


@LATER
def test_minimal_program_computes_the_same_everywhere(run: Emulate, tmp_path: Path) -> None:
    texts = [run(create(tmp_path / name, target, "minimal"))
             for name, target in (("chip", CHIP), ("core", CORE))]  # fmt: skip
    assert [status for status, _ in texts] == [0, 0]
    console = [re.findall(r"^input \d.*", text, re.MULTILINE) for _, text in texts]
    assert console[0] == console[1] and len(console[0]) == 3
    assert "DONE (3 inferences; nothing is said of the output)" in texts[0][1]


@LATER
def test_heads_say_more_than_the_class(photos: Path, run: Emulate, tmp_path: Path) -> None:
    """The three best; and who it is by the cosine to what the program printed itself."""
    _, text = run(create(tmp_path / "best", CORE, "camera", "--head", "top-k"), "--camera", photos)
    assert (
        len(re.findall(r"^picture \d: class \d \(\d+\) class \d \(-?\d+\) class", text, re.M)) == 4
    )
    project = create(tmp_path / "who", CORE, "camera", "--head", "cosine")
    _, text = run(project, "--camera", photos)
    vectors = re.findall(r"unknown (\{[-\d,]+\})", text)
    assert len(vectors) == 4
    main = project / "main.c"
    known = main.read_text().replace("{ { 0 } }", f"{{ {vectors[2]}, {vectors[1]} }}")
    main.write_text(known.replace("#define ENROLLED 0 ", "#define ENROLLED 2 "))
    _, text = run(project, "--camera", photos)
    assert re.findall(r"picture (\d): number (\d)", text) == [("2", "1"), ("3", "0")]


def test_options_that_mean_nothing_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(DiagnosticError, match=r"an image of 8x8 \[E913\]"):
        create(tmp_path, CHIP, "microphone")
    with pytest.raises(DiagnosticError, match="an image of 8x8"):
        create(tmp_path, CORE, "series")
    with pytest.raises(DiagnosticError, match="together with --verify"):
        create(tmp_path, CHIP, "minimal", "--verify")
    with pytest.raises(SystemExit):
        targets.main("ai8xize.py", [*CORE, "--config-file", "a", "--prefix", "net", "--test-dir",
                                    str(tmp_path), "--head", "top-k"])  # fmt: skip
    assert "argument --head: add --application" in capsys.readouterr().err
    with pytest.raises(DiagnosticError, match="--c-filename"):
        create(tmp_path, CHIP, "minimal", "--c-filename", "other")
    with pytest.raises(DiagnosticError, match="together with --rtl"):
        create(tmp_path, CHIP, "minimal", "--rtl")
    with pytest.raises(SystemExit):
        create(tmp_path, CORE, "minimal", "--build", "cmake")
    assert "--application: packages hold the library alone, leave it out" in capsys.readouterr().err
    assert not (tmp_path / "net").exists()


@pytest.mark.parametrize("generation", [(), ("-DSDK_2021",)], ids=["2023", "2021"])
@pytest.mark.parametrize("by_rows", [False, True], ids=["whole pictures", "rows"])
def test_programs_compile_against_the_interface_of_the_sdk(
    by_rows: bool, generation: tuple[str, ...], tmp_path: Path
) -> None:
    prototypes = ROOT.parent / "shared" / "spec" / "sdk-prototypes.h"
    compiler = shutil.which("cc")
    if not prototypes.is_file() or compiler is None:
        pytest.skip("needs ../shared and a C compiler")
    (tmp_path / "mxc.h").write_text(SDK)
    for header in ("camera.h", "board.h"):
        (tmp_path / header).write_text('#include "mxc.h"\n')
    library = Library("net", "title", Shape(1, 512 if by_rows else 64, 64), (OUTPUT,), 40)
    strip = replace(library, input=Shape(64, 16, 1))
    for kind, head in (
        *((kind, "argmax") for kind in KINDS),
        *(("minimal", h) for h in HEADS if h not in _OF_PICTURES),
    ):
        made = Application(kind, "net", "EvKit_V1", head=head).applied(
            {}, library if kind in ("camera", "minimal") else strip
        )
        assert ("STREAMING_DMA" in made["sensor.c"]) == (by_rows and kind == "camera")
        for name, text in made.items():
            (tmp_path / name).write_text(text)
        (tmp_path / "net_cnn.h").write_text(NETWORK)
        (tmp_path / "net.h").write_text(render("library/library.h.j2", library=library))
        flags = [
            "-std=c99",
            "-Wall",
            "-Wextra",
            "-Wstrict-prototypes",
            "-Wconversion",
            "-Werror",
            "-Wdouble-promotion",
        ]  # the SDK's -fsingle-precision-constant changes nothing
        places = [f"-I{tmp_path}", f"-I{prototypes.parent}", str(tmp_path / "sensor.c")]
        done = subprocess.run(
            [compiler, "-fsyntax-only", *flags, *generation, *places, str(tmp_path / "main.c")],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{kind}: {done.stderr}"


def test_boost_pin_is_left_alone() -> None:
    """On the kit of MAX78002 it is a lamp."""
    library = Library("net", "title", Shape(1, 64, 64), (OUTPUT,), 40)
    made = Application("camera", "net", "EvKit_V1").applied({}, library)
    assert "GPIO" not in made["sensor.c"] + made["main.c"]


def test_a_board_of_ones_own_has_a_driver_of_ones_own() -> None:
    """Recordings take the place of the driver where there is no accelerator."""
    library = Library("net", "title", Shape(1, 64, 64), (OUTPUT,), 40)
    for chip, told in (("MAX78000", False), ("", True)):
        made = Application("camera", "net", "none", chip=chip).applied({}, library)
        assert "Yours to write" in made["sensor.c"] and "mxc.h" not in made["main.c"]
        assert ("plays recordings" in made["sensor.c"]) == told
        assert ("plays recordings" in made["README.md"]) == told
