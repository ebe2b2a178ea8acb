/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights of few bits: the first code of a word in its upper bits, row after row.
 */
#include "nnb_kernels.h"

#if NNB_HAS_KERNEL(NNB_FEW_BITS)

static const int8_t nf4[] = {
    -127, -88, -67, -50, -36, -23, -12, 0, 10, 20, 31, 43, 56, 71, 92, 127
};
static const int8_t nf2[] = {-127, -38, 38, 127};

/* The integer that a code stands for. */
static int32_t value_of(uint32_t encoding, int32_t code)
{
    switch (encoding) {
    case 1: /* a sign */
        return code ? 1 : -1;
    case 2: /* sign and odd magnitude */
        return code & 2 ? -(2 * (code & 1) + 1) : 2 * (code & 1) + 1;
    case 4:
        return code & 8 ? -(2 * (code & 7) + 1) : 2 * (code & 7) + 1;
    case 9: /* two's complement, from here on */
        return -code;
    case 10:
        return code & 2 ? code - 4 : code;
    case 12:
        return code & 8 ? code - 16 : code;
    case 16:
        return code & 128 ? code - 256 : code;
    case 20: /* sign and power of two */
        return code & 8 ? -(1 << (code & 7)) : 1 << code;
    case 34:
        return nf2[code];
    default:
        return nf4[code];
    }
}

/* Ten digits to the base 3 are the fraction of 65536 that a word of 16 bits states. */
static int64_t ternary_dot(const uint8_t *row, uint32_t first, const uint8_t *x, uint32_t x_type,
                           uint32_t count)
{
    uint32_t i = first / 10 * 10, word = 0, digit;
    int64_t total = 0;

    for (; i < first + count; i++) {
        if (i % 10 == 0) {
            word = nnb_u16(row + i / 10 * 2);
        }
        word *= 3;
        digit = word >> 16;
        word &= 0xFFFFu;
        if (digit < 2 && i >= first) {
            int64_t value = nnb_load(x, x_type, i - first);
            total += digit ? -value : value;
        }
    }
    return total;
}

int64_t nnb_packed_dot(const nnb_operand *w, uint32_t row, uint32_t first, const uint8_t *x,
                       uint32_t x_type, uint32_t count)
{
    uint32_t bits = nnb_code_bits(w->about.encoding), i, word = 0;
    uint32_t length = (uint32_t)w->about.rows * w->about.columns * w->about.channels;
    const uint8_t *at;
    int64_t total = 0;

    if (w->about.encoding == 64) {
        at = w->at + (size_t)row * ((length + 9) / 10) * 2;
        return ternary_dot(at, first, x, x_type, count);
    }
    at = w->at + (size_t)row * (length / 32 * bits + (length % 32 * bits + 31) / 32) * 4;
    for (i = first; i < first + count; i++) {
        uint32_t place = i * bits % 32;
        if (place == 0 || i == first) {
            word = nnb_u32(at + ((size_t)(i / 32) * bits + i % 32 * bits / 32) * 4);
        }
        total += nnb_load(x, x_type, i - first)
                 * value_of(w->about.encoding, (int32_t)(word >> (32 - bits - place)
                                                         & ((1u << bits) - 1)));
    }
    return total;
}

#endif
