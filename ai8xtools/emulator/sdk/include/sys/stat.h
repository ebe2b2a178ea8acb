/* C library of the emulated core: what replacements for system calls name. */
#ifndef EMULATOR_SYS_STAT_H
#define EMULATOR_SYS_STAT_H

#include <sys/types.h>

#define S_IFMT 0170000
#define S_IFCHR 0020000
#define S_IFDIR 0040000
#define S_IFREG 0100000
struct stat {
    mode_t st_mode;
    off_t st_size;
    long st_blksize;
};
int stat(const char *name, struct stat *status);
int fstat(int file, struct stat *status);

#endif
