#include "nn_kernels.h"

/* Convolution a pixel at a time on cores with the DSP extension of Armv7E-M: four filters at once.
 *
 * A word holds the weights of two filters for two inputs; those of the first filter are 128 greater,
 * so that they are not negative. As halves of 16 bits they are u + 256 * w: SMLAD adds up products of
 * both filters. Those of the second alone, by which the first is found, take one product for two
 * inputs: (x1 + w0) * (x0 + w1) is x0 * w0 + x1 * w1, and x0 * x1, which is the same for all filters,
 * and w0 * w1, which the generator knows: start is less by the sum of w0 * w1 for the second filter
 * of a pair, and greater by 256 times that for the first, modulo 2^32. SXTAB16 widens weights and
 * adds them to inputs. What is the same for all filters is subtracted: products of neighbors, and
 * 128 times the sum of inputs.
 *
 * Weights: four filters at a time, two if no more are left. Of each group uint8_t in the order four
 * inputs, pair of filters, inputs 0, 2, 1, 3, filter of the pair; inputs in the order kernel row,
 * kernel column, channel, with zeros at the end up to a multiple of four. Scratch: the patch in bytes.
 *
 * No sum overflows: the generator has proven it for the final sum of each filter, and additions
 * wrap on the way.
 */

/* A pixel by groups of filters. */
typedef struct {
    uint32_t sums[4];      /* of a group, without start */
    uint32_t too_great;    /* of all filters: 128 times the inputs */
    uint32_t neighbors;    /* and the products of neighbors */
    const int32_t *start;  /* of the next filters, as weights and out */
    int8_t *out;
    const uint8_t *weights;
    uint32_t fours;        /* groups of four filters */
    int32_t right;
    int32_t mode;          /* what becomes of sums: 0 to -128..127, 1 to 0..127, 2 nothing */
} nn_dsp_pixel;

#if defined(__ARM_FEATURE_DSP) && !defined(__ARM_BIG_ENDIAN)

/* Sums of two filters over `quads` times four inputs, and what is the same for all filters. */
__attribute__((naked, noinline)) static void
nn_dsp_pixel_two(const int8_t *data NN_READ, uint32_t quads NN_READ, nn_dsp_pixel *pixel NN_READ)
{
    __asm__ volatile(
        "push {r4, r5, r6, r7, r8, r9, r10, r11, lr}\n"
        "ldr r3, [r2, #32]\n"
        "mov.w r12, #0x00800080\n"
        "movs r4, #0\n"
        "mov r8, r4\n"
        "mov r9, r4\n"
        "mov r10, r4\n"
        "mov r11, r4\n"
        "1:\n"
        "ldr r5, [r0], #4\n"
        "ldrd r6, r7, [r3], #8\n"
        "sxtb16 r4, r5\n"
        "sxtb16 r5, r5, ror #8\n"
        "smlad r11, r4, r5, r11\n"
        "sadd16 lr, r4, r5\n"
        "smlad r10, lr, r12, r10\n"
        "smlad r8, r4, r6, r8\n"
        "smlad r8, r5, r7, r8\n"
        "sxtab16 r6, r5, r6, ror #8\n"
        "sxtab16 r7, r4, r7, ror #8\n"
        "smlad r9, r6, r7, r9\n"
        "subs r1, r1, #1\n"
        "bne 1b\n"
        "sub r8, r8, r10\n"
        "sub r9, r9, r11\n"
        "sub r8, r8, r9, lsl #8\n"
        "strd r8, r9, [r2]\n"
        "strd r10, r11, [r2, #16]\n"
        "pop {r4, r5, r6, r7, r8, r9, r10, r11, pc}\n");
}

/* Groups of four filters; with mode 2 a single one. On the stack: 0 data, 4 rounds, 8 entry,
 * 12 pixel. */
__attribute__((naked, noinline)) static void
nn_dsp_pixel_fours(const int8_t *data NN_READ, uint32_t quads NN_READ, nn_dsp_pixel *pixel NN_READ)
{
    __asm__ volatile(
#define NN_DSP_PIXEL_STEP                                                                          \
    "ldr r5, [r0], #4\n"                                                                           \
    "ldmia.w r1!, {r6, r7, r8, r9}\n"                                                              \
    "sxtb16 r4, r5\n"                                                                              \
    "sxtb16 r5, r5, ror #8\n"                                                                      \
    "smlad r10, r4, r6, r10\n"                                                                     \
    "smlad r10, r5, r7, r10\n"                                                                     \
    "sxtab16 r6, r5, r6, ror #8\n"                                                                 \
    "sxtab16 r7, r4, r7, ror #8\n"                                                                 \
    "smlad r11, r6, r7, r11\n"                                                                     \
    "smlad r12, r4, r8, r12\n"                                                                     \
    "smlad r12, r5, r9, r12\n"                                                                     \
    "sxtab16 r8, r5, r8, ror #8\n"                                                                 \
    "sxtab16 r9, r4, r9, ror #8\n"                                                                 \
    "smlad lr, r8, r9, lr\n"
        "push {r4, r5, r6, r7, r8, r9, r10, r11, lr}\n"
        "and r3, r1, #1\n" /* steps that the first round leaves out */
        "adds r1, r1, #1\n"
        "lsrs r1, r1, #1\n" /* rounds of two steps */
        "rsb r4, r3, r3, lsl #3\n"
        "adr.w r3, 2f\n"
        "add r3, r3, r4, lsl #3\n" /* of 56 bytes */
        "orr r3, r3, #1\n"
        "mov r4, r2\n"
        "push {r0, r1, r3, r4}\n"
        "ldr r1, [r2, #32]\n"
        "1:\n"
        "ldrd r0, r2, [sp]\n"
        "ldrd r3, r4, [sp, #8]\n"
        "ldrd r5, r4, [r4, #16]\n"
        "rsb r10, r5, #0\n"
        "rsb r11, r4, #0\n"
        "mov r12, r10\n"
        "mov lr, r11\n"
        "bx r3\n"
        ".balign 4\n"
        "2:\n" NN_DSP_PIXEL_STEP NN_DSP_PIXEL_STEP
        "subs r2, r2, #1\n"
        "bne.w 2b\n"
        "ldr r3, [sp, #12]\n"
        "sub r10, r10, r11, lsl #8\n"
        "sub r12, r12, lr, lsl #8\n"
        "ldrd r0, r2, [r3, #24]\n" /* start out */
        "ldrd r8, r9, [r3, #40]\n" /* right mode */
        "cmp r9, #1\n"
        "bgt 5f\n"
        "ldmia r0!, {r4, r5, r6, r7}\n"
        "add r10, r10, r4\n"
        "add r11, r11, r5\n"
        "add r12, r12, r6\n"
        "add lr, lr, r7\n"
        "asr r10, r10, r8\n"
        "asr r11, r11, r8\n"
        "asr r12, r12, r8\n"
        "asr lr, lr, r8\n"
        "bne 3f\n"
        "usat r10, #7, r10\n"
        "usat r11, #7, r11\n"
        "usat r12, #7, r12\n"
        "usat lr, #7, lr\n"
        "b 4f\n"
        "3:\n"
        "ssat r10, #8, r10\n"
        "ssat r11, #8, r11\n"
        "ssat r12, #8, r12\n"
        "ssat lr, #8, lr\n"
        "4:\n"
        "strb r10, [r2], #1\n"
        "strb r11, [r2], #1\n"
        "strb r12, [r2], #1\n"
        "strb lr, [r2], #1\n"
        "strd r0, r2, [r3, #24]\n"
        "ldr r4, [r3, #36]\n"
        "subs r4, r4, #1\n"
        "str r4, [r3, #36]\n"
        "bne.w 1b\n"
        "b 6f\n"
        "5:\n"
        "stmia.w r3, {r10, r11, r12, lr}\n"
        "6:\n"
        "str r1, [r3, #32]\n"
        "add sp, sp, #16\n"
        "pop {r4, r5, r6, r7, r8, r9, r10, r11, pc}\n");
#undef NN_DSP_PIXEL_STEP
}

/* What is the same for all filters. */
static void nn_dsp_pixel_inputs(const int8_t *data, uint32_t quads, nn_dsp_pixel *pixel)
{
    const int8_t *end = data + 4 * quads;
    uint32_t inputs = 0, neighbors = 0;

    for (; data != end; data += 4) {
        uint32_t bytes, even, odd;

        __builtin_memcpy(&bytes, data, 4);
        __asm__("sxtb16 %0, %1" : "=r"(even) : "r"(bytes));
        __asm__("sxtb16 %0, %1, ror #8" : "=r"(odd) : "r"(bytes));
        __asm__("smlad %0, %1, %2, %0" : "+r"(neighbors) : "r"(even), "r"(odd));
        __asm__("sadd16 %0, %1, %2" : "=r"(odd) : "r"(even), "r"(odd));
        __asm__("smlad %0, %1, %2, %0" : "+r"(inputs) : "r"(odd), "r"(0x00800080u));
    }
    pixel->too_great = inputs;
    pixel->neighbors = neighbors;
}

#else

/* The same in plain C, so that the program runs on any computer too. */
static void nn_dsp_pixel_inputs(const int8_t *data, uint32_t quads, nn_dsp_pixel *pixel)
{
    uint32_t i;

    pixel->too_great = 0;
    pixel->neighbors = 0;
    for (i = 0; i < 4 * quads; i += 2) {
        pixel->too_great += (uint32_t)(128 * (data[i] + data[i + 1]));
        pixel->neighbors += (uint32_t)(data[i] * data[i + 1]);
    }
}

/* A pair of filters of a group of `pairs`. */
static void nn_dsp_pixel_pair(const int8_t *data, uint32_t quads, uint32_t pair, uint32_t pairs,
                              nn_dsp_pixel *pixel)
{
    const uint8_t *weights = pixel->weights + 8 * pair;
    uint32_t both = 0 - pixel->too_great, second = 0 - pixel->neighbors;
    unsigned i;

    for (; quads; quads--, data += 4, weights += 8 * pairs) {
        int32_t sum[4]; /* of an input and the second filter's weight of its neighbor */

        for (i = 0; i < 4; i++) {
            const uint8_t *weight = weights + (i % 2 * 2 + i / 2) * 2;
            const int32_t wide = weight[1] < 128 ? weight[1] : weight[1] - 256;

            both += (uint32_t)(data[i] * (weight[0] + 256 * wide));
            sum[i] = data[i ^ 1] + wide;
        }
        second += (uint32_t)(sum[0] * sum[1] + sum[2] * sum[3]);
    }
    pixel->sums[2 * pair] = both - 256 * second;
    pixel->sums[2 * pair + 1] = second;
}

static void nn_dsp_pixel_two(const int8_t *data, uint32_t quads, nn_dsp_pixel *pixel)
{
    nn_dsp_pixel_inputs(data, quads, pixel);
    nn_dsp_pixel_pair(data, quads, 0, 1, pixel);
}

static void nn_dsp_pixel_fours(const int8_t *data, uint32_t quads, nn_dsp_pixel *pixel)
{
    do {
        unsigned i;

        nn_dsp_pixel_pair(data, quads, 0, 2, pixel);
        nn_dsp_pixel_pair(data, quads, 1, 2, pixel);
        pixel->weights += 16 * quads;
        for (i = 0; i < 4 && pixel->mode < 2; i++) {
            const int32_t sum = (int32_t)((uint32_t)*pixel->start++ + pixel->sums[i]);

            *pixel->out++ = (int8_t)nn_clip(sum >> pixel->right, pixel->mode ? 0 : -128, 127);
        }
    } while (pixel->mode < 2 && --pixel->fours);
}

#endif

/* Stores the sums of filters from `filter` on, of those that there are. */
__attribute__((noinline)) static void nn_dsp_pixel_store(const nn_conv *conv, void *to, uint32_t filter, const uint32_t *sums)
{
    const uint32_t *end = sums + 4;

    for (; sums != end && filter < conv->filters; filter++) {
        nn_store(conv, to, filter, (int32_t)((uint32_t)conv->start[filter] + *sums++));
    }
}

void nn_conv_dsp_pixel(const nn_conv *conv, const int8_t *const *rows, unsigned x, unsigned count,
                       void *out, void *scratch)
{
    const uint32_t quads = (conv->channels * conv->kernel_rows * conv->kernel_columns + 3) / 4;
    const uint32_t size = conv->filters * (conv->flags & NN_WIDE ? 4u : 1u);
    const uint32_t fours = conv->filters / 4, left = conv->filters % 4;
    const int simple = conv->flags == 0 && conv->right >= 0;
    int32_t at = (int32_t)(x * conv->stride) - conv->pad;
    int8_t *to = (int8_t *)out;
    nn_dsp_pixel pixel;

    pixel.right = conv->right;
    for (; count; count--, at += conv->stride, to += size) {
        const int8_t *data = nn_patch(conv, rows, at, (int8_t *)scratch);
        uint32_t filter = 0;

        if (left == 1 || left == 2) {
            pixel.weights = (const uint8_t *)conv->weights + fours * 16 * quads;
            nn_dsp_pixel_two(data, quads, &pixel);
            nn_dsp_pixel_store(conv, to, 4 * fours, pixel.sums);
        } else {
            nn_dsp_pixel_inputs(data, quads, &pixel);
        }
        pixel.weights = (const uint8_t *)conv->weights;
        if (simple && fours) {
            pixel.start = conv->start;
            pixel.out = to;
            pixel.fours = fours;
            pixel.mode = conv->low == 0;
            nn_dsp_pixel_fours(data, quads, &pixel);
            filter = 4 * fours;
        }
        for (pixel.mode = 2; filter + 2 < conv->filters; filter += 4) {
            nn_dsp_pixel_fours(data, quads, &pixel);
            nn_dsp_pixel_store(conv, to, filter, pixel.sums);
        }
    }
}
