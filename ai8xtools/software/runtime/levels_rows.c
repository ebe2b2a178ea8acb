#include "nn_levels.h"

/* A layer in bands of rows: a ring of input rows, two buffers of outputs, weights in place, in L1,
 * or some filters at a time. */

/* Output columns and filters that are computed together, and the input columns that they need. */
typedef struct {
    const nn_rows *run;
    const nn_layer *layer;
    const int8_t *const *from;
    int8_t *to;
    uint32_t column, columns, start, end, filter, filters;
    nn_conv conv; /* of these filters, on these columns */
} nn_piece;

/* Weights that are copied one group ahead. */
typedef struct {
    const nn_rows *run;
    uint32_t group, left, number;
} nn_feed;

static void nn_feed_start(nn_feed *feed)
{
    const nn_rows *run = feed->run;

    if (feed->left > 0) {
        nn_copy_start(NN_WEIGHTS, run->buffers[feed->number & 1],
                      run->stored + run->offsets[feed->group],
                      run->offsets[feed->group + 1] - run->offsets[feed->group]);
        feed->left--;
        feed->group = feed->group + 1 == run->groups ? 0 : feed->group + 1;
    }
    feed->number++;
}

static void nn_feed_take(nn_feed *feed, nn_piece *piece, uint32_t first, uint32_t filters)
{
    const nn_conv *conv = piece->layer->conv;

    nn_copy_wait(NN_WEIGHTS);
    piece->conv.weights = feed->run->buffers[(feed->number - 1) & 1];
    piece->conv.start = conv->start + first;
    piece->conv.filters = filters;
    piece->conv.flush = feed->run->flushes[first / feed->run->filters];
    nn_feed_start(feed);
}

/* Columns of an output row; the last row of pixels may be shorter. */
static uint32_t nn_columns(const nn_piece *piece, uint32_t row)
{
    uint32_t done = row * piece->layer->out_columns + piece->column;

    return nn_least(piece->columns, piece->run->pixels - done);
}

static const int8_t *nn_row_at(const nn_piece *piece, unsigned source, int32_t row)
{
    const nn_rows *run = piece->run;

    if (row < 0 || row >= (int32_t)piece->layer->rows || piece->start == piece->end) {
        return NULL;
    }
    if (run->rings == NULL) {
        return piece->from[source] + (uint32_t)row * run->pitch;
    }
    return run->rings[source] + (uint32_t)row % run->slots * run->pitch;
}

/* Points at the rows under the window of a row of sums. */
static void nn_under(const nn_piece *piece, uint32_t row)
{
    const nn_layer *layer = piece->layer;
    int32_t at = (int32_t)(row * layer->window_stride) - layer->pad_rows;
    unsigned i;

    for (i = 0; i < layer->window_rows; i++, at += layer->window_step) {
        int between = layer->spread_rows > 1 && (at < 0 || at % layer->spread_rows != 0);

        layer->window[i] = between ? NULL : nn_row_at(piece, 0, at / layer->spread_rows);
        if (at < 0) {
            layer->window[i] = NULL;
        }
    }
}

/* Pools a row; `out` is the place of its first pixel, pixels are `step` bytes apart. */
static void nn_pooled_row(const nn_piece *piece, uint32_t y, uint32_t columns, int8_t *out,
                          uint32_t step)
{
    const nn_layer *layer = piece->layer;
    const nn_conv *conv = &piece->conv;
    nn_sum *sums = (nn_sum *)(void *)layer->sums;
    uint32_t part, x, i;

    for (part = 0; part < layer->pool_rows; part++) {
        nn_under(piece, y * layer->pool_stride_rows + part);
        for (x = 0; x < columns; x += layer->windows) {
            uint32_t some = nn_least(layer->windows, columns - x);
            const int8_t *pixels = layer->pixels;
            uint32_t size = layer->pool_columns * conv->filters;

            layer->kernel(conv, layer->window, (piece->column + x) * layer->pool_stride_columns,
                          some * layer->pool_columns, layer->pixels, layer->scratch);
            for (i = x; i < x + some; i++, pixels += size) {
                if (layer->average) {
                    nn_keep_sum(sums + i * conv->filters, pixels, layer->pool_columns,
                                conv->filters, part > 0);
                } else {
                    nn_keep_max(out + i * step, pixels, layer->pool_columns, conv->filters,
                                part > 0);
                }
            }
        }
    }
    for (x = 0; layer->average && x < columns; x++) {
        nn_mean(out + x * step, sums + x * conv->filters, conv->filters,
                layer->pool_rows * layer->pool_columns, layer->rounded);
    }
}

/* Computes a row; pixels of the output are `step` bytes apart. */
static void nn_make_row(const nn_piece *piece, uint32_t y, int8_t *out, uint32_t step)
{
    const nn_layer *layer = piece->layer;
    uint32_t columns = nn_columns(piece, y), i;

    if (layer->conv != NULL && layer->pooled) {
        nn_pooled_row(piece, y, columns, out, step);
    } else if (layer->conv != NULL) {
        uint32_t size = layer->out_pixel_bytes / layer->filters * piece->conv.filters;

        nn_under(piece, y);
        if (size == step) {
            layer->kernel(&piece->conv, layer->window, piece->column, columns, out,
                          layer->scratch);
            return;
        }
        for (i = 0; i < columns; i++, out += step) {
            layer->kernel(&piece->conv, layer->window, piece->column + i, 1, out,
                          layer->scratch);
        }
    } else if (layer->pool != NULL) {
        nn_pool pool = *layer->pool;
        uint32_t skipped = piece->column * layer->stride_columns - piece->start;

        pool.width = (uint16_t)columns;
        nn_under(piece, y);
        for (i = 0; i < layer->window_rows; i++) {
            layer->window[i] += skipped * layer->pixel_bytes;
        }
        layer->pooling(&pool, layer->window, out);
    } else {
        uint32_t skipped = (piece->column - piece->start) * layer->pixel_bytes;

        for (i = 0; i < layer->sources; i++) {
            layer->window[i] = nn_row_at(piece, i, (int32_t)y) + skipped;
        }
        layer->joining(layer->window, layer->sources, columns * layer->pixel_bytes, out);
    }
}

/* Starts to copy input rows, in two parts where they wrap around the ring; returns the copies. */
static unsigned nn_fetch(const nn_piece *piece, uint32_t row, uint32_t end)
{
    const nn_rows *run = piece->run;
    const nn_layer *layer = piece->layer;
    uint32_t row_bytes = layer->columns * layer->pixel_bytes;
    unsigned started = 0, source;

    if (run->rings == NULL || piece->start == piece->end) {
        return 0;
    }
    while (row < end) {
        uint32_t slot = row % run->slots, rows = nn_least(end - row, run->slots - slot);
        uint32_t size = (piece->end - piece->start) * layer->pixel_bytes;
        uint32_t at = row * row_bytes, left = run->input_bytes - at;

        if (left < rows * row_bytes) { /* the last row of pixels is shorter */
            size = nn_least(size, left);
        }
        for (source = 0; source < layer->sources; source++, started++) {
            nn_copy_start_2d(NN_INPUT, run->rings[source] + slot * run->pitch, run->pitch,
                             piece->from[source] + at + piece->start * layer->pixel_bytes,
                             row_bytes, size, rows);
        }
        row += rows;
    }
    return started;
}

static void nn_leave(const nn_piece *piece, uint32_t first, uint32_t rows, const int8_t *out)
{
    const nn_layer *layer = piece->layer;
    uint32_t pixel = layer->out_pixel_bytes, row_bytes = layer->out_columns * pixel;
    int8_t *to = piece->to + first * row_bytes + piece->column * pixel;
    uint32_t columns = nn_columns(piece, first);

    if (piece->filters < layer->filters) {
        uint32_t value = pixel / layer->filters;

        nn_copy_start_2d(NN_OUTPUT, to + piece->filter * value, pixel, out,
                         piece->filters * value, piece->filters * value, columns);
    } else {
        nn_copy_start_2d(NN_OUTPUT, to, row_bytes, out, columns * pixel, columns * pixel, rows);
    }
}

static void nn_compute(nn_piece *piece, nn_feed *feed, uint32_t first, uint32_t rows, int8_t *out)
{
    const nn_rows *run = piece->run;
    const nn_layer *layer = piece->layer;
    uint32_t value = layer->out_pixel_bytes / layer->filters;
    uint32_t pixel = out != NULL ? piece->filters * value : layer->out_pixel_bytes;
    uint32_t pitch = piece->columns * pixel, filter, y;
    uint32_t step = run->weights == NN_ROWS_OUTER ? run->filters : piece->filters;

    if (out == NULL) {
        pitch = layer->out_columns * pixel;
        out = piece->to + first * pitch + piece->column * pixel;
    }
    for (filter = 0; filter < piece->filters; filter += step) {
        if (run->weights == NN_ROWS_OUTER) {
            nn_feed_take(feed, piece, filter, nn_least(step, piece->filters - filter));
        }
        for (y = first; y < first + rows; y++) {
            nn_make_row(piece, y, out + (y - first) * pitch + filter * value, pixel);
        }
    }
}

/* Computes all rows of a piece, copies going on meanwhile. */
static void nn_stream(nn_piece *piece, nn_feed *feed)
{
    const nn_rows *run = piece->run;
    const nn_layer *layer = piece->layer;
    uint32_t first, fetched = 0;
    unsigned unit = 0, waiting = 0;

    for (first = 0; first < layer->out_rows; first += run->band, unit++) {
        uint32_t rows = nn_least(run->band, layer->out_rows - first);
        uint32_t end = nn_needed_end(layer, first + rows - 1);

        waiting += nn_fetch(piece, fetched, end);
        fetched = end;
        for (; waiting > 0; waiting--) {
            nn_copy_wait(NN_INPUT);
        }
        if (run->ahead && first + rows < layer->out_rows) {
            uint32_t last = nn_least(first + 2 * (uint32_t)run->band, layer->out_rows) - 1;
            uint32_t next = nn_needed_end(layer, last);

            waiting = nn_fetch(piece, fetched, next);
            fetched = next;
        }
        if (unit >= 2 && run->outputs[0] != NULL) {
            nn_copy_wait(NN_OUTPUT);
        }
        nn_compute(piece, feed, first, rows, run->outputs[unit & 1]);
        if (run->outputs[0] != NULL) {
            nn_leave(piece, first, rows, run->outputs[unit & 1]);
        }
    }
    for (unit = unit < 2 ? unit : 2; unit > 0 && run->outputs[0] != NULL; unit--) {
        nn_copy_wait(NN_OUTPUT);
    }
}

static void nn_filters(nn_piece *piece, nn_feed *feed)
{
    const nn_rows *run = piece->run;
    uint32_t all = piece->layer->filters;
    uint32_t step = run->weights == NN_WEIGHTS_OUTER ? run->filters : all;

    for (piece->filter = 0; piece->filter < all; piece->filter += step) {
        piece->filters = nn_least(step, all - piece->filter);
        if (run->weights == NN_WEIGHTS_OUTER ||
            (run->weights == NN_RESIDENT && piece->column == 0)) {
            nn_feed_take(feed, piece, piece->filter, piece->filters);
        }
        nn_stream(piece, feed);
    }
}

void nn_run_rows(const nn_rows *run, const int8_t *const *from, int8_t *to)
{
    const nn_layer *layer = run->layer;
    uint32_t tiles = (layer->out_columns + (uint32_t)run->columns - 1) / run->columns;
    uint32_t bands = (layer->out_rows + (uint32_t)run->band - 1) / run->band;
    nn_piece piece;
    nn_feed feed;

    piece.run = run;
    piece.layer = layer;
    piece.from = from;
    piece.to = to;
    if (layer->conv != NULL) {
        piece.conv = *layer->conv;
    }
    feed.run = run;
    feed.group = feed.number = 0;
    feed.left = run->weights == NN_IN_PLACE ? 0 : run->groups;
    if (run->weights == NN_ROWS_OUTER) {
        feed.left *= tiles * bands;
    } else if (run->weights == NN_WEIGHTS_OUTER) {
        feed.left *= tiles;
    }
    nn_feed_start(&feed);
    for (piece.column = 0; piece.column < layer->out_columns; piece.column += run->columns) {
        piece.columns = nn_least(run->columns, layer->out_columns - piece.column);
        piece.start = 0;
        piece.end = layer->columns;
        if (run->rings != NULL) {
            nn_span span =
                nn_needed_columns(layer, piece.column, piece.column + piece.columns - 1);

            piece.start = span.first;
            piece.end = span.end;
        }
        if (layer->conv != NULL) {
            piece.conv.pad =
                (int16_t)(layer->conv->pad + (int32_t)piece.start * layer->spread_columns);
            piece.conv.width = (uint16_t)(piece.end - piece.start);
        }
        nn_filters(&piece, &feed);
    }
}
