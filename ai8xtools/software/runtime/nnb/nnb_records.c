/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads header, tensors and layers from their bytes, whatever the byte order of the core.
 */
#include "nnb_records.h"

uint32_t nnb_u16(const uint8_t *at)
{
    return at[0] | (uint32_t)at[1] << 8;
}

uint32_t nnb_u32(const uint8_t *at)
{
    return nnb_u16(at) | nnb_u16(at + 2) << 16;
}

static int8_t signed8(uint8_t value)
{
    return (int8_t)(value < 128 ? value : (int)value - 256);
}

const uint8_t *nnb_blob(const nnb_model *model)
{
    return (const uint8_t *)model;
}

nnb_header nnb_read_header(const uint8_t *blob)
{
    nnb_header header;

    header.total = nnb_u32(blob + 0x08);
    header.flags = nnb_u32(blob + 0x0C);
    header.tensors = nnb_u32(blob + 0x18);
    header.layers = nnb_u32(blob + 0x1C);
    header.tensor_table = nnb_u32(blob + 0x20);
    header.layer_table = nnb_u32(blob + 0x24);
    header.data = nnb_u32(blob + 0x28);
    header.data_bytes = nnb_u32(blob + 0x2C);
    header.arena_bytes = nnb_u32(blob + 0x30);
    return header;
}

int nnb_read_tensor(const uint8_t *blob, const nnb_header *header, uint32_t number,
                    nnb_tensor_record *tensor)
{
    const uint8_t *at = blob + header->tensor_table + NNB_TENSOR_BYTES * number;

    tensor->type = at[0];
    tensor->order = at[1];
    tensor->fraction = signed8(at[2]);
    tensor->encoding = at[3];
    tensor->rows = (uint16_t)nnb_u16(at + 4);
    tensor->columns = (uint16_t)nnb_u16(at + 6);
    tensor->channels = (uint16_t)nnb_u16(at + 8);
    tensor->count = (uint16_t)nnb_u16(at + 10);
    tensor->data = nnb_u32(at + 12);
    tensor->bytes = nnb_u32(at + 16);
    tensor->arena = nnb_u32(at + 20);
    tensor->first = (uint16_t)nnb_u16(at + 24);
    tensor->last = (uint16_t)nnb_u16(at + 26);
    return nnb_u32(at + 28) != 0;
}

static int find_inputs(const uint8_t *blob, const nnb_header *header, const uint8_t *at,
                       nnb_layer *layer)
{
    uint32_t first = nnb_u16(at), second = nnb_u16(at + 2);
    uint32_t list = header->layer_table + NNB_LAYER_BYTES * header->layers;

    layer->inputs = at;
    layer->in_count = (first != NNB_NONE) + (second != NNB_NONE);
    if (second != NNB_NONE && (second & NNB_LISTED)) {
        layer->in_count = second & ~NNB_LISTED;
        if (first + layer->in_count > (header->data - list) / 2) {
            return 1;
        }
        layer->inputs = blob + list + 2 * first;
    } else if (first == NNB_NONE) {
        layer->inputs = at + 2;
    }
    return 0;
}

int nnb_read_layer(const uint8_t *blob, const nnb_header *header, uint32_t number, nnb_layer *layer)
{
    const uint8_t *at = blob + header->layer_table + NNB_LAYER_BYTES * number;
    uint32_t i;

    layer->op = at[0];
    layer->follow = (uint8_t)(at[1] & ~NNB_ROUNDED);
    layer->rounded = (at[1] & NNB_ROUNDED) != 0;
    layer->scheme = at[2];
    layer->output = (uint16_t)nnb_u16(at + 8);
    layer->weights = (uint16_t)nnb_u16(at + 10);
    layer->bias = (uint16_t)nnb_u16(at + 12);
    for (i = 0; i < 2; i++) {
        layer->kernel[i] = at[14 + i];
        layer->stride[i] = at[16 + i];
        layer->pad[i] = at[18 + i];
        layer->dilation[i] = at[20 + i];
    }
    layer->groups = (uint16_t)nnb_u16(at + 22);
    layer->bias_shift = signed8(at[24]);
    layer->out_shift = signed8(at[25]);
    /* a negative factor is refused: it becomes 0 */
    layer->factor = nnb_u32(at + 28) > 0x7FFFFFFFu ? 0 : (int32_t)nnb_u32(at + 28);
    layer->ring = nnb_u32(at + 40);
    layer->ring_bytes = nnb_u32(at + 44);
    layer->staging = nnb_u32(at + 48);
    layer->staging_bytes = nnb_u32(at + 52);
    layer->reserved = (nnb_u16(at + 38) | nnb_u32(at + 56) | nnb_u32(at + 60)) != 0;
    return find_inputs(blob, header, at + 4, layer);
}

uint32_t nnb_in(const nnb_layer *layer, uint32_t number)
{
    return nnb_u16(layer->inputs + 2 * number);
}

uint64_t nnb_elements(const nnb_tensor_record *tensor)
{
    return (uint64_t)tensor->count * tensor->rows * tensor->columns * tensor->channels;
}

uint32_t nnb_code_bits(uint32_t encoding)
{
    switch (encoding) {
    case 1:
    case 9:
        return 1;
    case 2:
    case 10:
    case 34:
        return 2;
    case 4:
    case 12:
    case 20:
    case 36:
        return 4;
    case 16:
        return 8;
    case 64:
        return 16;
    default:
        return 0;
    }
}
