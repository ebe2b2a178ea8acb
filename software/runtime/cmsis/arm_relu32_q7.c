#include "arm_nn.h"

/* Makes negative values zero, of any number of values. Arm's library has no such function. */
void arm_relu32_q7(q7_t *data, uint32_t size)
{
    for (; size; size--, data++) {
        *data = *data < 0 ? 0 : *data;
    }
}
