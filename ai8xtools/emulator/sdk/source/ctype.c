/* C library of the emulated core: kinds of characters (ASCII). */
#include "emulator.h"
#include <ctype.h>

WEAK int isdigit(int c) { return c >= '0' && c <= '9'; }
WEAK int islower(int c) { return c >= 'a' && c <= 'z'; }
WEAK int isupper(int c) { return c >= 'A' && c <= 'Z'; }
WEAK int isalpha(int c) { return islower(c) || isupper(c); }
WEAK int isalnum(int c) { return isalpha(c) || isdigit(c); }
WEAK int isxdigit(int c) { return isdigit(c) || ((c | 32) >= 'a' && (c | 32) <= 'f'); }
WEAK int isspace(int c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
WEAK int isblank(int c) { return c == ' ' || c == '\t'; }
WEAK int iscntrl(int c) { return (c >= 0 && c < 32) || c == 127; }
WEAK int isprint(int c) { return c >= 32 && c < 127; }
WEAK int isgraph(int c) { return c > 32 && c < 127; }
WEAK int ispunct(int c) { return isgraph(c) && !isalnum(c); }
WEAK int isascii(int c) { return c >= 0 && c < 128; }
WEAK int tolower(int c) { return isupper(c) ? c + 32 : c; }
WEAK int toupper(int c) { return islower(c) ? c - 32 : c; }
