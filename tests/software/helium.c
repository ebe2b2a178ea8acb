/* Start of a program on QEMU's mps3-an547: vectors, the console and a clock for instructions.
 *
 * With -icount shift=5 an instruction takes 32 ns, and SysTick counts 32 MHz. */
#include <stdint.h>
#include <stdio.h>

#define SYSTICK ((volatile uint32_t *)0xE000E010u)
#define CPACR (*(volatile uint32_t *)0xE000ED88u)
#define UART ((volatile uint32_t *)0x59303000u)
#define PERIOD 0xffffffu
#define STACK_END 0x20080000u

int reset_handler(void);
int REAL(const int8_t *input, void *output);
int WRAP(const int8_t *input, void *output);

static volatile uint32_t rounds;

static void leave(uint32_t reason)
{
    register uint32_t r0 __asm__("r0") = 0x18;
    register uint32_t r1 __asm__("r1") = reason;

    for (;;) {
        __asm__ volatile("bkpt 0xab" : : "r"(r0), "r"(r1) : "memory");
    }
}

/* In the place of the function that is counted. */
int WRAP(const int8_t *input, void *output)
{
    int result;
    uint32_t ticks;

    SYSTICK[2] = 0; /* begins at the top again */
    rounds = 0;
    result = REAL(input, output);
    ticks = PERIOD - SYSTICK[2];
    printf("ticks %u\n", (unsigned)(ticks + rounds * (PERIOD + 1)));
    return result;
}

static void start(void)
{
    CPACR |= 0xfu << 20; /* floating point and vectors */
    __asm__ volatile("dsb\n\tisb");
    UART[4] = 16;
    UART[2] = 1;
    SYSTICK[1] = PERIOD;
    SYSTICK[2] = 0;
    SYSTICK[0] = 7;
    reset_handler();
    leave(0x20026); /* the application has ended */
}

static void fault(void)
{
    puts("FAULT");
    leave(0x20023); /* a run time error */
}

static void tick(void)
{
    rounds++;
}

__attribute__((section(".vectors"), used)) void (*const vectors[16])(void) = {
    (void (*)(void))STACK_END, start, fault, fault, fault, fault, fault, fault,
    fault, fault, fault, fault, fault, fault, fault, tick
};
