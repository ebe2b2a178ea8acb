/* Registers of what is connected to the board: ai8xtools/emulator/sensors/connected.py. */
#ifndef EMULATOR_SENSORS_H
#define EMULATOR_SENSORS_H

#include <stdint.h>

typedef struct {
    volatile uint32_t width, height, format, pixel_bytes, buffer; /* of a camera; then: */
    volatile uint32_t set_up;  /* 0 without DMA, 1 with, 2 by rows */
    volatile uint32_t start;
    volatile uint32_t done;    /* reading these two takes time while there is nothing */
    volatile uint32_t row;     /* address of a row, or 0 */
    volatile uint32_t release;
    volatile uint32_t rows, overflows;
    volatile uint32_t divider;
    volatile uint32_t rate;         /* of a microphone, in Hz; then: */
    volatile uint32_t sample_bytes;
    volatile uint32_t threshold;
    volatile uint32_t listen;
    volatile uint32_t copy_to, copy_bytes;
    volatile uint32_t values_to;    /* where measurements go; then their number; reading it is the transfer */
    volatile uint32_t values;
    volatile uint32_t timer;        /* number of a timer; then: */
    volatile uint32_t timer_first_us; /* until it fires, 0: never */
    volatile uint32_t timer_us;     /* its period, 0: once; read: until the next of all fires */
    volatile uint32_t watchdog_ms;  /* 0: off */
    volatile uint32_t feed;
    volatile uint32_t next;         /* microseconds until something wakes the program */
    volatile uint32_t event;        /* what is due; reading it takes it */
    volatile uint32_t mode;         /* how deeply the core is about to sleep */
    volatile uint32_t button;       /* whether one is pressed */
    volatile uint32_t pins;         /* how many inputs may interrupt the program */
    /* What the run time keeps here, since the SRAM belongs to the program: */
    volatile uint32_t copied;
    volatile uint32_t line;         /* whether somebody is at the other end of the console's UART */
    volatile uint32_t line_level;   /* bytes that have come; reading it takes time while there is none */
    volatile uint32_t line_byte;    /* the next of them, or one to send */
    volatile uint32_t line_wait;    /* the program waits for a byte, and for nothing else */
    volatile uint32_t line_to;      /* where DMA puts bytes; then, kept here, too: */
    volatile uint32_t line_done, line_argument;
    volatile uint32_t line_left;    /* how many it takes */
    volatile uint32_t unheard;      /* 1 + the last interrupt that came and was not handled */
} emulator_sensors_t;
#define SENSORS ((emulator_sensors_t *) (EMULATOR_PORT + 0x1000u))
#define SENSORS_NEVER 0xFFFFFFFFu
enum { MODE_SLEEP, MODE_LOW_POWER, MODE_OFF, MODE_RESTART };
enum { EVENT_NONE, EVENT_SAMPLES, EVENT_COPIED, EVENT_PRESSED, EVENT_RECEIVED, EVENT_TIMER = 16 };
/* Timers have the numbers of their interrupts, and these */
enum { SYSTEM_TIMER = 125, SUBSECOND_ALARM = 126 };

#endif
