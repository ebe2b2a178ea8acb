/* Runs a project of quantize.py --device Q15 or Q7 on inputs of the standard input. */
#include <stdint.h>
#include <stdio.h>

#include "cnn.h"

#define VALUE_BYTES (CNN_OUT_BYTES / CNN_OUT_SIZE)

static int16_t input[CNN_IN_SIZE], output[CNN_OUT_SIZE];

int main(void)
{
    cnn_init();
    while (fread(input, VALUE_BYTES, CNN_IN_SIZE, stdin) == CNN_IN_SIZE) {
        if (cnn_run((const void *)input, (void *)output) != CNN_OK) {
            return 1;
        }
        fwrite(output, 1, CNN_OUT_BYTES, stdout);
    }
    return 0;
}
