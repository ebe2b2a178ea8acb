/*
 * The emulator's own registers, and what all files of the run time share. Every function is weak: a
 * program that brings its own wins.
 */
#ifndef EMULATOR_H
#define EMULATOR_H

#include <stdarg.h>
#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>

#define WEAK __attribute__((weak))

typedef struct {
    volatile uint32_t console;     /* takes one character */
    volatile uint32_t abort;       /* the program cannot go on */
    volatile uint32_t stopwatch;   /* microseconds that were measured last */
    volatile uint32_t exit;        /* the program ends with this status */
    volatile uint32_t stand_in;    /* address of the name of a function that does nothing */
    volatile uint32_t argument[4]; /* two numbers, low words first */
    volatile uint32_t compute;     /* an operation of ai8xtools/emulator/cpu/mathematics.py; then: */
    volatile uint32_t result[2];
    volatile uint32_t format;      /* address of a conversion for printf; then, up to a 0: */
    volatile uint32_t formatted;
    volatile uint32_t parse;       /* address of a number as text; then: */
    volatile uint32_t parsed;      /* its length */
    volatile uint32_t delay;       /* microseconds pass */
    volatile uint32_t clock[2];    /* microseconds since the start; reading takes time, too */
    volatile uint32_t asleep;      /* the program sleeps and has no timer that would wake it */
    volatile uint32_t stopwatch_start, stopwatch_stop; /* take the address of a timer */
    volatile uint32_t flash_address, flash_word; /* a word is written into the flash memory */
    volatile uint32_t due;         /* an interrupt comes as soon as the core waits: the network is done then */
} emulator_port_t;
#define HOST ((emulator_port_t *) EMULATOR_PORT)

/* A number and its bits, low word first */
typedef union {
    double value;
    uint32_t words[2];
} double_words_t;

/* Say that a function without hardware behind it was called. */
static inline void emulator_stand_in(const char *name) { HOST->stand_in = (uint32_t) (uintptr_t) name; }

/* As vsscanf(); `rest` becomes where it ends, NULL if the text ends before the format. */
int emulator_scan(const char *text, const char **rest, const char *format, va_list arguments);

/* With FreeRTOS: where the stack of main() ends while tasks have theirs, and a chance for other tasks */
extern char *emulator_main_stack;
void emulator_other_tasks(void);

/* Call the handlers of what sensors and the wake-up timer have brought; tell whether sensors did. */
bool emulator_deliver(void);
/* Have a timer fire after so many microseconds (0: stop it), and again after each period (0: once). */
void emulator_set_timer(unsigned int number, uint32_t first, uint32_t period);
int emulator_received(void); /* the next byte over the UART, for which the program waits */
/* A byte has come: it is copied, or interrupts are handled. Have bytes that come copied, and a function called then. */
void emulator_bytes_came(void (*handle)(unsigned int irq));
void emulator_copy_bytes(void *to, uint32_t count, void (*done)(int argument), int argument);
extern volatile unsigned int emulator_handlers; /* that are running */
extern void (*emulator_press)(void); /* a button or another input */

/* Compilers join variables, and then programs hold those that they do not use. */
#define APART(name) __attribute__((section(".bss." #name)))
void emulator_pass_time(uint32_t us); /* with what comes meanwhile */

static inline uint64_t emulator_microseconds(void)
{
    uint32_t low = HOST->clock[0]; /* this reads both */
    return (uint64_t) HOST->clock[1] << 32 | low;
}

#endif
