#include "arm_nn.h"

/* Sums of products of 8-bit numbers, which all convolutions and fully connected layers share. Sums
 * wrap; so they are unsigned here. */

static inline uint32_t nn_q7_start(const q7_t *bias, uint32_t filter, uint16_t bias_shift,
                                   uint16_t out_shift)
{
    return ((uint32_t)(int32_t)bias[filter] << bias_shift) + (((uint32_t)1 << out_shift) >> 1);
}

static inline q7_t nn_q7_narrow(uint32_t sum, uint16_t out_shift)
{
    return (q7_t)nn_clip((int32_t)sum >> out_shift, -128, 127);
}

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

/* Widens `count` values, which are the inputs from number `at` on of a pixel; NULL: zeros. `whole`
 * is the number of inputs in groups of four. */
static void nn_q7_widen(q15_t *to, uint32_t pixels, uint32_t pixel, uint32_t whole, uint32_t at,
                        const q7_t *from, uint32_t count)
{
    static const uint8_t order[4] = { 0, 2, 1, 3 };
    const uint32_t end = at + count;

    while (at < end) {
        if (at % 4 == 0 && at + 4 <= end && at < whole) {
            nn_q7_pair *word = (nn_q7_pair *)(void *)to + (at / 4 * pixels + pixel) * 2;
            uint32_t bytes = 0, even, odd;

            for (; at + 4 <= end && at < whole; at += 4, word += 2 * pixels) {
                if (from != NULL) {
                    __builtin_memcpy(&bytes, from, 4);
                    from += 4;
                }
                __asm__("sxtb16 %0, %1" : "=r"(even) : "r"(bytes));
                __asm__("sxtb16 %0, %1, ror #8" : "=r"(odd) : "r"(bytes));
                word[0] = even;
                word[1] = odd;
            }
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

/* Sums of `pixels` (1 or 2) widened pixels by filters `filter` and, if `both`, the next; `sums` are
 * in the order pixel, filter. */
static inline void nn_q7_tile_sums(const q15_t *data, uint32_t pixels, uint32_t inputs,
                                   const q7_t *weights, int both, const uint32_t *start,
                                   uint32_t *sums)
{
    const uint32_t whole = inputs & ~(uint32_t)3;
    nn_q7_tile tile;
    uint32_t pixel, i;

    for (pixel = 0; pixel < pixels; pixel++) {
        sums[2 * pixel] = start[0];
        sums[2 * pixel + 1] = start[1];
        for (i = whole; i < inputs; i++) {
            const int32_t value = data[i * pixels + pixel];

            sums[2 * pixel] += (uint32_t)(value * weights[i]);
            sums[2 * pixel + 1] += (uint32_t)(value * weights[both ? inputs + i : i]);
        }
    }
    if (whole == 0) {
        return;
    }
    tile.pairs = (const nn_q7_pair *)(const void *)data;
    tile.weights = weights;
    tile.distance = both ? inputs : 0;
    tile.end = tile.pairs + whole / 2 * pixels;
    if (pixels == 2) {
        nn_q7_2x2(&tile, sums);
    } else {
        nn_q7_1x2(&tile, sums);
    }
}

#else

static inline uint32_t nn_q7_dot(const q7_t *data, const q7_t *weights, uint32_t count,
                                 uint32_t sum)
{
    for (; count; count--) {
        sum += (uint32_t)((int32_t)*data++ * *weights++);
    }
    return sum;
}

#endif
