"""Firmware of others: whole trees, older projects, demonstrations, programs that measure power."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.emulator.conftest import Emulate
from tests.emulator.trees import c_files, change, generate, one_file, verdict

DEMOS = Path(__file__).with_name("demos.c")


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A generated project for MAX78000."""
    return generate(tmp_path_factory.mktemp("generated") / "digits", "--softmax", "--timer", "0")


@pytest.fixture
def demo(digits: Path, tmp_path: Path) -> Callable[[str], Path]:
    """Make a demonstration: the network of the digits, and another program around it."""

    def build(name: str) -> Path:
        folder = c_files(digits, tmp_path / "demo")
        (folder / "main.c").write_text(DEMOS.read_text())
        (folder / "project.mk").write_text(f"PROJ_CFLAGS += -DDEMO={name}\nBOARD = FTHR_RevA\n")
        (folder / "Makefile").write_text(
            "include project.mk\nTARGET=MAX78000\nSRCS=$(wildcard *.c)\n"
        )
        return folder

    return build


def test_project_of_2020_in_one_file(digits: Path, run: Emulate, tmp_path: Path) -> None:
    """Power registers by their older names, one function that loads, polling instead of sleep."""
    folder = one_file(digits, tmp_path / "old")
    status, text = run(folder)
    assert status == 0
    assert verdict(text) == ("PASS", "(1 inference; answer.npz is missing)")
    assert "is a stand-in" not in text  # its older names are known
    assert "headers that are not here" not in text
    status, text = run(folder, "--accelerator-only")
    assert status == 0
    assert verdict(text) == ("PASS", "(1 inference of the network alone)")


def vpath_tree(digits: Path, folder: Path) -> Path:
    """Sources, headers and the network in folders of their own, which the makefile names."""
    c_files(digits, folder / "Network" / "generated")
    for name, place in (
        ("main.c", "Src"), ("softmax.c", "Src"), ("sampledata.h", "Include"), ("cnn.h", "Include"),
    ):  # fmt: skip
        (folder / place).mkdir(exist_ok=True)
        shutil.move(folder / "Network" / "generated" / name, folder / place / name)
    (folder / "scratch").mkdir()
    (folder / "scratch" / "try.c").write_text("int main(void) { return does_not_compile; }\n")
    (folder / "startup_max78000.c").write_text("#error start-up code of the SDK\n")
    (folder / "Makefile").write_text(
        "PROJECT = test\nTARGET := MAX78000\nNET := Network\n"
        "ifeq ($(BOARD),)\nBOARD = EvKit_V1\nendif\n"
        "VPATH  = Src : $(NET)/generated\nVPATH += $(MAXIM_PATH)/Libraries/Other\n"
        "IPATH  = Include\nIPATH += $(addprefix $(NET)/,generated)\n"
        "SRCS   = main.c softmax.c \\\n         cnn.c\n"
        "SRCS  += startup_max78000.c missing_driver.c\n"
        'PROJ_CFLAGS = -Wall -DANSWER=42 -DNAME=\\"tree\\"\n'
        "all:\n\t@echo $(shell touch executed)\n\ttouch executed\n"
    )
    change(
        folder / "Src" / "main.c",
        ("int main(void)\n{", 'int main(void)\n{\n    printf("%d %s", ANSWER, NAME);'),
    )
    return folder


def test_tree_that_its_makefile_describes(digits: Path, run: Emulate, tmp_path: Path) -> None:
    folder = vpath_tree(digits, tmp_path / "tree")
    status, text = run(folder)
    assert (status, *verdict(text)) == (0, "PASS", "(1 inference)")
    assert "42 tree" in text
    assert not list(folder.rglob("executed"))
    assert run(folder, "--accelerator-only")[0] == 0


def test_quoted_words_of_a_makefile(project: Path, run: Emulate, tmp_path: Path) -> None:
    """Blanks in definitions and folders, as a shell takes them; header names with blanks."""
    folder = c_files(project, tmp_path / "blanks")
    (folder / "my headers" / "sub dir").mkdir(parents=True)
    (folder / "my headers" / "sub dir" / "the level.h").write_text("#define LEVEL 3\n")
    (folder / "Makefile").write_text(
        'TARGET=MAX78000\nSRCS=main.c cnn.c\nIPATH=. "my headers"\n'
        'PROJ_CFLAGS += -DNAME=\\"a\\ tree\\" -DTEXT=\'"b c"\'\n'
    )
    change(
        folder / "main.c",
        ('#include "cnn.h"', '#include "cnn.h"\n#include "sub dir/the level.h"'),
        ("cnn_disable();", 'printf("%s %s %d\\n", NAME, TEXT, LEVEL); cnn_disable();'),
    )
    status, text = run(folder)
    assert status == 0, text
    assert "a tree b c 3\n" in text


_CPLUSPLUS = """
#include <algorithm>
#include <array>
#include <memory>
#include "level.hpp"
static int constructed;
struct Lamp {
    explicit Lamp(int pin) : pin(pin) { constructed++; LED_On(pin); }
    virtual ~Lamp() = default;
    virtual int kind() const = 0;
    int pin;
};
struct Red : Lamp { using Lamp::Lamp; int kind() const override { return 5; } };
static Red lamp(0);
template <typename T, size_t N> static T largest(const std::array<T, N> &values)
{
    return *std::max_element(values.begin(), values.end());
}
static void tell()
{
    std::unique_ptr<Lamp> other(new Red(1));
    mxc_gpio_cfg_t pin = {.port = MXC_GPIO2, .mask = MXC_GPIO_PIN_0, .func = MXC_GPIO_FUNC_OUT};
    MXC_GPIO_Config(&pin);
    MXC_UART_Init(MXC_UART0, 115200, MXC_UART_IBRO_CLK);
    TFT_Fill(3, pin.mask);
    Level level(4);
    level.add(2);
    std::array<int, 3> values{3, level.value(), other->kind()};
    printf("%d of %d\\n", largest(values), constructed);
}
"""


def test_firmware_in_cplusplus(project: Path, run: Emulate, tmp_path: Path) -> None:
    """Its classes are in other folders; drivers may be undeclared, and of any arguments."""
    folder = c_files(project, tmp_path / "cpp")
    (folder / "main.c").rename(folder / "main.cpp")
    change(folder / "main.cpp", ("int main(void)", _CPLUSPLUS + "int main()"),
           ('#include "cnn.h"', 'extern "C" {\n#include "cnn.h"\n}'),
           ("cnn_disable();", "tell(); cnn_disable();"))  # fmt: skip
    (folder / "lib").mkdir()
    (folder / "lib" / "level.hpp").write_text(
        "#pragma once\nclass Level {\npublic:\n    explicit Level(int first);\n"
        "    void add(int value);\n    int value() const;\nprivate:\n    int sum;\n};\n"
    )
    methods = folder / "lib" / "level.cc"
    methods.write_text(
        '#include "level.hpp"\nLevel::Level(int first) : sum(first) {}\n'
        "void Level::add(int value) { sum += value; }\nint Level::value() const { return sum; }\n"
    )
    status, text = run(folder)
    assert status == 0, text
    assert "6 of 2\n" in text and "TFT_Fill() is a stand-in" in text
    assert "note: lib/level.cc is compiled, too" in text


def test_kernels_in_files_of_their_own(digits: Path, run: Emulate, tmp_path: Path) -> None:
    """Without main(), the sources of the program count for their arrays; assembler does, too."""
    folder = c_files(digits, tmp_path / "arrays")
    change(folder / "cnn.c", ("static const uint32_t kernels[] = KERNELS;",
                              "extern const uint32_t kernels[];"))  # fmt: skip
    (folder / "kernels.c").write_text(
        '#include <stdint.h>\n#include "weights.h"\nconst uint32_t kernels[] = KERNELS;\n'
    )
    assert verdict(run(folder, "--accelerator-only")[1])[0] == "PASS"
    kernels = re.search(r"#define KERNELS \{([^}]*)\}", (folder / "weights.h").read_text())
    assert kernels is not None
    (folder / "kernels.c").unlink()
    (folder / "kernels.S").write_text(
        "    .section .rodata\n    .balign 4\n    .global kernels\nkernels:\n    .word "
        + kernels[1].replace("\\\n", "")
    )
    text = run(folder)[1]
    assert verdict(text)[0] == "PASS"
    assert "note: kernels.S is compiled, too" in text


def test_functions_that_are_no_cplusplus_are_told(run: Emulate, tmp_path: Path) -> None:
    (tmp_path / "main.cpp").write_text("void cnn_run(int);\nint main() { cnn_run(1); }\n")
    text = run(tmp_path, "--include", tmp_path)[1]
    assert "function 'cnn_run' is used in main.cpp:1, but no file defines it" in text
    assert 'include its header within extern "C"' in text


def test_tree_without_a_makefile(digits: Path, run: Emulate, tmp_path: Path) -> None:
    """What main.c needs is found: sources in src/, headers and the network anywhere below."""
    folder = tmp_path / "tree"
    c_files(digits, folder / "src")
    (folder / "lib" / "net").mkdir(parents=True)
    for name in ("cnn.c", "cnn.h", "weights.h", "softmax.c"):
        shutil.move(folder / "src" / name, folder / "lib" / "net" / name)
    status, text = run(folder)
    assert (status, *verdict(text)) == (0, "PASS", "(1 inference)")
    assert "note: lib/net/cnn.c is compiled, too" in text


@pytest.fixture
def siblings(digits: Path, tmp_path: Path) -> Path:
    """A program whose network stands in a folder beside it."""
    c_files(digits, tmp_path / "all" / "app")
    (tmp_path / "all" / "network").mkdir()
    for name in ("cnn.c", "cnn.h", "weights.h"):
        shutil.move(tmp_path / "all" / "app" / name, tmp_path / "all" / "network" / name)
    return tmp_path / "all" / "app"


def test_headers_beside_the_project_are_found(siblings: Path, run: Emulate) -> None:
    status, text = run(siblings)
    assert status == 0
    assert "note: cnn.h is taken from ../network" in text
    assert "note: ../network/cnn.c is compiled, too" in text


def test_headers_in_several_folders_are_chosen_by_the_user(siblings: Path, run: Emulate) -> None:
    shutil.copytree(siblings.parent / "network", siblings.parent / "other")
    status, text = run(siblings)
    assert status == 1
    assert "main.c:" in text
    assert "cnn.h is not in the project, but in ../network, ../other\n" in text
    assert "Name one of these folders with --include." in text
    assert run(siblings, "--include", siblings.parent / "other")[0] == 0
    assert "no such folder" in run(siblings, "--include", siblings.parent / "missing")[1]


def test_headers_of_another_version_are_refused(digits: Path, run: Emulate, tmp_path: Path) -> None:
    """A project that lacks a header does not pass with that of its neighbour."""
    for name in ("old", "new"):
        c_files(digits, tmp_path / "all" / name)
    (tmp_path / "all" / "new" / "sampledata.h").unlink()
    status, text = run(tmp_path / "all" / "new")
    assert status == 1
    assert "sampledata.h is not in the project; that in ../old belongs to another one" in text
    assert "which has a cnn.c of its own" in text
    assert run(tmp_path / "all" / "new", "--include", tmp_path / "all" / "old")[0] == 0


def test_folder_of_several_projects_names_them(digits: Path, run: Emulate, tmp_path: Path) -> None:
    for name in ("first", "second"):
        c_files(digits, tmp_path / "many" / name)
    assert "it holds 2 programs: first, second\nName one of them." in run(tmp_path / "many")[1]
    shutil.rmtree(tmp_path / "many" / "second")
    assert run(tmp_path / "many")[0] == 0


def test_riscv_pair_in_a_tree(run: Emulate, tmp_path: Path) -> None:
    made = generate(tmp_path / "made", "--riscv", "--riscv-debug")
    folder = tmp_path / "pair"
    c_files(made, folder / "src")
    (folder / "src" / "main.c").rename(folder / "src" / "main_arm.c")
    for name in ("Makefile", "Makefile.ARM", "Makefile.RISCV"):
        change_sources = (made / name).read_text().replace("VPATH", "UNUSED")
        change_sources = change_sources.replace("main.c", "main_arm.c")
        (folder / name).write_text("VPATH = src\nIPATH = src\n" + change_sources)
    status, text = run(folder)
    assert (status, *verdict(text)) == (0, "PASS", "(1 inference)")


# Demonstrations


def test_camera_has_no_real_pixels(demo: Callable[[str], Path], run: Emulate) -> None:
    status, text = run(demo("CAMERA"))
    assert status == 0
    assert text.count("8x8, 256 bytes, overflow 0\n") == 10
    assert re.search(r"-> Class \d:", text)
    assert "note: camera_get_raw() is a stand-in that gives random pixels (called 10 times)" in text
    assert "note: camera_setup() is a stand-in that does nothing (called once)\n" in text
    assert "warning: the input of the network is not real: camera_init() would have" in text
    assert text.splitlines()[-1].startswith("DONE (10 inferences; the input is random: ")


def test_application_with_a_camera_runs_on_random_pixels(
    digits: Path, run: Emulate, tmp_path: Path
) -> None:
    """It brings no sample and compares nothing: nothing is claimed but that its words are right."""
    folder = c_files(digits, tmp_path / "camera")
    for name in ("sampledata.h", "sampleoutput.h"):
        (folder / name).unlink()
    main = folder / "main.c"
    text = re.sub(r"#include \"sample.*", "", main.read_text())
    text = re.sub(r"static const uint32_t input_0.*", "static uint32_t *input_0;", text)
    text = re.sub(r"// Expected output.*?\n}\n\n(?=// Output)", "", text, flags=re.DOTALL)
    text = re.sub(r"    if \(check_output.*?}\n", "", text, flags=re.DOTALL)
    text = text.replace(
        'printf("\\n*** PASS ***\\n\\n");', 'printf("Class %d\\n", (int) ml_data[7]);'
    )
    main.write_text(text)
    change(
        main,
        ('#include "cnn.h"\n', '#include "cnn.h"\n#include "camera.h"\n'),
        ("    load_input();\n", "    uint32_t length, width, height;\n"
         "    camera_init(10000000);\n"
         "    camera_setup(8, 8, PIXFORMAT_RGB565, 0, 0, 0);\n    camera_start_capture_image();\n"
         "    camera_get_image((uint8_t **) &input_0, &length, &width, &height);\n"
         "    load_input();\n"),
    )  # fmt: skip
    status, text = run(folder)
    last = text.splitlines()[-1].replace("; answer.npz is missing", "")
    assert status == 0
    assert last.startswith("DONE (1 inference; the input is random: camera_get_image() ")
    shutil.copy(digits / "answer.npz", folder)
    status, text = run(folder)
    assert (status, text.splitlines()[-1]) == (0, last)
    word = re.findall(r"0x[0-9a-f]{8}", (folder / "weights.h").read_text())[8]
    change(folder / "weights.h", (word, f"0x{int(word, 16) ^ 1:08x}"))
    status, text = run(folder)
    assert (status, text.splitlines()[-1]) == (1, "FAIL")
    assert f"expected {word}, found " in text


def test_microphone_that_never_delivers_is_named(demo: Callable[[str], Path], run: Emulate) -> None:
    status, text = run(demo("MICROPHONE"), "--microphone", "none")
    assert status == 1
    assert (
        "E825 the program sleeps and nothing wakes it: the accelerator was not started, and "
        in text
    )
    assert "nothing comes from --microphone none" in text
    for name in ("Microphone_Power", "MXC_I2S_Init", "max9867_init", "MXC_I2S_RXEnable"):
        assert f"note: {name}() is a stand-in that does nothing (called once)\n" in text
    made_up = next(line for line in text.splitlines() if "made up, without meaning" in line)
    for name in ("MXC_F_OTHER_CONTROL_EN", "MXC_OTHER", "mxc_i2s_req_t.newInOtherSdk"):
        assert name in made_up
    assert "LED" not in text


def test_microphone_delivers_noise(demo: Callable[[str], Path], run: Emulate) -> None:
    status, text = run(demo("MICROPHONE"))
    last = text.splitlines()[-1]
    assert status == 0 and "-> Class 9:" in text
    assert last.startswith("DONE (1 inference; the input is random: MXC_I2S_Init() stands in")


def test_card_is_not_inserted(demo: Callable[[str], Path], run: Emulate) -> None:
    status, text = run(demo("CARD"))
    assert status == 1
    assert "note: f_mount() is a stand-in that does nothing (called once)" in text
    assert "f_open" not in text
    assert "-> Class 0:" in text
    assert "NOT PASSED" in text.splitlines()[-1]


def test_time_passes_and_cmsis_computes(demo: Callable[[str], Path], run: Emulate) -> None:
    """Softmax by powers of two: 2^6, 2^8, 2^5 and 0 of their sum; spectrum of cos + 0.5."""
    text = run(demo("TIMER"))[1]
    total = 2**6 + 2**8 + 2**5
    share = 2**20 // total
    expected = " ".join(str(share >> 13 - power) for power in (6, 8, 5))
    assert f"{expected} 0\n4.00 4.00 " in text
    assert "-> Class 9:" in text


@pytest.mark.parametrize("name", ["CAMERA", "MICROPHONE", "CARD"])
def test_demonstrations_run_without_their_program(
    name: str, demo: Callable[[str], Path], run: Emulate
) -> None:
    """Their load_input() takes what the hardware delivers; the sample comes from sampledata.h."""
    status, text = run(demo(name), "--accelerator-only")
    assert (status, *verdict(text)) == (0, "PASS", "(1 inference of the network alone)")
    assert "Class 7 (99.8%)" in text


# Programs that measure power, and programs without end


@pytest.fixture(scope="module")
def energy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return generate(tmp_path_factory.mktemp("energy") / "digits", "--energy")


def test_power_measurement_is_recognized_and_shortened(energy: Path, run: Emulate) -> None:
    status, text = run(energy, "--time-limit", "1")
    assert status == 1
    assert "E822 the program does not finish within 1 s" in text
    assert "runs load_input() and cnn_start() 100 times" in text
    assert "runs cnn_load_weights() 100 times" in text
    assert "--shorten-loops" in text
    assert "endless" not in text
    status, text = run(energy, "--shorten-loops")
    assert (status, *verdict(text)) == (0, "PASS", "(2 inferences)")
    assert "cnn_load_weights() 100 times, shortened\n" in text


def test_program_that_goes_on_after_it_has_passed_is_ended(
    digits: Path, run: Emulate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ai8xtools.emulator.firmware.progress.QUIET_SECONDS", 0.2)
    folder = c_files(digits, tmp_path / "on")
    forever = "while (1) { LED_Toggle(LED1); MXC_Delay(MSEC(500)); }"
    change(folder / "main.c", ("    return 0;", f"    {forever}\n    return 0;"))
    assert run(folder) == (0, run(folder)[1])
    change(folder / "main.c", (forever, "while (1);"))
    assert run(folder)[0] == 0


def test_endless_loop_is_called_so_only_if_it_is_one(
    digits: Path, run: Emulate, tmp_path: Path
) -> None:
    folder = c_files(digits, tmp_path / "endless")
    count = "for (volatile int i = 0;; i++);"
    change(folder / "main.c", ("    cnn_init();", f"    {count}\n    cnn_init();"))
    text = run(folder, "--time-limit", "0.5")[1]
    assert "it is in main()" in text
    assert "main() reads and writes no register: it looks like an endless loop." in text
    change(folder / "main.c", (f"    {count}\n    cnn_init();", "    while (1) cnn_init();"))
    text = run(folder, "--time-limit", "1")[1]
    assert "endless" not in text
    assert "--time-limit" in text
    change(
        folder / "main.c",
        ("while (1) cnn_init();", "MXC_I2S_RXEnable();\n    while (cnn_time == 0);"),
        ('#include "cnn.h"', '#include "cnn.h"\n#include "i2s.h"'),
    )
    text = run(folder, "--time-limit", "1")[1]
    assert "MXC_I2S_RXEnable() stands in for hardware that is not here and never delivers" in text
    assert "endless" not in text
    assert "--accelerator-only" in text


# Errors of the compiler and linker


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("int main(void)\n{", "int main(void)\n{\n    int x = ;",
         "the project does not compile: main.c:{line}: error: expected expression"),
        ("int main(void)\n{", "int main(void)\n{\n    prepare_everything();",
         "function 'prepare_everything' is used in main.c:{line}, but no file defines it"),
        ('#include "cnn.h"', '#include "cnn.h"\n#include "my_settings.h"\nint a = MY_SIZE;',
         "main.c:{line}: my_settings.h is neither in the project nor in the SDK; "),
    ],
)  # fmt: skip
def test_first_error_is_shown_for_what_it_is(
    old: str, new: str, message: str, digits: Path, run: Emulate, tmp_path: Path
) -> None:
    folder = c_files(digits, tmp_path / "wrong")
    change(folder / "main.c", (old, new))
    lines = (folder / "main.c").read_text().splitlines()
    marks = ("int x = ;", "prepare_everything", "my_settings.h")
    number = next(n for n, line in enumerate(lines, 1) if any(mark in line for mark in marks))
    status, text = run(folder)
    assert status == 1
    assert message.format(line=number) in text


def test_folder_without_a_program_runs_the_network_alone(
    digits: Path, run: Emulate, tmp_path: Path
) -> None:
    folder = c_files(digits, tmp_path / "library")
    change(folder / "main.c", ("int main(void)", "int start(void)"))
    status, text = run(folder)
    assert status == 0
    assert text.startswith("note: no file defines main(): the network is run alone")
    assert verdict(text) == ("PASS", "(1 inference of the network alone)")


_WAITING = """\
volatile int ticks, system_ticks, shots, pressed, moved, alarms;
void on_tick(void) { ticks++; }
void on_shot(void) { shots++; MXC_TMR_ClearFlags(MXC_TMR2); }
void on_press(void *button) { pressed += 1 + (int) button; }
void on_copy(void *destination) { moved++; }
void SysTick_Handler(void) { system_ticks++; }
void DMA0_IRQHandler(void) { MXC_DMA_Handler(); }
void RTC_IRQHandler(void)
{
    alarms += MXC_RTC_GetFlags() == MXC_F_RTC_CTRL_TOD_ALARM;
    MXC_RTC_ClearFlags(MXC_F_RTC_CTRL_TOD_ALARM);
}
int main(void)
{
    uint32_t words[4] = {1, 2, 3, 4}, copy[4], second, part, before;
    mxc_tmr_cfg_t cfg = {TMR_PRES_4, TMR_MODE_CONTINUOUS, TMR_BIT_MODE_32, MXC_TMR_APB_CLK, 0, 0};
    PB_RegisterCallback(1, on_press);
    while (!pressed) MXC_LP_EnterSleepMode();
    PB_IntDisable(1);
    NVIC_EnableIRQ(DMA0_IRQn);
    MXC_DMA_MemCpy(copy, words, sizeof words, on_copy);
    printf("%d %d %d\\n", pressed, moved, memcmp(copy, words, sizeof words));
    MXC_RTC_Init(100, 0);
    NVIC_EnableIRQ(RTC_IRQn);
    MXC_RTC_SetTimeofdayAlarm(107);
    MXC_RTC_EnableInt(MXC_F_RTC_CTRL_TOD_ALARM_IE);
    while (!alarms) MXC_LP_EnterLowPowerMode();
    MXC_RTC_GetTime(&second, &part);
    printf("%d %u %d\\n", alarms, (unsigned) second, part < 41);
    cfg.cmp_cnt = PeripheralClock / 4 / 100;
    MXC_TMR_Init(MXC_TMR2, &cfg, false);
    MXC_NVIC_SetVector(TMR2_IRQn, on_shot);
    before = MXC_TMR_GetCount(MXC_TMR3);
    MXC_TMR_Start(MXC_TMR2);
    while (shots < 5);
    printf("%u ms awake\\n", (unsigned) (MXC_TMR_GetCount(MXC_TMR3) - before) / 1000);
    MXC_TMR_Stop(MXC_TMR2);
    MXC_NVIC_SetVector(TMR1_IRQn, on_tick);
    SysTick_Config(SystemCoreClock / 1000);
    MXC_Delay(MSEC(20));
    while (ticks < 100) MXC_LP_EnterSleepMode();
    printf("%d %d %d\\n", ticks, system_ticks, DWT->CYCCNT < DWT->CYCCNT);
"""


def test_a_program_waits_for_timers_buttons_and_copies(
    digits: Path, run: Emulate, tmp_path: Path
) -> None:
    folder = c_files(digits, tmp_path / "timers")
    change(folder / "main.c", ("int main(void)\n{\n", _WAITING))
    status, text = run(folder)
    assert status == 0
    assert text.startswith("2 1 0\n1 107 1\n50 ms awake\n100 100 1\n")
    change(folder / "main.c", ("ticks < 100", "cnn_time == 0"))
    assert "the program sleeps and only its timers wake it" in run(folder)[1]


def test_second_main_is_left_out_by_the_user(digits: Path, run: Emulate, tmp_path: Path) -> None:
    folder = c_files(digits, tmp_path / "two")
    (folder / "main_backup.c").write_text("int main(void) { return 1; }\n")
    text = run(folder)[1]
    assert "E811 multiple definition of 'main' in main.c and main_backup.c\n" in text
    assert "--exclude" in text
    status, text = run(folder, "--exclude", "*_backup.c", "--exclude", "mian.c")
    assert status == 0
    assert "note: --exclude mian.c matches no C file\n" in text
    assert "_backup.c matches" not in text


def test_variables_defined_in_a_header_are_accepted(
    digits: Path, run: Emulate, tmp_path: Path
) -> None:
    """Compilers before GCC 10 joined them."""
    folder = c_files(digits, tmp_path / "shared")
    change(folder / "cnn.h", ("#include <stdint.h>", "#include <stdint.h>\nuint32_t counter;"))
    assert run(folder)[0] == 0


def test_functions_of_the_project_replace_those_of_the_sdk(
    digits: Path, run: Emulate, tmp_path: Path
) -> None:
    folder = c_files(digits, tmp_path / "own")
    (folder / "led.c").write_text(
        '#include <stdio.h>\nvoid LED_On(unsigned int led) { printf("<lamp %u>", led); }\n'
        "int abs(int x) { return x < 0 ? -x : x; }\n"
    )
    status, text = run(folder)
    assert status == 0
    assert "<lamp 1>" in text


_SKETCH = """
extern "C" {
#include "cnn.h"
}
volatile uint32_t cnn_time;
static const uint32_t input_0[] = {0x0a000002, 0x14000004, 0x1e000006, 0x280000f8};
struct Answer { uint32_t words[2]; };
void setup() {
  Serial.begin(115200); // a brace {
  pinMode(LED_BUILTIN, OUTPUT);
  cnn_enable(MXC_S_GCR_PCLKDIV_CNNCLKSEL_PCLK, MXC_S_GCR_PCLKDIV_CNNCLKDIV_DIV1);
  cnn_init(); cnn_load_weights(); cnn_load_bias(); cnn_configure();
  digitalWrite(LED_BUILTIN, HIGH);
  Answer answer = infer(input_0);
  Serial.println(String("after ") + 10 + " ms: " + String(millis() >= 10));
  Serial.print(answer.words[1], HEX);
  Serial.println(3.14159, 3);
  report();
}
void loop() {}
"""
_SECOND_FILE = """
Answer infer(const uint32_t *input) {
  Answer answer;
  delay(10);
  for (int i = 0; i < 4; i++) ((volatile uint32_t *) 0x50400000)[i] = input[i];
  cnn_start();
  while (!cnn_time) MXC_LP_EnterSleepMode();
  cnn_unload(answer.words);
  return answer;
}
void report() { Serial.flush(); }
"""


def test_sketch_of_arduino(project: Path, run: Emulate, tmp_path: Path) -> None:
    """Functions are used before they are defined, in another file; an empty loop() stays a loop."""
    folder = c_files(project, tmp_path / "zoo")
    (folder / "main.c").unlink()
    (folder / "zoo.ino").write_text(_SKETCH)
    (folder / "answer.ino").write_text(_SECOND_FILE)
    status, text = run(folder)
    assert (status, verdict(text)[0]) == (0, "DONE"), text
    assert "after 10 ms: 1\n19140F0A3.142\n" in text
    (folder / "zoo.ino").write_text(_SKETCH.replace("  report();", "\n  tone(9, 440);"))
    status, text = run(folder)
    assert status == 1
    assert "zoo.ino:19: error: use of undeclared identifier 'tone'" in text
    assert "Of Arduino, pins, time, Serial and String are here" in text
