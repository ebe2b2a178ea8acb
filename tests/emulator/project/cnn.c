/*
 * A 3x3 convolution with pad 1, ReLU and bias: 4 channels of 2x2 pixels, 2 outputs.
 * Only the centre taps are not zero: output 0 is half of channel 0, output 1 half of channel 3 plus 5.
 */
#include <stdlib.h>
#include <stdint.h>
#include <string.h>
#include <stdio.h>
#include "mxc.h"
#include "gcfr_regs.h"
#include "cnn.h"

#define WORD(address) (*((volatile uint32_t *) (address)))

/* Packed columns: address, number of words, words */
static const uint32_t kernels[] = {
    0x50180000, 5, 0x00000000, 0x40000000, 0x00000000, 0x00000000, 0x00000000,
    0x50184000, 5, 0x00000000, 0x00000000, 0x00000000, 0x00000000, 0x00000000,
    0x50188000, 5, 0x00000000, 0x00000000, 0x00000000, 0x00000000, 0x00000000,
    0x5018C000, 5, 0x00000000, 0x00000000, 0x00000000, 0x00400000, 0x00000000,
    0,
};

void CNN_ISR(void)
{
    WORD(0x50100000) &= ~((1 << 12) | 1);
    cnn_time = MXC_TMR_SW_Stop(MXC_TMR0);
}

int cnn_enable(uint32_t clock_source, uint32_t clock_divider)
{
    MXC_GCFR->reg3 = 0xf;
    MXC_GCFR->reg1 = 0x1;
    MXC_GCFR->reg0 = 0x1;
    MXC_GCFR->reg2 = 0xe;
    MXC_GCFR->reg3 = 0x0;
    MXC_GCR->pclkdiv = (MXC_GCR->pclkdiv & ~MXC_F_GCR_PCLKDIV_CNNCLKDIV) | clock_source | clock_divider;
    MXC_SYS_ClockEnable(MXC_SYS_PERIPH_CLOCK_CNN);
    MXC_NVIC_SetVector(CNN_IRQn, CNN_ISR);
    return CNN_OK;
}

int cnn_disable(void)
{
    MXC_GCFR->reg0 = 0x0;
    return CNN_OK;
}

int cnn_init(void)
{
    WORD(0x50001000) = 0x00000000;
    WORD(0x50100000) = 0x00100008;
    WORD(0x50100004) = 0x0000040e;
    return CNN_OK;
}

int cnn_load_weights(void)
{
    const uint32_t *source = kernels;
    volatile uint32_t *target;
    while ((target = (volatile uint32_t *) *source++) != 0) {
        uint32_t count = *source++;
        *((volatile uint8_t *) ((uint32_t) target | 1)) = 0x01;
        while (count--)
            *target++ = *source++;
    }
    return CNN_OK;
}

int cnn_load_bias(void)
{
    WORD(0x50108000) = 0x00;
    WORD(0x50108004) = 0x05;
    return CNN_OK;
}

int cnn_configure(void)
{
    WORD(0x50100010) = 0x00010003; /* RCNT */
    WORD(0x50100090) = 0x00010003; /* CCNT */
    WORD(0x50100310) = 0x00000800; /* WPTR_BASE */
    WORD(0x50100410) = 0x00002000; /* WPTR_MOFFS */
    WORD(0x50100590) = 0x00000b20; /* LCTL */
    WORD(0x50100a10) = 0x00000800; /* LCTL2 */
    WORD(0x50100610) = 0x00000008; /* MCNT */
    WORD(0x50100690) = 0x00000001; /* TPTR */
    WORD(0x50100790) = 0x00001000; /* POST */
    WORD(0x50100710) = 0x000f000f; /* ENA */
    return CNN_OK;
}

int cnn_start(void)
{
    cnn_time = 0;
    WORD(0x50100000) = 0x00100808;
    MXC_TMR_SW_Start(MXC_TMR0);
    WORD(0x50100000) = 0x00100009;
    return CNN_OK;
}

int cnn_unload(uint32_t *out_buf)
{
    uint8_t *bytes = (uint8_t *) out_buf;
    for (int channel = 0; channel < 2; channel++)
        for (int pixel = 0; pixel < 4; pixel++)
            *bytes++ = (uint8_t) (WORD(0x50402000 + 4 * pixel) >> 8 * channel);
    return CNN_OK;
}
