/* Calls kernels as a list of bytes says, and prints what is wrong: see kernel_rows.py.
 *
 * Rows, outputs and scratch stand between marks that a kernel must neither change nor make use of;
 * on a computer they have memory of exactly their size, too, for its sanitizers. */
#include <stdio.h>
#include "nn_kernels.h"

#if __STDC_HOSTED__
#include <stdlib.h>
#endif

#define MARKED 16u
#define WORDS 22

uint8_t rows_of_kernels[ROOM] NN_ALIGNED = { 1 };
static uint32_t memory[1u << 13];
static uint32_t used;

/* `size` bytes between marks; they begin `shift` bytes behind a word. */
static int8_t *place(uint32_t size, uint32_t shift, const uint8_t *from)
{
    int8_t *at = (int8_t *)memory + used;
    uint32_t i, whole = MARKED + shift + size + MARKED;

#if __STDC_HOSTED__
    if (from != NULL && size > 0) {
        at = malloc(size);
        memcpy(at, from, size);
        return at;
    }
#endif
    for (i = 0; i < whole; i++) {
        at[i] = (int8_t)(i % 2 ? 125 : -127);
    }
    used += (whole + 3) & ~(uint32_t)3;
    if (used > sizeof memory) {
        puts("too little memory");
    }
    if (from != NULL) {
        memcpy(at + MARKED + shift, from, size);
    }
    return at + MARKED + shift;
}

static int marked(const int8_t *at, uint32_t size, uint32_t shift)
{
    const int8_t *begin = at - MARKED - shift;
    uint32_t i;

    for (i = 0; i < MARKED + shift + size + MARKED; i++) {
        const int inside = i >= MARKED + shift && i < MARKED + shift + size;

        if (!inside && begin[i] != (i % 2 ? 125 : -127)) {
            return 0;
        }
    }
    return 1;
}

static const uint8_t *padded(const uint8_t *at, uint32_t size)
{
    return at + ((size + 3) & ~(uint32_t)3);
}

static const uint8_t *one(const uint8_t *at, unsigned number)
{
    static nn_kernel *const kernels[] = { KERNELS };
    int32_t word[WORDS];
    const int8_t *rows[16];
    uint32_t row_bytes, out_bytes, scratch_bytes, shift, i, wrong = 0;
    int8_t *out, *scratch, *weights;
    nn_conv conv;

    memcpy(word, at, sizeof word);
    at += sizeof word;
    used = 0;
    out_bytes = (uint32_t)word[20];
    scratch_bytes = (uint32_t)word[19];
    shift = word[14] & NN_WIDE ? 0 : number % 4;
    conv.channels = (uint32_t)word[1];
    conv.filters = (uint32_t)word[2];
    conv.width = (uint16_t)word[3];
    conv.groups = (uint16_t)word[4];
    conv.flush = (uint16_t)word[5];
    conv.pad = (int16_t)word[6];
    conv.kernel_rows = (uint16_t)word[7];
    conv.kernel_columns = (uint16_t)word[8];
    conv.dilation = (uint16_t)word[9];
    conv.spread = (uint16_t)word[10];
    conv.stride = (uint16_t)word[11];
    conv.right = (int8_t)word[12];
    conv.low = (int8_t)word[13];
    conv.flags = (uint8_t)word[14];
    weights = place((uint32_t)word[18], 0, at);
    conv.weights = weights;
    at = padded(at, (uint32_t)word[18]);
    conv.start = (const int32_t *)(const void *)at;
    at += 4 * conv.filters;
    row_bytes = conv.channels * conv.width;
    for (i = 0; i < conv.kernel_rows; i++) {
        rows[i] = NULL;
        if (word[17] >> i & 1) {
            rows[i] = place(row_bytes, (number + i) % 3, at);
            at = padded(at, row_bytes);
        }
    }
    out = place(out_bytes, shift, NULL);
    scratch = place(scratch_bytes, 0, NULL);
    kernels[word[0]](&conv, rows, (unsigned)word[15], (unsigned)word[16], out, scratch);
    for (i = 0; i < out_bytes; i++) {
        wrong += (uint8_t)out[i] != at[i];
    }
    if (wrong || !marked(out, out_bytes, shift) || !marked(scratch, scratch_bytes, 0)) {
        printf("call %u: %u of %u bytes%s%s\n", number, (unsigned)wrong, (unsigned)out_bytes,
               marked(out, out_bytes, shift) ? "" : ", beside the output",
               marked(scratch, scratch_bytes, 0) ? "" : ", beside the scratch");
    }
#if __STDC_HOSTED__
    free(weights);
    for (i = 0; i < conv.kernel_rows; i++) {
        free((void *)(uintptr_t)rows[i]);
    }
#endif
    return padded(at, out_bytes);
}

int cnn_run(void);
int cnn_run(void)
{
    const uint8_t *at = rows_of_kernels;
    uint32_t count, number;

    memcpy(&count, at, 4);
    at += 4;
    for (number = 0; number < count; number++) {
        at = one(at, number);
    }
    printf("%u calls\n", (unsigned)count);
    return 0;
}

int main(int argc, char **argv)
{
#if __STDC_HOSTED__
    FILE *file = argc > 1 ? fopen(argv[1], "rb") : NULL;

    if (file == NULL || fread(rows_of_kernels, 1, sizeof rows_of_kernels, file) < 4) {
        return 1;
    }
    fclose(file);
#else
    (void)argc;
    (void)argv;
#endif
    return cnn_run();
}
