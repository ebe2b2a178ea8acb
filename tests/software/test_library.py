"""Projects with a prefix: names, ways to load an input, what results mean, clean compilation."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from ai8xtools.diagnostics import DiagnosticError, Place
from ai8xtools.emulator.cpu.architecture import ARCHITECTURES
from ai8xtools.emulator.plain import compile_plain, run_plain
from ai8xtools.software.cores import CORES
from ai8xtools.software.emit.interface import Interface, Naming
from ai8xtools.software.emit.project import Sample, emit
from ai8xtools.software.fuse import fuse
from ai8xtools.software.lower import lower
from ai8xtools.software.plan.planner import plan
from ai8xtools.software.plan.schemes import Scheme
from ai8xtools.synthesis.network import Network
from ai8xtools.synthesis.simulate import simulate
from ai8xtools.writing.symbols import complaints
from tests.software.compiled import SANITIZED, local_compiler
from tests.software.operators import NETWORKS, network_of
from tests.software.test_command import create, refusal

STRICT = (
    *("-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Wsign-conversion", "-Wcast-qual"),
    *("-Wshadow", "-Werror"),
)
DRIVER = """#include <stdio.h>
#include <string.h>
#include "small.h"

static int8_t given[SMALL_IN_SIZE];
static uint8_t bytes[SMALL_IN_SIZE];
static float numbers[SMALL_IN_SIZE];
static small_result result;

int main(void)
{
    int way, order, status, i;
    unsigned o, c, y, x;

    if (small_init() != SMALL_OK || small_load_input(given, 2) != SMALL_ERROR) {
        return 1;
    }
    for (order = SMALL_HWC; order <= SMALL_CHW; order++) {
        if (fread(given, 1, SMALL_IN_SIZE, stdin) != SMALL_IN_SIZE) {
            return 2;
        }
        for (i = 0; i < SMALL_IN_SIZE; i++) {
            bytes[i] = (uint8_t)(given[i] + 128);
            numbers[i] = (float)given[i] / 128.0f + (i % 2 ? 0.0039f : -0.0039f);
            numbers[i] = given[i] == -128 ? -7.0f : given[i] == 127 ? 3e30f : numbers[i];
        }
        for (way = 0; way < 3; way++) {
            memset(&result, 0, sizeof result);
            status = way == 0 ? small_load_input(given, order)
                   : way == 1 ? small_load_picture(bytes, order)
                              : small_load_numbers(numbers, order, SMALL_IN_SCALE);
            if (status != SMALL_OK || small_run(&result) != SMALL_OK) {
                return 3;
            }
            for (o = 0; o < SMALL_OUTPUTS; o++)
                for (c = 0; c < 9; c++)
                    for (y = 0; y < 9; y++)
                        for (x = 0; x < 9; x++)
                            printf("%ld ", (long)small_integer(&result, o, c, y, x));
            printf("%u %a %s\\n", small_top(&result),
                   (double)small_number(&result, SMALL_OUTPUTS - 1, 1, 0, 0),
                   small_class_names[small_top(&result)]);
        }
    }
    return 0;
}
"""


def library(
    name: str, prefix: str, core: str = "rv32imc", scheme: Scheme = Scheme.ROWS
) -> tuple[Network, dict[str, str]]:
    """Return a small network and its library."""
    network = network_of(NETWORKS[name])
    made = simulate(network, average_rounding=False).outputs
    sample = Sample(network.sample, tuple(made[layer.index] for layer in network.outputs()))
    naming = Naming(prefix, ("a", 'b"%d', "ö"), tuple(-7 - i for i in range(len(sample.outputs))))
    graph = fuse(lower(network, average_rounding=False))
    made_plan = plan(graph, CORES[core], scheme)
    return network, emit(made_plan, sample, "small", "", Interface(naming=naming))


def built(files: Mapping[str, str], folder: Path, *flags: str) -> Path:
    """Write and compile a program with all warnings as errors; return it."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    command = local_compiler()
    if command is None:
        pytest.skip("neither gcc nor clang is installed")
    sources = [name for name in files if name.endswith(".c")]
    subprocess.run([command, "-c", "-std=c99", *STRICT, "-Wmissing-prototypes", *flags, *sources],
                   cwd=folder, check=True)  # fmt: skip
    objects = [f"{source[:-2]}.o" for source in sources]
    subprocess.run([command, *flags, *objects, "-o", "program"], cwd=folder, check=True)
    return folder / "program"


def test_every_way_to_load_gives_the_outputs_of_the_simulation(tmp_path: Path) -> None:
    network, files = library("several outputs", "small")
    program = built(files | {"main.c": DRIVER}, tmp_path, *SANITIZED)
    sample = network.sample.astype(np.int8)
    given = sample.transpose(1, 2, 0).tobytes() + sample.tobytes()
    told = subprocess.run([program], input=given, capture_output=True, check=True).stdout
    made = simulate(network, average_rounding=False).outputs
    wanted = []
    for layer in network.outputs():
        padded = np.zeros((9, 9, 9), np.int64)
        values = made[layer.index]
        padded[tuple(map(slice, values.shape))] = values
        wanted += padded.reshape(-1).tolist()
    last = made[network.outputs()[-1].index].reshape(-1)
    top = int(last.argmax())
    shown = told.decode().splitlines()
    assert len(shown) == 6 and len(set(shown)) == 1
    *integers, shown_top, number, name = shown[0].split()
    assert [*map(int, integers)] == wanted
    assert (int(shown_top), float.fromhex(number)) == (top, last[1] / 2**9)
    assert name == ("a", 'b"%d', "ö")[top]


@pytest.mark.parametrize(
    ("name", "core", "scheme"),
    [
        ("pooling of every kind", "cortex-m0plus", Scheme.RESIDENT),
        ("transposed", "rv32ec", Scheme.ROWS),
    ],
)
def test_all_names_have_the_prefix_and_nothing_warns(
    name: str, core: str, scheme: Scheme, tmp_path: Path
) -> None:
    _, files = library(name, "my_Net1", core, scheme)
    program = built(files, tmp_path, "-O1")
    assert subprocess.run([program], capture_output=True, check=True).stdout.endswith(b"PASS ***\n")
    headers = {path for path in files if path.endswith(".h")}
    assert all(
        path.startswith("my_Net1") for path in {*files} - {"main.c"} if path[-2:] in (".c", ".h")
    )
    for path in headers:
        defined = re.findall(r"^\s*#\s*define\s+(\w+)", files[path], re.MULTILINE)
        assert all(word.lower().startswith("my_net1_") for word in defined), (path, defined)
    if (nm := shutil.which("nm")) is None:
        pytest.skip("nm is not installed")
    objects = [f"{path[:-2]}.o" for path in files if path.endswith(".c") and path != "main.c"]
    listed = subprocess.run([nm, "-A", "-g", "--defined-only", *objects], cwd=tmp_path, check=True,
                            capture_output=True, text=True).stdout.splitlines()  # fmt: skip
    assert {line.split(":")[0] for line in listed} == {*objects}
    assert all(line.split()[-1].lstrip("_").startswith("my_Net1_") for line in listed), listed


def test_cpp_links_it_and_header_is_clean_there(tmp_path: Path) -> None:
    if shutil.which("g++") is None:
        pytest.skip("g++ is not installed")
    _, files = library("several outputs", "small")
    built(files, tmp_path, "-O1")
    (tmp_path / "user.cpp").write_text(
        '#include "small.h"\n#include "small_cnn.h"\n#include "small.h"\n'
        "int main() { static const int8_t zeros[SMALL_IN_SIZE] = {}; small_result result;\n"
        "return small_init() || small_load_input(zeros, SMALL_CHW) || small_run(&result); }\n"
    )
    objects = [f"{path[:-2]}.o" for path in files if path.endswith(".c") and path != "main.c"]
    command = ["g++", "-std=c++17", *STRICT, "user.cpp", *objects, "-o", "user"]
    subprocess.run(command, cwd=tmp_path, check=True)
    subprocess.run([tmp_path / "user"], check=True)


TWO = """#include <stdio.h>
#include <string.h>
#include "one.h"
#include "two.h"
#include "one_sampledata.h"
#include "two_sampledata.h"

int8_t shared[SHARED] __attribute__((aligned(16)));
static const int8_t one_input[] = ONE_INPUT_DATA, two_input[] = TWO_INPUT_DATA;
static const int8_t one_expected[] = ONE_OUTPUT_DATA, two_expected[] = TWO_OUTPUT_DATA;
static one_result first;
static two_result second;

int main(void)
{
    int i, right = 0;

    if (one_init() != ONE_OK || two_init() != TWO_OK) {
        printf("*** FAIL ***\\n");
        return 1;
    }
    for (i = 0; i < ROUNDS; i++) {
        memset(&first, 0, sizeof first);
        memset(&second, 0, sizeof second);
        one_load_input(one_input, ONE_HWC);
        one_run(&first);
        two_load_input(two_input, TWO_HWC);
        two_run(&second);
        right += memcmp(&first, one_expected, sizeof one_expected) == 0;
        right += memcmp(&second, two_expected, sizeof two_expected) == 0;
        memset(shared, i, sizeof shared);
    }
    printf("%d\\n*** PASS ***\\n", right);
    return 0;
}
"""


def test_two_networks_take_turns_in_one_memory(tmp_path: Path) -> None:
    if local_compiler() is None:
        pytest.skip("neither gcc nor clang is installed")
    files: dict[str, str] = {}
    for name, prefix in (("transposed", "one"), ("concatenation", "two")):
        files |= library(name, prefix, "cortex-m4")[1]
    for name, text in (files | {"main.c": TWO}).items():
        (tmp_path / name).write_text(text)
    sizes = [int(re.findall(r"_ARENA_BYTES (\d+)", files[f"{n}.h"])[0]) for n in ("one", "two")]
    least = max(sizes)

    def flags(size: int) -> list[str]:
        names = [f"-D{p}_ARENA=shared -D{p}_ARENA_SIZE={size}" for p in ("ONE", "TWO")]
        return ["-DROUNDS=8", f"-DSHARED={size}", *" ".join(names).split()]

    core = ARCHITECTURES["cortex-m4"]
    ran = run_plain(compile_plain(tmp_path, core, flags=flags(least)))
    assert (ran.text, ran.passed) == ("16\n*** PASS ***\n", True)
    command = [str(local_compiler()), "-fsyntax-only", *flags(least - 1), "one.c", "two.c"]
    refused = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert refused.returncode and "is missing or less than" in refused.stderr


@pytest.mark.parametrize(("first", "status"), [(0, 0), (1, 7)])
def test_shared_memory_has_to_be_aligned(first: int, status: int, tmp_path: Path) -> None:
    _, files = library("transposed", "small")
    main = (
        '#include "small.h"\nint8_t all[10001] __attribute__((aligned(16)));\n'
        f'__asm__(".globl mine\\n.set mine, all + {first}");\n'
        "int main(void) { return small_init() == SMALL_ERROR ? 7 : 0; }\n"
    )
    program = built(files | {"main.c": main}, tmp_path, "-DSMALL_ARENA=mine",
                    "-DSMALL_ARENA_SIZE=10000", "-Wno-missing-variable-declarations")  # fmt: skip
    assert subprocess.run([program], check=False).returncode == status


def test_a_network_that_keeps_data_does_not_share_its_memory(tmp_path: Path) -> None:
    _, files = library("rolling buffer", "small")
    with pytest.raises(subprocess.CalledProcessError):
        built(files, tmp_path, "-DSMALL_ARENA=mine", "-DSMALL_ARENA_SIZE=100000")


@pytest.mark.parametrize(
    "prefix",
    ["", "2d", "a-b", "a b", "ä", "class", "INT", "namespace", "cnn", "_x", "a__b", "x_", "a" * 32],
)
def test_names_that_c_or_cpp_do_not_take_are_refused(prefix: str) -> None:
    (told,) = complaints(prefix)
    assert told.code == "E911" and told.place == Place(option="--symbol-prefix") and told.remedy


@pytest.mark.parametrize("prefix", ["output", "Input_x", "sample", "cnn_1", "NN_X", "string"])
def test_names_that_begin_as_other_names_or_headers_are_refused(prefix: str) -> None:
    (complaint,) = complaints(prefix)
    assert complaint.code == "E911"


def test_names_that_everything_takes_are_not_refused() -> None:
    for prefix in (None, "kws20", "My_Net", "outputs"):
        assert [*complaints(prefix)] == []


def test_command_writes_a_library_or_nothing(tmp_path: Path) -> None:
    assert "is a reserved word" in refusal(tmp_path, "--mcu", "rp2040", "--symbol-prefix", "while")
    with pytest.raises(DiagnosticError, match=r"1,500 bytes of RAM"):
        create(tmp_path, "--mcu", "rp2040", "--l1", "1500", "--symbol-prefix", "digits")
    assert create(tmp_path, "--mcu", "rp2040", "--symbol-prefix", "digits") == 0
    header = (tmp_path / "net" / "digits.h").read_text()
    assert "#define DIGITS_IN_SIZE 64\n" in header
    unit = re.search(r"#define DIGITS_OUT_UNIT (.*)f\n", header)
    assert unit is not None and float(unit[1]) == 2.0**-14
