"""The report: its values, the page, and the option that writes it."""

from __future__ import annotations

import io
import json
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
from PIL import Image

from ai8xtools.diagnostics import Diagnostic, Place, Severity
from ai8xtools.synthesis.emit.report import report_page
from ai8xtools.synthesis.emit.report_json import report_json
from ai8xtools.synthesis.emit.report_maps import memory_picture
from ai8xtools.synthesis.emit.report_pictures import pictures, png
from ai8xtools.synthesis.layout import InputPort
from ai8xtools.synthesis.options import EncodeOptions
from ai8xtools.synthesis.place import PlaceOptions
from ai8xtools.synthesis.report import KernelArea, Report, build_report
from ai8xtools.synthesis.report.kernels import kernel_areas
from ai8xtools.synthesis.report.values import Need
from device import MAX78000, MAX78002, Chip
from tests.conftest import ROOT
from tests.synthesis.networks import build, describe, files, mask, sample, weights
from tests.synthesis.stages import encode, place_what_fits, simulate

CONV = {"op": "conv2d", "kernel_size": "3x3", "pad": 1, "processors": mask(4)}
VOID = {"meta", "br", "img", "input"}


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
    program = activations = None
    if encoded:
        activations = simulate(network, average_rounding=False)
        program = encode(network, placement, activations, encoding)
    return build_report(
        network.network,
        placement,
        chip,
        encoding,
        name=name,
        program=program,
        activations=activations,
        diagnostics=problems,
    )


def need(report: Report, title: str) -> Need:
    """Return what is taken of one memory."""
    return next(found for found in report.needs if found.title == title)


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
        assert not {"href", "xlink:href"} & set(names)
        assert all((text or "").startswith("data:image/png;") for n, text in attrs if n == "src")
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
    use = need(report, "Weights").use
    assert (use.used, use.total) == (288, 442368)


def test_latency_is_the_sum_of_the_layers_at_the_clock(tmp_path: Path) -> None:
    report = make(tmp_path, CONV, CONV)
    cycles = [layer.cycles for layer in report.layers]
    assert None not in cycles
    assert report.cycles == 1 + sum(c for c in cycles if c is not None)
    assert report.clock_mhz == 50
    assert report.milliseconds == pytest.approx(report.cycles / 50_000)
    assert sum(layer.share for layer in report.layers) == pytest.approx(1)


def test_latency_of_max78002_is_estimated_with_a_caveat(tmp_path: Path) -> None:
    report = make(tmp_path, CONV, CONV, chip=MAX78002)
    assert report.cycles is not None and report.milliseconds is not None
    assert "The timing of MAX78002 is not published" in report_page(report)
    assert json.loads(report_json(report))["timing_known"] is False


def test_the_bottleneck_is_named_with_its_reason(tmp_path: Path) -> None:
    slow = {**CONV, "name": "slow"}
    fast = {**CONV, "max_pool": 2, "pool_stride": 2}
    report = make(tmp_path, slow, fast, data=sample(4, 32, 32))
    assert report.slowest == report.layers[0]
    cost = report.layers[0].cost
    assert cost is not None and report.products_per_cycle is not None
    assert cost.products_per_cycle == pytest.approx(4 * 4 * 9 * 1024 / cost.cycles)
    assert cost.reason == "4 kernels a pixel, one after the other"
    text = "".join(Checker(report_page(report)).text)
    assert f"Layer 0 (slow) takes {100 * report.layers[0].share:.1f} % of the" in text
    assert "possible multiplications a cycle" in text


def test_pooling_that_costs_more_than_the_kernels_is_named(tmp_path: Path) -> None:
    pooled = {**CONV, "max_pool": 8, "pool_stride": 8}
    report = make(tmp_path, pooled, data=sample(4, 32, 32))
    cost = report.layers[0].cost
    assert cost is not None and cost.reason == "reading its input to pool 8x8"


def test_time_line_goes_from_loading_to_unloading(tmp_path: Path) -> None:
    report = make(tmp_path, CONV, CONV)
    parts = [(part.title, part.layer, part.once) for part in report.time_line]
    assert parts == [
        ("load weights", None, True), ("load input", None, False), ("", 0, False),
        ("", 1, False), ("unload", None, False),
    ]  # fmt: skip
    layers = sum(part.amount for part in report.time_line if part.layer is not None)
    assert report.milliseconds == pytest.approx(layers, abs=2 / 50_000)
    page = report_page(report)
    assert f"each inference: {sum(p.amount for p in report.time_line[1:]):.3f} ms" in page
    assert page.count('class="core"') == 3 + 2, "and loading in the bars of energy"


def test_energy_is_that_of_loading_and_layers(tmp_path: Path) -> None:
    report = make(tmp_path, CONV, CONV)
    assert report.energies is not None
    once, entry, *layers = report.energy_parts
    assert (once.once, entry.once, [part.layer for part in layers]) == (True, False, [0, 1])
    assert entry.amount == pytest.approx(report.energies.input.value * 1e6)
    inference = report.energies.inference.value * 1e6
    assert 0.9 * inference < sum(part.amount for part in layers) < inference
    assert f"each inference: {entry.amount + sum(p.amount for p in layers):.3g} uJ" in report_page(
        report
    )


def test_memory_can_be_looked_at_layer_by_layer(tmp_path: Path) -> None:
    page = report_page(make(tmp_path, CONV, CONV))
    for layer in range(2):
        assert page.count(f'id="m{layer}"') == page.count(f'class="moment m{layer}"') == 1
        assert f"main:has(#m{layer}:checked)" in page


def test_results_tell_range_limits_and_zeros(tmp_path: Path) -> None:
    data = np.full((4, 4, 4), 127)
    data[0] = 0
    report = make(tmp_path, {"op": "passthrough", "processors": mask(4)}, data=data)
    result = report.layers[0].result
    assert result is not None
    assert (result.low, result.high, result.limits) == (0, 127, (-128, 127))
    assert (result.at_limits, result.zeros) == (0.75, 0.25)
    page = report_page(report)
    assert "75.0 %" in page and "4 of 4 channels" in page


@given(st.integers(1, 5), st.integers(1, 40), st.integers(0, 255))
def test_pictures_are_png_files_of_the_pixels(rows: int, columns: int, value: int) -> None:
    grey = np.full((rows, columns), value, np.uint8)
    grey[0, 0] = 255 - value
    with Image.open(io.BytesIO(png(grey))) as image:
        assert image.mode == "L" and np.array_equal(np.asarray(image), grey)


def test_pictures_of_many_layers_are_small(tmp_path: Path) -> None:
    """Sizes in which nothing is lost, reduced ones, and series."""
    noise = np.random.default_rng(0).integers(-128, 128, (64, 96, 96)).astype(np.int8)
    report = make(tmp_path, CONV)
    result = report.layers[0].result
    assert result is not None
    maps = (noise, noise[:, :5, :5], noise[:, 0, :1, None], noise[:, 0, :, None])
    for count, reduced in ((1, (True, False, False, False)), (100, (True, False, False, True))):
        for values, means in zip(maps, reduced, strict=True):
            layers = tuple(
                replace(report.layers[0], index=i, result=replace(result, values=values))
                for i in range(count)
            )
            drawn = pictures(replace(report, layers=layers))
            assert len(drawn) == count
            assert sum(len(picture.png) for picture in drawn.values()) < 170_000
            assert all(0 < picture.width <= 464 for picture in drawn.values())
            assert drawn[0].reduced == means


def test_json_has_the_facts_of_the_page(tmp_path: Path) -> None:
    report = make(tmp_path, {**CONV, "name": "\u00e9"}, CONV)
    facts = json.loads(report_json(report))
    assert (facts["version"], facts["fits"], facts["chip"]) == (1, True, "MAX78000")
    assert [layer["layer"] for layer in facts["layers"]] == [0, 1]
    assert facts["layers"][0]["name"] == "\u00e9"
    assert facts["layers"][0]["cycles"] == report.layers[0].cycles
    assert facts["needs"][1] == {
        "what": "Weights", "unit": "bytes", "used": 288, "of": 442368,
    }  # fmt: skip
    assert [step["layer"] for step in facts["data_memory"]] == [0, 1]
    assert facts["data_memory"][0]["data"][0]["use"] == "read"
    assert facts["cycles"] == report.cycles and facts["messages"] == []


def test_equal_instances_share_a_cell_scaled_to_what_is_used(tmp_path: Path) -> None:
    wide = {"op": "passthrough", "processors": mask(8)}
    picture = memory_picture(make(tmp_path, wide, data=sample(8, 4, 4)))
    assert [cell.label for cell in picture.cells] == ["0-1"]
    assert (picture.unused, picture.limit) == ("2-15", None)
    assert picture.shown == 0x4040


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
    assert need(report, "Data memory, fullest instance").use.used == 128


def test_bytes_that_are_overwritten_count_once(tmp_path: Path) -> None:
    report = make(tmp_path, {**CONV, "out_offset": 0x10})
    assert report.instances[0].peak_bytes == 64 + 0x10


def test_page_is_well_formed_and_stands_alone(tmp_path: Path) -> None:
    page = report_page(make(tmp_path, CONV, CONV))
    found = Checker(page)
    assert found.tags["svg"] >= 4 and found.tags["table"] == 3 and found.tags["script"] == 0
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
    assert not need(report, "Data memory, fullest instance").use.fits
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
    facts = json.loads((tmp_path / "new" / "page.json").read_text())
    assert facts["fits"] and [use["what"] for use in facts["needs"]][-2:] == [
        "flash of the core", "SRAM of the core",
    ]  # fmt: skip


def test_option_shows_what_does_not_fit_and_no_project_is_made(tmp_path: Path) -> None:
    done = run(tmp_path, describe({**CONV, "out_offset": 0x7FF0}), "--report", "page.html")
    assert done.returncode == 1 and "E342" in done.stderr
    text = "".join(Checker((tmp_path / "page.html").read_text()).text)
    assert "The network was refused" in text and "error E342 net.yaml:" in text
    assert "48 too many" in text
    facts = json.loads((tmp_path / "page.json").read_text())
    errors = [found["code"] for found in facts["messages"] if found["severity"] == "error"]
    assert (facts["fits"], errors) == (False, ["E342"])
    assert not (tmp_path / "out").exists()


def test_json_alone_may_be_wanted(tmp_path: Path) -> None:
    done = run(tmp_path, describe(CONV), "--report", "facts.json")
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "facts.json").read_text())["version"] == 1
    assert not list(tmp_path.glob("*.html"))


def test_option_writes_nothing_about_a_network_that_is_wrong(tmp_path: Path) -> None:
    done = run(tmp_path, describe({**CONV, "pad": 9}), "--report", "page.html")
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert not (tmp_path / "page.html").exists()


def test_option_does_not_go_with_check_only(tmp_path: Path) -> None:
    done = run(tmp_path, describe(CONV), "--report", "page.html", "--check-only")
    assert done.returncode == 1
    assert "option --report" in done.stderr and "[E092]" in done.stderr
    assert not (tmp_path / "page.html").exists()


def test_option_refuses_a_folder_before_anything_is_written(tmp_path: Path) -> None:
    done = run(tmp_path, describe(CONV), "--report", ".")
    assert done.returncode == 1 and "Name a file, not a folder." in done.stderr
    assert not (tmp_path / "out").exists()
