/* C library of the emulated core: the console and formatted output. */
#include "emulator.h"
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static FILE files[3] = {{0}, {1}, {2}};
FILE *const stdin = &files[0], *const stdout = &files[1], *const stderr = &files[2];

/* Where characters go: to the console, or to a text of limited size. */
typedef struct {
    char *text; /* NULL: the console */
    size_t size, written;
} output_t;

static void put(output_t *output, char character)
{
    if (!output->text && !output->size)
        putchar(character);
    else if (output->written + 1 < output->size)
        output->text[output->written] = character;
    output->written++;
}

static void put_padding(output_t *output, int count, char fill)
{
    while (count-- > 0)
        put(output, fill);
}

/* A conversion of a format: %[flags][width][.precision][length]letter */
typedef struct {
    bool left, plus, blank, alternate, zero;
    int width, precision; /* precision -1: none */
    int longs;            /* l: 1, ll or j: 2, h: -1, hh: -2 */
    char letter;
} conversion_t;

/* Put `prefix`, zeros and `length` characters into the field. */
static void put_field(output_t *output, const conversion_t *how, const char *prefix, int zeros,
                      const char *text, int length)
{
    int prefix_length = (int) strlen(prefix), rest = how->width - prefix_length - zeros - length;
    bool with_zeros = how->zero && !how->left;
    if (!how->left && !with_zeros)
        put_padding(output, rest, ' ');
    while (*prefix)
        put(output, *prefix++);
    put_padding(output, with_zeros && rest > 0 ? zeros + rest : zeros, '0');
    while (length--)
        put(output, *text++);
    if (how->left)
        put_padding(output, rest, ' ');
}

static void put_integer(output_t *output, conversion_t how, uint64_t value, bool negative)
{
    const char *set = how.letter == 'X' ? "0123456789ABCDEF" : "0123456789abcdef";
    unsigned int base = how.letter == 'o' ? 8 : (how.letter | 32) == 'x' || how.letter == 'p' ? 16 : 10;
    const char *prefix = negative ? "-" : how.plus ? "+" : how.blank ? " " : "";
    char buffer[24], *end = buffer + sizeof(buffer), *start = end;
    if (how.alternate && base == 16 && value)
        prefix = how.letter == 'X' ? "0X" : "0x";
    if (base == 10 && value <= UINT32_MAX) {
        for (uint32_t small = (uint32_t) value; small; small /= 10)
            *--start = set[small % 10];
    } else {
        for (; value; value /= base)
            *--start = set[value % base];
    }
    int digits = (int) (end - start), least = how.precision < 0 ? 1 : how.precision;
    if (how.alternate && base == 8 && least <= digits)
        least = digits + 1;
    if (how.precision >= 0)
        how.zero = false;
    put_field(output, &how, prefix, least > digits ? least - digits : 0, start, digits);
}

/* The emulator formats numbers with fractions. */
static void put_double(output_t *output, const conversion_t *how, double value)
{
    char text[40], *end = text;
    double_words_t number = {value};
    *end++ = '%';
    if (how->left) *end++ = '-';
    if (how->plus) *end++ = '+';
    if (how->blank) *end++ = ' ';
    if (how->alternate) *end++ = '#';
    if (how->zero) *end++ = '0';
    end += sprintf(end, "%d", how->width) * (how->width > 0);
    if (how->precision >= 0)
        end += sprintf(end, ".%d", how->precision);
    *end++ = how->letter;
    *end = '\0';
    HOST->argument[0] = number.words[0];
    HOST->argument[1] = number.words[1];
    HOST->format = (uint32_t) (uintptr_t) text;
    for (char character; (character = (char) HOST->formatted);)
        put(output, character);
}

static const char *parse_conversion(const char *format, conversion_t *how, va_list *arguments)
{
    *how = (conversion_t) {.precision = -1};
    for (;; format++) {
        if (*format == '-') how->left = true;
        else if (*format == '+') how->plus = true;
        else if (*format == ' ') how->blank = true;
        else if (*format == '#') how->alternate = true;
        else if (*format == '0') how->zero = true;
        else break;
    }
    if (*format == '*') {
        format++;
        how->width = va_arg(*arguments, int);
        if (how->width < 0) {
            how->left = true;
            how->width = -how->width;
        }
    }
    while (*format >= '0' && *format <= '9')
        how->width = 10 * how->width + *format++ - '0';
    if (*format == '.') {
        how->precision = 0;
        if (*++format == '*') {
            format++;
            how->precision = va_arg(*arguments, int);
        }
        while (*format >= '0' && *format <= '9')
            how->precision = 10 * how->precision + *format++ - '0';
    }
    for (;; format++) {
        if (*format == 'l') how->longs++;
        else if (*format == 'h') how->longs--;
        else if (*format == 'j') how->longs = 2;
        else if (*format != 'z' && *format != 't' && *format != 'L') break;
    }
    how->letter = *format;
    return *format ? format + 1 : format;
}

static uint64_t take_integer(const conversion_t *how, va_list *arguments, bool *negative)
{
    bool is_signed = how->letter == 'd' || how->letter == 'i';
    if (how->longs > 1) {
        int64_t value = va_arg(*arguments, int64_t);
        *negative = is_signed && value < 0;
        return *negative ? -(uint64_t) value : (uint64_t) value;
    }
    int value = va_arg(*arguments, int);
    if (how->longs == -1)
        value = is_signed ? (int16_t) value : (uint16_t) value;
    if (how->longs == -2)
        value = is_signed ? (int8_t) value : (uint8_t) value;
    *negative = is_signed && value < 0;
    return *negative ? -(uint32_t) value : (uint32_t) value;
}

static void put_conversion(output_t *output, conversion_t *how, va_list *arguments)
{
    const char *text;
    uint64_t value;
    bool negative;
    char character;
    size_t length;

    switch (how->letter) {
    case 'd': case 'i': case 'u': case 'x': case 'X': case 'o':
        value = take_integer(how, arguments, &negative);
        put_integer(output, *how, value, negative);
        break;
    case 'p':
        how->alternate = true;
        put_integer(output, *how, (uintptr_t) va_arg(*arguments, void *), false);
        break;
    case 'f': case 'F': case 'e': case 'E': case 'g': case 'G': case 'a': case 'A':
        put_double(output, how, va_arg(*arguments, double));
        break;
    case 'c':
        character = (char) va_arg(*arguments, int);
        how->zero = false;
        put_field(output, how, "", 0, &character, 1);
        break;
    case 's':
        text = va_arg(*arguments, const char *);
        text = text ? text : "(null)";
        length = how->precision < 0 ? strlen(text) : strnlen(text, (size_t) how->precision);
        how->zero = false;
        put_field(output, how, "", 0, text, (int) length);
        break;
    case 'n':
        *va_arg(*arguments, int *) = (int) output->written;
        break;
    case '\0':
        break;
    default: /* a percent sign, or a conversion that is not known and is shown as it is */
        put(output, how->letter);
    }
}

static int put_all(output_t *output, const char *format, va_list list)
{
    va_list arguments;
    va_copy(arguments, list);
    while (*format) {
        conversion_t how;
        char character = *format++;
        if (character != '%') {
            put(output, character);
            continue;
        }
        format = parse_conversion(format, &how, &arguments);
        put_conversion(output, &how, &arguments);
    }
    va_end(arguments);
    return (int) output->written;
}

WEAK int putchar(int character)
{
    HOST->console = (uint8_t) character;
    return (uint8_t) character;
}

WEAK int vprintf(const char *format, va_list arguments)
{
    output_t output = {NULL, 0, 0};
    return put_all(&output, format, arguments);
}

WEAK int vsnprintf(char *text, size_t size, const char *format, va_list arguments)
{
    output_t output = {text, size ? size : 1, 0};
    int length = put_all(&output, format, arguments);
    if (size)
        text[(size_t) length < size ? (size_t) length : size - 1] = '\0';
    return length;
}

WEAK int vsprintf(char *text, const char *format, va_list arguments)
{
    return vsnprintf(text, INT32_MAX, format, arguments);
}

WEAK int vfprintf(FILE *file, const char *format, va_list arguments)
{
    return file == stdout || file == stderr ? vprintf(format, arguments) : EOF;
}

#define FORWARD(call) \
    va_list arguments; \
    va_start(arguments, format); \
    int result = call; \
    va_end(arguments); \
    return result
WEAK int printf(const char *format, ...) { FORWARD(vprintf(format, arguments)); }
WEAK int fprintf(FILE *file, const char *format, ...) { FORWARD(vfprintf(file, format, arguments)); }
WEAK int sprintf(char *text, const char *format, ...) { FORWARD(vsprintf(text, format, arguments)); }
WEAK int snprintf(char *text, size_t size, const char *format, ...)
{
    FORWARD(vsnprintf(text, size, format, arguments));
}

WEAK int fputc(int character, FILE *file)
{
    return file == stdout || file == stderr ? putchar(character) : EOF;
}
WEAK int putc(int character, FILE *file) { return fputc(character, file); }

WEAK int fputs(const char *text, FILE *file)
{
    for (; *text; text++)
        if (fputc(*text, file) == EOF)
            return EOF;
    return 0;
}
WEAK int puts(const char *text) { return printf("%s\n", text); }

WEAK size_t fwrite(const void *data, size_t size, size_t count, FILE *file)
{
    const char *bytes = data;
    for (size_t i = 0; i < size * count; i++)
        if (fputc(bytes[i], file) == EOF)
            return 0;
    return count;
}

WEAK int fflush(FILE *file)
{
    (void) file;
    return 0;
}
WEAK void setbuf(FILE *file, char *buffer) { (void) file, (void) buffer; }
WEAK int setvbuf(FILE *file, char *buffer, int mode, size_t size)
{
    (void) file, (void) buffer, (void) mode, (void) size;
    return 0;
}
WEAK int ferror(FILE *file)
{
    (void) file;
    return 0;
}
WEAK void perror(const char *text) { printf("%s: error\n", text); }

/* Input: bytes over the console's UART; there are no files. */
#define LINE 256
APART(typed) static char typed[LINE]; /* read and not taken yet, the next one last */
APART(typed_count) static int typed_count;
WEAK int ungetc(int character, FILE *file)
{
    if (file != stdin || character == EOF || typed_count == LINE)
        return EOF;
    typed[typed_count++] = (char) character;
    return (uint8_t) character;
}
WEAK int fgetc(FILE *file)
{
    if (file != stdin) {
        emulator_stand_in("input from a file");
        return EOF;
    }
    return typed_count ? (uint8_t) typed[--typed_count] : emulator_received();
}
WEAK int getc(FILE *file) { return fgetc(file); }
WEAK int getchar(void) { return fgetc(stdin); }
WEAK char *fgets(char *text, int size, FILE *file)
{
    int count = 0, character = 0;
    while (count + 1 < size && character != '\n' && (character = fgetc(file)) != EOF)
        text[count++] = (char) character;
    if (!count)
        return NULL;
    text[count] = '\0';
    return text;
}
WEAK char *gets(char *text)
{
    if (!fgets(text, INT32_MAX, stdin))
        return NULL;
    text[strcspn(text, "\n")] = '\0';
    return text;
}
/* Read lines until the format is satisfied, or does not fit; the rest is left for later. */
WEAK int vfscanf(FILE *file, const char *format, va_list list)
{
    char text[LINE];
    const char *rest = NULL;
    int count = 0, assigned = EOF;
    while (!rest && count + 1 < LINE) {
        int character = fgetc(file);
        if (character == EOF)
            return EOF;
        text[count++] = (char) character;
        text[count] = '\0';
        if (character == '\n' || character == '\r' || count + 1 == LINE) {
            va_list arguments;
            va_copy(arguments, list);
            assigned = emulator_scan(text, &rest, format, arguments);
            va_end(arguments);
        }
    }
    while (rest && text + count > rest)
        ungetc((uint8_t) text[--count], file);
    return assigned;
}
WEAK int scanf(const char *format, ...) { FORWARD(vfscanf(stdin, format, arguments)); }
WEAK int fscanf(FILE *file, const char *format, ...) { FORWARD(vfscanf(file, format, arguments)); }
WEAK int vscanf(const char *format, va_list arguments) { return vfscanf(stdin, format, arguments); }
WEAK size_t fread(void *data, size_t size, size_t count, FILE *file)
{
    for (size_t i = 0; i < size * count; i++) {
        int character = fgetc(file);
        if (character == EOF)
            return i / size;
        ((char *) data)[i] = (char) character;
    }
    return count;
}
WEAK int feof(FILE *file) { return file != stdin; }
WEAK FILE *fopen(const char *name, const char *mode)
{
    (void) name, (void) mode;
    emulator_stand_in("fopen");
    return NULL;
}
WEAK int fclose(FILE *file)
{
    (void) file;
    return 0;
}
