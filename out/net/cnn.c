/* SPDX-License-Identifier: Apache-2.0
 *
 * net: ai8xize.py --device MCU --checkpoint-file /tmp/pytest-of-root/pytest-148/popen-gw0/test_wrong_usage_words5___mcu_0/net.pth.tar --prefix net --test-dir out
 */
#include "cnn.h"
#include "nn_kernels.h"
#include "weights.h"

#if defined(__GNUC__)
__attribute__((aligned(16)))
#endif
int16_t cnn_arena[CNN_ARENA_BYTES / 2];
#define ARENA ((q7_t *)cnn_arena)

#if defined(__GNUC__)
#define ALIGNED __attribute__((aligned(4)))
#else
#define ALIGNED
#endif
static const q7_t conv1_wt[] ALIGNED = CONV1_WT;
static const q7_t conv1_bias[] = CONV1_BIAS;
static const q7_t conv2_wt[] ALIGNED = CONV2_WT;
static const q7_t conv2_bias[] = CONV2_BIAS;
static const q7_t conv3_wt[] ALIGNED = CONV3_WT;
static const q7_t conv3_bias[] = CONV3_BIAS;
static const q7_t conv4_wt[] ALIGNED = CONV4_WT;
static const q7_t conv4_bias[] = CONV4_BIAS;
static const q7_t conv5_wt[] ALIGNED = CONV5_WT;
static const q7_t conv5_bias[] = CONV5_BIAS;
static const q7_t conv6_wt[] ALIGNED = CONV6_WT;
static const q7_t conv6_bias[] = CONV6_BIAS;
static const q7_t ip1_wt[] ALIGNED = IP1_WT;
static const q7_t ip1_bias[] = IP1_BIAS;


int cnn_init(void)
{
    return CNN_OK;
}

int cnn_run(const q7_t *in, q7_t *out)
{
    /* oblong: 9 rows, 7 columns, 5 channels */
    arm_convolve_HWC_q7_basic_nonsquare(in, 8, 9, 2, conv1_wt, 5, 2, 3, 0, 1, 1, 1, conv1_bias,
        CONV1_BIAS_LSHIFT, CONV1_OUT_RSHIFT, ARENA + 992, 7, 9, cnn_arena + 0, NULL);
    /* relu: 9 rows, 7 columns, 5 channels */
    arm_relu_q7(ARENA + 992, 315);
    /* deep: 9 rows, 7 columns, 5 channels */
    arm_depthwise_separable_conv_HWC_q7_nonsquare(ARENA + 992, 7, 9, 5, conv2_wt, 5, 3, 3, 1, 1,
        1, 1, conv2_bias, CONV2_BIAS_LSHIFT, CONV2_OUT_RSHIFT, ARENA + 632, 7, 9, NULL, NULL);
    /* cat: 9 rows, 7 columns, 10 channels */
    nn_copy_channels_q7(ARENA + 992, 63, 5, ARENA + 0, 10);
    nn_copy_channels_q7(ARENA + 632, 63, 5, ARENA + 0 + 5, 10);
    /* even: 9 rows, 7 columns, 4 channels */
    arm_convolve_HWC_q7_basic_nonsquare(ARENA + 0, 7, 9, 10, conv3_wt, 4, 3, 3, 1, 1, 1, 1,
        conv3_bias, CONV3_BIAS_LSHIFT, CONV3_OUT_RSHIFT, ARENA + 1308, 7, 9, cnn_arena + 316,
        NULL);
    /* dilated: 9 rows, 7 columns, 4 channels */
    arm_convolve_HWC_q7_basic_nonsquare(ARENA + 992, 7, 9, 5, conv4_wt, 4, 5, 5, 2, 2, 1, 1,
        conv4_bias, CONV4_BIAS_LSHIFT, CONV4_OUT_RSHIFT, ARENA + 500, 7, 9, cnn_arena + 0, NULL);
    /* add: 9 rows, 7 columns, 4 channels */
    nn_add_q7(ARENA + 1308, ARENA + 500, ARENA + 752, 252);
    nn_add_q7(ARENA + 752, ARENA + 1308, ARENA + 752, 252);
    /* limit: 9 rows, 7 columns, 4 channels */
    nn_clip_q7(ARENA + 752, 252, -2, 1);
    /* groups: 10 rows, 5 columns, 6 channels */
    nn_convolve_groups_HWC_q7(ARENA + 752, 7, 9, 4, conv5_wt, 6, 3, 2, 0, 1, 1, 1, 1, 1, 2,
        conv5_bias, CONV5_BIAS_LSHIFT, CONV5_OUT_RSHIFT, ARENA + 0, 5, 0, 10, 9, cnn_arena +
        150);
    /* enlarge: 10 rows, 10 columns, 6 channels */
    nn_enlarge_q7_HWC(ARENA + 0, 5, 10, 6, 2, 1, ARENA + 1584);
    /* transposed: 22 rows, 18 columns, 4 channels */
    nn_convolve_groups_HWC_q7(ARENA + 1584, 10, 10, 6, conv6_wt, 4, 2, 3, 0, 2, 1, 1, 2, 2, 2,
        conv6_bias, CONV6_BIAS_LSHIFT, CONV6_OUT_RSHIFT, ARENA + 0, 18, 0, 22, 10, cnn_arena +
        1092);
    /* max: 11 rows, 9 columns, 4 channels */
    nn_maxpool_q7_HWC(ARENA + 0, 18, 22, 4, 3, 3, 1, 1, 2, 2, ARENA + 1584, 9, 11);
    /* mean: 10 rows, 8 columns, 4 channels */
    nn_avepool_q7_HWC(ARENA + 1584, 9, 11, 4, 2, 2, 0, 0, 1, 1, ARENA + 640, 8, 10);
    /* fc: 1 rows, 1 columns, 3 channels */
    arm_fully_connected_q7(ARENA + 640, ip1_wt, 320, 3, IP1_BIAS_LSHIFT, IP1_OUT_RSHIFT,
        ip1_bias, out, cnn_arena + 0);
    return CNN_OK;
}
