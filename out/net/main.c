/* SPDX-License-Identifier: Apache-2.0
 *
 * Known-answer test of net: runs the network on its sample and compares all values.
 */
#include <stdio.h>
#include <string.h>

#include "cnn.h"
#include "sampledata.h"

static const int8_t input[CNN_IN_SIZE] = INPUT_DATA;
static const int8_t expected[CNN_OUT_SIZE] = OUTPUT_DATA;
static int8_t result[CNN_OUT_SIZE];

int main(void)
{
    int i, right;

    if (cnn_init() != CNN_OK || cnn_run(input, result) != CNN_OK) {
        printf("!!! FAIL !!!\n");
        return 1;
    }
    right = memcmp(result, expected, sizeof result) == 0;
    printf("Output of final layer:\n");
    for (i = 0; i < 3; i++) {
        printf("%d%s", result[i], i % 16 == 15 || i == 3 - 1 ? "\n" : " ");
    }
    printf(right ? "*** PASS ***\n" : "!!! FAIL !!!\n");
    return !right;
}
