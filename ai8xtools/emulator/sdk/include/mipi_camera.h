/*
 * Driver of the camera that sends rows serially. What it delivers is a recording, or random.
 */
#ifndef EMULATOR_MIPI_CAMERA_H
#define EMULATOR_MIPI_CAMERA_H

#include "mxc.h"

typedef enum {
    PIXEL_FORMAT_BYPASS, PIXEL_FORMAT_YUV420, PIXEL_FORMAT_YUV422, PIXEL_FORMAT_RGB444,
    PIXEL_FORMAT_RGB555, PIXEL_FORMAT_RGB565, PIXEL_FORMAT_RGB666, PIXEL_FORMAT_RGB888,
    PIXEL_FORMAT_RAW6, PIXEL_FORMAT_RAW7, PIXEL_FORMAT_RAW8, PIXEL_FORMAT_RAW10,
    PIXEL_FORMAT_RAW12, PIXEL_FORMAT_RAW14, PIXEL_FORMAT_RAW16, PIXEL_FORMAT_RAW20
} pixel_format_t;
typedef enum {
    PIXEL_ORDER_DEFAULT, PIXEL_ORDER_RAW_BGGR, PIXEL_ORDER_RAW_GBRG, PIXEL_ORDER_RAW_GRBG,
    PIXEL_ORDER_RAW_RGGB, PIXEL_ORDER_RGB565_BGR, PIXEL_ORDER_RGB565_RGB, PIXEL_ORDER_RGB565_GRB,
    PIXEL_ORDER_RGB565_BRG, PIXEL_ORDER_RGB565_GBR, PIXEL_ORDER_RGB565_RBG
} pixel_order_t;
typedef int (*mxc_csi2_line_handler_cb_t)(uint8_t *data, unsigned int len);
typedef struct {
    pixel_format_t pixel_format;
    pixel_order_t pixel_order;
} mipi_camera_format_t;
typedef struct {
    int width, height;
    mipi_camera_format_t camera_format;
    mxc_csi2_line_handler_cb_t line_handler;
} mipi_camera_settings_t;
typedef struct {
    bool success;
    uint32_t ctrl_err, ppi_err, vfifo_err;
    size_t frame_size, bytes_captured;
} mxc_csi2_capture_stats_t;
int mipi_camera_init(mipi_camera_settings_t settings);
int mipi_camera_capture(void);
int mipi_camera_sleep(int sleep);
int mipi_camera_get_product_id(int *id);
int mipi_camera_write_reg(uint16_t reg_addr, uint8_t reg_data);
int mipi_camera_read_reg(uint16_t reg_addr, uint8_t *reg_data);
mxc_csi2_capture_stats_t mipi_camera_get_capture_stats(void);
mxc_csi2_capture_stats_t MXC_CSI2_GetCaptureStats(void);

#endif
