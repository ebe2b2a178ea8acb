#include "arm_nn.h"

/* Greatest values of windows that need not be square, of an image of any size; windows are clipped at
 * its borders. The data stay as they are. Arm's library has no such function. */
void arm_maxpool_nonsquare_q7_HWC_nonsquare(
    const q7_t *Im_in, const uint16_t dim_im_in_x, const uint16_t dim_im_in_y, const uint16_t ch_im_in,
    const uint16_t dim_kernel_x, const uint16_t dim_kernel_y, const uint16_t padding_x,
    const uint16_t padding_y, const uint16_t stride_x, const uint16_t stride_y,
    const uint16_t dim_im_out_x, const uint16_t dim_im_out_y, q7_t *bufferA, q7_t *Im_out)
{
    int32_t x, y;

    (void)bufferA;
    for (y = 0; y < dim_im_out_y; y++) {
        const int32_t top = y * stride_y - padding_y, below = top + dim_kernel_y;

        for (x = 0; x < dim_im_out_x; x++, Im_out += ch_im_in) {
            const int32_t left = x * stride_x - padding_x, right = left + dim_kernel_x;
            const int32_t first = left < 0 ? 0 : left;
            const int32_t end = right < dim_im_in_x ? right : dim_im_in_x;
            int32_t row = top < 0 ? 0 : top;
            int again = 0;

            for (; row < below && row < dim_im_in_y; row++, again = 1) {
                nn_keep_max(Im_out, Im_in + (row * dim_im_in_x + first) * ch_im_in,
                            (unsigned)(end - first), ch_im_in, again);
            }
        }
    }
}
