/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels over the layer table. The file has been checked: every shape fits, no sum overflows.
 */
#ifndef NNB_KERNELS_H
#define NNB_KERNELS_H

#include "nnb_records.h"

#include <stddef.h>

/* A tensor and where its values stand. */
typedef struct {
    nnb_tensor_record about;
    const uint8_t *at;
} nnb_operand;

/* What a layer computes with, besides its inputs. `weights.at` and `bias.at` may be NULL. */
typedef struct {
    const nnb_layer *layer;
    nnb_operand weights, bias;
    nnb_tensor_record output;
    uint8_t *out;
} nnb_job;

int64_t nnb_load(const uint8_t *at, uint32_t type, uint32_t index);
/* Limit a value to the type of the output, do what follows, and store it. */
void nnb_store(const nnb_job *job, uint32_t index, int64_t value);
/* The sum of products of `count` data and packed weights, of a row of them from `first` on. */
int64_t nnb_packed_dot(const nnb_operand *weights, uint32_t row, uint32_t first,
                       const uint8_t *data, uint32_t type, uint32_t count);
void nnb_sums(const nnb_job *job, const nnb_operand *x);
void nnb_pool(const nnb_job *job, const nnb_operand *x);
/* Shares of 128 of 2 to the power of the values, all of them together. */
void nnb_softmax(const nnb_job *job, const nnb_operand *x);
/* What the program of a layer makes of its operands. */
void nnb_program(const nnb_job *job, const nnb_operand *operands);

#endif
