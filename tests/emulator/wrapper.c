#include <stdlib.h>
#include <stdint.h>
#include "mxc.h"
#include "gcfr_regs.h"
#include "fcr_regs.h"
#include "sema_regs.h"

extern volatile void const *__FlashStart_;

void WakeISR(void)
{
    MXC_SEMA->irq0 = MXC_F_SEMA_IRQ0_EN & ~MXC_F_SEMA_IRQ0_CM4_IRQ;
}

int main(void)
{
    MXC_FCR->urvbootaddr = (uint32_t) &__FlashStart_;
    MXC_SYS_ClockEnable(MXC_SYS_PERIPH_CLOCK_SMPHR);
    MXC_NVIC_SetVector(RISCV_IRQn, WakeISR);
    MXC_SYS_ClockEnable(MXC_SYS_PERIPH_CLOCK_CPU1);
    MXC_LP_EnterSleepMode();
    if (MXC_SEMA->irq0 != MXC_F_SEMA_IRQ0_EN)
        return 7;
    return 0;
}
