/* C library of the emulated core: names of signals; there are none. */
#ifndef EMULATOR_SIGNAL_H
#define EMULATOR_SIGNAL_H

typedef volatile int sig_atomic_t;
#define SIGINT 2
#define SIGABRT 6
#define SIGFPE 8
#define SIGKILL 9
#define SIGSEGV 11
#define SIGTERM 15

#endif
