/* C library of the emulated core: types of the system. */
#ifndef EMULATOR_SYS_TYPES_H
#define EMULATOR_SYS_TYPES_H

#include <stddef.h>
#include <stdint.h>

typedef long ssize_t;
typedef long off_t;
typedef unsigned int uint;
typedef unsigned short ushort;

#endif
