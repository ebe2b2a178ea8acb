#include "nn_kernels.h"

/* Keeps the greatest value of each channel of `count` pixels, and with `again` of `out` too. */
void nn_keep_max(int8_t *out, const int8_t *pixels, unsigned count, uint32_t channels, int again)
{
    uint32_t channel;

    for (channel = 0; channel < channels; channel++) {
        const int8_t *value = pixels + channel;
        int32_t most = again ? out[channel] : *value;
        unsigned i;

        for (i = 0; i < count; i++, value += channels) {
            if (*value > most) {
                most = *value;
            }
        }
        out[channel] = (int8_t)most;
    }
}
