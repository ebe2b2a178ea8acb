/* SPDX-License-Identifier: Apache-2.0
 *
 * The tag behind an encrypted file: Poly1305 with a key from block 0 of ChaCha20, over all bytes in
 * front of the data and behind them, then the data as they are stored, then both sizes (RFC 8439).
 */
#include "nnb_records.h"

#include <string.h>

#define LIMBS 5
#define LIMB_MASK 0x3FFFFFFu
#define BLOCK 16u

/* 16 bytes, and the bit behind them, as limbs. */
static void limbs_of(uint32_t *limbs, const uint8_t *bytes, uint32_t above)
{
    limbs[0] = nnb_u32(bytes) & LIMB_MASK;
    limbs[1] = nnb_u32(bytes + 3) >> 2 & LIMB_MASK;
    limbs[2] = nnb_u32(bytes + 6) >> 4 & LIMB_MASK;
    limbs[3] = nnb_u32(bytes + 9) >> 6 & LIMB_MASK;
    limbs[4] = nnb_u32(bytes + 12) >> 8 | above << 24;
}

void nnb_poly_start(nnb_poly *poly, const uint8_t *key)
{
    static const uint32_t clamp[LIMBS] = {0x3FFFFFFu, 0x3FFFF03u, 0x3FFC0FFu, 0x3F03FFFu, 0xFFFFFu};
    int i;

    memset(poly, 0, sizeof *poly);
    limbs_of(poly->factor, key, 0);
    for (i = 0; i < LIMBS; i++) {
        poly->factor[i] &= clamp[i];
    }
    poly->key = key;
}

/* sum = sum * factor modulo 2^130 - 5, limbs below 2^27 */
static void multiply(nnb_poly *poly)
{
    uint32_t product_limbs[LIMBS];
    uint64_t carry = 0, product;
    int i, k;

    for (i = 0; i < LIMBS; i++) {
        product = carry;
        for (k = 0; k < LIMBS; k++) { /* 2^130 is 5 */
            uint32_t other = k > i ? 5 * poly->factor[i - k + LIMBS] : poly->factor[i - k];
            product += (uint64_t)poly->sum[k] * other;
        }
        product_limbs[i] = (uint32_t)product & LIMB_MASK;
        carry = product >> 26;
    }
    carry = product_limbs[0] + 5 * carry;
    product_limbs[0] = (uint32_t)carry & LIMB_MASK;
    product_limbs[1] += (uint32_t)(carry >> 26);
    memcpy(poly->sum, product_limbs, sizeof product_limbs);
}

void nnb_poly_add(nnb_poly *poly, const uint8_t *data, uint32_t bytes)
{
    uint8_t last[BLOCK];
    uint32_t limbs[LIMBS], i;

    while (bytes > 0) {
        if (bytes >= BLOCK) {
            limbs_of(limbs, data, 1);
        } else {
            memset(last, 0, sizeof last);
            memcpy(last, data, bytes);
            last[bytes] = 1;
            limbs_of(limbs, last, 0);
        }
        for (i = 0; i < LIMBS; i++) {
            poly->sum[i] += limbs[i];
        }
        multiply(poly);
        i = bytes < BLOCK ? bytes : BLOCK;
        data += i;
        bytes -= i;
    }
}

void nnb_poly_finish(nnb_poly *poly, uint8_t *tag)
{
    uint32_t less[LIMBS], carry, mask, i, k;
    uint32_t *sum = poly->sum;
    uint64_t word = 0;

    for (k = 0; k < 2; k++) { /* limbs of 26 bits */
        carry = 0;
        for (i = 0; i < LIMBS; i++) {
            sum[i] += carry;
            carry = sum[i] >> 26;
            sum[i] &= LIMB_MASK;
        }
        sum[0] += 5 * carry;
    }
    carry = 5; /* without the modulus, if that is not below 0 */
    for (i = 0; i < LIMBS; i++) {
        less[i] = sum[i] + carry;
        carry = less[i] >> 26;
        less[i] &= LIMB_MASK;
    }
    mask = 0u - carry;
    for (i = 0; i < LIMBS; i++) {
        sum[i] = (sum[i] & ~mask) | (less[i] & mask);
    }
    for (i = 0; i < 4; i++) {
        word += (uint64_t)((sum[i] >> (6 * i)) | (sum[i + 1] << (26 - 6 * i)))
                + nnb_u32(poly->key + 16 + 4 * i);
        for (k = 0; k < 4; k++) {
            tag[4 * i + k] = (uint8_t)(word >> (8 * k));
        }
        word >>= 32;
    }
}

#if NNB_HAS_KERNEL(NNB_DECRYPTION)
static void compute_tag(const uint8_t *blob, const nnb_header *h, const uint8_t *key, uint8_t *tag)
{
    uint8_t stream[NNB_STREAM_BLOCK], sizes[BLOCK] = {0};
    uint32_t end = h->data + h->data_bytes, around = h->total - h->data_bytes, i;
    nnb_poly poly;

    nnb_stream_block(stream, key, blob + 0x34, 0);
    nnb_poly_start(&poly, stream);
    nnb_poly_add(&poly, blob, h->data); /* all sections are multiples of 16 bytes */
    nnb_poly_add(&poly, blob + end, h->total - end);
    nnb_poly_add(&poly, blob + h->data, h->data_bytes);
    for (i = 0; i < 4; i++) {
        sizes[i] = (uint8_t)(around >> (8 * i));
        sizes[8 + i] = (uint8_t)(h->data_bytes >> (8 * i));
    }
    nnb_poly_add(&poly, sizes, sizeof sizes);
    nnb_poly_finish(&poly, tag);
}

int nnb_authenticate(const nnb_model *model, uint32_t size, const uint8_t *key)
{
    static const uint8_t mark[BLOCK] = "NNB1-Poly1305\0\0";
    const uint8_t *blob = nnb_blob(model);
    nnb_header header;
    uint8_t tag[BLOCK];
    uint32_t i, different = 0;

    if (model == NULL || key == NULL) {
        return NNB_ARGUMENT;
    }
    header = nnb_read_header(blob);
    if (!(header.flags & NNB_ENCRYPTED) || size < header.total
        || size - header.total < 2 * BLOCK || memcmp(blob + header.total, mark, BLOCK) != 0) {
        return NNB_TAG;
    }
    compute_tag(blob, &header, key, tag);
    for (i = 0; i < BLOCK; i++) { /* in the same time wherever they differ */
        different |= (uint32_t)(tag[i] ^ blob[header.total + BLOCK + i]);
    }
    return different ? NNB_TAG : NNB_OK;
}
#endif
