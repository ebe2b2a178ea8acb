#include "arm_nn.h"

/* Sums of products of 8-bit numbers, which convolutions and fully connected layers share. */

#if defined(__ARM_FEATURE_DSP) && !defined(__ARM_BIG_ENDIAN)

/* Data are widened to 16 bits in the order in which SXTB16 takes words apart: of each four inputs
 * (0, 2) and (1, 3), for each pixel. What is left of the inputs stands behind, in plain order, pixel
 * by pixel. Buffers are aligned to 4 bytes. */

typedef uint32_t NN_ALIAS nn_q7_pair;

typedef struct {
    const nn_q7_pair *pairs;
    const q7_t *weights;
    uint32_t distance;     /* bytes from the weights of a filter to those of the next */
    const nn_q7_pair *end; /* of the pairs */
} nn_q7_tile;

/* Widens groups of four values, which begin at `from`; NULL: zeros. `step` words lie between the
 * groups of a pixel. */
static inline void nn_q7_widen_quads(nn_q7_pair *to, uint32_t step, const q7_t *from,
                                     uint32_t quads)
{
    uint32_t bytes, even, odd;

    if (from == NULL) {
        for (; quads; quads--, to += step) {
            to[0] = 0;
            to[1] = 0;
        }
        return;
    }
    for (; quads; quads--, from += 4, to += step) {
        __builtin_memcpy(&bytes, from, 4);
        __asm__("sxtb16 %0, %1" : "=r"(even) : "r"(bytes));
        __asm__("sxtb16 %0, %1, ror #8" : "=r"(odd) : "r"(bytes));
        to[0] = even;
        to[1] = odd;
    }
}

/* Widens `count` values, which are the inputs from number `at` on of a pixel; NULL: zeros. `whole`
 * is the number of inputs in groups of four. */
static void nn_q7_widen(q15_t *to, uint32_t pixels, uint32_t pixel, uint32_t whole, uint32_t at,
                        const q7_t *from, uint32_t count)
{
    static const uint8_t order[4] = { 0, 2, 1, 3 };
    const uint32_t end = at + count;

    while (at < end) {
        if (at % 4 == 0 && at + 4 <= end) {
            const uint32_t quads = (end - at) / 4;

            nn_q7_widen_quads((nn_q7_pair *)(void *)to + (at / 4 * pixels + pixel) * 2, 2 * pixels,
                              from, quads);
            at += 4 * quads;
            from = from != NULL ? from + 4 * quads : NULL;
        } else {
            uint32_t place = at < whole ? (at / 4 * pixels + pixel) * 4 + order[at % 4]
                                        : at * pixels + pixel;

            to[place] = from != NULL ? *from++ : 0;
            at++;
        }
    }
}

/* Adds the products of two pixels and two filters, in pairs, to sums: first pixel by both filters,
 * second pixel by both. */
__attribute__((naked, noinline)) static void nn_q7_2x2(const nn_q7_tile *tile NN_READ,
                                                       uint32_t *sums NN_READ)
{
    __asm__ volatile(
#define NN_Q7_STEP                                                                                 \
    "ldmia r0!, {r3, r4, r5, r6}\n"                                                                \
    "ldr r12, [r1, r2]\n"                                                                          \
    "ldr r7, [r1], #4\n"                                                                           \
    "sxtb16 lr, r7\n"                                                                              \
    "sxtb16 r7, r7, ror #8\n"                                                                      \
    "smlad r8, r3, lr, r8\n"                                                                       \
    "smlad r10, r5, lr, r10\n"                                                                     \
    "smlad r8, r4, r7, r8\n"                                                                       \
    "smlad r10, r6, r7, r10\n"                                                                     \
    "sxtb16 lr, r12\n"                                                                             \
    "sxtb16 r12, r12, ror #8\n"                                                                    \
    "smlad r9, r3, lr, r9\n"                                                                       \
    "smlad r11, r5, lr, r11\n"                                                                     \
    "smlad r9, r4, r12, r9\n"                                                                      \
    "smlad r11, r6, r12, r11\n"
        "push {r1, r4, r5, r6, r7, r8, r9, r10, r11, lr}\n"
        "ldmia r1, {r8, r9, r10, r11}\n"
        "ldmia r0, {r0, r1, r2, r3}\n"
        "push {r3}\n"
        "subs r3, r3, r0\n"
        "lsls r3, r3, #27\n" /* 16 bytes a step: the sign tells that their number is odd */
        "bmi 2f\n"
        "1:\n" NN_Q7_STEP
        "2:\n" NN_Q7_STEP
        "ldr r7, [sp]\n"
        "cmp r0, r7\n"
        "bne 1b\n"
        "pop {r0, r1}\n"
        "stmia r1, {r8, r9, r10, r11}\n"
        "pop {r4, r5, r6, r7, r8, r9, r10, r11, pc}\n");
#undef NN_Q7_STEP
}

/* The same for one pixel. */
__attribute__((naked, noinline)) static void nn_q7_1x2(const nn_q7_tile *tile NN_READ,
                                                       uint32_t *sums NN_READ)
{
    __asm__ volatile(
#define NN_Q7_STEP                                                                                 \
    "ldrd r4, r5, [r0], #8\n"                                                                      \
    "ldr r12, [r1, r2]\n"                                                                          \
    "ldr r7, [r1], #4\n"                                                                           \
    "sxtb16 lr, r7\n"                                                                              \
    "sxtb16 r7, r7, ror #8\n"                                                                      \
    "smlad r8, r4, lr, r8\n"                                                                       \
    "smlad r8, r5, r7, r8\n"                                                                       \
    "sxtb16 lr, r12\n"                                                                             \
    "sxtb16 r12, r12, ror #8\n"                                                                    \
    "smlad r9, r4, lr, r9\n"                                                                       \
    "smlad r9, r5, r12, r9\n"
        "push {r1, r4, r5, r7, r8, r9, lr}\n"
        "ldrd r8, r9, [r1]\n"
        "ldmia r0, {r0, r1, r2, r3}\n"
        "subs r4, r3, r0\n"
        "lsls r4, r4, #28\n" /* 8 bytes a step */
        "bmi 2f\n"
        "1:\n" NN_Q7_STEP
        "2:\n" NN_Q7_STEP
        "cmp r0, r3\n"
        "bne 1b\n"
        "pop {r1}\n"
        "strd r8, r9, [r1]\n"
        "pop {r4, r5, r7, r8, r9, pc}\n");
#undef NN_Q7_STEP
}

/* Widened data of `pixels` (1 or 2) with `inputs` each; weights are set for each pair of filters. */
static inline nn_q7_tile nn_q7_tile_of(const q15_t *data, uint32_t pixels, uint32_t inputs)
{
    nn_q7_tile tile;

    tile.pairs = (const nn_q7_pair *)(const void *)data;
    tile.weights = NULL;
    tile.distance = inputs;
    tile.end = tile.pairs + inputs / 4 * 2 * pixels;
    return tile;
}

/* Adds products to sums in the order pixel, filter. */
static inline void nn_q7_tile_sums(const nn_q7_tile *tile, uint32_t pixels, uint32_t inputs,
                                   uint32_t *sums)
{
    const q15_t *data = (const q15_t *)(const void *)tile->end;
    const q7_t *weights = tile->weights + (inputs & ~(uint32_t)3);
    uint32_t i;

    for (i = inputs % 4; i; i--, data += pixels, weights++) {
        const int32_t one = weights[0], other = weights[tile->distance];

        sums[0] += (uint32_t)(data[0] * one);
        sums[1] += (uint32_t)(data[0] * other);
        if (pixels == 2) {
            sums[2] += (uint32_t)(data[1] * one);
            sums[3] += (uint32_t)(data[1] * other);
        }
    }
    if (tile->pairs == tile->end) {
        return;
    }
    if (pixels == 2) {
        nn_q7_2x2(tile, sums);
    } else {
        nn_q7_1x2(tile, sums);
    }
}

#else

/* Alone in a function, sums and places stay in the few registers that Armv6-M has. */
#if defined(__GNUC__)
#define NN_APART __attribute__((noinline))
#else
#define NN_APART
#endif

/* Adds the products of data with two filters, `distance` bytes apart, to two sums. */
NN_APART static void nn_q7_dot(const q7_t *data, const q7_t *weights, uint32_t distance,
                             uint32_t count, uint32_t *sums)
{
    const q7_t *others = weights + distance;
    uint32_t one = sums[0], other = sums[1], i;

    for (i = 0; i < count; i++) {
        const int32_t value = data[i];

        one += (uint32_t)(value * weights[i]);
        other += (uint32_t)(value * others[i]);
    }
    sums[0] = one;
    sums[1] = other;
}

#endif
