/*
 * CMSIS-DSP and CMSIS-NN: what programs call around a network, by the arithmetic that Arm documents.
 */
#include "emulator.h"
#include "arm_math.h"
#include "arm_nnfunctions.h"

#include <stdlib.h>

/*
 * Softmax with powers of two: inputs count relative to the highest one; those that are lower than
 * it by `range` or more are 0. `total` is shared out among the powers, whose exponents have
 * `power_bits` bits.
 */
#define SOFTMAX(name, input_t, output_t, lowest, range, total, out_bits, extra, power_bits) \
    WEAK void name(const input_t *in, const uint16_t count, output_t *out) \
    { \
        int32_t base = lowest, sum = 0; \
        for (int i = 0; i < count; i++) \
            if (in[i] > base) \
                base = in[i]; \
        base -= range; \
        for (int i = 0; i < count; i++) \
            if (in[i] > base) \
                sum += 1 << __USAT(in[i] - base, power_bits); \
        int32_t share = sum ? (int32_t) ((int64_t) (total) / sum) : 0; \
        for (int i = 0; i < count; i++) { \
            int32_t shift = (int32_t) __USAT((extra) + base - in[i], 5); \
            out[i] = in[i] > base ? (output_t) __SSAT(share >> shift, out_bits) : 0; \
        } \
    }
SOFTMAX(arm_softmax_q7_q15, q7_t, q15_t, -257, 8, 0x100000, 16, 13, 5)
SOFTMAX(arm_softmax_q7, q7_t, q7_t, -257, 8, 0x100000, 8, 13, 3)
SOFTMAX(arm_softmax_q15, q15_t, q15_t, -0x100000, 16, 0x100000000LL, 16, 17, 5)

WEAK void arm_relu_q7(q7_t *data, uint16_t count)
{
    for (; count--; data++)
        if (*data < 0)
            *data = 0;
}
WEAK void arm_relu_q15(q15_t *data, uint16_t count)
{
    for (; count--; data++)
        if (*data < 0)
            *data = 0;
}

#define FULLY_CONNECTED(name, type, bits) \
    WEAK arm_status name(const type *in, const type *weights, const uint16_t inputs, \
                         const uint16_t outputs, const uint16_t bias_shift, const uint16_t out_shift, \
                         const type *bias, type *out, q15_t *buffer) \
    { \
        (void) buffer; \
        for (int o = 0; o < outputs; o++) { \
            int32_t sum = ((int32_t) bias[o] << bias_shift) + (out_shift ? 1 << (out_shift - 1) : 0); \
            for (int i = 0; i < inputs; i++) \
                sum += in[i] * weights[o * inputs + i]; \
            out[o] = (type) __SSAT(sum >> out_shift, bits); \
        } \
        return ARM_MATH_SUCCESS; \
    }
FULLY_CONNECTED(arm_fully_connected_q7, q7_t, 8)
FULLY_CONNECTED(arm_fully_connected_q15, q15_t, 16)

/* Vectors; integers saturate */
#define SATURATED_f32(x) (x)
#define SATURATED_q7(x) ((q7_t) __SSAT((int32_t) (x), 8))
#define SATURATED_q15(x) ((q15_t) __SSAT((int32_t) (x), 16))
#define SATURATED_q31(x) clip_q63_to_q31(x)
#define EACH(expression, suffix) \
    for (uint32_t i = 0; i < count; i++) \
        to[i] = SATURATED_##suffix(expression);
#define EXTREME(name, type, compare) \
    WEAK void name(const type *from, uint32_t count, type *result, uint32_t *index) \
    { \
        *index = 0; \
        for (uint32_t i = 1; i < count; i++) \
            if (from[i] compare from[*index]) \
                *index = i; \
        *result = from[*index]; \
    }
#define VECTORS(type, wide, suffix) \
    WEAK void arm_fill_##suffix(type value, type *to, uint32_t count) { EACH(value, suffix) } \
    WEAK void arm_copy_##suffix(const type *from, type *to, uint32_t count) { EACH(from[i], suffix) } \
    WEAK void arm_add_##suffix(const type *a, const type *b, type *to, uint32_t count) \
    { \
        EACH((wide) a[i] + b[i], suffix) \
    } \
    WEAK void arm_sub_##suffix(const type *a, const type *b, type *to, uint32_t count) \
    { \
        EACH((wide) a[i] - b[i], suffix) \
    } \
    WEAK void arm_abs_##suffix(const type *from, type *to, uint32_t count) \
    { \
        EACH(from[i] < 0 ? -(wide) from[i] : (wide) from[i], suffix) \
    } \
    WEAK void arm_offset_##suffix(const type *from, type offset, type *to, uint32_t count) \
    { \
        EACH((wide) from[i] + offset, suffix) \
    } \
    EXTREME(arm_max_##suffix, type, >) \
    EXTREME(arm_min_##suffix, type, <)
VECTORS(float32_t, float32_t, f32)
VECTORS(q7_t, q31_t, q7)
VECTORS(q15_t, q31_t, q15)
VECTORS(q31_t, q63_t, q31)

WEAK void arm_mult_f32(const float32_t *a, const float32_t *b, float32_t *to, uint32_t count)
{
    EACH(a[i] * b[i], f32)
}
WEAK void arm_scale_f32(const float32_t *from, float32_t factor, float32_t *to, uint32_t count)
{
    EACH(from[i] * factor, f32)
}
WEAK void arm_dot_prod_f32(const float32_t *a, const float32_t *b, uint32_t count, float32_t *result)
{
    float32_t sum = 0;
    for (uint32_t i = 0; i < count; i++)
        sum += a[i] * b[i];
    *result = sum;
}
WEAK void arm_power_f32(const float32_t *from, uint32_t count, float32_t *result)
{
    arm_dot_prod_f32(from, from, count, result);
}
WEAK void arm_mean_f32(const float32_t *from, uint32_t count, float32_t *result)
{
    float32_t sum = 0;
    for (uint32_t i = 0; i < count; i++)
        sum += from[i];
    *result = sum / (float32_t) count;
}
WEAK void arm_var_f32(const float32_t *from, uint32_t count, float32_t *result)
{
    float32_t mean, sum = 0;
    arm_mean_f32(from, count, &mean);
    for (uint32_t i = 0; i < count; i++)
        sum += (from[i] - mean) * (from[i] - mean);
    *result = count > 1 ? sum / (float32_t) (count - 1) : 0;
}
WEAK void arm_std_f32(const float32_t *from, uint32_t count, float32_t *result)
{
    arm_var_f32(from, count, result);
    *result = sqrtf(*result);
}
WEAK void arm_rms_f32(const float32_t *from, uint32_t count, float32_t *result)
{
    arm_power_f32(from, count, result);
    *result = sqrtf(*result / (float32_t) count);
}
WEAK void arm_cmplx_mag_f32(const float32_t *from, float32_t *to, uint32_t count)
{
    EACH(sqrtf(from[2 * i] * from[2 * i] + from[2 * i + 1] * from[2 * i + 1]), f32)
}
WEAK arm_status arm_sqrt_f32(float32_t value, float32_t *result)
{
    *result = value < 0 ? 0 : sqrtf(value);
    return value < 0 ? ARM_MATH_ARGUMENT_ERROR : ARM_MATH_SUCCESS;
}
WEAK float32_t arm_sin_f32(float32_t x) { return sinf(x); }
WEAK float32_t arm_cos_f32(float32_t x) { return cosf(x); }
WEAK void arm_q7_to_q15(const q7_t *from, q15_t *to, uint32_t count) { EACH(from[i], q15) }
WEAK void arm_q7_to_float(const q7_t *from, float32_t *to, uint32_t count) { EACH(from[i] / 128.0f, f32) }
WEAK void arm_q15_to_float(const q15_t *from, float32_t *to, uint32_t count)
{
    EACH(from[i] / 32768.0f, f32)
}
WEAK void arm_q31_to_float(const q31_t *from, float32_t *to, uint32_t count)
{
    EACH((float32_t) from[i] / 2147483648.0f, f32)
}
WEAK void arm_float_to_q7(const float32_t *from, q7_t *to, uint32_t count)
{
    EACH(from[i] * 128.0f, q7)
}
WEAK void arm_float_to_q15(const float32_t *from, q15_t *to, uint32_t count)
{
    EACH(from[i] * 32768.0f, q15)
}
WEAK void arm_float_to_q31(const float32_t *from, q31_t *to, uint32_t count)
{
    EACH((q63_t) (from[i] * 2147483648.0f), q31)
}

/* Fourier transform in place of complex numbers, of a length that is a power of two */
static void transform(float32_t *data, uint32_t length, int inverse)
{
    for (uint32_t i = 1, j = 0; i < length; i++) {
        uint32_t bit = length >> 1;
        for (; j & bit; bit >>= 1)
            j ^= bit;
        j ^= bit;
        for (int part = 0; part < 2 && i < j; part++) {
            float32_t swapped = data[2 * i + part];
            data[2 * i + part] = data[2 * j + part];
            data[2 * j + part] = swapped;
        }
    }
    for (uint32_t size = 2; size <= length; size *= 2) {
        for (uint32_t k = 0; k < size / 2; k++) {
            float32_t angle = (inverse ? 2 : -2) * PI * (float32_t) k / (float32_t) size;
            float32_t c = cosf(angle), s = sinf(angle);
            for (uint32_t start = k; start < length; start += size) {
                float32_t *a = data + 2 * start, *b = a + size;
                float32_t re = b[0] * c - b[1] * s, im = b[0] * s + b[1] * c;
                b[0] = a[0] - re, b[1] = a[1] - im;
                a[0] += re, a[1] += im;
            }
        }
    }
    for (uint32_t i = 0; inverse && i < 2 * length; i++)
        data[i] /= (float32_t) length;
}

WEAK arm_status arm_cfft_init_f32(arm_cfft_instance_f32 *plan, uint16_t length)
{
    plan->fftLen = length;
    return length & (length - 1) ? ARM_MATH_ARGUMENT_ERROR : ARM_MATH_SUCCESS;
}
WEAK void arm_cfft_f32(const arm_cfft_instance_f32 *plan, float32_t *data, uint8_t inverse, uint8_t ordered)
{
    (void) ordered;
    transform(data, plan->fftLen, inverse);
}
WEAK arm_status arm_rfft_fast_init_f32(arm_rfft_fast_instance_f32 *plan, uint16_t length)
{
    plan->fftLenRFFT = length;
    return arm_cfft_init_f32(&plan->Sint, length / 2);
}

/* Real numbers: the second value of the result is that at half the sampling rate. */
WEAK void arm_rfft_fast_f32(const arm_rfft_fast_instance_f32 *plan, float32_t *from, float32_t *to,
                            uint8_t inverse)
{
    uint32_t length = plan->fftLenRFFT;
    float32_t *data = malloc(2 * length * sizeof(float32_t));
    if (!data)
        return;
    for (uint32_t i = 0; i < length; i++) {
        uint32_t mirrored = i <= length / 2 ? i : length - i;
        int ends = mirrored == 0 || mirrored == length / 2;
        data[2 * i] = !inverse ? from[i] : ends ? from[mirrored != 0] : from[2 * mirrored];
        data[2 * i + 1] = !inverse || ends ? 0 : i == mirrored ? from[2 * i + 1] : -from[2 * mirrored + 1];
    }
    transform(data, length, inverse);
    for (uint32_t i = 0; i < length; i++)
        to[i] = inverse ? data[2 * i] : data[i];
    if (!inverse)
        to[1] = data[length];
    free(data);
}
