/* SPDX-License-Identifier: Apache-2.0
 *
 * Records of a container as they are read from its bytes; what the parts of the reader share.
 */
#ifndef NNB_RECORDS_H
#define NNB_RECORDS_H

#include "nnb.h"

#define NNB_HEADER_BYTES 64u
#define NNB_TENSOR_BYTES 32u
#define NNB_LAYER_BYTES 64u
#define NNB_NONE 0xFFFFu
#define NNB_LISTED 0x8000u
#define NNB_NOT_RESIDENT 0xFFFFFFFFu
#define NNB_OPERANDS 16u /* of a sum, a program and the like */
#define NNB_ENCRYPTED 1u
#define NNB_PLAN 2u
#define NNB_HAS_VECTORS 8u

enum { NNB_INT8, NNB_INT16, NNB_INT32, NNB_PACKED };
enum { NNB_CHW = 1 };
enum {
    NNB_CONV, NNB_DEPTHWISE, NNB_FC, NNB_MAXPOOL, NNB_AVGPOOL, NNB_ADD, NNB_CONCAT, NNB_TRANSPOSED,
    NNB_SOFTMAX, NNB_COPY, NNB_SUB, NNB_XOR, NNB_OR, NNB_ELEMENTS, NNB_GATHER
};
enum { NNB_NOTHING, NNB_RELU, NNB_ABS, NNB_SHIFT_NORM };
#define NNB_ROUNDED 0x80u
#define NNB_HAS_KERNEL(number) ((NNB_KERNELS >> (number)) & 1u)
#define NNB_FEW_BITS 13
#define NNB_DECRYPTION 14
#define NNB_HAS_LAYER(op) NNB_HAS_KERNEL((op) > NNB_OR ? (op) + 2u : (op))
#define NNB_HAS_PROGRAMS (NNB_HAS_LAYER(NNB_ELEMENTS) || NNB_HAS_LAYER(NNB_GATHER))

/* Shifts of negative numbers are arithmetic on every compiler this is for; others are refused. */
typedef char nnb_shifts_are_arithmetic[((-3) >> 1) == -2 ? 1 : -1];

typedef struct {
    uint32_t total, flags, tensors, layers, tensor_table, layer_table, data, data_bytes, arena_bytes;
} nnb_header;

/* A layer. `inputs` are `in_count` numbers of tensors of 16 bits each, as they stand in the file. */
typedef struct {
    const uint8_t *inputs;
    uint32_t in_count;
    uint16_t output, weights, bias;
    uint8_t op, follow, rounded, scheme;
    uint8_t kernel[2], stride[2], pad[2], dilation[2]; /* rows, columns */
    uint16_t groups;
    int8_t bias_shift, out_shift;
    int32_t factor;
    uint32_t ring, ring_bytes, staging, staging_bytes;
    uint8_t reserved; /* not 0 if a reserved byte is not */
} nnb_layer;

typedef nnb_tensor_info nnb_tensor_record;

uint32_t nnb_u16(const uint8_t *at);
uint32_t nnb_u32(const uint8_t *at);
const uint8_t *nnb_blob(const nnb_model *model);
nnb_header nnb_read_header(const uint8_t *blob);
/* Returns 0, or 1 if its last four bytes are not 0. */
int nnb_read_tensor(const uint8_t *blob, const nnb_header *header, uint32_t number,
                    nnb_tensor_record *tensor);
/* Returns 0, or 1 if its inputs leave the input list. */
int nnb_read_layer(const uint8_t *blob, const nnb_header *header, uint32_t number,
                   nnb_layer *layer);
uint32_t nnb_in(const nnb_layer *layer, uint32_t number);
uint64_t nnb_elements(const nnb_tensor_record *tensor);
/* Bits of a packed weight, 16 for ternary ones in tenths, 0 if the encoding is not known. */
uint32_t nnb_code_bits(uint32_t encoding);
/* Whether the shapes of a layer fit each other. */
int nnb_shapes_fit(const uint8_t *blob, const nnb_header *header, const nnb_layer *layer);
/* Whether weights and biases of a layer fit its input and output. */
int nnb_weights_fit(const uint8_t *blob, const nnb_header *header, const nnb_layer *layer);
/* Whether a layer has a program behind its inputs that stays within its tensors. */
int nnb_program_fits(const uint8_t *blob, const nnb_header *header, const nnb_layer *layer);
/* The largest magnitude that a sum of products can have. */
uint64_t nnb_sum_limit(const nnb_tensor_record *data, const nnb_tensor_record *weights);
/* Whether the file says where all tensors stand. */
int nnb_planned(const uint8_t *blob, const nnb_header *header);
/* Bytes into which weights and biases of a layer are decrypted. */
uint64_t nnb_staging(const uint8_t *blob, const nnb_header *header, const nnb_layer *layer);
/* Whether the plan has room for them; else they stand behind all that is planned. */
int nnb_staged(const uint8_t *blob, const nnb_header *header, const nnb_layer *layer);
uint64_t nnb_arena_needed(const uint8_t *blob, const nnb_header *header);
nnb_status nnb_check_format(const uint8_t *blob, uint32_t size);
nnb_status nnb_check_executable(const uint8_t *blob, const nnb_header *header);
void nnb_decipher(uint8_t *data, uint32_t bytes, const uint8_t *key, const uint8_t *nonce,
                  uint32_t position);
/* Bytes of a block of the key stream. */
#define NNB_STREAM_BLOCK 64u
void nnb_stream_block(uint8_t *stream, const uint8_t *key, const uint8_t *nonce, uint32_t counter);

/* Poly1305 as in RFC 8439: numbers of five limbs of 26 bits. */
typedef struct {
    uint32_t sum[5], factor[5];
    const uint8_t *key;
} nnb_poly;

void nnb_poly_start(nnb_poly *poly, const uint8_t *key);
/* All but the last call with a multiple of 16 bytes. */
void nnb_poly_add(nnb_poly *poly, const uint8_t *data, uint32_t bytes);
void nnb_poly_finish(nnb_poly *poly, uint8_t *tag);

#endif
