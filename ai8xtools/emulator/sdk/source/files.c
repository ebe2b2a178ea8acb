/* File system on memory cards: there is no card. */
#include "emulator.h"
#include "ff.h"

#define NO_CARD(name) \
    WEAK FRESULT name() \
    { \
        emulator_stand_in(#name); \
        return FR_NOT_READY; \
    }
NO_CARD(f_mount) NO_CARD(f_open) NO_CARD(f_close) NO_CARD(f_read) NO_CARD(f_write) NO_CARD(f_lseek)
NO_CARD(f_truncate) NO_CARD(f_sync) NO_CARD(f_opendir) NO_CARD(f_closedir) NO_CARD(f_readdir)
NO_CARD(f_stat) NO_CARD(f_mkdir) NO_CARD(f_unlink) NO_CARD(f_rename) NO_CARD(f_chdir)
NO_CARD(f_getcwd) NO_CARD(f_mkfs) NO_CARD(f_getfree) NO_CARD(f_setlabel) NO_CARD(f_getlabel)
