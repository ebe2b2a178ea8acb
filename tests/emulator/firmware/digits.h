/* The sample of the digits, and its known answer, as generated programs have them. */
#include <stdint.h>
#include <stdio.h>
#include "sampledata.h"
#include "sampleoutput.h"

static const uint32_t input_0[] = SAMPLE_INPUT_0;
static const uint32_t expected[] = SAMPLE_OUTPUT;

static void load_input(void)
{
    volatile uint32_t *data = (volatile uint32_t *) 0x50400000;
    for (unsigned int i = 0; i < sizeof(input_0) / sizeof(*input_0); i++)
        data[i] = input_0[i];
}

static int check_output(void)
{
    const uint32_t *next = expected;
    const volatile uint32_t *address;
    while ((address = (const volatile uint32_t *) *next++) != 0) {
        uint32_t mask = *next++;
        for (uint32_t count = *next++; count--; address++, next++)
            if ((*address & mask) != *next)
                return 0;
    }
    return 1;
}
