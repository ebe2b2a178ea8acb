/*
 * Camera driver of the SDK. What it delivers is a recording, or random.
 */
#ifndef EMULATOR_CAMERA_H
#define EMULATOR_CAMERA_H

#include "mxc.h"

#define STATUS_OK 0
#define STATUS_ERROR (-1)
#define STATUS_ERROR_ALLOCATING (-10)
#define CAMERA_ID 0x2642
#define OV7692_ID 0x2692
#define OV5642_ID 0x5642
#ifndef CAMERA_OV7692
#define CAMERA_OV7692
#endif
typedef enum {
    PIXFORMAT_INVALID, PIXFORMAT_GRAYSCALE, PIXFORMAT_RGB444, PIXFORMAT_RGB565, PIXFORMAT_RGB888,
    PIXFORMAT_YUV422, PIXFORMAT_BAYER, PIXFORMAT_YUV422_MONO, PIXFORMAT_JPEG,
    PIXFORMAT_GREYSCALE = PIXFORMAT_GRAYSCALE
} pixformat_t;
typedef enum { FIFO_THREE_BYTE, FIFO_FOUR_BYTE, FIFO_FOUR_BYTE_PACKED } fifomode_t;
typedef enum { NO_DMA, USE_DMA, STREAMING_DMA } dmamode_t;
typedef enum { CAMERA_DATA_WIDTH_8, CAMERA_DATA_WIDTH_10, CAMERA_DATA_WIDTH_12 } camera_width_t;
typedef struct {
    uint32_t dma_transfer_count, overflow_count;
} stream_stat_t;
typedef struct {
    uint8_t *raw;
    uint32_t w, h, pixel_format, imgLen;
} camera_image_t;
#if defined(CAMERA_OV7692) || defined(CAMERA_PAG7920)
typedef uint8_t camera_register_t;
#else
typedef uint16_t camera_register_t;
#endif

int camera_init(uint32_t freq);
int camera_setup(int xres, int yres, pixformat_t pixformat, fifomode_t fifo_mode,
                 dmamode_t dma_mode, int dma_channel);
int camera_reset(void);
int camera_sleep(int enable);
int camera_shutdown(int enable);
int camera_set_hmirror(int enable);
int camera_set_vflip(int enable);
int camera_set_colorbar(int enable);
int camera_set_contrast(int level);
int camera_set_brightness(int level);
int camera_set_saturation(int level);
int camera_get_luminance_level(int *lum);
int camera_write_reg(camera_register_t reg_addr, uint8_t reg_data);
int camera_read_reg(camera_register_t reg_addr, uint8_t *reg_data);
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
int camera_get_stream_buffer_size(void);
stream_stat_t *get_camera_stream_statistic(void);
uint8_t *camera_get_pixel_format(void);
uint32_t camera_get_image_length(void);
void bayer_passthrough(uint8_t *srcimg, uint32_t w, uint32_t h, uint16_t *dstimg);
void bayer_bilinear_demosaicing(uint8_t *srcimg, uint32_t w, uint32_t h, uint16_t *dstimg);
void bayer_malvarhe_demosaicing(uint8_t *srcimg, uint32_t w, uint32_t h, uint16_t *dstimg);
void color_correction(uint16_t *srcimg, uint32_t w, uint32_t h);

#endif
