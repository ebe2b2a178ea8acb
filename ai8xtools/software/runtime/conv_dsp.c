#include "nn_kernels.h"

/* Convolution on cores with the DSP extension of Armv7E-M: two pixels by two filters at a time.
 *
 * The two patches are widened to pairs of 16 bits in the order in which SXTB16 takes weights apart:
 * four words for each four inputs, (0, 2) and (1, 3) of the first pixel, then of the second. So
 * nothing has to be shuffled.
 *
 * A word holds the weights of both filters for two inputs; those of the first filter are 128 greater,
 * so that they are not negative. As halves of 16 bits they are u + 256 * w: SMLAD adds up products of
 * both filters, and once more those of the second alone, by which the first is found. The sum of
 * inputs tells what 128 was too much. Only the weights of one filter have to be widened for that.
 *
 * Weights: uint8_t in the order pair of filters, four inputs, inputs 0, 2, 1, 3, filter of the pair;
 * inputs in the order kernel row, kernel column, channel, with zeros at the end up to a multiple of
 * four. Scratch: 4 bytes for each input of a pair of patches, and the patch in bytes.
 *
 * No sum overflows: the generator has proven it for the final sum of each filter, and additions
 * wrap on the way.
 */

#if defined(__ARM_FEATURE_DSP) && !defined(__ARM_BIG_ENDIAN)

typedef uint32_t NN_ALIAS nn_dsp_pair;

typedef struct {
    const nn_dsp_pair *pairs;
    uint32_t quads;       /* groups of four inputs, at least 1 */
    const uint8_t *weights;
    const int32_t *start;
    void *out[2];         /* of both pixels */
    uint32_t filters;     /* pairs of filters */
    int32_t right;
    int32_t mode;         /* what becomes of sums: 0 to -128..127, 1 to 0..127, 2 nothing (int32_t) */
    uint32_t offset[2];   /* what sums of the first filter are too great, of both pixels */
} nn_dsp_tiles;

/* Computes two pixels by pairs of filters. On the stack: a copy of the structure without `out`:
 * 0 pairs, 4 rounds, 8 entry, 12 start, 16 out[0], 20 out[1], 24 filters, 28 right, 32 mode,
 * 36 offset[0], 40 offset[1]. Sums of the pixels: r8, r9 of both filters, r10, r11 of the second. */
__attribute__((naked, noinline)) static void nn_dsp_2x2(const nn_dsp_tiles *tiles NN_READ)
{
    __asm__ volatile(
#define NN_DSP_STEP                                                                                \
    "ldmia r0!, {r3, r4, r5, r6}\n"                                                                \
    "ldrd r7, r12, [r1], #8\n"                                                                     \
    "sxtb16 lr, r7, ror #8\n"                                                                      \
    "smlad r8, r3, r7, r8\n"                                                                       \
    "smlad r9, r5, r7, r9\n"                                                                       \
    "smlad r10, r3, lr, r10\n"                                                                     \
    "smlad r11, r5, lr, r11\n"                                                                     \
    "sxtb16 lr, r12, ror #8\n"                                                                     \
    "smlad r8, r4, r12, r8\n"                                                                      \
    "smlad r9, r6, r12, r9\n"                                                                      \
    "smlad r10, r4, lr, r10\n"                                                                     \
    "smlad r11, r6, lr, r11\n"
        "push {r4, r5, r6, r7, r8, r9, r10, r11, lr}\n"
        "sub sp, sp, #44\n"
        "ldmia r0!, {r2, r3, r4, r5, r6, r7}\n" /* pairs quads weights start out[0] out[1] */
        "mov r1, r4\n"
        "adds r4, r3, #3\n"
        "lsrs r4, r4, #2\n" /* rounds of four steps, the first of which may be shorter */
        "rsb r3, r3, #0\n"
        "and r3, r3, #3\n" /* steps that the first round leaves out */
        "adr.w r8, 2f\n"
        "add r8, r8, r3, lsl #6\n"
        "sub r8, r8, r3, lsl #4\n"
        "sub r8, r8, r3, lsl #1\n" /* of 46 bytes */
        "orr r8, r8, #1\n"
        "strd r2, r4, [sp]\n"
        "strd r8, r5, [sp, #8]\n"
        "strd r6, r7, [sp, #16]\n"
        "ldmia r0!, {r3, r4, r5, r6, r7}\n" /* filters right mode offset[0] offset[1] */
        "strd r3, r4, [sp, #24]\n"
        "strd r5, r6, [sp, #32]\n"
        "str r7, [sp, #40]\n"
        "1:\n"
        "ldrd r0, r2, [sp]\n"
        "ldr r3, [sp, #12]\n"
        "ldrd r8, r10, [r3], #8\n"
        "str r3, [sp, #12]\n"
        "ldrd r3, r4, [sp, #36]\n"
        "add r8, r8, r10, lsl #8\n"
        "sub r9, r8, r4\n"
        "sub r8, r8, r3\n"
        "mov r11, r10\n"
        "ldr pc, [sp, #8]\n"
        ".balign 4\n"
        "2:\n" NN_DSP_STEP NN_DSP_STEP NN_DSP_STEP NN_DSP_STEP
        "subs r2, r2, #1\n"
        "bne.w 2b\n"
        "ldrd r3, r4, [sp, #16]\n"
        "ldrd r6, r7, [sp, #28]\n"
        "sub r8, r8, r10, lsl #8\n" /* the first filter */
        "sub r9, r9, r11, lsl #8\n"
        "subs r7, r7, #1\n"
        "bgt 5f\n"
        "asr r8, r8, r6\n"
        "asr r9, r9, r6\n"
        "asr r10, r10, r6\n"
        "asr r11, r11, r6\n"
        "bmi 3f\n"
        "usat r8, #7, r8\n"
        "usat r9, #7, r9\n"
        "usat r10, #7, r10\n"
        "usat r11, #7, r11\n"
        "b 4f\n"
        "3:\n"
        "ssat r8, #8, r8\n"
        "ssat r9, #8, r9\n"
        "ssat r10, #8, r10\n"
        "ssat r11, #8, r11\n"
        "4:\n"
        "strb r8, [r3], #1\n"
        "strb r10, [r3], #1\n"
        "strb r9, [r4], #1\n"
        "strb r11, [r4], #1\n"
        "b 6f\n"
        "5:\n"
        "str r8, [r3], #4\n"
        "str r10, [r3], #4\n"
        "str r9, [r4], #4\n"
        "str r11, [r4], #4\n"
        "6:\n"
        "strd r3, r4, [sp, #16]\n"
        "ldr r3, [sp, #24]\n"
        "subs r3, r3, #1\n"
        "str r3, [sp, #24]\n"
        "bne.w 1b\n"
        "add sp, sp, #44\n"
        "pop {r4, r5, r6, r7, r8, r9, r10, r11, pc}\n");
#undef NN_DSP_STEP
}

/* Sums of one pixel, the first of `pairs`, by two filters; `sums` holds what they begin with, the
 * first that of both filters together. */
__attribute__((naked, noinline)) static void
nn_dsp_1x2(const nn_dsp_pair *pairs NN_READ, const uint8_t *weights NN_READ,
           uint32_t quads NN_READ, int32_t *sums NN_READ)
{
    __asm__ volatile("push {r3, r4, r5, r6, r7, r8, r9, lr}\n"
                     "ldrd r8, r9, [r3]\n"
                     "1:\n"
                     "ldrd r3, r4, [r0], #16\n"
                     "ldrd r5, r6, [r1], #8\n"
                     "sxtb16 r7, r5, ror #8\n"
                     "smlad r8, r3, r5, r8\n"
                     "smlad r9, r3, r7, r9\n"
                     "sxtb16 r7, r6, ror #8\n"
                     "smlad r8, r4, r6, r8\n"
                     "smlad r9, r4, r7, r9\n"
                     "subs r2, r2, #1\n"
                     "bne 1b\n"
                     "sub r8, r8, r9, lsl #8\n"
                     "pop {r3}\n"
                     "strd r8, r9, [r3]\n"
                     "pop {r4, r5, r6, r7, r8, r9, pc}\n");
}

/* Adds the inputs of a pair, 128 times, to what sums are too great. */
static inline uint32_t nn_dsp_too_great(uint32_t pair, uint32_t offset)
{
    __asm__("smlad %0, %1, %2, %0" : "+r"(offset) : "r"(pair), "r"(0x00800080u));
    return offset;
}

/* Widens quads of bytes to pairs, of one pixel of two. */
static nn_dsp_pair *nn_dsp_widen(nn_dsp_pair *to, const int8_t *from, uint32_t quads,
                                 uint32_t *offset)
{
    uint32_t sum = *offset, even, odd;

#define NN_DSP_WIDEN                                                                               \
    __asm__ volatile("ldr %4, [%0], #4\n"                                                          \
                     "sxtb16 %3, %4\n"                                                             \
                     "sxtb16 %4, %4, ror #8\n"                                                     \
                     "strd %3, %4, [%1], #16\n"                                                    \
                     "smlad %2, %3, %5, %2\n"                                                      \
                     "smlad %2, %4, %5, %2\n"                                                      \
                     : "+r"(from), "+r"(to), "+r"(sum), "=&r"(even), "=&r"(odd)                    \
                     : "r"(0x00800080u)                                                            \
                     : "memory")
    if (quads % 2) {
        NN_DSP_WIDEN;
    }
    for (quads /= 2; quads; quads--) {
        NN_DSP_WIDEN;
        NN_DSP_WIDEN;
    }
#undef NN_DSP_WIDEN
    *offset = sum;
    return to;
}

static nn_dsp_pair *nn_dsp_zero_pairs(nn_dsp_pair *to, uint32_t quads)
{
    for (; quads; quads--, to += 4) {
        to[0] = 0;
        to[1] = 0;
    }
    return to;
}

static inline int8_t *nn_dsp_copy(int8_t *to, const int8_t *from, uint32_t size)
{
    for (; size >= 4; size -= 4, from += 4, to += 4) {
        __builtin_memcpy(to, from, 4);
    }
    if (size & 2) {
        __builtin_memcpy(to, from, 2);
        from += 2;
        to += 2;
    }
    if (size & 1) {
        *to++ = *from;
    }
    return to;
}

static inline int8_t *nn_dsp_zero_bytes(int8_t *to, uint32_t size)
{
    for (; size; size--) {
        *to++ = 0;
    }
    return to;
}

/* Which columns of a row a patch has: zeros on both sides, and between them data from `first` on. */
typedef struct {
    uint32_t left, inside, right; /* bytes */
    int32_t first;
} nn_dsp_columns;

static inline nn_dsp_columns nn_dsp_clip(const nn_conv *conv, int32_t x, int32_t columns)
{
    const int32_t channels = (int32_t)conv->channels;
    int32_t left = x < 0 ? -x : 0, right = x + columns - (int32_t)conv->width;
    nn_dsp_columns clipped;

    left = left < columns ? left : columns;
    right = right < 0 ? 0 : right < columns - left ? right : columns - left;
    clipped.first = left + right < columns ? (x + left) * channels : 0;
    clipped.left = (uint32_t)(left * channels);
    clipped.right = (uint32_t)(right * channels);
    clipped.inside = (uint32_t)((columns - left - right) * channels);
    return clipped;
}

/* Gathers the patch under the kernel from input column `x` on as pairs; channels are a multiple of
 * four. Returns what sums of first filters are too great. */
static uint32_t nn_dsp_patch_quads(const nn_conv *conv, const int8_t *const *rows, int32_t x,
                                   nn_dsp_pair *to)
{
    uint32_t offset = 0;
    /* Where columns do not follow each other in memory each is a run of its own. */
    const int32_t runs = conv->dilation == 1 ? 1 : conv->kernel_columns;
    const int32_t columns = conv->kernel_columns / runs;
    unsigned row;

    for (row = 0; row < conv->kernel_rows; row++) {
        int32_t run, place = x;

        for (run = 0; run < runs; run++, place += conv->dilation) {
            const nn_dsp_columns at = nn_dsp_clip(conv, place, columns);

            if (rows[row] == NULL) {
                to = nn_dsp_zero_pairs(to, (at.left + at.inside + at.right) / 4);
            } else {
                to = nn_dsp_zero_pairs(to, at.left / 4);
                to = nn_dsp_widen(to, rows[row] + at.first, at.inside / 4, &offset);
                to = nn_dsp_zero_pairs(to, at.right / 4);
            }
        }
    }
    return offset;
}

/* The same by way of bytes, for any number of channels. */
static uint32_t nn_dsp_patch_bytes(const nn_conv *conv, const int8_t *const *rows, int32_t x,
                                   nn_dsp_pair *pairs, int8_t *bytes, uint32_t quads)
{
    uint32_t offset = 0;
    const int32_t runs = conv->dilation == 1 ? 1 : conv->kernel_columns;
    const int32_t columns = conv->kernel_columns / runs;
    int32_t run, place = x;
    const uint32_t size = (uint32_t)columns * conv->channels;

    for (run = 0; run < runs; run++, place += conv->dilation) {
        const nn_dsp_columns at = nn_dsp_clip(conv, place, columns);
        int8_t *to = bytes + (uint32_t)run * size;
        unsigned row;

        for (row = 0; row < conv->kernel_rows; row++, to += (uint32_t)(runs - 1) * size) {
            if (rows[row] == NULL) {
                to = nn_dsp_zero_bytes(to, size);
            } else if (at.inside == size) {
                to = nn_dsp_copy(to, rows[row] + at.first, size);
            } else {
                to = nn_dsp_zero_bytes(to, at.left);
                to = nn_dsp_copy(to, rows[row] + at.first, at.inside);
                to = nn_dsp_zero_bytes(to, at.right);
            }
        }
    }
    run = (int32_t)(size * (uint32_t)runs * conv->kernel_rows);
    nn_dsp_zero_bytes(bytes + run, 4 * quads - (uint32_t)run);
    nn_dsp_widen(pairs, bytes, quads, &offset);
    return offset;
}

static inline uint32_t nn_dsp_patch(const nn_conv *conv, const int8_t *const *rows, int32_t x,
                                    nn_dsp_pair *pairs, int8_t *bytes, uint32_t quads)
{
    return conv->channels % 4 ? nn_dsp_patch_bytes(conv, rows, x, pairs, bytes, quads)
                              : nn_dsp_patch_quads(conv, rows, x, pairs);
}

static inline uint32_t nn_dsp_pack(int32_t lower, int32_t upper)
{
    return ((uint32_t)lower & 0xffffu) | (uint32_t)upper << 16;
}

/* The pairs of one pixel of a single channel under 3x3, and what sums are too great; `at` is 0 or 1,
 * the first of its columns. */
static inline uint32_t nn_dsp_single_pairs(int32_t (*value)[4], unsigned at, nn_dsp_pair *to)
{
    const uint32_t pairs[5] = {
        nn_dsp_pack(value[0][at], value[0][at + 2]),
        nn_dsp_pack(value[0][at + 1], value[1][at]),
        nn_dsp_pack(value[1][at + 1], value[2][at]),
        nn_dsp_pack(value[1][at + 2], value[2][at + 1]),
        nn_dsp_pack(value[2][at + 2], 0),
    };
    uint32_t offset = 0;
    unsigned i;

    to[9] = 0;
    for (i = 0; i < 5; i++) {
        to[i / 2 * 4 + i % 2] = pairs[i];
        offset = nn_dsp_too_great(pairs[i], offset);
    }
    return offset;
}

/* Both patches of 3x3 of a single channel, of which at most the outer columns are outside. */
static void nn_dsp_patch_single(const nn_conv *conv, const int8_t *const *rows, int32_t x,
                                nn_dsp_pair *pairs, uint32_t *offset)
{
    static const int8_t zeros[4]; /* the row outside; `data` is the second of four columns */
    const int left = x < 0, right = x + 3 >= (int32_t)conv->width;
    int32_t value[3][4];
    unsigned row;

    for (row = 0; row < 3; row++) {
        const int8_t *data = rows[row] != NULL ? rows[row] + (x + 1) : zeros + 1;

        value[row][0] = left ? 0 : data[-1];
        value[row][1] = data[0];
        value[row][2] = data[1];
        value[row][3] = right ? 0 : data[2];
    }
    offset[0] = nn_dsp_single_pairs(value, 0, pairs);
    offset[1] = nn_dsp_single_pairs(value, 1, pairs + 2);
}

static inline int nn_dsp_is_single(const nn_conv *conv, int32_t x)
{
    return conv->channels == 1 && conv->kernel_rows == 3 && conv->kernel_columns == 3 &&
           conv->dilation == 1 && conv->stride == 1 && x >= -1 && x + 3 <= (int32_t)conv->width;
}

/* Computes two pixels; `tiles` holds what is the same for all. */
static void nn_dsp_two(const nn_conv *conv, nn_dsp_tiles *tiles, int8_t *first, int8_t *second)
{
    const int simple = conv->flags == 0 && conv->right >= 0;
    uint32_t filter = 0;

    tiles->weights = (const uint8_t *)conv->weights;
    if (simple && conv->filters > 1) {
        tiles->out[0] = first;
        tiles->out[1] = second;
        tiles->start = conv->start;
        tiles->filters = conv->filters / 2;
        tiles->right = conv->right;
        tiles->mode = conv->low == 0;
        nn_dsp_2x2(tiles);
        filter = conv->filters & ~1u;
        tiles->weights += 4 * tiles->quads * filter;
    }
    tiles->filters = 1;
    tiles->mode = 2;
    for (; filter < conv->filters; filter += 2, tiles->weights += 8 * tiles->quads) {
        const int both = filter + 1 < conv->filters;
        int32_t start[2], sums[4];

        start[0] = conv->start[filter];
        start[1] = conv->start[filter + (both ? 1u : 0u)];
        tiles->start = start;
        tiles->out[0] = sums;
        tiles->out[1] = sums + 2;
        nn_dsp_2x2(tiles);
        nn_store(conv, first, filter, sums[0]);
        nn_store(conv, second, filter, sums[2]);
        if (both) {
            nn_store(conv, first, filter + 1, sums[1]);
            nn_store(conv, second, filter + 1, sums[3]);
        }
    }
}

static void nn_dsp_one(const nn_conv *conv, const nn_dsp_tiles *tiles, int8_t *pixel)
{
    const uint8_t *weights = (const uint8_t *)conv->weights;
    uint32_t filter;

    for (filter = 0; filter < conv->filters; filter += 2, weights += 8 * tiles->quads) {
        const int both = filter + 1 < conv->filters;
        int32_t sums[2];

        sums[1] = conv->start[filter + (both ? 1u : 0u)];
        sums[0] = (int32_t)((uint32_t)conv->start[filter] + 256 * (uint32_t)sums[1] -
                            tiles->offset[0]);
        nn_dsp_1x2(tiles->pairs, weights, tiles->quads, sums);
        nn_store(conv, pixel, filter, sums[0]);
        if (both) {
            nn_store(conv, pixel, filter + 1, sums[1]);
        }
    }
}

void nn_conv_dsp(const nn_conv *conv, const int8_t *const *rows, unsigned x, unsigned count,
                 void *out, void *scratch)
{
    const uint32_t quads = (conv->channels * conv->kernel_rows * conv->kernel_columns + 3) / 4;
    const uint32_t size = conv->filters * (conv->flags & NN_WIDE ? 4u : 1u);
    nn_dsp_pair *pairs = (nn_dsp_pair *)scratch;
    int8_t *bytes = (int8_t *)(pairs + 4 * quads), *pixel = (int8_t *)out;
    int32_t at = (int32_t)(x * conv->stride) - conv->pad;
    nn_dsp_tiles tiles;

    tiles.pairs = pairs;
    tiles.quads = quads;
    for (; count > 1; at += 2 * conv->stride, count -= 2, pixel += 2 * size) {
        if (nn_dsp_is_single(conv, at)) {
            nn_dsp_patch_single(conv, rows, at, pairs, tiles.offset);
        } else {
            tiles.offset[0] = nn_dsp_patch(conv, rows, at, pairs, bytes, quads);
            tiles.offset[1] =
                nn_dsp_patch(conv, rows, at + conv->stride, pairs + 2, bytes, quads);
        }
        nn_dsp_two(conv, &tiles, pixel, pixel + size);
    }
    if (count) {
        tiles.offset[0] = nn_dsp_patch(conv, rows, at, pairs, bytes, quads);
        nn_dsp_one(conv, &tiles, pixel);
    }
}

#else

/* The same weights in plain C, so that the program runs on any computer too. */
static int32_t nn_dsp_sum(const nn_conv *conv, const int8_t *const *rows, int32_t x,
                          uint32_t filter, int32_t sum)
{
    static const uint8_t order[4] = { 0, 2, 1, 3 };
    const uint32_t quads = (conv->channels * conv->kernel_rows * conv->kernel_columns + 3) / 4;
    const uint8_t *weights = (const uint8_t *)conv->weights + filter / 2 * quads * 8 + filter % 2;
    uint32_t input = 0, channel;
    unsigned row, column;

    for (row = 0; row < conv->kernel_rows; row++) {
        for (column = 0; column < conv->kernel_columns; column++) {
            const int32_t place = x + (int32_t)(column * conv->dilation);
            const int inside = rows[row] != NULL && place >= 0 && place < (int32_t)conv->width;

            for (channel = 0; channel < conv->channels; channel++, input++) {
                if (inside) {
                    const int32_t weight = weights[input / 4 * 8 + 2 * order[input % 4]];

                    sum += (int32_t)rows[row][(uint32_t)place * conv->channels + channel] *
                           (filter % 2 == 0 ? weight - 128 : weight < 128 ? weight : weight - 256);
                }
            }
        }
    }
    return sum;
}

void nn_conv_dsp(const nn_conv *conv, const int8_t *const *rows, unsigned x, unsigned count,
                 void *out, void *scratch)
{
    const uint32_t size = conv->filters * (conv->flags & NN_WIDE ? 4u : 1u);
    int32_t at = (int32_t)(x * conv->stride) - conv->pad;
    int8_t *pixel = (int8_t *)out;
    uint32_t filter;

    (void)scratch;
    for (; count; count--, at += conv->stride, pixel += size) {
        for (filter = 0; filter < conv->filters; filter++) {
            nn_store(conv, pixel, filter,
                     nn_dsp_sum(conv, rows, at, filter, conv->start[filter]));
        }
    }
}

#endif
