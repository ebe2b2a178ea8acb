/* For libraries that read words by memcpy: calls of a size that is known are instructions, as where programs have a
 * C library. */
#include_next <string.h>
#define memcpy __builtin_memcpy
#define memset __builtin_memset
