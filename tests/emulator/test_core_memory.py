"""What the loader says of flash and SRAM is what the compiled and linked project takes.

What does not fit is left out of the self-test, never of the network.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ai8xtools.diagnostics import Diagnostic
from ai8xtools.synthesis.emit import ProjectOptions, emit_project, fitted, footprint
from ai8xtools.synthesis.emit.fitting import Fitting
from ai8xtools.synthesis.options import ResolveOptions
from ai8xtools.synthesis.pipeline import Synthesis, synthesize
from device import MAX78000
from tests.conftest import ROOT
from tests.emulator.core_memory import TOLERANCE, installed, measured, measured_network
from tests.networks.deployed import BY_FILE, with_random_weights
from tests.synthesis.stages import encoding

OPTIONS = ProjectOptions("sizes", timer=0)
USED = installed()[-1]  # `make measure WHAT=core-memory` tries all


def synthesized(**options: Any) -> Synthesis:
    """Return the bundled network for MNIST."""
    config = ROOT / "networks" / "mnist-chw-ai85.yaml"
    checkpoint = ROOT / "trained" / "mnist-ai85net5-qat8-q.pth.tar"
    sample = ROOT / "tests" / "sample_mnist.npy"
    resolving = ResolveOptions(str(sample), checkpoint_file=str(checkpoint))
    return synthesize(str(config), MAX78000, resolving, encoding(**options))


@pytest.fixture(scope="module")
def mnist() -> Synthesis:
    return synthesized()


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"softmax": True},
        {"old_kernel_loader": True},
        {"kat": False, "unload": False},
        {"sample_output_filename": "none"},
        {"verify_writes": True, "verify_kernels": True},
        {"energy": True},
        {"riscv": True},
    ],
    ids=lambda c: ",".join(c) or "default",
)
def test_sizes_of_a_project_are_known_before_it_is_compiled(
    mnist: Synthesis, changes: dict[str, Any], tmp_path: Path
) -> None:
    found = measured(mnist, replace(OPTIONS, **changes), tmp_path / "project", USED)
    assert abs(found.flash_error) <= TOLERANCE
    assert abs(found.sram_error) <= TOLERANCE


@pytest.mark.parametrize(
    "name",
    ["svhn-tinierssd-hwc-ai85", "bayer2rgb-hwc-ai85", "kws20-v3-ai87"],
)
def test_sizes_of_networks_of_all_kinds(name: str, tmp_path: Path) -> None:
    (found,) = measured_network(BY_FILE[name], tmp_path, [USED])
    assert abs(found.flash_error) <= TOLERANCE
    assert abs(found.sram_error) <= TOLERANCE


def test_arrays_are_counted_exactly(mnist: Synthesis) -> None:
    parts = {part.role: part.size for part in footprint(mnist.program, OPTIONS).flash.parts}
    columns = sum(len(block.words) + 2 for block in mnist.program.kernels)
    assert parts["weights"] == 4 * (columns + 1)
    assert parts["biases"] == sum(len(block.values) for block in mnist.program.biases)
    assert parts["sample"] == 28 * 28
    assert parts["known answer"] == 4 * (10 + 3 * 3 + 1)  # words, heads of three records, end
    result = footprint(mnist.program, OPTIONS).sram.parts[-1]
    assert (result.role, result.size) == ("result", 4 * 10)


def shrunk(made: Synthesis, flash: int = 1 << 19, sram: int = 1 << 17) -> Any:
    """Return the program for a chip with other memories."""
    return replace(made.program, chip=replace(MAX78000, flash_bytes=flash, sram_bytes=sram))


def complaint(found: Fitting) -> Diagnostic:
    """Return the only complaint about a project."""
    (only,) = found.complaints
    return only


def with_options(options: ProjectOptions, text: str) -> ProjectOptions:
    """Return the options as a command line changes them."""
    words = iter(text.split())
    for word in words:
        match word:
            case "--max-checklines":
                options = replace(options, max_checklines=int(next(words)))
            case "--no-kat":
                options = replace(options, kat=False)
            case "--fixed-input":
                options = replace(options, fixed_input=True)
            case "--no-unload":
                options = replace(options, unload=False)
            case _:
                raise AssertionError(word)
    return options


def test_a_project_that_fits_is_written_whole(mnist: Synthesis) -> None:
    flash = footprint(mnist.program, OPTIONS).flash.used
    for program in (mnist.program, shrunk(mnist, flash)):
        assert fitted(program, OPTIONS) == Fitting(program, OPTIONS)
    assert complaint(fitted(shrunk(mnist, flash - 1), OPTIONS)).code == "W414"


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Synthesis:
    """Return a network with many results: a sample and a known answer of the same size."""
    folder = tmp_path_factory.mktemp("wide")
    checkpoint, _ = with_random_weights(BY_FILE["bayer2rgb-hwc-ai85"], folder)
    return BY_FILE["bayer2rgb-hwc-ai85"].synthesized(folder, checkpoint)


def test_parts_of_the_self_test_are_left_out_in_order_and_the_network_last(
    wide: Synthesis,
) -> None:
    whole = footprint(wide.program, OPTIONS).flash
    parts = {part.role: part.size for part in whole.parts}
    network = whole.used - parts["sample"] - parts["known answer"]
    plain = emit_project(wide.program, wide.summary, OPTIONS)
    seen = []
    for size in range(whole.used, network - 4096, -4096):
        program = shrunk(wide, size)
        found = fitted(program, OPTIONS)
        options = found.options
        all_words = options.kat and options.max_checklines is None
        left = (all_words, options.kat, not options.fixed_input, True)
        if any(c.code == "E444" for c in found.complaints):
            left = (False, False, False, False)
            smallest = replace(OPTIONS, kat=False, fixed_input=True)
            assert size < footprint(found.program, smallest).flash.used
        else:
            assert footprint(found.program, options).flash.fits
            files = emit_project(found.program, wide.summary, options)
            assert files["weights.h"] == plain["weights.h"]
            assert ("sampleoutput.h" in files) == options.kat
        seen.append(left)
    assert seen == sorted(seen, reverse=True)
    assert len(set(seen)) == 5


@pytest.mark.parametrize("left", [0.7, 0.4, 0.1])
def test_options_that_ask_for_what_was_left_out_end_the_complaint(
    wide: Synthesis, left: float
) -> None:
    whole = footprint(wide.program, OPTIONS).flash
    self_test = sum(p.size for p in whole.parts if p.role in ("sample", "known answer"))
    program = shrunk(wide, round(whole.used - self_test * (1 - left)))
    found = fitted(program, OPTIONS)
    said = complaint(found)
    assert (said.code, said.severity, said.effects.unsound) == ("W414", "warning", False)
    assert said.remedy is not None
    asked, _, _ = said.remedy.partition(" asks for that")
    options = with_options(OPTIONS, asked)
    again = fitted(found.program, options)
    assert again.complaints == ()
    assert replace(again.options, kat=options.kat) == found.options
    assert "a MAX78002" in said.remedy


def test_as_many_words_of_the_known_answer_are_kept_as_surely_fit(wide: Synthesis) -> None:
    limit = footprint(wide.program, replace(OPTIONS, max_checklines=5000)).flash.used
    count = fitted(shrunk(wide, limit), OPTIONS).options.max_checklines
    assert count is not None and 3000 < count < 5000


def test_the_frame_of_a_program_keeps_a_sample_that_is_too_large(mnist: Synthesis) -> None:
    options = replace(OPTIONS, kat=False)
    needed = footprint(mnist.program, options).flash
    found = fitted(shrunk(mnist, needed.used - 28 * 28), options)
    said = complaint(found)
    assert (said.code, said.severity, said.effects.unsound) == ("W414", "warning", True)
    assert found.options == options
    said = complaint(fitted(shrunk(mnist, needed.used - 28 * 28 - 1), options))
    assert (said.code, said.severity) == ("E444", "error")
    assert said.remedy is not None and "--fixed-input" in said.remedy


def test_what_does_not_help_enough_is_said_with_what_is_needed_then(mnist: Synthesis) -> None:
    said = complaint(fitted(shrunk(mnist, 60_000), OPTIONS, 1.0))
    rest = footprint(mnist.program, replace(OPTIONS, kat=False)).flash.used
    assert said.code == "E444" and said.remedy is not None
    short = said.remedy.partition("Not enough alone: ")[2]
    assert f"--no-kat ({rest:,} bytes)" in short and "quantization: 4" in said.remedy


@pytest.mark.parametrize("softmax", [False, True])
def test_a_result_that_is_too_large_for_the_sram_is_left_to_the_program(
    mnist: Synthesis, softmax: bool
) -> None:
    options = replace(OPTIONS, softmax=softmax)
    program = shrunk(mnist, sram=800)
    found = fitted(program, options)
    said = complaint(found)
    assert (said.code, said.severity, said.effects.unsound) == ("W414", "warning", False)
    assert footprint(program, found.options).sram.fits
    files = emit_project(program, mnist.summary, found.options)
    plain = emit_project(mnist.program, mnist.summary, options)
    assert {name for name in plain if files[name] != plain[name]} == {"main.c", "log.txt"}
    assert "cnn_unload" not in files["main.c"] and "softmax" not in files["main.c"]
    assert said.remedy is not None and "--no-unload asks for that" in said.remedy
    assert fitted(program, with_options(OPTIONS, "--no-unload")).complaints == ()
    assert complaint(fitted(shrunk(mnist, sram=700), options)).code == "E444"


@pytest.mark.parametrize("old", [False, True])
def test_packed_weights_are_offered_where_they_are_not_used(mnist: Synthesis, old: bool) -> None:
    made = synthesized(express=False, old_kernel_loader=old)
    options = replace(OPTIONS, old_kernel_loader=old)
    packed = footprint(mnist.program, OPTIONS).flash.used
    said = complaint(fitted(shrunk(made, packed), options))
    assert said.remedy is not None and "--mexpress" in said.remedy
    said = complaint(fitted(shrunk(made, packed // 2), options))
    assert said.remedy is not None and "--mexpress" in said.remedy.partition("Not enough")[2]
