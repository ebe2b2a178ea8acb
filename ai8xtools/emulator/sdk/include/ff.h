/* File system on memory cards: there is no card, and every call says so. */
#ifndef EMULATOR_FF_H
#define EMULATOR_FF_H

#include "mxc.h"

typedef unsigned int UINT;
typedef unsigned char BYTE;
typedef uint16_t WORD, WCHAR;
typedef uint32_t DWORD;
typedef uint64_t QWORD, FSIZE_t, LBA_t;
typedef char TCHAR;
typedef enum {
    FR_OK, FR_DISK_ERR, FR_INT_ERR, FR_NOT_READY, FR_NO_FILE, FR_NO_PATH, FR_INVALID_NAME, FR_DENIED,
    FR_EXIST, FR_INVALID_OBJECT, FR_WRITE_PROTECTED, FR_INVALID_DRIVE, FR_NOT_ENABLED,
    FR_NO_FILESYSTEM, FR_MKFS_ABORTED, FR_TIMEOUT, FR_LOCKED, FR_NOT_ENOUGH_CORE,
    FR_TOO_MANY_OPEN_FILES, FR_INVALID_PARAMETER
} FRESULT;
typedef struct { int unused; } FATFS, FIL, DIR, MKFS_PARM;
typedef struct {
    FSIZE_t fsize;
    WORD fdate, ftime;
    BYTE fattrib;
    TCHAR altname[13], fname[256];
} FILINFO;
#define FA_READ 0x01
#define FA_WRITE 0x02
#define FA_OPEN_EXISTING 0x00
#define FA_CREATE_NEW 0x04
#define FA_CREATE_ALWAYS 0x08
#define FA_OPEN_ALWAYS 0x10
#define FA_OPEN_APPEND 0x30
#define AM_DIR 0x10
#define FF_MAX_LFN 255
#define FF_USE_LFN 1
#define f_size(file) 0
#define f_tell(file) 0
#define f_eof(file) 1
#define f_error(file) 1

FRESULT f_mount(EMULATOR_OPEN), f_open(EMULATOR_OPEN), f_close(EMULATOR_OPEN), f_read(EMULATOR_OPEN), f_write(EMULATOR_OPEN), f_lseek(EMULATOR_OPEN), f_truncate(EMULATOR_OPEN), f_sync(EMULATOR_OPEN), f_opendir(EMULATOR_OPEN),
    f_closedir(EMULATOR_OPEN), f_readdir(EMULATOR_OPEN), f_stat(EMULATOR_OPEN), f_mkdir(EMULATOR_OPEN), f_unlink(EMULATOR_OPEN), f_rename(EMULATOR_OPEN), f_chdir(EMULATOR_OPEN), f_getcwd(EMULATOR_OPEN), f_mkfs(EMULATOR_OPEN),
    f_getfree(EMULATOR_OPEN), f_setlabel(EMULATOR_OPEN), f_getlabel(EMULATOR_OPEN);

#endif
