#include "nn_kernels.h"

/* Returns what stands under the kernel from input column `x` on: bytes in the order kernel row,
 * column, channel. A whole pixel is read where it is; others are gathered in `to`, with zeros
 * where there are no data and up to a multiple of four. */
const int8_t *nn_patch(const nn_conv *conv, const int8_t *const *rows, int32_t x, int8_t *to)
{
    const uint32_t size = conv->channels;
    int8_t *next = to;
    unsigned row, column;

    if (conv->kernel_rows == 1 && conv->kernel_columns == 1 && size % 4 == 0 && rows[0] != NULL &&
        x >= 0 && x < (int32_t)conv->width) {
        return rows[0] + (uint32_t)x * size;
    }
    for (row = 0; row < conv->kernel_rows; row++) {
        int32_t place = x;

        for (column = 0; column < conv->kernel_columns; column++, next += size) {
            if (rows[row] != NULL && place >= 0 && place < (int32_t)conv->width) {
                memcpy(next, rows[row] + (uint32_t)place * size, size);
            } else {
                memset(next, 0, size);
            }
            place += conv->dilation;
        }
    }
    while ((next - to) % 4) {
        *next++ = 0;
    }
    return to;
}
