#include "arm_nn.h"

/* The same with results of 32 bits, which are shifted, but not limited. Arm's library has no such function. */
arm_status arm_fully_connected_q7_q31(const q7_t *pV, const q7_t *pM, const uint16_t dim_vec,
                                  const uint16_t num_of_rows, const uint16_t bias_shift,
                                  const uint16_t out_shift, const q7_t *bias, q31_t *pOut,
                                  q15_t *vec_buffer)
{
    uint32_t row, sums[2];

    nn_q7_vector(vec_buffer, pV, dim_vec);
    for (row = 0; row < num_of_rows; row += 2) {
        nn_q7_two_rows(pV, pM, dim_vec, row, num_of_rows, bias_shift, out_shift, bias, vec_buffer,
                       sums);
        pOut[row] = (q31_t)sums[0] >> out_shift;
        if (row + 1 < num_of_rows) {
            pOut[row + 1] = (q31_t)sums[1] >> out_shift;
        }
    }
    return ARM_MATH_SUCCESS;
}
