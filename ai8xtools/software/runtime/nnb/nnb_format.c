/* SPDX-License-Identifier: Apache-2.0
 *
 * The checks of the format, in their order. Sums are computed in 64 bits; no byte is read before it
 * is known to be there.
 */
#include "nnb_records.h"

#define MOST_ELEMENTS ((uint64_t)1 << 35) /* of one bit in a file of 2^32 bytes */

static const uint32_t crc_of_nibble[] = {
    0x00000000u, 0x1DB71064u, 0x3B6E20C8u, 0x26D930ACu, 0x76DC4190u, 0x6B6B51F4u, 0x4DB26158u,
    0x5005713Cu, 0xEDB88320u, 0xF00F9344u, 0xD6D6A3E8u, 0xCB61B38Cu, 0x9B64C2B0u, 0x86D3D2D4u,
    0xA00AE278u, 0xBDBDF21Cu
};

static uint32_t crc32(uint32_t crc, const uint8_t *data, uint32_t bytes)
{
    uint32_t i;

    for (i = 0; i < bytes; i++) {
        crc ^= data[i];
        crc = crc >> 4 ^ crc_of_nibble[crc & 15];
        crc = crc >> 4 ^ crc_of_nibble[crc & 15];
    }
    return crc;
}

static uint64_t aligned(uint64_t size)
{
    return (size + 15) & ~(uint64_t)15;
}

static nnb_status check_header(const uint8_t *blob, uint32_t size)
{
    static const uint8_t magic[] = {'N', 'N', 'B', '1'}, zeros[4] = {0};
    uint32_t i, crc, total;

    if (size < NNB_HEADER_BYTES) {
        return NNB_TRUNCATED;
    }
    for (i = 0; i < 4; i++) {
        if (blob[i] != magic[i]) {
            return NNB_MAGIC;
        }
    }
    if (nnb_u16(blob + 4) != 1) {
        return NNB_VERSION;
    }
    crc = crc32(0xFFFFFFFFu, blob, 0x14);
    crc = crc32(crc, zeros, 4);
    crc = crc32(crc, blob + 0x18, NNB_HEADER_BYTES - 0x18);
    if (~crc != nnb_u32(blob + 0x14)) {
        return NNB_HEADER_CRC;
    }
    total = nnb_u32(blob + 8);
    if (total > size || total < NNB_HEADER_BYTES || total % 16 != 0) {
        return NNB_SIZE;
    }
    crc = crc32(0xFFFFFFFFu, blob + NNB_HEADER_BYTES, total - NNB_HEADER_BYTES);
    return ~crc == nnb_u32(blob + 0x10) ? NNB_OK : NNB_BODY_CRC;
}

static int vectors_fit(const uint8_t *blob, const nnb_header *header, uint64_t end)
{
    const uint8_t *at = blob + end;
    uint64_t left, inputs, outputs;

    if (end + 16 > header->total) {
        return 0;
    }
    left = header->total - end - 16; /* a multiple of 16 */
    inputs = (uint64_t)nnb_u32(at) * nnb_u32(at + 4);
    outputs = (uint64_t)nnb_u32(at) * nnb_u32(at + 8);
    return inputs <= left && outputs <= left - aligned(inputs);
}

static int sections_fit(const uint8_t *blob, const nnb_header *h)
{
    uint64_t tensors_end = h->tensor_table + (uint64_t)NNB_TENSOR_BYTES * h->tensors;
    uint64_t layers_end = h->layer_table + (uint64_t)NNB_LAYER_BYTES * h->layers;
    uint64_t end = (uint64_t)h->data + h->data_bytes;

    if ((h->tensor_table | h->layer_table | h->data | h->data_bytes) % 16 != 0) {
        return 0;
    }
    if (h->tensor_table < NNB_HEADER_BYTES || tensors_end > h->layer_table
        || layers_end > h->data || end > h->total) {
        return 0;
    }
    return !(h->flags & NNB_HAS_VECTORS) || vectors_fit(blob, h, end);
}

/* A number below 2^48 by ten, in 32 bits: cores divide those by themselves. */
static uint64_t tenth(uint64_t number)
{
    uint32_t upper = (uint32_t)(number >> 16);
    uint32_t lower = upper % 10 << 16 | (uint32_t)(number & 0xFFFFu);

    return ((uint64_t)(upper / 10) << 16) + lower / 10;
}

/* The bytes that follow from a shape of at most MOST_ELEMENTS. */
static uint64_t bytes_of(const nnb_tensor_record *t)
{
    uint64_t one = (uint64_t)t->rows * t->columns * t->channels;

    if (t->type != NNB_PACKED) {
        return nnb_elements(t) << t->type;
    }
    if (t->encoding == 64) {
        return t->count * tenth(one + 9) * 2;
    }
    return t->count * ((one * nnb_code_bits(t->encoding) + 31) >> 5) * 4;
}

static int tensor_is_sound(const uint8_t *blob, const nnb_header *h, uint32_t number)
{
    nnb_tensor_record t;
    int reserved = nnb_read_tensor(blob, h, number, &t);
    uint64_t end = (uint64_t)h->data + h->data_bytes;

    if (reserved || t.type > NNB_PACKED || t.order > 3 || nnb_elements(&t) == 0
        || nnb_elements(&t) > MOST_ELEMENTS) {
        return 0;
    }
    if ((t.type == NNB_PACKED) != (t.encoding != 0)
        || (t.type == NNB_PACKED && nnb_code_bits(t.encoding) == 0)) {
        return 0;
    }
    if (t.bytes != bytes_of(&t) || t.first > t.last || t.last >= h->layers) {
        return 0;
    }
    return t.data == 0 || (t.data % 16 == 0 && t.data >= h->data
                           && (uint64_t)t.data + t.bytes <= end);
}

/* The layer that writes a tensor, or the number of layers if none does. */
static uint32_t writer_of(const uint8_t *blob, const nnb_header *h, uint32_t tensor)
{
    uint32_t i;

    for (i = 0; i < h->layers; i++) {
        if (nnb_u16(blob + h->layer_table + NNB_LAYER_BYTES * i + 8) == tensor) {
            return i;
        }
    }
    return h->layers;
}

/* Whether a number is that of a tensor that has data in the file, or of one that has none. */
static int is_tensor(const uint8_t *blob, const nnb_header *h, uint32_t number, int constant)
{
    return number < h->tensors
           && (nnb_u32(blob + h->tensor_table + NNB_TENSOR_BYTES * number + 12) != 0) == constant;
}

static int fields_are_sound(const uint8_t *blob, const nnb_layer *l)
{
    uint32_t last = nnb_u16(blob + 6) > 0 ? NNB_GATHER : NNB_OR; /* since version 1.1 */

    return l->op <= last && l->follow <= NNB_SHIFT_NORM && l->scheme <= 4 && !l->reserved
           && l->kernel[0] && l->kernel[1] && l->stride[0] && l->stride[1] && l->dilation[0]
           && l->dilation[1] && l->groups && l->factor >= 1;
}

static int layer_is_sound(const uint8_t *blob, const nnb_header *h, uint32_t number)
{
    nnb_layer l;
    uint32_t i, writer;

    if (nnb_read_layer(blob, h, number, &l) || l.in_count == 0 || !fields_are_sound(blob, &l)) {
        return 0;
    }
    if (!is_tensor(blob, h, l.output, 0) || writer_of(blob, h, l.output) != number
        || (l.op <= NNB_FC && l.weights == NNB_NONE)
        || (l.weights != NNB_NONE && !is_tensor(blob, h, l.weights, 1))
        || (l.bias != NNB_NONE && !is_tensor(blob, h, l.bias, 1))) {
        return 0;
    }
    for (i = 0; i < l.in_count; i++) {
        if (!is_tensor(blob, h, nnb_in(&l, i), 0)) {
            return 0;
        }
        writer = writer_of(blob, h, nnb_in(&l, i));
        if (writer >= number && writer < h->layers) {
            return 0;
        }
    }
    return nnb_shapes_fit(blob, h, &l);
}

static int within_arena(const uint8_t *blob, const nnb_header *h)
{
    nnb_tensor_record t;
    nnb_layer l;
    uint32_t i;

    for (i = 0; i < h->tensors; i++) {
        nnb_read_tensor(blob, h, i, &t);
        if (t.arena != NNB_NOT_RESIDENT && (uint64_t)t.arena + t.bytes > h->arena_bytes) {
            return 0;
        }
    }
    for (i = 0; i < h->layers; i++) {
        nnb_read_layer(blob, h, i, &l);
        if ((l.ring_bytes && (uint64_t)l.ring + l.ring_bytes > h->arena_bytes)
            || (l.staging_bytes && (uint64_t)l.staging + l.staging_bytes > h->arena_bytes)) {
            return 0;
        }
    }
    return 1;
}

nnb_status nnb_check_format(const uint8_t *blob, uint32_t size)
{
    nnb_status status = check_header(blob, size);
    nnb_header h;
    uint32_t i;

    if (status != NNB_OK) {
        return status;
    }
    h = nnb_read_header(blob);
    if (!sections_fit(blob, &h)) {
        return NNB_TABLE;
    }
    for (i = 0; i < h.tensors; i++) {
        if (!tensor_is_sound(blob, &h, i)) {
            return NNB_TENSOR;
        }
    }
    for (i = 0; i < h.layers; i++) {
        if (!layer_is_sound(blob, &h, i)) {
            return NNB_LAYER;
        }
    }
    return within_arena(blob, &h) ? NNB_OK : NNB_ARENA;
}
