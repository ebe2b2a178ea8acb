/* SPDX-License-Identifier: Apache-2.0
 *
 * ChaCha20 as in RFC 8439: additions, exclusive ors and rotations of 32 bits, no tables.
 */
#include "nnb_records.h"

static uint32_t rotated(uint32_t value, int bits)
{
    return value << bits | value >> (32 - bits);
}

static void quarter(uint32_t *s, int a, int b, int c, int d)
{
    s[a] += s[b];
    s[d] = rotated(s[d] ^ s[a], 16);
    s[c] += s[d];
    s[b] = rotated(s[b] ^ s[c], 12);
    s[a] += s[b];
    s[d] = rotated(s[d] ^ s[a], 8);
    s[c] += s[d];
    s[b] = rotated(s[b] ^ s[c], 7);
}

void nnb_stream_block(uint8_t *stream, const uint8_t *key, const uint8_t *nonce, uint32_t counter)
{
    uint32_t start[16] = {0x61707865u, 0x3320646Eu, 0x79622D32u, 0x6B206574u}, s[16], value;
    int i;

    for (i = 0; i < 8; i++) {
        start[4 + i] = nnb_u32(key + 4 * i);
    }
    start[12] = counter;
    for (i = 0; i < 3; i++) {
        start[13 + i] = nnb_u32(nonce + 4 * i);
    }
    for (i = 0; i < 16; i++) {
        s[i] = start[i];
    }
    for (i = 0; i < 10; i++) {
        quarter(s, 0, 4, 8, 12);
        quarter(s, 1, 5, 9, 13);
        quarter(s, 2, 6, 10, 14);
        quarter(s, 3, 7, 11, 15);
        quarter(s, 0, 5, 10, 15);
        quarter(s, 1, 6, 11, 12);
        quarter(s, 2, 7, 8, 13);
        quarter(s, 3, 4, 9, 14);
    }
    for (i = 0; i < 16; i++) {
        value = s[i] + start[i];
        stream[4 * i] = (uint8_t)value;
        stream[4 * i + 1] = (uint8_t)(value >> 8);
        stream[4 * i + 2] = (uint8_t)(value >> 16);
        stream[4 * i + 3] = (uint8_t)(value >> 24);
    }
}

/* `position` counts bytes from the start of the data section, which is block 1. */
void nnb_decipher(uint8_t *data, uint32_t bytes, const uint8_t *key, const uint8_t *nonce,
                  uint32_t position)
{
    uint8_t stream[NNB_STREAM_BLOCK];
    uint32_t i, at;

    for (i = 0; i < bytes; i++) {
        at = position + i;
        if (i == 0 || at % NNB_STREAM_BLOCK == 0) {
            nnb_stream_block(stream, key, nonce, 1 + at / NNB_STREAM_BLOCK);
        }
        data[i] ^= stream[at % NNB_STREAM_BLOCK];
    }
}
