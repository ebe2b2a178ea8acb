"""Frames and requests on lines with faults: outputs are right, or the run ends with a message."""

from __future__ import annotations

import ctypes
import random
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ai8xtools.bench.description import BenchDescription, OutputShape
from ai8xtools.bench.exchange import TRIES, BenchBoard, BoardError
from ai8xtools.bench.frames import NO_SEQUENCE, Decoder, Frame, Message, decoded, encoded
from ai8xtools.bench.ports import opened
from ai8xtools.diagnostics.errors import InputError
from tests.bench.lines import (
    DESCRIPTION,
    INPUT_BYTES,
    Fault,
    Model,
    Noise,
    compiled,
    expected,
)

FEW = settings(max_examples=60, deadline=None)
WHAT = st.sampled_from(["lose", "double", "change", "noise"])
FAULTS = st.lists(
    st.builds(Fault, st.integers(0, 1500), WHAT, st.integers(0, 2**63)), max_size=TRIES - 2
)


@pytest.fixture(scope="module")
def c(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return compiled(tmp_path_factory.mktemp("model"))


def data_of(seed: int) -> bytes:
    return random.Random(seed).randbytes(INPUT_BYTES)


def connected(model: Model) -> BenchBoard:
    return BenchBoard(model, "port", 1.0, 60.0, model.now)


@given(st.integers(0, 255), st.integers(0, NO_SEQUENCE), st.binary(max_size=600))
@FEW
def test_frames_hold_what_was_put_into_them(kind: int, sequence: int, data: bytes) -> None:
    frame = Frame(kind, sequence, data)
    text = encoded(frame)
    assert text.count(0) == 2 and text[0] == 0 == text[-1]
    assert decoded(text[1:-1]) == frame
    assert list(Decoder().feed(b"noise" + text + b"more" + text)) == [frame, frame]


@pytest.mark.parametrize("length", [0, 243, 244, 245, 246, 254, 498, 499, 500, 512])
def test_blocks_of_every_length_are_the_same_in_c_and_python(c: Any, length: int) -> None:
    """COBS has blocks of 254 bytes; the data are without zeros, or zeros alone."""
    for byte in (b"\x01", b"\x00"):
        model = Model(c)
        board = connected(model)
        assert board.infer(byte * length + bytes(INPUT_BYTES - length)) == expected(
            byte * length + bytes(INPUT_BYTES - length)
        )
        assert (board.retries, board.resets) == (0, 0)


def test_description_is_what_the_board_says(c: Any) -> None:
    assert connected(Model(c)).description == DESCRIPTION
    long = BenchDescription("ä" * 40, (1, 2, 3), (OutputShape(1, 1, 1, 8),) * 30)
    told = BenchDescription.decoded(long.encoded())
    assert told is not None and told.name == "ä" * 32 and told.outputs == long.outputs
    with pytest.raises(ValueError, match="400 outputs"):
        BenchDescription("n", (1, 1, 1), (OutputShape(1, 1, 1, 8),) * 400).encoded()


@given(st.binary(max_size=80))
@FEW
def test_descriptions_of_strangers_are_bounded(told: bytes) -> None:
    for text in (told, b"\x01" + told):
        made = BenchDescription.decoded(text)
        assert made is None or 0 < made.output_bytes <= 1 << 28


@given(FAULTS, FAULTS, st.integers(0, 99))
@settings(max_examples=100, deadline=None)
def test_a_few_faults_are_recovered(
    c: Any, there: list[Fault], back: list[Fault], seed: int
) -> None:
    """Fewer than there are tries, wherever they are."""
    board = connected(Model(c, Noise(there[:4]), Noise(back[:4])))
    for number in range(2):
        assert board.infer(data_of(seed + number)) == expected(data_of(seed + number))


@given(st.integers(0, 10**9), st.integers(5, 3000))
@settings(max_examples=100, deadline=None)
def test_no_wrong_output_is_accepted_from_a_bad_line(c: Any, seed: int, rate: int) -> None:
    """A fault every `rate` bytes or so, for ever: the output is right, or there is none."""
    rng = random.Random(seed)

    def faults() -> Iterator[Fault]:
        kinds = ["lose", "double", "change", "noise"]
        while True:
            yield Fault(rng.randrange(rate), rng.choice(kinds), rng.getrandbits(60))

    try:
        board = connected(Model(c, Noise(faults()), Noise(faults())))
        for number in range(3):
            assert board.infer(data_of(number)) == expected(data_of(number))
    except BoardError as error:
        assert error.code == "E886" and error.remedy


@given(st.lists(st.integers(1, 4000), max_size=TRIES - 1), FAULTS)
@FEW
def test_a_board_that_restarts_gets_its_input_again(
    c: Any, resets: list[int], faults: list[Fault]
) -> None:
    model = Model(c, back=Noise(faults[:3]), resets=resets)
    board = connected(model)
    for number in range(3):
        assert board.infer(data_of(number)) == expected(data_of(number))
    assert board.resets <= len(resets)


def test_restarts_are_counted(c: Any) -> None:
    model = Model(c)
    board = connected(model)
    board.infer(data_of(1))
    model.restart()
    assert board.infer(data_of(2)) == expected(data_of(2))
    assert (board.retries, board.resets) == (0, 1)
    assert board.microseconds == [7, 7]


def test_a_board_that_restarts_for_ever_is_reported(c: Any) -> None:
    with pytest.raises(BoardError, match=f"lost its input {TRIES} times") as caught:
        connected(Model(c, resets=(*[60] * 200,))).infer(data_of(0))
    assert caught.value.code == "E886"


def test_a_silent_board_is_reported_in_time(c: Any) -> None:
    model = Model(c)
    board = connected(model)
    model.silent, began = True, model.time
    with pytest.raises(BoardError, match=r"does not answer \(requests: 10\)") as caught:
        board.infer(data_of(0))
    assert caught.value.code == "E886" and caught.value.place == "port"
    assert model.time - began == pytest.approx(TRIES * 1.0)


def test_other_programs_and_failures_are_reported(c: Any) -> None:
    with pytest.raises(BoardError, match="of another version") as caught:
        other = Model(c)
        other.restart(b"\x02" + DESCRIPTION.encoded()[1:])
        connected(other)
    assert caught.value.code == "E887"
    model = Model(c)
    board = connected(model)
    with pytest.raises(BoardError, match="a restart with another network"):
        model.restart(BenchDescription("other", (7, 10, 10), DESCRIPTION.outputs).encoded())
        board.infer(data_of(0))
    possible = ctypes.c_int.in_dll(c, "possible")
    try:
        possible.value = 0
        with pytest.raises(BoardError, match="that the network cannot run"):
            connected(Model(c)).infer(data_of(0))
    finally:
        possible.value = 1


def test_a_board_that_only_begins_is_given_up(c: Any) -> None:
    """It says again and again that it begins, in place of the result: that prolongs nothing."""
    model = Model(c)
    board = BenchBoard(model, "port", 1.0, 5.0, model.now)
    read = model.read

    def begins(seconds: float) -> bytes:
        text = bytearray()
        for frame in Decoder().feed(read(seconds)):
            kind = Message.BEGUN if frame.kind == Message.RAN else frame.kind
            text += encoded(Frame(kind, frame.sequence, frame.data))
        if not text:
            text += encoded(Frame(Message.BEGUN, board._sequence))
        return bytes(text)

    model.read, began = begins, model.time  # type: ignore[method-assign]
    with pytest.raises(BoardError, match="does not answer"):
        board.infer(data_of(0))
    assert model.time - began <= TRIES * 5.0 + 1


def test_answers_that_come_late_are_not_those_of_later_requests(c: Any) -> None:
    """Every answer comes twice, and the second time behind the next request."""
    model = Model(c)
    board, late = connected(model), [b""]
    read = model.read

    def delayed(seconds: float) -> bytes:
        now = read(seconds)
        if now:
            now, late[0] = late[0] + now, now
        return now

    model.read = delayed  # type: ignore[method-assign]
    for number in range(3):
        assert board.infer(data_of(number)) == expected(data_of(number))


def test_requests_beyond_the_memory_of_the_board_are_refused(c: Any) -> None:
    model = Model(c)
    model.read(0)
    word = (INPUT_BYTES - 1).to_bytes(4, "little")
    for kind, data in (
        (Message.INPUT, word + b"12"),
        (Message.INPUT, b"\xff" * 5),
        (Message.GET, b"1"),
        (Message.RUN, b"12345"),
        (Message.TOLD, b""),
        (Message.HELLO, b"1"),
    ):
        model.write(encoded(Frame(kind, 7, data)))
        (answer,) = Decoder().feed(model.read(0))
        assert answer == Frame(Message.REFUSED, 7, b"\x02")
    model.write(encoded(Frame(Message.INPUT, 8, word + b"1")))
    assert list(Decoder().feed(model.read(0))) == [Frame(Message.TAKEN, 8)]
    model.write(encoded(Frame(Message.RUN, 9, bytes(4) + zlib.crc32(b"x").to_bytes(4, "little"))))
    assert list(Decoder().feed(model.read(0))) == [Frame(Message.REFUSED, 9, b"\x01")]
    model.write(b"\0" + b"\x02" * 5000 + b"\0")
    assert list(Decoder().feed(model.read(0))) == [Frame(Message.REFUSED, NO_SEQUENCE, b"\x00")]


def test_a_frame_with_a_wrong_bit_has_no_effect(c: Any) -> None:
    model = Model(c)
    model.read(0)
    text = encoded(Frame(Message.INPUT, 7, bytes(4) + b"data"))
    for place in range(1, len(text) - 1):
        for bit in range(8):
            wrong = bytearray(text)
            wrong[place] ^= 1 << bit
            model.write(bytes(wrong))
            answers = list(Decoder().feed(model.read(0)))
            assert {*answers} == {Frame(Message.REFUSED, NO_SEQUENCE, b"\x00")}


def test_outputs_of_another_inference_are_not_given(c: Any) -> None:
    model = Model(c)
    connected(model).infer(data_of(0))
    for number in (0, 1):  # of none; the board has restarted in between
        piece = number.to_bytes(4, "little") + bytes(4) + b"\x05\x00"
        model.write(encoded(Frame(Message.GET, 3, piece)))
        assert list(Decoder().feed(model.read(0))) == [Frame(Message.REFUSED, 3, b"\x01")]
        model.restart()
        model.read(0)


def test_missing_packages_and_ports_are_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with monkeypatch.context() as patch:
        patch.setitem(__import__("sys").modules, "serial", None)
        with pytest.raises(InputError, match="pyserial is not installed") as caught, opened("x", 9):
            pass
        assert caught.value.code == "E885"
    serial = pytest.importorskip("serial")
    with pytest.raises(InputError, match="the port cannot be used") as caught:  # noqa: SIM117
        with opened(str(tmp_path / "none"), 115200):
            pass
    assert caught.value.code == "E885"

    class Unplugged:
        def __init__(self, *_words: Any, **_more: Any) -> None:
            pass

        def __enter__(self) -> Unplugged:
            return self

        def __exit__(self, *_raised: object) -> None:
            pass

        def read(self, _count: int) -> bytes:
            raise serial.SerialException("device disconnected")

        def write(self, _data: bytes) -> None:
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(serial, "Serial", Unplugged)
    with opened("tty", 9600) as port:
        with pytest.raises(InputError, match="cannot be used: device disconnected"):
            port.read(1)
        with pytest.raises(InputError, match="Input/output error"):
            port.write(b"1")
    with pytest.raises(ValueError, match="of somebody else"), opened("tty", 9600):
        raise ValueError("of somebody else")
