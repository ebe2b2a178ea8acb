/* Layers in small fast memory (L1) while data and weights stand in larger, slower ones.
 *
 * A layer is cut into units; what a unit needs is copied into L1 while the one before is computed.
 * Copies go through three functions that a program may replace by its own, for a DMA controller.
 */
#ifndef NN_LEVELS_H
#define NN_LEVELS_H

#include "nn_kernels.h"

/* Channels of copies */
#define NN_INPUT 0
#define NN_WEIGHTS 1
#define NN_OUTPUT 2

/* Starts to copy `bytes`, or `rows` runs of `row_bytes`, on a channel. Copies of a channel complete
 * in order. */
void nn_copy_start(int channel, void *to, const void *from, uint32_t bytes);
void nn_copy_start_2d(int channel, void *to, uint32_t to_step, const void *from,
                      uint32_t from_step, uint32_t row_bytes, uint32_t rows);
/* Waits for the oldest copy of a channel that was not waited for. */
void nn_copy_wait(int channel);

typedef void nn_pooling(const nn_pool *pool, const int8_t *const *rows, int8_t *out);
typedef void nn_joining(const int8_t *const *operands, unsigned count, uint32_t number,
                        int8_t *out);

/* A window that moves over an image. */
typedef struct {
    const nn_conv *conv;     /* NULL: pooling or joining alone */
    nn_kernel *kernel;
    const nn_pool *pool;
    nn_pooling *pooling;
    nn_joining *joining;
    const int8_t **window;   /* room for the rows under the window, or the operands */
    int8_t *pixels;          /* those that are pooled at once, then a kernel's own memory */
    int8_t *scratch;
    int8_t *sums;            /* of averages */
    uint32_t pixel_bytes;    /* of the input */
    uint32_t out_pixel_bytes;
    uint32_t filters;
    uint16_t rows, columns;  /* of the input */
    uint16_t out_rows, out_columns;
    uint16_t reach_rows, reach_columns;   /* from the first to the last that a result needs */
    uint16_t stride_rows, stride_columns; /* between results that are stored */
    uint16_t pad_rows, pad_columns;
    uint16_t spread_rows, spread_columns;
    uint16_t window_rows, window_step, window_stride; /* rows under the window, of a row of sums */
    uint16_t pool_rows, pool_columns; /* results that are pooled; 1, 1: none */
    uint16_t pool_stride_rows, pool_stride_columns;
    uint16_t windows;        /* that are pooled at once */
    uint8_t sources;         /* images that are read together */
    uint8_t pooled;
    uint8_t average;
    uint8_t rounded;
} nn_layer;

/* Where weights are while a layer is computed */
#define NN_IN_PLACE 0
#define NN_RESIDENT 1
#define NN_ROWS_OUTER 2    /* copied again for each band, some filters at a time */
#define NN_WEIGHTS_OUTER 3 /* copied once; rows are read again for the next filters */

/* Bands of output rows, all input channels. */
typedef struct {
    const nn_layer *layer;
    int8_t *const *rings;    /* of input rows, for each source; NULL: read where they are */
    int8_t *outputs[2];      /* NULL: made in their place */
    int8_t *buffers[2];      /* of weights */
    const int8_t *stored;    /* all weights, group by group */
    const uint32_t *offsets; /* of groups, and of the end */
    const uint16_t *flushes; /* of groups */
    uint32_t pixels;         /* of the output: the last row may be shorter */
    uint32_t input_bytes;
    uint32_t pitch;          /* bytes between rows of a ring */
    uint32_t filters;        /* of a group */
    uint16_t band, columns;  /* of a unit */
    uint16_t slots;          /* rows of a ring */
    uint16_t groups;
    uint8_t weights;
    uint8_t ahead;           /* rows arrive while the band before is computed */
} nn_rows;

/* An input channel at a time, into sums of 32 bits. */
typedef struct {
    const nn_layer *layer;
    int8_t *inputs[2];
    int8_t *buffers[2];    /* of weights; NULL: read where they are */
    nn_word *sums;
    const int8_t *stored;  /* weights: group, channel, filter of the group, row, column */
    uint32_t filters;      /* of a group */
    uint16_t band, columns;
    uint8_t planar_in;     /* the input stands channel by channel */
    uint8_t planar_out;
} nn_planes;

/* First and end of the input rows or columns under a window, of results from `first` to `last`. */
typedef struct {
    uint32_t first, end;
} nn_span;

static inline nn_span nn_needed(uint32_t first, uint32_t last, unsigned stride, unsigned reach,
                                unsigned pad, unsigned spread, unsigned limit)
{
    int32_t top = (int32_t)(first * stride) - (int32_t)pad;
    int32_t bottom = (int32_t)(last * stride + reach) - (int32_t)pad - 1;
    nn_span span;

    span.first = top <= 0 ? 0 : ((uint32_t)top + spread - 1) / spread;
    span.end = bottom < 0 ? 0 : (uint32_t)bottom / spread + 1;
    span.end = span.end > limit ? limit : span.end;
    span.first = span.first > span.end ? span.end : span.first;
    return span;
}

static inline nn_span nn_needed_rows(const nn_layer *layer, uint32_t first, uint32_t last)
{
    return nn_needed(first, last, layer->stride_rows, layer->reach_rows, layer->pad_rows,
                     layer->spread_rows, layer->rows);
}

/* The end of the input rows that output rows up to one need. */
static inline uint32_t nn_needed_end(const nn_layer *layer, uint32_t last)
{
    return nn_needed_rows(layer, last, last).end;
}

static inline nn_span nn_needed_columns(const nn_layer *layer, uint32_t first, uint32_t last)
{
    return nn_needed(first, last, layer->stride_columns, layer->reach_columns,
                     layer->pad_columns, layer->spread_columns, layer->columns);
}

static inline uint32_t nn_least(uint32_t one, uint32_t other)
{
    return one < other ? one : other;
}

/* `from` are the sources; `to` is the whole output. */
void nn_run_rows(const nn_rows *run, const int8_t *const *from, int8_t *to);
/* Layers that hand each other rows; `done` counts those of each. */
void nn_run_chain(const nn_rows *const *runs, unsigned count, uint16_t *done,
                  const int8_t *const *from, int8_t *to);
/* A layer that does not mix channels, in a piece of memory that it shares with others. */
typedef struct {
    const nn_layer *layer;
    const int8_t *weights; /* of all channels; NULL: pooling */
    const int8_t *stored;  /* from where they are copied; NULL: they are read in place */
    int8_t *buffer;        /* to where */
    uint32_t place;        /* of the input in that memory */
    uint32_t result;
    uint16_t taps;         /* of a channel */
} nn_link;

/* A channel at a time through such layers. */
typedef struct {
    const nn_link *links;
    int8_t *work[2];
    uint32_t channels;
    uint16_t count;
    uint16_t ahead;        /* 1: a channel arrives while the one before is computed */
} nn_channels;

void nn_run_channels(const nn_channels *run, const int8_t *from, int8_t *to);
void nn_run_planes(const nn_planes *run, const int8_t *from, int8_t *to);

#endif
