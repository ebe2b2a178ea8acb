"""The report: its values, the page, and the option that writes it."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from device import MAX78000, MAX78002, Chip
from diagnostics import Diagnostic, Place, Severity
from synthesis.emit.report import report_page
from synthesis.layout import InputPort
from synthesis.options import EncodeOptions
from synthesis.place import PlaceOptions
from synthesis.report import KernelArea, Report, build_report
from synthesis.report.kernels import kernel_areas
from tests.conftest import ROOT
from tests.synthesis.networks import build, describe, files, mask, sample, weights
from tests.synthesis.stages import encode, place_what_fits, simulate, summarize

CONV = {"op": "conv2d", "kernel_size": "3x3", "pad": 1, "processors": mask(4)}
VOID = {"meta", "br"}


def make(
    folder: Path,
    *layers: dict[str, Any],
    data: Any = None,
    chip: Chip = MAX78000,
    name: str = "net",
    encoded: bool = True,
    **options: Any,
) -> Report:
    """Return the report of convolutions with 4 channels (and layers without weights)."""
    kernels = [weights(4, 4, 3, 3, seed=i) for i, x in enumerate(layers) if x["op"] == "conv2d"]
    data = sample(4, 4, 4) if data is None else data
    network, _ = build(folder, describe(*layers), data, kernels, chip=chip, **options)
    encoding = EncodeOptions()
    placement, problems = place_what_fits(network, PlaceOptions(overlap_data=True))
    program = summary = None
    if encoded:
        activations = simulate(network, average_rounding=False)
        program = encode(network, placement, activations, encoding)
        summary = summarize(network, placement, activations, encoding.telling)
    return build_report(
        network.network,
        placement,
        chip,
        encoding,
        name=name,
        program=program,
        summary=summary,
        diagnostics=problems,
    )


class Checker(HTMLParser):
    """Collects tags, and complains about elements that are not closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: Counter[str] = Counter()
        self.text: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"attributes given twice: {tag} {attrs}"
        assert not {"src", "href", "xlink:href"} & set(names)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, _: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-1:]}"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def test_rows_hold_shapes_costs_and_lines(tmp_path: Path) -> None:
    pooled = {**CONV, "name": "last", "max_pool": 2, "pool_stride": 2, "activate": "ReLU"}
    report = make(tmp_path, CONV, pooled)
    first, last = report.layers
    assert (first.input, first.output, first.operator) == ((4, 4, 4), (4, 4, 4), "conv2d 3, pad 1")
    assert (first.sources, last.sources) == ((-1,), (0,))
    assert (last.name, last.pooling, last.output) == ("last", "max 2, stride 2", (4, 2, 2))
    assert last.operator == "conv2d 3, pad 1, ReLU"
    assert (first.weight_bits, first.weight_bytes, first.processors) == (8, 144, 4)
    assert first.operations == 4 * 4 * 9 * 16
    assert first.line is not None and last.line is not None and last.line > first.line
    assert report.operations == first.operations + last.operations
    assert (report.weights.used, report.weights.total) == (288, 442368)


def test_latency_is_the_sum_of_the_layers_at_the_clock(tmp_path: Path) -> None:
    report = make(tmp_path, CONV, CONV)
    cycles = [layer.cycles for layer in report.layers]
    assert None not in cycles
    assert report.cycles == 1 + sum(c for c in cycles if c is not None)
    assert report.clock_mhz == 50
    assert report.milliseconds == pytest.approx(report.cycles / 50_000)
    assert sum(layer.share for layer in report.layers) == pytest.approx(1)


def test_latency_of_max78002_is_not_known_and_shares_are_of_operations(tmp_path: Path) -> None:
    report = make(tmp_path, CONV, CONV, chip=MAX78002)
    assert (report.cycles, report.milliseconds) == (None, None)
    assert [layer.share for layer in report.layers] == [0.5, 0.5]
    assert "no model of the timing of MAX78002" in report_page(report)


def test_kernel_areas_are_few(tmp_path: Path) -> None:
    report = make(tmp_path, CONV, CONV)
    assert report.kernel_areas == (KernelArea(0, 0, 4, 0, 4), KernelArea(1, 0, 4, 4, 8))


@given(st.integers(0, 2**32 - 1), st.integers(1, 4))
def test_kernel_areas_cover_the_map_exactly(seed: int, layers: int) -> None:
    owners = np.random.default_rng(seed).integers(-1, layers, (6, 9)).astype(np.int16)
    drawn = np.full_like(owners, -1)
    for area in kernel_areas(owners):
        part = drawn[area.processor : area.processor_end, area.column : area.column_end]
        assert (part == -1).all()
        part[:] = area.layer
    assert np.array_equal(drawn, owners)


def test_peak_of_each_instance(tmp_path: Path) -> None:
    report = make(tmp_path, CONV, {**CONV, "output_processors": mask(4, 4)})
    first, second = report.instances[:2]
    assert (first.peak_bytes, first.layer, first.end) == (128, 0, 0x4040)
    assert (second.peak_bytes, second.layer, second.end) == (64, 1, 0x40)
    assert [use.layer for use in report.instances[2:]] == [None] * 14
    assert report.fullest.used == 128


def test_bytes_that_are_overwritten_count_once(tmp_path: Path) -> None:
    report = make(tmp_path, {**CONV, "out_offset": 0x10})
    assert report.instances[0].peak_bytes == 64 + 0x10


def test_page_is_well_formed_and_stands_alone(tmp_path: Path) -> None:
    page = report_page(make(tmp_path, CONV, CONV))
    found = Checker(page)
    assert found.tags["svg"] >= 3 and found.tags["table"] == 2 and found.tags["script"] == 0
    assert not re.search(r"https?:|url\((?!#)|@import|<link", page)
    assert "prefers-color-scheme: dark" in page


def test_page_of_streams_is_well_formed(tmp_path: Path) -> None:
    text = describe({**CONV, "processors": mask(1), "streaming": True}, {**CONV, "streaming": True})
    kernels = [weights(4, 1, 3, 3), weights(4, 4, 3, 3)]
    network, _ = build(tmp_path, text, sample(1, 16, 16), kernels, input_port=InputPort.FIFO)
    placement, _ = place_what_fits(network, PlaceOptions())
    report = build_report(network.network, placement, network.chip, EncodeOptions(), name="net")
    page = report_page(report)
    Checker(page)
    assert "conv2d 3, pad 1, streaming" in page


def test_names_are_escaped(tmp_path: Path) -> None:
    evil = '</title><script>alert("&")</script>'
    report = make(tmp_path, {**CONV, "name": "a"}, name=evil)
    layer = replace(report.layers[0], name="<b>&'\"")
    found = Diagnostic("E1", "<i>", Place(file="<u>"), "<s>", Severity.WARNING)
    page = report_page(
        replace(report, arch=evil, command_line=evil, layers=(layer,), diagnostics=(found,))
    )
    tags = Checker(page).tags
    assert not {"script", "i>", "u", "s"} & set(tags)
    assert tags["b"] == Checker(report_page(replace(report, diagnostics=(found,)))).tags["b"]


def test_messages_have_place_code_and_remedy(tmp_path: Path) -> None:
    warning = Diagnostic("W390", "zero", Place("net.yaml", 7, 3), "Look.", Severity.WARNING)
    report = replace(make(tmp_path, CONV), diagnostics=(warning,))
    text = "".join(Checker(report_page(report)).text)
    assert not report.refused
    assert "warning W390 net.yaml:7:3 zero\n" in text and "Look." in text


def test_what_a_later_layer_loses_is_named(tmp_path: Path) -> None:
    later = {**CONV, "in_sequences": 0, "in_offset": 0x1000, "out_offset": 0x3000}
    offsets = ({**CONV, "out_offset": n} for n in (0x1000, 0x2000, 0x1020))
    page = report_page(make(tmp_path, *offsets, later))
    assert "Layer 2 overwrites layer 0 at 0x1020 to 0x103f in instance 0" in page


def test_data_beyond_the_memory_is_drawn_to_the_end_of_the_cell(tmp_path: Path) -> None:
    report = make(tmp_path, CONV, data=sample(4, 200, 200), encoded=False)
    page = report_page(report)
    Checker(page)
    assert report.fullest.share > 1
    assert f"{0x4000 + 160_000 - 0x8000:,} too many" in page
    assert "the network was refused" not in page, "nothing was said against it"


def test_page_of_the_largest_network_is_small(tmp_path: Path) -> None:
    """128 layers in all instances, and something to keep alive all the time."""
    wide = {"op": "passthrough", "processors": mask(64)}
    layers: list[dict[str, Any]] = [{**wide, "name": "first", "out_offset": 0x3000}]
    for index in range(1, 127):
        layers.append({**wide, "name": f"layer_{index}", "out_offset": index % 2 * 0x1000})
    layers.append({**wide, "op": "add", "in_sequences": [126, 0], "in_offset": 0})
    page = report_page(make(tmp_path, *layers, data=sample(64, 4, 4), chip=MAX78002, encoded=False))
    Checker(page)
    assert page.count("needed later") == 125, "layers 2 to 126"
    assert len(page.encode()) < 300_000


def run(folder: Path, text: str, *more: str) -> subprocess.CompletedProcess[str]:
    """Run the loader on a description of one convolution."""
    (folder / "net.yaml").write_text(text)
    options = files(folder, sample(4, 4, 4), [weights(4, 4, 3, 3)])
    return subprocess.run(
        [
            sys.executable, str(ROOT / "ai8xize.py"), "--device", "MAX78000",
            "--config-file", "net.yaml", "--prefix", "net", "--test-dir", "out",
            "--sample-input", str(options.sample_input),
            "--weight-input", str(options.weight_input), *more,
        ],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_option_writes_the_page_beside_the_project(tmp_path: Path) -> None:
    done = run(tmp_path, describe(CONV), "--report", "new/page.html")
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "new" / "page.html").read_text()
    Checker(page)
    assert "--report new/page.html" in page and (tmp_path / "out" / "net" / "cnn.c").is_file()


def test_option_shows_what_does_not_fit_and_no_project_is_made(tmp_path: Path) -> None:
    done = run(tmp_path, describe({**CONV, "out_offset": 0x7FF0}), "--report", "page.html")
    assert done.returncode == 1 and "E342" in done.stderr
    text = "".join(Checker((tmp_path / "page.html").read_text()).text)
    assert "The network was refused" in text and "error E342 net.yaml:" in text
    assert "48 too many" in text
    assert not (tmp_path / "out").exists()


def test_option_writes_nothing_about_a_network_that_is_wrong(tmp_path: Path) -> None:
    done = run(tmp_path, describe({**CONV, "pad": 9}), "--report", "page.html")
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert not (tmp_path / "page.html").exists()


def test_option_does_not_go_with_check_only(tmp_path: Path) -> None:
    done = run(tmp_path, describe(CONV), "--report", "page.html", "--check-only")
    assert done.returncode == 1
    assert "option --report" in done.stderr and "--check-only" in done.stderr
    assert not (tmp_path / "page.html").exists()


def test_option_refuses_a_folder_before_anything_is_written(tmp_path: Path) -> None:
    done = run(tmp_path, describe(CONV), "--report", ".")
    assert done.returncode == 1 and "Name a file, not a folder." in done.stderr
    assert not (tmp_path / "out").exists()
