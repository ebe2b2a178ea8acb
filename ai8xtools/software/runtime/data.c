#include "nn_kernels.h"

/* Points at `count` rows of an image from row `first` on, `step` apart; NULL where there is none.
 * Rows of a transposed convolution are `spread` apart with rows of zeros between them. */
void nn_window(const int8_t **rows, unsigned count, int32_t first, unsigned step, unsigned spread,
               const nn_image *image, const int8_t *base)
{
    unsigned i;

    for (i = 0; i < count; i++, first += (int32_t)step) {
        uint32_t row = (uint32_t)first;

        rows[i] = NULL;
        if (first < 0) {
            continue;
        }
        if (spread > 1) {
            if (row % spread != 0) {
                continue;
            }
            row /= spread;
        }
        if (row < image->rows) {
            rows[i] = base + nn_place(image, row);
        }
    }
}

/* Rows of an image of `rows` that exist before a window can be computed whose last row is
 * `bottom`. */
unsigned nn_end(int32_t bottom, unsigned spread, unsigned rows)
{
    uint32_t end;

    if (bottom < 0) {
        return 0;
    }
    end = (uint32_t)bottom + 1;
    if (spread > 1) {
        end = (uint32_t)bottom / spread + 1;
    }
    return end < rows ? (unsigned)end : rows;
}
