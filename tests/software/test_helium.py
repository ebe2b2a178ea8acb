"""Kernels with Helium on QEMU's Cortex-M55; longer: `make measure WHAT=software-helium`."""

from __future__ import annotations

import pytest

from ai8xtools.software.kernels.mve import DEPTHWISE_MVE, MVE
from ai8xtools.software.plan.schemes import Scheme
from tests.software.helium import judged, missing, run
from tests.software.kernel_rows import bytes_of, program
from tests.software.networks import random_network

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))


@pytest.mark.parametrize("level", ["-O3", "-Os"])
def test_kernels_with_vectors_give_the_bytes_of_the_layer(level: str) -> None:
    kernels = (MVE, DEPTHWISE_MVE)
    contents = {"rows_of_kernels": bytes_of(kernels, 100)}
    text, _ = run(program(kernels, "CORTEX_M55_HELIUM"), level, contents=contents)
    assert text == "200 calls\n"


@pytest.mark.parametrize("seed", [2, 7])
def test_networks_with_vectors_give_the_outputs_of_the_simulation(seed: int) -> None:
    right, instructions = judged(random_network(seed), Scheme.ROWS)
    assert right and instructions > 0
