"""ai8xize.py --container: files and firmware, and one image that runs any of them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from ai8xtools.commands import targets
from ai8xtools.diagnostics import DiagnosticError
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.emulator.cpu.architecture import ARCHITECTURES
from ai8xtools.emulator.errors import EmulatorError
from ai8xtools.emulator.plain import compile_plain, run_plain
from ai8xtools.software.container import unpack, verify_vectors
from ai8xtools.software.container.firmware import Room, firmware
from ai8xtools.software.container.from_graph import container_of
from ai8xtools.software.container.records import Element
from ai8xtools.software.container.soundness import planned
from ai8xtools.software.cores import CORES
from ai8xtools.software.lower import lower
from ai8xtools.synthesis.simulate import simulate
from tests.software.compiled import compiler
from tests.software.containers import made
from tests.software.nnb_in_c import build_driver, statuses
from tests.software.operators import NETWORKS, network_of
from tests.software.test_command import DIGITS

WITHOUT = ("16 operands", "several outputs", "rolling buffer")
"""Networks that keep data, have several outputs, or copy of more than 16 results."""
SLOT = Room(32 << 10, 8 << 10)


def container(name: str) -> bytes:
    network = network_of(NETWORKS[name])
    outputs = simulate(network, average_rounding=False).outputs
    expected = outputs[network.outputs()[-1].index]
    return container_of(lower(network), network.sample, expected, None)


def shown(blob: bytes) -> str:
    """What firmware prints of the output of the last test vector: 16 values at most."""
    found = unpack(blob)
    assert found.vectors is not None
    kind = Element(found.tensors[found.layers[-1].output].type)
    values = np.frombuffer(found.vectors.outputs[-1], f"<i{kind.bits // 8}")[:16]
    return "Output of final layer:\n" + " ".join(map(str, values.tolist())) + "\n"


def create(folder: Path, *words: str, device: str = "MCU") -> int:
    line = ["--device", device, *DIGITS, "--mcu", "stm32l4r5", "--prefix", "net",
            "--test-dir", str(folder), *words]  # fmt: skip
    return targets.main("ai8xize.py", line)


@pytest.mark.skipif(compiler() is None, reason="there is no C compiler")
def test_every_operator_gives_the_outputs_of_the_simulation(tmp_path: Path) -> None:
    blobs = [container(name) for name in NETWORKS if name not in WITHOUT]
    found = statuses(build_driver(tmp_path, ("-O1",)), blobs, tmp_path)
    assert found == ["ok ok"] * len(blobs)


@pytest.mark.parametrize("name", WITHOUT)
def test_what_containers_cannot_hold_is_named(name: str) -> None:
    with pytest.raises(InputError) as refused:
        container(name)
    assert refused.value.code == "E924"


@pytest.mark.parametrize("core", ["cortex-m4", "cortex-m0plus"])
def test_one_image_runs_two_networks(core: str, tmp_path: Path) -> None:
    one, other = container("residual"), container("32 bits")
    for name, text in firmware(one, SLOT, core, "net", "").items():
        (tmp_path / name).write_text(text)
    program = compile_plain(tmp_path, ARCHITECTURES[core], "-O2")
    seen = []
    for blob in (None, other, one):
        result = run_plain(program, contents=blob and {"nnb_slot": blob})
        assert result.passed, result.text
        seen.append(result.text)
    assert seen[0] == seen[2] != seen[1]
    assert shown(one) in seen[0] and shown(other) in seen[1]
    for damage, name in ((other[:-1], "size"), (b"", "magic")):
        result = run_plain(program, contents={"nnb_slot": damage})
        expected = "body_crc" if name == "size" else name  # erased flash follows
        assert (result.passed, result.text.split()[0]) == (False, expected)
    with pytest.raises(EmulatorError, match="has 32768"):
        run_plain(program, contents={"nnb_slot": bytes(40 << 10)})


@pytest.mark.parametrize("core", CORES)
def test_there_is_firmware_for_every_core(core: str) -> None:
    files = firmware(made("packed"), SLOT, core, "net", "")
    cross = [name for name in files if name.startswith("Makefile.")]
    assert bool(cross) == core.startswith(("cortex-", "rv32"))
    assert all(f"-f {name}" in files["README.md"] for name in cross)


def test_layers_without_a_kernel_compute_nothing(tmp_path: Path) -> None:
    """Firmware that was compiled for fully connected layers only."""
    for name, text in firmware(made("packed"), SLOT, "cortex-m0plus", "net", "").items():
        (tmp_path / name).write_text(text)
    flags = ("-DNNB_KERNELS=0x2004u",)
    program = compile_plain(tmp_path, ARCHITECTURES["cortex-m0plus"], "-O2", flags)
    assert run_plain(program).passed
    result = run_plain(program, contents={"nnb_slot": container("residual")})
    assert result.text.startswith("unsupported\n") and result.passed is False
    assert result.arena_used == 0


@pytest.mark.skipif(compiler() is None, reason="there is no C compiler")
def test_file_and_firmware_of_a_description(tmp_path: Path) -> None:
    file = tmp_path / "digits.nnb"
    assert create(tmp_path, "--container", str(file), "--slot", "64K") == 0
    found = unpack(file.read_bytes())
    assert planned(found) and verify_vectors(found) == 1
    subprocess.run(["make", "-C", tmp_path / "net", "CFLAGS=-O1"], check=True, capture_output=True)
    other = tmp_path / "other.nnb"
    other.write_bytes(container("residual"))
    for words in ((), (file,), (other,)):
        done = subprocess.run([tmp_path / "net/main", *words], capture_output=True, text=True,
                              check=False)  # fmt: skip
        assert done.returncode == 0 and done.stdout.endswith("*** PASS ***\n")
    changed = bytearray(other.read_bytes())
    changed[found.header.data % len(changed)] ^= 1
    other.write_bytes(changed)
    done = subprocess.run([tmp_path / "net/main", other], capture_output=True, text=True,
                          check=False)  # fmt: skip
    assert done.returncode == 1 and "!!! FAIL !!!" in done.stdout


def test_encrypted_file(tmp_path: Path) -> None:
    pytest.importorskip("cryptography")
    file, key = tmp_path / "digits.nnb", tmp_path / "key"
    key.write_bytes(bytes(range(32)))
    assert create(tmp_path, "--container", str(file), "--encrypt", str(key)) == 0
    found = unpack(file.read_bytes())
    assert found.encrypted and planned(found) and any(found.header.nonce)
    assert verify_vectors(found, key.read_bytes()) == 1
    if compiler() is not None:
        numbers = ",".join(map(str, key.read_bytes()))
        for flags, told in (("", "key\n!!! FAIL"), (f"-DNNB_FIRMWARE_KEY={{{numbers}}}", "PASS")):
            subprocess.run(["make", "-B", "-C", tmp_path / "net", f"CFLAGS=-O1 {flags}"],
                           check=True, capture_output=True)  # fmt: skip
            done = subprocess.run([tmp_path / "net/main"], capture_output=True, text=True,
                                  check=False)  # fmt: skip
            assert told in done.stdout
        for other in (file.read_bytes()[:-20], container("residual")):  # no tag
            (tmp_path / "other.nnb").write_bytes(other)
            done = subprocess.run([tmp_path / "net/main", tmp_path / "other.nnb"], check=False,
                                  capture_output=True, text=True)  # fmt: skip
            assert done.stdout == "tag\n!!! FAIL !!!\n" and done.returncode == 1


def test_wrong_use_of_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (("--encrypt", "k"), ("--slot", "4K")):
        with pytest.raises(SystemExit) as ended:
            create(tmp_path, *words)
        assert ended.value.code == 2
        assert "add --container" in capsys.readouterr().err
    (tmp_path / "key").write_bytes(b"short")
    file = str(tmp_path / "a.nnb")
    for more, code in (
        (["--encrypt", str(tmp_path / "key")], "E927"),
        (["--slot", "100"], "E828"),
        (["--arena", "100"], "E828"),
        (["--l1", "1K"], "E905"),
    ):
        with pytest.raises((InputError, DiagnosticError)) as refused:
            create(tmp_path, "--container", file, *more)
        assert code == getattr(refused.value, "code", None) or code in str(refused.value)
    assert not Path(file).exists() and not (tmp_path / "net").exists()
