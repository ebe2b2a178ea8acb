/* C library of the emulated core: error numbers. */
#ifndef EMULATOR_ERRNO_H
#define EMULATOR_ERRNO_H

extern int errno;
#define EPERM 1
#define ENOENT 2
#define EIO 5
#define EAGAIN 11
#define ENOMEM 12
#define EACCES 13
#define EBUSY 16
#define ENODEV 19
#define EINVAL 22
#define ENOSPC 28
#define EDOM 33
#define ERANGE 34
#define ENOSYS 88
#define ETIMEDOUT 116

#endif
