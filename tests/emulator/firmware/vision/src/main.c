/* A camera demonstration: camera, display, touch screen, memory card, a library of its own. */
#include <stdlib.h>
#include <stdint.h>
#include <string.h>
#include <stdio.h>
#include "mxc.h"
#include "mxc_device.h"
#include "board.h"
#include "camera.h"
#include "camera_util.h"
#include "mxc_delay.h"
#include "dma.h"
#include "sd.h"
#include "ff.h"
#include "sdhc.h"
#include "cnn.h"
#include "digits.h"
#include "embeddings.h"
#include "debug_print.h"
#include "tft_utils.h"
#define CAMERA_FREQ (5 * 1000 * 1000)
#define IMAGE_SIZE_X (IMAGE_XRES * 2)
#include "tft_st7789v.h"
extern volatile uint32_t cnn_time;
volatile uint32_t cnn_time;
extern const char *default_names[2];
static uint8_t *image; static uint32_t imgLen, w, h;
area_t area = {50, 290, 180, 30};
void fail(void) { printf("\n*** FAIL ***\n\n"); while (1); }

static uint16_t dma_line[64];
static void process_img(void)
{
    uint16_t *rgb; uint8_t *data = NULL; stream_stat_t *stat; int ret;
#if HAS_FTHR
    MXC_DMA_Init();
    int dma_channel = MXC_DMA_AcquireChannel();
    camera_init(CAMERA_FREQ);
    int slaveAddress = camera_get_slave_address();
    PR_INFO("Camera I2C slave address is %02x", slaveAddress);
    int id, mid;
    ret = camera_get_manufacture_id(&mid);
    if (ret != STATUS_OK) { PR_ERROR("id %d", ret); }
    camera_get_product_id(&id);
    ret = camera_setup(IMAGE_XRES, IMAGE_YRES, PIXFORMAT_RGB565, FIFO_FOUR_BYTE, USE_DMA,
                       dma_channel);
    if (ret != STATUS_OK) {
        PR_ERROR("Error returned from setting up camera. Error %d", ret);
        return;
    }
    camera_set_hmirror(0); camera_set_vflip(0); camera_set_brightness(1);
    camera_set_contrast(-1);
#endif
    camera_start_capture_image();
    while (!camera_is_image_rcv()) {}
    camera_get_image(&image, &imgLen, &w, &h);
    stat = get_camera_stream_statistic();
    if (stat->overflow_count > 0) { LED_On(LED2); }
    rgb = (uint16_t *) image;
    for (uint32_t i = 0; i < w * h && i < 64; i++) dma_line[i] = __REV16(rgb[i]) ^ 0x8080;
    show_camera(image, w, h);
    (void) data;
}
int main(void)
{
    FATFS fs; FIL f; FRESULT err; UINT bytes;
    Camera_Power(POWER_ON);
    MXC_Delay(300000);
    MXC_ICC_Enable(MXC_ICC0);
    MXC_SYS_Clock_Select(MXC_SYS_CLOCK_IPO);
    SystemCoreClockUpdate();
    MXC_SYS_ClockEnable(MXC_SYS_PERIPH_CLOCK_CNN);
    TFT_Intro();
    MXC_TFT_Init(MXC_SPI0, 1, NULL, NULL);
    MXC_TFT_SetRotation(SCREEN_ROTATE);
    MXC_TS_Init(); MXC_TS_AssignInterruptPin(&(mxc_gpio_cfg_t){0}); MXC_TS_Start();
    if ((err = f_mount(&fs, "", 1)) != FR_OK) PR_ERROR("mount: %d", err);
    else {
        f_open(&f, "/emb.bin", FA_READ | FA_OPEN_EXISTING);
        f_read(&f, dma_line, 128, &bytes);
        f_close(&f);
    }
    cnn_enable(MXC_S_GCR_PCLKDIV_CNNCLKSEL_PCLK, MXC_S_GCR_PCLKDIV_CNNCLKDIV_DIV1);
    cnn_init(); cnn_load_weights(); cnn_load_bias(); cnn_configure();

    process_img();
    load_input();
    cnn_start();
    while (cnn_time == 0) __WFI();
    if (check_output() != CNN_OK) fail();
    int8_t first[4]; memcpy(first, (void *) dma_line, 4);
    PR_INFO("%s", default_names[calculate_minDistance(first) == 0]);
    printf("Time %u %0.3f\n", cnn_time, (double) cnn_time / 1000);
    printf("\n*** PASS ***\n\n");
    for (;;) { process_img(); PR_INFO("again"); if (PB_IsPressedAny()) break; }
    return 0;
}
