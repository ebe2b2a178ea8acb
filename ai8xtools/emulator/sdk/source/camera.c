/* Camera driver: pictures of recordings, or random ones; rows and pictures come in their time. */
#include "camera.h"
#include "emulator.h"
#include "mipi_camera.h"
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

static int set_up(int xres, int yres, pixformat_t pixformat, uint32_t bytes, dmamode_t dma_mode)
{
    uint32_t rows = dma_mode == STREAMING_DMA ? 2 : (uint32_t) yres;

    emulator_stand_in("camera_setup");
    camera.width = (uint32_t) xres;
    camera.height = (uint32_t) yres;
    camera.bytes_per_pixel = bytes;
    free(camera.pixels);
    camera.pixels = calloc(rows * camera.width, camera.bytes_per_pixel);
    if (!camera.pixels) {
        emulator_stand_in("no memory for camera_setup()");
        return STATUS_ERROR_ALLOCATING;
    }
    SENSORS->width = camera.width;
    SENSORS->height = camera.height;
    SENSORS->format = (uint32_t) pixformat;
    SENSORS->pixel_bytes = camera.bytes_per_pixel;
    SENSORS->buffer = (uint32_t) (uintptr_t) camera.pixels;
    SENSORS->set_up = (uint32_t) dma_mode;
    return STATUS_OK;
}
WEAK int camera_setup(int xres, int yres, pixformat_t pixformat, fifomode_t fifo_mode,
                      dmamode_t dma_mode, int dma_channel)
{
    (void) dma_channel;
    if (pixformat == PIXFORMAT_RGB888 && fifo_mode != FIFO_THREE_BYTE)
        return STATUS_ERROR;
    return set_up(xres, yres, pixformat, bytes_of(pixformat, dma_mode), dma_mode);
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

/* Colour from the pixels of the sensor, which are grey here */
static void grey(const uint8_t *srcimg, uint32_t w, uint32_t h, uint16_t *dstimg)
{
    for (uint32_t i = 0; i < w * h; i++) {
        uint32_t level = srcimg[i], pixel = level >> 3 << 11 | level >> 2 << 5 | level >> 3;
        dstimg[i] = (uint16_t) (pixel << 8 | pixel >> 8); /* the high byte first */
    }
}
WEAK void bayer_passthrough(uint8_t *srcimg, uint32_t w, uint32_t h, uint16_t *dstimg) { grey(srcimg, w, h, dstimg); }
WEAK void bayer_bilinear_demosaicing(uint8_t *srcimg, uint32_t w, uint32_t h, uint16_t *dstimg) { grey(srcimg, w, h, dstimg); }
WEAK void bayer_malvarhe_demosaicing(uint8_t *srcimg, uint32_t w, uint32_t h, uint16_t *dstimg) { grey(srcimg, w, h, dstimg); }
WEAK void color_correction(uint16_t *srcimg, uint32_t w, uint32_t h) { (void) srcimg, (void) w, (void) h; }

/* The serial camera gives each row to the program before the next one comes. */
static mxc_csi2_line_handler_cb_t line_handler;
static mxc_csi2_capture_stats_t captured;
WEAK int mipi_camera_init(mipi_camera_settings_t settings)
{
    pixel_format_t form = settings.camera_format.pixel_format;
    pixformat_t known = form == PIXEL_FORMAT_RGB565 ? PIXFORMAT_RGB565 : form == PIXEL_FORMAT_RGB888 ? PIXFORMAT_RGB888 :
                        form == PIXEL_FORMAT_RGB444 ? PIXFORMAT_RGB444 : form == PIXEL_FORMAT_YUV422 ? PIXFORMAT_YUV422 :
                        form == PIXEL_FORMAT_RAW8 ? PIXFORMAT_BAYER : PIXFORMAT_INVALID;
    if (known == PIXFORMAT_INVALID)
        return E_NOT_SUPPORTED;
    line_handler = settings.line_handler;
    return set_up(settings.width, settings.height, known, known == PIXFORMAT_RGB888 ? 3 : bytes_of(known, STREAMING_DMA), STREAMING_DMA);
}
WEAK int mipi_camera_capture(void)
{
    uint32_t length = (uint32_t) camera_get_stream_buffer_size();
    memset(&captured, 0, sizeof captured);
    captured.frame_size = length * camera.height;
    camera_start_capture_image();
    while (!camera_is_image_rcv()) {
        uint8_t *row = get_camera_stream_buffer();
        if (!row)
            continue;
        captured.bytes_captured += length;
        if (line_handler && line_handler(row, length) != E_NO_ERROR)
            return E_FAIL;
        release_camera_stream_buffer();
    }
    captured.success = captured.bytes_captured == captured.frame_size;
    return captured.success ? E_NO_ERROR : E_OVERFLOW;
}
WEAK mxc_csi2_capture_stats_t MXC_CSI2_GetCaptureStats(void) { return captured; }
WEAK mxc_csi2_capture_stats_t mipi_camera_get_capture_stats(void) { return captured; }
WEAK int mipi_camera_sleep(int sleep) { return camera_sleep(sleep); }
WEAK int mipi_camera_write_reg(uint16_t reg_addr, uint8_t reg_data) { (void) reg_addr, (void) reg_data; return STATUS_OK; }
WEAK int mipi_camera_read_reg(uint16_t reg_addr, uint8_t *reg_data)
{
    (void) reg_addr;
    *reg_data = 0;
    return STATUS_OK;
}
WEAK int mipi_camera_get_product_id(int *id)
{
    *id = 0x5640;
    return STATUS_OK;
}
