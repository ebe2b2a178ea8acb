/* Two networks, one after the other. */
#include <stdlib.h>
#include <stdint.h>
#include <string.h>
#include <stdio.h>
#include "mxc.h"
#include "cnn_1.h"
#include "cnn_2.h"
#include "digits.h"
volatile uint32_t cnn_time;
void fail(void) { printf("\n*** FAIL ***\n\n"); while (1); }

int main(void)
{
    MXC_ICC_Enable(MXC_ICC0);
    MXC_SYS_Clock_Select(MXC_SYS_CLOCK_IPO);
    SystemCoreClockUpdate();
    cnn_1_enable(MXC_S_GCR_PCLKDIV_CNNCLKSEL_PCLK, MXC_S_GCR_PCLKDIV_CNNCLKDIV_DIV1);
    cnn_1_init(); cnn_1_load_weights(); cnn_1_load_bias(); cnn_1_configure();
    load_input(); cnn_1_start();
    while (cnn_time == 0) MXC_LP_EnterSleepMode();
    if (check_output() != CNN_OK) fail();
    cnn_1_disable();
    cnn_time = 0;
    cnn_2_enable(MXC_S_GCR_PCLKDIV_CNNCLKSEL_PCLK, MXC_S_GCR_PCLKDIV_CNNCLKDIV_DIV1);
    cnn_2_init(); cnn_2_load_weights(); cnn_2_load_bias(); cnn_2_configure();
    load_input(); cnn_2_start();
    while (cnn_time == 0) MXC_LP_EnterSleepMode();
    if (check_output() != CNN_OK) fail();
    printf("*** PASS ***\n");
    cnn_2_disable();
    return 0;
}
