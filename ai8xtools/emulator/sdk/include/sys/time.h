/* C library of the emulated core: time since the start of the program. */
#ifndef EMULATOR_SYS_TIME_H
#define EMULATOR_SYS_TIME_H

#include <time.h>

typedef long suseconds_t;
struct timeval {
    time_t tv_sec;
    suseconds_t tv_usec;
};
struct timezone {
    int tz_minuteswest, tz_dsttime;
};
int gettimeofday(struct timeval *time, void *zone);

#endif
