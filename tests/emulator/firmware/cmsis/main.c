/* Functions of CMSIS-DSP and CMSIS-NN around a network. */
#include <stdlib.h>
#include <stdint.h>
#include <string.h>
#include <stdio.h>
#include "mxc.h"
#include "arm_math.h"
#include "arm_nnfunctions.h"
#include "arm_nnsupportfunctions.h"
#include "arm_const_structs.h"
#include "cnn.h"
#include "digits.h"
volatile uint32_t cnn_time;
void fail(void) { printf("\n*** FAIL ***\n\n"); while (1); }

int main(void)
{
    q7_t v[8] = {1, 2, 3, 4, 5, -6, 7, 120}, w[8], mx;
    q15_t s[10], h[8], mx15;
    q31_t big[10], r;
    q63_t p;
    float f[8], g[8], m;
    uint32_t index;

    cnn_enable(MXC_S_GCR_PCLKDIV_CNNCLKSEL_PCLK, MXC_S_GCR_PCLKDIV_CNNCLKDIV_DIV1);
    cnn_init(); cnn_load_weights(); cnn_load_bias(); cnn_configure();

    load_input(); cnn_start();
    while (cnn_time == 0) __WFI();
    if (check_output() != CNN_OK) fail();
    cnn_unload((uint32_t *) big);
    arm_max_q7(v, 8, &mx, &index); printf("max %d at %u\n", mx, index);
    arm_softmax_q7(v, 8, w); printf("softmax %d\n", w[7]);
    arm_softmax_q15((q15_t *) s, 8, s);
    arm_softmax_q7_q15(v, 8, s); printf("%d\n", s[7]);
    arm_softmax_with_batch_q7(v, 1, 8, w);
    arm_relu_q7(v, 8); printf("%d\n", v[5]);
    arm_q7_to_q15(v, h, 8); arm_q7_to_float(v, f, 8); arm_q15_to_float(h, g, 8);
    arm_float_to_q7(f, w, 8); printf("%d %d\n", w[7], h[7]);
    arm_add_f32(f, g, g, 8); arm_mean_f32(f, 8, &m); arm_var_f32(f, 8, &m);
    arm_std_f32(f, 8, &m); arm_rms_f32(f, 8, &m); arm_scale_f32(f, 2.0f, f, 8);
    arm_offset_f32(f, 1.0f, f, 8); arm_dot_prod_f32(f, g, 8, &m);
    printf("%d\n", (int) (1000 * m));
    arm_max_f32(f, 8, &m, &index); arm_min_f32(f, 8, &m, &index);
    arm_max_q15(h, 8, &mx15, &index); arm_max_q31(big, 10, &r, &index);
    printf("class %u\n", index);
    arm_fill_q7(1, w, 8); arm_copy_q7(w, v, 8); arm_fill_f32(0, f, 8); arm_copy_f32(f, g, 8);
    arm_shift_q7(v, 2, w, 8); arm_mult_q7(v, w, v, 8); arm_dot_prod_q7(v, w, 8, &r);
    arm_power_q7(v, 8, &r); arm_abs_q7(v, w, 8); arm_mean_q7(v, 8, &mx);
    arm_cmplx_mag_f32(f, g, 4); arm_sqrt_f32(2.0f, &m);
    printf("%d %d\n", (int) (1000 * m), (int) (1000 * arm_sin_f32(1.0f)));
    q7_t wt[16] = {1}, bias[2] = {0}, out[2]; q15_t buffer[8];
    arm_fully_connected_q7(v, wt, 8, 2, 0, 0, bias, out, buffer); printf("fc %d\n", out[0]);
    p = __SMLALD(0x00010002, 0x00030004, 5);
    printf("%d %d %d\n", (int) p, (int) __SSAT(300, 8), (int) __USAT(-3, 8));
    printf("*** PASS ***\n");
    return 0;
}
