/* C library of the emulated core: mathematics. The emulator computes these functions. */
#ifndef EMULATOR_MATH_H
#define EMULATOR_MATH_H

#define M_E 2.7182818284590452354
#define M_LOG2E 1.4426950408889634074
#define M_LOG10E 0.43429448190325182765
#define M_LN2 0.69314718055994530942
#define M_LN10 2.30258509299404568402
#define M_PI 3.14159265358979323846
#define M_TWOPI (2.0 * M_PI)
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.78539816339744830962
#define M_1_PI 0.31830988618379067154
#define M_2_PI 0.63661977236758134308
#define M_2_SQRTPI 1.12837916709551257390
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440

#define HUGE_VAL __builtin_huge_val()
#define HUGE_VALF __builtin_huge_valf()
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define isnan(x) __builtin_isnan(x)
#define isinf(x) __builtin_isinf_sign(x)
#define isfinite(x) __builtin_isfinite(x)
#define isnormal(x) __builtin_isnormal(x)
#define signbit(x) __builtin_signbit(x)
#define FP_NAN 0
#define FP_INFINITE 1
#define FP_ZERO 2
#define FP_SUBNORMAL 3
#define FP_NORMAL 4
#define fpclassify(x) \
    __builtin_fpclassify(FP_NAN, FP_INFINITE, FP_NORMAL, FP_SUBNORMAL, FP_ZERO, x)
typedef float float_t;
typedef double double_t;

/* The functions of one and of two arguments, each for double and float */
#define EMULATOR_MATH_1(F) \
    F(sin) F(cos) F(tan) F(asin) F(acos) F(atan) F(sinh) F(cosh) F(tanh) F(asinh) F(acosh) \
    F(atanh) F(exp) F(exp2) F(expm1) F(log) F(log2) F(log10) F(log1p) F(sqrt) F(cbrt) F(floor) \
    F(ceil) F(trunc) F(round) F(rint) F(nearbyint) F(fabs) F(erf) F(erfc) F(tgamma) F(lgamma)
#define EMULATOR_MATH_2(F) \
    F(pow) F(fmod) F(remainder) F(atan2) F(hypot) F(fmax) F(fmin) F(fdim) F(copysign)

#define EMULATOR_DECLARE_1(name) double name(double x); float name##f(float x);
#define EMULATOR_DECLARE_2(name) double name(double x, double y); float name##f(float x, float y);
EMULATOR_MATH_1(EMULATOR_DECLARE_1)
EMULATOR_MATH_2(EMULATOR_DECLARE_2)
#undef EMULATOR_DECLARE_1
#undef EMULATOR_DECLARE_2

double ldexp(double x, int exponent);
float ldexpf(float x, int exponent);
double scalbn(double x, int exponent);
double frexp(double x, int *exponent);
float frexpf(float x, int *exponent);
double modf(double x, double *whole);
float modff(float x, float *whole);
double fma(double x, double y, double z);
float fmaf(float x, float y, float z);
long lround(double x);
long lroundf(float x);
long lrint(double x);
long lrintf(float x);
long long llround(double x);

#endif
