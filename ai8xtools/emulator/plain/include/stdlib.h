#ifndef PLAIN_STDLIB_H
#define PLAIN_STDLIB_H
#include <stddef.h>
void exit(int status);
void abort(void);
#define EXIT_SUCCESS 0
#define EXIT_FAILURE 1
#endif
