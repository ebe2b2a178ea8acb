/* C library of the emulated core: types of wide characters, which the headers of C++ name. */
#ifndef EMULATOR_WCHAR_H
#define EMULATOR_WCHAR_H

#include <stddef.h>

typedef int wint_t;
typedef struct {
    unsigned int state;
} mbstate_t;
#define WEOF (-1)

#endif
