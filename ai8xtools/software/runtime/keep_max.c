#include "nn_kernels.h"

#if defined(__ARM_FEATURE_MVE) && !defined(__ARM_BIG_ENDIAN)

#include <arm_mve.h>

static uint32_t nn_keep_max_first(int8_t *out, const int8_t *pixels, unsigned count,
                                  uint32_t channels, int again)
{
    uint32_t channel;

    for (channel = 0; channel < channels; channel += 16) {
        const mve_pred16_t some = vctp8q(channels - channel);
        const int8_t *value = pixels + channel;
        int8x16_t most = vldrbq_z_s8(again ? out + channel : value, some);
        unsigned i;

        for (i = 0; i < count; i++, value += channels) {
            most = vmaxq_s8(most, vldrbq_z_s8(value, some));
        }
        vstrbq_p_s8(out + channel, most, some);
    }
    return channels;
}

#elif defined(__ARM_FEATURE_DSP) && !defined(__ARM_BIG_ENDIAN)

/* Greatest values of four channels; SSUB8 tells SEL which ones are. */
static inline uint32_t nn_keep_max_4(uint32_t a, uint32_t b)
{
    uint32_t difference;

    __asm__("ssub8 %0, %2, %3\n\tsel %1, %2, %3" : "=&r"(difference), "=r"(a) : "r"(a), "r"(b));
    return a;
}

static uint32_t nn_keep_max_first(int8_t *out, const int8_t *pixels, unsigned count,
                                  uint32_t channels, int again)
{
    uint32_t channel;

    for (channel = 0; channel + 4 <= channels; channel += 4) {
        const int8_t *value = pixels + channel;
        uint32_t most, other;
        unsigned i = count;

        if (again) {
            __builtin_memcpy(&most, out + channel, 4);
        } else {
            __builtin_memcpy(&most, value, 4);
            value += channels;
            i--;
        }
        for (; i; i--, value += channels) {
            __builtin_memcpy(&other, value, 4);
            most = nn_keep_max_4(most, other);
        }
        __builtin_memcpy(out + channel, &most, 4);
    }
    return channel;
}

#else

static inline int32_t nn_greater(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

/* Two pixels, as windows of two columns have. */
static uint32_t nn_keep_max_first(int8_t *out, const int8_t *pixels, unsigned count,
                                  uint32_t channels, int again)
{
    const int8_t *other = pixels + channels, *end = pixels + channels;

    if (count != 2) {
        return 0;
    }
    if (again) {
        for (; pixels != end; pixels++, other++, out++) {
            *out = (int8_t)nn_greater(nn_greater(*pixels, *other), *out);
        }
    } else {
        for (; pixels != end; pixels++, other++, out++) {
            *out = (int8_t)nn_greater(*pixels, *other);
        }
    }
    return channels;
}

#endif

/* Keeps the greatest value of each channel of `count` pixels, and with `again` of `out` too. */
void nn_keep_max(int8_t *out, const int8_t *pixels, unsigned count, uint32_t channels, int again)
{
    uint32_t channel = nn_keep_max_first(out, pixels, count, channels, again);

    for (; channel < channels; channel++) {
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
