#include "arm_nn.h"

/* What sums of products begin with, and what becomes of them. Sums wrap; so they are unsigned. */

static inline uint32_t nn_q7_start(const q7_t *bias, uint32_t filter, uint16_t bias_shift,
                                   uint16_t out_shift)
{
    return ((uint32_t)(int32_t)bias[filter] << bias_shift) + (((uint32_t)1 << out_shift) >> 1);
}

static inline q7_t nn_q7_narrow(uint32_t sum, uint16_t out_shift)
{
    return (q7_t)nn_clip((int32_t)sum >> out_shift, -128, 127);
}
