/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels of a network with numbers of 8 bits: declarations.
 *
 * Maps are rows of pixels, a pixel is its channels (HWC). Functions named arm_* have the prototypes
 * and the arithmetic of the functions of these names in Arm's CMSIS-NN up to 5.9.0; the code is not
 * Arm's. Results are (sum + (bias << bias_shift) + half of the last place) >> out_shift, saturated;
 * sums are of 32 bits and wrap around. Names end in x for columns and in y for rows.
 */
#ifndef NN_KERNELS_H
#define NN_KERNELS_H

#include <stddef.h>
#include <stdint.h>

typedef int8_t q7_t;
typedef int16_t q15_t;
typedef int32_t q31_t;
typedef enum { ARM_MATH_SUCCESS = 0, ARM_MATH_SIZE_MISMATCH = -3 } arm_status;

/* Shifts of negative numbers are arithmetic on every compiler this is for; others are refused. */
typedef char nn_shifts_are_arithmetic[((-3) >> 1) == -2 ? 1 : -1];

#define NN_MIN (-128)
#define NN_MAX 127

static inline q7_t nn_saturated(int32_t value)
{
    return (q7_t)(value < NN_MIN ? NN_MIN : value > NN_MAX ? NN_MAX : value);
}

arm_status arm_convolve_HWC_q7_basic_nonsquare(
    const q7_t *Im_in, const uint16_t dim_im_in_x, const uint16_t dim_im_in_y,
    const uint16_t ch_im_in, const q7_t *wt, const uint16_t ch_im_out,
    const uint16_t dim_kernel_x, const uint16_t dim_kernel_y, const uint16_t padding_x,
    const uint16_t padding_y, const uint16_t stride_x, const uint16_t stride_y,
    const q7_t *bias, const uint16_t bias_shift, const uint16_t out_shift, q7_t *Im_out,
    const uint16_t dim_im_out_x, const uint16_t dim_im_out_y, q15_t *bufferA, q7_t *bufferB);

void arm_relu_q7(q7_t *data, uint16_t size);

arm_status arm_depthwise_separable_conv_HWC_q7_nonsquare(
    const q7_t *Im_in, const uint16_t dim_im_in_x, const uint16_t dim_im_in_y,
    const uint16_t ch_im_in, const q7_t *wt, const uint16_t ch_im_out,
    const uint16_t dim_kernel_x, const uint16_t dim_kernel_y, const uint16_t padding_x,
    const uint16_t padding_y, const uint16_t stride_x, const uint16_t stride_y,
    const q7_t *bias, const uint16_t bias_shift, const uint16_t out_shift, q7_t *Im_out,
    const uint16_t dim_im_out_x, const uint16_t dim_im_out_y, q15_t *bufferA, q7_t *bufferB);

void nn_copy_channels_q7(
    const q7_t *in, size_t pixels, unsigned channels, q7_t *out, unsigned distance);

void nn_add_q7(const q7_t *one, const q7_t *two, q7_t *out, size_t size);

void nn_clip_q7(q7_t *data, size_t size, q7_t low, q7_t high);

arm_status nn_convolve_groups_HWC_q7(
    const q7_t *Im_in, const uint16_t dim_im_in_x, const uint16_t dim_im_in_y,
    const uint16_t ch_im_in, const q7_t *wt, const uint16_t ch_im_out,
    const uint16_t dim_kernel_x, const uint16_t dim_kernel_y, const uint16_t padding_x,
    const uint16_t padding_y, const uint16_t stride_x, const uint16_t stride_y,
    const uint16_t spread_x, const uint16_t spread_y, const uint16_t groups,
    const q7_t *bias, const uint16_t bias_shift, const uint16_t out_shift, q7_t *Im_out,
    const uint16_t dim_im_out_x, unsigned first_y, unsigned end_y, unsigned ring, q15_t *bufferA);

void nn_enlarge_q7_HWC(
    const q7_t *in, unsigned in_x, unsigned in_y, unsigned channels, unsigned factor_x,
    unsigned factor_y, q7_t *out);

void nn_maxpool_q7_HWC(
    const q7_t *in, unsigned in_x, unsigned in_y, unsigned channels, unsigned window_x,
    unsigned window_y, unsigned padding_x, unsigned padding_y, unsigned stride_x,
    unsigned stride_y, q7_t *out, unsigned out_x, unsigned out_y);

void nn_avepool_q7_HWC(
    const q7_t *in, unsigned in_x, unsigned in_y, unsigned channels, unsigned window_x,
    unsigned window_y, unsigned padding_x, unsigned padding_y, unsigned stride_x,
    unsigned stride_y, q7_t *out, unsigned out_x, unsigned out_y);

arm_status arm_fully_connected_q7(
    const q7_t *pV, const q7_t *pM, const uint16_t dim_vec, const uint16_t num_of_rows,
    const uint16_t bias_shift, const uint16_t out_shift, const q7_t *bias, q7_t *pOut,
    q15_t *vec_buffer);

#endif
