#include "nn_kernels.h"

/* Drops the oldest bytes of a buffer; zeros follow the newest. */
void nn_roll(int8_t *buffer, uint32_t size, uint32_t dropped)
{
    uint32_t i;

    for (i = 0; i + dropped < size; i++) {
        buffer[i] = buffer[i + dropped];
    }
    memset(buffer + (size - dropped), 0, dropped);
}
