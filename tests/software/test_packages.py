"""Build systems around a network, built with stand-ins for those that cannot be installed here.

Zephyr, ESP-IDF, Arduino and the vendor's SDK are a few lines each that take what they would take;
of their manifests the fields are checked.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from ai8xtools.diagnostics import DiagnosticError
from ai8xtools.writing.packages import SYSTEMS, Package
from tests.software.compiled import local_compiler
from tests.software.test_command import create
from tests.software.test_library import library

ALL = tuple(word for system in SYSTEMS for word in ("--build", system))
SPARED = ("-DCMAKE_C_COMPILER_WORKS=1", "-DCMAKE_C_ABI_COMPILED=1")
"""Tests of the compiler that cmake makes otherwise."""
ARDUINO = """#include <stdio.h>
struct Port {
    void begin(long) {}
    operator bool() { return true; }
    void println(const char *text) { printf("board: %s\\n", text); }
} Serial;
static unsigned long millis() { return 0; }
void setup();
void loop();
int main() { setup(); loop(); }
"""
SDK = """IPATH = .
VPATH = .
include project.mk
SRCS += $(wildcard $(addsuffix /*.c, $(VPATH)))
app: $(notdir $(SRCS:.c=.o))
	$(CC) -o $@ $^
%.o: %.c
	$(CC) $(addprefix -I, $(IPATH)) -c -o $@ $<
"""
FOREIGN = """
cmake_minimum_required(VERSION 3.15)
project(user C)
find_package(small 1.0 REQUIRED)
add_executable(user user.c)
target_link_libraries(user small::small)

add_library(zephyr INTERFACE)
macro(zephyr_library_named library)
    add_library(${library} STATIC)
    target_link_libraries(${library} zephyr)
    set(current ${library})
endmacro()
macro(zephyr_library_sources)
    target_sources(${current} PRIVATE ${ARGN})
endmacro()
macro(zephyr_include_directories folder)
    target_include_directories(zephyr INTERFACE ${CMAKE_CURRENT_SOURCE_DIR}/${folder})
endmacro()
add_library(app OBJECT)
function(zephyr_application)
    set(CMAKE_CURRENT_SOURCE_DIR ${NET}/samples/known_answer)
    file(STRINGS ${NET}/samples/known_answer/prj.conf settings)
    foreach(setting ${settings})
        string(REPLACE "=" ";" setting ${setting})
        list(GET setting 0 key)
        set(${key} y)
    endforeach()
    add_subdirectory(${NET}/zephyr zephyr-module)
endfunction()
zephyr_application()
target_sources(app PRIVATE ${NET}/samples/known_answer/../../main.c)
target_link_libraries(app zephyr)
add_executable(zephyr-image $<TARGET_OBJECTS:app>)
target_link_libraries(zephyr-image network_small)

function(idf_component_register)
    cmake_parse_arguments(own "" "" "SRCS;INCLUDE_DIRS" ${ARGN})
    get_filename_component(component ${CMAKE_CURRENT_SOURCE_DIR} NAME)
    add_library(component_${component} STATIC ${own_SRCS})
    target_include_directories(component_${component} PUBLIC ${own_INCLUDE_DIRS})
endfunction()
set(ESP_PLATFORM ON)
add_subdirectory(${NET}/examples/esp_idf/main esp-main)
add_subdirectory(${NET} esp-network)
file(WRITE ${CMAKE_BINARY_DIR}/start.c "void app_main(void); int main(void) { app_main(); return 0; }")
add_executable(esp-image ${CMAKE_BINARY_DIR}/start.c)
target_link_libraries(esp-image component_main component_net)
"""  # noqa: E501


def packaged(folder: Path) -> Mapping[str, str]:
    """Write a small network with all build systems; return its files."""
    _, files = library("transposed", "small")
    files |= Package("small", "small.h", 4096).files(SYSTEMS, files)
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return files


def run(*words: str | Path, cwd: Path | None = None, status: int = 0) -> str:
    done = subprocess.run([*words], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


def test_cmake_builds_and_installs_and_so_do_zephyr_and_esp_idf(tmp_path: Path) -> None:
    cmake = shutil.which("cmake")
    if cmake is None or local_compiler() is None:
        pytest.skip("cmake or a compiler is not installed")
    project, out, place = tmp_path / "net", tmp_path / "out", tmp_path / "place"
    packaged(project)
    run(cmake, "-B", out, "-S", project, *SPARED)
    run(cmake, "--build", out)
    assert "100% tests passed" in run(Path(cmake).with_name("ctest"), "--test-dir", out)
    run(cmake, "--install", out, "--prefix", place)
    user = tmp_path / "user"
    user.mkdir()
    (user / "user.c").write_text('#include "small.h"\nint main(void) { return small_init(); }\n')
    words = ("-S", user, f"-DCMAKE_PREFIX_PATH={place}", f"-DNET={project}")
    (user / "CMakeLists.txt").write_text(FOREIGN)
    build = tmp_path / "build"
    run(cmake, "-B", build, *words, *SPARED)
    run(cmake, "--build", build)
    run(build / "user")
    for image in ("zephyr-image", "esp-image"):
        assert "*** PASS ***" in run(build / image)
    (user / "CMakeLists.txt").write_text(FOREIGN.replace("small 1.0", "small 2.0"))
    run(cmake, "-B", build, *words, status=1)


def test_sketch_and_sdk_take_the_sources_but_not_the_program(tmp_path: Path) -> None:
    compiler = local_compiler()
    if compiler is None or shutil.which("g++") is None or shutil.which("make") is None:
        pytest.skip("compilers or make are not installed")
    files = packaged(tmp_path / "net")
    (tmp_path / "Arduino.h").write_text(ARDUINO)
    sources = [path for path in files if path.endswith(".c") and "/" not in path]
    run(compiler, "-c", "-DARDUINO=10819", *sources, cwd=tmp_path / "net")
    run("g++", "-DARDUINO=10819", "-include", tmp_path / "Arduino.h", "-I.", "-o", "sketch", "-x",
        "c++", "examples/known_answer/known_answer.ino", "-x", "none",
        *(f"{path[:-2]}.o" for path in sources), cwd=tmp_path / "net")  # fmt: skip
    assert "board: *** PASS ***\n" in run(tmp_path / "net" / "sketch")
    (tmp_path / "Makefile").write_text(SDK)
    (tmp_path / "project.mk").write_text("include net/small.mk\n")
    (tmp_path / "main.c").write_text('#include "small.h"\nint main(void) { return 0; }\n')
    run("make", f"CC={compiler}", cwd=tmp_path)
    run(tmp_path / "app")


def test_manifests_have_the_fields_of_their_systems(tmp_path: Path) -> None:
    files = packaged(tmp_path)
    sources = {path for path in files if path.endswith(".c") and "/" not in path} - {"main.c"}
    listed = json.loads(files["library.json"])
    assert {*listed["build"]["srcFilter"]} == {"-<*>", *(f"+<{name}>" for name in sources)}
    assert re.fullmatch(r"\d+\.\d+\.\d+", listed["version"]) and listed["headers"] == "small.h"
    properties = dict(line.split("=", 1) for line in files["library.properties"].splitlines())
    needed = "name version author maintainer sentence paragraph category url architectures"
    assert {*properties} == {*needed.split(), "includes"} and all(properties.values())
    module = yaml.safe_load(files["zephyr/module.yml"])
    assert {*module} == {"name", "build", "samples"} and {*module["build"]} == {"cmake", "kconfig"}
    assert {module["build"]["kconfig"], f"{module['build']['cmake']}/CMakeLists.txt"} <= {*files}
    symbol = re.match(r"config (\w+)\n", files["zephyr/Kconfig"])
    assert (
        symbol is not None and f"CONFIG_{symbol[1]}=y\n" in files["samples/known_answer/prj.conf"]
    )
    sample = yaml.safe_load(files["samples/known_answer/sample.yaml"])
    (test,) = sample["tests"].values()
    assert {*sample} == {"sample", "tests"} and test["harness"] == "console"
    assert any(re.search(regex, "*** PASS ***") for regex in test["harness_config"]["regex"])
    component = yaml.safe_load(files["idf_component.yml"])
    assert {*component} <= {"version", "description", "url", "license", "dependencies", "examples"}
    assert all((tmp_path / one["path"]).is_dir() for one in component["examples"])
    pack = ElementTree.fromstring(files["ai8xize.small.pdsc"])
    assert [part.tag for part in pack] == [
        "vendor",
        "name",
        "description",
        "url",
        "releases",
        "components",
    ]
    named = {part.attrib["name"] for part in pack.iter("file")}
    assert named == {"small.h", *sources} and f"{pack[0].text}.{pack[1].text}" == "ai8xize.small"


def test_packages_that_cannot_be(tmp_path: Path) -> None:
    assert create(tmp_path, "--mcu", "rp2040", *ALL) == 0
    files = {p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*") if p.is_file()}
    assert {"net/net.mk", "net/net-config.cmake.in", "net/ai8xize.net.pdsc"} <= files
    for device, words, says in (
        ("MCU", ["--prefix", "a-b"], "'a-b' is no identifier of C [E911]"),
        ("CMSIS-NN", ["--cmsis-nn", str(tmp_path)], "--cmsis-nn names others [E917]"),
        ("MAX78000", ["--symbol-prefix", "small"], "no board of cmake has the accelerator [E917]"),
        ("MAX78000", [], "no board of cmake has the accelerator [E917]"),
    ):
        with pytest.raises(DiagnosticError, match=re.escape(says)) as refused:
            create(tmp_path / "none", *words, *ALL, device=device)
        assert "E095" not in str(refused.value)
    with pytest.raises(DiagnosticError, match="it needs --symbol-prefix"):
        create(tmp_path / "none", "--build", "sdk", device="MAX78000")
    assert not (tmp_path / "none").exists()
