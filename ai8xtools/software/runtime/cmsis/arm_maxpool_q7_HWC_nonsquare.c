#include "arm_nn.h"

/* The same for square windows. Arm's library has no such function. */
void arm_maxpool_q7_HWC_nonsquare(const q7_t *Im_in, const uint16_t dim_im_in_x,
                                  const uint16_t dim_im_in_y, const uint16_t ch_im_in,
                                  const uint16_t dim_kernel, const uint16_t padding,
                                  const uint16_t stride, const uint16_t dim_im_out_x,
                                  const uint16_t dim_im_out_y, q7_t *bufferA, q7_t *Im_out)
{
    arm_maxpool_nonsquare_q7_HWC_nonsquare(Im_in, dim_im_in_x, dim_im_in_y, ch_im_in, dim_kernel,
                                           dim_kernel, padding, padding, stride, stride,
                                           dim_im_out_x, dim_im_out_y, bufferA, Im_out);
}
