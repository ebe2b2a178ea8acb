/* Camera driver: pictures of recordings, or random ones; rows and pictures come in their time. */
#include "camera.h"
#include "emulator.h"
#include "sensors.h"

static struct {
    uint32_t width, height, bytes_per_pixel;
    uint8_t *pixels;
    stream_stat_t statistic;
} camera;

WEAK int camera_init(uint32_t freq)
{
    (void) freq;
    emulator_stand_in("camera_init");
    return STATUS_OK;
}

static uint32_t bytes_of(pixformat_t format, dmamode_t mode)
{
    return format == PIXFORMAT_BAYER ? 1 : format == PIXFORMAT_RGB888 ? (mode == NO_DMA ? 3 : 4) : 2;
}

WEAK int camera_setup(int xres, int yres, pixformat_t pixformat, fifomode_t fifo_mode,
                      dmamode_t dma_mode, int dma_channel)
{
    uint32_t rows = dma_mode == STREAMING_DMA ? 2 : (uint32_t) yres;

    (void) dma_channel;
    emulator_stand_in("camera_setup");
    if (pixformat == PIXFORMAT_RGB888 && fifo_mode != FIFO_THREE_BYTE)
        return STATUS_ERROR;
    camera.width = (uint32_t) xres;
    camera.height = (uint32_t) yres;
    camera.bytes_per_pixel = bytes_of(pixformat, dma_mode);
    free(camera.pixels);
    camera.pixels = calloc(rows * camera.width, camera.bytes_per_pixel);
    if (!camera.pixels)
        return STATUS_ERROR_ALLOCATING;
    SENSORS->width = camera.width;
    SENSORS->height = camera.height;
    SENSORS->format = (uint32_t) pixformat;
    SENSORS->pixel_bytes = camera.bytes_per_pixel;
    SENSORS->buffer = (uint32_t) (uintptr_t) camera.pixels;
    SENSORS->set_up = (uint32_t) dma_mode;
    return STATUS_OK;
}

#define OK(name, ...) \
    WEAK int name(__VA_ARGS__) { return STATUS_OK; }
OK(camera_reset, void)
OK(camera_sleep, int enable)
OK(camera_shutdown, int enable)
OK(camera_set_hmirror, int enable)
OK(camera_set_vflip, int enable)
OK(camera_set_colorbar, int enable)
OK(camera_set_contrast, int level)
OK(camera_set_brightness, int level)
OK(camera_set_saturation, int level)
WEAK int camera_get_luminance_level(int *lum)
{
    *lum = 0;
    return STATUS_OK;
}

static uint8_t registers[256];
#define CLOCK_DIVIDER 0x11
WEAK int camera_write_reg(camera_register_t reg_addr, uint8_t reg_data)
{
    registers[reg_addr & 0xFF] = reg_data;
    if (reg_addr == CLOCK_DIVIDER)
        SENSORS->divider = reg_data & 0x1F;
    return STATUS_OK;
}
WEAK int camera_read_reg(camera_register_t reg_addr, uint8_t *reg_data)
{
    *reg_data = registers[reg_addr & 0xFF];
    return STATUS_OK;
}

WEAK int camera_get_slave_address(void) { return 0x3C; }
WEAK int camera_get_product_id(int *id)
{
    *id = CAMERA_ID;
    return STATUS_OK;
}
WEAK int camera_get_manufacture_id(int *id) { return camera_get_product_id(id); }

WEAK int camera_start_capture_image(void)
{
    emulator_stand_in("camera_start_capture_image");
    SENSORS->start = 1;
    return STATUS_OK;
}
WEAK int camera_is_image_rcv(void)
{
    emulator_stand_in("camera_is_image_rcv");
    return (int) SENSORS->done;
}

WEAK uint32_t camera_get_image_length(void)
{
    return camera.width * camera.height * camera.bytes_per_pixel;
}
static void get_image(uint8_t **pixels, uint32_t *length, uint32_t *width, uint32_t *height)
{
    *pixels = camera.pixels;
    *length = camera_get_image_length();
    *width = camera.width;
    *height = camera.height;
}
WEAK void camera_get_raw(uint8_t **raw, uint32_t *length, uint32_t *width, uint32_t *height)
{
    emulator_stand_in("camera_get_raw");
    get_image(raw, length, width, height);
}
WEAK void camera_get_image(uint8_t **img, uint32_t *imgLen, uint32_t *w, uint32_t *h)
{
    emulator_stand_in("camera_get_image");
    get_image(img, imgLen, w, h);
}
WEAK uint8_t *get_camera_stream_buffer(void)
{
    emulator_stand_in("get_camera_stream_buffer");
    return (uint8_t *) (uintptr_t) SENSORS->row;
}
WEAK uint8_t *camera_get_stream_buffer(void) { return get_camera_stream_buffer(); }
WEAK void release_camera_stream_buffer(void) { SENSORS->release = 1; }
WEAK int camera_get_stream_buffer_size(void)
{
    return (int) (camera.width * camera.bytes_per_pixel);
}
WEAK stream_stat_t *get_camera_stream_statistic(void)
{
    camera.statistic.dma_transfer_count = SENSORS->rows;
    camera.statistic.overflow_count = SENSORS->overflows;
    return &camera.statistic;
}
WEAK uint8_t *camera_get_pixel_format(void)
{
    static uint8_t name[] = "RGB565";
    return name;
}
