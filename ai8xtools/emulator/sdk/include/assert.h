/* C library of the emulated core: assertions. Includable again, with or without NDEBUG. */
#include <stdlib.h>
#undef assert
#ifdef NDEBUG
#define assert(condition) ((void) 0)
#else
void emulator_assertion(const char *condition, const char *file, int line);
#define assert(condition) \
    ((condition) ? (void) 0 : emulator_assertion(#condition, __FILE__, __LINE__))
#endif
#ifndef __cplusplus
#undef static_assert
#define static_assert _Static_assert
#endif
