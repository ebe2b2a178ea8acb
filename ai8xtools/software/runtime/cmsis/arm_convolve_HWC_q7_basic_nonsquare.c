#include "arm_nn.h"

/* What lies under the kernel at an output pixel: kernel rows and columns inside the image. */
typedef struct {
    int32_t row, rows_end, column, columns_end;
    const q7_t *data; /* the first pixel inside; NULL if there is none */
} nn_q7_inside;

static inline nn_q7_inside nn_q7_under(const q7_t *image, int32_t width, int32_t height,
                                       int32_t channels, int32_t left, int32_t top,
                                       int32_t kernel_x, int32_t kernel_y)
{
    nn_q7_inside inside;

    inside.row = top < 0 ? -top : 0;
    inside.rows_end = height - top < kernel_y ? height - top : kernel_y;
    inside.column = left < 0 ? -left : 0;
    inside.columns_end = width - left < kernel_x ? width - left : kernel_x;
    inside.data = NULL;
    if (inside.row < inside.rows_end && inside.column < inside.columns_end) {
        inside.data = image + ((top + inside.row) * width + left + inside.column) * channels;
    } else {
        inside.rows_end = inside.row = inside.columns_end = inside.column = 0;
    }
    return inside;
}

#if defined(__ARM_FEATURE_DSP) && !defined(__ARM_BIG_ENDIAN)

/* Widens the patch of a pixel: rows and columns outside the image are zeros. */
static void nn_q7_patch(q15_t *to, uint32_t pixel, const nn_q7_inside *under, uint32_t kernel_x,
                        uint32_t kernel_y, uint32_t channels, uint32_t row_bytes)
{
    const uint32_t inputs = kernel_x * kernel_y * channels, whole = inputs & ~(uint32_t)3;
    const uint32_t row = kernel_x * channels, left = (uint32_t)under->column * channels;
    const uint32_t run = (uint32_t)(under->columns_end - under->column) * channels;
    const q7_t *data = under->data;
    uint32_t at = (uint32_t)under->row * row, y;

    nn_q7_widen(to, 2, pixel, whole, 0, NULL, at);
    if (run == row && row == row_bytes) { /* all of it stands together */
        const uint32_t size = (uint32_t)(under->rows_end - under->row) * row;

        nn_q7_widen(to, 2, pixel, whole, at, data, size);
        at += size;
    } else {
        for (y = (uint32_t)under->row; y < (uint32_t)under->rows_end; y++, data += row_bytes) {
            if (left != 0) {
                nn_q7_widen(to, 2, pixel, whole, at, NULL, left);
            }
            nn_q7_widen(to, 2, pixel, whole, at + left, data, run);
            if (left + run < row) {
                nn_q7_widen(to, 2, pixel, whole, at + left + run, NULL, row - left - run);
            }
            at += row;
        }
    }
    nn_q7_widen(to, 2, pixel, whole, at, NULL, inputs - at);
}

/* Computes one or two pixels from two patches. */
static void nn_q7_pixels(const q15_t *patches, uint32_t pixels, uint32_t inputs, const q7_t *weights,
                         uint32_t filters, const q7_t *bias, uint16_t bias_shift,
                         uint16_t out_shift, q7_t *out)
{
    nn_q7_tile tile = nn_q7_tile_of(patches, 2, inputs);
    uint32_t filter, sums[4];

    tile.weights = weights;
    for (filter = 0; filter + 1 < filters; filter += 2, tile.weights += 2 * inputs, out += 2) {
        sums[0] = sums[2] = nn_q7_start(bias, filter, bias_shift, out_shift);
        sums[1] = sums[3] = nn_q7_start(bias, filter + 1, bias_shift, out_shift);
        nn_q7_tile_sums(&tile, 2, inputs, sums);
        out[0] = nn_q7_narrow(sums[0], out_shift);
        out[1] = nn_q7_narrow(sums[1], out_shift);
        if (pixels == 2) {
            out[filters] = nn_q7_narrow(sums[2], out_shift);
            out[filters + 1] = nn_q7_narrow(sums[3], out_shift);
        }
    }
    if (filter < filters) { /* the last one alone, twice */
        tile.distance = 0;
        sums[0] = sums[2] = nn_q7_start(bias, filter, bias_shift, out_shift);
        sums[1] = sums[3] = 0;
        nn_q7_tile_sums(&tile, 2, inputs, sums);
        out[0] = nn_q7_narrow(sums[0], out_shift);
        if (pixels == 2) {
            out[filters] = nn_q7_narrow(sums[2], out_shift);
        }
    }
}

#endif

/* Convolution of an image of any size; x counts columns, y rows. bufferA: 2 * inputs of a filter. */
arm_status arm_convolve_HWC_q7_basic_nonsquare(
    const q7_t *Im_in, const uint16_t dim_im_in_x, const uint16_t dim_im_in_y,
    const uint16_t ch_im_in, const q7_t *wt, const uint16_t ch_im_out, const uint16_t dim_kernel_x,
    const uint16_t dim_kernel_y, const uint16_t padding_x, const uint16_t padding_y,
    const uint16_t stride_x, const uint16_t stride_y, const q7_t *bias, const uint16_t bias_shift,
    const uint16_t out_shift, q7_t *Im_out, const uint16_t dim_im_out_x,
    const uint16_t dim_im_out_y, q15_t *bufferA, q7_t *bufferB)
{
    const uint32_t inputs = (uint32_t)ch_im_in * dim_kernel_x * dim_kernel_y;
    int32_t x, y;
#if defined(__ARM_FEATURE_DSP) && !defined(__ARM_BIG_ENDIAN)
    uint32_t ready = 0;
#else
    (void)bufferA;
#endif

    (void)bufferB;
    for (y = 0; y < dim_im_out_y; y++) {
        for (x = 0; x < dim_im_out_x; x++) {
            const nn_q7_inside under = nn_q7_under(
                Im_in, dim_im_in_x, dim_im_in_y, ch_im_in, x * stride_x - padding_x,
                y * stride_y - padding_y, dim_kernel_x, dim_kernel_y);
#if defined(__ARM_FEATURE_DSP) && !defined(__ARM_BIG_ENDIAN)
            nn_q7_patch(bufferA, ready, &under, dim_kernel_x, dim_kernel_y, ch_im_in,
                        (uint32_t)dim_im_in_x * ch_im_in);
            if (++ready == 2) {
                nn_q7_pixels(bufferA, 2, inputs, wt, ch_im_out, bias, bias_shift, out_shift, Im_out);
                Im_out += 2 * ch_im_out;
                ready = 0;
            }
#else
            const uint32_t run = (uint32_t)((under.columns_end - under.column) * ch_im_in);
            const uint32_t first = (uint32_t)(under.row * dim_kernel_x + under.column) * ch_im_in;
            uint32_t filter;

            for (filter = 0; filter < ch_im_out; filter += 2) {
                const int both = filter + 1 < ch_im_out;
                const q7_t *data = under.data;
                const q7_t *weights = wt + filter * inputs + first;
                uint32_t sums[2];
                int32_t row;

                sums[0] = nn_q7_start(bias, filter, bias_shift, out_shift);
                sums[1] = both ? nn_q7_start(bias, filter + 1, bias_shift, out_shift) : 0;
                for (row = under.row; row < under.rows_end; row++) {
                    nn_q7_dot(data, weights, both ? inputs : 0, run, sums);
                    data += (uint32_t)dim_im_in_x * ch_im_in;
                    weights += (uint32_t)dim_kernel_x * ch_im_in;
                }
                *Im_out++ = nn_q7_narrow(sums[0], out_shift);
                if (both) {
                    *Im_out++ = nn_q7_narrow(sums[1], out_shift);
                }
            }
#endif
        }
    }
#if defined(__ARM_FEATURE_DSP) && !defined(__ARM_BIG_ENDIAN)
    if (ready) { /* with what the other patch held before; its sums are left out */
        nn_q7_pixels(bufferA, 1, inputs, wt, ch_im_out, bias, bias_shift, out_shift, Im_out);
    }
#endif
    return ARM_MATH_SUCCESS;
}
