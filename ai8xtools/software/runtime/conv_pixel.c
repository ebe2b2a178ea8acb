#include "nn_kernels.h"

/* Convolution a pixel at a time, with two products per multiplication: filters share a word.
 *
 * A word holds the weights of four filters, each 128 greater so that it is not negative: u0 + u2 * 2^8
 * + u1 * 2^16 + u3 * 2^24. Sums of x * word and of x * (u2 + u3 * 2^16) modulo 2^32 give those of
 * both pairs; 128 times the sum of x in each half is too much. The halves must be 16-bit numbers
 * whenever they are taken out, at the end of each run of inputs; that they are is proven from the
 * weights when these are packed.
 *
 * Weights: uint32_t; of four filters each run, its length and then a word for each input in the
 * order kernel row, kernel column, channel; 0 ends them. Scratch: the patch in bytes.
 */

#define NN_PIXEL_ODD 0x00ff00ffu
#define NN_PIXEL_OFFSETS 0x00800080u

/* Sums of four filters; `words` are their runs. Returns what follows these. */
#if !defined(NN_ARMV6M)

static const uint32_t *nn_pixel_sums(const int8_t *data, const uint32_t *words, uint32_t *sums)
{
    uint32_t left, i;

    for (i = 0; i < 4; i++) {
        sums[i] = 0;
    }
    while ((left = *words++) != 0) {
        uint32_t first = 0, second = 0, all = 0;
        int32_t lower;

#define NN_PIXEL_STEP(n)                                                                           \
    {                                                                                              \
        const uint32_t value = (uint32_t)(int32_t)data[n], word = words[n];                        \
                                                                                                   \
        first += value * word;                                                                     \
        second += value * ((word >> 8) & NN_PIXEL_ODD);                                            \
        all += value;                                                                              \
    }
        for (; left >= 4; left -= 4, data += 4, words += 4) {
            NN_PIXEL_STEP(0)
            NN_PIXEL_STEP(1)
            NN_PIXEL_STEP(2)
            NN_PIXEL_STEP(3)
        }
        for (; left; left--, data++, words++) {
            NN_PIXEL_STEP(0)
        }
#undef NN_PIXEL_STEP
        all *= NN_PIXEL_OFFSETS;
        first -= (second << 8) + all;
        second -= all;
        lower = (int16_t)(first & 0xffffu);
        sums[0] += (uint32_t)lower;
        sums[1] += (uint32_t)((int32_t)(first - (uint32_t)lower) >> 16);
        lower = (int16_t)(second & 0xffffu);
        sums[2] += (uint32_t)lower;
        sums[3] += (uint32_t)((int32_t)(second - (uint32_t)lower) >> 16);
    }
    return words;
}

#else

__attribute__((naked, noinline)) static const uint32_t *
nn_pixel_sums(const int8_t *data NN_READ, const uint32_t *words NN_READ, uint32_t *sums NN_READ)
{
    /* r2 what keeps the odd bytes, r7 the next input; r8, r9 sums of products, r12 of inputs;
     * r10, r11, lr and the stack: sums of the filters. */
    __asm__ volatile(
#define NN_PIXEL_STEP                                                                              \
    "ldrsb r3, [r0, r7]\n"                                                                         \
    "adds r7, r7, #1\n"                                                                            \
    "add r12, r3\n"                                                                                \
    "ldmia r1!, {r4}\n"                                                                            \
    "movs r5, r4\n"                                                                                \
    "muls r5, r3, r5\n"                                                                            \
    "add r8, r5\n"                                                                                 \
    "lsrs r4, r4, #8\n"                                                                            \
    "ands r4, r2\n"                                                                                \
    "muls r4, r3, r4\n"                                                                            \
    "add r9, r4\n"
#define NN_PIXEL_4_STEPS NN_PIXEL_STEP NN_PIXEL_STEP NN_PIXEL_STEP NN_PIXEL_STEP
        ".syntax unified\n" /* GNU compilers begin with the older one */
        "push {r4, r5, r6, r7, lr}\n"
        "mov r4, r8\n"
        "mov r5, r9\n"
        "mov r6, r10\n"
        "mov r7, r11\n"
        "push {r4, r5, r6, r7}\n"
        "movs r7, #0\n"
        "push {r2}\n"
        "push {r7}\n" /* the fourth sum */
        "mov r10, r7\n"
        "mov r11, r7\n"
        "mov lr, r7\n"
        "ldr r2, 4f\n"
        "b 6f\n"
        ".balign 4\n"
        "4: .word 0x00ff00ff\n"
        "1:\n" NN_PIXEL_4_STEPS NN_PIXEL_4_STEPS NN_PIXEL_4_STEPS NN_PIXEL_4_STEPS
        "2:\n"
        "subs r6, r6, #1\n"
        "bmi 5f\n"
        "b 1b\n"
        "5:\n"
        "mov r3, r12\n"
        "ldr r4, 7f\n"
        "muls r3, r4, r3\n"
        "mov r5, r9\n"
        "lsls r6, r5, #8\n"
        "subs r5, r5, r3\n"
        "mov r4, r8\n"
        "subs r4, r4, r6\n"
        "subs r4, r4, r3\n"
        "sxth r3, r4\n"
        "add r10, r3\n"
        "subs r4, r4, r3\n"
        "asrs r4, r4, #16\n"
        "add r11, r4\n"
        "sxth r3, r5\n"
        "add lr, r3\n"
        "subs r5, r5, r3\n"
        "asrs r5, r5, #16\n"
        "ldr r3, [sp]\n"
        "adds r3, r3, r5\n"
        "str r3, [sp]\n"
        "6:\n"
        "ldmia r1!, {r4}\n"
        "subs r4, r4, #1\n"
        "bmi 3f\n"
        "lsrs r6, r4, #4\n" /* rounds of 16 steps behind the first, which may be shorter */
        "lsls r4, r4, #28\n"
        "lsrs r4, r4, #28\n"
        "movs r3, #22\n" /* bytes of a step */
        "muls r4, r3, r4\n"
        "movs r3, #0\n"
        "mov r8, r3\n"
        "mov r9, r3\n"
        "mov r12, r3\n"
        "ldr r3, 8f\n"
        "subs r3, r3, r4\n"
        "bx r3\n"
        ".balign 4\n"
        "7: .word 0x00800080\n"
        "8: .word 2b - 22 + 1\n"
        "3:\n"
        "pop {r3, r6}\n"
        "mov r0, r10\n"
        "mov r4, r11\n"
        "mov r5, lr\n"
        "stmia r6!, {r0, r4, r5}\n"
        "str r3, [r6]\n"
        "mov r0, r1\n"
        "pop {r4, r5, r6, r7}\n"
        "mov r8, r4\n"
        "mov r9, r5\n"
        "mov r10, r6\n"
        "mov r11, r7\n"
        "pop {r4, r5, r6, r7, pc}\n");
#undef NN_PIXEL_4_STEPS
#undef NN_PIXEL_STEP
}

#endif

void nn_conv_pixel(const nn_conv *conv, const int8_t *const *rows, unsigned x, unsigned count,
                   void *out, void *scratch)
{
    const uint32_t size = conv->filters * (conv->flags & NN_WIDE ? 4u : 1u);
    int32_t at = (int32_t)(x * conv->stride) - conv->pad;
    int8_t *pixel = (int8_t *)out;

    for (; count; count--, at += conv->stride, pixel += size) {
        const int8_t *data = nn_patch(conv, rows, at, (int8_t *)scratch);
        const uint32_t *words = (const uint32_t *)conv->weights;
        uint32_t filter;

        for (filter = 0; filter < conv->filters; filter += 4) {
            uint32_t sums[4];

            words = nn_pixel_sums(data, words, sums);
            nn_store_four(conv, pixel, filter, sums);
        }
    }
}
