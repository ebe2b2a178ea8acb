/* Start of a program, console and the memory functions that compilers call. The emulator has placed
   initialized variables and cleared the others. */
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PORT ((volatile uint32_t *)0xF0000000u) /* ai8xtools/emulator/cpu/port.py */
#define CONSOLE 0
#define ABORT 1
#define EXIT 3

extern int main(void);

__attribute__((used)) int reset_handler(void) { return main(); }

int putchar(int character)
{
    PORT[CONSOLE] = (unsigned char)character;
    return character;
}

int puts(const char *text)
{
    while (*text) {
        putchar(*text++);
    }
    return putchar('\n');
}

void exit(int status)
{
    for (;;) {
        PORT[EXIT] = (uint32_t)status;
    }
}

void abort(void)
{
    for (;;) {
        PORT[ABORT] = 0;
    }
}

/* Without division: cores without one would need a library for it. */
static unsigned number(char *digits, unsigned long value, unsigned hexadecimal)
{
    static const uint32_t tens[] = {1000000000, 100000000, 10000000, 1000000, 100000,
                                    10000,      1000,      100,      10,      1};
    unsigned length = 0, i;
    if (hexadecimal) {
        for (i = 8; i-- > 0;) {
            unsigned digit = value >> (4 * i) & 15;
            if (digit || length || i == 0) {
                digits[length++] = "0123456789abcdef"[digit];
            }
        }
        return length;
    }
    for (i = 0; i < 10; i++) {
        char digit = '0';
        while (value >= tens[i]) {
            value -= tens[i];
            digit++;
        }
        if (digit != '0' || length || i == 9) {
            digits[length++] = digit;
        }
    }
    return length;
}

/* Flags - and 0, a width, and the conversions d i u x X c s % with any of l h z. */
int printf(const char *format, ...)
{
    int written = 0;
    va_list arguments;
    va_start(arguments, format);
    for (; *format; format++) {
        char digits[12];
        const char *text = digits;
        unsigned length = 0, width = 0, left = 0, zeros = 0, negative = 0;
        if (*format != '%') {
            putchar(*format);
            written++;
            continue;
        }
        for (format++; *format == '-' || *format == '0'; format++) {
            left |= *format == '-';
            zeros |= *format == '0';
        }
        for (; *format >= '0' && *format <= '9'; format++) {
            width = (width << 3) + (width << 1) + (unsigned)(*format - '0');
        }
        while (*format == 'l' || *format == 'h' || *format == 'z') {
            format++;
        }
        if (*format == 's') {
            text = va_arg(arguments, const char *);
            while (text[length]) {
                length++;
            }
        } else if (*format == 'd' || *format == 'i') {
            long value = va_arg(arguments, long);
            negative = value < 0;
            length = number(digits, negative ? 0ul - (unsigned long)value : (unsigned long)value, 0);
        } else if (*format == 'u' || *format == 'x' || *format == 'X') {
            length = number(digits, va_arg(arguments, unsigned long), *format != 'u');
        } else {
            digits[length++] = *format == 'c' ? (char)va_arg(arguments, int) : *format;
        }
        width = width > length + negative ? width - length - negative : 0;
        written += (int)(width + length + negative);
        for (; width && !left && !zeros; width--) {
            putchar(' ');
        }
        if (negative) {
            putchar('-');
        }
        for (; width && !left; width--) {
            putchar('0');
        }
        while (length--) {
            putchar(*text++);
        }
        for (; width; width--) {
            putchar(' ');
        }
    }
    va_end(arguments);
    return written;
}
