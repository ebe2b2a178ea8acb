/* A keyword spotter as demonstrations have it: microphone or a stored word, chunks, confidence. */
#include <stdint.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>
#include "mxc.h"
#include "mxc_device.h"
#include "mxc_delay.h"
#include "mxc_sys.h"
#include "mxc_errors.h"
#include "fcr_regs.h"
#include "icc.h"
#include "led.h"
#include "tmr.h"
#include "dma.h"
#include "pb.h"
#include "cnn.h"
#include "i2s.h"
#include "i2s_regs.h"
#include "uart.h"
#include "board.h"
#include "nvic_table.h"
#include "board_config.h"
#include "sampledata.h"
#include "sampleoutput.h"
#define VERSION "3.2.1 (12/22/22)"
#define CLOCK_SOURCE 0
#define SAMPLE_SIZE 64
#define CHUNK 16
#define CON_BAUD 115200
#define NUM_OUTPUTS CNN_NUM_OUTPUTS
#define I2S_RX_BUFFER_SIZE 256
#define TFT_BUFF_SIZE 50
#undef EIGHT_BIT_SAMPLES
#if SAMPLE_SIZE % CHUNK != 0
#error "not a multiple"
#endif
typedef enum { STOP = 0, SILENCE = 1, KEYWORD = 2 } mic_processing_state;
volatile uint32_t cnn_time;
static int32_t ml_data[NUM_OUTPUTS];
static q15_t ml_softmax[NUM_OUTPUTS];
uint8_t pAI85Buffer[SAMPLE_SIZE];
int32_t i2s_rx_buffer[I2S_RX_BUFFER_SIZE];
const char keywords[NUM_OUTPUTS][10] = {
    "ZERO", "ONE", "TWO", "THREE", "FOUR", "FIVE", "SIX", "SEVEN", "EIGHT", "Unknown"};
static const uint32_t voice[] = SAMPLE_INPUT_0;
static const uint32_t sample_output[] = SAMPLE_OUTPUT;
void fail(void);
uint8_t cnn_load_data(uint8_t *pIn);
uint8_t check_inference(q15_t *softmax, int32_t *data, int16_t *out, double *probability);
int32_t tot_usec = -100000;

void fail(void)
{
    printf("\n*** FAIL ***\n\n");
    while (1) {}
}
void i2s_isr(void) { MXC_I2S_ClearFlags(MXC_F_I2S_INTFL_RX_THD_CH0); }
void I2SInit(void)
{
    mxc_i2s_req_t req;
    int32_t err;
    memset(i2s_rx_buffer, 0, sizeof(i2s_rx_buffer));
    req.wordSize = MXC_I2S_DATASIZE_WORD;
    req.sampleSize = MXC_I2S_SAMPLESIZE_THIRTYTWO;
    req.justify = MXC_I2S_MSB_JUSTIFY;
    req.wsPolarity = MXC_I2S_POL_NORMAL;
    req.channelMode = MXC_I2S_INTERNAL_SCK_WS_0;
    req.stereoMode = MXC_I2S_MONO_LEFT_CH;
    req.bitOrder = MXC_I2S_MSB_FIRST;
    req.clkdiv = 5;
    req.rawData = NULL;
    req.txData = NULL;
    req.rxData = i2s_rx_buffer;
    req.length = I2S_RX_BUFFER_SIZE;
    if ((err = MXC_I2S_Init(&req)) != E_NO_ERROR) {
        printf("\nError in I2S_Init: %d\n", err);
        while (1) {}
    }
    MXC_I2S_SetRXThreshold(4);
    NVIC_SetVector(I2S_IRQn, i2s_isr);
    NVIC_EnableIRQ(I2S_IRQn);
    MXC_I2S_EnableInt(MXC_F_I2S_INTEN_RX_THD_CH0);
    MXC_I2S_RXEnable();
    __enable_irq();
}
int main(void)
{
    uint32_t sampleCounter = 0;
    mxc_tmr_unit_t units;
    uint8_t pChunkBuff[CHUNK];
    uint16_t avg = 0;
    mic_processing_state procState = STOP;

    MXC_ICC_Enable(MXC_ICC0);
    switch (CLOCK_SOURCE) {
    case 0:
        MXC_SYS_ClockSourceEnable(MXC_SYS_CLOCK_IPO);
        MXC_SYS_Clock_Select(MXC_SYS_CLOCK_IPO);
        MXC_GCR->pm &= ~MXC_F_GCR_PM_IPO_PD;
        break;
    case 1:
        MXC_SYS_ClockSourceEnable(MXC_SYS_CLOCK_ISO);
        MXC_SYS_Clock_Select(MXC_SYS_CLOCK_ISO);
        MXC_GCR->pm &= ~MXC_F_GCR_PM_ISO_PD;
        break;
    default:
        printf("UNKNOWN CLOCK SOURCE \n");
        while (1) {}
    }
    SystemCoreClockUpdate();
    printf("Keyword spotter \n%s\n", VERSION);
    printf("\n***** Init *****\n");
    memset(pAI85Buffer, 0x0, sizeof(pAI85Buffer));
    PB_Init();
    MXC_DMA_Init();
    cnn_enable(MXC_S_GCR_PCLKDIV_CNNCLKSEL_PCLK, MXC_S_GCR_PCLKDIV_CNNCLKDIV_DIV1);
    printf("\n*** CNN Inference Test ***\n");
    cnn_init();
    cnn_load_weights();
    cnn_load_bias();
    cnn_configure();
    NVIC_DisableIRQ(UART0_IRQn);
#ifdef ENABLE_MIC_PROCESSING
    I2SInit();
    if (MXC_UART_Init(MXC_UART1, CON_BAUD, MXC_UART_APB_CLK) != E_NO_ERROR) fail();
#endif
    (void) I2SInit;
    printf("\n*** READY ***\n");
    for (int i = 0; i < SAMPLE_SIZE; i += CHUNK) {
        memcpy(pChunkBuff, (const uint8_t *) voice + i, CHUNK);
        for (int j = 0; j < CHUNK; j++) {
            sampleCounter++;
            avg += abs((int8_t) pChunkBuff[j]);
            pAI85Buffer[i + j] = pChunkBuff[j];
        }
        procState = avg > 350 ? KEYWORD : SILENCE;
    }
    printf("%d Word starts from index: %d, avg:%d %d\n", (int) sampleCounter, 0, avg, procState);
    if (!cnn_load_data(pAI85Buffer)) { printf("ERROR: Loading data \n"); fail(); }
    MXC_TMR_SW_Start(MXC_TMR0);
    if (cnn_start() != CNN_OK) fail();
    while (cnn_time == 0) __WFI();
    cnn_unload((uint32_t *) ml_data);
    softmax_q17p14_q15((const q31_t *) ml_data, NUM_OUTPUTS, ml_softmax);
    MXC_TMR_GetTime(MXC_TMR0, cnn_time, (void *) &tot_usec, &units);
    switch (units) {
    case MXC_TMR_UNIT_NANOSEC: cnn_time /= 1000; break;
    case MXC_TMR_UNIT_MILLISEC: cnn_time *= 1000; break;
    case MXC_TMR_UNIT_SEC: cnn_time *= 1000000; break;
    default: break;
    }
    printf("Inference took %d us\n", (int) cnn_time);
    double probability = 0;
    int16_t out_class = -1;
    uint8_t ret = check_inference(ml_softmax, ml_data, &out_class, &probability);
    printf("----------------------------------------- \n");
    if (!ret) printf("LOW CONFIDENCE!: ");
    printf("Detected word: %s (%0.1f%%)\n", keywords[out_class], probability);
    if (out_class == 7) printf("*** PASS ***\n");
    else fail();
    while (1) {
        LED_Toggle(LED1);
        MXC_Delay(SEC(1));
        if (PB_Get(BUTTON)) break;
    }
    return E_NO_ERROR;
}
uint8_t cnn_load_data(uint8_t *pIn)
{
    uint32_t mem, i;
    mem = 0x50400000;
    for (i = 0; i < SAMPLE_SIZE; i += 4)
        memcpy32((uint32_t *)(uintptr_t) (mem + i), (uint32_t *) (pIn + i), 1);
    return CNN_OK;
}
uint8_t check_inference(q15_t *softmax, int32_t *data, int16_t *out, double *probability)
{
    int32_t temp[NUM_OUTPUTS];
    q15_t max = 0;
    int max_index = -1;
    memcpy(temp, data, sizeof(int32_t) * NUM_OUTPUTS);
    for (int i = 0; i < NUM_OUTPUTS; i++) {
        if (softmax[i] > max) { max = softmax[i]; max_index = i; }
        printf("[%+.7d] -> %.2d %6s: %.1f%%\n", (int) data[i], i, keywords[i],
               (double) 100.0 * softmax[i] / 32768.0);
    }
    if (temp[0] > 1000000) return 0;
    *probability = 100.0 * max / 32768.0;
    *out = max_index;
    return max > (q15_t) (0.5 * 32768);
}
