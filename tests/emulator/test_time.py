"""Estimated time: what programs measure, trace events, value change dumps."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from ai8xtools.commands.emulate.arguments import parse
from ai8xtools.commands.emulate.emulate import emulate
from ai8xtools.emulator import Board
from ai8xtools.emulator.decode.cycles import STARTUP_CYCLES, network_cycles
from ai8xtools.emulator.report.timeline import CoreActivity, Timeline, timeline
from ai8xtools.emulator.report.trace_events import trace_events
from ai8xtools.emulator.report.vcd import value_changes
from ai8xtools.emulator.state.clocks import (
    CLOCK_DIVIDER,
    accelerator_mhz,
    word_microseconds,
)
from device import MAX78000, MAX78002, times
from tests.emulator.conftest import Emulate
from tests.emulator.trees import c_files, change, generate

MEASURED = "Approximate inference time: "


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return generate(tmp_path_factory.mktemp("generated") / "digits", "--timer", "0")


@pytest.fixture(scope="module")
def ran(digits: Path) -> Board:
    board = Board.with_project(digits)
    assert board.run().passed
    return board


@pytest.fixture(scope="module")
def found(ran: Board) -> Timeline:
    recording = ran.time.recording()
    assert recording is not None
    return timeline(recording)


def cycles(board: Board) -> int:
    assert board.last_run is not None
    configs = [done.config for done in board.last_run.layers]
    return STARTUP_CYCLES + sum(
        layer.estimate for layer in network_cycles(board.accelerator.memory, configs)
    )


def measured(text: str) -> int:
    return int(text.split(MEASURED)[1].split(" us")[0])


def test_the_stopwatch_shows_the_cycles_of_the_layers(ran: Board, found: Timeline) -> None:
    """Beside the layers, it measures the words of cnn_start() and of the handler."""
    shown = measured(ran.console)
    layers = cycles(ran) / MAX78000.apb_clock_mhz
    words = sum(
        span.duration
        for span in found.spans
        if span.activity in (CoreActivity.START, CoreActivity.ACKNOWLEDGE)
    )
    assert layers <= shown <= layers + words + 1
    assert ran.time.measured == [shown]


@pytest.mark.parametrize(("divider", "factor"), [("DIV2", 2), ("DIV4", 4), ("DIV16", 16)])
def test_a_slower_clock_takes_longer(
    divider: str, factor: int, digits: Path, ran: Board, tmp_path: Path
) -> None:
    folder = c_files(digits, tmp_path / "slow")
    change(folder / "main.c", ("CNNCLKDIV_DIV1);", f"CNNCLKDIV_{divider});"))
    board = Board.with_project(folder)
    board.run()
    assert board.time.runs[0].mhz == MAX78000.apb_clock_mhz / factor
    assert board.time.runs[0].microseconds == factor * ran.time.runs[0].microseconds
    assert measured(board.console) > 0.9 * factor * measured(ran.console)


@pytest.mark.parametrize(
    ("word", "chip", "mhz"),
    [
        (4 << 14, MAX78000, 50),
        (0, MAX78000, 25),
        (1 << 14, MAX78000, 12.5),
        (2 << 14, MAX78000, 6.25),
        (3 << 14, MAX78000, 3.125),
        (4 << 14 | 3 << 17, MAX78002, 200),
        (1 << 14 | 3 << 17, MAX78002, 50),
        (4 << 14, MAX78002, 60),
    ],
)
def test_the_clock_follows_divider_and_source(word: int, chip: Any, mhz: float) -> None:
    assert accelerator_mhz({CLOCK_DIVIDER: word}, chip) == mhz


def test_the_line_behind_the_program_calls_times_estimates(
    digits: Path, ran: Board, capsys: pytest.CaptureFixture[str]
) -> None:
    assert emulate(parse([str(digits)])) == 0
    said = capsys.readouterr().out
    time = cycles(ran) / MAX78000.apb_clock_mhz
    assert (
        "note: times measured by the program are estimates; the last inference: "
        f"{cycles(ran):,} cycles at 50 MHz, {time:,.0f} us\n"
    ) in said


def test_spans_hold_every_word_and_cycle_without_gaps(ran: Board, found: Timeline) -> None:
    words = sum(span.words for span in found.spans)
    assert words == len(ran.bus.log) + ran.bus.read_count
    assert sum(span.cycles for span in found.layers) + STARTUP_CYCLES == cycles(ran)
    end = 0.0
    for span in found.spans:
        gap = STARTUP_CYCLES / 50 if span is found.layers[0] else 0
        assert span.start == pytest.approx(end + gap)
        end = span.end
    assert found.end == pytest.approx(ran.time.microseconds)
    assert word_microseconds(MAX78000) == times.word_microseconds(MAX78000, 50)


def test_activities_come_in_the_order_of_the_program(found: Timeline) -> None:
    names = [span.activity for span in found.spans]
    expected = [
        CoreActivity.POWER, CoreActivity.CONTROL, CoreActivity.WEIGHTS, CoreActivity.BIASES,
        CoreActivity.CONFIGURE, CoreActivity.INPUT, CoreActivity.START, None, None, None, None,
        CoreActivity.ACKNOWLEDGE, CoreActivity.UNLOAD, CoreActivity.POWER,
    ]  # fmt: skip
    assert names == expected
    assert [span.layer.layer for span in found.layers if span.layer] == [0, 1, 2, 3]


def test_reads_of_a_fifo_belong_to_the_input(tmp_path: Path) -> None:
    board = Board.with_project(generate(tmp_path / "fifo", "--fifo"))
    assert board.run().passed
    recording = board.time.recording()
    assert recording is not None
    spans = timeline(recording).spans
    inputs = [span for span in spans if span.activity is CoreActivity.INPUT]
    assert [span.words for span in inputs] == [2 * 16 - 1]  # the first read comes before it
    assert sum(span.words for span in spans) == len(board.bus.log) + board.bus.read_count


def test_input_is_loaded_again_before_each_inference(digits: Path, tmp_path: Path) -> None:
    folder = c_files(digits, tmp_path / "twice")
    again = """    load_input();
    cnn_start();
    while (cnn_time == 0) {
        MXC_LP_EnterSleepMode();
    }

    if (check_output() != CNN_OK) {
        fail();
    }
    printf("again\\n");
"""
    text = (folder / "main.c").read_text()
    position = text.index('    printf("\\n*** PASS ***')
    (folder / "main.c").write_text(text[:position] + again + text[position:])
    board = Board.with_project(folder)
    assert board.run().passed
    recording = board.time.recording()
    assert recording is not None
    spans = timeline(recording).spans
    assert [s.activity for s in spans].count(CoreActivity.INPUT) == 2
    assert [s.run for s in spans if s.layer] == [0, 0, 0, 0, 1, 1, 1, 1]
    assert len(timeline(recording).interrupts) == 2


def test_trace_events_come_in_pairs_on_named_tracks(found: Timeline) -> None:
    document = json.loads(trace_events(found))
    events = document["traceEvents"]
    assert "estimates" in document["otherData"]["note"]
    names = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert {e["ph"] for e in events} == {"M", "B", "E", "i"}
    begins = [e for e in events if e["ph"] == "B"]
    ends = [e for e in events if e["ph"] == "E"]
    for begin, end in zip(begins, ends, strict=True):
        assert {"name", "cat", "ph", "ts", "pid", "tid", "args"} == set(begin)
        assert begin["ts"] < end["ts"]
        assert (begin["name"], begin["tid"]) == (end["name"], end["tid"])
        assert begin["tid"] in names
    for track in names:  # spans of a track do not overlap, so that viewers put them in one row
        own = [e for e in events if e["tid"] == track and e["ph"] in "BE"]
        assert [e["ph"] for e in own] == ["B", "E"] * (len(own) // 2)
        assert own[0]["ts"] == 0  # for viewers that show one track at a time
        assert all(one["ts"] <= other["ts"] for one, other in pairwise(own))
    layers = [e for e in begins if e["cat"] == "layer"]
    by_group = {track: [e["name"] for e in layers if e["tid"] == track] for track in names if track}
    for span in found.layers:
        assert span.layer is not None
        for group in span.layer.used_groups:
            assert span.name in by_group[group + 1]
    assert sum(map(len, by_group.values())) == sum(
        len(span.layer.used_groups) for span in found.layers if span.layer
    )
    assert [e["ts"] for e in events if e["ph"] == "i"] == [round(t, 6) for t in found.interrupts]


@dataclass
class Dump:
    """A value change dump as a strict reader sees it: variables by scope, changes by variable."""

    widths: dict[str, int]
    changes: dict[str, list[tuple[int, str]]]


def read_dump(text: str) -> Dump:
    """Read a dump; anything that IEEE 1364 does not allow in one is an error."""
    header, body = text.split("$enddefinitions $end\n")
    scopes: list[str] = []
    names: dict[str, str] = {}
    widths: dict[str, int] = {}
    for line in header.splitlines():
        words = line.split()
        assert words[-1] == "$end", line
        match words[0]:
            case "$scope":
                assert words[1] == "module"
                scopes.append(words[2])
            case "$upscope":
                scopes.pop()
            case "$var":
                assert words[1] == "wire"
                assert words[3] not in names
                assert all("!" <= letter <= "~" for letter in words[3])
                names[words[3]] = ".".join([*scopes, words[4]])
                widths[names[words[3]]] = int(words[2])
            case "$comment" | "$timescale":
                assert len(words) > 2
            case _:
                raise AssertionError(line)
    assert not scopes
    changes: dict[str, list[tuple[int, str]]] = {name: [] for name in names.values()}
    time, last = 0, -1
    lines = iter(body.splitlines())
    assert next(lines) == "$dumpvars"
    for line in lines:
        if line == "$end":
            continue
        if line.startswith("#"):
            time = int(line[1:])
            assert time > last
            last = time
        elif found := re.fullmatch(r"b([01]+) (\S+)", line):
            assert len(found[1]) <= widths[names[found[2]]]
            changes[names[found[2]]].append((time, found[1]))
        else:
            found = re.fullmatch(r"([01])(\S+)", line)
            assert found, line
            assert widths[names[found[2]]] == 1
            changes[names[found[2]]].append((time, found[1]))
    return Dump(widths, changes)


def test_the_dump_shows_layers_groups_clock_and_interrupt(ran: Board, found: Timeline) -> None:
    dump = read_dump(value_changes(found))
    top = "chip.accelerator."
    assert dump.widths[f"{top}layer"] == 8
    for span in found.layers:
        assert span.layer is not None
        wire = dump.changes[f"{top}layer_{span.layer.layer}"]
        start, end = (round(time * 1e6) for time in (span.start, span.end))
        assert wire == [(0, "0"), (start, "1"), (end, "0")]
        assert (start, f"{span.layer.layer:b}") in dump.changes[f"{top}layer"]
    running = dump.changes[f"{top}running"]
    assert [value for _, value in running] == ["0", "1", "0"]
    assert f"{top}group_0" in dump.changes
    ticks = [value for _, value in dump.changes[f"{top}clock"]]
    assert ticks.count("1") == sum(span.cycles for span in found.layers)
    (raised,) = (time for time, value in dump.changes[f"{top}interrupt"] if value == "1")
    assert raised == round(found.interrupts[0] * 1e6) == running[-1][0]
    cleared = dump.changes[f"{top}interrupt"][-1][0]
    acknowledged = next(s for s in found.spans if s.activity is CoreActivity.ACKNOWLEDGE)
    assert cleared == round(acknowledged.end * 1e6)
    assert [v for _, v in dump.changes["chip.core.load_weights"]] == ["0", "1", "0"]


def test_a_long_recording_has_a_slower_clock(
    found: Timeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    cycles = sum(span.cycles for span in found.layers)
    monkeypatch.setattr("ai8xtools.emulator.report.vcd._MOST_EDGES", cycles)
    changes = read_dump(value_changes(found)).changes
    assert "chip.accelerator.clock" not in changes
    ticks = [value for _, value in changes["chip.accelerator.clock_div_10"]].count("1")
    assert ticks == sum(span.cycles // 10 for span in found.layers)


def test_options_write_both_files(digits: Path, run: Emulate, tmp_path: Path) -> None:
    status, _ = run(digits, "--profile", tmp_path / "t.json", "--vcd", tmp_path / "t.vcd")
    assert status == 0
    assert json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    read_dump((tmp_path / "t.vcd").read_text())


@pytest.mark.parametrize("option", ["--profile", "--vcd"])
def test_a_file_that_cannot_be_written_is_an_error(
    option: str, digits: Path, tmp_path: Path
) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(OSError, match="taken"):
        emulate(parse([str(digits), option, str(tmp_path / "taken")]))
    assert [path.name for path in tmp_path.rglob("*")] == ["taken"]


@pytest.mark.parametrize("option", ["--profile", "--vcd"])
def test_times_need_a_program(option: str) -> None:
    with pytest.raises(SystemExit) as end:
        parse(["project", "--accelerator-only", option, "file"])
    assert end.value.code == 2
