#include "nn_kernels.h"

/* Subtracts from the first of the values of `count` operands, and limits the result to 8 bits once. `out` may be
 * one of them. */
void nn_sub(const int8_t *const *operands, unsigned count, uint32_t number, int8_t *out)
{
    uint32_t i;

    for (i = 0; i < number; i++) {
        int32_t value = operands[0][i];
        unsigned operand;

        for (operand = 1; operand < count; operand++) {
            value -= operands[operand][i];
        }
        out[i] = (int8_t)nn_clip(value, -128, 127);
    }
}
