#include "nn_slide.h"

/* Row `y` of the window that begins `ahead` hops after this one; NULL outside of it. `moved` are
 * the place of the first row and that of the first rows of this window. */
int8_t *nn_slide_row(const nn_slide *slide, const uint16_t *moved, unsigned ahead, int32_t y)
{
    const uint32_t row = (uint32_t)y;

    if (y < 0 || row >= slide->rows) {
        return NULL;
    }
    if (row < slide->first) {
        return slide->begin + nn_place(&slide->edges, moved[1] + ahead) +
               row * slide->data.row_bytes;
    }
    if (row >= slide->end) {
        return slide->finish + (row - slide->end) * slide->data.row_bytes;
    }
    return slide->ring + nn_place(&slide->data, moved[0] + ahead * slide->hop + row);
}

/* Points at `count` rows from row `first` on, `step` apart. */
void nn_slide_window(const int8_t **rows, unsigned count, int32_t first, unsigned step,
                     const nn_slide *slide, const uint16_t *moved, unsigned ahead)
{
    unsigned i;

    for (i = 0; i < count; i++, first += (int32_t)step) {
        rows[i] = nn_slide_row(slide, moved, ahead, first);
    }
}

/* The window moves by a hop; what is kept as a whole moves in its memory. */
void nn_slide_move(const nn_slide *slide, uint16_t *moved)
{
    if (slide->data.ring < slide->data.rows) {
        uint32_t at = (uint32_t)moved[0] + slide->step;

        moved[0] = (uint16_t)(at < slide->data.ring ? at : at - slide->data.ring);
    } else {
        const uint32_t size = slide->rows * slide->data.row_bytes;
        const uint32_t dropped = slide->hop * slide->data.row_bytes;
        uint32_t i;

        for (i = 0; i + dropped < size; i++) {
            slide->ring[i] = slide->ring[i + dropped];
        }
    }
    moved[1] = (uint16_t)(moved[1] + 1 < slide->edges.ring ? moved[1] + 1 : 0);
}
