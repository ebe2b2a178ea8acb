/* Set-up of the camera's pins and clock; programs include this file. */
#ifndef RTL_PCIF_C
#define RTL_PCIF_C

#include "cameraif_regs.h"

static inline void enable_pcif_clock(void) {}
static inline void set_pcif_gpio_altf(void) {}

#endif
