/* SPDX-License-Identifier: Apache-2.0
 *
 * What the reader must know before it computes: kernels that it has, sums that fit, memory that
 * nothing else uses. The file has passed the checks of the format.
 */
#include "nnb_records.h"

#define LARGEST_SUM_UPPER ((uint64_t)1 << 29) /* of 2^61, in units of 2^32 */
#define LONGEST_SHIFT 30

static uint64_t aligned(uint64_t size)
{
    return (size + 15) & ~(uint64_t)15;
}

static int sums(const nnb_layer *l)
{
    return l->op <= NNB_FC || l->op == NNB_TRANSPOSED;
}

/* Whether a tensor stands in another order than CHW, or in one that is the same. */
static int orderly(const nnb_tensor_record *t)
{
    return t->order != NNB_CHW || t->channels == 1 || (uint32_t)t->rows * t->columns == 1;
}

static int plain(const nnb_tensor_record *t)
{
    return t->type != NNB_PACKED && t->count == 1 && orderly(t);
}

static int same_shape(const nnb_tensor_record *a, const nnb_tensor_record *b)
{
    return a->rows == b->rows && a->columns == b->columns && a->channels == b->channels;
}

static int sums_supported(const uint8_t *blob, const nnb_header *h, const nnb_layer *l,
                          const nnb_tensor_record *x, const nnb_tensor_record *y)
{
    nnb_tensor_record w, b;

    if (l->in_count > 1 || x->type > NNB_INT16 || l->weights == NNB_NONE) {
        return 0;
    }
    nnb_read_tensor(blob, h, l->weights, &w);
    if (w.type == NNB_PACKED ? !NNB_HAS_KERNEL(NNB_FEW_BITS) : w.type > NNB_INT16) {
        return 0;
    }
    if (!orderly(&w) || l->bias_shift < 0 || l->bias_shift > LONGEST_SHIFT
        || l->out_shift > LONGEST_SHIFT || l->out_shift < -LONGEST_SHIFT) {
        return 0;
    }
    if (l->bias != NNB_NONE) {
        nnb_read_tensor(blob, h, l->bias, &b);
        if (b.type == NNB_PACKED || nnb_elements(&b) != y->channels) {
            return 0;
        }
    }
    if (l->op != NNB_FC && (x->channels % l->groups || y->channels % l->groups)) {
        return 0;
    }
    return l->op != NNB_TRANSPOSED || nnb_weights_fit(blob, h, l);
}

/* Whether operands of the same shape, or concatenated ones, make the output. */
static int operands_fit(const uint8_t *blob, const nnb_header *h, const nnb_layer *l,
                        const nnb_tensor_record *y)
{
    nnb_tensor_record x;
    uint32_t i, channels = 0;

    for (i = 0; i < l->in_count; i++) {
        nnb_read_tensor(blob, h, nnb_in(l, i), &x);
        channels += x.channels;
        if (l->op == NNB_CONCAT ? x.rows != y->rows || x.columns != y->columns
                                : !same_shape(&x, y)) {
            return 0;
        }
    }
    return l->op != NNB_CONCAT || channels == y->channels;
}

/* Whether every window of pooling has a pixel: it begins at most half of it before the first. */
static int pads(const nnb_layer *l, int axis)
{
    return l->pad[axis] == 0 || (l->dilation[axis] == 1 && 2 * l->pad[axis] <= l->kernel[axis]);
}

static int supported(const uint8_t *blob, const nnb_header *h, const nnb_layer *l)
{
    nnb_tensor_record x, y;
    uint32_t i;

    nnb_read_tensor(blob, h, l->output, &y);
    if (!NNB_HAS_LAYER(l->op) || !plain(&y)) {
        return 0;
    }
    for (i = l->in_count; i-- > 0;) { /* the first one is used below */
        nnb_read_tensor(blob, h, nnb_in(l, i), &x);
        if (!plain(&x)) {
            return 0;
        }
    }
    if (l->follow == NNB_SHIFT_NORM
        && (l->op != NNB_FC || y.type != NNB_INT8 || l->bias_shift || l->out_shift)) {
        return 0;
    }
    if (sums(l)) {
        return sums_supported(blob, h, l, &x, &y);
    }
    if (l->op == NNB_AVGPOOL && x.type > NNB_INT16) {
        return 0;
    }
    if (l->op == NNB_MAXPOOL || l->op == NNB_AVGPOOL) {
        return pads(l, 0) && pads(l, 1) && l->in_count == 1 && x.type == y.type;
    }
    if (l->op == NNB_SOFTMAX) {
        return l->in_count == 1 && x.type == NNB_INT8 && y.type == NNB_INT8
               && (uint32_t)x.rows * x.columns == 1 && same_shape(&x, &y);
    }
#if NNB_HAS_PROGRAMS
    if (l->op > NNB_OR) {
        return nnb_program_fits(blob, h, l);
    }
#endif
    if (l->op == NNB_COPY) {
        return l->in_count == 1 && nnb_elements(&x) == nnb_elements(&y);
    }
    return (l->op == NNB_CONCAT || l->in_count <= NNB_OPERANDS) && operands_fit(blob, h, l, &y);
}

static int sums_fit(const uint8_t *blob, const nnb_header *h, const nnb_layer *l)
{
    nnb_tensor_record x, w;
    uint64_t limit, lower, upper;

    nnb_read_tensor(blob, h, nnb_in(l, 0), &x);
    nnb_read_tensor(blob, h, l->weights, &w);
    limit = nnb_sum_limit(&x, &w);
    /* the product of 96 bits, without a division */
    lower = (limit & 0xFFFFFFFFu) * (uint32_t)l->factor;
    upper = (limit >> 32) * (uint32_t)l->factor + (lower >> 32);
    return upper < LARGEST_SUM_UPPER || (upper == LARGEST_SUM_UPPER && (uint32_t)lower == 0);
}

static int lives(const uint8_t *blob, const nnb_header *h, uint32_t tensor, uint32_t layer)
{
    nnb_tensor_record t;

    if (tensor == NNB_NONE) {
        return 1;
    }
    nnb_read_tensor(blob, h, tensor, &t);
    return t.first <= layer && layer <= t.last;
}

static int lives_are_true(const uint8_t *blob, const nnb_header *h)
{
    nnb_layer l;
    uint32_t i, k;

    for (i = 0; i < h->layers; i++) {
        nnb_read_layer(blob, h, i, &l);
        if (!lives(blob, h, l.output, i) || !lives(blob, h, l.weights, i)
            || !lives(blob, h, l.bias, i)) {
            return 0;
        }
        for (k = 0; k < l.in_count; k++) {
            if (!lives(blob, h, nnb_in(&l, k), i)) {
                return 0;
            }
        }
    }
    return 1;
}

/* Whether constants are the same or apart. */
static int constants_are_apart(const uint8_t *blob, const nnb_header *h)
{
    nnb_tensor_record a, b;
    uint32_t i, k;

    for (i = 0; i < h->tensors; i++) {
        nnb_read_tensor(blob, h, i, &a);
        for (k = 0; a.data && k < i; k++) {
            nnb_read_tensor(blob, h, k, &b);
            if (b.data && a.data < b.data + b.bytes && b.data < a.data + a.bytes
                && (a.data != b.data || a.bytes != b.bytes)) {
                return 0;
            }
        }
    }
    return 1;
}

/* Something in the arena: the output of a layer, or with `staged` its decrypted weights. */
typedef struct {
    uint64_t start, end;
    uint32_t first, last;
} area;

static area area_of(const uint8_t *blob, const nnb_header *h, uint32_t layer, int staged)
{
    nnb_tensor_record t;
    nnb_layer l;
    area place;

    nnb_read_layer(blob, h, layer, &l);
    if (staged) {
        place.start = l.staging;
        place.end = place.start + (nnb_staged(blob, h, &l) ? nnb_staging(blob, h, &l) : 0);
        place.first = place.last = layer;
        return place;
    }
    nnb_read_tensor(blob, h, l.output, &t);
    place.start = t.arena;
    place.end = place.start + (layer + 1 < h->layers ? t.bytes : 0); /* the last is not in it */
    place.first = t.first;
    place.last = t.last;
    return place;
}

static int places_are_apart(const uint8_t *blob, const nnb_header *h)
{
    uint32_t i, k;

    for (i = 0; i < 2 * h->layers; i++) {
        area a = area_of(blob, h, i / 2, i % 2);
        for (k = 0; a.start < a.end && k < i; k++) {
            area b = area_of(blob, h, k / 2, k % 2);
            if (a.first <= b.last && b.first <= a.last && a.start < b.end && b.start < a.end) {
                return 0;
            }
        }
    }
    return 1;
}

int nnb_planned(const uint8_t *blob, const nnb_header *h)
{
    nnb_tensor_record t;
    nnb_layer l;
    uint32_t i;

    for (i = 0; i + 1 < h->layers; i++) {
        nnb_read_layer(blob, h, i, &l);
        nnb_read_tensor(blob, h, l.output, &t);
        if (t.arena == NNB_NOT_RESIDENT) {
            return 0;
        }
    }
    return (h->flags & NNB_PLAN) != 0;
}

uint64_t nnb_staging(const uint8_t *blob, const nnb_header *h, const nnb_layer *l)
{
    nnb_tensor_record t;
    uint64_t bytes = 0;

    if (!(h->flags & NNB_ENCRYPTED)) {
        return 0;
    }
    if (l->weights != NNB_NONE) {
        nnb_read_tensor(blob, h, l->weights, &t);
        bytes = aligned(t.bytes);
    }
    if (l->bias != NNB_NONE) {
        nnb_read_tensor(blob, h, l->bias, &t);
        bytes += aligned(t.bytes);
    }
    return bytes;
}

int nnb_staged(const uint8_t *blob, const nnb_header *h, const nnb_layer *l)
{
    return nnb_planned(blob, h) && nnb_staging(blob, h, l) <= l->staging_bytes;
}

uint64_t nnb_arena_needed(const uint8_t *blob, const nnb_header *h)
{
    uint64_t bytes = 0, staging = 0;
    nnb_tensor_record t;
    nnb_layer l;
    uint32_t i;

    for (i = 0; i < h->layers; i++) {
        nnb_read_layer(blob, h, i, &l);
        nnb_read_tensor(blob, h, l.output, &t);
        if (i + 1 < h->layers) {
            bytes += aligned(t.bytes);
        }
        if (!nnb_staged(blob, h, &l) && nnb_staging(blob, h, &l) > staging) {
            staging = nnb_staging(blob, h, &l);
        }
    }
    if (nnb_planned(blob, h)) {
        bytes = h->arena_bytes;
    }
    return staging ? aligned(bytes) + staging : bytes;
}

/* Whether layers read one tensor that none writes, and only one. */
static int has_one_input(const uint8_t *blob, const nnb_header *h)
{
    uint32_t i, k, j, input = NNB_NONE;
    nnb_layer l, other;

    for (i = 0; i < h->layers; i++) {
        nnb_read_layer(blob, h, i, &l);
        for (k = 0; k < l.in_count; k++) {
            for (j = 0; j < i; j++) {
                nnb_read_layer(blob, h, j, &other);
                if (other.output == nnb_in(&l, k)) {
                    break;
                }
            }
            if (j == i && input != NNB_NONE && input != nnb_in(&l, k)) {
                return 0;
            }
            if (j == i) {
                input = nnb_in(&l, k);
            }
        }
    }
    return input != NNB_NONE;
}

nnb_status nnb_check_executable(const uint8_t *blob, const nnb_header *h)
{
    nnb_layer l;
    uint32_t i;

    if (!has_one_input(blob, h)
        || ((h->flags & NNB_ENCRYPTED) && !NNB_HAS_KERNEL(NNB_DECRYPTION))) {
        return NNB_UNSUPPORTED;
    }
    for (i = 0; i < h->layers; i++) {
        nnb_read_layer(blob, h, i, &l);
        if (!supported(blob, h, &l)) {
            return NNB_UNSUPPORTED;
        }
        if (sums(&l) && !sums_fit(blob, h, &l)) {
            return NNB_OVERFLOW;
        }
    }
    if (!lives_are_true(blob, h) || !constants_are_apart(blob, h)) {
        return NNB_OVERLAP;
    }
    if (nnb_planned(blob, h) && !places_are_apart(blob, h)) {
        return NNB_OVERLAP;
    }
    return nnb_arena_needed(blob, h) > 0xFFFFFFFFu ? NNB_MEMORY : NNB_OK;
}
