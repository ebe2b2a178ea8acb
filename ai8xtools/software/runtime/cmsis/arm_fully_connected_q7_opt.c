#include "arm_nn.h"

/* Fully connected layer; weights of four rows take turns: of four columns a1 b1 a3 b3 c1 d1 c3 d3 a2
 * b2 a4 b4 c2 d2 c4 d4, of those left over aN bN cN dN. vec_buffer: dim_vec numbers. */
arm_status arm_fully_connected_q7_opt(const q7_t *pV, const q7_t *pM, const uint16_t dim_vec,
                                      const uint16_t num_of_rows, const uint16_t bias_shift,
                                      const uint16_t out_shift, const q7_t *bias, q7_t *pOut,
                                      q15_t *vec_buffer)
{
    uint32_t row, i, k, sums[4];

    (void)vec_buffer;
    for (row = 0; row + 4 <= num_of_rows; row += 4) {
        for (k = 0; k < 4; k++) {
            sums[k] = nn_q7_start(bias, row + k, bias_shift, out_shift);
        }
        for (i = 0; i + 4 <= dim_vec; i += 4, pM += 16) {
            const int32_t a = pV[i], b = pV[i + 1], c = pV[i + 2], d = pV[i + 3];

            sums[0] += (uint32_t)(a * pM[0] + c * pM[2] + b * pM[8] + d * pM[10]);
            sums[1] += (uint32_t)(a * pM[1] + c * pM[3] + b * pM[9] + d * pM[11]);
            sums[2] += (uint32_t)(a * pM[4] + c * pM[6] + b * pM[12] + d * pM[14]);
            sums[3] += (uint32_t)(a * pM[5] + c * pM[7] + b * pM[13] + d * pM[15]);
        }
        for (; i < dim_vec; i++, pM += 4) {
            for (k = 0; k < 4; k++) {
                sums[k] += (uint32_t)(pV[i] * pM[k]);
            }
        }
        for (k = 0; k < 4; k++) {
            pOut[row + k] = nn_q7_narrow(sums[k], out_shift);
        }
    }
    for (; row < num_of_rows; row++) {
        sums[0] = nn_q7_start(bias, row, bias_shift, out_shift);
        for (i = 0; i < dim_vec; i++) {
            sums[0] += (uint32_t)(pV[i] * *pM++);
        }
        pOut[row] = nn_q7_narrow(sums[0], out_shift);
    }
    return ARM_MATH_SUCCESS;
}
