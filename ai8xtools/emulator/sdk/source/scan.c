/* Formatted input from texts. */
#include "emulator.h"
#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 64 /* characters of a number */

static const char *skip_blanks(const char *text)
{
    while (isspace((unsigned char) *text))
        text++;
    return text;
}

static void store_integer(void *place, long long value, int length)
{
    switch (length) {
    case -2: *(signed char *) place = (signed char) value; break;
    case -1: *(short *) place = (short) value; break;
    case 2: *(long long *) place = value; break;
    default: *(int *) place = (int) value;
    }
}

/* Read a number of at most `width` characters; return where it ends, NULL if there is none. */
static const char *scan_number(const char *text, size_t width, char kind, int length, void *place)
{
    char copy[MOST], *end;
    size_t count = strnlen(text, width && width < MOST ? width : MOST - 1);
    memcpy(copy, text, count);
    copy[count] = '\0';
    if (strchr("eEfFgGaA", kind)) {
        double value = strtod(copy, &end);
        if (end != copy && place && length)
            *(double *) place = value;
        else if (end != copy && place)
            *(float *) place = (float) value;
    } else {
        int base = kind == 'x' || kind == 'X' || kind == 'p' ? 16 : kind == 'o' ? 8 : kind == 'i' ? 0 : 10;
        long long value = kind == 'd' || kind == 'i' ? strtoll(copy, &end, base)
                                                     : (long long) strtoull(copy, &end, base);
        if (end != copy && place)
            store_integer(place, value, length);
    }
    return end == copy ? NULL : text + (end - copy);
}

/* Whether a character is in a set like [a-z]; `set` begins behind the bracket. */
static bool in_set(char character, const char *set, const char *end)
{
    bool without = *set == '^', listed = false;
    for (set += without; set < end; set++)
        if (set[1] == '-' && set + 2 < end) {
            listed |= character >= set[0] && character <= set[2];
            set += 2;
        } else
            listed |= character == *set;
    return listed != without;
}

static const char *scan_text(const char *text, size_t width, char kind, const char *set, const char *end,
                             char *place)
{
    size_t count = 0;
    if (!width)
        width = kind == 'c' ? 1 : (size_t) -1;
    for (; count < width && text[count]; count++) {
        if (kind == 's' && isspace((unsigned char) text[count]))
            break;
        if (kind == '[' && !in_set(text[count], set, end))
            break;
        if (place)
            place[count] = text[count];
    }
    if (place && kind != 'c')
        place[count] = '\0';
    return count ? text + count : NULL;
}

int emulator_scan(const char *text, const char **rest, const char *format, va_list arguments)
{
    int assigned = 0;
    *rest = NULL;
    for (const char *start = text; *format; format++) {
        if (isspace((unsigned char) *format)) {
            text = skip_blanks(text);
            continue;
        }
        if (*format != '%' || *++format == '%') {
            if (!*text)
                return assigned;
            if (*text != *format)
                break;
            text++;
            continue;
        }
        bool ignored = *format == '*';
        size_t width = strtoul(format + ignored, (char **) &format, 10);
        int length = 0;
        for (; strchr("hljztL", *format) && *format; format++)
            length += *format == 'h' ? -1 : *format == 'l' ? 1 : *format == 'j' ? 2 : *format == 'L' ? 2 : 0;
        char kind = *format;
        const char *set = format + 1, *end = set;
        if (kind == '[') {
            end = strchr(set + (*set == '^') + 1, ']');
            if (!end)
                break;
            format = end;
        }
        if (kind == 'n') {
            store_integer(va_arg(arguments, void *), text - start, length);
            continue;
        }
        if (kind != 'c' && kind != '[')
            text = skip_blanks(text);
        if (!*text)
            return assigned ? assigned : EOF;
        const char *from = text;
        void *place = ignored ? NULL : va_arg(arguments, void *);
        if (kind == 's' || kind == 'c' || kind == '[')
            text = scan_text(text, width, kind, set, end, place);
        else
            text = scan_number(text, width, kind, length, place);
        if (!text) {
            text = from;
            break;
        }
        assigned += !ignored;
    }
    *rest = text;
    return assigned;
}
WEAK int vsscanf(const char *text, const char *format, va_list arguments)
{
    const char *rest;
    return emulator_scan(text, &rest, format, arguments);
}
WEAK int sscanf(const char *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int assigned = vsscanf(text, format, arguments);
    va_end(arguments);
    return assigned;
}
