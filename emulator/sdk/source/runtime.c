/* The run time of emulated programs as one file, which takes less time to compile. */
#include "ctype.c"
#include "division.c"
#include "math.c"
#include "start.c"
#include "stdio.c"
#include "stdlib.c"
#include "string.c"
#include "system.c"
