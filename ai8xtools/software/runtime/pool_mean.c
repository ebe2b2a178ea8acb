#include "nn_kernels.h"

/* Averages each window. `out` may lie in front of the data that it replaces. */
void nn_pool_mean(const nn_pool *pool, const int8_t *const *rows, int8_t *out)
{
    int32_t count = (int32_t)pool->rows * pool->columns;
    uint32_t x, channel;

    for (x = 0; x < pool->width; x++) {
        for (channel = 0; channel < pool->channels; channel++) {
            int32_t sum = 0;
            unsigned row, column;

            for (row = 0; row < pool->rows; row++) {
                const int8_t *value = rows[row] + x * pool->stride * pool->channels + channel;

                for (column = 0; column < pool->columns; column++) {
                    sum += *value;
                    value += pool->dilation * pool->channels;
                }
            }
            *out++ = nn_divide(sum, count, pool->rounded);
        }
    }
}
