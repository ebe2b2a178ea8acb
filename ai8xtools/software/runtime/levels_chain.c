#include "nn_levels.h"

/* Layers that hand each other rows through rings: a row is made when the next layer asks for it. */

/* Prepares a row of a layer, all columns and filters. */
static void nn_whole(nn_piece *piece, const nn_rows *run, const int8_t *const *from)
{
    const nn_layer *layer = run->layer;

    piece->run = run;
    piece->layer = layer;
    piece->from = from;
    piece->to = NULL;
    piece->column = piece->filter = piece->start = 0;
    piece->columns = layer->out_columns;
    piece->end = layer->columns;
    piece->filters = layer->filters;
    if (run->rings != NULL) {
        piece->end = nn_needed_columns(layer, 0, layer->out_columns - 1u).end;
    }
    if (layer->conv != NULL) {
        piece->conv = *layer->conv;
        piece->conv.width = (uint16_t)piece->end;
        if (run->weights == NN_RESIDENT) {
            piece->conv.weights = run->buffers[0];
        }
    }
}

/* The rows of the first layer that the others ask for. */
static uint32_t nn_demand(const nn_rows *const *runs, unsigned count)
{
    uint32_t rows = runs[count - 1]->layer->out_rows;

    for (; count > 1 && rows > 0; count--) {
        rows = nn_needed_end(runs[count - 1]->layer, rows - 1);
    }
    return rows;
}

/* Starts to copy rows up to `end` that were not, and returns up to where they are now. */
static uint32_t nn_fetch_to(const nn_piece *piece, uint32_t fetched, uint32_t end,
                            unsigned *waiting)
{
    if (fetched >= end) {
        return fetched;
    }
    *waiting += nn_fetch(piece, fetched, end);
    return end;
}

void nn_run_chain(const nn_rows *const *runs, unsigned count, uint16_t *done,
                  const int8_t *const *from, int8_t *to)
{
    const nn_rows *last = runs[count - 1];
    uint32_t row_bytes = last->layer->out_columns * last->layer->out_pixel_bytes, fetched = 0, y;
    uint32_t demand = nn_demand(runs, count);
    unsigned waiting = 0, number;
    nn_piece piece;

    for (number = 0; number < count; number++) {
        done[number] = 0;
        if (runs[number]->weights == NN_RESIDENT) {
            nn_copy_start(NN_WEIGHTS, runs[number]->buffers[0], runs[number]->stored,
                          runs[number]->offsets[1]);
        }
    }
    for (number = 0; number < count; number++) {
        if (runs[number]->weights == NN_RESIDENT) {
            nn_copy_wait(NN_WEIGHTS);
        }
    }
    for (y = 0; y < last->layer->out_rows; y++) {
        int8_t *row = last->outputs[0] != NULL ? last->outputs[y & 1] : to + y * row_bytes;

        if (y >= 2 && last->outputs[0] != NULL) {
            nn_copy_wait(NN_OUTPUT);
        }
        for (number = count - 1; done[count - 1] <= y;) {
            const nn_rows *run = runs[number];
            uint32_t produced = done[number], end = nn_needed_end(run->layer, produced);
            int8_t *out = row;

            if (number > 0 && done[number - 1] < end) {
                number--;
                continue;
            }
            nn_whole(&piece, run, from);
            if (number == 0) {
                fetched = nn_fetch_to(&piece, fetched, end, &waiting);
                for (; waiting > 0; waiting--) {
                    nn_copy_wait(NN_INPUT);
                }
                if (run->ahead && produced + 1 < demand) {
                    end = nn_needed_end(run->layer, produced + 1);
                    fetched = nn_fetch_to(&piece, fetched, end, &waiting);
                }
            }
            if (number + 1 < count) {
                const nn_rows *next = runs[number + 1];

                out = next->rings[0] + produced % next->slots * next->pitch;
            }
            nn_make_row(&piece, produced, out, run->layer->out_pixel_bytes);
            done[number]++;
            number += number + 1 < count;
        }
        if (last->outputs[0] != NULL) {
            nn_copy_start(NN_OUTPUT, to + y * row_bytes, row, row_bytes);
        }
    }
    for (y = y < 2 ? y : 2; y > 0 && last->outputs[0] != NULL; y--) {
        nn_copy_wait(NN_OUTPUT);
    }
}
