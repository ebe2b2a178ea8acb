/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums of products, pooling, and how values are read and stored.
 */
#include "nnb_kernels.h"

int64_t nnb_load(const uint8_t *at, uint32_t type, uint32_t index)
{
    switch (type) {
    case NNB_INT8:
        return ((const int8_t *)at)[index];
    case NNB_INT16:
        return (int32_t)(nnb_u16(at + 2 * (size_t)index) ^ 0x8000u) - 0x8000;
    default:
        return (int64_t)(nnb_u32(at + 4 * (size_t)index) ^ 0x80000000u) - 0x80000000LL;
    }
}

static int64_t limited(int64_t value, uint32_t type)
{
    int64_t high = ((int64_t)1 << ((8 << type) - 1)) - 1;

    return value > high ? high : value < -high - 1 ? -high - 1 : value;
}

void nnb_store(const nnb_job *job, uint32_t index, int64_t value)
{
    uint32_t type = job->output.type, bits;
    uint8_t *out = job->out + ((size_t)index << type);

    value = limited(value, type);
    if (job->layer->follow == NNB_RELU && value < 0) {
        value = 0;
    } else if (job->layer->follow == NNB_ABS && value < 0) {
        value = limited(-value, type);
    }
    bits = (uint32_t)(uint64_t)value;
    out[0] = (uint8_t)bits;
    if (type != NNB_INT8) {
        out[1] = (uint8_t)(bits >> 8);
    }
    if (type == NNB_INT32) {
        out[2] = (uint8_t)(bits >> 16);
        out[3] = (uint8_t)(bits >> 24);
    }
}

#define LONGEST_RUN 65535u
#define LONGEST_MIXED 256u

static int32_t load16(const uint8_t *at)
{
    return *(const int8_t *)(at + 1) * 256 + *at;
}

/* Products of values of 8 bits by those of 16: 256 of them have 31 bits. */
static int64_t mixed_dot(const int8_t *narrow, const uint8_t *wide, uint32_t count)
{
    int64_t total = 0;
    uint32_t first, i;

    for (first = 0; first < count; first += LONGEST_MIXED) {
        uint32_t end = count - first < LONGEST_MIXED ? count : first + LONGEST_MIXED;
        int32_t sum = 0;
        for (i = first; i < end; i++) {
            sum += narrow[i] * load16(wide + 2 * (size_t)i);
        }
        total += sum;
    }
    return total;
}

/* Products of `count` values that follow each other; at most 65535, so 32 bits hold those of 8. */
static int64_t dot(const uint8_t *w, uint32_t w_type, const uint8_t *x, uint32_t x_type,
                   uint32_t count)
{
    const int8_t *w8 = (const int8_t *)w, *x8 = (const int8_t *)x;
    int64_t total = 0;
    int32_t narrow = 0;
    uint32_t i;

    if (w_type == NNB_INT8 && x_type == NNB_INT8) {
        for (i = 0; i + 4 <= count; i += 4) {
            narrow += w8[i] * x8[i] + w8[i + 1] * x8[i + 1] + w8[i + 2] * x8[i + 2]
                      + w8[i + 3] * x8[i + 3];
        }
        for (; i < count; i++) {
            narrow += w8[i] * x8[i];
        }
        return narrow;
    }
    if (w_type == NNB_INT8) {
        return mixed_dot(w8, x, count);
    }
    if (x_type == NNB_INT8) {
        return mixed_dot(x8, w, count);
    }
    for (i = 0; i < count; i++) {
        total += (int64_t)load16(w + 2 * (size_t)i) * load16(x + 2 * (size_t)i);
    }
    return total;
}

/* Where the weights of a filter begin that are not packed. */
static const uint8_t *row_of(const nnb_operand *w, uint32_t filter)
{
    size_t length = (size_t)w->about.rows * w->about.columns * w->about.channels;

    return w->about.type == NNB_PACKED ? w->at : w->at + ((filter * length) << w->about.type);
}

/* Products of data and the weights of a filter, which begin at `row`, from the weight `first` on. */
static int64_t products(const nnb_operand *w, uint32_t filter, const uint8_t *row, uint32_t first,
                        const uint8_t *x, uint32_t x_type, uint32_t count)
{
    uint32_t type = w->about.type;

#if NNB_HAS_KERNEL(NNB_FEW_BITS)
    if (type == NNB_PACKED) {
        return nnb_packed_dot(w, filter, first, x, x_type, count);
    }
#endif
    (void)filter;
    return dot(row + ((size_t)first << type), type, x, x_type, count);
}

/* The row or column of the input that a tap reads; the number of them where there are only zeros. */
static uint32_t tap(const nnb_layer *l, int axis, uint32_t output, uint32_t number, uint32_t length)
{
    uint32_t step = l->op == NNB_TRANSPOSED ? 1 : l->stride[axis];
    uint32_t place = output * step + number * l->dilation[axis];

    if (place < l->pad[axis]) {
        return length;
    }
    place -= l->pad[axis];
    if (l->op == NNB_TRANSPOSED) { /* pixels are `stride` apart */
        if (place % l->stride[axis] != 0) {
            return length;
        }
        place /= l->stride[axis];
    }
    return place < length ? place : length;
}

/* How many columns of the kernel read neighbouring pixels whose channels are all used. */
static uint32_t run_length(const nnb_layer *l, uint32_t column, uint32_t columns)
{
    uint32_t left = column * l->stride[1], kernel = l->kernel[1];

    if (l->op != NNB_CONV || l->groups > 1 || l->dilation[1] > 1 || left < l->pad[1]
        || left - l->pad[1] + kernel > columns) {
        return 1;
    }
    return kernel;
}

static int64_t window_sum(const nnb_job *job, const nnb_operand *x, uint32_t row, uint32_t column,
                          uint32_t filter)
{
    const nnb_layer *l = job->layer;
    uint32_t inputs = job->weights.about.channels, channels = x->about.channels;
    uint32_t first = l->groups > 1 ? filter / (job->output.channels / l->groups) * inputs : 0;
    uint32_t x_type = x->about.type, i, k, y, z;
    uint32_t run = run_length(l, column, x->about.columns);
    const uint8_t *weights = row_of(&job->weights, filter);
    int64_t total = 0;

    if (run * inputs > LONGEST_RUN) {
        run = 1;
    }
    for (i = 0; i < l->kernel[0]; i++) {
        y = tap(l, 0, row, i, x->about.rows);
        for (k = 0; k < l->kernel[1] && y < x->about.rows; k += run) {
            z = tap(l, 1, column, k, x->about.columns);
            if (z < x->about.columns) {
                size_t from = ((size_t)y * x->about.columns + z) * channels + first;
                total += products(&job->weights, filter, weights, (i * l->kernel[1] + k) * inputs,
                                  x->at + (from << x_type), x_type, run * inputs);
            }
        }
    }
    return total;
}

/* A sum times D and its bias, by the number of the output value. */
static int64_t summed(const nnb_job *job, const nnb_operand *x, uint32_t index)
{
    const nnb_layer *l = job->layer;
    uint32_t filter = index % job->output.channels, pixel = index / job->output.channels;
    uint32_t count = job->weights.about.channels;
    int64_t total;

    if (l->op != NNB_FC) {
        total = window_sum(job, x, pixel / job->output.columns, pixel % job->output.columns,
                           filter);
    } else {
        total = products(&job->weights, filter, row_of(&job->weights, filter), 0, x->at,
                         x->about.type, count);
    }
    total *= l->factor;
    if (job->bias.at != NULL) {
        total += nnb_load(job->bias.at, job->bias.about.type, filter) * (1 << l->bias_shift);
    }
    return total;
}

static int64_t shifted(int64_t total, int shift, uint32_t type)
{
    if (shift >= 0) {
        return (total + ((int64_t)1 << shift >> 1)) >> shift;
    }
    return limited(total, type) * ((int64_t)1 << -shift);
}

/* Shift all outputs so that the greatest has seven bits; each sum is computed twice. */
static void normalized(const nnb_job *job, const nnb_operand *x, uint32_t count)
{
    int64_t greatest = 0, total;
    int shift = 0;
    uint32_t i;

    for (i = 0; i < count; i++) {
        total = summed(job, x, i);
        greatest = total > greatest ? total : greatest;
    }
    while (greatest >> shift > 127) {
        shift++;
    }
    for (i = 0; i < count; i++) {
        total = summed(job, x, i);
        nnb_store(job, i, total < 0 ? 0 : shifted(total, shift, NNB_INT8));
    }
}

void nnb_sums(const nnb_job *job, const nnb_operand *x)
{
    uint32_t count = (uint32_t)nnb_elements(&job->output), i;

    if (job->layer->follow == NNB_SHIFT_NORM) {
        normalized(job, x, count);
        return;
    }
    for (i = 0; i < count; i++) {
        nnb_store(job, i, shifted(summed(job, x, i), job->layer->out_shift, job->output.type));
    }
}

/* Data have at most 16 bits and windows 255 x 255 values, so twice their sum has 32. */
static int32_t mean(int32_t total, uint32_t count, int rounded)
{
    uint32_t size = total < 0 ? 0u - (uint32_t)total : (uint32_t)total;

    size = rounded ? (2 * size + count) / (2 * count) : size / count;
    return total < 0 ? -(int32_t)size : (int32_t)size;
}

static int32_t signed32(uint32_t value)
{
    return value < 0x80000000u ? (int32_t)value : -(int32_t)(0xFFFFFFFFu - value) - 1;
}

void nnb_pool(const nnb_job *job, const nnb_operand *x)
{
    const nnb_layer *l = job->layer;
    uint32_t channels = job->output.channels, count = (uint32_t)nnb_elements(&job->output), n, i, k;

    for (n = 0; n < count; n++) {
        uint32_t pixel = n / channels, row = pixel / job->output.columns;
        uint32_t column = pixel % job->output.columns, pixels = 0;
        int64_t greatest = INT32_MIN;
        uint32_t total = 0; /* wraps around; for means it does not */
        for (i = 0; i < l->kernel[0]; i++) {
            uint32_t y = tap(l, 0, row, i, x->about.rows);
            for (k = 0; k < l->kernel[1] && y < x->about.rows; k++) {
                uint32_t z = tap(l, 1, column, k, x->about.columns);
                if (z < x->about.columns) {
                    int64_t value = nnb_load(x->at, x->about.type,
                                             (y * x->about.columns + z) * channels + n % channels);
                    greatest = value > greatest ? value : greatest;
                    total += (uint32_t)(uint64_t)value;
                    pixels++;
                }
            }
        }
        nnb_store(job, n, l->op == NNB_MAXPOOL ? greatest
                                               : mean(signed32(total), pixels, l->rounded));
    }
}

/* 2 to the power of values, those more than 7 below the greatest plus one counted as one. */
void nnb_softmax(const nnb_job *job, const nnb_operand *x)
{
    uint32_t count = (uint32_t)nnb_elements(&job->output), i, total = 0, share;
    int32_t base = -128, above;

    for (i = 0; i < count; i++) {
        int32_t value = (int32_t)nnb_load(x->at, NNB_INT8, i);
        base = value > base ? value : base;
    }
    base -= 8;
    for (i = 0; i < count; i++) {
        above = (int32_t)nnb_load(x->at, NNB_INT8, i) - base;
        total += 1u << (above < 0 ? 0 : above > 7 ? 7 : above);
    }
    share = (1u << 20) / total;
    for (i = 0; i < count; i++) {
        above = 13 + base - (int32_t)nnb_load(x->at, NNB_INT8, i);
        nnb_store(job, i, share >> (above < 0 ? 0 : above > 31 ? 31 : above));
    }
}
