// SPDX-License-Identifier: Apache-2.0
//
// Base-2 softmax for the outputs of the CNN accelerator.
//
// A class with output x gets 2^(x / 2^14) as its share, with the exponent rounded to the nearest
// integer; shares are scaled so that a result of 32768 would mean certainty. Outputs that are 16 or
// more halvings below the largest one count as zero. All arithmetic is 64 bits wide where 32 bits
// could overflow, and divides 32-bit numbers only.

#include "mxc.h"
#include "cnn.h"

#define ONE_SHIFT 14                      // 32-bit outputs have 14 fractional bits,
#define NARROW_SCALE 128                  // 8-bit outputs have 7, scaled or not
#define REACH ((int64_t) 16 << ONE_SHIFT) // distance from the largest output to the last counted
#define LARGEST 32767                     // Q15 has no 1.0

// Outputs of one of three kinds; one of the pointers is set.
typedef struct {
    const q31_t *wide;
    const int8_t *narrow;
    const int16_t *scaled;
} outputs_t;

static int64_t output(const outputs_t *in, uint32_t index)
{
    if (in->wide) {
        return in->wide[index];
    }
    return (int64_t) (in->narrow ? in->narrow[index] : in->scaled[index]) * NARROW_SCALE;
}

// Weight of an output that stands `above` (1 to REACH) over the smallest one that is counted
static uint32_t weight_exponent(int64_t above)
{
    return (uint32_t) ((above + (1 << (ONE_SHIFT - 1))) >> ONE_SHIFT);
}

static void softmax(const outputs_t *in, uint32_t count, q15_t *out)
{
    int64_t base = INT32_MIN;

    for (uint32_t i = 0; i < count; i++) {
        if (output(in, i) > base) {
            base = output(in, i);
        }
    }
    base -= REACH;

    // At most 65535 terms of at most 2^16: fits in 32 bits
    uint32_t sum = 0;

    for (uint32_t i = 0; base >= INT32_MIN && i < count; i++) {
        if (output(in, i) > base) {
            sum += (uint32_t) 1 << weight_exponent(output(in, i) - base);
        }
    }

    // 2^32 / sum, rounded down, without 64-bit division; nothing to divide if all are too small
    uint32_t scale = 0;

    if (sum != 0) {
        scale = UINT32_MAX / sum + (UINT32_MAX % sum == sum - 1);
    }

    for (uint32_t i = 0; i < count; i++) {
        uint32_t share = 0;

        if (sum != 0 && output(in, i) > base) {
            share = scale >> (17 - weight_exponent(output(in, i) - base));
        }
        out[i] = (q15_t) (share > LARGEST ? LARGEST : share);
    }
}

// Softmax of 32-bit outputs with 14 fractional bits.
void softmax_q17p14_q15(const q31_t *vec_in, const uint16_t dim_vec, q15_t *p_out)
{
    const outputs_t in = { vec_in, 0, 0 };

    softmax(&in, dim_vec, p_out);
}

// Same after shifting the outputs left in place, for weights of fewer than 8 bits.
void softmax_shift_q17p14_q15(q31_t *vec_in, const uint16_t dim_vec, uint8_t in_shift,
                              q15_t *p_out)
{
    for (uint32_t i = 0; i < dim_vec; i++) {
        vec_in[i] = (q31_t) ((uint32_t) vec_in[i] << in_shift);
    }
    softmax_q17p14_q15(vec_in, dim_vec, p_out);
}

// Softmax of 8-bit outputs: the same numbers with 7 fractional bits.
void softmax_q7_q15(const int8_t *vec_in, const uint16_t dim_vec, q15_t *p_out)
{
    const outputs_t in = { 0, vec_in, 0 };

    softmax(&in, dim_vec, p_out);
}

// Softmax of 8-bit outputs that were multiplied by a power of two.
void softmax_s16q7_q15(const int16_t *vec_in, const uint16_t dim_vec, q15_t *p_out)
{
    const outputs_t in = { 0, 0, vec_in };

    softmax(&in, dim_vec, p_out);
}
