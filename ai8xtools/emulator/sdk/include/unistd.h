/* C library of the emulated core: waiting. */
#ifndef EMULATOR_UNISTD_H
#define EMULATOR_UNISTD_H

#include <stddef.h>
#include <sys/types.h>

unsigned int sleep(unsigned int seconds);
int usleep(unsigned int microseconds);

#endif
