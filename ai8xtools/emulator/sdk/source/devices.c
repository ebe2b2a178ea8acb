/* Drivers of what sensors are connected to (I2S, I2C), of the wake-up timer and the watchdog. */
#include "emulator.h"
#include "mxc.h"
#include "sensors.h"

WEAK int Camera_Power(int on)
{
    (void) on;
    return E_NOT_SUPPORTED; /* as on the kits */
}
WEAK int Microphone_Power(int on)
{
    (void) on;
    emulator_stand_in("Microphone_Power");
    return E_NO_ERROR;
}

/* I2S: the clock of 12.288 MHz, two channels of 32 bits */
#define AUDIO_HZ 12288000u
static const unsigned int sample_bytes[] = {1, 2, 4};
WEAK int MXC_I2S_Init(mxc_i2s_req_t *req)
{
    emulator_stand_in("MXC_I2S_Init");
    if (!req || (unsigned) req->wordSize > MXC_I2S_WSIZE_WORD)
        return E_BAD_PARAM;
    SENSORS->rate = AUDIO_HZ / 2 / 64 / (req->clkdiv + 1u);
    SENSORS->sample_bytes = sample_bytes[req->wordSize];
    return E_NO_ERROR;
}
WEAK int MXC_I2S_Shutdown(void)
{
    SENSORS->listen = 0;
    return E_NO_ERROR;
}
WEAK void MXC_I2S_RXEnable(void)
{
    emulator_stand_in("MXC_I2S_RXEnable");
    SENSORS->listen = 1;
}
WEAK void MXC_I2S_RXDisable(void) { SENSORS->listen = 0; }
WEAK int MXC_I2S_SetRXThreshold(uint8_t threshold)
{
    if (!threshold || threshold > 8)
        return E_NOT_SUPPORTED;
    SENSORS->threshold = threshold;
    return E_NO_ERROR;
}
static uint32_t level(void) { return MXC_I2S->dmach0 >> MXC_F_I2S_DMACH0_RX_LVL_POS; }
WEAK void MXC_I2S_Flush(void)
{
    for (uint32_t i = level(); i > 0; i--)
        (void) MXC_I2S->fifoch0;
}
WEAK int MXC_I2S_ReadRXFIFO(void *rxData, mxc_i2s_wsize_t wordSize, int len, int smpl_cnt)
{
    unsigned int size = sample_bytes[wordSize];
    for (; smpl_cnt < len && level(); smpl_cnt++) {
        uint32_t word = MXC_I2S->fifoch0;
        memcpy((uint8_t *) rxData + size * (unsigned) smpl_cnt, &word, size);
    }
    return smpl_cnt;
}
WEAK void MXC_I2S_EnableInt(uint32_t flags) { MXC_I2S->inten |= flags; }
WEAK void MXC_I2S_DisableInt(uint32_t flags) { MXC_I2S->inten &= ~flags; }
WEAK int MXC_I2S_GetFlags(void) { return (int) MXC_I2S->intfl; }
WEAK void MXC_I2S_ClearFlags(uint32_t flags) { MXC_I2S->intfl = flags; }
WEAK int MXC_I2S_RXDMAConfig(void *dest_addr, int len)
{
    SENSORS->copy_to = (uint32_t) (uintptr_t) dest_addr;
    SENSORS->copy_bytes = (uint32_t) len;
    SENSORS->listen = 1;
    return 0;
}
WEAK void MXC_I2S_RegisterDMACallback(void (*callback)(int ch, int reason)) { SENSORS->copied = (uint32_t) (uintptr_t) callback; }

/* I2C: registers of a sensor. Reading several bytes gives measurements of 16 bits, one is 0. */
WEAK int MXC_I2C_Init(mxc_i2c_regs_t *i2c, int masterMode, unsigned int slaveAddr)
{
    (void) i2c, (void) masterMode, (void) slaveAddr;
    emulator_stand_in("MXC_I2C_Init");
    return E_NO_ERROR;
}
WEAK int MXC_I2C_SetFrequency(mxc_i2c_regs_t *i2c, unsigned int hz)
{
    (void) i2c;
    return (int) hz;
}
WEAK int MXC_I2C_MasterTransaction(mxc_i2c_req_t *req)
{
    emulator_stand_in("MXC_I2C_MasterTransaction");
    if (req->rx_len)
        memset(req->rx_buf, 0, req->rx_len);
    SENSORS->values_to = (uint32_t) (uintptr_t) req->rx_buf;
    SENSORS->values = req->rx_len / 2;
    return SENSORS->values ? E_COMM_ERR : E_NO_ERROR;
}
WEAK int MXC_I2C_MasterTransactionAsync(mxc_i2c_req_t *req)
{
    int result = MXC_I2C_MasterTransaction(req);
    if (req->callback)
        req->callback(req, result);
    return E_NO_ERROR;
}
WEAK void MXC_I2C_AsyncHandler(mxc_i2c_regs_t *i2c) { (void) i2c; }

/* Wake-up timer */
#define TIMER_HZ 32768u
static struct {
    uint32_t prescaler, ticks;
    bool once;
} wake_up = {1, 0, false};
static uint32_t wake_up_microseconds(void)
{
    return (uint32_t) (((uint64_t) wake_up.ticks * wake_up.prescaler * 1000000u + TIMER_HZ / 2) / TIMER_HZ);
}
WEAK void MXC_WUT_Init(mxc_wut_pres_t pres) { wake_up.prescaler = 1u << (unsigned) pres; }
WEAK void MXC_WUT_Config(const mxc_wut_cfg_t *cfg)
{
    wake_up.ticks = cfg->cmp_cnt;
    wake_up.once = cfg->mode == MXC_WUT_MODE_ONESHOT;
}
WEAK void MXC_WUT_Enable(void)
{
    uint32_t us = wake_up_microseconds();
    emulator_set_timer(WUT_IRQn, us, wake_up.once ? 0 : us);
}
WEAK void MXC_WUT_Disable(void) { emulator_set_timer(WUT_IRQn, 0, 0); }
WEAK int MXC_WUT_GetTicks(uint32_t time, mxc_wut_unit_t units, uint32_t *ticks)
{
    static const uint32_t in_a_second[] = {1000000000u, 1000000u, 1000u, 1u};
    if (!ticks || (unsigned) units > MXC_WUT_UNIT_SEC)
        return E_BAD_PARAM;
    *ticks = (uint32_t) ((uint64_t) time * TIMER_HZ / in_a_second[units] / wake_up.prescaler);
    return E_NO_ERROR;
}
WEAK int MXC_WUT_GetTime(uint32_t ticks, uint32_t *time, mxc_wut_unit_t *units)
{
    *time = (uint32_t) ((uint64_t) ticks * wake_up.prescaler * 1000000u / TIMER_HZ);
    *units = MXC_WUT_UNIT_MICROSEC;
    return E_NO_ERROR;
}
WEAK uint32_t MXC_WUT_GetCount(void) { return (uint32_t) (emulator_microseconds() * TIMER_HZ / 1000000u / wake_up.prescaler); }
WEAK void MXC_WUT_ClearFlags(void) {}
WEAK void MXC_WUT_IntClear(void) {}
WEAK uint32_t MXC_WUT_GetFlags(void) { return 1; }
WEAK void MXC_LP_EnableWUTAlarmWakeup(void) {}
WEAK void MXC_LP_DisableWUTAlarmWakeup(void) {}

/* Watchdog: the clock of the peripherals counts; what was chosen stands in a structure, before 2022 as such */
static struct {
    uint32_t exponent;
    bool resets, runs;
} watchdog = {31, false, false};
static void watch(void)
{
    uint64_t ticks = (uint64_t) 1 << watchdog.exponent;
    SENSORS->watchdog_ms = watchdog.runs && watchdog.resets ? (uint32_t) (ticks * 1000u / PeripheralClock) : 0;
}
WEAK int MXC_WDT_Init() { return E_NO_ERROR; }
WEAK void MXC_WDT_SetResetPeriod(mxc_wdt_regs_t *wdt, uintptr_t period)
{
    (void) wdt;
    if (period > MXC_WDT_PERIOD_2_16)
        period = ((const mxc_wdt_cfg_t *) period)->upperResetPeriod;
    watchdog.exponent = 31u - (uint32_t) period;
    watch();
}
WEAK void MXC_WDT_SetIntPeriod() {}
WEAK void MXC_WDT_Enable(mxc_wdt_regs_t *wdt)
{
    (void) wdt;
    watchdog.runs = true;
    watch();
}
WEAK void MXC_WDT_Disable(mxc_wdt_regs_t *wdt)
{
    (void) wdt;
    watchdog.runs = false;
    watch();
}
WEAK void MXC_WDT_EnableInt(mxc_wdt_regs_t *wdt) { (void) wdt; }
WEAK void MXC_WDT_EnableReset(mxc_wdt_regs_t *wdt)
{
    (void) wdt;
    watchdog.resets = true;
    watch();
}
WEAK void MXC_WDT_ResetTimer(mxc_wdt_regs_t *wdt)
{
    (void) wdt;
    SENSORS->feed = 1;
}
WEAK int MXC_WDT_GetResetFlag(mxc_wdt_regs_t *wdt)
{
    (void) wdt;
    return 0;
}
WEAK void MXC_WDT_ClearResetFlag(mxc_wdt_regs_t *wdt) { (void) wdt; }
WEAK int MXC_WDT_GetIntFlag(mxc_wdt_regs_t *wdt)
{
    (void) wdt;
    return 0;
}
WEAK void MXC_WDT_ClearIntFlag(mxc_wdt_regs_t *wdt) { (void) wdt; }
