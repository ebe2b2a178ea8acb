/* Arithmetic of cores without a multiplier or divider, as their compilers call it. */
#include <stdint.h>

uint32_t __mulsi3(uint32_t a, uint32_t b);
uint32_t __udivsi3(uint32_t a, uint32_t b);
uint32_t __umodsi3(uint32_t a, uint32_t b);
int32_t __divsi3(int32_t a, int32_t b);
int32_t __modsi3(int32_t a, int32_t b);

uint32_t __mulsi3(uint32_t a, uint32_t b)
{
    uint32_t product = 0;
    for (; b; b >>= 1, a <<= 1) {
        if (b & 1) {
            product += a;
        }
    }
    return product;
}

static uint32_t divide(uint32_t dividend, uint32_t divisor, uint32_t *rest)
{
    uint32_t quotient = 0, remainder = 0;
    for (int bit = 31; bit >= 0; bit--) {
        uint32_t carry = remainder >> 31;
        remainder = remainder << 1 | (dividend >> bit & 1);
        if (carry || remainder >= divisor) {
            remainder -= divisor;
            quotient |= (uint32_t)1 << bit;
        }
    }
    *rest = remainder;
    return quotient;
}

static int32_t divide_signed(int32_t dividend, int32_t divisor, int32_t *rest)
{
    uint32_t remainder;
    uint32_t quotient = divide(dividend < 0 ? 0u - (uint32_t)dividend : (uint32_t)dividend,
                               divisor < 0 ? 0u - (uint32_t)divisor : (uint32_t)divisor, &remainder);
    *rest = (int32_t)(dividend < 0 ? 0u - remainder : remainder);
    return (int32_t)((dividend < 0) != (divisor < 0) ? 0u - quotient : quotient);
}

uint32_t __udivsi3(uint32_t a, uint32_t b) { uint32_t rest; return divide(a, b, &rest); }
uint32_t __umodsi3(uint32_t a, uint32_t b) { uint32_t rest; divide(a, b, &rest); return rest; }
int32_t __divsi3(int32_t a, int32_t b) { int32_t rest; return divide_signed(a, b, &rest); }
int32_t __modsi3(int32_t a, int32_t b) { int32_t rest; divide_signed(a, b, &rest); return rest; }

#ifdef __arm__
/* Quotient and remainder are returned in r0 and r1. */
uint32_t __aeabi_uidiv(uint32_t a, uint32_t b);
int32_t __aeabi_idiv(int32_t a, int32_t b);
uint64_t __aeabi_uidivmod(uint32_t a, uint32_t b);
uint64_t __aeabi_idivmod(int32_t a, int32_t b);

uint32_t __aeabi_uidiv(uint32_t a, uint32_t b) { return __udivsi3(a, b); }
int32_t __aeabi_idiv(int32_t a, int32_t b) { return __divsi3(a, b); }
uint64_t __aeabi_uidivmod(uint32_t a, uint32_t b)
{
    uint32_t rest, quotient = divide(a, b, &rest);
    return (uint64_t)rest << 32 | quotient;
}
uint64_t __aeabi_idivmod(int32_t a, int32_t b)
{
    int32_t rest, quotient = divide_signed(a, b, &rest);
    return (uint64_t)(uint32_t)rest << 32 | (uint32_t)quotient;
}
#endif
