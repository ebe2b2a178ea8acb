/* Arithmetic of 64 bits, as compilers of 32-bit cores call it. */
#include <stdint.h>

uint64_t __muldi3(uint64_t a, uint64_t b);
uint64_t __ashldi3(uint64_t value, int bits);
uint64_t __lshrdi3(uint64_t value, int bits);
int64_t __ashrdi3(int64_t value, int bits);

static uint64_t joined(uint32_t upper, uint32_t lower)
{
    return (uint64_t)upper << 32 | lower;
}

uint64_t __muldi3(uint64_t a, uint64_t b)
{
    uint32_t a0 = (uint32_t)a, b0 = (uint32_t)b;
    uint32_t low = (a0 & 0xFFFFu) * (b0 & 0xFFFFu), high = (a0 >> 16) * (b0 >> 16);
    uint32_t one = (a0 >> 16) * (b0 & 0xFFFFu), other = (a0 & 0xFFFFu) * (b0 >> 16);
    uint32_t middle = (low >> 16) + (one & 0xFFFFu) + (other & 0xFFFFu);

    high += (one >> 16) + (other >> 16) + (middle >> 16);
    high += (uint32_t)(a >> 32) * b0 + a0 * (uint32_t)(b >> 32);
    return joined(high, middle << 16 | (low & 0xFFFFu));
}

uint64_t __ashldi3(uint64_t value, int bits)
{
    uint32_t low = (uint32_t)value, high = (uint32_t)(value >> 32);

    if (bits >= 32) {
        return joined(low << (bits - 32), 0);
    }
    return bits ? joined(high << bits | low >> (32 - bits), low << bits) : value;
}

uint64_t __lshrdi3(uint64_t value, int bits)
{
    uint32_t low = (uint32_t)value, high = (uint32_t)(value >> 32);

    if (bits >= 32) {
        return high >> (bits - 32);
    }
    return bits ? joined(high >> bits, low >> bits | high << (32 - bits)) : value;
}

int64_t __ashrdi3(int64_t value, int bits)
{
    uint32_t low = (uint32_t)value;
    int32_t high = (int32_t)((uint64_t)value >> 32);

    if (bits >= 32) {
        return (int64_t)joined(high < 0 ? 0xFFFFFFFFu : 0, (uint32_t)(high >> (bits - 32)));
    }
    return bits ? (int64_t)joined((uint32_t)(high >> bits),
                                  low >> bits | (uint32_t)high << (32 - bits)) : value;
}

#ifdef __arm__
uint64_t __aeabi_lmul(uint64_t a, uint64_t b);
uint64_t __aeabi_llsl(uint64_t value, int bits);
uint64_t __aeabi_llsr(uint64_t value, int bits);
int64_t __aeabi_lasr(int64_t value, int bits);

uint64_t __aeabi_lmul(uint64_t a, uint64_t b) { return __muldi3(a, b); }
uint64_t __aeabi_llsl(uint64_t value, int bits) { return __ashldi3(value, bits); }
uint64_t __aeabi_llsr(uint64_t value, int bits) { return __lshrdi3(value, bits); }
int64_t __aeabi_lasr(int64_t value, int bits) { return __ashrdi3(value, bits); }
#endif
