#include "arm_nn.h"

/* Makes negative values zero, of any number of values. Arm's library has no such function. */
void arm_relu32_q7(q7_t *data, uint32_t size)
{
#if defined(__ARM_FEATURE_UNALIGNED)
    uint32_t values, negative;

    for (; size >= 4; size -= 4, data += 4) {
        __builtin_memcpy(&values, data, 4);
        negative = values >> 7 & 0x01010101u;
        values &= ~((negative << 8) - negative);
        __builtin_memcpy(data, &values, 4);
    }
#endif
    for (; size; size--, data++) {
        *data = *data < 0 ? 0 : *data;
    }
}
