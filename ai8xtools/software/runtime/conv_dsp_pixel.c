#include "nn_kernels.h"

/* Convolution a pixel at a time on cores with the DSP extension of Armv7E-M: four filters at once.
 *
 * A word holds the weights of two filters for two inputs; those of the first filter are 128 greater,
 * so that they are not negative. As halves of 16 bits they are u + 256 * w: SMLAD adds up products of
 * both filters, and once more those of the second alone, by which the first is found. The sum of
 * inputs tells what 128 was too much.
 *
 * Weights: uint8_t in the order four filters, four inputs, pair of filters, inputs 0, 2, 1, 3,
 * filter of the pair; inputs in the order kernel row, kernel column, channel, with zeros at the end
 * up to a multiple of four. Scratch: the patch in bytes.
 *
 * No sum overflows: the generator has proven it for the final sum of each filter, and additions
 * wrap on the way.
 */

#if defined(__ARM_FEATURE_DSP) && !defined(__ARM_BIG_ENDIAN)

/* Adds up products of `quads` times four inputs; sums of both filters together and of the second
 * alone, of each pair. */
__attribute__((naked, noinline)) static void
nn_dsp_pixel_sums(const int8_t *data NN_READ, const uint8_t *weights NN_READ,
                  uint32_t quads NN_READ, uint32_t *sums NN_READ)
{
    __asm__ volatile(
#define NN_DSP_PIXEL_STEP                                                                          \
    "ldr r3, [r0], #4\n"                                                                           \
    "sxtb16 r4, r3\n"                                                                              \
    "sxtb16 r5, r3, ror #8\n"                                                                      \
    "ldmia.w r1!, {r6, r7, r8, r9}\n"                                                              \
    "sxtb16 r3, r6, ror #8\n"                                                                      \
    "smlad r10, r4, r6, r10\n"                                                                     \
    "smlad r11, r4, r3, r11\n"                                                                     \
    "sxtb16 r3, r7, ror #8\n"                                                                      \
    "smlad r10, r5, r7, r10\n"                                                                     \
    "smlad r11, r5, r3, r11\n"                                                                     \
    "sxtb16 r3, r8, ror #8\n"                                                                      \
    "smlad r12, r4, r8, r12\n"                                                                     \
    "smlad lr, r4, r3, lr\n"                                                                       \
    "sxtb16 r3, r9, ror #8\n"                                                                      \
    "smlad r12, r5, r9, r12\n"                                                                     \
    "smlad lr, r5, r3, lr\n"
        "push {r3, r4, r5, r6, r7, r8, r9, r10, r11, lr}\n"
        "rsb r4, r2, #0\n"
        "and r4, r4, #3\n" /* steps that the first round leaves out */
        "adds r2, r2, #3\n"
        "lsrs r2, r2, #2\n" /* rounds of four steps */
        "mov.w r10, #0\n"
        "mov.w r11, #0\n"
        "mov.w r12, #0\n"
        "mov.w lr, #0\n"
        "adr.w r3, 2f\n"
        "add r3, r3, r4, lsl #6\n" /* bytes of a step */
        "orr r3, r3, #1\n"
        "bx r3\n"
        ".balign 4\n"
        "2:\n" NN_DSP_PIXEL_STEP NN_DSP_PIXEL_STEP NN_DSP_PIXEL_STEP NN_DSP_PIXEL_STEP
        "subs r2, r2, #1\n"
        "bne.w 2b\n"
        "pop {r3}\n"
        "stmia.w r3, {r10, r11, r12, lr}\n"
        "pop {r4, r5, r6, r7, r8, r9, r10, r11, pc}\n");
#undef NN_DSP_PIXEL_STEP
}

/* The sum of `quads` times four inputs. */
static uint32_t nn_dsp_pixel_all(const int8_t *data, uint32_t quads)
{
    const uint32_t ones = 0x00010001u;
    uint32_t sum = 0;

    for (; quads; quads--, data += 4) {
        uint32_t bytes, even, odd;

        __builtin_memcpy(&bytes, data, 4);
        __asm__("sxtb16 %0, %1" : "=r"(even) : "r"(bytes));
        __asm__("sxtab16 %0, %1, %2, ror #8" : "=r"(odd) : "r"(even), "r"(bytes));
        __asm__("smlad %0, %1, %2, %0" : "+r"(sum) : "r"(odd), "r"(ones));
    }
    return sum;
}

#else

/* The same in plain C, so that the program runs on any computer too. */
static void nn_dsp_pixel_sums(const int8_t *data, const uint8_t *weights, uint32_t quads,
                              uint32_t *sums)
{
    static const uint8_t order[4] = { 0, 2, 1, 3 };
    unsigned pair, i;

    for (i = 0; i < 4; i++) {
        sums[i] = 0;
    }
    for (; quads; quads--, data += 4) {
        for (pair = 0; pair < 4; pair += 2) {
            for (i = 0; i < 4; i++, weights += 2) {
                const int32_t value = data[order[i]];
                const int32_t second = weights[1] < 128 ? weights[1] : weights[1] - 256;

                sums[pair] += (uint32_t)(value * (weights[0] + 256 * second));
                sums[pair + 1] += (uint32_t)(value * second);
            }
        }
    }
}

static uint32_t nn_dsp_pixel_all(const int8_t *data, uint32_t quads)
{
    uint32_t sum = 0, i;

    for (i = 0; i < 4 * quads; i++) {
        const int32_t value = data[i];

        sum += (uint32_t)value;
    }
    return sum;
}

#endif

void nn_conv_dsp_pixel(const nn_conv *conv, const int8_t *const *rows, unsigned x, unsigned count,
                       void *out, void *scratch)
{
    const uint32_t quads = (conv->channels * conv->kernel_rows * conv->kernel_columns + 3) / 4;
    const uint32_t size = conv->filters * (conv->flags & NN_WIDE ? 4u : 1u);
    int32_t at = (int32_t)(x * conv->stride) - conv->pad;
    int8_t *pixel = (int8_t *)out;

    for (; count; count--, at += conv->stride, pixel += size) {
        const int8_t *data = nn_patch(conv, rows, at, (int8_t *)scratch);
        const uint8_t *weights = (const uint8_t *)conv->weights;
        const uint32_t offset = 128 * nn_dsp_pixel_all(data, quads);
        uint32_t filter;

        for (filter = 0; filter < conv->filters; filter += 4, weights += 16 * quads) {
            uint32_t sums[4];

            nn_dsp_pixel_sums(data, weights, quads, sums);
            sums[0] -= 256 * sums[1] + offset;
            sums[2] -= 256 * sums[3] + offset;
            nn_store_four(conv, pixel, filter, sums);
        }
    }
}
