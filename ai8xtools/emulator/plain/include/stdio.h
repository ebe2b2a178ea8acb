/* What programs on a core without operating system print with. */
#ifndef PLAIN_STDIO_H
#define PLAIN_STDIO_H
#include <stddef.h>
int printf(const char *format, ...) __attribute__((format(printf, 1, 2)));
int puts(const char *text);
int putchar(int character);
#endif
