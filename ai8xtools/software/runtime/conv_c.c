#include "nn_kernels.h"

/* Any convolution: groups, dilation, transposed. Weights: int8_t in the order filter, kernel row,
 * kernel column, channel of the group. */
void nn_conv_c(const nn_conv *conv, const int8_t *const *rows, unsigned x, unsigned count,
               void *out, void *scratch)
{
    const uint32_t inputs = conv->channels / conv->groups, per_group = conv->filters / conv->groups;
    const uint32_t element = conv->flags & NN_WIDE ? 4u : 1u;
    const int32_t spread = conv->spread; /* 1: nothing is divided, not every core has it */
    const int32_t ahead = spread == 1 ? conv->dilation : conv->dilation / spread;
    const int32_t more = conv->dilation - ahead * spread;
    unsigned last = x + count;

    (void)scratch;
    for (; x < last; x++, out = (char *)out + element * conv->filters) {
        const int8_t *weights = (const int8_t *)conv->weights;
        const int32_t left = (int32_t)(x * conv->stride) - conv->pad;
        /* `left` is the place of pixel number `pixel`, plus `behind`, which may be negative */
        const int32_t pixel = spread == 1 ? left : left / spread, behind = left - pixel * spread;
        uint32_t filter, in_group = 0, first = 0;

        for (filter = 0; filter < conv->filters; filter++) {
            int32_t sum = conv->start[filter];
            unsigned row, column;

            if (in_group == per_group) {
                in_group = 0;
                first += inputs;
            }
            in_group++;
            for (row = 0; row < conv->kernel_rows; row++) {
                const int8_t *from = rows[row];
                int32_t place = pixel, rest = behind;

                if (from == NULL) {
                    weights += inputs * conv->kernel_columns;
                    continue;
                }
                for (column = 0; column < conv->kernel_columns; column++, weights += inputs) {
                    if (rest == 0 && (uint32_t)place < conv->width) { /* so none below 0 */
                        const int8_t *data = from + (uint32_t)place * conv->channels + first;
                        uint32_t i;

                        for (i = 0; i < inputs; i++) {
                            sum += (int32_t)data[i] * weights[i];
                        }
                    }
                    place += ahead;
                    rest += more;
                    if (rest >= spread) {
                        rest -= spread;
                        place++;
                    }
                }
            }
            nn_store(conv, out, filter, sum);
        }
    }
}
