/* C library of the emulated core: what replacements for system calls name. */
#ifndef EMULATOR_SYS_TIMES_H
#define EMULATOR_SYS_TIMES_H

#include <time.h>

struct tms {
    clock_t tms_utime, tms_stime, tms_cutime, tms_cstime;
};

#endif
