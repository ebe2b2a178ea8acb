"""Programs for sounds and series, around networks whose weights are written by hand."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ai8xtools.checkpoint import Checkpoint, write_checkpoint
from ai8xtools.commands import targets
from ai8xtools.emulator.sensors import Recorded, Sensors
from ai8xtools.emulator.sensors.camera import encoded
from tests.emulator.conftest import Emulate
from tests.emulator.test_applications import CHIP, CORE, LATER, write_sound

FRAME, RATE = 64, 16000
LOW, HIGH = 1000, 3000  # whole periods in a frame
_TONES = """
arch: made
dataset: none
layers:
  - name: frames
    op: Linear
    data_format: HWC
    processors: 0xffff.ffff.ffff.ffff
    out_offset: 0x1000
    activate: Abs
  - name: both
    op: Linear
    processors: 0x000f
    out_offset: 0
    activate: None
    output_width: 32
"""
_TILTS = """
arch: made
dataset: none
layers:
  - name: all
    op: Linear
    data_format: HWC
    processors: 0x0007
    out_offset: 0x1000
    flatten: true
    activate: None
    output_width: 32
"""
STEPS = 16


def create(
    folder: Path, target: tuple[str, ...], kind: str, text: str, layers: dict[str, Any],
    shape: tuple[int, ...], *words: str,
) -> Path:  # fmt: skip
    """Write a project of layers with weights and output shifts."""
    state: dict[str, Any] = {}
    for name, (weights, shift) in layers.items():
        state |= {
            f"{name}.op.weight": np.asarray(weights, np.float32),
            f"{name}.weight_bits": np.array([8], np.int64),
            f"{name}.output_shift": np.array([shift], np.float32),
        }
    folder.mkdir()
    (folder / "net.yaml").write_text(text)
    write_checkpoint(folder / "q.pth.tar", Checkpoint({"arch": "made", "state_dict": state}))
    np.save(folder / "sample.npy", np.arange(np.prod(shape)).reshape(shape) % 100)
    line = [
        *target, "--config-file", str(folder / "net.yaml"), "--checkpoint-file",
        str(folder / "q.pth.tar"), "--sample-input", str(folder / "sample.npy"), "--prefix", "net",
        "--test-dir", str(folder), "--symbol-prefix", "net", "--application", kind, *words,
    ]  # fmt: skip
    assert targets.main("ai8xize.py", line) == 0
    return folder / "net"


def tones(folder: Path, target: tuple[str, ...], *words: str) -> Path:
    """A network that tells which of two tones a frame holds: two products of each, absolute."""
    phase = 2 * np.pi * np.arange(FRAME) / RATE
    waves = [wave(tone * phase) for tone in (LOW, HIGH) for wave in (np.cos, np.sin)]
    frames = np.round(np.array(waves) * 127)
    both = np.array([[1, 1, -1, -1], [-1, -1, 1, 1]]) * 64
    layers = {"frames": (frames, -5), "both": (both, 0)}
    return create(folder, target, "microphone", _TONES, layers, (FRAME, 1, 1), *words)


def tilts(folder: Path, target: tuple[str, ...], *words: str) -> Path:
    """A network that tells whether the first of three axes was above 0 or below."""
    weights = np.zeros((2, 3, STEPS))
    weights[0, 0], weights[1, 0] = 20, -20
    layers = {"all": (weights.reshape(2, -1), 0)}
    return create(folder, target, "series", _TILTS, layers, (3, STEPS), *words)


def tone(height: int, count: int = 32) -> NDArray[np.float64]:
    return np.sin(2 * np.pi * height * np.arange(count) / RATE) * 12000


@pytest.fixture
def room(tmp_path: Path) -> Path:
    """Silence, a tone, silence, another one twice, silence."""
    pause = np.zeros(1600)
    parts = [pause, tone(LOW), pause, tone(HIGH), pause, tone(HIGH), pause]
    write_sound(tmp_path / "room.wav", np.round(np.concatenate(parts)))
    return tmp_path / "room.wav"


def console(text: str) -> list[tuple[int, int]]:
    """Return times in ms and classes of the lines that name a class."""
    found = re.findall(r"^(\d+) ms: class (\d+)", text, re.MULTILINE)
    return [(int(time), int(label)) for time, label in found]


def test_each_word_gives_one_inference_and_silence_none(
    room: Path, run: Emulate, tmp_path: Path
) -> None:
    status, text = run(tones(tmp_path / "chip", CHIP), "--microphone", room)
    found = console(text)
    assert (status, [label for _, label in found]) == (0, [0, 1, 1])
    begins = [1600, 1600 + 1632, 1600 + 2 * 1632]  # samples; a window is full 64 samples later
    assert all(
        abs(time * 16 - begin) < 6 * 16 for (time, _), begin in zip(found, begins, strict=True)
    )
    assert "lost" not in text and "3 inferences; " in text.splitlines()[-1]


@LATER
def test_words_without_the_accelerator(room: Path, run: Emulate, tmp_path: Path) -> None:
    status, text = run(tones(tmp_path / "core", CORE), "--microphone", room)
    assert (status, [label for _, label in console(text)]) == (0, [0, 1, 1])


@LATER
def test_samples_that_nobody_takes_are_counted(room: Path, run: Emulate, tmp_path: Path) -> None:
    """A program that waits too long awake, with interrupts off, loses what does not fit."""
    project = tones(tmp_path / "chip", CHIP)
    main = project / "main.c"
    slow = "static void decide(uint32_t time)\n{\n"
    assert slow in main.read_text()
    busy = f"{slow}    __disable_irq();\n    MXC_Delay(10000);\n    __enable_irq();\n"
    main.write_text(
        main.read_text().replace(slow, busy).replace('"sensor.h"', '"sensor.h"\n#include "mxc.h"')
    )
    _, text = run(project, "--microphone", room)
    assert re.search(r"^at least \d+ samples lost$", text, re.MULTILINE)


def test_microphone_that_delivers_nothing_ends_in_a_message(run: Emulate, tmp_path: Path) -> None:
    status, text = run(tones(tmp_path / "chip", CHIP), "--microphone", "none")
    assert status == 1
    assert text.count("No data from the microphone within 1000 ms\n") == 3


@pytest.mark.parametrize("target", [CHIP, pytest.param(CORE, marks=LATER)], ids=["chip", "core"])
def test_series_are_windows_that_slide(
    target: tuple[str, ...], run: Emulate, tmp_path: Path
) -> None:
    """Tilted left for 40 steps, then right: a class for every 8 steps, once 16 are there."""
    values = np.zeros((80, 3), int)
    values[:40, 0], values[40:, 0] = 9000, -9000
    table = "\n".join(",".join(map(str, row)) for row in values.tolist())
    (tmp_path / "moves.csv").write_text(f"x,y,z\n{table}\n")
    (tmp_path / "two.csv").write_text("x,y\n1,2\n3,4\n")
    project = tilts(tmp_path / "net", target)
    status, text = run(project, "--series", tmp_path / "moves.csv")
    assert status == 0 and "lost" not in text
    times = list(range(STEPS, 81, STEPS // 2))
    majority = [int(values[time - STEPS : time, 0].sum() < 0) for time in times]
    assert console(text) == [(10 * t, c) for t, c in zip(times, majority, strict=True)]
    _, text = run(project, "--series", tmp_path / "two.csv")
    assert "reads 3 values at a time, the recording has 2" in text
    assert "First wrong word" not in text


def test_series_that_deliver_nothing_end_in_a_message(run: Emulate, tmp_path: Path) -> None:
    status, text = run(tilts(tmp_path / "net", CHIP), "--series", "none")
    assert status == 1 and "No sensor: it does not answer.\n" in text


class _Clock:
    """A board that keeps what sensors store, and whose time only tests let pass."""

    def __init__(self, **recorded: Any) -> None:
        self.now = 0.0
        self.stored: dict[int, bytes] = {}
        self.sensors = Sensors(Recorded(**recorded))
        self.sensors.attach(self.stored.__setitem__, lambda: self.now, self.wait, lambda: None)

    def wait(self, microseconds: float) -> None:
        self.now += microseconds


def test_the_memory_of_the_interface_holds_eight_samples() -> None:
    board = _Clock(microphone=lambda _rate: np.arange(1, 21, dtype=np.int16))
    microphone = board.sensors.microphone
    microphone.set_up(1000, 4)
    microphone.start()
    board.wait(3000)
    assert microphone.level() == 3
    assert [microphone.take() >> 14 for _ in range(3)] == [1, 2, 3]
    board.wait(12_000)
    assert microphone.level() == 8 and microphone.flags == 1
    assert microphone.take() >> 14 == 4
    microphone.acknowledge(1)
    assert microphone.flags == 0
    board.wait(4000)
    assert microphone.step() and microphone.level() == 8  # as many as interrupt the program


def test_no_sample_waits_for_a_rounded_microsecond() -> None:
    """A program that sleeps until the next sample gets it, whenever the microphone was started."""
    for start in (0.1, 252165.71, 1e6 / 3):
        board = _Clock(microphone=lambda _rate: np.ones(500, np.int16))
        microphone = board.sensors.microphone
        board.wait(start)
        microphone.set_up(16000, 4)
        microphone.start()
        for _ in range(500):
            board.wait(math.ceil(microphone.next_us()))
            assert microphone.step()
            while microphone.take():
                pass


def test_rows_of_a_camera_come_in_turn() -> None:
    picture = np.arange(4 * 2 * 3, dtype=np.uint8).reshape(4, 2, 3) * 10
    board = _Clock(camera=lambda _width, _height: iter([picture]))
    camera = board.sensors.camera
    camera.set_up((2, 4), (3, 2), 100, 2)
    camera.divide(0)
    camera.start()
    assert camera.row() == 0 and not camera.done()
    board.wait(33_333 / 4 + 1)
    assert camera.row() == 100 and board.stored[100] == encoded(picture[0], 3, 2)
    camera.release()
    board.wait(33_333 / 4)
    assert camera.row() == 104  # the other buffer
    board.wait(33_333 / 4)
    camera.release()
    assert (camera.rows, camera.overflows) == (2, 1)
    board.wait(33_333 / 4)
    assert camera.row() == 100 and board.stored[100] == encoded(picture[3], 3, 2)
    camera.release()
    assert camera.row() == 0 and camera.done()


def test_a_program_that_asks_for_rows_and_for_the_end_in_turn_loses_none() -> None:
    """Nor does it see the end before the last row; one that asks for the end alone loses rows."""
    pictures = np.zeros((2, 4, 2, 3), np.uint8)
    board = _Clock(camera=lambda _width, _height: iter(pictures))
    camera = board.sensors.camera
    camera.set_up((2, 4), (3, 2), 100, 2)
    camera.start()
    taken = 0
    for _ in range(100):
        if camera.row():
            taken += 1
            camera.release()
        elif camera.done():
            break
    assert (taken, camera.overflows) == (4, 0)
    camera.start()
    assert any(camera.done() for _ in range(1000))
    assert camera.overflows == 3


def test_pixels_of_both_formats_are_those_of_the_picture() -> None:
    """565 and 888 of the sensor differ from the picture by what 5 and 6 bits leave out."""
    row = np.random.default_rng(0).integers(0, 256, (50, 3)).astype(np.uint8)
    words = np.frombuffer(encoded(row, 3, 2), ">u2").astype(int)
    small = np.stack([words >> 11 << 3, (words >> 5 & 63) << 2, (words & 31) << 3], 1)
    large = np.frombuffer(encoded(row, 4, 4), np.uint8).reshape(-1, 4)
    assert np.array_equal(small, large[:, :3]) and not large[:, 3].any()
    assert (row - small).min() >= 0 and (row - small).max() <= 7
