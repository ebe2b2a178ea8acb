#include "nn_kernels.h"

/* Depthwise convolution with Helium (MVE): one pixel of 16 channels at a time.
 *
 * Products of even and of odd channels are added up in 16 bits; the generator has proven that
 * `flush` of them fit, whichever they are. Then they go into sums of 32 bits.
 *
 * Weights: int8_t in the order kernel row, kernel column, channel; 16 channels at least. Outputs
 * are only shifted right and limited.
 */

#define NN_BLOCK 16u

#if defined(__ARM_FEATURE_MVE) && !defined(__ARM_BIG_ENDIAN)

#include <arm_mve.h>

/* Adds products of 16 channels at `count` places of the kernel that are in one row; `step` and
 * `channels` are the distances of data and of weights. */
static inline void nn_mve_row(int16x8_t *even, int16x8_t *odd, const int8_t *data, uint32_t step,
                              const int8_t *weights, uint32_t channels, uint32_t count)
{
    __asm__ volatile("wls lr, %[count], 2f\n"
                     "1:\n"
                     "vldrb.8 q0, [%[data]]\n"
                     "add %[data], %[data], %[step]\n"
                     "vldrb.8 q1, [%[weights]]\n"
                     "add %[weights], %[weights], %[channels]\n"
                     "vmullb.s8 q2, q0, q1\n"
                     "vadd.i16 %q[even], %q[even], q2\n"
                     "vmullt.s8 q0, q0, q1\n"
                     "vadd.i16 %q[odd], %q[odd], q0\n"
                     "le lr, 1b\n"
                     "2:\n"
                     : [even] "+w"(*even), [odd] "+w"(*odd), [data] "+r"(data),
                       [weights] "+r"(weights)
                     : [step] "r"(step), [channels] "r"(channels), [count] "r"(count)
                     : "q0", "q1", "q2", "lr", "memory");
}

/* Returns those of 16 sums whose numbers are `first`, and 4, 8 and 12 more. */
static inline int32x4_t nn_mve_every_fourth(const int32_t *sums)
{
    return vldrwq_gather_shifted_offset_s32(sums, vidupq_n_u32(0, 4));
}

/* Writes sums of 32 bits with those of 16 added. */
static inline void nn_mve_widen(int32_t *to, const int32_t *from, int16x8_t even, int16x8_t odd)
{
    int32x4_t part[4];
    unsigned i;

    part[0] = vmovlbq_s16(even);
    part[1] = vmovlbq_s16(odd);
    part[2] = vmovltq_s16(even);
    part[3] = vmovltq_s16(odd);
    for (i = 0; i < 4; i++) {
        vstrwq_scatter_shifted_offset_s32(to + i, vidupq_n_u32(0, 4),
                                          vaddq_s32(part[i], nn_mve_every_fourth(from + i)));
    }
}

static inline void nn_mve_block(const nn_conv *conv, const int8_t *const *rows, uint32_t place,
                         unsigned first, unsigned last, uint32_t channel, int8_t *pixel)
{
    const uint32_t channels = conv->channels, step = conv->dilation * channels;
    const int8_t *weights = (const int8_t *)conv->weights + first * channels + channel;
    const int8_t *const *const end = rows + conv->kernel_rows;
    const int32_t right = -conv->right, *sum = conv->start + channel;
    int16x8_t even = vdupq_n_s16(0), odd = even;
    int32_t wide[NN_BLOCK];
    int32x4_t first_sums, third;
    uint32_t room = conv->flush;

    for (; rows != end; rows++, weights += conv->kernel_columns * channels) {
        uint32_t at = place + channel, left = *rows != NULL ? last - first : 0;
        const int8_t *weight = weights;

        while (left > room) {
            nn_mve_row(&even, &odd, *rows + at, step, weight, channels, room);
            nn_mve_widen(wide, sum, even, odd);
            sum = wide;
            even = odd = vdupq_n_s16(0);
            at += room * step;
            weight += room * channels;
            left -= room;
            room = conv->flush;
        }
        nn_mve_row(&even, &odd, *rows + at, step, weight, channels, left);
        room -= left;
    }
    first_sums = vaddq_s32(vmovlbq_s16(even), nn_mve_every_fourth(sum));
    third = vaddq_s32(vmovltq_s16(even), nn_mve_every_fourth(sum + 2));
    even = vqmovntq_s32(vqmovnbq_s32(even, vshlq_r_s32(first_sums, right)), vshlq_r_s32(third, right));
    first_sums = vaddq_s32(vmovlbq_s16(odd), nn_mve_every_fourth(sum + 1));
    third = vaddq_s32(vmovltq_s16(odd), nn_mve_every_fourth(sum + 3));
    odd = vqmovntq_s32(vqmovnbq_s32(odd, vshlq_r_s32(first_sums, right)), vshlq_r_s32(third, right));
    vstrbq_s8(pixel + channel, vmaxq_s8(vqmovntq_s16(vqmovnbq_s16(vdupq_n_s8(0), even), odd),
                                        vdupq_n_s8(conv->low)));
}

#else

static inline void nn_mve_block(const nn_conv *conv, const int8_t *const *rows, uint32_t place,
                         unsigned first, unsigned last, uint32_t channel, int8_t *pixel)
{
    const uint32_t channels = conv->channels, end = channel + NN_BLOCK;

    for (; channel < end; channel++) {
        const int8_t *weights = (const int8_t *)conv->weights + channel;
        int32_t sum = conv->start[channel];
        unsigned row, column;

        for (row = 0; row < conv->kernel_rows; row++) {
            for (column = first; rows[row] != NULL && column < last; column++) {
                const uint32_t at = place + (column - first) * conv->dilation * channels;

                sum += (int32_t)rows[row][at + channel] *
                       weights[(row * conv->kernel_columns + column) * channels];
            }
        }
        nn_store(conv, pixel, channel, sum);
    }
}

#endif

void nn_depthwise_mve(const nn_conv *conv, const int8_t *const *rows, unsigned x, unsigned count,
                      void *out, void *scratch)
{
    const uint32_t channels = conv->channels, last_block = channels - NN_BLOCK;
    const int32_t dilation = conv->dilation, width = conv->width;
    int32_t at = (int32_t)(x * conv->stride) - conv->pad;
    int8_t *pixel = (int8_t *)out;

    (void)scratch;
    for (; count; count--, at += conv->stride, pixel += channels) {
        unsigned first = 0, last = conv->kernel_columns; /* columns of the kernel in the image */
        int32_t place = at, end = at + (int32_t)(last - 1) * dilation;
        uint32_t channel;

        for (; first < last && place < 0; place += dilation) {
            first++;
        }
        for (; first < last && end >= width; end -= dilation) {
            last--;
        }
        for (channel = 0; channel < channels; channel += NN_BLOCK) {
            channel = channel < last_block ? channel : last_block; /* some are computed again */
            nn_mve_block(conv, rows, (uint32_t)place * channels, first, last, channel, pixel);
        }
    }
}
