/* Rows of tensors whose window slides over a stream: those that move with the data are computed
 * once and stay in a ring; the first and the last rows of a window are computed for each window. */
#ifndef NN_SLIDE_H
#define NN_SLIDE_H

#include "nn.h"

typedef struct {
    int8_t *ring;   /* rows that move, or all rows of this window in order */
    int8_t *begin;  /* the first rows of some windows */
    int8_t *finish; /* the last rows of this window */
    nn_image data;  /* places in the ring */
    nn_image edges; /* places of the first rows; a row is those of a window */
    uint16_t rows;  /* of a window */
    uint16_t first; /* the first row that moves */
    uint16_t end;   /* behind the last one that moves */
    uint16_t hop;   /* by how many rows a window moves */
    uint16_t step;  /* the same in the ring */
} nn_slide;

int8_t *nn_slide_row(const nn_slide *slide, const uint16_t *moved, unsigned ahead, int32_t y);
void nn_slide_window(const int8_t **rows, unsigned count, int32_t first, unsigned step,
                     const nn_slide *slide, const uint16_t *moved, unsigned ahead);
void nn_slide_move(const nn_slide *slide, uint16_t *moved);

#endif
