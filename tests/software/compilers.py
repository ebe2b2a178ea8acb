"""The same bytes from every compiler at every level: `make measure WHAT=software-compilers`.

For this computer with gcc, clang and zig cc, also with address and undefined-behaviour sanitizers;
for Armv6-M, Armv7-M, Armv7E-M and RV32IMC, whose kernels have inline assembly, with GNU and zig
compilers, run on emulated cores. Compilers that are not installed are left out by name.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from ai8xtools.emulator.cpu.architecture import ARCHITECTURES
from ai8xtools.emulator.errors import EmulatorError
from ai8xtools.emulator.plain import compile_plain, run_plain
from ai8xtools.software.plan.schemes import SINGLE, Scheme
from tests.software.against_simulation import files_of
from tests.software.compiled import SANITIZED
from tests.software.operators import NETWORKS, network_of
from tests.software.test_kernels import trials
from tools.kernel_layer import program

LEVELS: dict[str, tuple[str, ...]] = {
    "-O0": ("-O0",), "-Os": ("-Os",), "-O3": ("-O3",), "sanitized": SANITIZED,
}  # fmt: skip
HELPERS = (
    "16 operands", "or, xor", "pooling of every kind", "average of 16x16", "concatenation",
    "rolling buffer", "transposed", "several outputs",
)  # fmt: skip
"""Networks that use what is no convolution."""
_STRICT = ("-std=c99", "-Wall", "-Wextra", "-Werror")
_CROSS = ("cortex-m0plus", "cortex-m3", "cortex-m4", "rv32imc")
_PASS = "*** PASS ***\n"


def programs() -> Iterator[tuple[str, Mapping[str, str], tuple[str, ...]]]:
    """Yield programs for this computer: name, files, and options of the compiler."""
    yield "lanes of two pixels", program(trials("cortex-m0plus")), ("-DNN_FOR_CORTEX_M0PLUS",)
    yield "lanes of four pixels", program(trials("rv32imc")), ()
    yield "buckets", program(trials("rv32ec")), ()
    for number, name in enumerate(HELPERS):
        scheme = SINGLE[number % 2]
        yield name, files_of(network_of(NETWORKS[name]), "rv32imc", scheme), ()


def commands() -> dict[str, list[str] | None]:
    """Return the compilers of this computer; None for one that is not installed."""
    found: dict[str, list[str] | None] = {}
    for name in ("gcc", "clang"):
        path = shutil.which(name)
        found[name] = [path] if path else None
    zig = importlib.util.find_spec("ziglang")
    found["zig cc"] = [sys.executable, "-m", "ziglang", "cc"] if zig else None
    return found


def result(command: Sequence[str], flags: Sequence[str], files: Mapping[str, str]) -> str:
    """Return "ok", or what is wrong with a program."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for path, text in files.items():
            (folder / path).write_text(text)
        built = subprocess.run(
            [*command, *_STRICT, *flags, *map(str, folder.glob("*.c")), "-o", str(folder / "main")],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if built.returncode:
            return f"does not compile: {built.stderr[:500]}"
        run = subprocess.run([folder / "main"], capture_output=True, text=True, check=False)
    passed = run.returncode == 0 and run.stdout.endswith(_PASS)
    return "ok" if passed else f"WRONG: {run.stdout[-200:]}{run.stderr[:500]}"


def on_core(core: str, level: str, files: Mapping[str, str]) -> str:
    """Return "ok", or what is wrong with a program on an emulated core."""
    with tempfile.TemporaryDirectory() as name:
        for path, text in files.items():
            Path(name, path).write_text(text)
        try:
            compiled = compile_plain(Path(name), ARCHITECTURES[core], level, _STRICT)
            run = run_plain(compiled)
        except EmulatorError as exc:
            return f"does not run: {exc}"
    return "ok" if run.passed else f"WRONG: {run.text[-200:]}"


@contextmanager
def without_gnu() -> Iterator[None]:
    """Hide cross compilers, so that the one of ziglang is taken."""
    path = os.environ["PATH"]
    os.environ["PATH"] = ""
    try:
        yield
    finally:
        os.environ["PATH"] = path


def desk(levels: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield what was compiled for this computer, and its result."""
    made = [*programs()]
    for name, command in commands().items():
        if command is None:
            print(f"{name}: not installed, left out")
            continue
        for level in levels:
            for title, files, flags in made:
                yield f"{name} {level}: {title}", result(command, (*LEVELS[level], *flags), files)


def emulated(levels: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield what was compiled for cores with inline assembly, and its result."""
    for core in _CROSS:
        known = ARCHITECTURES[core].family.compilers
        gnu = next(filter(shutil.which, known), None)
        files = program(trials(core))
        pooled = files_of(network_of(NETWORKS["groups"]), core, Scheme.ROWS)
        for level in levels:
            if level not in ARM_LEVELS:
                continue
            for title, some in (("kernels", files), ("fused pooling", pooled)):
                if gnu:
                    yield f"{gnu} {level}: {title}, {core}", on_core(core, level, some)
                if importlib.util.find_spec("ziglang"):
                    with without_gnu():
                        yield f"zig cc {level}: {title}, {core}", on_core(core, level, some)
        if not gnu:
            print(f"{known[0]}: not installed, left out")


ARM_LEVELS = ("-O0", "-Os", "-O3")


def main() -> int:
    """Print a table of compilers and levels; the exit status is 1 if a program is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--levels", nargs="*", default=[*LEVELS], choices=LEVELS)
    args = parser.parse_args()
    counts: dict[str, list[int]] = {}
    for levels in (desk(args.levels), emulated(args.levels)):
        for name, told in levels:
            column = name.split(":")[0]
            good, total = counts.get(column, [0, 0])
            counts[column] = [good + (told == "ok"), total + 1]
            if told != "ok":
                print(f"{name}: {told}", flush=True)
    print("| compiler and level | programs that give the expected bytes |\n|---|---|")
    for column, (good, total) in counts.items():
        print(f"| {column} | {good} of {total} |")
    return int(any(good < total for good, total in counts.values()) or not counts)


if __name__ == "__main__":
    sys.exit(main())
