#include "nn_kernels.h"

/* Copies `count` runs of `length` bytes. */
void nn_copy(int8_t *to, uint32_t to_step, const int8_t *from, uint32_t from_step, uint32_t length,
             uint32_t count)
{
    for (; count > 0; count--, to += to_step, from += from_step) {
        memcpy(to, from, length);
    }
}
