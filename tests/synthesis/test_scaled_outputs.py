"""What cnn_unload() delivers of outputs with a final scale, carried out on the emulated core."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ai8xtools.synthesis.emit import check_options, check_outputs
from ai8xtools.synthesis.emit.unload import layer_offsets
from ai8xtools.synthesis.final_scales import final_scale, final_scales
from ai8xtools.synthesis.network import Combination, Layer, Network, Operator
from ai8xtools.synthesis.program import UnloadLayer
from device import MAX78000
from tests.synthesis.programs import WIDE, emit, options, planar, program, store, summary

PLANES = planar(((2, 3), (0, 1), (), (), (1,)), 24)
ONE_PLANE = planar(((3,),), 11)
SINGLE = planar(((0, 1, 2, 3), (0,)), 1)


def unloaded(layers: tuple[UnloadLayer, ...], folder: Path, **changes: Any) -> bytes:
    """Return what cnn_unload() writes, with random data in the accelerator."""
    pytest.importorskip("unicorn", reason="needs the emulator (extra `emulator`)")
    from ai8xtools.emulator.cpu.core import MEMORY_BYTES, RAM, Core
    from ai8xtools.emulator.firmware.bus import Bus
    from ai8xtools.emulator.firmware.compiling import compile_network, compile_project

    bus = Bus(MAX78000)
    store(emit(program(unload=layers), **changes), folder)
    alone = changes.get("sdk") == "studio"
    image = compile_network(folder)[0].image if alone else compile_project(folder)
    core = Core(image, bus)
    rng = np.random.default_rng(2)
    for instance in range(5):
        start = 0x50000000 + MAX78000.data_address(instance, 0)
        for address in range(start, start + 0x1300, 4):
            bus.words[address] = int(rng.integers(2**32))
    buffer = RAM + MEMORY_BYTES // 2
    core.write_memory(buffer, b"\xa5" * 512)
    assert core.call("cnn_unload", buffer) == 1
    return core.read_memory(buffer, 512)


def values(content: bytes, layers: tuple[UnloadLayer, ...]) -> list[NDArray[np.int64]]:
    """Return the numbers of each layer in a result."""
    found = []
    *starts, _ = layer_offsets(layers)
    for layer, start in zip(layers, starts, strict=True):
        kind = {1: "<i1", 2: "<i2", 4: "<i4"}[layer.value_bytes]
        part = content[start : start + layer.size_bytes]
        found.append(np.frombuffer(part, kind).astype(np.int64))
    return found


def scaled(raw: NDArray[np.int64], layer: UnloadLayer) -> NDArray[np.int64]:
    """The specification: times 2^scale, rounded down, limited to the type of the result."""
    exact = np.floor(raw * 2.0**layer.scale)
    largest = 2 ** (8 * layer.value_bytes - 1)
    return exact.clip(-largest, largest - 1).astype(np.int64)


@pytest.mark.parametrize(
    "layers",
    [
        (replace(PLANES, scale=2),),
        (replace(PLANES, scale=-3), replace(WIDE, scale=3)),
        (replace(ONE_PLANE, scale=0), replace(PLANES, scale=9)),
        (replace(SINGLE, scale=1),),
        (replace(WIDE, scale=-1),),
        (replace(WIDE, scale=15), replace(ONE_PLANE, scale=-15)),
        (replace(ONE_PLANE, scale=8), replace(WIDE, scale=0)),
    ],
)
@pytest.mark.parametrize("mlator", [False, True])
def test_values_are_scaled_and_limited(
    layers: tuple[UnloadLayer, ...], mlator: bool, tmp_path: Path
) -> None:
    plain = tuple(replace(layer, scale=0) for layer in layers)
    raw = values(unloaded(layers, tmp_path / "raw", scale_output=False), plain)
    content = unloaded(layers, tmp_path / "scaled", mlator=mlator)
    for layer, before, after in zip(layers, raw, values(content, layers), strict=True):
        assert after.tolist() == scaled(before, layer).tolist()
    *_, size = layer_offsets(layers)
    assert set(content[-(-size // 4) * 4 :]) == {0xA5}


@pytest.mark.parametrize("layers", [(PLANES,), (replace(ONE_PLANE, scale=2), SINGLE, WIDE)])
@pytest.mark.parametrize("mlator", [False, True])
def test_codefusion_studio_gets_16_bits_and_the_number_of_words(
    layers: tuple[UnloadLayer, ...], mlator: bool, tmp_path: Path
) -> None:
    """CNN_NUM_OUTPUTS is what `int32_t ml_data[CNN_NUM_OUTPUTS]` must hold; signs are kept."""
    plain = tuple(replace(layer, scale=0) for layer in layers)
    raw = values(unloaded(layers, tmp_path / "raw", scale_output=False), plain)
    wide = tuple(replace(layer, widened=layer.width == 8) for layer in layers)
    content = unloaded(layers, tmp_path / "studio", mlator=mlator, sdk="studio")
    for layer, before, after in zip(wide, raw, values(content, wide), strict=True):
        assert after.tolist() == scaled(before, layer).tolist()
        assert layer.value_bytes > 1
    *_, size = layer_offsets(wide)
    text = (tmp_path / "studio" / "cnn.h").read_text()
    assert f"#define CNN_NUM_OUTPUTS {-(-size // 4)}\n" in text
    assert f"#define CNN_TOTAL_OUTPUT_BYTES {size}\n" in text
    assert not (tmp_path / "studio" / "main.c").exists()
    assert set(content[-(-size // 4) * 4 :]) == {0xA5}


def test_codefusion_studio_without_scales_gets_bytes() -> None:
    layers = (PLANES, replace(ONE_PLANE, scale=2))
    text = emit(program(unload=layers), sdk="studio", scale_output=False)["cnn.h"]
    assert "#define CNN_TOTAL_OUTPUT_BYTES 131\n" in text
    assert "#define CNN_NUM_OUTPUTS 33\n" in text


@pytest.mark.parametrize(
    ("layer", "told"),
    [
        (PLANES, True),
        (WIDE, False),
        (replace(WIDE, scale=1), True),
        (replace(WIDE, scale=-1), False),
    ],
)
def test_where_the_studio_is_wrong_ours_is_right_and_says_so(
    layer: UnloadLayer, told: bool
) -> None:
    found = check_outputs(options(sdk="studio"), program(unload=(layer,)), summary())
    assert ("N029" in [diagnostic.code for diagnostic in found]) == told


def test_options_of_main_have_no_effect_and_others_exclude_the_studio() -> None:
    found = check_options(options(sdk="studio", energy=True, softmax=True, riscv=True))
    assert [(one.code, one.message) for one in found] == [
        ("E092", "it cannot be used together with --riscv"),
        ("W041", "it has no effect with --sdk studio, where main() is not generated"),
        ("W041", "it has no effect with --sdk studio, where main() is not generated"),
    ]


def test_without_scales_the_text_is_that_of_other_checkpoints() -> None:
    marked = emit(program(unload=(replace(PLANES, scale=2), WIDE)), scale_output=False)
    plain = emit(program(unload=(PLANES, WIDE)))
    assert {k for k in plain if plain[k] != marked[k]} == {"cnn.c"}
    note = "// Final scales of the output layers: what the accelerator holds times 2^2, 2^0\n"
    assert marked["cnn.c"].replace(note, "") == plain["cnn.c"]


def test_header_names_scales_and_sizes() -> None:
    text = emit(program(unload=(replace(ONE_PLANE, scale=2), WIDE)))["cnn.h"]
    assert "#define CNN_TOTAL_OUTPUT_BYTES 48" in text
    assert "#define CNN_OUTPUT_SCALES { 2, 0 }" in text
    assert "CNN_OUTPUT_SCALE" not in emit(program(unload=(ONE_PLANE, WIDE)))["cnn.h"]


@pytest.mark.parametrize(
    ("layer", "changes", "code"),
    [
        (replace(ONE_PLANE, scale=2), {"scale_output": False}, "W027"),
        (replace(ONE_PLANE, scale=9), {}, "W028"),
        (replace(ONE_PLANE, scale_known=False), {}, "W027"),
    ],
)
def test_doubtful_outputs_are_warned_of(
    layer: UnloadLayer, changes: dict[str, Any], code: str
) -> None:
    found = check_outputs(options(**changes), program(unload=(layer,)), summary())
    assert code in [diagnostic.code for diagnostic in found]


def test_layers_without_weights_have_the_scale_of_what_they_read() -> None:
    sizes = {"in_channels": 1, "out_channels": 1} | dict.fromkeys(
        ("in_dim", "pooled_dim", "out_dim"), (4, 4)
    )
    scales = (2, 2, 3)
    layers = [
        Layer(index=i, operator=Operator.CONV2D, sources=(-1,), final_scale=scale, **sizes)
        for i, scale in enumerate(scales)
    ]
    for index, sources in ((3, (0, 1)), (4, (3,)), (5, (1, 2)), (6, (-1,))):
        layers.append(
            Layer(
                index=index,
                operator=Operator.NONE,
                sources=sources,
                operands=len(sources),
                combination=Combination.ADD if len(sources) > 1 else None,
                **sizes,
            )
        )
    network = Network(
        layers=tuple(layers), order=tuple(range(7)), simulated=tuple(range(7)),
        sample=np.zeros((1, 4, 4), np.int64),
    )  # fmt: skip
    assert [final_scale(i, network) for i in range(7)] == [2, 2, 3, 2, 2, 0, 0]
    assert final_scales(5, network) == {1: 2, 2: 3}
