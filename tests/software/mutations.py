"""One constant broken at a time in the C of the kernels: `make software-mutations`.

Each constant of software/runtime (of C and of inline assembly) can become the next greater number.
Some of each file are tried; the tests that are shipped have to notice. Those that compute the same
or only more slowly are named with the reason and not counted, nor those that no longer compile.
Files of plans with several memories (levels*) are left out.
"""

from __future__ import annotations

import argparse
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import software.emit.project as emitting
import tools.kernel_layer as layers
from emulator.errors import EmulatorError
from software.kernels.registry import Kernel
from software.plan.plan import Scheme
from tests.software import helper_calls, test_helpers, test_kernels, test_operators
from values import frozen

RUNTIME = layers.RUNTIME
BOUND = 0.95
_SECONDS = 90
_CODE = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_CONSTANT = re.compile(r"(?<![\w.])(0x[0-9a-fA-F]+|\d+)(?=u?\b)(?![\w:]*[bf:])")
_LABEL = re.compile(r"""^\s*"\d+:|\b[bB]\w*(\.w)?\s+\d+[bf]""")
Check = Callable[[Path], None]

_MULTIPLYING = ("cortex-m0plus", "rv32imc", "cortex-m3")
_CORES = {
    "conv_dsp.c": ("cortex-m4", "cortex-m7"),
    "conv_lanes.c": _MULTIPLYING,
    "conv_nomul.c": ("rv32ec",),
    "conv_c.c": ("cortex-m0plus",),
    "conv_pixel.c": _MULTIPLYING,
    "conv_dsp_pixel.c": ("cortex-m4", "cortex-m7"),
    "patch.c": ("cortex-m4", *_MULTIPLYING),
    "depthwise.c": ("cortex-m4", *_MULTIPLYING),
    "nn.h": ("cortex-m4",),
}
"""Cores on which what stands in a file is tried."""
_FAST = "takes the way that suits all pixels, only more slowly"
_LONGER = "makes an array longer than it need be"
_ZERO = "negates zero"
_PATCH = "const int together = conv->dilation == 1 && pixels == NN_LANES_PIXELS && x >= 1 &&"
EQUAL: dict[tuple[str, str], str] = {
    ("conv_dsp.c", "sums[1] = conv->start[filter + (both ? 1u : 1u)];"): (
        "begins the sum of a filter that is not there, and nobody reads it"
    ),
    ("conv_lanes.c", "if (inside == (2u << NN_LANES_PIXELS) - 1) {"): _FAST,
    ("conv_lanes.c", _PATCH): _FAST,
    (
        "conv_lanes.c",
        "uint32_t words[3 * NN_LANES_FILTERS] = {0}, uppers[2 * NN_LANES_FILTERS] = {0};",
    ): _LONGER,
    (
        "conv_lanes.c",
        "uint32_t words[2 * NN_LANES_FILTERS] = {0}, uppers[3 * NN_LANES_FILTERS] = {0};",
    ): _LONGER,
    ("conv_nomul.c", "nn_nomul_empty(high, sums, 2, 4);"): "is as true as 1",
    (
        "conv_nomul.c",
        "if (pixels == 3 && step == 1 && x >= 0 && x + stride + columns <= width) {",
    ): _FAST,
    ("nn.h", "int32_t size = sum < 1 ? -sum : sum;"): _ZERO,
    ("nn.h", "return (int8_t)nn_clip(sum < 1 ? -size : size, -128, 127);"): _ZERO,
    ("nn.h", "if ((conv->flags & NN_ABSOLUTE) && sum < 1) {"): _ZERO,
    ("nn.h", "sum = (conv->flags & NN_ABSOLUTE) && sum < 1 ? -sum : sum;"): _ZERO,
    ("conv_pixel.c", "uint32_t sums[5];"): _LONGER,
    ("conv_dsp_pixel.c", "uint32_t sums[5];"): _LONGER,
    ("patch.c", "*next++ = 1;"): "fills up what weights of zero meet",
    (
        "keep_max.c",
        "for (channel = 0; channel + 5 <= channels; channel += 4) {",
    ): "leaves the last four channels to the loop that takes one at a time",
    (
        "conv_nomul.c",
        "if (pixels == 2 && step == 1 && x >= 1 && x + stride + columns <= width) {",
    ): _FAST,
}
"""Mutants that compute the same: file and line after the change, and the reason."""


@frozen
class Mutant:
    """A constant of a file, by its line (from 1) and column, and the line after the change."""

    file: str
    line: int
    column: int
    text: str


def mutants_of(path: Path) -> list[Mutant]:
    """Return one for each constant outside comments, in their order."""
    text = path.read_text()
    blank = _CODE.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)
    found = []
    for number, (line, original) in enumerate(
        zip(blank.splitlines(), text.splitlines(), strict=True), 1
    ):
        if line.lstrip().startswith(("#include", "#if", "#endif")):
            continue
        for match in _CONSTANT.finditer(line):
            if not _is_label(line, match):
                more = _greater(match[0])
                changed = original[: match.start()] + more + original[match.end() :]
                found.append(Mutant(path.name, number, match.start(), changed))
    return found


def _is_label(line: str, match: re.Match[str]) -> bool:
    """Whether a number is a label of assembly, or the place that a branch goes to."""
    rest = line[match.end() : match.end() + 1]
    return rest in ("b", "f", ":") or line[: match.start()].rstrip().endswith(("%", "=&"))


def _greater(number: str) -> str:
    value = int(number, 0) + 1
    return hex(value) if number.startswith("0x") else str(value)


def some(all_of_them: Sequence[Mutant], count: int) -> list[Mutant]:
    """Return at most `count`, evenly from the whole file."""
    if len(all_of_them) <= count:
        return [*all_of_them]
    return [all_of_them[(2 * n + 1) * len(all_of_them) // (2 * count)] for n in range(count)]


def _uses(kernel: Kernel, file: str) -> bool:
    return file in (kernel.source, *kernel.helpers, "nn.h")


def _kernels(file: str, core: str, level: str) -> Check:
    """Return the test of kernels on a core, of which layers with the kernel of a file are left."""

    def check(folder: Path) -> None:
        tried = [one for one in test_kernels.trials(core) if _uses(one.kernel, file)]
        if tried:
            test_kernels.pass_on_core(tried, core, level, folder)

    return check


def _on_the_desk(file: str) -> Check:
    def check(folder: Path) -> None:
        tried = test_kernels.trials("rv32imc") + test_kernels.trials("rv32ec")
        left = [one for one in tried if _uses(one.kernel, file)]
        if left:
            test_kernels.pass_on_the_desk(left, folder)

    return check


def _plain(core: str) -> Check:
    return lambda folder: test_kernels.test_kernels_with_assembly_have_the_same_in_plain_c(
        core, folder
    )


def _operators(core: str, name: str, scheme: Scheme) -> Check:
    return lambda folder: test_operators.test_operators_on_emulated_cores(
        core, name, scheme, folder
    )


def _ends(name: str, scheme: Scheme) -> Check:
    def check(_: Path) -> None:
        test_operators.test_c_gives_the_outputs_of_the_simulation_at_the_ends_of_inputs(
            name, scheme
        )

    return check


def checks(file: str) -> list[Check]:
    """Return tests of the default suite that run what stands in a file."""
    levels = _parameters(test_kernels.test_every_kernel_gives_the_bytes_of_the_layer)
    kernels = [_kernels(file, *one) for one in levels if one[0] in _CORES.get(file, ())]
    helpers = [
        test_helpers.test_helpers_leave_the_expected_bytes_behind,
        test_helpers.test_helpers_with_instructions_of_the_dsp_extension,
    ]
    small = _parameters(test_operators.test_operators_on_emulated_cores)
    named = _parameters(
        test_operators.test_c_gives_the_outputs_of_the_simulation_at_the_ends_of_inputs
    )
    whole = [*(_operators(*one) for one in small), *(_ends(*one) for one in named)]
    if file == "nn.h":
        return [*helpers, _on_the_desk(file), *kernels, *whole]
    if file in _CORES:
        plain = [
            _plain(core)
            for core, (kernels, _) in test_kernels.ASSEMBLY.items()
            if any(_uses(kernel, file) for kernel in kernels)
        ]
        return [_on_the_desk(file), *kernels, *plain, *(whole if file == "conv_c.c" else [])]
    return [*helpers, *whole]


def _parameters(test: Callable[..., None]) -> list[tuple[str, ...]]:
    """Return what a test is parametrized with."""
    marks = getattr(test, "pytestmark", [])
    return [*next(mark.args[1] for mark in marks if mark.name == "parametrize")]


def judged(mutant: Mutant, folder: Path) -> str:
    """Return "noticed", "survived" or "does not compile"."""
    runtime = folder / "runtime"
    shutil.copytree(RUNTIME, runtime)
    lines = (RUNTIME / mutant.file).read_text().split("\n")
    lines[mutant.line - 1] = mutant.text
    (runtime / mutant.file).write_text("\n".join(lines))
    layers.RUNTIME = emitting.RUNTIME = helper_calls.RUNTIME = runtime
    try:
        for number, check in enumerate(checks(mutant.file)):
            place = folder / str(number)
            place.mkdir()
            noticed = _noticed(check, place)
            if noticed is not None:
                return noticed
    finally:
        layers.RUNTIME = emitting.RUNTIME = helper_calls.RUNTIME = RUNTIME
    return "survived"


def _noticed(check: Check, place: Path) -> str | None:
    """Return what a test says; None if it passes."""
    signal.alarm(_SECONDS)  # of programs that do not end
    try:
        check(place)
    except (EmulatorError, subprocess.CalledProcessError, AssertionError, TimeoutError) as exc:
        stillborn = "does not compile" in str(exc) or isinstance(exc, subprocess.CalledProcessError)
        return "does not compile" if stillborn else "noticed"
    finally:
        signal.alarm(0)
    return None


def _stop(*_: object) -> None:
    raise TimeoutError


def tried(files: Sequence[Path], count: int) -> Iterator[tuple[Mutant, str]]:
    """Yield mutants and what became of them."""
    for path in files:
        for mutant in some(mutants_of(path), count):
            reason = EQUAL.get((mutant.file, mutant.text.strip()))
            if reason is not None:
                yield mutant, f"equal: {reason}"
                continue
            with tempfile.TemporaryDirectory() as folder:
                yield mutant, judged(mutant, Path(folder))


def main() -> int:
    """Try some constants of each file; the exit status is 1 if too few are noticed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--each", type=int, default=4, help="constants of a file (default: 4)")
    parser.add_argument("files", nargs="*", help="names of files (default: all)")
    args = parser.parse_args()
    signal.signal(signal.SIGALRM, _stop)
    names = args.files or sorted(
        path.name for path in RUNTIME.glob("*.[ch]") if not path.name.startswith("levels")
    )
    counts: dict[str, int] = {}
    for mutant, told in tried([RUNTIME / name for name in names], args.each):
        counts[told.split(":")[0]] = counts.get(told.split(":")[0], 0) + 1
        print(f"{mutant.file}:{mutant.line}: {mutant.text.strip()}: {told}", flush=True)
    noticed, survived = counts.get("noticed", 0), counts.get("survived", 0)
    print(f"{noticed} of {noticed + survived} are noticed; " + ", ".join(
        f"{number} {what}" for what, number in counts.items() if what not in ("noticed", "survived")
    ))  # fmt: skip
    return int(noticed < BOUND * (noticed + survived))


if __name__ == "__main__":
    sys.exit(main())
