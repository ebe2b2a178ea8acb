/* C library of the emulated core: jumps out of functions. */
#ifndef EMULATOR_SETJMP_H
#define EMULATOR_SETJMP_H

typedef unsigned int jmp_buf[16];
int setjmp(jmp_buf place) __attribute__((returns_twice));
void longjmp(jmp_buf place, int value) __attribute__((noreturn));

#endif
