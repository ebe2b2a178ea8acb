/* Copies that happen when they are waited for; until then their place holds poison. In place of
 * nn_copies.c: a program that waits too late, or writes too early, fails its known-answer test. */
#include <stdio.h>
#include <stdlib.h>

#include "nn_levels.h"

#define WAITING 8192

typedef struct {
    int8_t *to;
    const int8_t *from;
    uint32_t to_step, from_step, row_bytes, rows;
} copy;

static copy waiting[3][WAITING];
static unsigned first[3], end[3];

/* Bytes of each channel, copies, and their order, for who wants to know */
unsigned long nn_copied[3], nn_started;
uint32_t nn_order;
unsigned nn_copies_left(void);

void nn_copy_start_2d(int channel, void *to, uint32_t to_step, const void *from,
                      uint32_t from_step, uint32_t row_bytes, uint32_t rows)
{
    copy *one = &waiting[channel][end[channel]++ % WAITING];
    uint32_t row;

    if (end[channel] - first[channel] > WAITING) {
        printf("too many copies\n");
        exit(2);
    }
    nn_copied[channel] += (unsigned long)row_bytes * rows;
    nn_started++;
    nn_order = nn_order * 31 + row_bytes * rows * 8 + (uint32_t)channel + 4;
    one->to = (int8_t *)to;
    one->from = (const int8_t *)from;
    one->to_step = to_step;
    one->from_step = from_step;
    one->row_bytes = row_bytes;
    one->rows = rows;
    for (row = 0; row < rows; row++) {
        memset(one->to + row * to_step, 0x55, row_bytes);
    }
}

void nn_copy_start(int channel, void *to, const void *from, uint32_t bytes)
{
    nn_copy_start_2d(channel, to, bytes, from, bytes, bytes, 1);
}

void nn_copy_wait(int channel)
{
    const copy *one = &waiting[channel][first[channel]++ % WAITING];
    uint32_t row;

    if (first[channel] > end[channel]) {
        printf("nothing to wait for\n");
        exit(2);
    }
    nn_order = nn_order * 31 + (uint32_t)channel;
    for (row = 0; row < one->rows; row++) {
        memcpy(one->to + row * one->to_step, one->from + row * one->from_step, one->row_bytes);
    }
}

/* Copies that were not waited for */
unsigned nn_copies_left(void)
{
    return end[0] - first[0] + end[1] - first[1] + end[2] - first[2];
}
