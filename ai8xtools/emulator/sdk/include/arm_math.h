/* CMSIS-DSP: types, conversions and the functions that programs call around a network. */
#ifndef EMULATOR_ARM_MATH_H
#define EMULATOR_ARM_MATH_H

#include "emulator_core.h"

#include <math.h>
#include <string.h>

typedef int8_t q7_t;
typedef int16_t q15_t;
typedef int32_t q31_t;
typedef int64_t q63_t;
typedef float float32_t;
typedef double float64_t;
typedef enum {
    ARM_MATH_SUCCESS = 0, ARM_MATH_ARGUMENT_ERROR = -1, ARM_MATH_LENGTH_ERROR = -2,
    ARM_MATH_SIZE_MISMATCH = -3, ARM_MATH_NANINF = -4, ARM_MATH_SINGULAR = -5, ARM_MATH_TEST_FAILURE = -6
} arm_status;
#ifndef PI
#define PI 3.14159265358979f
#endif

static inline q31_t clip_q63_to_q31(q63_t x) { return x > INT32_MAX ? INT32_MAX : x < INT32_MIN ? INT32_MIN : (q31_t) x; }
static inline q15_t clip_q31_to_q15(q31_t x) { return (q15_t) __SSAT(x, 16); }
static inline q7_t clip_q31_to_q7(q31_t x) { return (q7_t) __SSAT(x, 8); }

/* The usual forms of the functions on vectors, for the types that are used */
#define EMULATOR_VECTORS(type, suffix) \
    void arm_fill_##suffix(type value, type *to, uint32_t count); \
    void arm_copy_##suffix(const type *from, type *to, uint32_t count); \
    void arm_add_##suffix(const type *a, const type *b, type *to, uint32_t count); \
    void arm_sub_##suffix(const type *a, const type *b, type *to, uint32_t count); \
    void arm_abs_##suffix(const type *from, type *to, uint32_t count); \
    void arm_offset_##suffix(const type *from, type offset, type *to, uint32_t count); \
    void arm_max_##suffix(const type *from, uint32_t count, type *result, uint32_t *index); \
    void arm_min_##suffix(const type *from, uint32_t count, type *result, uint32_t *index);
EMULATOR_VECTORS(float32_t, f32)
EMULATOR_VECTORS(q7_t, q7)
EMULATOR_VECTORS(q15_t, q15)
EMULATOR_VECTORS(q31_t, q31)
void arm_mult_f32(const float32_t *a, const float32_t *b, float32_t *to, uint32_t count);
void arm_scale_f32(const float32_t *from, float32_t factor, float32_t *to, uint32_t count);
void arm_dot_prod_f32(const float32_t *a, const float32_t *b, uint32_t count, float32_t *result);
void arm_mean_f32(const float32_t *from, uint32_t count, float32_t *result);
void arm_power_f32(const float32_t *from, uint32_t count, float32_t *result);
void arm_var_f32(const float32_t *from, uint32_t count, float32_t *result);
void arm_std_f32(const float32_t *from, uint32_t count, float32_t *result);
void arm_rms_f32(const float32_t *from, uint32_t count, float32_t *result);
void arm_cmplx_mag_f32(const float32_t *from, float32_t *to, uint32_t count);
arm_status arm_sqrt_f32(float32_t value, float32_t *result);
float32_t arm_sin_f32(float32_t x);
float32_t arm_cos_f32(float32_t x);
void arm_q7_to_q15(const q7_t *from, q15_t *to, uint32_t count);
void arm_q7_to_float(const q7_t *from, float32_t *to, uint32_t count);
void arm_q15_to_float(const q15_t *from, float32_t *to, uint32_t count);
void arm_q31_to_float(const q31_t *from, float32_t *to, uint32_t count);
void arm_float_to_q7(const float32_t *from, q7_t *to, uint32_t count);
void arm_float_to_q15(const float32_t *from, q15_t *to, uint32_t count);
void arm_float_to_q31(const float32_t *from, q31_t *to, uint32_t count);

/* Fourier transforms keep nothing but their length */
typedef struct {
    uint16_t fftLen;
    uint8_t ifftFlag, bitReverseFlag;
} arm_cfft_instance_f32;
typedef struct {
    arm_cfft_instance_f32 Sint;
    uint16_t fftLenRFFT;
} arm_rfft_fast_instance_f32;
arm_status arm_cfft_init_f32(arm_cfft_instance_f32 *transform, uint16_t length);
void arm_cfft_f32(const arm_cfft_instance_f32 *transform, float32_t *data, uint8_t inverse, uint8_t ordered);
arm_status arm_rfft_fast_init_f32(arm_rfft_fast_instance_f32 *transform, uint16_t length);
void arm_rfft_fast_f32(const arm_rfft_fast_instance_f32 *transform, float32_t *from, float32_t *to,
                       uint8_t inverse);

#endif
