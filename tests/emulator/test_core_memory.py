"""What the loader says of flash and SRAM is what the compiled and linked project takes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from device import MAX78000
from synthesis.emit import ProjectOptions, check_footprint, footprint
from synthesis.options import EncodeOptions, ResolveOptions
from synthesis.pipeline import Synthesis, synthesize
from tests.conftest import ROOT
from tests.emulator.core_memory import TOLERANCE, installed, measured, measured_network
from tests.networks.deployed import BY_FILE, with_random_weights

OPTIONS = ProjectOptions("sizes", timer=0)
USED = installed()[-1]  # `make core-memory` tries all


def synthesized(**options: Any) -> Synthesis:
    """Return the bundled network for MNIST."""
    config = ROOT / "networks" / "mnist-chw-ai85.yaml"
    checkpoint = ROOT / "trained" / "mnist-ai85net5-qat8-q.pth.tar"
    sample = ROOT / "tests" / "sample_mnist.npy"
    resolving = ResolveOptions(str(sample), checkpoint_file=str(checkpoint))
    return synthesize(str(config), MAX78000, resolving, EncodeOptions(**options))


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


def test_a_project_that_fits_draws_no_complaint(mnist: Synthesis) -> None:
    assert [*check_footprint(mnist.program, OPTIONS)] == []
    flash = footprint(mnist.program, OPTIONS).flash.used
    assert [*check_footprint(shrunk(mnist, flash), OPTIONS)] == []
    (found,) = check_footprint(shrunk(mnist, flash - 1), OPTIONS)
    assert found.code == "E414"


def test_what_is_recommended_makes_the_project_fit(mnist: Synthesis) -> None:
    needed = footprint(mnist.program, OPTIONS).flash
    answer = next(part.size for part in needed.parts if part.role == "known answer")
    program = shrunk(mnist, needed.used - answer)
    (found,) = check_footprint(program, OPTIONS, 1.0)
    assert found.remedy is not None and found.message.startswith("the program needs ")
    fitting, _, short = found.remedy.partition("Not enough alone: ")
    assert "--no-kat" in fitting and "--no-kat --fixed-input" in fitting
    assert "quantization: 4" in fitting
    assert not short
    assert [*check_footprint(program, replace(OPTIONS, kat=False))] == []
    assert "weights" in found.message and f"{answer}" in found.message


def test_what_does_not_help_enough_is_said_with_what_is_needed_then(mnist: Synthesis) -> None:
    (found,) = check_footprint(shrunk(mnist, 60_000), OPTIONS, 1.0)
    rest = footprint(mnist.program, replace(OPTIONS, kat=False)).flash.used
    assert found.remedy is not None
    assert f"--no-kat ({rest:,} bytes)" in found.remedy.partition("Not enough alone: ")[2]


def test_the_number_of_words_that_fit_is_the_largest(tmp_path: Path) -> None:
    name = "bayer2rgb-hwc-ai85"
    checkpoint, _ = with_random_weights(BY_FILE[name], tmp_path)
    made = BY_FILE[name].synthesized(tmp_path, checkpoint)
    limit = footprint(made.program, replace(OPTIONS, max_checklines=1234)).flash.used
    program = shrunk(made, limit)
    (found,) = check_footprint(program, OPTIONS)
    assert found.remedy is not None and "--max-checklines 1200;" in found.remedy
    assert footprint(program, replace(OPTIONS, max_checklines=1200)).flash.fits
    assert not footprint(program, replace(OPTIONS, max_checklines=1300)).flash.fits


def test_without_a_known_answer_a_sample_that_is_too_large_is_a_warning(mnist: Synthesis) -> None:
    options = replace(OPTIONS, kat=False)
    needed = footprint(mnist.program, options).flash
    (found,) = check_footprint(shrunk(mnist, needed.used - 28 * 28), options)
    assert (found.code, found.severity, found.effects.unsound) == ("W414", "warning", True)
    (found,) = check_footprint(shrunk(mnist, needed.used - 28 * 28 - 1), options)
    assert (found.code, found.severity) == ("E414", "error")


def test_a_result_that_is_too_large_for_the_sram_is_refused(mnist: Synthesis) -> None:
    (found,) = check_footprint(shrunk(mnist, sram=800), OPTIONS)
    assert found.code == "E415"
    assert found.remedy is not None and "--no-unload" in found.remedy
    assert [*check_footprint(shrunk(mnist, sram=800), replace(OPTIONS, unload=False))] == []


@pytest.mark.parametrize("old", [False, True])
def test_packed_weights_are_offered_where_they_are_not_used(mnist: Synthesis, old: bool) -> None:
    made = synthesized(express=False, old_kernel_loader=old)
    options = replace(OPTIONS, old_kernel_loader=old)
    packed = footprint(mnist.program, OPTIONS).flash.used
    (found,) = check_footprint(shrunk(made, packed), options)
    assert found.remedy is not None and "--mexpress" in found.remedy.partition("Not enough")[0]
    (found,) = check_footprint(shrunk(made, packed - 100), options)  # some registers less to set
    assert found.remedy is not None and "--mexpress" in found.remedy.partition("Not enough")[2]
