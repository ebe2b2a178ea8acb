/* The memory functions that compilers call, by words where both sides are aligned. Compiled with
   -fno-builtin, so that they do not become calls of themselves. */
#include <stdint.h>
#include <string.h>

typedef uint32_t __attribute__((may_alias)) word;

#define ALIGNED(a, b) ((((uintptr_t)(a) | (uintptr_t)(b)) & 3) == 0)

void *memcpy(void *to, const void *from, size_t size)
{
    unsigned char *out = to;
    const unsigned char *in = from;
    if (ALIGNED(to, from)) {
        for (; size >= 16; size -= 16, out += 16, in += 16) {
            word a = ((const word *)in)[0], b = ((const word *)in)[1];
            word c = ((const word *)in)[2], d = ((const word *)in)[3];
            ((word *)out)[0] = a;
            ((word *)out)[1] = b;
            ((word *)out)[2] = c;
            ((word *)out)[3] = d;
        }
        for (; size >= 4; size -= 4, out += 4, in += 4) {
            *(word *)out = *(const word *)in;
        }
    }
    while (size--) {
        *out++ = *in++;
    }
    return to;
}

void *memmove(void *to, const void *from, size_t size)
{
    unsigned char *out = to;
    const unsigned char *in = from;
    if (out <= in || out >= in + size) {
        return memcpy(to, from, size);
    }
    while (size--) {
        out[size] = in[size];
    }
    return to;
}

void *memset(void *to, int value, size_t size)
{
    unsigned char *out = to;
    if (ALIGNED(to, 0)) {
        uint32_t all = (uint32_t)(unsigned char)value;
        all |= all << 8;
        all |= all << 16;
        for (; size >= 4; size -= 4, out += 4) {
            *(word *)out = all;
        }
    }
    while (size--) {
        *out++ = (unsigned char)value;
    }
    return to;
}

int memcmp(const void *a, const void *b, size_t size)
{
    const unsigned char *left = a, *right = b;
    for (; size--; left++, right++) {
        if (*left != *right) {
            return *left - *right;
        }
    }
    return 0;
}

#ifdef __arm__
void __aeabi_memcpy(void *to, const void *from, size_t size) { memcpy(to, from, size); }
void __aeabi_memcpy4(void *to, const void *from, size_t size) { memcpy(to, from, size); }
void __aeabi_memcpy8(void *to, const void *from, size_t size) { memcpy(to, from, size); }
void __aeabi_memmove(void *to, const void *from, size_t size) { memmove(to, from, size); }
void __aeabi_memmove4(void *to, const void *from, size_t size) { memmove(to, from, size); }
void __aeabi_memmove8(void *to, const void *from, size_t size) { memmove(to, from, size); }
void __aeabi_memset(void *to, size_t size, int value) { memset(to, value, size); }
void __aeabi_memset4(void *to, size_t size, int value) { memset(to, value, size); }
void __aeabi_memset8(void *to, size_t size, int value) { memset(to, value, size); }
void __aeabi_memclr(void *to, size_t size) { memset(to, 0, size); }
void __aeabi_memclr4(void *to, size_t size) { memset(to, 0, size); }
void __aeabi_memclr8(void *to, size_t size) { memset(to, 0, size); }
#endif
