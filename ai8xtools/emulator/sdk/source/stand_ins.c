/* Functions that the emulator does not have: they do nothing, say so, and return 0. */
#include "emulator.h"

#define STAND_IN(name) \
    uint64_t name(void) \
    { \
        emulator_stand_in(#name); \
        return 0; \
    }
#include EMULATOR_STAND_INS
