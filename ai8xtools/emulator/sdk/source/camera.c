/* Camera driver: random images, the same every time, received at once. */
#include "emulator.h"
#include "camera.h"

static struct {
    uint32_t width, height, bytes_per_pixel;
    uint8_t *pixels;
    stream_stat_t statistic;
} camera;

WEAK int camera_init()
{
    emulator_stand_in("camera_init");
    return STATUS_OK;
}

WEAK int camera_setup(int width, int height, int format)
{
    emulator_stand_in("camera_setup");
    camera.width = (uint32_t) width;
    camera.height = (uint32_t) height;
    camera.bytes_per_pixel = format == PIXFORMAT_RGB888 ? 4 : format == PIXFORMAT_RGB565 ? 2 : 1;
    free(camera.pixels);
    camera.pixels = malloc(camera_get_image_length());
    if (!camera.pixels)
        return STATUS_ERROR;
    uint32_t random = 1;
    for (uint32_t i = 0; i < camera_get_image_length(); i++) {
        random = random * 1664525 + 1013904223;
        camera.pixels[i] = (uint8_t) (random >> 24);
    }
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
    return STATUS_OK;
}
WEAK int camera_is_image_rcv(void)
{
    emulator_stand_in("camera_is_image_rcv");
    return 1;
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
    return camera.pixels; /* one row of it is asked for */
}
WEAK uint8_t *camera_get_stream_buffer(void) { return get_camera_stream_buffer(); }
WEAK void release_camera_stream_buffer(void) {}
WEAK stream_stat_t *get_camera_stream_statistic(void) { return &camera.statistic; }
WEAK const char *camera_get_pixel_format(void) { return "NONE"; }
