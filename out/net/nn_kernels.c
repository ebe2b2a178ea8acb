/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels of a network with numbers of 8 bits, see nn_kernels.h.
 */
#include "nn_kernels.h"

/* What a sum begins with: the bias, and half of the last place that is kept. */
static inline uint32_t nn_start(q7_t bias, unsigned bias_shift, unsigned out_shift)
{
    return ((uint32_t)(int32_t)bias << bias_shift) + (((uint32_t)1 << out_shift) >> 1);
}

static inline q7_t nn_result(uint32_t sum, unsigned out_shift)
{
    return nn_saturated((int32_t)sum >> out_shift);
}

static inline uint32_t nn_multiplied(uint32_t sum, int32_t value, int32_t weight)
{
    return sum + (uint32_t)(value * weight);
}

/* Adds the products of one or two rows of values with two rows of weights, each of `count`. */
static inline void nn_products(const q15_t *one, const q15_t *two, const q7_t *first,
                               const q7_t *second, unsigned count, uint32_t sums[4])
{
    uint32_t a = sums[0], b = sums[1], c = sums[2], d = sums[3];

    if (two) {
        for (; count; count--) {
            int32_t x = *one++, y = *two++, v = *first++, w = *second++;

            a = nn_multiplied(a, x, v);
            b = nn_multiplied(b, x, w);
            c = nn_multiplied(c, y, v);
            d = nn_multiplied(d, y, w);
        }
    } else {
        for (; count; count--) {
            int32_t x = *one++;

            a = nn_multiplied(a, x, *first++);
            b = nn_multiplied(b, x, *second++);
        }
    }
    sums[0] = a;
    sums[1] = b;
    sums[2] = c;
    sums[3] = d;
}

/* Computes the outputs of one or two pixels, whose inputs are rows of `count` values. */
static void nn_pixels(const q15_t *rows, unsigned pixels, unsigned count, const q7_t *weights,
                      unsigned filters, const q7_t *bias, unsigned bias_shift,
                      unsigned out_shift, q7_t *out)
{
    const q15_t *other = pixels == 2 ? rows + count : NULL;
    unsigned filter;

    for (filter = 0; filter < filters; filter += 2) {
        unsigned last = filter + 1 < filters ? 1 : 0;
        uint32_t sums[4];

        sums[0] = nn_start(bias[filter], bias_shift, out_shift);
        sums[1] = nn_start(bias[filter + last], bias_shift, out_shift);
        sums[2] = sums[0];
        sums[3] = sums[1];
        nn_products(rows, other, weights, weights + last * count, count, sums);
        out[filter] = nn_result(sums[0], out_shift);
        out[filter + last] = nn_result(sums[1], out_shift);
        if (other) {
            out[filters + filter] = nn_result(sums[2], out_shift);
            out[filters + filter + last] = nn_result(sums[3], out_shift);
        }
        weights += 2 * (size_t)count;
    }
}

typedef struct {
    const q7_t *in;
    unsigned in_x, in_y, channels;
    const q7_t *weights;
    unsigned filters, kernel_x, kernel_y, padding_x, padding_y, stride_x, stride_y;
    const q7_t *bias;
    unsigned bias_shift, out_shift;
    q7_t *out;
    unsigned out_x, out_y;
} nn_geometry;

static q15_t *nn_copied(q15_t *to, const q7_t *from, unsigned count)
{
    for (; count; count--) {
        *to++ = *from++;
    }
    return to;
}

static q15_t *nn_zeros(q15_t *to, unsigned count)
{
    for (; count; count--) {
        *to++ = 0;
    }
    return to;
}

/* Copies the values under a window, zeros outside of the map; returns the place behind them. */
static q15_t *nn_window(const nn_geometry *g, unsigned x, unsigned y, q15_t *to)
{
    int left = (int)(x * g->stride_x) - (int)g->padding_x;
    int top = (int)(y * g->stride_y) - (int)g->padding_y;
    int before = left < 0 ? -left : 0, behind = left + (int)g->kernel_x - (int)g->in_x, row;
    unsigned inside;

    before = before > (int)g->kernel_x ? (int)g->kernel_x : before;
    behind = behind < 0 ? 0 : behind > (int)g->kernel_x - before ? (int)g->kernel_x - before : behind;
    inside = g->kernel_x - (unsigned)(before + behind);
    for (row = top; row < top + (int)g->kernel_y; row++) {
        if (row < 0 || row >= (int)g->in_y || inside == 0) {
            to = nn_zeros(to, g->kernel_x * g->channels);
            continue;
        }
        to = nn_zeros(to, (unsigned)before * g->channels);
        to = nn_copied(to, g->in + ((size_t)row * g->in_x + (unsigned)(left + before)) * g->channels,
                       inside * g->channels);
        to = nn_zeros(to, (unsigned)behind * g->channels);
    }
    return to;
}

/* Computes a map, as many pixels at a time as the buffer has windows for: one or two. */
static void nn_convolve(const nn_geometry *g, q15_t *buffer, unsigned pixels)
{
    unsigned count = g->kernel_x * g->kernel_y * g->channels, waiting = 0, x, y;
    q7_t *out = g->out;
    q15_t *end = buffer;

    for (y = 0; y < g->out_y; y++) {
        for (x = 0; x < g->out_x; x++) {
            end = nn_window(g, x, y, end);
            if (++waiting == pixels) {
                nn_pixels(buffer, waiting, count, g->weights, g->filters, g->bias, g->bias_shift,
                          g->out_shift, out);
                out += (size_t)waiting * g->filters;
                waiting = 0;
                end = buffer;
            }
        }
    }
    if (waiting) {
        nn_pixels(buffer, waiting, count, g->weights, g->filters, g->bias, g->bias_shift,
                  g->out_shift, out);
    }
}

arm_status arm_convolve_HWC_q7_basic_nonsquare(
    const q7_t *Im_in, const uint16_t dim_im_in_x, const uint16_t dim_im_in_y,
    const uint16_t ch_im_in, const q7_t *wt, const uint16_t ch_im_out,
    const uint16_t dim_kernel_x, const uint16_t dim_kernel_y, const uint16_t padding_x,
    const uint16_t padding_y, const uint16_t stride_x, const uint16_t stride_y,
    const q7_t *bias, const uint16_t bias_shift, const uint16_t out_shift, q7_t *Im_out,
    const uint16_t dim_im_out_x, const uint16_t dim_im_out_y, q15_t *bufferA, q7_t *bufferB)
{
    nn_geometry g = { 0 };

    (void)bufferB;
    g.in = Im_in;
    g.in_x = dim_im_in_x;
    g.in_y = dim_im_in_y;
    g.channels = ch_im_in;
    g.weights = wt;
    g.filters = ch_im_out;
    g.kernel_x = dim_kernel_x;
    g.kernel_y = dim_kernel_y;
    g.padding_x = padding_x;
    g.padding_y = padding_y;
    g.stride_x = stride_x;
    g.stride_y = stride_y;
    g.bias = bias;
    g.bias_shift = bias_shift;
    g.out_shift = out_shift;
    g.out = Im_out;
    g.out_x = dim_im_out_x;
    g.out_y = dim_im_out_y;
    nn_convolve(&g, bufferA, 2);
    return ARM_MATH_SUCCESS;
}

void arm_relu_q7(q7_t *data, uint16_t size)
{
    for (; size; size--, data++) {
        if (*data < 0) {
            *data = 0;
        }
    }
}

arm_status arm_depthwise_separable_conv_HWC_q7_nonsquare(
    const q7_t *Im_in, const uint16_t dim_im_in_x, const uint16_t dim_im_in_y,
    const uint16_t ch_im_in, const q7_t *wt, const uint16_t ch_im_out,
    const uint16_t dim_kernel_x, const uint16_t dim_kernel_y, const uint16_t padding_x,
    const uint16_t padding_y, const uint16_t stride_x, const uint16_t stride_y,
    const q7_t *bias, const uint16_t bias_shift, const uint16_t out_shift, q7_t *Im_out,
    const uint16_t dim_im_out_x, const uint16_t dim_im_out_y, q15_t *bufferA, q7_t *bufferB)
{
    unsigned x, y, channel;

    (void)bufferA;
    (void)bufferB;
    if (ch_im_in != ch_im_out) {
        return ARM_MATH_SIZE_MISMATCH;
    }
    for (y = 0; y < dim_im_out_y; y++) {
        for (x = 0; x < dim_im_out_x; x++) {
            int left = (int)(x * stride_x) - (int)padding_x;
            int top = (int)(y * stride_y) - (int)padding_y;
            int first_x = left < 0 ? 0 : left, first_y = top < 0 ? 0 : top;
            int last_x = left + (int)dim_kernel_x, last_y = top + (int)dim_kernel_y;
            const q7_t *in, *kernel;
            size_t next_in, next_kernel;

            last_x = last_x > (int)dim_im_in_x ? (int)dim_im_in_x : last_x;
            last_y = last_y > (int)dim_im_in_y ? (int)dim_im_in_y : last_y;
            if (last_x <= first_x || last_y <= first_y) { /* the window lies beside the map */
                last_x = first_x;
                last_y = first_y;
                in = Im_in;
                kernel = wt;
            } else {
                in = Im_in + ((size_t)first_y * dim_im_in_x + (size_t)first_x) * ch_im_in;
                kernel = wt + (size_t)((first_y - top) * (int)dim_kernel_x + first_x - left) * ch_im_in;
            }
            next_in = (size_t)((int)dim_im_in_x - last_x + first_x) * ch_im_in;
            next_kernel = (size_t)((int)dim_kernel_x - last_x + first_x) * ch_im_in;
            for (channel = 0; channel < ch_im_in; channel++) {
                uint32_t sum = nn_start(bias[channel], bias_shift, out_shift);
                const q7_t *value = in + channel, *weight = kernel + channel;
                int row, column;

                for (row = first_y; row < last_y; row++, value += next_in, weight += next_kernel) {
                    for (column = first_x; column < last_x; column++) {
                        sum = nn_multiplied(sum, *value, *weight);
                        value += ch_im_in;
                        weight += ch_im_in;
                    }
                }
                *Im_out++ = nn_result(sum, out_shift);
            }
        }
    }
    return ARM_MATH_SUCCESS;
}

void nn_copy_channels_q7(
    const q7_t *in, size_t pixels, unsigned channels, q7_t *out, unsigned distance)
{
    for (; pixels; pixels--, out += distance) {
        unsigned channel;

        for (channel = 0; channel < channels; channel++) {
            out[channel] = *in++;
        }
    }
}

void nn_add_q7(const q7_t *one, const q7_t *two, q7_t *out, size_t size)
{
    for (; size; size--) {
        *out++ = nn_saturated((int32_t)*one++ + *two++);
    }
}

void nn_clip_q7(q7_t *data, size_t size, q7_t low, q7_t high)
{
    for (; size; size--, data++) {
        *data = *data < low ? low : *data > high ? high : *data;
    }
}

arm_status nn_convolve_groups_HWC_q7(
    const q7_t *Im_in, const uint16_t dim_im_in_x, const uint16_t dim_im_in_y,
    const uint16_t ch_im_in, const q7_t *wt, const uint16_t ch_im_out,
    const uint16_t dim_kernel_x, const uint16_t dim_kernel_y, const uint16_t padding_x,
    const uint16_t padding_y, const uint16_t stride_x, const uint16_t stride_y,
    const uint16_t spread_x, const uint16_t spread_y, const uint16_t groups,
    const q7_t *bias, const uint16_t bias_shift, const uint16_t out_shift, q7_t *Im_out,
    const uint16_t dim_im_out_x, unsigned first_y, unsigned end_y, unsigned ring, q15_t *bufferA)
{
    const unsigned channels = ch_im_in / groups, filters = ch_im_out / groups;
    const unsigned count = (unsigned)dim_kernel_x * dim_kernel_y * channels;
    unsigned x, y, group, channel;
    int row, column;

    for (y = first_y; y < end_y; y++) {
        for (x = 0; x < dim_im_out_x; x++) {
            int left = (int)(x * stride_x) - (int)padding_x;
            int top = (int)(y * stride_y) - (int)padding_y;

            for (group = 0; group < groups; group++) {
                q15_t *to = bufferA;

                for (row = top; row < top + (int)dim_kernel_y; row++) {
                    for (column = left; column < left + (int)dim_kernel_x; column++) {
                        int inside = row >= 0 && row % spread_y == 0 && row / spread_y < dim_im_in_y
                                     && column >= 0 && column % spread_x == 0
                                     && column / spread_x < dim_im_in_x;
                        size_t pixel = inside ? (size_t)((unsigned)row / spread_y % ring) * dim_im_in_x
                                                    + (size_t)((unsigned)column / spread_x)
                                              : 0;
                        const q7_t *from = Im_in + pixel * ch_im_in + group * channels;

                        for (channel = 0; channel < channels; channel++) {
                            *to++ = (q15_t)(inside ? from[channel] : 0);
                        }
                    }
                }
                nn_pixels(bufferA, 1, count, wt + (size_t)group * filters * count, filters,
                          bias + group * filters, bias_shift, out_shift, Im_out);
                Im_out += filters;
            }
        }
    }
    return ARM_MATH_SUCCESS;
}

void nn_enlarge_q7_HWC(
    const q7_t *in, unsigned in_x, unsigned in_y, unsigned channels, unsigned factor_x,
    unsigned factor_y, q7_t *out)
{
    unsigned x, y, channel;

    for (y = 0; y < in_y * factor_y; y++) {
        for (x = 0; x < in_x * factor_x; x++) {
            const q7_t *from = in + ((size_t)(y / factor_y) * in_x + x / factor_x) * channels;

            for (channel = 0; channel < channels; channel++) {
                *out++ = from[channel];
            }
        }
    }
}

void nn_maxpool_q7_HWC(
    const q7_t *in, unsigned in_x, unsigned in_y, unsigned channels, unsigned window_x,
    unsigned window_y, unsigned padding_x, unsigned padding_y, unsigned stride_x,
    unsigned stride_y, q7_t *out, unsigned out_x, unsigned out_y)
{
    unsigned x, y, channel;

    for (y = 0; y < out_y; y++) {
        for (x = 0; x < out_x; x++) {
            int left = (int)(x * stride_x) - (int)padding_x, top = (int)(y * stride_y) - (int)padding_y;
            int right = left + (int)window_x, bottom = top + (int)window_y;

            left = left < 0 ? 0 : left;
            top = top < 0 ? 0 : top;
            right = right > (int)in_x ? (int)in_x : right;
            bottom = bottom > (int)in_y ? (int)in_y : bottom;
            for (channel = 0; channel < channels; channel++) {
                int32_t value = NN_MIN;
                int row, column;

                for (row = top; row < bottom; row++) {
                    const q7_t *at = in + ((size_t)row * in_x + (size_t)left) * channels + channel;

                    for (column = left; column < right; column++, at += channels) {
                        value = *at > value ? *at : value;
                    }
                }
                *out++ = (q7_t)value;
            }
        }
    }
}

void nn_avepool_q7_HWC(
    const q7_t *in, unsigned in_x, unsigned in_y, unsigned channels, unsigned window_x,
    unsigned window_y, unsigned padding_x, unsigned padding_y, unsigned stride_x,
    unsigned stride_y, q7_t *out, unsigned out_x, unsigned out_y)
{
    unsigned x, y, channel;

    for (y = 0; y < out_y; y++) {
        for (x = 0; x < out_x; x++) {
            int left = (int)(x * stride_x) - (int)padding_x, top = (int)(y * stride_y) - (int)padding_y;
            int right = left + (int)window_x, bottom = top + (int)window_y;

            left = left < 0 ? 0 : left;
            top = top < 0 ? 0 : top;
            right = right > (int)in_x ? (int)in_x : right;
            bottom = bottom > (int)in_y ? (int)in_y : bottom;
            for (channel = 0; channel < channels; channel++) {
                int32_t value = 0;
                int row, column;

                for (row = top; row < bottom; row++) {
                    const q7_t *at = in + ((size_t)row * in_x + (size_t)left) * channels + channel;

                    for (column = left; column < right; column++, at += channels) {
                        value += *at;
                    }
                }
                *out++ = (q7_t)(value / ((right - left) * (bottom - top)));
            }
        }
    }
}

arm_status arm_fully_connected_q7(
    const q7_t *pV, const q7_t *pM, const uint16_t dim_vec, const uint16_t num_of_rows,
    const uint16_t bias_shift, const uint16_t out_shift, const q7_t *bias, q7_t *pOut,
    q15_t *vec_buffer)
{
    unsigned i;

    for (i = 0; i < dim_vec; i++) {
        vec_buffer[i] = pV[i];
    }
    nn_pixels(vec_buffer, 1, dim_vec, pM, num_of_rows, bias, bias_shift, out_shift, pOut);
    return ARM_MATH_SUCCESS;
}
