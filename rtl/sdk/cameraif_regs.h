/* Stand-in for the camera interface of both models; bit 7 of int_fl: a word has arrived. */
#ifndef RTL_CAMERAIF_REGS_H
#define RTL_CAMERAIF_REGS_H

#include "global_functions.h"

typedef struct {
    __IO uint32_t ver, fifo_size, ctrl, int_en, int_fl, ds_timing_codes, rsv_0x18[6];
    union {
        __IO uint32_t dma_data, fifo_data;
    };
} mxc_cameraif_regs_t;
#define MXC_CAMERAIF0 ((mxc_cameraif_regs_t *) 0x4000e000)
#define MXC_PCIF MXC_CAMERAIF0
#define MXC_S_CAMERAIF_CTRL_READ_MODE_SINGLE_IMG (1u << 0)
#define MXC_S_CAMERAIF_CTRL_DATA_WIDTH_8BIT (0u << 2)
#define MXC_S_CAMERAIF_CTRL_DATA_WIDTH_10BIT (1u << 2)
#define MXC_S_CAMERAIF_CTRL_DATA_WIDTH_12BIT (2u << 2)
#define MXC_S_CAMERAIF_CTRL_DS_TIMING_EN_DIS (0u << 4)
#define MXC_S_CAMERAIF_CTRL_PCIF_SYS_EN_EN (1u << 31)
#define MXC_F_CAMERAIF_CTRL_PCIF_SYS (1u << 31)
#define MXC_F_CAMERAIF_CTRL_THREE_CH_EN (1u << 30)

#endif
