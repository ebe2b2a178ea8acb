/* SPDX-License-Identifier: Apache-2.0
 *
 * Layers with a program behind their inputs in the input list: expressions of elements, in 64 bits
 * that wrap around, and runs of values that are copied.
 */
#include "nnb_kernels.h"

#if NNB_HAS_PROGRAMS

#define DEPTH 16u
#define TABLE 256u
#define LONGEST_SHIFT 62u
#define PIECE_BYTES 22u

enum { END, LOAD, NUMBER, LOOK, ROOT, ADD, MUL, MAX, MIN, FLOOR, SHIFT };

/* Runs of values: `step` of them from one to the next. */
typedef struct {
    uint32_t operand, length, count, from, from_step, to, to_step;
} piece;

static const uint8_t *program_of(const nnb_layer *l)
{
    return l->inputs + 2 * (size_t)l->in_count;
}

static uint32_t taken(uint32_t code)
{
    return code <= NUMBER ? 0 : code <= ROOT || code == SHIFT ? 1 : 2;
}

/* The values of a constant that has one for each row (1), column (2), channel (4). */
static uint64_t numbers(uint32_t axes, const nnb_tensor_record *y)
{
    return (uint64_t)(axes & 1 ? y->rows : 1u) * (axes & 2 ? y->columns : 1u)
           * (axes & 4 ? y->channels : 1u);
}

static int expression_fits(const uint8_t *at, const uint8_t *end, uint32_t operands, uint64_t pool,
                           const nnb_tensor_record *y)
{
    uint32_t depth = 0;

    for (; end - at >= 4; at += 4) {
        uint32_t code = at[0], argument = nnb_u16(at + 2);
        if (code == END) {
            return depth == 1;
        }
        if (code > SHIFT || taken(code) > depth || (code == LOAD && argument >= operands)
            || (code == NUMBER && argument + numbers(at[1], y) > pool)
            || (code == LOOK && (uint64_t)argument + TABLE > pool)
            || (code == SHIFT && argument > LONGEST_SHIFT)) {
            return 0;
        }
        depth += 1 - taken(code);
        if (depth > DEPTH) {
            return 0;
        }
    }
    return 0;
}

static piece piece_at(const uint8_t *at)
{
    piece p;

    p.operand = nnb_u16(at);
    p.length = nnb_u16(at + 2);
    p.count = nnb_u16(at + 4);
    p.from = nnb_u32(at + 6);
    p.from_step = nnb_u32(at + 10);
    p.to = nnb_u32(at + 14);
    p.to_step = nnb_u32(at + 18);
    return p;
}

static int pieces_fit(const uint8_t *blob, const nnb_header *h, const nnb_layer *l,
                      const uint8_t *end, const nnb_tensor_record *y)
{
    const uint8_t *at = program_of(l);
    nnb_tensor_record x;
    uint32_t i, count;

    if (end - at < 4 || (end - at - 4) / (int32_t)PIECE_BYTES < (int32_t)nnb_u16(at)) {
        return 0;
    }
    count = nnb_u16(at);
    for (i = 0; i < count; i++) {
        piece p = piece_at(at + 4 + PIECE_BYTES * (size_t)i);
        if (p.operand >= l->in_count || p.length == 0 || p.count == 0) {
            return 0;
        }
        nnb_read_tensor(blob, h, nnb_in(l, p.operand), &x);
        if ((uint64_t)(p.count - 1) * p.from_step + p.from + p.length > nnb_elements(&x)
            || (uint64_t)(p.count - 1) * p.to_step + p.to + p.length > nnb_elements(y)
            || (p.count > 1 && p.to_step < p.length)) {
            return 0;
        }
    }
    return 1;
}

int nnb_program_fits(const uint8_t *blob, const nnb_header *h, const nnb_layer *l)
{
    const uint8_t *end = blob + h->data;
    nnb_tensor_record x, y;
    uint64_t pool = 0;
    uint32_t i;

    if (l->inputs < blob + h->layer_table + NNB_LAYER_BYTES * (size_t)h->layers
        || l->in_count > NNB_OPERANDS) {
        return 0;
    }
    nnb_read_tensor(blob, h, l->output, &y);
    if (l->op == NNB_GATHER) {
        return pieces_fit(blob, h, l, end, &y);
    }
    if (l->weights != NNB_NONE) {
        nnb_read_tensor(blob, h, l->weights, &x);
        if (x.type != NNB_INT32) {
            return 0;
        }
        pool = nnb_elements(&x);
    }
    for (i = 0; i < l->in_count; i++) {
        nnb_read_tensor(blob, h, nnb_in(l, i), &x);
        if ((x.rows != 1 && x.rows != y.rows) || (x.columns != 1 && x.columns != y.columns)
            || (x.channels != 1 && x.channels != y.channels)) {
            return 0;
        }
    }
    return expression_fits(program_of(l), end, l->in_count, pool, &y);
}

static int64_t wrapped(uint64_t value)
{
    return value <= (uint64_t)INT64_MAX ? (int64_t)value : -(int64_t)(UINT64_MAX - value) - 1;
}

static int64_t root(int64_t value)
{
    uint64_t left = value < 0 ? 0 : (uint64_t)value, bit = (uint64_t)1 << 62, result = 0;

    for (; bit != 0; bit >>= 2) {
        uint64_t next = result + bit;
        result >>= 1;
        if (left >= next) {
            left -= next;
            result += bit;
        }
    }
    return (int64_t)result;
}

/* The floor of a / b, bit by bit: cores do not divide 64 bits by themselves. */
static int64_t divided(int64_t a, int64_t b)
{
    uint64_t by = b < 1 ? 1 : (uint64_t)b, rest = 0;
    uint64_t left = a < 0 ? (uint64_t)~a : (uint64_t)a;
    int i;

    for (i = 0; i < 64; i++) {
        rest = rest << 1 | left >> 63;
        left <<= 1;
        if (rest >= by) {
            rest -= by;
            left |= 1;
        }
    }
    return a < 0 ? ~(int64_t)left : (int64_t)left;
}

static int64_t paired(uint32_t code, int64_t a, int64_t b)
{
    switch (code) {
    case ADD:
        return wrapped((uint64_t)a + (uint64_t)b);
    case MUL:
        return wrapped((uint64_t)a * (uint64_t)b);
    case MAX:
        return a > b ? a : b;
    case MIN:
        return a < b ? a : b;
    default:
        return divided(a, b);
    }
}

/* The place of an element among the values of an operand; axes of one value are for all. */
static uint32_t place(uint32_t rows, uint32_t columns, uint32_t channels, const uint32_t *at)
{
    uint32_t pixel = (rows > 1 ? at[0] : 0) * columns + (columns > 1 ? at[1] : 0);

    return pixel * channels + (channels > 1 ? at[2] : 0);
}

/* The value of an expression at a row, column and channel. */
static int64_t value_at(const nnb_job *job, const nnb_operand *operands, const uint32_t *at)
{
    const nnb_tensor_record *y = &job->output;
    const uint8_t *program;
    int64_t stack[DEPTH], *top = stack; /* the first free one */

    for (program = program_of(job->layer); program[0] != END; program += 4) {
        uint32_t axes = program[1], argument = nnb_u16(program + 2);
        switch (program[0]) {
        case LOAD: {
            const nnb_tensor_record *x = &operands[argument].about;
            *top++ = nnb_load(operands[argument].at, x->type,
                              place(x->rows, x->columns, x->channels, at));
            break;
        }
        case NUMBER:
            argument += place(axes & 1 ? y->rows : 1, axes & 2 ? y->columns : 1,
                              axes & 4 ? y->channels : 1, at);
            *top++ = nnb_load(job->weights.at, NNB_INT32, argument);
            break;
        case LOOK:
            argument += (uint32_t)(uint64_t)top[-1] & (TABLE - 1);
            top[-1] = nnb_load(job->weights.at, NNB_INT32, argument);
            break;
        case ROOT:
            top[-1] = root(top[-1]);
            break;
        case SHIFT:
            top[-1] >>= argument;
            break;
        default:
            top--;
            top[-1] = paired(program[0], top[-1], *top);
        }
    }
    return stack[0];
}

static void compute(const nnb_job *job, const nnb_operand *operands)
{
    uint32_t at[3], i = 0;

    for (at[0] = 0; at[0] < job->output.rows; at[0]++) {
        for (at[1] = 0; at[1] < job->output.columns; at[1]++) {
            for (at[2] = 0; at[2] < job->output.channels; at[2]++) {
                nnb_store(job, i++, value_at(job, operands, at));
            }
        }
    }
}

static void gather(const nnb_job *job, const nnb_operand *operands)
{
    const uint8_t *program = program_of(job->layer);
    int32_t fill = (int32_t)(nnb_u16(program + 2) ^ 0x8000u) - 0x8000;
    uint32_t count = (uint32_t)nnb_elements(&job->output), i, k, n;

    for (i = 0; i < count; i++) {
        nnb_store(job, i, fill);
    }
    for (n = 0; n < nnb_u16(program); n++) {
        piece p = piece_at(program + 4 + PIECE_BYTES * (size_t)n);
        const nnb_operand *x = &operands[p.operand];
        for (i = 0; i < p.count; i++) {
            for (k = 0; k < p.length; k++) {
                nnb_store(job, p.to + i * p.to_step + k,
                          nnb_load(x->at, x->about.type, p.from + i * p.from_step + k));
            }
        }
    }
}

void nnb_program(const nnb_job *job, const nnb_operand *operands)
{
    if (job->layer->op == NNB_GATHER) {
        gather(job, operands);
    } else {
        compute(job, operands);
    }
}

#endif
