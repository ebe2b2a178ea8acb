/* Start of the program, interrupts and sleep. */
#include "emulator.h"
#include "mxc.h"
#include "sensors.h"

extern int main(void);

WEAK void SystemInit(void) {}
WEAK int Board_Init(void) { return E_NO_ERROR; }

extern void (*__init_array_start[])(void), (*__init_array_end[])(void);

__attribute__((used)) int reset_handler(void)
{
    MXC_GCR->clkctrl |= MXC_F_GCR_CLKCTRL_ISO_EN; /* which runs the core until another is chosen */
    SystemInit();
    for (void (**constructor)(void) = __init_array_start; constructor < __init_array_end; constructor++)
        (*constructor)();
    return main();
}

/* Handlers of the interrupts that are enabled. Programs that do not set a vector define a handler
   of this name. */
typedef void (*handler_t)(void);
#define INTERRUPTS 128
#define TIMER_INTERRUPTS 127
__attribute__((used)) void emulator_interrupt(unsigned int irq);
static volatile handler_t vectors[INTERRUPTS];
static volatile bool enabled[INTERRUPTS], pending[INTERRUPTS], masked;

#define BOTH_CORES(F) \
    F(CNN) F(I2S) F(TMR0) F(TMR1) F(TMR2) F(TMR3) F(RTC) F(WUT) F(DMA0) F(DMA1) F(DMA2) F(DMA3) \
    F(GPIO0) F(GPIO1) F(GPIO2) F(UART0) F(UART1) F(SPI0) F(SPI1) F(I2C0) F(I2C1) F(ADC) F(PCIF) F(WDT0)
#ifdef __riscv
#define NAMES(F) BOTH_CORES(F)
#else
#define NAMES(F) BOTH_CORES(F) F(TMR4) F(TMR5) F(UART2) F(I2C2) F(GPIO3) F(FLC0) F(TRNG) F(CNN_FIFO)
#endif
#define DECLARE(name) WEAK void name##_IRQHandler(void);
NAMES(DECLARE)
WEAK void SysTick_Handler(void);

/* Of FreeRTOS, where the program has it: the time until a task goes on (0: none), and its tasks' turn */
WEAK uint32_t emulator_until_task(void);
WEAK void emulator_task_switch(void);
volatile unsigned int emulator_handlers;
void (*emulator_press)(void);

static bool is_peripheral(IRQn_Type irq) { return (int) irq >= 0 && (int) irq < INTERRUPTS; }

/* What a program set up itself, without the drivers, may be a timer of any period. */
#define TICK_MICROSECONDS 1000
static uint8_t timed; /* bits: those which the drivers set up */
static uint8_t timer_bit(unsigned int irq)
{
    if (irq >= TMR0_IRQn && irq <= TMR3_IRQn)
        return (uint8_t) (1 << (irq - TMR0_IRQn));
    return irq == RTC_IRQn ? 16 : 0;
}
static void enable(IRQn_Type irq)
{
    uint8_t timer = timer_bit((unsigned int) irq);
    if (timer && vectors[irq] && !enabled[irq] && !(timed & timer))
        emulator_set_timer((unsigned int) irq, TICK_MICROSECONDS, TICK_MICROSECONDS);
    enabled[irq] = true;
}
static void set_vector(IRQn_Type irq, handler_t handler)
{
    if (!is_peripheral(irq))
        return;
    vectors[irq] = handler;
    if (handler)
        enable(irq);
    else
        enabled[irq] = false;
}
WEAK void MXC_NVIC_SetVector(IRQn_Type irq, void (*handler)(void)) { set_vector(irq, handler); }
WEAK void NVIC_SetVector(IRQn_Type irq, void (*handler)(void)) { set_vector(irq, handler); }

#ifdef __riscv
/* Handlers may end with mret, which goes on at the address in mepc, or like functions. */
static void call_handler(handler_t handler)
{
    __asm__ volatile("la ra, 1f\n"
                     "csrw mepc, ra\n"
                     "li t0, 0x1800\n" /* in machine mode */
                     "csrs mstatus, t0\n"
                     "jr %0\n"
                     "1:"
                     :
                     : "r"(handler)
                     : "ra", "t0", "t1", "t2", "t3", "t4", "t5", "t6", "a0", "a1", "a2", "a3", "a4",
                       "a5", "a6", "a7", "memory");
}
#else
static void call_handler(handler_t handler) { handler(); }
#endif
__attribute__((noinline)) static void handle(unsigned int irq)
{
    pending[irq] = masked || !enabled[irq];
    if (pending[irq] || !vectors[irq])
        SENSORS->unheard = irq + 1;
    if (!pending[irq] && vectors[irq])
        call_handler(vectors[irq]);
}

/* A timer has reached its end. */
static void fire(unsigned int number)
{
    if (number == SYSTEM_TIMER) {
        if (SysTick_Handler && !masked)
            SysTick_Handler();
        return;
    }
    if (number == SUBSECOND_ALARM || number == RTC_IRQn)
        MXC_RTC->ctrl |= number == RTC_IRQn ? MXC_F_RTC_CTRL_TOD_ALARM : MXC_F_RTC_CTRL_SSEC_ALARM;
    handle(number == SUBSECOND_ALARM ? RTC_IRQn : number);
}

/* What sensors have delivered and the wake-up timer has reached since: their handlers, in this order. */
bool emulator_deliver(void)
{
    bool any = false;
    for (;;) {
        uint32_t event = SENSORS->event;
        switch (event) {
        case EVENT_SAMPLES:
            any = true;
            if (MXC_I2S->inten & MXC_F_I2S_INTEN_RX_THD_CH0)
                handle(I2S_IRQn);
            break;
        case EVENT_COPIED:
            any = true;
            if (SENSORS->copied)
                ((void (*)(int channel, int reason)) (uintptr_t) SENSORS->copied)(0, 0);
            break;
        case EVENT_PRESSED:
            any = true;
            emulator_press(); /* set where pins interrupt, so that other programs do not hold them */
            break;
        case EVENT_RECEIVED:
            any = true;
            emulator_bytes_came(handle);
            break;
        case EVENT_NONE:
            return any;
        default:
            fire(event - EVENT_TIMER);
        }
    }
}
void emulator_set_timer(unsigned int number, uint32_t first, uint32_t period)
{
    timed |= timer_bit(number);
    SENSORS->timer = number;
    SENSORS->timer_first_us = first;
    SENSORS->timer_us = period;
}
void emulator_pass_time(uint32_t us)
{
    for (uint32_t step; (step = SENSORS->timer_us) < us; us -= step) {
        HOST->delay = step;
        emulator_deliver();
    }
    HOST->delay = us;
    emulator_deliver();
}

/* Let time pass while the program waits, and call the handlers of what interrupts it then. */
static void call_timers(void)
{
    uint32_t task = emulator_until_task ? emulator_until_task() : 0, next = SENSORS->next;
    if (task && task < next)
        next = task;
    if (next != SENSORS_NEVER)
        HOST->delay = next;
    if (next == SENSORS_NEVER || !emulator_deliver())
        HOST->asleep = next == SENSORS_NEVER;
}

/* The emulator calls this when an interrupt comes. It waits while interrupts are off. */
__attribute__((used)) void emulator_interrupt(unsigned int irq)
{
    emulator_handlers++;
    if (irq == TIMER_INTERRUPTS) {
        call_timers();
    } else {
        emulator_deliver(); /* what came while the accelerator computed */
        handle(irq & (INTERRUPTS - 1));
    }
    emulator_handlers--;
}

static void deliver_pending(void)
{
    for (unsigned int irq = 0; irq < INTERRUPTS && !masked; irq++)
        if (pending[irq] && enabled[irq])
            emulator_interrupt(irq);
}

WEAK void NVIC_EnableIRQ(IRQn_Type irq)
{
    if (!is_peripheral(irq))
        return;
#define NAMED(name) \
    if (irq == name##_IRQn && !vectors[irq]) \
        vectors[irq] = name##_IRQHandler;
    NAMES(NAMED)
    enable(irq);
    deliver_pending();
}
WEAK uint32_t SysTick_Config(uint32_t ticks)
{
    uint32_t period = (uint32_t) ((uint64_t) ticks * 1000000 / SystemCoreClock);
    if (SysTick_Handler)
        emulator_set_timer(SYSTEM_TIMER, period ? period : 1, period ? period : 1);
    return 0;
}
WEAK void NVIC_DisableIRQ(IRQn_Type irq)
{
    if (is_peripheral(irq))
        enabled[irq] = false;
}
WEAK void NVIC_SetPendingIRQ(IRQn_Type irq)
{
    if (is_peripheral(irq))
        emulator_interrupt((unsigned int) irq);
}
WEAK void NVIC_ClearPendingIRQ(IRQn_Type irq)
{
    if (is_peripheral(irq))
        pending[irq] = false;
}
WEAK uint32_t NVIC_GetPendingIRQ(IRQn_Type irq) { return is_peripheral(irq) && pending[irq]; }
WEAK uint32_t NVIC_GetEnableIRQ(IRQn_Type irq) { return is_peripheral(irq) && enabled[irq]; }
WEAK void NVIC_SetPriority(IRQn_Type irq, uint32_t priority) { (void) irq, (void) priority; }
WEAK uint32_t NVIC_GetPriority(IRQn_Type irq)
{
    (void) irq;
    return 0;
}
WEAK void NVIC_SetPriorityGrouping(uint32_t grouping) { (void) grouping; }
WEAK void NVIC_EnableEVENT(IRQn_Type irq) { (void) irq; }
WEAK void NVIC_DisableEVENT(IRQn_Type irq) { (void) irq; }
WEAK void NVIC_ClearPendingEVENT(IRQn_Type irq) { (void) irq; }
WEAK _Noreturn void NVIC_SystemReset(void)
{
    printf("\nThe program resets the chip.\n");
    abort();
}

WEAK void __enable_irq(void)
{
    masked = false;
    deliver_pending();
}
WEAK void __disable_irq(void) { masked = true; }
WEAK uint32_t __get_PRIMASK(void) { return masked; }
WEAK void __set_PRIMASK(uint32_t mask)
{
    masked = mask & 1;
    deliver_pending();
}

/* A task of FreeRTOS has waited: others may go on. */
void emulator_other_tasks(void)
{
    if (emulator_task_switch && !emulator_handlers)
        emulator_task_switch();
}

/* Sleep ends at an interrupt, also at one that waits because interrupts are off. The address to
   return to is kept on the stack, where a debugger finds who sleeps. */
#ifdef __riscv
#define RETURN_ADDRESS "ra"
#else
#define RETURN_ADDRESS "lr"
#endif
static void sleep_until_interrupt(void)
{
    for (unsigned int irq = 0; irq < INTERRUPTS; irq++)
        if (pending[irq] && enabled[irq])
            return;
    __asm__ volatile("wfi" : : : RETURN_ADDRESS, "memory");
    emulator_other_tasks();
}
WEAK void __WFI(void) { sleep_until_interrupt(); }
WEAK void __WFE(void) { sleep_until_interrupt(); }
WEAK void MXC_LP_EnterSleepMode(void) { sleep_until_interrupt(); }
WEAK void MXC_LP_EnterDeepSleepMode(void) { sleep_until_interrupt(); }
static void sleep_in(uint32_t mode)
{
    SENSORS->mode = mode;
    sleep_until_interrupt();
    SENSORS->mode = MODE_SLEEP;
}
WEAK void MXC_LP_EnterLowPowerMode(void) { sleep_in(MODE_LOW_POWER); }
WEAK void MXC_LP_EnterMicroPowerMode(void) { sleep_in(MODE_OFF); }
WEAK void MXC_LP_EnterStandbyMode(void) { sleep_in(MODE_OFF); }
WEAK void MXC_LP_EnterBackupMode() { sleep_in(MODE_RESTART); }
WEAK void MXC_LP_EnterPowerDownMode(void) { sleep_in(MODE_RESTART); }
