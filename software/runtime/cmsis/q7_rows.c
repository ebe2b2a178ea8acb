#include "arm_nn.h"

/* Computes the sums of rows `row` and, if there is one, the next of a matrix by a vector, which is
 * widened in `vec_buffer` where that is faster. */
static inline void nn_q7_two_rows(const q7_t *pV, const q7_t *pM, uint32_t dim_vec, uint32_t row,
                                  uint32_t rows, uint16_t bias_shift, uint16_t out_shift,
                                  const q7_t *bias, const q15_t *vec_buffer, uint32_t *sums)
{
    const int both = row + 1 < rows;
    uint32_t start[2];

    start[0] = nn_q7_start(bias, row, bias_shift, out_shift);
    start[1] = nn_q7_start(bias, both ? row + 1 : row, bias_shift, out_shift);
#if defined(__ARM_FEATURE_DSP) && !defined(__ARM_BIG_ENDIAN)
    (void)pV;
    nn_q7_tile_sums(vec_buffer, 1, dim_vec, pM + row * dim_vec, both, start, sums);
#else
    (void)vec_buffer;
    sums[0] = nn_q7_dot(pV, pM + row * dim_vec, dim_vec, start[0]);
    sums[1] = both ? nn_q7_dot(pV, pM + (row + 1) * dim_vec, dim_vec, start[1]) : 0;
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
