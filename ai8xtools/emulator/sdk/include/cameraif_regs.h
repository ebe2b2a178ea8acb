/* Camera interface: memory that nothing reads. */
#ifndef EMULATOR_CAMERAIF_REGS_H
#define EMULATOR_CAMERAIF_REGS_H

#include "mxc.h"

typedef struct {
    __IO uint32_t ver, ctrl, int_en, int_fl, ds_timer, rsv_0x14[7], data, fifo_data;
} mxc_cameraif_regs_t;
typedef mxc_cameraif_regs_t mxc_pcif_regs_t;
#define MXC_CAMERAIF ((mxc_cameraif_regs_t *) 0x4000E000)
#define MXC_PCIF ((mxc_pcif_regs_t *) 0x4000E000)

#endif
