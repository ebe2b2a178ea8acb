"""The accelerator under Zephyr, which a few lines stand for: what is left of the SDK is right."""

from __future__ import annotations

from pathlib import Path

from ai8xtools.emulator import Board
from tests.emulator.test_library import CHW, create

KERNEL = """#pragma once
#include <stddef.h>
#include <stdint.h>
#define ARG_UNUSED(x) (void)(x)
struct k_sem { volatile unsigned count; };
#define K_SEM_DEFINE(name, initial, limit) struct k_sem name = { initial }
#define K_FOREVER 0
static inline void k_sem_give(struct k_sem *sem) { sem->count = 1; }
static inline void k_sem_take(struct k_sem *sem, int forever)
{
    while (sem->count == forever) __asm__ volatile("wfi");
    sem->count = 0;
}
static inline void k_usleep(int32_t microseconds) { (void)microseconds; }
static inline uint32_t k_cycle_get_32(void) { static uint32_t passed; return passed += 2000; }
static inline uint32_t k_cyc_to_us_floor32(uint32_t cycles) { return cycles / 100; }
"""
IRQ = """void MXC_NVIC_SetVector(int line, void (*handler)(void));
static void (*connected)(const void *);
static void call(void) { connected(0); }
static inline void irq_connect_dynamic(unsigned line, unsigned priority,
                                       void (*handler)(const void *), const void *arg,
                                       uint32_t flags)
{
    connected = line == 101 && priority < 8 && arg == 0 && flags == 0 ? handler : 0;
}
static inline void irq_enable(unsigned line) { MXC_NVIC_SetVector((int)line, call); }
"""
DEVICE = """#pragma once
#include <zephyr/kernel.h>
struct device { int port; };
enum { gpio0, gpio1, gpio2 };
static const struct device all_ports[] = { { 0 }, { 1 }, { 2 } };
#define DT_NODELABEL(label) label
#define DEVICE_DT_GET(label) (&all_ports[label])
"""
GPIO = """#include <stdio.h>
enum { GPIO_OUTPUT_LOW, GPIO_OUTPUT_HIGH };
#define find_lsb_set(word) __builtin_ffs((int)(word))
static inline void gpio_pin_configure(const struct device *port, int pin, int level)
{
    printf("P%d.%d=%d ", port->port, pin, level);
}
"""


def test_interrupt_clocks_time_and_pins_go_through_the_port(tmp_path: Path) -> None:
    project = create(tmp_path, CHW, "--build", "zephyr", "--timer", "0", "--boost", "2.5")
    for path in (*project.glob("zephyr/include/*.h"), project / "zephyr/port.c"):
        path.rename(project / path.name)
    headers = {"kernel": KERNEL, "irq": IRQ, "device": DEVICE, "drivers/gpio": GPIO}
    for name, text in headers.items():
        path = project / "zephyr" / f"{name}.h"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    board = Board.with_project(project)
    board.run()
    said = board.console
    assert "*** PASS ***" in said and "inference time: 20 us" in said, said
    assert said.index("P2.5=1") < said.index("P2.5=0") < said.index("*** PASS ***")
