/* Kernels of a network on a core without accelerator: declarations that all of them share.
 *
 * Data are rows of pixels, a pixel is its channels (HWC). A kernel computes some pixels of one
 * output row from the rows under its window. It owns no memory: rows, output and scratch belong to
 * the caller. Results are those of the accelerator, bit for bit.
 */
#ifndef NN_H
#define NN_H

#include <stddef.h>
#include <stdint.h>
#if __STDC_HOSTED__
#include <string.h>
#else
void *memcpy(void *to, const void *from, size_t size);
void *memset(void *to, int value, size_t size);
#endif

#if defined(__GNUC__)
#define NN_ALIGNED __attribute__((aligned(4)))
#else
#define NN_ALIGNED
#endif

/* Memory of the arena holds numbers of different sizes one after the other. */
#if defined(__GNUC__)
#define NN_ALIAS __attribute__((may_alias))
#else
#define NN_ALIAS
#endif
typedef int16_t NN_ALIAS nn_sum;
typedef int32_t NN_ALIAS nn_word;

/* Whoever compiles headers of Arm's library for another computer says __ARM_ARCH_6M__, too. */
#if defined(__ARM_ARCH_6M__) && defined(__thumb__)
#define NN_ARMV6M
#endif

/* Parameters that only inline assembly reads. */
#if defined(__GNUC__)
#define NN_READ __attribute__((unused))
#endif

/* Shifts of negative numbers are arithmetic on every compiler this is for; others are refused. */
typedef char nn_shifts_are_arithmetic[((-3) >> 1) == -2 ? 1 : -1];

#define NN_ABSOLUTE 1u /* the result is its magnitude */
#define NN_WIDE 2u     /* outputs are int32_t sums: no shift, no clipping */
#define NN_LIMITED 4u  /* with NN_WIDE: outputs are clipped to low..127 all the same */

/* A convolution; a fully connected layer is one of a single pixel. */
typedef struct {
    const void *weights;  /* in the order that the kernel wants */
    const int32_t *start; /* per filter: bias * 128, half of the last place that is kept, and
                           * constants of the kernel if its comment names some */
    uint32_t channels;    /* of an input pixel */
    uint32_t filters;     /* channels of an output pixel */
    uint16_t width;       /* columns of the input */
    uint16_t groups;
    uint16_t flush;       /* a number that the packing of the weights proved, see the kernel */
    int16_t pad;          /* columns of zeros left of the input */
    uint16_t kernel_rows;
    uint16_t kernel_columns;
    uint16_t dilation;
    uint16_t spread;      /* distance of input pixels, more than 1 in transposed convolutions */
    uint16_t stride;      /* distance of windows */
    int8_t right;         /* bits by which sums are shifted right; negative: left */
    int8_t low;           /* least output: 0 after ReLU, else -128 */
    uint8_t flags;
} nn_conv;

/* Computes `count` pixels of an output row from column `x` on.
 *
 * `rows` are kernel_rows pointers to the first pixel of an input row each; NULL is a row of zeros.
 * They need not be aligned; scratch is (4 bytes). `out` is the place of the first pixel.
 */
typedef void nn_kernel(const nn_conv *conv, const int8_t *const *rows, unsigned x, unsigned count,
                       void *out, void *scratch);

static inline int32_t nn_clip(int32_t value, int32_t low, int32_t high)
{
    return value < low ? low : value > high ? high : value;
}

/* Rows of an image in memory: row y stands in place y modulo `ring`. */
typedef struct {
    uint32_t row_bytes;
    uint32_t share; /* NN_SHARE(ring) */
    uint16_t rows;  /* of the image */
    uint16_t ring;  /* that have room at the same time */
} nn_image;

#define NN_SHARE(ring) (65536u / (ring) + 1)

/* `row` is below 65,536. The quotient of row and ring is exact or one too great: many cores divide
 * slowly, or not at all. */
static inline uint32_t nn_place(const nn_image *image, uint32_t row)
{
    if (image->ring < image->rows) {
        const uint32_t ring = image->ring;

        row -= (row * image->share >> 16) * ring;
        row = row < ring ? row : row + ring;
    }
    return row * image->row_bytes;
}

/* Pooling of a row: the window, and the distance of windows and of the columns in a window. */
typedef struct {
    uint32_t channels;
    uint16_t width; /* columns of the result */
    uint16_t rows;
    uint16_t columns;
    uint16_t stride;
    uint16_t dilation;
    uint8_t rounded;
} nn_pool;

/* The average of `count` values; `rounded`: to nearest, halves away from zero. */
static inline int8_t nn_divide(int32_t sum, int32_t count, int rounded)
{
    int32_t size = sum < 0 ? -sum : sum;

    size = rounded ? 2 * size + count : size;
    count = rounded ? 2 * count : count;
    if ((count & (count - 1)) == 0) { /* many cores divide slowly, or not at all */
        for (; count > 1; count >>= 1) {
            size >>= 1;
        }
    } else {
        size /= count;
    }
    return (int8_t)nn_clip(sum < 0 ? -size : size, -128, 127);
}

/* The output of 8 bits that follows from a sum, `start` included. */
static inline int8_t nn_narrow(const nn_conv *conv, int32_t sum)
{
    int right = conv->right;

    sum = right >= 0 ? sum >> right : nn_clip(sum, -128, 127) * ((int32_t)1 << -right);
    if ((conv->flags & NN_ABSOLUTE) && sum < 0) {
        sum = -sum;
    }
    return (int8_t)nn_clip(sum, conv->low, 127);
}

/* Stores the output of filter `filter`; `pixel` is the place of its pixel. */
static inline void nn_store(const nn_conv *conv, void *pixel, uint32_t filter, int32_t sum)
{
    if (conv->flags & NN_WIDE) {
        if (conv->flags & NN_LIMITED) {
            sum = (conv->flags & NN_ABSOLUTE) && sum < 0 ? -sum : sum;
            sum = nn_clip(sum, conv->low, 127);
        }
        ((nn_word *)pixel)[filter] = sum;
    } else {
        ((int8_t *)pixel)[filter] = nn_narrow(conv, sum);
    }
}

/* The same for up to four filters from `filter` on; `start` is not in their sums yet. */
static inline void nn_store_four(const nn_conv *conv, void *pixel, uint32_t filter,
                                 const uint32_t *sums)
{
    const int32_t *start = conv->start + filter;
    const uint32_t left = conv->filters - filter;
    const unsigned count = left < 4 ? (unsigned)left : 4;
    unsigned i;

    if (conv->flags == 0 && conv->right >= 0) {
        const int32_t right = conv->right, low = conv->low; /* not read again behind each store */
        int8_t *to = (int8_t *)pixel + filter;

        for (i = 0; i < count; i++) {
            const int32_t sum = (int32_t)((uint32_t)start[i] + sums[i]);

            to[i] = (int8_t)nn_clip(sum >> right, low, 127);
        }
        return;
    }
    for (i = 0; i < count; i++) {
        nn_store(conv, pixel, filter + i, (int32_t)((uint32_t)start[i] + sums[i]));
    }
}

#endif
