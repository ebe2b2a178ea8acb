#include <stdlib.h>
#include <stdint.h>
#include <stdio.h>
#include "mxc.h"
#include "cnn.h"

volatile uint32_t cnn_time;

static const uint32_t input_0[] = { 0x0a000002, 0x14000004, 0x1e000006, 0x280000f8 };
static const uint32_t sample_output[] = { 0x0a01, 0x0f02, 0x1403, 0x1900 };
static uint32_t result[2];

void fail(void)
{
    printf("\n*** FAIL ***\n\n");
    while (1) {}
}

void load_input(void)
{
    volatile uint32_t *target = (volatile uint32_t *) 0x50400000;
    for (int i = 0; i < 4; i++)
        *target++ = input_0[i];
}

int check_output(void)
{
    volatile uint32_t *source = (volatile uint32_t *) 0x50402000;
    for (int i = 0; i < 4; i++, source++)
        if ((*source & 0xffff) != sample_output[i]) {
            printf("Data mismatch (%d/%d) at address 0x%08x: Expected 0x%08x, read 0x%08x.\n",
                   i + 1, 4, (unsigned int) (uintptr_t) source, (unsigned int) sample_output[i],
                   (unsigned int) (*source & 0xffff));
            return CNN_FAIL;
        }
    return CNN_OK;
}

int main(void)
{
    MXC_ICC_Enable(MXC_ICC0);
    MXC_SYS_Clock_Select(MXC_SYS_CLOCK_IPO);
    SystemCoreClockUpdate();
    cnn_enable(MXC_S_GCR_PCLKDIV_CNNCLKSEL_PCLK, MXC_S_GCR_PCLKDIV_CNNCLKDIV_DIV1);
    printf("\n*** CNN Inference Test by-hand ***\n");
    cnn_init();
    cnn_load_weights();
    cnn_load_bias();
    cnn_configure();
    load_input();
    cnn_start();
    while (cnn_time == 0)
        MXC_LP_EnterSleepMode();
    if (check_output() != CNN_OK)
        fail();
    cnn_unload(result);
    printf("\n*** PASS ***\n\n");
    cnn_disable();
    return 0;
}
