#include "nn_kernels.h"

/* Depthwise convolution: each channel has a filter of its own. Four channels at a time.
 *
 * Weights: int8_t in the order kernel row, kernel column, channel. Scratch: two pointers for each
 * place of the kernel. */

/* A place of the kernel that lies within the image: its pixel and its weights. */
typedef struct {
    const int8_t *data, *weights;
}
#if defined(__GNUC__)
__attribute__((packed, aligned(4), may_alias)) /* as scratch is, where pointers are longer, too */
#endif
nn_depthwise_tap;

/* Four channels at a time of a pixel. */
typedef struct {
    const nn_depthwise_tap *taps, *end; /* at least one */
    const int32_t *start;
    int8_t *out;
    uint32_t channels; /* a multiple of four, not 0 */
    int32_t right;
    int32_t low;
    uint32_t by_three; /* the taps are a multiple of three */
} nn_depthwise_pixel;

#if defined(__ARM_FEATURE_DSP) && !defined(__ARM_BIG_ENDIAN)

/* SXTB16 takes words apart to channels (0, 2) and (1, 3). Stack: the structure. */
__attribute__((naked, noinline)) static void
nn_depthwise_quads(const nn_depthwise_pixel *pixel NN_READ)
{
    __asm__ volatile(
#define NN_DEPTHWISE_TAP                                                                           \
    "ldrd r0, r1, [r3], #8\n"                                                                      \
    "ldr r0, [r0, r2]\n"                                                                           \
    "ldr r1, [r1, r2]\n"                                                                           \
    "sxtb16 r8, r0\n"                                                                              \
    "sxtb16 r0, r0, ror #8\n"                                                                      \
    "sxtb16 r9, r1\n"                                                                              \
    "sxtb16 r1, r1, ror #8\n"                                                                      \
    "smlabb r4, r8, r9, r4\n"                                                                      \
    "smlabb r5, r0, r1, r5\n"                                                                      \
    "smlatt r6, r8, r9, r6\n"                                                                      \
    "smlatt r7, r0, r1, r7\n"
        "push {r4, r5, r6, r7, r8, r9, r10, r11, lr}\n"
        "sub sp, sp, #20\n"
        "ldmia r0, {r4, r5, r6, r7, r8, r9, r10, r11}\n"
        "str r4, [sp]\n"
        "strd r8, r10, [sp, #4]\n"
        "str r11, [sp, #12]\n"
        "mov r12, r5\n"
        "mov r10, r6\n"
        "mov r11, r7\n"
        "mov lr, r9\n"
        "movs r2, #0\n"
        "1:\n"
        "ldmia r10!, {r4, r5, r6, r7}\n"
        "ldr r3, [sp]\n"
        "ldr r0, [sp, #12]\n"
        "cbz r0, 3f\n"
        "2:\n" NN_DEPTHWISE_TAP NN_DEPTHWISE_TAP NN_DEPTHWISE_TAP
        "cmp r3, r12\n"
        "bne.w 2b\n"
        "b 4f\n"
        "3:\n" NN_DEPTHWISE_TAP
        "cmp r3, r12\n"
        "bne 3b\n"
        "4:\n"
        "ldrd r1, r0, [sp, #4]\n"
        "asr r4, r4, lr\n"
        "asr r5, r5, lr\n"
        "asr r6, r6, lr\n"
        "asr r7, r7, lr\n"
        "cbz r0, 5f\n"
        "ssat r4, #8, r4\n"
        "ssat r5, #8, r5\n"
        "ssat r6, #8, r6\n"
        "ssat r7, #8, r7\n"
        "b 6f\n"
        "5:\n"
        "usat r4, #7, r4\n"
        "usat r5, #7, r5\n"
        "usat r6, #7, r6\n"
        "usat r7, #7, r7\n"
        "6:\n"
        "strb r4, [r11], #1\n"
        "strb r5, [r11], #1\n"
        "strb r6, [r11], #1\n"
        "strb r7, [r11], #1\n"
        "adds r2, r2, #4\n"
        "cmp r2, r1\n"
        "bne.w 1b\n"
        "add sp, sp, #20\n"
        "pop {r4, r5, r6, r7, r8, r9, r10, r11, pc}\n");
#undef NN_DEPTHWISE_TAP
}

#else

static void nn_depthwise_quads(const nn_depthwise_pixel *pixel)
{
    const nn_depthwise_tap *const taps = pixel->taps, *const end = pixel->end;
    const int32_t right = pixel->right, low = pixel->low;
    uint32_t channel;

    for (channel = 0; channel < pixel->channels; channel += 4) {
        int32_t sum0 = pixel->start[channel], sum1 = pixel->start[channel + 1];
        int32_t sum2 = pixel->start[channel + 2], sum3 = pixel->start[channel + 3];
        const nn_depthwise_tap *tap;
        int8_t *out = pixel->out + channel;

        for (tap = taps; tap != end; tap++) {
            const int8_t *data = tap->data + channel, *weights = tap->weights + channel;

            sum0 += (int32_t)data[0] * weights[0];
            sum1 += (int32_t)data[1] * weights[1];
            sum2 += (int32_t)data[2] * weights[2];
            sum3 += (int32_t)data[3] * weights[3];
        }
        out[0] = (int8_t)nn_clip(sum0 >> right, low, 127);
        out[1] = (int8_t)nn_clip(sum1 >> right, low, 127);
        out[2] = (int8_t)nn_clip(sum2 >> right, low, 127);
        out[3] = (int8_t)nn_clip(sum3 >> right, low, 127);
    }
}

#endif

/* Lists the places of the kernel from input column `x` on that lie within the image; returns the end. */
static nn_depthwise_tap *nn_depthwise_list(const nn_conv *conv, const int8_t *const *rows,
                                           int32_t x, nn_depthwise_tap *tap)
{
    const int8_t *weights = (const int8_t *)conv->weights;
    const uint32_t channels = conv->channels;
    unsigned row;

    for (row = 0; row < conv->kernel_rows; row++) {
        int32_t place = x;
        unsigned column;

        for (column = 0; column < conv->kernel_columns; column++, weights += channels) {
            if (rows[row] != NULL && place >= 0 && place < (int32_t)conv->width) {
                tap->data = rows[row] + (uint32_t)place * channels;
                tap->weights = weights;
                tap++;
            }
            place += conv->dilation;
        }
    }
    return tap;
}

void nn_depthwise(const nn_conv *conv, const int8_t *const *rows, unsigned x, unsigned count,
                  void *out, void *scratch)
{
    const uint32_t channels = conv->channels;
    const uint32_t size = channels << (conv->flags & NN_WIDE ? 2 : 0);
    const int simple = conv->flags == 0 && conv->right >= 0;
    nn_depthwise_tap *const taps = (nn_depthwise_tap *)scratch;
    nn_depthwise_pixel pixel;

    pixel.taps = taps;
    pixel.start = conv->start;
    pixel.out = (int8_t *)out;
    pixel.channels = simple ? channels & ~(uint32_t)3 : 0;
    pixel.right = conv->right;
    pixel.low = conv->low;
    for (; count; count--, x++, pixel.out += size) {
        const nn_depthwise_tap *tap;
        uint32_t channel = 0;

        pixel.end = nn_depthwise_list(conv, rows, (int32_t)(x * conv->stride) - conv->pad, taps);
        pixel.by_three = (uint32_t)(pixel.end - taps) % 3 == 0;
        if (pixel.channels && pixel.end != taps) {
            nn_depthwise_quads(&pixel);
            channel = pixel.channels;
        }
        for (; channel < channels; channel++) {
            int32_t sum = conv->start[channel];

            for (tap = taps; tap != pixel.end; tap++) {
                sum += (int32_t)tap->data[channel] * tap->weights[channel];
            }
            nn_store(conv, pixel.out, channel, sum);
        }
    }
}
