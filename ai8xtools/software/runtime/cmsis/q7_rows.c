#include "arm_nn.h"

/* Computes the sums of rows `row` and, if there is one, the next of a matrix by a vector, which is
 * widened in `vec_buffer` where that is faster. */
static inline void nn_q7_two_rows(const q7_t *pV, const q7_t *pM, uint32_t dim_vec, uint32_t row,
                                  uint32_t rows, uint16_t bias_shift, uint16_t out_shift,
                                  const q7_t *bias, const q15_t *vec_buffer, uint32_t *sums)
{
    const int both = row + 1 < rows;
#if defined(__ARM_FEATURE_DSP) && !defined(__ARM_BIG_ENDIAN)
    nn_q7_tile tile = nn_q7_tile_of(vec_buffer, 1, dim_vec);
#endif

    sums[0] = nn_q7_start(bias, row, bias_shift, out_shift);
    sums[1] = both ? nn_q7_start(bias, row + 1, bias_shift, out_shift) : 0;
#if defined(__ARM_FEATURE_DSP) && !defined(__ARM_BIG_ENDIAN)
    (void)pV;
    tile.weights = pM + row * dim_vec;
    tile.distance = both ? dim_vec : 0;
    nn_q7_tile_sums(&tile, 1, dim_vec, sums);
#else
    (void)vec_buffer;
    nn_q7_dot(pV, pM + row * dim_vec, both ? dim_vec : 0, dim_vec, sums);
#endif
}

static inline void nn_q7_vector(q15_t *vec_buffer, const q7_t *pV, uint32_t dim_vec)
{
#if defined(__ARM_FEATURE_DSP) && !defined(__ARM_BIG_ENDIAN)
    nn_q7_widen(vec_buffer, 1, 0, dim_vec & ~(uint32_t)3, 0, pV, dim_vec);
#else
    (void)vec_buffer;
    (void)pV;
    (void)dim_vec;
#endif
}
