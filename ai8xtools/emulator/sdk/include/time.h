/* C library of the emulated core: time since the start of the program. The calendar begins with 1970. */
#ifndef EMULATOR_TIME_H
#define EMULATOR_TIME_H

#include <stddef.h>

typedef long long time_t;
typedef unsigned long clock_t;
struct tm {
    int tm_sec, tm_min, tm_hour, tm_mday, tm_mon, tm_year, tm_wday, tm_yday, tm_isdst;
};
struct timespec {
    time_t tv_sec;
    long tv_nsec;
};
#define CLOCKS_PER_SEC 1000000

time_t time(time_t *result);
clock_t clock(void);
double difftime(time_t end, time_t begin);
struct tm *localtime(const time_t *time);
struct tm *gmtime(const time_t *time);
struct tm *localtime_r(const time_t *time, struct tm *result);
struct tm *gmtime_r(const time_t *time, struct tm *result);
time_t mktime(struct tm *time);
char *ctime(const time_t *time);
char *asctime(const struct tm *time);
size_t strftime(char *text, size_t size, const char *format, const struct tm *time);

#endif
