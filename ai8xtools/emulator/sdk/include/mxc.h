/*
 * Stand-in for the vendor's SDK, for the emulated cores. Every name of an SDK header forwards to this
 * file. Registers stand at the addresses of the chip; functions are in ../source. Interrupts and
 * sleep go through the emulator's own registers.
 */
#ifndef EMULATOR_MXC_H
#define EMULATOR_MXC_H

#include "emulator_drivers.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#endif
