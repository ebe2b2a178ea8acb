#include "nn_kernels.h"

/* Convolution on cores that do not multiply: data are added up in buckets, by the nibbles of weights.
 *
 * A weight is 16 * h + l with l in 0..15 and h in -8..7. All data whose weights have the same l go to
 * one bucket, those with the same h to another; at the end a bucket counts as often as its nibble
 * says, which running sums do without multiplying. Two pixels share a word, v = x0 + x1 * 2^16; after
 * at most 256 inputs the sums in both halves still are 16-bit numbers, whatever the data are.
 *
 * Weights: uint8_t in the order filter, kernel row, kernel column, channel. `flush` is the number of
 * nibbles that weights have: 2, or 1 if all of them are in -8..7. Scratch: a word for each input.
 */

#define NN_NOMUL_LONGEST 256u
#define NN_NOMUL_HALF 0x8000u
#define NN_NOMUL_BIAS 0x80008000u

typedef uint32_t NN_ALIAS nn_nomul_pair;

/* Adds to the sums of both pixels each bucket as often as its number says, and empties them. Where
 * nibbles are signed, bucket 8 is -8. Running sums of buckets have 16 bits for each pixel, and begin
 * with 2^15 in both halves, so that the lower one never borrows from the upper one. */
#if defined(__GNUC__)
__attribute__((noinline)) /* gets all registers */
#endif
static void nn_nomul_empty(uint32_t *buckets, uint32_t *sums, int negative, unsigned left)
{
    uint32_t run = NN_NOMUL_BIAS, words = 0, uppers = 0, *bucket = buckets + 15;

    do {
        run += *bucket;
        *bucket-- = 0;
        words += run;
        uppers += run >> 16;
    } while (bucket != buckets + 7);
    if (negative) {
        words -= (run - NN_NOMUL_BIAS) << 4;
        uppers -= ((run >> 16) - NN_NOMUL_HALF) << 4;
    }
    do {
        run += *bucket;
        *bucket-- = 0;
        words += run;
        uppers += run >> 16;
    } while (bucket != buckets);
    sums[0] += (words - (uppers << 16) - 15 * NN_NOMUL_HALF) << left;
    sums[1] += (uppers - 15 * NN_NOMUL_HALF) << left;
}

#define NN_NOMUL_ADD(number)                                                                       \
    pair = data[number];                                                                           \
    weight = weights[number];                                                                      \
    low[weight & 15] += pair;                                                                      \
    high[weight >> 4] += pair;

/* Sums of two pixels by a filter; `low` are 32 buckets, which are empty before and after but for those
 * of nibble 0, which nobody reads. */
static void nn_nomul_filter(const nn_nomul_pair *data, const uint8_t *weights, uint32_t inputs,
                            unsigned nibbles, uint32_t *low, uint32_t *sums)
{
    uint32_t *const high = low + 16;

    while (inputs) {
        const uint32_t length = inputs < NN_NOMUL_LONGEST ? inputs : NN_NOMUL_LONGEST;
        const uint8_t *end = weights + length;

        inputs -= length;
        if (nibbles == 2) {
            const uint8_t *const twos = weights + (length & ~1u);
            uint32_t pair;
            unsigned weight;

            for (; weights != twos; data += 2, weights += 2) {
                NN_NOMUL_ADD(0)
                NN_NOMUL_ADD(1)
            }
            if (weights != end) {
                NN_NOMUL_ADD(0)
                data++;
                weights++;
            }
            nn_nomul_empty(low, sums, 0, 0);
            nn_nomul_empty(high, sums, 1, 4);
        } else {
            for (; weights != end; data++) {
                low[*weights++ & 15] += *data;
            }
            nn_nomul_empty(low, sums, 1, 0);
        }
    }
}

/* Joins `size` values of two pixels that are `distance` apart, from place `first` of a row on; bit p
 * of `inside` tells that pixel p is part of the row. */
static nn_nomul_pair *nn_nomul_join(nn_nomul_pair *to, const int8_t *row, int32_t first,
                                    uint32_t size, int32_t distance, unsigned inside)
{
    nn_nomul_pair *end = to + size;

    while (!inside && to != end) { /* there may be no data */
        *to++ = 0;
    }
    for (; to != end; first++) {
        uint32_t pair = inside & 1 ? (uint32_t)(int32_t)row[first] : 0;

        *to++ = pair + (inside & 2 ? (uint32_t)(int32_t)row[first + distance] << 16 : 0);
    }
    return to;
}

/* Gathers the patches under the kernel from input column `x` on, and of the pixel that follows. */
static void nn_nomul_patch(const nn_conv *conv, const int8_t *const *rows, int32_t x,
                           nn_nomul_pair *to, unsigned pixels)
{
    const uint32_t channels = conv->channels;
    const int32_t columns = conv->kernel_columns, step = conv->dilation, width = conv->width;
    const int32_t stride = conv->stride, distance = stride * (int32_t)channels;
    const uint32_t size = (uint32_t)columns * channels;
    unsigned row;

    for (row = 0; row < conv->kernel_rows; row++) {
        int32_t column, place = x;

        if (rows[row] == NULL) {
            to = nn_nomul_join(to, NULL, 0, size, 0, 0);
            continue;
        }
        if (pixels == 2 && step == 1 && x >= 0 && x + stride + columns <= width) {
            to = nn_nomul_join(to, rows[row], x * (int32_t)channels, size, distance, 3);
            continue;
        }
        for (column = 0; column < columns; column++, place += step) {
            unsigned inside = place >= 0 && place < width;

            inside |= pixels == 2 && place + stride >= 0 && place + stride < width ? 2 : 0;
            to = nn_nomul_join(to, rows[row], place * (int32_t)channels, channels, distance,
                               inside);
        }
    }
}

void nn_conv_nomul(const nn_conv *conv, const int8_t *const *rows, unsigned x, unsigned count,
                   void *out, void *scratch)
{
    const uint32_t size = conv->filters << (conv->flags & NN_WIDE ? 2 : 0);
    const uint32_t inputs = conv->channels * conv->kernel_rows * conv->kernel_columns;
    nn_nomul_pair *data = (nn_nomul_pair *)scratch;
    int8_t *pixel = (int8_t *)out;
    uint32_t buckets[32] = {0};

    while (count) {
        const uint8_t *weights = (const uint8_t *)conv->weights;
        const unsigned pixels = count > 1 ? 2 : 1;
        uint32_t filter;

        nn_nomul_patch(conv, rows, (int32_t)(x * conv->stride) - conv->pad, data, pixels);
        for (filter = 0; filter < conv->filters; filter++, weights += inputs) {
            uint32_t sums[2];

            sums[0] = sums[1] = (uint32_t)conv->start[filter];
            nn_nomul_filter(data, weights, inputs, conv->flush, buckets, sums);
            nn_store(conv, pixel, filter, (int32_t)sums[0]);
            if (pixels == 2) {
                nn_store(conv, pixel + size, filter, (int32_t)sums[1]);
            }
        }
        x += pixels;
        count -= pixels;
        pixel += pixels == 2 ? 2 * size : size;
    }
}
