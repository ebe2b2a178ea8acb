/* SPDX-License-Identifier: Apache-2.0
 *
 * Opening a file and running its layers one after the other.
 */
#include "nnb_kernels.h"

#include <string.h>

#define WEIGHTS_CHANNEL 1

/* A run: where the input, the output and everything between them stand. */
typedef struct {
    const uint8_t *blob;
    nnb_header header;
    const uint8_t *in;
    uint8_t *out, *arena;
    const nnb_hooks *hooks;
    uint32_t input, output;
    int planned;
} run;

static int last_error;

const nnb_model *nnb_open(const void *blob, uint32_t size)
{
    nnb_header header;

    last_error = blob == NULL ? NNB_ARGUMENT : nnb_check_format(blob, size);
    if (last_error == NNB_OK) {
        header = nnb_read_header(blob);
        last_error = nnb_check_executable(blob, &header);
    }
    return last_error == NNB_OK ? (const nnb_model *)blob : NULL;
}

int nnb_error(void)
{
    return last_error;
}

const char *nnb_name(int status)
{
    static const char *const names[] = {
        "ok", "truncated", "magic", "version", "header_crc", "size", "body_crc", "table", "tensor",
        "layer", "arena", "unsupported", "overflow", "overlap", "key", "memory", "vectors",
        "argument", "tag"
    };

    return (unsigned)status <= NNB_TAG ? names[status] : "?";
}

uint32_t nnb_arena_bytes(const nnb_model *model)
{
    nnb_header header = nnb_read_header(nnb_blob(model));

    return (uint32_t)nnb_arena_needed(nnb_blob(model), &header);
}

int nnb_tensor(const nnb_model *model, uint32_t number, nnb_tensor_info *info)
{
    nnb_header header = nnb_read_header(nnb_blob(model));

    if (number >= header.tensors) {
        return NNB_ARGUMENT;
    }
    nnb_read_tensor(nnb_blob(model), &header, number, info);
    return NNB_OK;
}

uint32_t nnb_output(const nnb_model *model)
{
    nnb_header header = nnb_read_header(nnb_blob(model));
    nnb_layer layer;

    nnb_read_layer(nnb_blob(model), &header, header.layers - 1, &layer);
    return layer.output;
}

uint32_t nnb_input(const nnb_model *model)
{
    nnb_header header = nnb_read_header(nnb_blob(model));
    nnb_layer layer;

    nnb_read_layer(nnb_blob(model), &header, 0, &layer);
    return nnb_in(&layer, 0); /* before the first layer there is nothing else to read */
}

/* Where a tensor stands that the arena holds: where the plan says, or behind those before it;
 * no tensor: behind all of them. */
static uint8_t *in_arena(const run *r, uint32_t tensor)
{
    uint8_t *at = r->arena;
    nnb_tensor_record t;
    nnb_layer l;
    uint32_t i;

    if (r->planned && tensor == NNB_NONE) {
        return r->arena + (((size_t)r->header.arena_bytes + 15) & ~(size_t)15);
    }
    if (r->planned) {
        nnb_read_tensor(r->blob, &r->header, tensor, &t);
        return r->arena + t.arena;
    }
    for (i = 0; i + 1 < r->header.layers; i++) {
        nnb_read_layer(r->blob, &r->header, i, &l);
        if (l.output == tensor) {
            break;
        }
        nnb_read_tensor(r->blob, &r->header, l.output, &t);
        at += ((size_t)t.bytes + 15) & ~(size_t)15;
    }
    return at;
}

static nnb_operand operand(const run *r, uint32_t tensor)
{
    nnb_operand result;

    nnb_read_tensor(r->blob, &r->header, tensor, &result.about);
    result.at = tensor == r->input ? r->in : tensor == r->output ? r->out : in_arena(r, tensor);
    return result;
}

/* Weights or biases: in the file, or decrypted behind `*staging`, which is moved on. */
static nnb_operand constant(const run *r, uint32_t tensor, uint8_t **staging)
{
    nnb_operand result;
    uint32_t bytes;

    memset(&result, 0, sizeof result);
    if (tensor == NNB_NONE) {
        return result;
    }
    nnb_read_tensor(r->blob, &r->header, tensor, &result.about);
    result.at = r->blob + result.about.data;
    bytes = result.about.bytes;
    if (!(r->header.flags & NNB_ENCRYPTED)) {
        return result;
    }
#if NNB_HAS_KERNEL(NNB_DECRYPTION)
    if (r->hooks->copy_start != NULL) {
        r->hooks->copy_start(WEIGHTS_CHANNEL, *staging, result.at, bytes);
        r->hooks->copy_wait(WEIGHTS_CHANNEL);
    } else {
        memcpy(*staging, result.at, bytes);
    }
    nnb_decipher(*staging, bytes, r->hooks->key, r->blob + 0x34,
                 result.about.data - r->header.data);
#endif
    result.at = *staging;
    *staging += ((size_t)bytes + 15) & ~(size_t)15;
    return result;
}

static int64_t joined(uint32_t op, int64_t value, int64_t other)
{
    switch (op) {
    case NNB_ADD:
        return value + other;
    case NNB_SUB:
        return value - other;
    case NNB_XOR:
        return value ^ other;
    default:
        return value | other;
    }
}

/* Operands element by element; a copy has one. */
static void join(const run *r, const nnb_job *job)
{
    const uint8_t *at[NNB_OPERANDS];
    uint8_t type[NNB_OPERANDS];
    uint32_t count = (uint32_t)nnb_elements(&job->output), i, k;

    for (k = 0; k < job->layer->in_count; k++) {
        nnb_operand x = operand(r, nnb_in(job->layer, k));
        at[k] = x.at;
        type[k] = x.about.type;
    }
    for (i = 0; i < count; i++) {
        int64_t value = nnb_load(at[0], type[0], i);
        for (k = 1; k < job->layer->in_count; k++) {
            value = joined(job->layer->op, value, nnb_load(at[k], type[k], i));
        }
        nnb_store(job, i, value);
    }
}

static void concatenate(const run *r, const nnb_job *job)
{
    uint32_t pixels = (uint32_t)job->output.rows * job->output.columns, first = 0, i, k, c;

    for (k = 0; k < job->layer->in_count; k++) {
        nnb_operand x = operand(r, nnb_in(job->layer, k));
        for (i = 0; i < pixels; i++) {
            for (c = 0; c < x.about.channels; c++) {
                nnb_store(job, i * job->output.channels + first + c,
                          nnb_load(x.at, x.about.type, i * x.about.channels + c));
            }
        }
        first += x.about.channels;
    }
}

#if NNB_HAS_PROGRAMS
static void execute(const run *r, nnb_job *job, uint8_t *staging)
{
    nnb_operand operands[NNB_OPERANDS];
    uint32_t k;

    for (k = 0; k < job->layer->in_count; k++) {
        operands[k] = operand(r, nnb_in(job->layer, k));
    }
    job->weights = constant(r, job->layer->weights, &staging);
    nnb_program(job, operands);
}
#endif

static void run_layer(const run *r, uint32_t number)
{
    uint8_t *staging;
    nnb_layer layer;
    nnb_operand x;
    nnb_job job;

    nnb_read_layer(r->blob, &r->header, number, &layer);
    staging = nnb_staged(r->blob, &r->header, &layer) ? r->arena + layer.staging
                                                      : in_arena(r, NNB_NONE);
    x = operand(r, nnb_in(&layer, 0));
    job.layer = &layer;
    job.output = operand(r, layer.output).about;
    job.out = layer.output == r->output ? r->out : in_arena(r, layer.output);
    switch (layer.op) {
    case NNB_MAXPOOL:
    case NNB_AVGPOOL:
        nnb_pool(&job, &x);
        break;
    case NNB_SOFTMAX:
        nnb_softmax(&job, &x);
        break;
    case NNB_CONCAT:
        concatenate(r, &job);
        break;
    case NNB_CONV:
    case NNB_DEPTHWISE:
    case NNB_FC:
    case NNB_TRANSPOSED:
        job.weights = constant(r, layer.weights, &staging);
        job.bias = constant(r, layer.bias, &staging);
        nnb_sums(&job, &x);
        break;
#if NNB_HAS_PROGRAMS
    case NNB_ELEMENTS:
    case NNB_GATHER:
        execute(r, &job, staging);
        break;
#endif
    default:
        join(r, &job);
    }
}

int nnb_run(const nnb_model *model, const void *in, void *out, void *arena, const nnb_hooks *hooks)
{
    static const nnb_hooks nothing;
    uint32_t i;
    run r;

    if (model == NULL || in == NULL || out == NULL
        || (arena == NULL && nnb_arena_bytes(model) > 0)) {
        return NNB_ARGUMENT;
    }
    r.blob = nnb_blob(model);
    r.header = nnb_read_header(r.blob);
    r.hooks = hooks == NULL ? &nothing : hooks;
    if ((r.header.flags & NNB_ENCRYPTED) && r.hooks->key == NULL) {
        return NNB_KEY;
    }
    if (r.hooks->arena_bytes && r.hooks->arena_bytes < nnb_arena_bytes(model)) {
        return NNB_MEMORY;
    }
    r.in = in;
    r.out = out;
    r.arena = arena;
    r.input = nnb_input(model);
    r.output = nnb_output(model);
    r.planned = nnb_planned(r.blob, &r.header);
    for (i = 0; i < r.header.layers; i++) {
        run_layer(&r, i);
    }
    return NNB_OK;
}

static const uint8_t *vectors_of(const nnb_model *model)
{
    nnb_header header = nnb_read_header(nnb_blob(model));

    return nnb_blob(model) + header.data + header.data_bytes;
}

/* The number of test vectors that the file states; none without a byte. */
static uint32_t stated_vectors(const nnb_model *model)
{
    const uint8_t *at = vectors_of(model);

    if (!(nnb_read_header(nnb_blob(model)).flags & NNB_HAS_VECTORS)
        || (nnb_u32(at + 4) | nnb_u32(at + 8)) == 0) {
        return 0;
    }
    return nnb_u32(at);
}

uint32_t nnb_vectors(const nnb_model *model)
{
    uint32_t stated = stated_vectors(model);
    nnb_tensor_info in, out;

    nnb_tensor(model, nnb_input(model), &in);
    nnb_tensor(model, nnb_output(model), &out);
    if (stated == 0 || nnb_u32(vectors_of(model) + 4) != in.bytes
        || nnb_u32(vectors_of(model) + 8) != out.bytes) {
        return 0;
    }
    return stated;
}

const void *nnb_vector_input(const nnb_model *model, uint32_t number)
{
    const uint8_t *at = vectors_of(model);

    return at + 16 + (size_t)number * nnb_u32(at + 4);
}

const void *nnb_vector_output(const nnb_model *model, uint32_t number)
{
    const uint8_t *at = vectors_of(model);
    size_t inputs = (size_t)nnb_u32(at) * nnb_u32(at + 4);

    return at + 16 + ((inputs + 15) & ~(size_t)15) + (size_t)number * nnb_u32(at + 8);
}

int nnb_verify(const nnb_model *model, void *out, void *arena, const nnb_hooks *hooks)
{
    uint32_t i, count = nnb_vectors(model);
    nnb_tensor_info output;
    int status;

    if (count != stated_vectors(model)) {
        return NNB_VECTORS;
    }
    nnb_tensor(model, nnb_output(model), &output);
    for (i = 0; i < count; i++) {
        status = nnb_run(model, nnb_vector_input(model, i), out, arena, hooks);
        if (status != NNB_OK) {
            return status;
        }
        if (memcmp(out, nnb_vector_output(model, i), output.bytes) != 0) {
            return NNB_VECTORS;
        }
    }
    return NNB_OK;
}
