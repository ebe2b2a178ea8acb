#include "nn_kernels.h"

/* Convolution with Helium (MVE): one pixel by four filters, 16 inputs at a time.
 *
 * Weights: int8_t in the order filter, kernel row, kernel column, channel. Scratch: what stands
 * under the kernel. The last vector of a loop is predicated, so nothing behind weights and data is
 * read. Less than four filters are computed in plain C, as all are on a computer.
 */

static void nn_mve_plain(const nn_conv *conv, const int8_t *data, uint32_t inputs, void *pixel)
{
    const int8_t *weights = (const int8_t *)conv->weights;
    uint32_t filter, i;

    for (filter = 0; filter < conv->filters; filter++, weights += inputs) {
        int32_t sum = conv->start[filter];

        for (i = 0; i < inputs; i++) {
            sum += (int32_t)data[i] * weights[i];
        }
        nn_store(conv, pixel, filter, sum);
    }
}

#if defined(__ARM_FEATURE_MVE) && !defined(__ARM_BIG_ENDIAN)

#include <arm_mve.h>

/* What nn_patch() gives, faster where all of it is within the image and rows are in one piece;
 * `whole`: no row is missing. */
static const int8_t *nn_mve_patch(const nn_conv *conv, const int8_t *const *rows, int32_t x,
                                  int8_t *to, int whole)
{
    const uint32_t place = (uint32_t)x * conv->channels;
    const uint32_t bytes = conv->channels * conv->kernel_columns;
    unsigned row;
    int8_t *next = to;

    if (!whole || x < 0 || x > (int32_t)conv->width - conv->kernel_columns || conv->dilation > 1) {
        return nn_patch(conv, rows, x, to);
    }
    if (bytes == conv->channels && conv->kernel_rows == 1) {
        return rows[0] + place;
    }
    for (row = 0; row < conv->kernel_rows; row++) {
        const int8_t *from = rows[row] + place;
        int8_t *at = next;

        __asm__ volatile("dlstp.8 lr, %2\n"
                         "1:\n"
                         "vldrb.8 q0, [%1], #16\n"
                         "vstrb.8 q0, [%0], #16\n"
                         "letp lr, 1b\n"
                         : "+r"(at), "+r"(from)
                         : "r"(bytes)
                         : "q0", "lr", "memory");
        next += bytes;
    }
    return to;
}

/* Sums of products of four filters, whose weights follow each other. */
static inline int32x4_t nn_mve_1x4(const int8_t *data, const int8_t *weights, uint32_t inputs)
{
    const int8_t *second, *third, *fourth;
    int32x4_t sums;

    __asm__ volatile("mov r4, #0\n"
                     "mov r6, #0\n"
                     "mov r8, #0\n"
                     "mov r10, #0\n"
                     "add %[second], %[first], %[inputs]\n"
                     "add %[third], %[second], %[inputs]\n"
                     "add %[fourth], %[third], %[inputs]\n"
                     "dlstp.8 lr, %[inputs]\n"
                     "1:\n"
                     "vldrb.8 q0, [%[data]], #16\n"
                     "vldrb.8 q1, [%[first]], #16\n"
                     "vmladava.s8 r4, q0, q1\n"
                     "vldrb.8 q2, [%[second]], #16\n"
                     "vmladava.s8 r6, q0, q2\n"
                     "vldrb.8 q1, [%[third]], #16\n"
                     "vmladava.s8 r8, q0, q1\n"
                     "vldrb.8 q2, [%[fourth]], #16\n"
                     "vmladava.s8 r10, q0, q2\n"
                     "letp lr, 1b\n"
                     "vmov %q[sums][2], %q[sums][0], r4, r8\n"
                     "vmov %q[sums][3], %q[sums][1], r6, r10\n"
                     : [sums] "=w"(sums), [data] "+r"(data), [first] "+r"(weights),
                       [second] "=&r"(second), [third] "=&r"(third), [fourth] "=&r"(fourth)
                     : [inputs] "r"(inputs)
                     : "r4", "r6", "r8", "r10", "q0", "q1", "q2", "lr", "memory");
    return sums;
}

__attribute__((noinline)) static void nn_mve_store(const nn_conv *conv, void *pixel,
                                                   uint32_t filter, int32x4_t sums)
{
    int32_t sum[4];
    uint32_t i;

    vstrwq_s32(sum, sums);
    for (i = 0; i < 4; i++) {
        nn_store(conv, pixel, filter + i, sum[i]);
    }
}

static void nn_mve_pixel(const nn_conv *conv, const int8_t *data, uint32_t inputs, int8_t *pixel)
{
    const int8_t *const weights = (const int8_t *)conv->weights;
    const int32_t *const start = conv->start;
    const int simple = conv->flags == 0 && conv->right >= 0;
    const int32_t right = conv->right, last = (int32_t)conv->filters - 4;
    const int32x4_t low = vdupq_n_s32(conv->low), high = vdupq_n_s32(127);
    int32_t filter = -4;

    if (last < 0) {
        nn_mve_plain(conv, data, inputs, pixel);
        return;
    }
    while (filter < last) {
        int32x4_t sums;

        filter = filter + 4 < last ? filter + 4 : last; /* so some may be computed again */
        sums = nn_mve_1x4(data, weights + (uint32_t)filter * inputs, inputs);
        sums = vaddq_s32(sums, vldrwq_s32(start + filter));
        if (simple) {
            sums = vminq_s32(vshlq_r_s32(sums, -right), high);
            vstrbq_s32(pixel + filter, vmaxq_s32(sums, low));
        } else {
            nn_mve_store(conv, pixel, (uint32_t)filter, sums);
        }
    }
}

#else

#define nn_mve_patch(conv, rows, x, to, whole) nn_patch(conv, rows, x, to)
#define nn_mve_pixel nn_mve_plain

#endif

void nn_conv_mve(const nn_conv *conv, const int8_t *const *rows, unsigned x, unsigned count,
                 void *out, void *scratch)
{
    const uint32_t inputs = conv->channels * conv->kernel_rows * conv->kernel_columns;
    const uint32_t size = conv->filters * (conv->flags & NN_WIDE ? 4u : 1u);
    int32_t at = (int32_t)(x * conv->stride) - conv->pad;
    int8_t *pixel = (int8_t *)out;
    unsigned row = 0;

    while (row < conv->kernel_rows && rows[row] != NULL) {
        row++;
    }
    for (; count; count--, at += conv->stride, pixel += size) {
        const int8_t *data =
            nn_mve_patch(conv, rows, at, (int8_t *)scratch, row == conv->kernel_rows);

        nn_mve_pixel(conv, data, inputs, pixel);
    }
}
