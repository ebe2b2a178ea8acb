"""The cores for which programs are generated, with the features that determine kernels."""

from __future__ import annotations

from ai8xtools.software.kernels.registry import Core

CORES = {
    core.name: core
    for core in (
        Core("cortex-m0plus", simd=False, multiplier=True),
        Core("cortex-m3", simd=False, multiplier=True),
        Core("cortex-m4", simd=True, multiplier=True),
        Core("cortex-m7", simd=True, multiplier=True),
        Core("cortex-m33", simd=True, multiplier=True),
        Core("cortex-m55", simd=True, multiplier=True),
        Core("cortex-m55-helium", simd=True, multiplier=True, helium=True),
        Core("rv32imc", simd=False, multiplier=True),
        Core("rv32ec", simd=False, multiplier=False),
        Core("rv32emc", simd=False, multiplier=True),
        Core("xtensa-lx7", simd=False, multiplier=True),
        Core("x86-64", simd=False, multiplier=True),
        Core("aarch64", simd=False, multiplier=True),
    )
}
