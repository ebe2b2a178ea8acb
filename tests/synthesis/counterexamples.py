"""Networks that once drew a false finding or a wrong word; each test of random networks has them.

Whatever `make properties` finds is added here, so that the default tests try it every time.
"""

from __future__ import annotations

import numpy as np

from device import MAX78000
from synthesis.layout import InputPort
from tests.synthesis.networks import sample
from tests.synthesis.random_memory import INPUT
from tests.synthesis.random_networks import RandomNetwork


def _weights(*shape: int) -> np.ndarray:
    return np.random.default_rng(1).integers(-128, 128, shape)


UNEVEN_LAST_PASS = RandomNetwork(
    chip=MAX78000,
    layers=(
        {
            "op": "none",
            "processors": 0x1,
            "output_processors": 0x1,
            "streaming": True,
            "out_offset": 0,
        },
        {
            "op": "Linear",
            "flatten": True,
            "processors": 0x1,
            "out_offset": 0x800,
            "activate": "none",
            "quantization": 8,
            "output_shift": -2,
            "output_processors": 0xFFFFFFFFF0,
        },
    ),
    others={},
    sources=((INPUT,), (0,)),
    weights_of=(None, 0),
    data=sample(1, 6, 6),
    kernels=(_weights(65, 36),),
    biases=(_weights(65),),
    port=InputPort.FIFO,
    rounding=False,
)
"""65 outputs in passes of 36 and 29: seven kernels less than two whole passes have."""

COUNTEREXAMPLES = (UNEVEN_LAST_PASS,)
