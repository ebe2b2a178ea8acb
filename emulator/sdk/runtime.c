/*
 * Run time of the emulated core: start, SDK functions and the C library functions that generated
 * projects call. What must reach the outside goes through the emulator's port, EMULATOR_PORT.
 */
#include <stdarg.h>
#include "mxc.h"

typedef struct {
    volatile uint32_t console;   /* takes one character */
    volatile uint32_t abort;     /* the program cannot go on */
    volatile uint32_t stopwatch; /* microseconds */
} emulator_port_t;
#define PORT ((emulator_port_t *) EMULATOR_PORT)

extern int main(void);

__attribute__((used)) int reset_handler(void) { return main(); }

/* Handlers of the interrupts that are enabled. Programs that do not set a vector define a handler
   of this name. */
typedef void (*handler_t)(void);
static volatile handler_t vectors[128];
__attribute__((weak)) void CNN_IRQHandler(void);

void MXC_NVIC_SetVector(IRQn_Type irq, void (*handler)(void)) { vectors[irq] = handler; }
void NVIC_SetVector(IRQn_Type irq, void (*handler)(void)) { vectors[irq] = handler; }

void NVIC_EnableIRQ(IRQn_Type irq)
{
    if (irq == CNN_IRQn && !vectors[irq])
        vectors[irq] = CNN_IRQHandler;
}

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

/* The emulator calls this when an interrupt comes. */
__attribute__((used)) void emulator_interrupt(unsigned int irq)
{
    handler_t handler = vectors[irq & 127];
    if (handler)
        call_handler(handler);
}

void __WFI(void) { __asm__ volatile("wfi"); }
void MXC_LP_EnterSleepMode(void) { __WFI(); }
void MXC_LP_EnterLowPowerMode(void) { __WFI(); }

int Debug_Init(void) { return E_NO_ERROR; }
void __enable_irq(void) {}
void __disable_irq(void) {}
void NVIC_DisableIRQ(IRQn_Type irq) { vectors[irq] = 0; }
void NVIC_SetPriority(IRQn_Type irq, uint32_t priority) { (void) irq; (void) priority; }
void NVIC_EnableEVENT(IRQn_Type irq) { (void) irq; }
void NVIC_ClearPendingIRQ(IRQn_Type irq) { (void) irq; }
void NVIC_ClearPendingEVENT(IRQn_Type irq) { (void) irq; }

/* Clocks */
int MXC_SYS_Clock_Select(mxc_sys_system_clock_t clock) { (void) clock; return E_NO_ERROR; }
int MXC_SYS_ClockSourceEnable(mxc_sys_system_clock_t clock) { (void) clock; return E_NO_ERROR; }
void SystemCoreClockUpdate(void) {}

static volatile uint32_t *clock_gate(mxc_sys_periph_clock_t clock)
{
    return clock < 32 ? &MXC_GCR->pclkdis0 : &MXC_GCR->pclkdis1;
}

void MXC_SYS_ClockEnable(mxc_sys_periph_clock_t clock) { *clock_gate(clock) &= ~(1u << (clock & 31)); }
void MXC_SYS_ClockDisable(mxc_sys_periph_clock_t clock) { *clock_gate(clock) |= 1u << (clock & 31); }

/* Timers; waiting takes no time */
void MXC_ICC_Enable(mxc_icc_regs_t *icc) { (void) icc; }
int MXC_Delay(uint32_t us) { (void) us; return E_NO_ERROR; }
void MXC_TMR_Delay(mxc_tmr_regs_t *tmr, uint32_t us) { (void) tmr; (void) us; }
void MXC_TMR_SW_Start(mxc_tmr_regs_t *tmr) { (void) tmr; }
unsigned int MXC_TMR_SW_Stop(mxc_tmr_regs_t *tmr) { (void) tmr; return PORT->stopwatch; }

/* Pins */
int MXC_GPIO_Config(const mxc_gpio_cfg_t *cfg) { cfg->port->outen_set = cfg->mask; return E_NO_ERROR; }
void MXC_GPIO_OutSet(mxc_gpio_regs_t *port, uint32_t mask) { port->out_set = mask; }
void MXC_GPIO_OutClr(mxc_gpio_regs_t *port, uint32_t mask) { port->out_clr = mask; }
void LED_On(unsigned int idx) { (void) idx; }
void LED_Off(unsigned int idx) { (void) idx; }
void LED_Toggle(unsigned int idx) { (void) idx; }
int PB_Get(unsigned int idx) { (void) idx; return 0; }

/* Console */
int putchar(int character)
{
    PORT->console = (uint8_t) character;
    return character;
}

static int print_padding(int count, char fill)
{
    int written = 0;
    for (; written < count; written++)
        putchar(fill);
    return written;
}

/* Print `length` characters in a field of `width`. */
static int print_field(const char *text, int length, int width, bool left, char fill)
{
    int written = 0;
    if (fill == '0' && length && *text == '-') { /* the sign stands before the zeros */
        putchar(*text++);
        length--, width--, written++;
    }
    if (!left)
        written += print_padding(width - length, fill);
    for (int i = 0; i < length; i++, written++)
        putchar(text[i]);
    if (left)
        written += print_padding(width - length, ' ');
    return written;
}

/* Write the digits of `value` so that they end before `end`; return where they begin. */
static char *digits(uint64_t value, unsigned int base, bool upper, char *end)
{
    const char *set = upper ? "0123456789ABCDEF" : "0123456789abcdef";
    do {
        *--end = set[value % base];
        value /= base;
    } while (value);
    return end;
}

static int print_number(va_list *arguments, char conversion, int longs, int width, bool left, char fill)
{
    char buffer[24], *end = buffer + sizeof(buffer), *start;
    if (conversion == 'd' || conversion == 'i') {
        int64_t value = longs > 1 ? va_arg(*arguments, int64_t) : va_arg(*arguments, int);
        start = digits(value < 0 ? -(uint64_t) value : (uint64_t) value, 10, false, end);
        if (value < 0)
            *--start = '-';
    } else {
        uint64_t value = longs > 1 ? va_arg(*arguments, uint64_t) : va_arg(*arguments, unsigned int);
        unsigned int base = conversion == 'u' ? 10 : conversion == 'o' ? 8 : 16;
        start = digits(value, base, conversion == 'X', end);
    }
    return print_field(start, (int) (end - start), width, left, fill);
}

/* One conversion; *format stands behind the percent sign and is moved behind the conversion. */
static int print_conversion(const char **format, va_list *arguments)
{
    const char *text;
    char character, fill = ' ';
    bool left = false;
    int width = 0, longs = 0;

    for (; **format == '-' || **format == '0'; ++*format) {
        left |= **format == '-';
        if (**format == '0')
            fill = '0';
    }
    for (; **format >= '0' && **format <= '9'; ++*format)
        width = 10 * width + **format - '0';
    for (; **format == 'l' || **format == 'h' || **format == 'z'; ++*format)
        longs += **format == 'l';
    switch (character = *(*format)++) {
    case 'c':
        character = (char) va_arg(*arguments, int);
        return print_field(&character, 1, width, left, ' ');
    case 's':
        text = va_arg(*arguments, const char *);
        return print_field(text, (int) strlen(text), width, left, ' ');
    case 'd': case 'i': case 'u': case 'x': case 'X': case 'o': case 'p':
        return print_number(arguments, character, longs, width, left, left ? ' ' : fill);
    default: /* a percent sign, or a conversion that is not known and is shown as it is */
        return print_field(&character, 1, 0, false, ' ');
    }
}

int printf(const char *format, ...)
{
    int written = 0;
    va_list arguments;
    va_start(arguments, format);
    while (*format) {
        char character = *format++;
        if (character == '%' && *format) {
            written += print_conversion(&format, &arguments);
        } else {
            putchar(character);
            written++;
        }
    }
    va_end(arguments);
    return written;
}

int puts(const char *text) { return printf("%s\n", text); }

/* Memory of the accelerator takes words only, so aligned words are copied as words. */
void *memset(void *destination, int value, size_t count)
{
    volatile uint8_t *bytes = destination;
    if (((uintptr_t) bytes & 3) == 0)
        for (; count >= 4; count -= 4, bytes += 4)
            *(volatile uint32_t *) bytes = (uint8_t) value * 0x01010101u;
    while (count--)
        *bytes++ = (uint8_t) value;
    return destination;
}

void *memcpy(void *destination, const void *source, size_t count)
{
    volatile uint8_t *to = destination;
    const volatile uint8_t *from = source;
    if ((((uintptr_t) to | (uintptr_t) from) & 3) == 0)
        for (; count >= 4; count -= 4, to += 4, from += 4)
            *(volatile uint32_t *) to = *(const volatile uint32_t *) from;
    while (count--)
        *to++ = *from++;
    return destination;
}

void *memmove(void *destination, const void *source, size_t count)
{
    volatile uint8_t *to = destination;
    const volatile uint8_t *from = source;
    if (to <= from)
        return memcpy(destination, source, count);
    while (count--)
        to[count] = from[count];
    return destination;
}

int memcmp(const void *left, const void *right, size_t count)
{
    const volatile uint8_t *a = left, *b = right;
    for (; count--; a++, b++)
        if (*a != *b)
            return *a - *b;
    return 0;
}

size_t strlen(const char *text)
{
    const volatile char *end = text;
    while (*end)
        end++;
    return (size_t) (end - text);
}

_Noreturn void abort(void)
{
    PORT->abort = 1;
    for (;;) {}
}

/* 64-bit division, called by compiled code */
__attribute__((used)) uint64_t emulator_divide(uint64_t dividend, uint64_t divisor, uint64_t *remainder)
{
    uint64_t quotient = 0, rest = 0;
    for (int bit = 63; divisor && bit >= 0; bit--) {
        bool carry = rest >> 63;
        rest = rest << 1 | (dividend >> bit & 1);
        if (carry || rest >= divisor) {
            rest -= divisor;
            quotient |= (uint64_t) 1 << bit;
        }
    }
    *remainder = rest;
    return quotient;
}

__attribute__((used)) int64_t emulator_divide_signed(int64_t dividend, int64_t divisor, int64_t *remainder)
{
    uint64_t rest;
    uint64_t quotient = emulator_divide(dividend < 0 ? -(uint64_t) dividend : (uint64_t) dividend,
                                        divisor < 0 ? -(uint64_t) divisor : (uint64_t) divisor, &rest);
    *remainder = (int64_t) (dividend < 0 ? -rest : rest);
    return (int64_t) ((dividend < 0) != (divisor < 0) ? -quotient : quotient);
}

#ifdef __riscv
uint64_t __udivdi3(uint64_t a, uint64_t b) { uint64_t rest; return emulator_divide(a, b, &rest); }
uint64_t __umoddi3(uint64_t a, uint64_t b) { uint64_t rest; emulator_divide(a, b, &rest); return rest; }
int64_t __divdi3(int64_t a, int64_t b) { int64_t rest; return emulator_divide_signed(a, b, &rest); }
int64_t __moddi3(int64_t a, int64_t b) { int64_t rest; emulator_divide_signed(a, b, &rest); return rest; }
#else
/* Quotient in r0:r1, remainder in r2:r3 */
#define DIVISION(name, function)                                                                   \
    __attribute__((naked)) void name(void)                                                         \
    {                                                                                              \
        __asm__ volatile("push {r4, lr}\n"                                                         \
                         "sub sp, sp, #16\n"                                                       \
                         "add r4, sp, #8\n"                                                        \
                         "str r4, [sp]\n" /* fifth argument: where the remainder goes */           \
                         "bl " #function "\n"                                                      \
                         "ldrd r2, r3, [sp, #8]\n"                                                 \
                         "add sp, sp, #16\n"                                                       \
                         "pop {r4, pc}\n");                                                        \
    }
DIVISION(__aeabi_uldivmod, emulator_divide)
DIVISION(__aeabi_ldivmod, emulator_divide_signed)

/* Names under which compiled code asks for memory functions */
void __aeabi_memcpy(void *to, const void *from, size_t count) { memcpy(to, from, count); }
void __aeabi_memcpy4(void *to, const void *from, size_t count) { memcpy(to, from, count); }
void __aeabi_memcpy8(void *to, const void *from, size_t count) { memcpy(to, from, count); }
void __aeabi_memmove(void *to, const void *from, size_t count) { memmove(to, from, count); }
void __aeabi_memmove4(void *to, const void *from, size_t count) { memmove(to, from, count); }
void __aeabi_memset(void *to, size_t count, int value) { memset(to, value, count); }
void __aeabi_memset4(void *to, size_t count, int value) { memset(to, value, count); }
void __aeabi_memclr(void *to, size_t count) { memset(to, 0, count); }
void __aeabi_memclr4(void *to, size_t count) { memset(to, 0, count); }
void __aeabi_memclr8(void *to, size_t count) { memset(to, 0, count); }
#endif
