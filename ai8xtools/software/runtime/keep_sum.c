#include "nn_kernels.h"

/* Adds up each channel of `count` pixels, with `again` to the sums that are there. At most 256
 * values of 8 bits become a sum of 16. */
void nn_keep_sum(nn_sum *sums, const int8_t *pixels, unsigned count, uint32_t channels, int again)
{
    uint32_t channel;

    for (channel = 0; channel < channels; channel++) {
        const int8_t *value = pixels + channel;
        int32_t sum = again ? sums[channel] : 0;
        unsigned i;

        for (i = 0; i < count; i++, value += channels) {
            sum += *value;
        }
        sums[channel] = (nn_sum)sum;
    }
}

/* Divides sums of `count` values; with `rounded` to nearest, halves away from zero, else toward
 * zero. */
void nn_mean(int8_t *out, const nn_sum *sums, uint32_t number, int32_t count, int rounded)
{
    uint32_t i;

    for (i = 0; i < number; i++) {
        out[i] = nn_divide(sums[i], count, rounded);
    }
}
