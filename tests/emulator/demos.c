/*
 * The main() of a demonstration as people write it around a network: camera, display, microphone,
 * buttons, memory card, time, arithmetic with fractions. DEMO says which part runs.
 */
#include <stdlib.h>
#include <stdint.h>
#include <string.h>
#include <stdio.h>
#include <math.h>
#include "mxc.h"
#include "mxc_device.h"
#include "mxc_sys.h"
#include "mxc_delay.h"
#include "nvic_table.h"
#include "fcr_regs.h"
#include "simo_regs.h"
#include "i2s_regs.h"
#include "icc.h"
#include "i2s.h"
#include "dma.h"
#include "led.h"
#include "tmr.h"
#include "pb.h"
#include "rtc.h"
#include "uart.h"
#include "camera.h"
#include "tft_ili9341.h"
#include "tsc2046.h"
#include "bitmap.h"
#include "max9867.h"
#include "ff.h"
#include "arm_math.h"
#include "arm_nnfunctions.h"
#include "cnn.h"
#include "weights.h"

enum { CAMERA = 1, MICROPHONE = 2, CARD = 3, TIMER = 4 };
#define IMAGE_SIZE 8

volatile uint32_t cnn_time;
static uint32_t input_0[16];
static int32_t ml_data[CNN_NUM_OUTPUTS];
static q15_t ml_softmax[CNN_NUM_OUTPUTS];
static int32_t i2s_rx_buffer[64];
static volatile int i2s_flag;
int font = (int) &Liberation_Sans16x16[0];
int picture = image_bitmap_1;

void fail(void)
{
    printf("\n*** FAIL ***\n\n");
    while (1);
}

void load_input(void) { memcpy32((uint32_t *) 0x50400000, input_0, 16); }

static void classify(void)
{
    cnn_start();
    load_input();
    while (cnn_time == 0)
        __WFI();
    cnn_unload((uint32_t *) ml_data);
    softmax_q17p14_q15((const q31_t *) ml_data, CNN_NUM_OUTPUTS, ml_softmax);
    for (int i = 0; i < CNN_NUM_OUTPUTS; i++)
        printf("[%7d] -> Class %d: %d\r\n", (int) ml_data[i], i, (1000 * ml_softmax[i] + 0x4000) >> 15);
}

static void show(char *text)
{
    area_t area = {50, 290, 180, 30};
    text_t line = {text, strlen(text)};
    MXC_TFT_FillRect(&area, 0xD);
    MXC_TFT_PrintFont(55, 50, font, &line, NULL);
    MXC_TFT_ShowImage(0, 0, picture);
}

static void run_camera(void)
{
    uint8_t *raw, *data;
    uint32_t length, width, height;
    stream_stat_t *statistic;
    int id, channel;

    MXC_DMA_Init();
    channel = MXC_DMA_AcquireChannel();
    camera_init(10000000);
    if (camera_get_product_id(&id) != STATUS_OK)
        fail();
    camera_setup(IMAGE_SIZE, IMAGE_SIZE, PIXFORMAT_RGB888, FIFO_THREE_BYTE, STREAMING_DMA, channel);
    camera_write_reg(0x11, 0x80);
    MXC_TFT_Init(MXC_SPI0, 1, NULL, NULL);
    MXC_TFT_SetRotation(ROTATE_270);
    MXC_TS_Init();
    show("PRESS PB1");
    while (1) {
        camera_start_capture_image();
        while ((data = get_camera_stream_buffer()) == NULL)
            if (camera_is_image_rcv())
                break;
        camera_get_raw(&raw, &length, &width, &height);
        statistic = get_camera_stream_statistic();
        printf("%dx%d, %d bytes, overflow %d\n", width, height, length, statistic->overflow_count);
        for (int i = 0; i < 16; i++)
            input_0[i] = *(uint32_t *) (raw + 4 * i) ^ 0x80808080;
        classify();
        while (!PB_Get(0));
    }
}

static void on_sample(void)
{
    i2s_flag = 1;
    MXC_I2S->intfl |= MXC_F_I2S_INTFL_RX_THD_CH0;
}

static void run_microphone(void)
{
    mxc_i2s_req_t req;

    MXC_GCR->pm &= ~MXC_F_GCR_PM_ISO_PD;
    Microphone_Power(POWER_ON);
    req.wordSize = MXC_I2S_DATASIZE_WORD;
    req.sampleSize = MXC_I2S_SAMPLESIZE_THIRTYTWO;
    req.justify = MXC_I2S_MSB_JUSTIFY;
    req.channelMode = MXC_I2S_INTERNAL_SCK_WS_0;
    req.stereoMode = MXC_I2S_MONO_LEFT_CH;
    req.bitOrder = MXC_I2S_MSB_FIRST;
    req.wsPolarity = MXC_I2S_POL_NORMAL;
    req.clkdiv = 5;
    req.rxData = i2s_rx_buffer;
    req.length = 64;
    req.newInOtherSdk = 1;
    MXC_OTHER->control |= MXC_F_OTHER_CONTROL_EN;
    if (MXC_I2S_Init(&req) != E_NO_ERROR)
        fail();
    max9867_init(MXC_I2C1, 12288000, 1);
    NVIC_SetVector(I2S_IRQn, on_sample);
    NVIC_EnableIRQ(I2S_IRQn);
    MXC_I2S_EnableInt(MXC_F_I2S_INTEN_RX_THD_CH0);
    MXC_I2S_RXEnable();
    __enable_irq();
    while (!i2s_flag)
        MXC_LP_EnterSleepMode();
    classify();
}

static void run_card(void)
{
    static FATFS volume;
    static FIL file;
    UINT read;

    if (f_mount(&volume, "", 1) == FR_OK && f_open(&file, "image.raw", FA_READ) == FR_OK)
        f_read(&file, input_0, sizeof(input_0), &read);
    classify();
}

static uint32_t milliseconds(void)
{
    double fraction = MXC_RTC_GetSubSecond() / 4096.0;
    return 1000 * MXC_RTC_GetSecond() + (int) (fraction * 1000);
}

static void run_timer(void)
{
    const q7_t scores[4] = {20, 22, 19, -100};
    q15_t shares[4];
    float spectrum[8], wave[8];
    arm_rfft_fast_instance_f32 plan;

    MXC_RTC_Init(0, 0);
    MXC_RTC_Start();
    uint32_t begin = milliseconds();
    MXC_TMR_Delay(MXC_TMR0, MSEC(250), 0);
    while (milliseconds() - begin < 300);
    arm_softmax_q7_q15(scores, 4, shares);
    printf("%d %d %d %d\n", shares[0], shares[1], shares[2], shares[3]);
    for (int i = 0; i < 8; i++)
        wave[i] = cosf(2 * PI * i / 8) + 0.5f;
    arm_rfft_fast_init_f32(&plan, 8);
    arm_rfft_fast_f32(&plan, wave, spectrum, 0);
    printf("%.2f %.2f %.2f\n", spectrum[0], spectrum[2], spectrum[3]);
    classify();
}

int main(void)
{
    MXC_ICC_Enable(MXC_ICC0);
    MXC_SYS_ClockSourceEnable(MXC_SYS_CLOCK_IPO, 0);
    MXC_SYS_Clock_Select(MXC_SYS_CLOCK_IPO);
    SystemCoreClockUpdate();
    PB_Init();
    MXC_UART_Init(MXC_UART_GET_UART(CONSOLE_UART), 115200, MXC_UART_IBRO_CLK);
    cnn_enable(MXC_S_GCR_PCLKDIV_CNNCLKSEL_PCLK, MXC_S_GCR_PCLKDIV_CNNCLKDIV_DIV1);
    cnn_init();
    cnn_load_weights();
    cnn_load_bias();
    cnn_configure();
    switch (DEMO) {
    case CAMERA: run_camera(); break;
    case MICROPHONE: run_microphone(); break;
    case CARD: run_card(); break;
    case TIMER: run_timer(); break;
    }
    return 0;
}
