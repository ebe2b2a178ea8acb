/*
 * C library of the emulated core: mathematics. The emulator computes; numbers go to it as bits, so
 * that no arithmetic with fractions is needed here. The order of operations is that of math.h.
 */
#include "emulator.h"
#include <math.h>

enum {
#define OPERATION(name) OPERATION_##name,
    EMULATOR_MATH_1(OPERATION) EMULATOR_MATH_2(OPERATION)
    OPERATION_ldexp
#undef OPERATION
};
#define IN_FLOAT 0x100 /* numbers are of 32 bits */

typedef union {
    float value;
    uint32_t word;
} float_word_t;

static double compute(uint32_t operation, double x, double y)
{
    double_words_t a = {x}, b = {y}, result;
    HOST->argument[0] = a.words[0];
    HOST->argument[1] = a.words[1];
    HOST->argument[2] = b.words[0];
    HOST->argument[3] = b.words[1];
    HOST->compute = operation;
    result.words[0] = HOST->result[0];
    result.words[1] = HOST->result[1];
    return result.value;
}

static float compute_float(uint32_t operation, float x, float y)
{
    float_word_t a = {x}, b = {y}, result;
    HOST->argument[0] = a.word;
    HOST->argument[2] = b.word;
    HOST->compute = operation | IN_FLOAT;
    result.word = HOST->result[0];
    return result.value;
}

#define DEFINE_1(name) \
    WEAK double name(double x) { return compute(OPERATION_##name, x, x); } \
    WEAK float name##f(float x) { return compute_float(OPERATION_##name, x, x); }
#define DEFINE_2(name) \
    WEAK double name(double x, double y) { return compute(OPERATION_##name, x, y); } \
    WEAK float name##f(float x, float y) { return compute_float(OPERATION_##name, x, y); }
EMULATOR_MATH_1(DEFINE_1)
EMULATOR_MATH_2(DEFINE_2)

/* These are used less: the compiler's run time does what they need of arithmetic. */
WEAK double ldexp(double x, int exponent) { return compute(OPERATION_ldexp, x, exponent); }
WEAK float ldexpf(float x, int exponent) { return (float) ldexp(x, exponent); }
WEAK double scalbn(double x, int exponent) { return ldexp(x, exponent); }
WEAK double frexp(double x, int *exponent)
{
    *exponent = x == 0 || !isfinite(x) ? 0 : (int) floor(log2(fabs(x))) + 1;
    x = ldexp(x, -*exponent);
    for (; x != 0 && isfinite(x) && fabs(x) >= 1; x /= 2)
        ++*exponent;
    for (; x != 0 && isfinite(x) && fabs(x) < 0.5; x *= 2)
        --*exponent;
    return x;
}
WEAK float frexpf(float x, int *exponent) { return (float) frexp(x, exponent); }
WEAK double modf(double x, double *whole)
{
    *whole = trunc(x);
    return isinf(x) ? copysign(0, x) : copysign(x - *whole, x);
}
WEAK float modff(float x, float *whole)
{
    double whole_double, rest = modf(x, &whole_double);
    *whole = (float) whole_double;
    return (float) rest;
}
WEAK double fma(double x, double y, double z) { return x * y + z; }
WEAK float fmaf(float x, float y, float z) { return (float) ((double) x * y + z); }
WEAK long lround(double x) { return (long) round(x); }
WEAK long lroundf(float x) { return (long) round(x); }
WEAK long lrint(double x) { return (long) rint(x); }
WEAK long lrintf(float x) { return (long) rint(x); }
WEAK long long llround(double x) { return (long long) round(x); }
