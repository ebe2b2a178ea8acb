#include "arm_nn.h"

/* The same for channels that are a multiple of four and an even number of filters; others are
 * refused, as the library does. */
arm_status arm_convolve_HWC_q7_fast(
    const q7_t *Im_in, const uint16_t dim_im_in, const uint16_t ch_im_in, const q7_t *wt,
    const uint16_t ch_im_out, const uint16_t dim_kernel, const uint16_t padding,
    const uint16_t stride, const q7_t *bias, const uint16_t bias_shift, const uint16_t out_shift,
    q7_t *Im_out, const uint16_t dim_im_out, q15_t *bufferA, q7_t *bufferB)
{
    if (ch_im_in % 4 != 0 || ch_im_out % 2 != 0) {
        return ARM_MATH_SIZE_MISMATCH;
    }
    return arm_convolve_HWC_q7_basic_nonsquare(
        Im_in, dim_im_in, dim_im_in, ch_im_in, wt, ch_im_out, dim_kernel, dim_kernel, padding,
        padding, stride, stride, bias, bias_shift, out_shift, Im_out, dim_im_out, dim_im_out,
        bufferA, bufferB);
}
