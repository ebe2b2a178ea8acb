#include "nn_kernels.h"

/* Joins the bits of the values of `count` operands; they are 8 bits again. `out` may be one of
 * them. */
void nn_or(const int8_t *const *operands, unsigned count, uint32_t number, int8_t *out)
{
    uint32_t i;

    for (i = 0; i < number; i++) {
        int32_t value = operands[0][i];
        unsigned operand;

        for (operand = 1; operand < count; operand++) {
            value |= operands[operand][i];
        }
        out[i] = (int8_t)value;
    }
}
