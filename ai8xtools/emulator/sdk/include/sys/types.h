/* C library of the emulated core: types of the system. */
#ifndef EMULATOR_SYS_TYPES_H
#define EMULATOR_SYS_TYPES_H

#include <stddef.h>
#include <stdint.h>

typedef long ssize_t;
typedef long off_t;
typedef unsigned int mode_t, uid_t, gid_t, dev_t, ino_t;
typedef int pid_t;
typedef unsigned char u_char;
typedef unsigned short u_short;
typedef unsigned int u_int;
typedef unsigned long u_long;
typedef unsigned int uint;
typedef unsigned short ushort;

#endif
