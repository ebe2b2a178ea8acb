#include "arm_nn.h"

/* Depthwise convolution of an image of any size; weights in the order kernel row, kernel column,
 * channel. The buffers are not used. */
arm_status arm_depthwise_separable_conv_HWC_q7_nonsquare(
    const q7_t *Im_in, const uint16_t dim_im_in_x, const uint16_t dim_im_in_y,
    const uint16_t ch_im_in, const q7_t *wt, const uint16_t ch_im_out, const uint16_t dim_kernel_x,
    const uint16_t dim_kernel_y, const uint16_t padding_x, const uint16_t padding_y,
    const uint16_t stride_x, const uint16_t stride_y, const q7_t *bias, const uint16_t bias_shift,
    const uint16_t out_shift, q7_t *Im_out, const uint16_t dim_im_out_x,
    const uint16_t dim_im_out_y, q15_t *bufferA, q7_t *bufferB)
{
    int32_t x, y, row, column;
    uint32_t channel;

    (void)bufferA;
    (void)bufferB;
    if (ch_im_in != ch_im_out) {
        return ARM_MATH_SIZE_MISMATCH;
    }
    for (y = 0; y < dim_im_out_y; y++) {
        for (x = 0; x < dim_im_out_x; x++) {
            const int32_t top = y * stride_y - padding_y, left = x * stride_x - padding_x;

            const int32_t row_end = nn_clip(dim_im_in_y - top, 0, dim_kernel_y);
            const int32_t column_end = nn_clip(dim_im_in_x - left, 0, dim_kernel_x);

            for (channel = 0; channel < ch_im_in; channel++) {
                uint32_t sum = nn_q7_start(bias, channel, bias_shift, out_shift);

                for (row = top < 0 ? -top : 0; row < row_end; row++) {
                    for (column = left < 0 ? -left : 0; column < column_end; column++) {
                        const uint32_t pixel =
                            (uint32_t)((top + row) * dim_im_in_x + left + column);
                        const uint32_t tap = (uint32_t)(row * dim_kernel_x + column);

                        sum += (uint32_t)((int32_t)Im_in[pixel * ch_im_in + channel] *
                                          wt[tap * ch_im_in + channel]);
                    }
                }
                *Im_out++ = nn_q7_narrow(sum, out_shift);
            }
        }
    }
    return ARM_MATH_SUCCESS;
}
