#include "arm_nn.h"

/* The same where everything is square. Arm's function may destroy the data, this one does not. */
void arm_maxpool_q7_HWC(q7_t *Im_in, const uint16_t dim_im_in, const uint16_t ch_im_in,
                        const uint16_t dim_kernel, const uint16_t padding, const uint16_t stride,
                        const uint16_t dim_im_out, q7_t *bufferA, q7_t *Im_out)
{
    arm_maxpool_nonsquare_q7_HWC_nonsquare(Im_in, dim_im_in, dim_im_in, ch_im_in, dim_kernel,
                                           dim_kernel, padding, padding, stride, stride, dim_im_out,
                                           dim_im_out, bufferA, Im_out);
}
