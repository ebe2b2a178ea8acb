/* The calendar: seconds since 1970 in UTC. The clock of the program begins there. */
#include "emulator.h"
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#define DAY 86400
static const char days[] = "SunMonTueWedThuFriSat";
static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
static const char lengths[12] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
static struct tm calendar;

static int is_leap(int year) { return (year % 4 == 0 && year % 100) || year % 400 == 0; }
static int month_days(int month, int year) { return lengths[month] + (month == 1 && is_leap(year)); }

WEAK struct tm *gmtime_r(const time_t *time, struct tm *result)
{
    int day = (int) (*time / DAY), rest = (int) (*time % DAY), year = 1970, month = 0;
    *result = (struct tm) {rest % 60, rest / 60 % 60, rest / 3600, 0, 0, 0, (4 + day) % 7, 0, 0};
    for (; day >= 365 + is_leap(year); year++)
        day -= 365 + is_leap(year);
    result->tm_year = year - 1900;
    result->tm_yday = day;
    for (; day >= month_days(month, year); month++)
        day -= month_days(month, year);
    result->tm_mon = month;
    result->tm_mday = day + 1;
    return result;
}
WEAK struct tm *localtime_r(const time_t *time, struct tm *result) { return gmtime_r(time, result); }
WEAK struct tm *gmtime(const time_t *time) { return gmtime_r(time, &calendar); }
WEAK struct tm *localtime(const time_t *time) { return gmtime_r(time, &calendar); }

WEAK time_t mktime(struct tm *time)
{
    time_t day = time->tm_mday - 1;
    for (int year = 1970; year < time->tm_year + 1900; year++)
        day += 365 + is_leap(year);
    for (int month = 0; month < time->tm_mon; month++)
        day += month_days(month, time->tm_year + 1900);
    time_t seconds = day * DAY + time->tm_hour * 3600 + time->tm_min * 60 + time->tm_sec;
    gmtime_r(&seconds, time);
    return seconds;
}
WEAK double difftime(time_t end, time_t begin) { return (double) (end - begin); }

static int field(char *text, char kind, const struct tm *t)
{
    switch (kind) {
    case 'Y': return sprintf(text, "%d", t->tm_year + 1900);
    case 'y': return sprintf(text, "%02d", t->tm_year % 100);
    case 'm': return sprintf(text, "%02d", t->tm_mon + 1);
    case 'd': return sprintf(text, "%02d", t->tm_mday);
    case 'e': return sprintf(text, "%2d", t->tm_mday);
    case 'H': return sprintf(text, "%02d", t->tm_hour);
    case 'I': return sprintf(text, "%02d", (t->tm_hour + 11) % 12 + 1);
    case 'M': return sprintf(text, "%02d", t->tm_min);
    case 'S': return sprintf(text, "%02d", t->tm_sec);
    case 'j': return sprintf(text, "%03d", t->tm_yday + 1);
    case 'p': return sprintf(text, "%s", t->tm_hour < 12 ? "AM" : "PM");
    case 'a': return sprintf(text, "%.3s", days + 3 * t->tm_wday);
    case 'b': return sprintf(text, "%.3s", months + 3 * t->tm_mon);
    case 'F': return sprintf(text, "%d-%02d-%02d", t->tm_year + 1900, t->tm_mon + 1, t->tm_mday);
    case 'D': return sprintf(text, "%02d/%02d/%02d", t->tm_mon + 1, t->tm_mday, t->tm_year % 100);
    case 'T': return sprintf(text, "%02d:%02d:%02d", t->tm_hour, t->tm_min, t->tm_sec);
    default: return sprintf(text, "%c", kind);
    }
}

WEAK size_t strftime(char *text, size_t size, const char *format, const struct tm *time)
{
    size_t used = 0;
    char part[16];
    for (; *format; format++) {
        int length = 1;
        part[0] = *format;
        if (*format == '%' && format[1])
            length = field(part, *++format, time);
        if (used + (size_t) length >= size)
            return 0;
        memcpy(text + used, part, (size_t) length);
        used += (size_t) length;
    }
    if (size)
        text[used] = '\0';
    return used;
}
WEAK char *asctime(const struct tm *time)
{
    static char text[32];
    strftime(text, sizeof text, "%a %b %e %T %Y\n", time);
    return text;
}
WEAK char *ctime(const time_t *time) { return asctime(gmtime(time)); }

WEAK clock_t clock(void) { return (clock_t) emulator_microseconds(); }
WEAK time_t time(time_t *result)
{
    time_t seconds = (time_t) (emulator_microseconds() / 1000000);
    if (result)
        *result = seconds;
    return seconds;
}
WEAK int gettimeofday(struct timeval *time, void *zone)
{
    uint64_t us = emulator_microseconds();
    (void) zone;
    *time = (struct timeval) {(time_t) (us / 1000000), (suseconds_t) (us % 1000000)};
    return 0;
}
