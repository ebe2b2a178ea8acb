/* Drivers of the SDK that do something: clocks, pins, time, console, transfers that end at once. */
#include "emulator.h"
#include "mxc.h"

WEAK uint32_t SystemCoreClock = ISO_FREQ; /* after reset */
WEAK uint32_t PeripheralClock = ISO_FREQ / 2;
WEAK int Debug_Init(void) { return E_NO_ERROR; }
WEAK int Console_Init(void) { return E_NO_ERROR; }

/* Clocks and caches */
WEAK void SystemCoreClockUpdate(void)
{
    /* 1: of the PLL; 7 comes from outside */
    static const uint32_t hz[8] = {ISO_FREQ, 100000000, 32000000, 30000, IPO_FREQ, IBRO_FREQ, 32768, IPO_FREQ};
    SystemCoreClock = hz[(MXC_GCR->clkctrl & MXC_F_GCR_CLKCTRL_SYSCLK_SEL) >> MXC_F_GCR_CLKCTRL_SYSCLK_SEL_POS];
    PeripheralClock = SystemCoreClock / 2;
}
#define CLOCK(name) \
    WEAK int name(mxc_sys_system_clock_t clock, ...) \
    { \
        (void) clock; \
        return E_NO_ERROR; \
    }
WEAK int MXC_SYS_Clock_Select(mxc_sys_system_clock_t clock, ...)
{
    static const uint32_t selections[] = {4, 0, 1, 5, 2, 3, 6, 7, 7};
    MXC_GCR->clkctrl = (MXC_GCR->clkctrl & ~MXC_F_GCR_CLKCTRL_SYSCLK_SEL)
                       | selections[clock] << MXC_F_GCR_CLKCTRL_SYSCLK_SEL_POS;
    SystemCoreClockUpdate();
    return E_NO_ERROR;
}
CLOCK(MXC_SYS_ClockSourceEnable)
CLOCK(MXC_SYS_ClockSourceDisable)
WEAK void MXC_ICC_Enable(mxc_icc_regs_t *icc) { (void) icc; }
WEAK void MXC_ICC_Disable(mxc_icc_regs_t *icc) { (void) icc; }
WEAK void MXC_ICC_Flush(mxc_icc_regs_t *icc) { (void) icc; }
WEAK void MXC_SYS_Reset_Periph(mxc_sys_reset_t reset) { (void) reset; }

static volatile uint32_t *clock_gate(mxc_sys_periph_clock_t clock)
{
    return clock < 32 ? &MXC_GCR->pclkdis0 : &MXC_GCR->pclkdis1;
}
WEAK void MXC_SYS_ClockEnable(mxc_sys_periph_clock_t clock) { *clock_gate(clock) &= ~(1u << (clock & 31)); }
WEAK void MXC_SYS_ClockDisable(mxc_sys_periph_clock_t clock) { *clock_gate(clock) |= 1u << (clock & 31); }
WEAK int MXC_SYS_IsClockEnabled(mxc_sys_periph_clock_t clock)
{
    return !(*clock_gate(clock) >> (clock & 31) & 1);
}

/* Time: waiting makes the clock advance, without taking time outside */
WEAK int MXC_Delay(uint32_t us)
{
    emulator_pass_time(us);
    emulator_other_tasks();
    if (!emulator_handlers && HOST->due)
        __asm__ volatile("wfi" ::: "memory");
    return E_NO_ERROR;
}
WEAK int MXC_DelayAsync(uint32_t us, mxc_delay_complete_t done)
{
    MXC_Delay(us);
    if (done)
        done(E_NO_ERROR);
    return E_NO_ERROR;
}
WEAK int MXC_DelayCheck(void) { return E_NO_ERROR; }
WEAK void MXC_DelayAbort(void) {}
WEAK void MXC_DelayHandler(void) {}
WEAK void MXC_TMR_Delay(mxc_tmr_regs_t *tmr, uint32_t us, ...)
{
    (void) tmr;
    MXC_Delay(us);
}
WEAK void MXC_WUT_Delay_MS(uint32_t ms) { MXC_Delay(1000 * ms); }
WEAK int usleep(unsigned int us) { return MXC_Delay(us); }
WEAK unsigned int sleep(unsigned int seconds) { return (unsigned int) MXC_Delay(1000000 * seconds); }
WEAK void MXC_TMR_SW_Start(mxc_tmr_regs_t *tmr) { HOST->stopwatch_start = (uint32_t) (uintptr_t) tmr; }
WEAK unsigned int MXC_TMR_SW_Stop(mxc_tmr_regs_t *tmr)
{
    HOST->stopwatch_stop = (uint32_t) (uintptr_t) tmr;
    return HOST->stopwatch;
}

/* Names of the first SDKs */
WEAK int SYS_Clock_Select(mxc_sys_system_clock_t clock, ...) { return MXC_SYS_Clock_Select(clock); }
WEAK int mxc_delay(uint32_t us) { return MXC_Delay(us); }
WEAK void TMR_Delay(mxc_tmr_regs_t *tmr, uint32_t us, ...) { MXC_TMR_Delay(tmr, us); }
WEAK void LP_EnterSleepMode(void) { MXC_LP_EnterSleepMode(); }

/* SPI: transfers end at once, and what is received is 0 */
WEAK int MXC_SPI_MasterTransaction(mxc_spi_req_t *request)
{
    emulator_stand_in("MXC_SPI_MasterTransaction");
    request->txCnt = request->txLen;
    request->rxCnt = request->rxLen;
    if (request->rxData)
        memset(request->rxData, 0, request->rxLen);
    return E_NO_ERROR;
}
WEAK int MXC_SPI_MasterTransactionAsync(mxc_spi_req_t *request)
{
    MXC_SPI_MasterTransaction(request);
    if (request->completeCB)
        request->completeCB(request, E_NO_ERROR);
    return E_NO_ERROR;
}
WEAK int MXC_SPI_MasterTransactionDMA(mxc_spi_req_t *request)
{
    return MXC_SPI_MasterTransactionAsync(request);
}

/* Flash controller: bits that are cleared stay so until their page is erased */
static uint32_t flash_page(void)
{
#ifdef TARGET_MAX78002
    return 0x4000;
#else
    return 0x2000;
#endif
}
static void flash_store(uint32_t address, uint32_t word)
{
    HOST->flash_address = address;
    HOST->flash_word = word;
}
WEAK int MXC_FLC_Init(void) { return E_NO_ERROR; }
WEAK int MXC_FLC_PageErase(uint32_t address)
{
    address &= ~(flash_page() - 1);
    for (uint32_t i = 0; i < flash_page(); i += 4)
        flash_store(address + i, 0xFFFFFFFFu);
    return E_NO_ERROR;
}
WEAK int MXC_FLC_Write32(uint32_t address, uint32_t data)
{
    if (address & 3)
        return E_BAD_PARAM;
    flash_store(address, *(volatile uint32_t *) (uintptr_t) address & data);
    return E_NO_ERROR;
}
WEAK int MXC_FLC_Write128(uint32_t address, uint32_t *data)
{
    if (address & 15)
        return E_BAD_PARAM;
    for (uint32_t i = 0; i < 4; i++)
        MXC_FLC_Write32(address + 4 * i, data[i]);
    return E_NO_ERROR;
}
WEAK int MXC_FLC_Write(uint32_t address, uint32_t length, uint32_t *buffer)
{
    for (uint32_t i = 0; i < length; i++) {
        uint32_t place = (address + i) & ~3u, shift = 8 * ((address + i) & 3);
        uint32_t byte = (uint32_t) ((uint8_t *) buffer)[i] << shift;
        MXC_FLC_Write32(place, byte | ~(0xFFu << shift));
    }
    return E_NO_ERROR;
}
WEAK void MXC_FLC_Read(int address, void *buffer, int length)
{
    memcpy(buffer, (void *) (uintptr_t) address, (size_t) length);
}

/* Locks: the other core's program does not run at the same time */
WEAK int MXC_GetLock(uint32_t *lock, uint32_t value)
{
    if (*lock)
        return E_BUSY;
    *lock = value;
    return E_NO_ERROR;
}
WEAK void MXC_FreeLock(uint32_t *lock) { *lock = 0; }
WEAK int MXC_SEMA_Init(void) { return E_NO_ERROR; }
WEAK int MXC_SEMA_GetSema(unsigned int semaphore)
{
    (void) semaphore;
    return E_NO_ERROR;
}
WEAK void MXC_SEMA_FreeSema(unsigned int semaphore) { (void) semaphore; }
WEAK int MXC_SEMA_CheckSema(unsigned int semaphore)
{
    (void) semaphore;
    return E_NO_ERROR;
}
