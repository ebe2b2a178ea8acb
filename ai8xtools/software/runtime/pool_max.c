#include "nn_kernels.h"

/* Keeps the greatest value of each window. `out` may lie in front of the data that it replaces. */
void nn_pool_max(const nn_pool *pool, const int8_t *const *rows, int8_t *out)
{
    uint32_t x, channel;

    for (x = 0; x < pool->width; x++) {
        for (channel = 0; channel < pool->channels; channel++) {
            int32_t most = -128;
            unsigned row, column;

            for (row = 0; row < pool->rows; row++) {
                const int8_t *value = rows[row] + x * pool->stride * pool->channels + channel;

                for (column = 0; column < pool->columns; column++) {
                    if (*value > most) {
                        most = *value;
                    }
                    value += pool->dilation * pool->channels;
                }
            }
            *out++ = (int8_t)most;
        }
    }
}
