#include "arm_nn.h"

/* Makes negative values zero. */
void arm_relu_q7(q7_t *data, uint16_t size)
{
    arm_relu32_q7(data, size);
}
