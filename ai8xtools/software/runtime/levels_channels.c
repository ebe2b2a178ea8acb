#include "nn_levels.h"

/* Layers that do not mix channels: a channel goes through all of them in one piece of memory. A
 * result is written when no result behind it needs what stands in its place. */

/* A result of a convolution, from the input row and column under the first tap on. */
static int8_t nn_depth(const nn_layer *layer, const int8_t *taps, const int8_t *plane, int32_t row,
                       int32_t column, uint32_t channel)
{
    const nn_conv *conv = layer->conv;
    int32_t sum = conv->start[channel];
    unsigned i, k;

    for (i = 0; i < conv->kernel_rows; i++, row += conv->dilation) {
        const int8_t *data;
        int32_t at = column;

        if (row < 0 || row >= (int32_t)layer->rows) {
            taps += conv->kernel_columns;
            continue;
        }
        data = plane + row * (int32_t)layer->columns;
        for (k = 0; k < conv->kernel_columns; k++, taps++, at += conv->dilation) {
            if (at >= 0 && at < (int32_t)layer->columns) {
                sum += *taps * data[at];
            }
        }
    }
    return nn_narrow(conv, sum);
}

static int8_t nn_depth_pooled(const nn_layer *layer, const int8_t *taps, const int8_t *plane,
                              uint32_t y, uint32_t x, uint32_t channel)
{
    int32_t row = (int32_t)(y * layer->stride_rows) - layer->pad_rows;
    int32_t column = (int32_t)(x * layer->stride_columns) - layer->pad_columns;
    int32_t most = -128, sum = 0;
    unsigned i, k;

    for (i = 0; i < layer->pool_rows; i++, row += layer->window_stride) {
        for (k = 0; k < layer->pool_columns; k++) {
            int32_t value = nn_depth(layer, taps, plane, row,
                                     column + (int32_t)k * layer->conv->stride, channel);

            most = value > most ? value : most;
            sum += value;
        }
    }
    return layer->average ? nn_divide(sum, layer->pool_rows * layer->pool_columns, layer->rounded)
                          : (int8_t)most;
}

static int8_t nn_window_of(const nn_layer *layer, const int8_t *plane, uint32_t y, uint32_t x)
{
    const nn_pool *pool = layer->pool;
    int32_t most = -128, sum = 0;
    unsigned i, k;

    plane += y * layer->window_stride * layer->columns + x * pool->stride;
    for (i = 0; i < pool->rows; i++, plane += layer->window_step * layer->columns) {
        for (k = 0; k < pool->columns; k++) {
            int32_t value = plane[k * pool->dilation];

            most = value > most ? value : most;
            sum += value;
        }
    }
    return layer->average ? nn_divide(sum, pool->rows * pool->columns, pool->rounded)
                          : (int8_t)most;
}

static void nn_channel(const nn_link *link, int8_t *work, uint32_t channel)
{
    const nn_layer *layer = link->layer;
    const int8_t *plane = work + link->place;
    const int8_t *taps = layer->conv == NULL ? NULL : link->weights + channel * link->taps;
    int8_t *out = work + link->result;
    uint32_t y, x;

    for (y = 0; y < layer->out_rows; y++) {
        for (x = 0; x < layer->out_columns; x++) {
            if (layer->conv == NULL) {
                *out++ = nn_window_of(layer, plane, y, x);
            } else if (layer->pooled) {
                *out++ = nn_depth_pooled(layer, taps, plane, y, x, channel);
            } else {
                *out++ = nn_depth(layer, taps, plane,
                                  (int32_t)(y * layer->stride_rows) - layer->pad_rows,
                                  (int32_t)(x * layer->stride_columns) - layer->pad_columns,
                                  channel);
            }
        }
    }
}

void nn_run_channels(const nn_channels *run, const int8_t *from, int8_t *to)
{
    const nn_link *first = run->links, *last = run->links + run->count - 1;
    uint32_t values = (uint32_t)first->layer->rows * first->layer->columns;
    uint32_t results = (uint32_t)last->layer->out_rows * last->layer->out_columns, channel;
    uint32_t channels = run->channels;
    unsigned number;

    for (number = 0; number < run->count; number++) {
        if (first[number].stored != NULL) {
            nn_copy_start(NN_WEIGHTS, first[number].buffer, first[number].stored,
                          channels * first[number].taps);
        }
    }
    for (number = 0; number < run->count; number++) {
        if (first[number].stored != NULL) {
            nn_copy_wait(NN_WEIGHTS);
        }
    }
    nn_copy_start_2d(NN_INPUT, run->work[0] + first->place, 1, from, channels, 1, values);
    for (channel = 0; channel < channels; channel++) {
        int8_t *work = run->work[channel & run->ahead];
        int8_t *next = run->work[(channel + 1) & run->ahead];
        int following = channel + 1 < channels;

        nn_copy_wait(NN_INPUT);
        if (run->ahead && channel > 0 && following) {
            nn_copy_wait(NN_OUTPUT);
        }
        if (run->ahead && following) {
            nn_copy_start_2d(NN_INPUT, next + first->place, 1, from + channel + 1, channels, 1,
                             values);
        }
        for (number = 0; number < run->count; number++) {
            nn_channel(first + number, work, channel);
        }
        nn_copy_start_2d(NN_OUTPUT, to + channel, channels, work + last->result, 1, 1, results);
        if (!run->ahead) {
            nn_copy_wait(NN_OUTPUT);
        }
        if (!run->ahead && following) {
            nn_copy_start_2d(NN_INPUT, next + first->place, 1, from + channel + 1, channels, 1,
                             values);
        }
    }
    for (number = run->ahead ? (channels < 2 ? channels : 2) : 0; number > 0; number--) {
        nn_copy_wait(NN_OUTPUT);
    }
}
