#include "arm_nn.h"

/* Depthwise convolution where everything is square. */
arm_status arm_depthwise_separable_conv_HWC_q7(
    const q7_t *Im_in, const uint16_t dim_im_in, const uint16_t ch_im_in, const q7_t *wt,
    const uint16_t ch_im_out, const uint16_t dim_kernel, const uint16_t padding,
    const uint16_t stride, const q7_t *bias, const uint16_t bias_shift, const uint16_t out_shift,
    q7_t *Im_out, const uint16_t dim_im_out, q15_t *bufferA, q7_t *bufferB)
{
    return arm_depthwise_separable_conv_HWC_q7_nonsquare(
        Im_in, dim_im_in, dim_im_in, ch_im_in, wt, ch_im_out, dim_kernel, dim_kernel, padding,
        padding, stride, stride, bias, bias_shift, out_shift, Im_out, dim_im_out, dim_im_out,
        bufferA, bufferB);
}
