/*
 * Camera driver of the SDK: nothing is connected. An image counts as received at once, its pixels
 * are 0, and the program is said to have had no real input.
 */
#ifndef EMULATOR_CAMERA_H
#define EMULATOR_CAMERA_H

#include "mxc.h"

#define STATUS_OK 0
#define STATUS_ERROR (-1)
#define CAMERA_ID 0x2642
#define OV7692_ID 0x2692
#define OV5642_ID 0x5642
#define CAMERA_OV7692
typedef enum {
    PIXFORMAT_RGB565, PIXFORMAT_RGB888, PIXFORMAT_BAYER, PIXFORMAT_YUV422, PIXFORMAT_YUV422_MONO,
    PIXFORMAT_GREYSCALE, PIXFORMAT_GRAYSCALE = PIXFORMAT_GREYSCALE, PIXFORMAT_JPEG,
    PIXFORMAT_RGB444
} pixformat_t;
typedef enum { FIFO_FOUR_BYTE, FIFO_THREE_BYTE, FIFO_FOUR_BYTE_PACKED } fifomode_t;
typedef enum { NO_DMA, USE_DMA, STREAMING_DMA } dmamode_t;
typedef enum { CAMERA_DATA_WIDTH_8, CAMERA_DATA_WIDTH_10, CAMERA_DATA_WIDTH_12 } camera_width_t;
typedef struct {
    uint32_t dma_transfer_count, overflow_count;
} stream_stat_t;
typedef struct {
    uint8_t *raw;
    uint32_t w, h, pixel_format, imgLen;
} camera_image_t;

int camera_init();
int camera_setup();
int camera_get_slave_address(void);
int camera_get_product_id(int *id);
int camera_get_manufacture_id(int *id);
int camera_start_capture_image(void);
int camera_is_image_rcv(void);
void camera_get_raw(uint8_t **raw, uint32_t *length, uint32_t *width, uint32_t *height);
void camera_get_image(uint8_t **img, uint32_t *imgLen, uint32_t *w, uint32_t *h);
uint8_t *get_camera_stream_buffer(void);
uint8_t *camera_get_stream_buffer(void);
void release_camera_stream_buffer(void);
stream_stat_t *get_camera_stream_statistic(void);
const char *camera_get_pixel_format(void);
uint32_t camera_get_image_length(void);

#endif
