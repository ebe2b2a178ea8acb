"""The cores that programs are made for, and what of them decides about kernels."""

from __future__ import annotations

from ai8xtools.software.kernels.registry import Core

CORES = {
    core.name: core
    for core in (
        Core("cortex-m0plus"),
        Core("cortex-m3"),
        Core("cortex-m4", simd=True),
        Core("cortex-m7", simd=True),
        Core("rv32imc"),
        Core("rv32ec", multiplier=False),
        Core("rv32emc"),
    )
}
