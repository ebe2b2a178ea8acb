/* SPDX-License-Identifier: Apache-2.0
 *
 * net: ai8xize.py --device MCU --checkpoint-file /tmp/pytest-of-root/pytest-148/popen-gw0/test_wrong_usage_words5___mcu_0/net.pth.tar --prefix net --test-dir out
 *
 * A value is an integer of 8 bits times 2^-k: CNN_INPUT_K, CNN_OUTPUT_K. Maps are in the order
 * row, column, channel. One inference at a time: all memory is static.
 */
#ifndef CNN_H
#define CNN_H

#include <stdint.h>

#define CNN_OK 0

/* Number of values, and bytes that they take */
#define CNN_IN_SIZE 144
#define CNN_OUT_SIZE 3
#define CNN_OUT_BYTES 3
#define CNN_INPUT_K (4)
#define CNN_OUTPUT_K (-2)
/* Static memory of all data; weights in flash; products of an inference */
#define CNN_ARENA_BYTES 2220
#define CNN_FLASH_BYTES 2100
#define CNN_MACS 93867u

extern int16_t cnn_arena[CNN_ARENA_BYTES / 2];

/* Call once before the first inference; returns CNN_OK. */
int cnn_init(void);

/* Computes the output of an input, which may be in flash; returns CNN_OK. */
int cnn_run(const int8_t *in, int8_t *out);

#endif
