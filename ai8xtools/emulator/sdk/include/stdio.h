/* C library of the emulated core: input and output. Only the console exists; there are no files. */
#ifndef EMULATOR_STDIO_H
#define EMULATOR_STDIO_H

#include <stdarg.h>
#include <stddef.h>

typedef struct emulator_file {
    int number;
} FILE;
typedef long fpos_t;
extern FILE *const stdin, *const stdout, *const stderr;

#define EOF (-1)
#define BUFSIZ 256
#define FILENAME_MAX 256
#define SEEK_SET 0
#define SEEK_CUR 1
#define SEEK_END 2
#define _IOFBF 0
#define _IOLBF 1
#define _IONBF 2

int printf(const char *format, ...) __attribute__((format(printf, 1, 2)));
int fprintf(FILE *file, const char *format, ...) __attribute__((format(printf, 2, 3)));
int sprintf(char *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
int snprintf(char *text, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));
int vprintf(const char *format, va_list arguments);
int vfprintf(FILE *file, const char *format, va_list arguments);
int vsprintf(char *text, const char *format, va_list arguments);
int vsnprintf(char *text, size_t size, const char *format, va_list arguments);
int putchar(int character);
int putc(int character, FILE *file);
int fputc(int character, FILE *file);
int puts(const char *text);
int fputs(const char *text, FILE *file);
int fflush(FILE *file);
void setbuf(FILE *file, char *buffer);
int setvbuf(FILE *file, char *buffer, int mode, size_t size);
void perror(const char *text);
size_t fwrite(const void *data, size_t size, size_t count, FILE *file);

/* What reads: the console, since no file can be opened */
int getchar(void);
int getc(FILE *file);
int fgetc(FILE *file);
int ungetc(int character, FILE *file);
char *gets(char *text);
char *fgets(char *text, int size, FILE *file);
int scanf(const char *format, ...);
int fscanf(FILE *file, const char *format, ...);
int vscanf(const char *format, va_list arguments);
int vfscanf(FILE *file, const char *format, va_list arguments);
int vsscanf(const char *text, const char *format, va_list arguments);
int sscanf(const char *text, const char *format, ...);
FILE *fopen(const char *name, const char *mode);
int fclose(FILE *file);
size_t fread(void *data, size_t size, size_t count, FILE *file);
int fseek(FILE *file, long offset, int whence);
long ftell(FILE *file);
void rewind(FILE *file);
int feof(FILE *file);
int ferror(FILE *file);
void clearerr(FILE *file);
int fileno(FILE *file);
int remove(const char *name);
int rename(const char *from, const char *to);

#endif
