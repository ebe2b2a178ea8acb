"""Makefile and project files: they parse, and say what the options say."""

from __future__ import annotations

import json
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

from ai8xtools.diagnostics import DiagnosticError
from ai8xtools.synthesis.emit.buildfiles import build_files, depth
from ai8xtools.writing.folder import write_project
from device import MAX78002
from tests.synthesis.programs import options

ODD = 'R&D <a> "b" \u00e9'


def files(**changes: Any) -> dict[str, str]:
    return build_files(MAX78002, options(**changes))


def test_every_expected_file_is_there() -> None:
    assert set(files()) == {
        "Makefile", "project.mk", "net.launch", ".project", ".cproject",
        ".vscode/settings.json", ".vscode/launch.json", ".vscode/tasks.json",
        ".vscode/c_cpp_properties.json", ".vscode/flash.gdb", ".vscode/README.md",
        ".settings/language.settings.xml", ".settings/org.eclipse.cdt.core.prefs",
        ".settings/org.eclipse.cdt.codan.core.prefs",
    }  # fmt: skip


def test_json_files_parse_whatever_the_board_is_called() -> None:
    made = files(board_name=ODD)
    for name, text in made.items():
        if name.endswith(".json"):
            json.loads(text)
    settings = json.loads(made[".vscode/settings.json"])
    assert settings["board"] == ODD and settings["target"] == "MAX78002"
    assert settings["program_file"] == "${config:project_name}.elf"


def test_tasks_and_debuggers() -> None:
    made = files()
    tasks = [task["label"] for task in json.loads(made[".vscode/tasks.json"])["tasks"]]
    assert tasks == [
        "build", "clean", "clean-periph", "flash", "flash & run", "erase flash", "openocd (m4)",
        "gdb (m4)",
    ]  # fmt: skip
    debuggers = json.loads(made[".vscode/launch.json"])["configurations"]
    assert [entry["type"] for entry in debuggers] == ["cortex-debug", "cppdbg", "cppdbg"]
    assert [e.get("miDebuggerServerAddress", "")[-4:] for e in debuggers[1:]] == ["3333", "3334"]


def test_xml_files_parse_and_hold_the_options() -> None:
    made = files(
        name="net", eclipse_includes=f"'{ODD}' b", eclipse_openocd_args=ODD, define="A B=1"
    )
    for name in (".project", ".cproject", "net.launch", ".settings/language.settings.xml"):
        ElementTree.fromstring(made[name].encode())
    project = ElementTree.fromstring(made[".cproject"].encode())
    values = [option.get("value") for option in project.iter("listOptionValue")]
    assert f'"{ODD}"' in values and "B=1" in values
    launch = ElementTree.fromstring(made["net.launch"].encode())
    attributes = {entry.get("key"): entry.get("value") for entry in launch}
    assert attributes["org.eclipse.cdt.launch.PROGRAM_NAME"] == "build/net.elf"
    other = attributes["ilg.gnumcueclipse.debug.gdbjtag.openocd.gdbServerOther"] or ""
    assert other.endswith(ODD)


def test_environment_variables_of_the_ide() -> None:
    text = files(eclipse_variables="MINE=a:b")[".settings/org.eclipse.cdt.core.prefs"]
    assert "/BOARD/value=EvKit_V1\n" in text and "/TARGET/value=MAX78002\n" in text
    assert "/MINE/value=a\\:b\n" in text


@pytest.mark.parametrize(
    ("folder", "up"),
    [("sdk/Examples/MAX78000/CNN/mnist", "../../../../"), ("./out/net", "../"), ("net", "../")],
)
def test_way_to_the_sdk(folder: str, up: str) -> None:
    assert depth(folder) == up


def test_open_quotation_is_refused() -> None:
    with pytest.raises(DiagnosticError, match=r"--define.*E076"):
        files(define="A='b")


@pytest.mark.skipif(not shutil.which("make"), reason="make is not installed")
def test_makefile_hands_sources_and_flags_to_the_sdk(tmp_path: Path) -> None:
    write_project({**files(define="A 'B=1'"), "main.c": "", "net.c": ""}, tmp_path / "net")
    source = tmp_path / "sdk" / "Libraries" / "CMSIS" / "Device" / "Maxim" / "MAX78002" / "Source"
    (source / "GCC").mkdir(parents=True)
    (tmp_path / "sdk" / "Libraries" / "libs.mk").write_text("")
    (source / "GCC" / "max78002.mk").write_text(
        "$(BUILD_DIR)/$(PROJECT).elf: ; @echo $(sort $(SRCS)) / $(PROJ_CFLAGS) / $(LINKERFILE)"
        " / $(MXC_OPTIMIZE_CFLAGS) / $(BOARD) / $(MFLOAT_ABI)\n"
        "clean: ; @echo clean\n"
    )

    def make(*arguments: str) -> str:
        command = [
            "make",
            "-C",
            str(tmp_path / "net"),
            f"MAXIM_PATH={tmp_path / 'sdk'}",
            *arguments,
        ]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        assert "warning" not in result.stderr and "overriding" not in result.stderr
        return result.stdout

    printed = make()
    assert (
        "main.c net.c / -Wall -Wcast-align -DMXC_ASSERT_ENABLE -DARM_MATH_CM4 -DA -DB=1" in printed
    )
    assert "Source/GCC/max78002.ld / -O2 / EvKit_V1 / softfp" in printed
    (tmp_path / "net" / "project.mk").write_text("BOARD = FTHR\nPROJ_CFLAGS += -DMINE\n")
    printed = make("DEBUG=1")
    assert "-Og / FTHR" in printed and "-DMINE" in printed
    assert "clean" in make("clean")
    tools = tmp_path / "sdk" / "Tools" / "SBT"
    tools.mkdir(parents=True)
    (tools / "SBT-config.mk").write_text("TEST_KEY ?= own.key\nLINKERFILE ?= $(TARGET_LC)_sla.ld\n")
    (tools / "SBT-rules.mk").write_text("sla: release ; @echo signed: $(PROJECT) $(TEST_KEY)\n")
    printed = make("SBT=1", "sla")
    assert "GCC/max78002_sla.ld" in printed and "signed: max78002 own.key" in printed
    assert "signed: max78002 my.key" in make("SBT=1", "TEST_KEY=my.key", "sla")
