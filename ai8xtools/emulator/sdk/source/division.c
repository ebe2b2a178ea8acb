/* 64-bit division, called by compiled code. Arithmetic with fractions is the compiler's own run time. */
#include "emulator.h"
#include <stdbool.h>

__attribute__((used)) uint64_t emulator_divide(uint64_t dividend, uint64_t divisor, uint64_t *remainder)
{
    uint64_t quotient = 0, rest = 0;
    for (int bit = 63; divisor && bit >= 0; bit--) {
        bool carry = rest >> 63;
        rest = rest << 1 | (dividend >> bit & 1);
        if (carry || rest >= divisor) {
            rest -= divisor;
            quotient |= (uint64_t) 1 << bit;
        }
    }
    *remainder = rest;
    return quotient;
}

__attribute__((used)) int64_t emulator_divide_signed(int64_t dividend, int64_t divisor, int64_t *remainder)
{
    uint64_t rest;
    uint64_t quotient = emulator_divide(dividend < 0 ? -(uint64_t) dividend : (uint64_t) dividend,
                                        divisor < 0 ? -(uint64_t) divisor : (uint64_t) divisor, &rest);
    *remainder = (int64_t) (dividend < 0 ? -rest : rest);
    return (int64_t) ((dividend < 0) != (divisor < 0) ? -quotient : quotient);
}

#ifdef __riscv
WEAK uint64_t __udivdi3(uint64_t a, uint64_t b) { uint64_t rest; return emulator_divide(a, b, &rest); }
WEAK uint64_t __umoddi3(uint64_t a, uint64_t b) { uint64_t rest; emulator_divide(a, b, &rest); return rest; }
WEAK int64_t __divdi3(int64_t a, int64_t b) { int64_t rest; return emulator_divide_signed(a, b, &rest); }
WEAK int64_t __moddi3(int64_t a, int64_t b) { int64_t rest; emulator_divide_signed(a, b, &rest); return rest; }
#else
/* Quotient in r0:r1, remainder in r2:r3 */
#define DIVISION(name, function)                                                                   \
    __attribute__((naked, weak)) void name(void)                                                         \
    {                                                                                              \
        __asm__ volatile("push {r4, lr}\n"                                                         \
                         "sub sp, sp, #16\n"                                                       \
                         "add r4, sp, #8\n"                                                        \
                         "str r4, [sp]\n" /* fifth argument: where the remainder goes */           \
                         "bl " #function "\n"                                                      \
                         "ldrd r2, r3, [sp, #8]\n"                                                 \
                         "add sp, sp, #16\n"                                                       \
                         "pop {r4, pc}\n");                                                        \
    }
DIVISION(__aeabi_uldivmod, emulator_divide)
DIVISION(__aeabi_ldivmod, emulator_divide_signed)
#endif
