"""Programs for Zephyr: compiled against its interface, and run with drivers of the test's own."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from ai8xtools.diagnostics import DiagnosticError
from ai8xtools.emulator import Board
from ai8xtools.writing.application import Application
from ai8xtools.writing.library import Library, Shape
from tests.emulator.test_applications import CHIP, CORE, OUTPUT, create
from tests.emulator.test_applications_1d import HIGH, LOW, STEPS, console, tilts, tone, tones
from tests.emulator.test_zephyr import GPIO, IRQ, KERNEL
from tests.software.compiled import compiler

HEADERS = {
    "device.h": """#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>
struct device { int none; };
extern const struct device the_device;
bool device_is_ready(const struct device *dev);
""",
    "devicetree.h": """#define DT_NODELABEL(name) name
#define DT_ALIAS(name) name
#define DEVICE_DT_GET(node) (&the_device)
""",
    "kernel.h": """#include <zephyr/device.h>
struct k_mem_slab { int none; };
#define K_MEM_SLAB_DEFINE_STATIC(name, size, count, align) static struct k_mem_slab name
void k_mem_slab_free(struct k_mem_slab *slab, void *mem);
int64_t k_uptime_get(void);
struct k_timer { int none; };
typedef struct { int64_t ticks; } k_timeout_t;
#define K_TIMER_DEFINE(name, expiry, stop) struct k_timer name
#define K_MSEC(ms) ((k_timeout_t){ (ms) })
void k_timer_start(struct k_timer *timer, k_timeout_t duration, k_timeout_t period);
uint32_t k_timer_status_sync(struct k_timer *timer);
""",
    "audio/dmic.h": """#include <zephyr/kernel.h>
enum dmic_trigger { DMIC_TRIGGER_STOP, DMIC_TRIGGER_START };
enum pdm_lr { PDM_CHAN_LEFT, PDM_CHAN_RIGHT };
struct pcm_stream_cfg {
    uint32_t pcm_rate;
    uint8_t pcm_width;
    uint16_t block_size;
    struct k_mem_slab *mem_slab;
};
struct dmic_cfg {
    struct {
        uint32_t min_pdm_clk_freq, max_pdm_clk_freq;
        uint8_t min_pdm_clk_dc, max_pdm_clk_dc;
    } io;
    struct pcm_stream_cfg *streams;
    struct {
        uint32_t req_chan_map_lo;
        uint8_t req_num_chan, req_num_streams;
    } channel;
};
uint32_t dmic_build_channel_map(uint8_t channel, uint8_t pdm, enum pdm_lr lr);
int dmic_configure(const struct device *dev, struct dmic_cfg *cfg);
int dmic_trigger(const struct device *dev, enum dmic_trigger cmd);
int dmic_read(const struct device *dev, uint8_t stream, void **buffer, size_t *size,
              int32_t timeout);
""",
    "drivers/sensor.h": """#include <zephyr/kernel.h>
struct sensor_value { int32_t val1, val2; };
enum sensor_channel { SENSOR_CHAN_ACCEL_XYZ };
int sensor_sample_fetch(const struct device *dev);
int sensor_channel_get(const struct device *dev, enum sensor_channel chan, struct sensor_value *v);
""",
}  # fmt: skip
DRIVER = """#include <stdio.h>
#include <stdlib.h>
#include <zephyr/audio/dmic.h>
const struct device the_device;
static struct pcm_stream_cfg stream;
static int64_t now;
static int reads, started;
bool device_is_ready(const struct device *dev) { return dev == &the_device; }
void k_mem_slab_free(struct k_mem_slab *slab, void *mem) { (void)slab; free(mem); }
int64_t k_uptime_get(void) { return now; }
uint32_t dmic_build_channel_map(uint8_t c, uint8_t p, enum pdm_lr lr)
{
    return (uint32_t)(c + p + lr);
}
int dmic_configure(const struct device *dev, struct dmic_cfg *cfg)
{
    (void)dev;
    stream = *cfg->streams;
    return stream.pcm_rate == 16000 && stream.pcm_width == 16 ? 0 : -22;
}
int dmic_trigger(const struct device *dev, enum dmic_trigger cmd)
{
    (void)dev;
    started = cmd == DMIC_TRIGGER_START;
    return 0;
}
int dmic_read(const struct device *dev, uint8_t number, void **buffer, size_t *size,
              int32_t timeout)
{
    (void)dev, (void)number;
    if (reads++ == 3) {
        return -5; /* no block was free */
    }
    *buffer = malloc(stream.block_size);
    *size = fread(*buffer, 1, stream.block_size, stdin);
    if (!started || *size < stream.block_size) { /* nothing comes any more */
        now += timeout;
        free(*buffer);
        return -11;
    }
    return 0;
}
"""


def write_headers(folder: Path, headers: dict[str, str]) -> None:
    for name, text in headers.items():
        path = folder / "zephyr" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#pragma once\n{text}")


def test_microphones_of_zephyr_are_heard(tmp_path: Path) -> None:
    """Words, a driver that runs out of blocks, and silence at the end of the recording."""
    made = compiler()
    if made is None:
        pytest.skip("needs a C compiler")
    project = tones(tmp_path / "net", CORE, "--board-name", "zephyr")
    write_headers(tmp_path, HEADERS)
    (tmp_path / "driver.c").write_text(DRIVER)
    sources = re.findall(r"^  (\w+\.c)$", (project / "CMakeLists.txt").read_text(), re.M)
    assert {"main.c", "sensor.c", "net.c"} <= set(sources)
    files = [str(project / name) for name in sources] + [str(tmp_path / "driver.c")]
    series = Application("series", "net", "zephyr").applied(
        {}, Library("net", "title", Shape(3, 16, 1), (OUTPUT,), 40)
    )
    (tmp_path / "series").mkdir()
    for name in ("sensor.c", "sensor.h"):
        (tmp_path / "series" / name).write_text(series[name])
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", f"-I{tmp_path}", f"-I{project}"]
    done = subprocess.run([*made, *flags, *files, "-o", str(tmp_path / "main")],
                          capture_output=True, text=True, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
    words = [f"-I{tmp_path}", "-std=c99", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
    done = subprocess.run([*made, *words, str(tmp_path / "series" / "sensor.c")],
                          capture_output=True, text=True, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
    pause = np.zeros(1600)
    sound = np.concatenate([pause, tone(LOW), pause, tone(HIGH), pause])
    ran = subprocess.run([str(tmp_path / "main")], input=sound.astype("<i2").tobytes(),
                         capture_output=True, check=False)  # fmt: skip
    text = ran.stdout.decode()
    assert re.findall(r"class (\d)", text) == ["0", "1"]
    assert text.count("samples lost\n") == 1
    assert text.count("No data from the microphone within 1000 ms\n") == 3
    assert text.endswith("Giving up.\n") and ran.returncode == 1


SENSOR = """#include <zephyr/drivers/sensor.h>
#include <stdio.h>
#include <stdlib.h>
const struct device the_device;
static unsigned measured, awake;
bool device_is_ready(const struct device *dev) { (void)dev; return true; }
void k_timer_start(struct k_timer *timer, k_timeout_t duration, k_timeout_t period)
{
    (void)timer, (void)duration;
    if (period.ticks != 10) {
        exit(2);
    }
}
uint32_t k_timer_status_sync(struct k_timer *timer) { (void)timer; return measured == 20 ? 3 : 1; }
int sensor_sample_fetch(const struct device *dev)
{
    (void)dev;
    awake += !(*(volatile uint32_t *)0x40000024 >> 25 & 1);
    if (measured == 80) {
        printf("clock %u\\n", awake);
    }
    return measured++ < 80 ? 0 : -5;
}
int sensor_channel_get(const struct device *dev, enum sensor_channel chan, struct sensor_value *v)
{
    (void)dev, (void)chan;
    v[0].val1 = measured <= 40 ? 9 : -9;
    v[0].val2 = v[1].val1 = v[1].val2 = v[2].val1 = v[2].val2 = 0;
    return 0;
}
"""


def test_the_accelerator_takes_what_sensors_of_zephyr_measure(tmp_path: Path) -> None:
    """Left for 40 steps, then right, and nothing after 80; the network has a clock only for its
    inferences. The module is in the folder, which has nothing for the vendor's SDK."""
    project = tilts(tmp_path / "net", CHIP, "--board-name", "zephyr")
    assert not list(project.glob("*akefile*")) and (project / "zephyr/module.yml").is_file()
    assert "CONFIG_SENSOR=y\nCONFIG_NETWORK_NET=y\n" in (project / "prj.conf").read_text()
    for path in (*project.glob("zephyr/include/*.h"), project / "zephyr/port.c"):
        path.rename(project / path.name)
    kernel = KERNEL + HEADERS["kernel.h"]
    device = f"{HEADERS['device.h']}#include <zephyr/devicetree.h>\n"
    pins = GPIO.replace("port->port", "port->none")
    others = {"kernel.h": kernel, "device.h": device, "irq.h": IRQ, "drivers/gpio.h": pins}
    write_headers(project, {**HEADERS, **others})
    (project / "driver.c").write_text(SENSOR)
    board = Board.with_project(project)
    board.run()
    times = list(range(STEPS, 81, STEPS // 2))
    expected = [(10 * t, int(t > 40 + STEPS // 2)) for t in times]
    assert console(board.console) == expected, board.console
    assert "2 measurements lost\n" in board.console and "clock 0\n" in board.console
    assert board.console.count("No data from the sensor within 1000 ms\n") == 3


@pytest.mark.parametrize("kind", ["camera", "bench"])
def test_drivers_that_zephyr_lacks_are_named(tmp_path: Path, kind: str) -> None:
    with pytest.raises(DiagnosticError, match=r"\[E913\]") as refusal:
        create(tmp_path, CHIP, kind, "--board-name", "zephyr")
    assert ("the camera interface for MAX78000" in str(refusal.value)) == (kind == "camera")
    with pytest.raises(DiagnosticError, match=r"no driver of I2S for MAX78000 \[E913\]"):
        tones(tmp_path / kind, CHIP, "--board-name", "zephyr")


def test_what_zephyr_has_no_common_interface_for_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DiagnosticError, match=r"no interface that all its boards share \[E913\]"):
        create(tmp_path, CORE, "camera", "--board-name", "zephyr")
    assert not (tmp_path / "net").exists()
