/* C library of the emulated core: memory, numbers, sorting, end of the program. */
#include "emulator.h"
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The heap grows from the end of the variables towards the stack. Free blocks are joined. */
typedef struct block {
    size_t size; /* bytes behind this header, a multiple of 8 */
    struct block *next;
    uint32_t is_free, reserved; /* the block behind it is aligned to 8 bytes */
} block_t;
#define STACK_BYTES 2048
extern char __heap_start[];
static block_t *heap;
static char *heap_end = __heap_start;
char *emulator_main_stack;

static void *block_grow(size_t size)
{
    char here, *start = (char *) (((uintptr_t) heap_end + 7) & ~(uintptr_t) 7);
    char *end = emulator_main_stack ? emulator_main_stack : &here;
    if (size > (size_t) (end - start) || (size_t) (end - start) - size < STACK_BYTES + sizeof(block_t))
        return NULL;
    block_t *block = (block_t *) start;
    *block = (block_t) {size, NULL, 0, 0};
    heap_end = start + sizeof(block_t) + size;
    block_t **last = &heap;
    while (*last)
        last = &(*last)->next;
    *last = block;
    return block + 1;
}

WEAK void *malloc(size_t size)
{
    if (size > INT_MAX)
        return NULL;
    size = size ? (size + 7) & ~(size_t) 7 : 8;
    for (block_t *block = heap; block; block = block->next) {
        while (block->is_free && block->next && block->next->is_free) {
            block->size += sizeof(block_t) + block->next->size;
            block->next = block->next->next;
        }
        if (!block->is_free || block->size < size)
            continue;
        if (block->size >= size + 2 * sizeof(block_t)) {
            block_t *rest = (block_t *) ((char *) (block + 1) + size);
            *rest = (block_t) {block->size - size - sizeof(block_t), block->next, 1, 0};
            block->size = size;
            block->next = rest;
        }
        block->is_free = 0;
        return block + 1;
    }
    return block_grow(size);
}

WEAK void free(void *memory)
{
    if (memory)
        ((block_t *) memory - 1)->is_free = 1;
}

WEAK void *calloc(size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes))
        return NULL;
    void *memory = malloc(bytes);
    return memory ? memset(memory, 0, bytes) : NULL;
}

WEAK void *realloc(void *memory, size_t size)
{
    if (!memory)
        return malloc(size);
    size_t old = ((block_t *) memory - 1)->size;
    if (size <= old)
        return memory;
    void *larger = malloc(size);
    if (larger) {
        memcpy(larger, memory, old);
        free(memory);
    }
    return larger;
}

WEAK void *aligned_alloc(size_t alignment, size_t size)
{
    char *memory = malloc(size + alignment); /* not given back by free(), if it was moved */
    return memory ? (void *) (((uintptr_t) memory + alignment - 1) & ~(uintptr_t) (alignment - 1)) : NULL;
}

WEAK int abs(int value) { return value < 0 ? -value : value; }
WEAK long labs(long value) { return value < 0 ? -value : value; }
WEAK long long llabs(long long value) { return value < 0 ? -value : value; }
WEAK div_t div(int a, int b) { return (div_t) {a / b, a % b}; }
WEAK ldiv_t ldiv(long a, long b) { return (ldiv_t) {a / b, a % b}; }
WEAK lldiv_t lldiv(long long a, long long b) { return (lldiv_t) {a / b, a % b}; }

static unsigned int random_state = 1;
WEAK int rand_r(unsigned int *seed)
{
    uint32_t x = *seed ? *seed : 0x9e3779b9u; /* xorshift */
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    *seed = x;
    return (int) (x & RAND_MAX);
}
WEAK int rand(void) { return rand_r(&random_state); }
WEAK void srand(unsigned int seed) { random_state = seed; }
WEAK long random(void) { return rand(); }
WEAK void srandom(unsigned int seed) { srand(seed); }

static uint64_t parse_integer(const char *text, char **end, int base, bool *negative, uint64_t limit)
{
    const char *start = text;
    uint64_t value = 0;
    bool any = false, over = false;
    while (isspace(*text))
        text++;
    *negative = *text == '-';
    if (*text == '-' || *text == '+')
        text++;
    if ((base == 0 || base == 16) && text[0] == '0' && (text[1] | 32) == 'x' && isxdigit(text[2])) {
        text += 2;
        base = 16;
    } else if (base == 0) {
        base = *text == '0' ? 8 : 10;
    }
    for (; isalnum(*text); text++, any = true) {
        int digit = isdigit(*text) ? *text - '0' : (*text | 32) - 'a' + 10;
        if (digit >= base)
            break;
        over |= value > (limit - (unsigned int) digit) / (unsigned int) base;
        value = value * (unsigned int) base + (unsigned int) digit;
    }
    if (end)
        *end = (char *) (any ? text : start);
    if (over)
        errno = ERANGE;
    return over ? limit : value;
}

WEAK unsigned long long strtoull(const char *text, char **end, int base)
{
    bool negative;
    uint64_t value = parse_integer(text, end, base, &negative, ULLONG_MAX);
    return negative ? -value : value;
}

WEAK long long strtoll(const char *text, char **end, int base)
{
    bool negative;
    uint64_t value = parse_integer(text, end, base, &negative, LLONG_MAX);
    return negative ? -(long long) value : (long long) value;
}

WEAK unsigned long strtoul(const char *text, char **end, int base)
{
    bool negative;
    unsigned long value = (unsigned long) parse_integer(text, end, base, &negative, ULONG_MAX);
    return negative ? -value : value;
}

WEAK long strtol(const char *text, char **end, int base)
{
    bool negative;
    long value = (long) parse_integer(text, end, base, &negative, LONG_MAX);
    return negative ? -value : value;
}

WEAK int atoi(const char *text) { return (int) strtol(text, NULL, 10); }
WEAK long atol(const char *text) { return strtol(text, NULL, 10); }
WEAK long long atoll(const char *text) { return strtoll(text, NULL, 10); }

WEAK double strtod(const char *text, char **end)
{
    HOST->parse = (uint32_t) (uintptr_t) text;
    double_words_t number = {.words = {HOST->result[0], HOST->result[1]}};
    if (end)
        *end = (char *) text + HOST->parsed;
    return number.value;
}
WEAK float strtof(const char *text, char **end) { return (float) strtod(text, end); }
WEAK double atof(const char *text) { return strtod(text, NULL); }

static char *write_integer(unsigned int value, char *text, int base)
{
    char digits[33];
    int count = 0;
    do {
        unsigned int digit = value % (unsigned int) base;
        digits[count++] = (char) (digit < 10 ? '0' + digit : 'a' + digit - 10);
        value /= (unsigned int) base;
    } while (value);
    while (count)
        *text++ = digits[--count];
    *text = '\0';
    return text;
}

WEAK char *utoa(unsigned int value, char *text, int base)
{
    write_integer(value, text, base);
    return text;
}

WEAK char *itoa(int value, char *text, int base)
{
    bool negative = value < 0 && base == 10;
    if (negative)
        *text = '-';
    write_integer(negative ? -(unsigned int) value : (unsigned int) value, text + negative, base);
    return text;
}

static void swap_elements(char *a, char *b, size_t size)
{
    for (; size--; a++, b++) {
        char byte = *a;
        *a = *b;
        *b = byte;
    }
}

typedef int (*compare_t)(const void *, const void *);

static void sink(char *array, size_t root, size_t count, size_t size, compare_t compare)
{
    for (size_t child; (child = 2 * root + 1) < count; root = child) {
        if (child + 1 < count && compare(array + child * size, array + (child + 1) * size) < 0)
            child++;
        if (compare(array + root * size, array + child * size) >= 0)
            return;
        swap_elements(array + root * size, array + child * size, size);
    }
}

/* Sort in a heap: no memory, no deep recursion. */
WEAK void qsort(void *base, size_t count, size_t size, compare_t compare)
{
    char *array = base;
    for (size_t root = count / 2; root--;)
        sink(array, root, count, size, compare);
    while (count-- > 1) {
        swap_elements(array, array + count * size, size);
        sink(array, 0, count, size, compare);
    }
}

WEAK void *bsearch(const void *key, const void *base, size_t count, size_t size, compare_t compare)
{
    for (const char *array = base; count;) {
        const char *middle = array + count / 2 * size;
        int order = compare(key, middle);
        if (!order)
            return (void *) middle;
        if (order > 0) {
            array = middle + size;
            count--;
        }
        count /= 2;
    }
    return NULL;
}

WEAK _Noreturn void abort(void)
{
    HOST->abort = 1;
    for (;;) {}
}

WEAK _Noreturn void _Exit(int status)
{
    HOST->exit = (uint32_t) status;
    for (;;) {}
}
WEAK _Noreturn void exit(int status) { _Exit(status); }

WEAK void emulator_assertion(const char *condition, const char *file, int line)
{
    printf("%s:%d: assertion failed: %s\n", file, line, condition);
    abort();
}

WEAK int atexit(void (*function)(void))
{
    (void) function;
    return 0;
}

WEAK char *getenv(const char *name)
{
    (void) name;
    return NULL;
}
