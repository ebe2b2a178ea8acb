#include "board.h"
#include "mxc_device.h"
#include "mxc_delay.h"
#include "utils.h"
#include "tft_utils.h"
#ifdef TFT_ADAFRUIT
#include "adafruit_3315_tft.h"
#include "adafruit_3315_touch.h"
#elif defined(TFT_NEWHAVEN)
#include "tft_st7789v.h"
#endif
static int font_1 = (int) (uintptr_t) &Liberation_Sans16x16[0];
void TFT_Print(char *str, int x, int y, int font, int length)
{
    text_t text;
    text.data = str; text.len = length;
    MXC_TFT_PrintFont(x, y, font ? font : font_1, &text, NULL);
}
void TFT_Intro(void)
{
    MXC_TFT_ClearScreen();
    MXC_TFT_SetForeGroundColor(WHITE);
    MXC_TFT_SetBackGroundColor(4);
    TFT_Print("FACES", 50, 40, font_1, 5);
}
void show_camera(uint8_t *p, int w, int h)
{
    MXC_TFT_ShowImageCameraRGB565(0, 0, p, w, h);
    MXC_TFT_WritePixel(1, 2, 3, 4, 5);
    MXC_TFT_Rectangle(&(area_t){1, 2, 3, 4}, RED);
}
