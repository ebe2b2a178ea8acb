"""Programs with Helium on QEMU's Cortex-M55: `make measure WHAT=software-helium`.

The emulator's core has no vectors. QEMU's board mps3-an547 does; its clock counts instructions.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from ai8xtools.emulator.cpu.architecture import ARCHITECTURES
from ai8xtools.emulator.cpu.compiler import compile_in
from ai8xtools.emulator.cpu.workshop import Workshop
from ai8xtools.emulator.plain.compiling import PLAIN
from ai8xtools.software.cores import CORES
from ai8xtools.software.kernels.mve import DEPTHWISE_MVE, MVE
from ai8xtools.software.kernels.table import choose
from ai8xtools.software.plan.schemes import SINGLE, Scheme
from ai8xtools.synthesis.network import Network
from tests.conftest import ROOT
from tests.software.against_simulation import files_of
from tests.software.kernel_rows import bytes_of
from tests.software.kernel_rows import program as rows_program
from tests.software.known_answers import read_network
from tests.software.networks import random_network
from tests.software.operators import NETWORKS, network_of
from tools.kernel_layer import Trial, layer, program

CORE, WITHOUT = "cortex-m55-helium", "cortex-m55"
PASS = "*** PASS ***\n"
_QEMU = "qemu-system-arm"
_M55 = replace(
    ARCHITECTURES["cortex-m55"],
    gcc_options=("-mcpu=cortex-m55", "-mthumb", "-mfloat-abi=hard"),
    zig_options=("-target", "thumb-freestanding-eabihf", "-mcpu=cortex_m55+mve"),
)
_PLAIN = replace(_M55, gcc_options=("-mcpu=cortex-m55", "-mthumb", "-mfloat-abi=soft"),
                 zig_options=ARCHITECTURES["cortex-m55"].zig_options)  # fmt: skip
_FLAGS = (
    *(
        "-g",
        "-std=gnu99",
        "-ffreestanding",
        "-fomit-frame-pointer",
        "-nostdlib",
        "-ffunction-sections",
    ),
    *("-fdata-sections", "-fno-asynchronous-unwind-tables", "-Wl,--gc-sections"),
    "-Wl,--entry=vectors",
)
_TICKS_PER_INSTRUCTION = 32 * 0.032
_SECONDS = 120.0


def missing() -> str | None:
    """Return why programs cannot be executed here; None if they can."""
    return None if shutil.which(_QEMU) else f"{_QEMU} is not installed"


def run(
    files: Mapping[str, str],
    level: str = "-O3",
    *,
    helium: bool = True,
    counted: str = "cnn_run",
    contents: Mapping[str, bytes] | None = None,
) -> tuple[str, int]:
    """Return what a program prints on a Cortex-M55, and the instructions of `counted`.

    `contents` are the bytes of objects by name. Raises EmulatorError if it does not compile.
    """
    with Workshop(ROOT) as workshop:
        folder = workshop.folder / "source"
        folder.mkdir()
        for name, text in files.items():
            (folder / name).write_text(text)
        start = (PLAIN / "source/start.c").read_text().replace("0xF0000000u", "0x59303000u")
        (folder / "console.c").write_text(start)
        place = (PLAIN / "link.ld").read_text().replace("0x20000000", "0x21000000")
        place = place.replace("*(.text ", "KEEP(*(.vectors)) *(.text ")
        (folder / "link.ld").write_text(place)
        sources = [Path(__file__).with_suffix(".c"), *sorted(folder.glob("*.c"))]
        sources += [PLAIN / "source" / f"{name}.c" for name in ("memory", "arithmetic", "wide")]
        wrap = (f"-Wl,--wrap={counted}", f"-DREAL=__real_{counted}", f"-DWRAP=__wrap_{counted}")
        options = [level, *_FLAGS, *wrap, f"-I{folder}", f"-I{PLAIN / 'include'}",
                   "-T", str(folder / "link.ld")]  # fmt: skip
        image = compile_in(workshop, sources, options, _M55 if helium else _PLAIN)
        command = [_QEMU, "-M", "mps3-an547", "-display", "none", "-monitor", "none",
                   "-serial", "stdio", "-icount", "shift=5",
                   "-semihosting-config", "enable=on,target=native"]  # fmt: skip
        for address, data in image.segments:
            whole = bytearray(data)
            for name, content in (contents or {}).items():
                at = image.symbols[name] - address
                if 0 <= at < len(data):
                    whole[at : at + len(content)] = content
            path = workshop.folder / f"{address:x}.bin"
            path.write_bytes(whole)
            command += ["-device", f"loader,file={path},addr={address:#x},force-raw=on"]
        done = subprocess.run(command, capture_output=True, text=True,
                              timeout=_SECONDS, check=False, stdin=subprocess.DEVNULL)  # fmt: skip
    text = (done.stdout + done.stderr).replace("\r", "")
    ticks = sum(map(int, re.findall(r"^ticks (\d+)$", text, re.MULTILINE)))
    text = re.sub(r"^(ticks|Timer with).*\n", "", text, flags=re.MULTILINE)
    return text, round(ticks / _TICKS_PER_INSTRUCTION)


LAYERS = {
    "3x3, 28x28x1 to 16": (28, 28, 1, 16, 3, 1),
    "3x3, 32x32x3 to 16": (32, 32, 3, 16, 3, 1),
    "3x3, 16x16x16 to 16": (16, 16, 16, 16, 3, 1),
    "3x3, 16x16x32 to 32": (16, 16, 32, 32, 3, 1),
    "3x3, 8x8x64 to 64": (8, 8, 64, 64, 3, 1),
    "5x5, 16x16x16 to 16": (16, 16, 16, 16, 5, 1),
    "1x1, 120 pixels, 64 to 64": (1, 120, 64, 64, 1, 1),
    "fully connected, 256 to 64": (1, 1, 256, 64, 1, 1),
    "fully connected, 1024 to 10": (1, 1, 1024, 10, 1, 1),
    "depthwise 3x3, 25x5x64": (25, 5, 64, 64, 3, 64),
}
"""Rows, columns, channels, filters, kernel and groups of each layer of the table."""


def layers() -> Iterator[bool]:
    """Print the table of layers; yield whether results are right."""
    rng = np.random.default_rng(1)
    print("| layer, instructions per product | with Helium | without | times |")
    print("|---|---:|---:|---:|")
    for name, (rows, columns, channels, filters, side, groups) in LAYERS.items():
        shape = (filters, channels // groups, side, side)
        conv = layer(
            (rows, columns), np.clip(np.rint(rng.laplace(0, 20, shape)), -128, 127).astype(np.int8),
            rng.integers(-128, 128, filters) * 128 + 64, pad=(side // 2, side // 2), groups=groups,
            low=0, signed=False,
        )  # fmt: skip
        data = rng.integers(0, 128, (rows, columns, channels)).astype(np.int8)
        counts = []
        for core in (CORE, WITHOUT):
            files = program([Trial(conv, choose(conv, CORES[core]), data)])
            text, count = run(files, helium=core == CORE, counted="compute_0")
            counts.append(count / conv.macs)
            yield text == PASS
        print(row(name, counts, ".2f"))


def networks(folder: Path) -> Iterator[bool]:
    """Print the table of networks with known answers; yield whether outputs are right."""
    print("\n| network, instructions | with Helium | without | times |\n|---|---:|---:|---:|")
    for file in sorted(folder.glob("*.json")):
        network = read_network(file)[0]
        for scheme in SINGLE:
            counts = []
            for core in (CORE, WITHOUT):
                good, count = judged(network, scheme, core)
                counts.append(count)
                yield good
            print(row(f"{file.stem}, {scheme}", counts, ","), flush=True)


def row(name: str, counts: Sequence[float], form: str) -> str:
    """Return a row of a table: instructions with Helium and without. Ends the program if one of
    them was not counted."""
    if not all(counts):
        sys.exit(f"{name}: a program ended before QEMU had counted its instructions")
    helium, without = counts
    return f"| {name} | {helium:{form}} | {without:{form}} | {without / helium:.1f} |"


def judged(network: Network, scheme: Scheme, core: str = CORE, level: str = "-O3"
           ) -> tuple[bool, int]:  # fmt: skip
    """Return whether outputs are those of the simulation, and the instructions of an inference."""
    text, count = run(files_of(network, core, scheme), level, helium=core == CORE)
    return text.endswith(PASS), count


def main() -> int:
    """Print the tables; the exit status is 1 if a result is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--known", type=Path, default=ROOT.parent / "shared/kat-software")
    parser.add_argument("--calls", type=int, default=400, help="of each kernel at each level")
    parser.add_argument("--random", type=int, default=50, help="networks")
    args = parser.parse_args()
    if reason := missing():
        print(reason)
        return 1
    results = [*layers(), *networks(args.known / "cmsis-software-nn")]
    kernels = (MVE, DEPTHWISE_MVE)
    for seed, level in enumerate(("-O0", "-Os", "-O3")):
        contents = {"rows_of_kernels": bytes_of(kernels, args.calls, seed)}
        text, _ = run(rows_program(kernels, "CORTEX_M55_HELIUM"), level, contents=contents)
        results.append(text == f"{2 * args.calls} calls\n")
        print(f"\n{level}: {text}", end="")
    made = [network_of(one) for one in NETWORKS.values()]
    made += [random_network(seed) for seed in range(args.random)]
    for number, network in enumerate(made):
        level = ("-O0", "-Os", "-O3")[number // 2 % 3]
        results.append(judged(network, SINGLE[number % 2], level=level)[0])
    print(f"{len(made)} networks of operators and random ones; "
          f"{results.count(False)} of {len(results)} results are wrong")  # fmt: skip
    return int(not all(results))


if __name__ == "__main__":
    sys.exit(main())
