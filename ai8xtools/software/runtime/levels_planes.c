#include "nn_levels.h"

/* A layer an input channel at a time: its plane is convolved into the sums of some filters. */

/* Output columns, rows and filters that are computed together, and the input that they need. */
typedef struct {
    uint32_t column, columns, row, rows, filter, filters, channel;
} nn_unit;

static int nn_next_unit(const nn_planes *run, nn_unit *unit)
{
    const nn_layer *layer = run->layer;

    if (++unit->channel == layer->conv->channels) {
        unit->channel = 0;
        unit->filter += run->filters;
    }
    if (unit->filter >= layer->filters) {
        unit->filter = 0;
        unit->row += run->band;
    }
    if (unit->row >= layer->out_rows) {
        unit->row = 0;
        unit->column += run->columns;
    }
    unit->filters = nn_least(run->filters, layer->filters - unit->filter);
    unit->rows = nn_least(run->band, layer->out_rows - unit->row);
    unit->columns = nn_least(run->columns, layer->out_columns - unit->column);
    return unit->column < layer->out_columns;
}

/* Starts to copy the plane of a unit; returns the copies. */
static unsigned nn_fetch_plane(const nn_planes *run, const nn_unit *unit, const int8_t *from,
                               int8_t *to)
{
    const nn_layer *layer = run->layer;
    nn_span ys = nn_needed_rows(layer, unit->row, unit->row + unit->rows - 1);
    nn_span xs = nn_needed_columns(layer, unit->column, unit->column + unit->columns - 1);
    uint32_t rows = ys.end - ys.first, columns = xs.end - xs.first, width = layer->columns;
    uint32_t channels = layer->conv->channels, y;

    if (rows == 0 || columns == 0) {
        return 0;
    }
    if (run->planar_in) {
        from += (unit->channel * layer->rows + ys.first) * width + xs.first;
        nn_copy_start_2d(NN_INPUT, to, columns, from, width, columns, rows);
        return 1;
    }
    from += (ys.first * width + xs.first) * channels + unit->channel;
    if (columns == width) {
        nn_copy_start_2d(NN_INPUT, to, 1, from, channels, 1, rows * columns);
        return 1;
    }
    for (y = 0; y < rows; y++) {
        nn_copy_start_2d(NN_INPUT, to + y * columns, 1, from + y * width * channels, channels, 1,
                         columns);
    }
    return rows;
}

/* Weights of a unit: where they are stored, and their bytes. */
static const int8_t *nn_plane_weights(const nn_planes *run, const nn_unit *unit, uint32_t *bytes)
{
    const nn_conv *conv = run->layer->conv;
    uint32_t taps = (uint32_t)conv->kernel_rows * conv->kernel_columns;

    *bytes = unit->filters * taps;
    return run->stored + (unit->filter * conv->channels + unit->channel * unit->filters) * taps;
}

static unsigned nn_sum_rows(const nn_layer *layer, uint32_t rows)
{
    return (rows - 1) * layer->pool_stride_rows + layer->pool_rows;
}

static unsigned nn_sum_columns(const nn_layer *layer, uint32_t columns)
{
    return (columns - 1) * layer->pool_stride_columns + layer->pool_columns;
}

/* Adds one tap of the kernel: `weight` times the pixels under it. */
static void nn_add_tap(nn_word *sums, uint32_t count, int32_t at, uint32_t stride, uint32_t width,
                       const int8_t *row, int32_t weight)
{
    uint32_t x = 0;

    for (; x < count && at < 0; x++) {
        at += (int32_t)stride;
    }
    for (; x < count && at < (int32_t)width; x++, at += (int32_t)stride) {
        sums[x] += weight * row[at];
    }
}

static void nn_add_plane(const nn_planes *run, const nn_unit *unit, const int8_t *plane,
                         const int8_t *weights)
{
    const nn_layer *layer = run->layer;
    const nn_conv *conv = layer->conv;
    nn_span ys = nn_needed_rows(layer, unit->row, unit->row + unit->rows - 1);
    nn_span xs = nn_needed_columns(layer, unit->column, unit->column + unit->columns - 1);
    uint32_t width = xs.end - xs.first, rows = nn_sum_rows(layer, unit->rows);
    uint32_t columns = nn_sum_columns(layer, unit->columns), filter, y, i, k;
    uint32_t above = unit->row * layer->pool_stride_rows;
    uint32_t before = unit->column * layer->pool_stride_columns;
    nn_word *sums = run->sums;

    for (filter = 0; filter < unit->filters; filter++) {
        for (y = 0; y < rows && width > 0; y++, sums += columns) {
            const int8_t *weight = weights;
            int32_t row = (int32_t)((above + y) * layer->window_stride) - layer->pad_rows;

            for (i = 0; i < conv->kernel_rows; i++, row += conv->dilation) {
                int32_t at = (int32_t)(before * conv->stride) - conv->pad - (int32_t)xs.first;

                for (k = 0; k < conv->kernel_columns; k++, weight++, at += conv->dilation) {
                    if (row >= (int32_t)ys.first && row < (int32_t)ys.end) {
                        nn_add_tap(sums, columns, at, conv->stride, width,
                                   plane + ((uint32_t)row - ys.first) * width, *weight);
                    }
                }
            }
        }
        weights += (uint32_t)conv->kernel_rows * conv->kernel_columns;
    }
}

/* Shifts, limits and narrows sums in their place: a byte is written when its sum was read. */
static void nn_narrow_planes(const nn_planes *run, const nn_unit *unit, uint32_t number)
{
    const nn_conv *conv = run->layer->conv;
    int8_t *bytes = (int8_t *)run->sums;
    uint32_t filter, i, n = 0;

    for (filter = 0; filter < unit->filters; filter++) {
        nn_conv one = *conv;

        for (i = 0; i < number; i++, n++) {
            int32_t sum = run->sums[n] + conv->start[unit->filter + filter];

            nn_store(&one, conv->flags & NN_WIDE ? (void *)(run->sums + n) : (void *)(bytes + n),
                     0, sum);
        }
    }
}

/* Pools planes in their place; windows do not overlap. */
static void nn_pool_planes(const nn_planes *run, const nn_unit *unit)
{
    const nn_layer *layer = run->layer;
    uint32_t rows = nn_sum_rows(layer, unit->rows);
    uint32_t columns = nn_sum_columns(layer, unit->columns), filter, y, x, i, k;
    const int8_t *plane = (const int8_t *)run->sums;
    int8_t *out = (int8_t *)run->sums;

    for (filter = 0; filter < unit->filters; filter++, plane += rows * columns) {
        for (y = 0; y < unit->rows; y++) {
            for (x = 0; x < unit->columns; x++) {
                const int8_t *at = plane + y * layer->pool_stride_rows * columns +
                                   x * layer->pool_stride_columns;
                int32_t most = at[0], sum = 0;

                for (i = 0; i < layer->pool_rows; i++, at += columns) {
                    for (k = 0; k < layer->pool_columns; k++) {
                        most = at[k] > most ? at[k] : most;
                        sum += at[k];
                    }
                }
                *out++ = layer->average
                             ? nn_divide(sum, layer->pool_rows * layer->pool_columns, layer->rounded)
                             : (int8_t)most;
            }
        }
    }
}

/* Starts to copy the results of a unit, one copy a filter, away; returns the copies. */
static unsigned nn_leave_planes(const nn_planes *run, const nn_unit *unit, int8_t *to)
{
    const nn_layer *layer = run->layer;
    uint32_t pixel = layer->out_pixel_bytes, value = pixel / layer->filters;
    uint32_t width = layer->out_columns, size = unit->rows * unit->columns * value, filter;
    const int8_t *out = (const int8_t *)run->sums;

    for (filter = unit->filter; filter < unit->filter + unit->filters; filter++, out += size) {
        if (run->planar_out) {
            uint32_t at = (filter * layer->out_rows + unit->row) * width + unit->column;

            nn_copy_start_2d(NN_OUTPUT, to + at * value, width * value, out,
                             unit->columns * value, unit->columns * value, unit->rows);
        } else { /* whole rows, or a part of one */
            uint32_t at = unit->row * width + unit->column;

            nn_copy_start_2d(NN_OUTPUT, to + at * pixel + filter * value, pixel, out,
                             value, value, unit->rows * unit->columns);
        }
    }
    return unit->filters;
}

static void nn_wait_for(int channel, unsigned copies)
{
    for (; copies > 0; copies--) {
        nn_copy_wait(channel);
    }
}

static void nn_finish_planes(const nn_planes *run, const nn_unit *unit)
{
    const nn_layer *layer = run->layer;

    nn_narrow_planes(run, unit, nn_sum_rows(layer, unit->rows) *
                                    nn_sum_columns(layer, unit->columns));
    if (layer->pooled) {
        nn_pool_planes(run, unit);
    }
}

void nn_run_planes(const nn_planes *run, const int8_t *from, int8_t *to)
{
    const nn_layer *layer = run->layer;
    unsigned number = 0, leaving = 0, waiting;
    uint32_t bytes;
    const int8_t *weights;
    nn_unit unit = { 0, 0, 0, 0, 0, 0, 0 }, next;
    int more = 1;

    unit.channel = (uint32_t)-1;
    nn_next_unit(run, &unit);
    waiting = nn_fetch_plane(run, &unit, from, run->inputs[0]);
    weights = nn_plane_weights(run, &unit, &bytes);
    if (run->buffers[0] != NULL) {
        nn_copy_start(NN_WEIGHTS, run->buffers[0], weights, bytes);
    }
    for (; more; number++, unit = next) {
        const int8_t *taps = nn_plane_weights(run, &unit, &bytes);
        unsigned fetched = 0;

        nn_wait_for(NN_INPUT, waiting);
        if (run->buffers[0] != NULL) {
            nn_copy_wait(NN_WEIGHTS);
            taps = run->buffers[number & 1];
        }
        next = unit;
        more = nn_next_unit(run, &next);
        if (more) {
            fetched = nn_fetch_plane(run, &next, from, run->inputs[(number + 1) & 1]);
        }
        if (more && run->buffers[0] != NULL) {
            weights = nn_plane_weights(run, &next, &bytes);
            nn_copy_start(NN_WEIGHTS, run->buffers[(number + 1) & 1], weights, bytes);
        }
        waiting = fetched;
        if (unit.channel == 0) {
            nn_wait_for(NN_OUTPUT, leaving);
            leaving = 0;
            memset(run->sums, 0, sizeof(nn_word) * unit.filters * nn_sum_rows(layer, unit.rows) *
                                     nn_sum_columns(layer, unit.columns));
        }
        nn_add_plane(run, &unit, run->inputs[number & 1], taps);
        if (unit.channel + 1 == layer->conv->channels) {
            nn_finish_planes(run, &unit);
            leaving = nn_leave_planes(run, &unit, to);
        }
    }
    nn_wait_for(NN_OUTPUT, leaving);
}
