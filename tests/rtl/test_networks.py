"""Tests for RTL simulation and embedded projects of every description agree in every word."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

pytest.importorskip("unicorn", reason="needs the emulator (extra `emulator`)")

from ai8xtools.emulator import run_loader
from ai8xtools.synthesis.emit import ProjectOptions, emit_project
from ai8xtools.synthesis.emit.rtl import RtlOptions, emit_rtl
from ai8xtools.writing.folder import write_project
from tests.networks.deployed import DEPLOYED, Deployed, with_random_weights
from tests.rtl.comparing import differences, found_in, image_differences, wanted_of
from tools.rtl_program import TestProgram

PLAIN = ProjectOptions("net", tool_version="1.0")
TEST = ProjectOptions("net", c_filename="test", api_filename="none", unload=False,
                      sample_output_filename="none", simulated=True)  # fmt: skip
IMAGES = RtlOptions(TEST, preload_data=True, preload_weights=True, result_output=True)


CONTAINED = {"imagenet-effnetv2-hwc-ai87", "cifar100-effnetv2-hwc-ai87",
         "cifar100-mobilenetv2-m0_75-hwc-ai87", "kws20-nas-ai85", "kws20-v1-ai85", "kws20-v3-ai85",
         "facedet-tinierssd-hwc-ai85", "cifar100-simplewide2x-hwc-ai85", "cifar100-nas-hwc-ai85",
         "cifar10-nas-hwc-ai85", "cifar10-hwc-ai85", "catsdogs-hwc-ai85",
         "faceid-hwc-ai85", "faceid112-hwc-ai87", "cifar100-mobilenetv2-m0_5-hwc-ai87",
         "digits-chw-ai85", "mnist-chw-ai85", "cifar100-simple-hwc-ai85", "mnist-hwc-ai85",
         "cifar100-residual-hwc-ai85", "autoencoder-ai85", "firetest-cifar10-hwc-ai85",
         "camvid-unet-hwc-ai85"}  # fmt: skip
"""Each operator, size of kernels and key that these have another one has, too."""
LATER = pytest.mark.skipif("AI8X_PROPERTIES" not in os.environ, reason="make properties")
MARKED = [pytest.param(d, id=d.file, marks=LATER if d.file in CONTAINED else ()) for d in DEPLOYED]


@pytest.mark.parametrize("deployed", MARKED)
def test_images_and_program_hold_the_words_of_the_project(
    deployed: Deployed, tmp_path: Path
) -> None:
    checkpoint, _ = with_random_weights(deployed, tmp_path)
    made = deployed.synthesized(tmp_path, checkpoint)
    write_project(emit_project(made.program, made.summary, PLAIN), tmp_path / "embedded")
    embedded = run_loader(tmp_path / "embedded", deployed.chip.name).effect()
    checked = RtlOptions(TEST, result_output=True)  # thousands of comparisons take compilers long
    write_project(emit_rtl(made.program, made.summary, checked), tmp_path / "test")
    program = TestProgram(tmp_path / "test", deployed.chip)
    assert differences(found_in(program, deployed.chip), wanted_of(embedded)) == []
    write_project(emit_rtl(made.program, made.summary, IMAGES), tmp_path / "images")
    found = image_differences(tmp_path / "images", deployed.chip, embedded, made.program.expected)
    assert found == []
