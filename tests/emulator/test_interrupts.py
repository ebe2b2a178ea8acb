"""Interrupts and transfers of drivers that a program waits for in vain."""

from __future__ import annotations

from pathlib import Path

import pytest

from ai8xtools.emulator import Board, EmulatorError
from ai8xtools.emulator.cpu.architecture import CORTEX_M4, RISCV
from ai8xtools.emulator.firmware.interrupts import accelerator_interrupt, interrupt_name
from device import MAX78000

_PROGRAM = """
#include "mxc.h"
#include "dma.h"
#include "i2s.h"
static uint32_t from[8], to[8];
static volatile int moved;
static void done(void *target) { moved = 1; }
int main(void)
{
    MXC_DMA_MemCpy(to, from, sizeof to, done);
    while (!moved && CONTROL)
        __WFI();
    return 0;
}
static volatile unsigned ticks, answered;
void TMR1_IRQHandler(void) { ticks++; }
void TMR2_IRQHandler(void) { MXC_TMR_ClearFlags(MXC_TMR2); ticks++; }
static void start(mxc_tmr_regs_t *timer)
{
    mxc_tmr_cfg_t cfg = {TMR_PRES_1, TMR_MODE_CONTINUOUS, TMR_BIT_MODE_32, MXC_TMR_APB_CLK, 50000};
    MXC_TMR_Init(timer, &cfg, false);
    MXC_TMR_Start(timer);
}
int never(void)
{
    start(MXC_TMR1);
    while (!ticks) {}
    return 0;
}
int later(void)
{
    start(MXC_TMR2);
    NVIC_EnableIRQ(TMR2_IRQn);
    while (ticks < 50) {}
    return (int) ticks;
}
static volatile unsigned system_ticks;
void SysTick_Handler(void) { system_ticks++; }
int counted(void)
{
    SysTick->LOAD = 49999;
    SysTick->CTRL = SysTick_CTRL_TICKINT_Msk | SysTick_CTRL_ENABLE_Msk;
    while (system_ticks < 5) {}
    SysTick->CTRL = 0;
    return (int) system_ticks;
}
int nobody(void)
{
    for (unsigned i = 0; !answered; i = (i + 1) % 7) {}
    return 0;
}
int listen(void *buffer, int size) { return MXC_I2S_RXDMAConfig(buffer, size); }
""".replace("CONTROL", "*(volatile uint32_t *) 0x50100000 == 0")


def test_what_a_program_waits_for_is_named(tmp_path: Path) -> None:
    """No makefile tells the chip, but the register that it reads: SRAM ends where it does."""
    (tmp_path / "main.c").write_text(_PROGRAM)
    board = Board.with_project(tmp_path)
    with pytest.raises(EmulatorError) as caught:
        board.run(10)
    assert board.chip is None and caught.value.code == "E825"
    assert caught.value.message.endswith(
        "DMA0_IRQn has come, which the program has not enabled or does not handle"
    )
    again = Board(board.core.image, sram_of=MAX78000)
    assert again.core.call("later") == 50  # a timer whose interrupt is enabled
    again = Board(board.core.image, sram_of=MAX78000)
    assert again.core.call("counted") == 5  # the core's own, at 100 MHz
    assert 2_500 <= again.core.now() < 22_600
    with pytest.raises(EmulatorError, match=r"awake in never\(\) for ticks \(0x2\w+\)") as caught:
        Board(board.core.image, sram_of=MAX78000).core.call("never")
    assert caught.value.message.endswith("TMR1_IRQn has come, which the program has not enabled or "
                                         "does not handle")  # fmt: skip
    with pytest.raises(EmulatorError, match="for answered .* no other interrupt will come"):
        Board(board.core.image, sram_of=MAX78000).core.call("nobody")
    assert again.core.call("listen", 0x2001FF00, 0x100) == 0
    with pytest.raises(EmulatorError, match="is given a buffer") as caught:
        again.core.call("listen", 0x2001FF00, 0x101)
    assert "0x2001ff00 to 0x20020000; SRAM is from 0x20000000 to 0x2001ffff" in str(caught.value)


def test_interrupts_have_the_names_of_their_core() -> None:
    for core, transfer in ((CORTEX_M4, 28), (RISCV, 12)):
        assert interrupt_name(accelerator_interrupt(core), core) == "CNN_IRQn"
        assert interrupt_name(transfer, core) == "DMA0_IRQn"
    assert interrupt_name(99, RISCV) == "interrupt 99"
