/* Displays and touch screens of the boards: nothing is shown. */
#ifndef EMULATOR_TFT_H
#define EMULATOR_TFT_H

#include "mxc.h"

typedef struct {
    uint16_t x, y, w, h;
} area_t;
typedef struct {
    char *data;
    unsigned int len;
} text_t;
typedef enum {
    ROTATE_0, ROTATE_90, ROTATE_180, ROTATE_270, ROTATE_0F, ROTATE_90F, ROTATE_180F, ROTATE_270F,
    SCREEN_ROTATE = ROTATE_90, SCREEN_FLIP = ROTATE_180
} tft_rotation_t;
typedef struct {
    uint16_t width, height, cspf_page_sel;
    const uint8_t *data;
} tft_bitmap_t;
enum {
    BLACK, NAVY, DARK_GREEN, DARK_CYAN, MAROON, PURPLE, OLIVE, LIGHT_GREY, DARK_GREY, BLUE, GREEN, CYAN,
    RED, MAGENTA, YELLOW, WHITE, ORANGE, GREEN_YELLOW, GREY
};
#define RGB(r, g, b) RGB565(r, g, b)
#define RGB565(r, g, b) ((((r) & 0xF8) << 8) | (((g) & 0xFC) << 3) | ((b) >> 3))
#define DISPLAY_WIDTH 320
#define DISPLAY_HEIGHT 240
int MXC_TS_GetKey(void);

#endif
