/* C library of the emulated core: memory and strings. */
#include "emulator.h"
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

int errno;

/* Memory of the accelerator takes words only, so aligned words are copied as words. */
WEAK void *memset(void *destination, int value, size_t count)
{
    volatile uint8_t *bytes = destination;
    if (((uintptr_t) bytes & 3) == 0)
        for (; count >= 4; count -= 4, bytes += 4)
            *(volatile uint32_t *) bytes = (uint8_t) value * 0x01010101u;
    while (count--)
        *bytes++ = (uint8_t) value;
    return destination;
}

WEAK void *memcpy(void *destination, const void *source, size_t count)
{
    volatile uint8_t *to = destination;
    const volatile uint8_t *from = source;
    if ((((uintptr_t) to | (uintptr_t) from) & 3) == 0)
        for (; count >= 4; count -= 4, to += 4, from += 4)
            *(volatile uint32_t *) to = *(const volatile uint32_t *) from;
    while (count--)
        *to++ = *from++;
    return destination;
}

WEAK void *memmove(void *destination, const void *source, size_t count)
{
    volatile uint8_t *to = destination;
    const volatile uint8_t *from = source;
    if (to <= from)
        return memcpy(destination, source, count);
    while (count--)
        to[count] = from[count];
    return destination;
}

WEAK int memcmp(const void *left, const void *right, size_t count)
{
    const volatile uint8_t *a = left, *b = right;
    for (; count--; a++, b++)
        if (*a != *b)
            return *a - *b;
    return 0;
}

WEAK void *memchr(const void *memory, int value, size_t count)
{
    for (const uint8_t *byte = memory; count--; byte++)
        if (*byte == (uint8_t) value)
            return (void *) byte;
    return NULL;
}

WEAK void bzero(void *destination, size_t count) { memset(destination, 0, count); }

WEAK size_t strlen(const char *text)
{
    const volatile char *end = text;
    while (*end)
        end++;
    return (size_t) (end - text);
}

WEAK size_t strnlen(const char *text, size_t limit)
{
    size_t length = 0;
    while (length < limit && text[length])
        length++;
    return length;
}

WEAK char *strcpy(char *destination, const char *source)
{
    return memcpy(destination, source, strlen(source) + 1);
}

WEAK char *strncpy(char *destination, const char *source, size_t count)
{
    size_t length = strnlen(source, count);
    memset(destination + length, 0, count - length);
    return memcpy(destination, source, length);
}

WEAK char *strncat(char *destination, const char *source, size_t count)
{
    size_t length = strnlen(source, count);
    char *end = destination + strlen(destination);
    memcpy(end, source, length);
    end[length] = '\0';
    return destination;
}

WEAK char *strcat(char *destination, const char *source)
{
    strcpy(destination + strlen(destination), source);
    return destination;
}

static int compare_text(const char *left, const char *right, size_t count, bool any_case)
{
    for (; count; left++, right++, count--) {
        int a = (uint8_t) *left, b = (uint8_t) *right;
        if (any_case)
            a = tolower(a), b = tolower(b);
        if (a != b || !a)
            return a - b;
    }
    return 0;
}

WEAK int strcmp(const char *left, const char *right) { return compare_text(left, right, SIZE_MAX, false); }
WEAK int strcoll(const char *left, const char *right) { return strcmp(left, right); }
WEAK int strncmp(const char *left, const char *right, size_t count)
{
    return compare_text(left, right, count, false);
}
WEAK int strcasecmp(const char *left, const char *right) { return compare_text(left, right, SIZE_MAX, true); }
WEAK int strncasecmp(const char *left, const char *right, size_t count)
{
    return compare_text(left, right, count, true);
}

WEAK char *strchr(const char *text, int character)
{
    for (;; text++) {
        if (*text == (char) character)
            return (char *) text;
        if (!*text)
            return NULL;
    }
}

WEAK char *strrchr(const char *text, int character)
{
    for (const char *end = text + strlen(text);; end--) {
        if (*end == (char) character)
            return (char *) end;
        if (end == text)
            return NULL;
    }
}

WEAK char *strstr(const char *text, const char *part)
{
    for (size_t length = strlen(part);; text++) {
        if (!strncmp(text, part, length))
            return (char *) text;
        if (!*text)
            return NULL;
    }
}

static size_t span(const char *text, const char *set, bool inside)
{
    size_t length = 0;
    while (text[length] && (strchr(set, text[length]) != NULL) == inside)
        length++;
    return length;
}

WEAK size_t strspn(const char *text, const char *set) { return span(text, set, true); }
WEAK size_t strcspn(const char *text, const char *set) { return span(text, set, false); }

WEAK char *strpbrk(const char *text, const char *set)
{
    text += strcspn(text, set);
    return *text ? (char *) text : NULL;
}

WEAK char *strtok_r(char *text, const char *separators, char **position)
{
    if (!text)
        text = *position;
    text += strspn(text, separators);
    if (!*text) {
        *position = text;
        return NULL;
    }
    char *end = text + strcspn(text, separators);
    *position = *end ? end + 1 : end;
    *end = '\0';
    return text;
}

WEAK char *strtok(char *text, const char *separators)
{
    static char *position;
    return strtok_r(text, separators, &position);
}

WEAK char *strndup(const char *text, size_t limit)
{
    size_t length = strnlen(text, limit);
    char *copy = malloc(length + 1);
    if (copy) {
        memcpy(copy, text, length);
        copy[length] = '\0';
    }
    return copy;
}

WEAK char *strdup(const char *text) { return strndup(text, SIZE_MAX); }

WEAK char *strerror(int number)
{
    (void) number;
    return "error";
}

/* Names under which compiled code asks for memory functions */
#ifndef __riscv
WEAK void __aeabi_memcpy(void *to, const void *from, size_t count) { memcpy(to, from, count); }
WEAK void __aeabi_memcpy4(void *to, const void *from, size_t count) { memcpy(to, from, count); }
WEAK void __aeabi_memcpy8(void *to, const void *from, size_t count) { memcpy(to, from, count); }
WEAK void __aeabi_memmove(void *to, const void *from, size_t count) { memmove(to, from, count); }
WEAK void __aeabi_memmove4(void *to, const void *from, size_t count) { memmove(to, from, count); }
WEAK void __aeabi_memmove8(void *to, const void *from, size_t count) { memmove(to, from, count); }
WEAK void __aeabi_memset(void *to, size_t count, int value) { memset(to, value, count); }
WEAK void __aeabi_memset4(void *to, size_t count, int value) { memset(to, value, count); }
WEAK void __aeabi_memset8(void *to, size_t count, int value) { memset(to, value, count); }
WEAK void __aeabi_memclr(void *to, size_t count) { memset(to, 0, count); }
WEAK void __aeabi_memclr4(void *to, size_t count) { memset(to, 0, count); }
WEAK void __aeabi_memclr8(void *to, size_t count) { memset(to, 0, count); }
#endif
