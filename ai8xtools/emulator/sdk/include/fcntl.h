/* C library of the emulated core: what replacements for system calls name. */
#ifndef EMULATOR_FCNTL_H
#define EMULATOR_FCNTL_H

#include <sys/types.h>

#define O_RDONLY 0
#define O_WRONLY 1
#define O_RDWR 2
#define O_APPEND 8
#define O_CREAT 0x200
#define O_TRUNC 0x400

#endif
