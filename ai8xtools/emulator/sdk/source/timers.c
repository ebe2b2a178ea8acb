/* Timers that count, fire once or periodically, and measure time-outs; the clock of the calendar. */
#include "emulator.h"
#include "mxc.h"
#include "sensors.h"

#define SECOND_US 1000000u
#define TIMERS 6
APART(timers) static struct {
    uint32_t hz, compare; /* 0 Hz: counts microseconds */
    bool repeats;
    uint64_t start, limit_us, limit_start;
} timers[TIMERS];

static unsigned int number_of(mxc_tmr_regs_t *tmr)
{
    mxc_tmr_regs_t *const all[TIMERS] = {MXC_TMR0, MXC_TMR1, MXC_TMR2, MXC_TMR3, MXC_TMR4, MXC_TMR5};
    for (unsigned int i = 0; i < TIMERS; i++)
        if (all[i] == tmr)
            return i;
    return 0;
}
static uint32_t hz_of(unsigned int number) { return timers[number].hz ? timers[number].hz : SECOND_US; }
static uint64_t counted(unsigned int number)
{
    return (emulator_microseconds() - timers[number].start) * hz_of(number) / SECOND_US;
}
static void fire_after(unsigned int number, uint64_t ticks)
{
    uint64_t us = ticks * SECOND_US / hz_of(number), last = 0xFFFFFFFEu;
    uint32_t first = (uint32_t) (us > last ? last : us ? us : 1);
    emulator_set_timer(TMR0_IRQn + number, ticks ? first : 0, timers[number].repeats ? first : 0);
}
WEAK int MXC_TMR_Init(mxc_tmr_regs_t *tmr, mxc_tmr_cfg_t *cfg, ...)
{
    const uint32_t clocks[] = {PeripheralClock, PeripheralClock, ISO_FREQ, IBRO_FREQ, 32768, 8000,
                               ISO_FREQ, IBRO_FREQ, 32768, 30000};
    unsigned int number = number_of(tmr);
    if (!cfg || (unsigned int) cfg->clock >= sizeof clocks / sizeof *clocks)
        return E_BAD_PARAM;
    timers[number].hz = clocks[cfg->clock] >> ((unsigned int) cfg->pres >> 3);
    timers[number].compare = cfg->cmp_cnt;
    timers[number].repeats = cfg->mode != TMR_MODE_ONESHOT;
    fire_after(number, 0);
    return E_NO_ERROR;
}
WEAK void MXC_TMR_Start(mxc_tmr_regs_t *tmr)
{
    unsigned int number = number_of(tmr);
    timers[number].start = emulator_microseconds();
    fire_after(number, timers[number].compare);
}
WEAK void MXC_TMR_Stop(mxc_tmr_regs_t *tmr) { fire_after(number_of(tmr), 0); }
WEAK void MXC_TMR_Shutdown(mxc_tmr_regs_t *tmr) { MXC_TMR_Stop(tmr); }
WEAK void MXC_TMR_SetCompare(mxc_tmr_regs_t *tmr, uint32_t compare)
{
    timers[number_of(tmr)].compare = compare;
    MXC_TMR_Start(tmr);
}
WEAK uint32_t MXC_TMR_GetCompare(mxc_tmr_regs_t *tmr) { return timers[number_of(tmr)].compare; }
WEAK void MXC_TMR_SetCount(mxc_tmr_regs_t *tmr, uint32_t count)
{
    unsigned int number = number_of(tmr);
    timers[number].start = emulator_microseconds() - (uint64_t) count * SECOND_US / hz_of(number);
}
WEAK uint32_t MXC_TMR_GetCount(mxc_tmr_regs_t *tmr) { return (uint32_t) counted(number_of(tmr)); }
WEAK uint32_t MXC_TMR_GetFlags(mxc_tmr_regs_t *tmr)
{
    unsigned int number = number_of(tmr);
    return timers[number].compare && counted(number) >= timers[number].compare;
}
WEAK void MXC_TMR_ClearFlags(mxc_tmr_regs_t *tmr)
{
    unsigned int number = number_of(tmr);
    if (MXC_TMR_GetFlags(tmr))
        timers[number].start = emulator_microseconds();
}
WEAK void MXC_TMR_EnableInt(mxc_tmr_regs_t *tmr) { (void) tmr; }
WEAK void MXC_TMR_DisableInt(mxc_tmr_regs_t *tmr) { (void) tmr; }
WEAK void MXC_TMR_EnableWakeup(mxc_tmr_regs_t *tmr, ...) { (void) tmr; }
WEAK void MXC_TMR_DisableWakeup(mxc_tmr_regs_t *tmr, ...) { (void) tmr; }
static const uint32_t in_a_second[] = {1000000000u, 1000000u, 1000u, 1u};
WEAK int MXC_TMR_GetTicks(mxc_tmr_regs_t *tmr, uint32_t time, mxc_tmr_unit_t units, uint32_t *ticks)
{
    if (!ticks || (unsigned int) units > TMR_UNIT_SEC)
        return E_BAD_PARAM;
    *ticks = (uint32_t) ((uint64_t) time * hz_of(number_of(tmr)) / in_a_second[units]);
    return E_NO_ERROR;
}
WEAK int MXC_TMR_GetTime(mxc_tmr_regs_t *tmr, uint32_t ticks, uint32_t *time, mxc_tmr_unit_t *units)
{
    *time = (uint32_t) ((uint64_t) ticks * SECOND_US / hz_of(number_of(tmr)));
    *units = TMR_UNIT_MICROSEC;
    return E_NO_ERROR;
}
WEAK void MXC_TMR_TO_Start(mxc_tmr_regs_t *tmr, unsigned long us)
{
    unsigned int number = number_of(tmr);
    timers[number].limit_start = emulator_microseconds();
    timers[number].limit_us = us;
}
WEAK unsigned int MXC_TMR_TO_Elapsed(mxc_tmr_regs_t *tmr)
{
    return (unsigned int) (emulator_microseconds() - timers[number_of(tmr)].limit_start);
}
WEAK int MXC_TMR_TO_Check(mxc_tmr_regs_t *tmr)
{
    return MXC_TMR_TO_Elapsed(tmr) >= timers[number_of(tmr)].limit_us ? E_TIME_OUT : E_NO_ERROR;
}
WEAK unsigned int MXC_TMR_TO_Remaining(mxc_tmr_regs_t *tmr)
{
    uint64_t limit = timers[number_of(tmr)].limit_us, elapsed = MXC_TMR_TO_Elapsed(tmr);
    return (unsigned int) (elapsed < limit ? limit - elapsed : 0);
}
WEAK void MXC_TMR_TO_Stop(mxc_tmr_regs_t *tmr) { (void) tmr; }
WEAK void MXC_TMR_TO_Clear(mxc_tmr_regs_t *tmr) { timers[number_of(tmr)].limit_start = emulator_microseconds(); }

/* Calendar's clock, 4096 parts of a second; its alarms set flags, and interrupt where they may */
#define SUBSECONDS 4096u
static uint64_t seconds_us; /* what the clock was set to */
static uint32_t alarm_second, alarm_count;
static bool counts_subseconds;
static uint64_t clock_us(void) { return seconds_us + emulator_microseconds(); }
static uint32_t within(uint64_t us) { return us > 0xFFFFFFFEu ? 0xFFFFFFFEu : us ? (uint32_t) us : 1; }
static void set_alarms(void)
{
    uint64_t day = (uint64_t) alarm_second * SECOND_US, now = clock_us();
    uint64_t part = ((uint64_t) 0xFFFFFFFFu - alarm_count + 1) * SECOND_US / SUBSECONDS;
    bool on_day = MXC_RTC->ctrl & MXC_F_RTC_CTRL_TOD_ALARM_IE && day > now;
    bool on_part = counts_subseconds && MXC_RTC->ctrl & MXC_F_RTC_CTRL_SSEC_ALARM_IE;
    emulator_set_timer(RTC_IRQn, on_day ? within(day - now) : 0, 0);
    emulator_set_timer(SUBSECOND_ALARM, on_part ? within(part) : 0, within(part));
}
WEAK int MXC_RTC_Init(uint32_t seconds, uint32_t subseconds)
{
    seconds_us = (uint64_t) seconds * SECOND_US + (uint64_t) subseconds * SECOND_US / SUBSECONDS - emulator_microseconds();
    set_alarms();
    return E_NO_ERROR;
}
WEAK int MXC_RTC_Start(void) { return E_NO_ERROR; }
WEAK int MXC_RTC_Stop(void) { return E_NO_ERROR; }
WEAK int MXC_RTC_SetTimeofdayAlarm(uint32_t second)
{
    alarm_second = second;
    set_alarms();
    return E_NO_ERROR;
}
WEAK int MXC_RTC_SetSubsecondAlarm(uint32_t count)
{
    alarm_count = count;
    counts_subseconds = true;
    set_alarms();
    return E_NO_ERROR;
}
WEAK int MXC_RTC_EnableInt(uint32_t mask)
{
    MXC_RTC->ctrl |= mask;
    set_alarms();
    return E_NO_ERROR;
}
WEAK int MXC_RTC_DisableInt(uint32_t mask)
{
    MXC_RTC->ctrl &= ~mask;
    set_alarms();
    return E_NO_ERROR;
}
#define RTC_FLAGS (MXC_F_RTC_CTRL_TOD_ALARM | MXC_F_RTC_CTRL_SSEC_ALARM)
WEAK int MXC_RTC_GetFlags(void) { return (int) (MXC_RTC->ctrl & RTC_FLAGS); }
WEAK int MXC_RTC_ClearFlags(int flags)
{
    MXC_RTC->ctrl &= ~((uint32_t) flags & RTC_FLAGS);
    return E_NO_ERROR;
}
WEAK int MXC_RTC_GetBusyFlag(void) { return E_NO_ERROR; }
WEAK void MXC_LP_EnableRTCAlarmWakeup(void) {}
WEAK void MXC_LP_DisableRTCAlarmWakeup(void) {}
WEAK int MXC_RTC_GetTime(uint32_t *seconds, uint32_t *subseconds)
{
    uint64_t us = clock_us();
    *seconds = (uint32_t) (us / SECOND_US);
    *subseconds = (uint32_t) (us % SECOND_US * SUBSECONDS / SECOND_US);
    return E_NO_ERROR;
}
WEAK int MXC_RTC_GetSeconds(uint32_t *seconds)
{
    uint32_t subseconds;
    return MXC_RTC_GetTime(seconds, &subseconds);
}
WEAK int MXC_RTC_GetSubSeconds(uint32_t *subseconds)
{
    uint32_t seconds;
    return MXC_RTC_GetTime(&seconds, subseconds);
}
WEAK int MXC_RTC_GetSecond(void)
{
    uint32_t seconds;
    MXC_RTC_GetSeconds(&seconds);
    return (int) seconds;
}
WEAK int MXC_RTC_GetSubSecond(void)
{
    uint32_t subseconds;
    MXC_RTC_GetSubSeconds(&subseconds);
    return (int) subseconds;
}
