/* What a network needs that runs without the program around it. */
#include "emulator.h"
#include "mxc.h"

WEAK int main(void) { return 0; }
WEAK volatile uint32_t cnn_time;
WEAK mxc_gpio_cfg_t gpio_trig1, gpio_trig2;

/* Supply all groups and their clock, as programs do that have no function for it. */
__attribute__((used)) void emulator_power_on(void)
{
    MXC_GCFR->reg3 = 0xF; /* reset */
    MXC_GCFR->reg1 = 0xF; /* memories */
    MXC_GCFR->reg0 = 0xF; /* supply */
    MXC_GCFR->reg2 = 0;   /* isolation */
    MXC_GCFR->reg3 = 0;
    MXC_SYS_ClockEnable(MXC_SYS_PERIPH_CLOCK_CNN);
}
