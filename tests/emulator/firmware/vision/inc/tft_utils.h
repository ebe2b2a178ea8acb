#ifndef T
#define T
#include <stdint.h>
void TFT_Intro(void);
void TFT_Print(char *str, int x, int y, int font, int length);
void show_camera(uint8_t *p, int w, int h);
#endif
