#ifndef EMULATOR_MATH_H
#define EMULATOR_MATH_H

/* To the nearest whole number, halves to even: beyond 2^23 all are whole. */
static inline float rintf(float x)
{
    const float large = 8388608.0f;

    if (!(x < large && x > -large)) {
        return x;
    }
    return x < 0.0f ? (x - large) + large : (x + large) - large;
}

#endif
