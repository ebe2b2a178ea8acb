/* One layer on MAX78000, written by hand for the tests of the emulator. */
#ifndef CNN_H
#define CNN_H
#include <stdint.h>
#define CNN_FAIL 0
#define CNN_OK 1
extern volatile uint32_t cnn_time;
int cnn_enable(uint32_t clock_source, uint32_t clock_divider);
int cnn_disable(void);
int cnn_init(void);
int cnn_load_weights(void);
int cnn_load_bias(void);
int cnn_configure(void);
int cnn_start(void);
int cnn_unload(uint32_t *out_buf);
#endif
