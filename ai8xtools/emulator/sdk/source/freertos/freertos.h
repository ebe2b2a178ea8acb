/*
 * The kernel of FreeRTOS on the emulated core: a task runs until it waits, or until something that it
 * does lets a task of higher priority go on. Interrupts come while tasks wait.
 */
#ifndef EMULATOR_FREERTOS_H
#define EMULATOR_FREERTOS_H

#define EMULATOR_FREERTOS
#include "FreeRTOS.h"
#include "../emulator.h"
#include <stdio.h>
#include <string.h>

#define NEVER UINT64_MAX
typedef bool (*condition_t)(void *of);

extern const uint32_t emulator_tick_rate, emulator_priorities;

/* Ticks since the start, which never begin again at 0 */
uint64_t kernel_ticks(void);
/* Wait until a condition holds (NULL: never) or the time has come; tell whether it holds. */
bool kernel_wait(condition_t condition, void *of, TickType_t ticks);
/* Something has changed: let a task of higher priority go on. */
void kernel_changed(void);
/* Whether a task with a higher priority than the one that runs can go on. */
bool kernel_has_more_urgent(void);

#endif
