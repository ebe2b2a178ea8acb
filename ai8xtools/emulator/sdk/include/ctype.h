/* C library of the emulated core: kinds of characters (ASCII). */
#ifndef EMULATOR_CTYPE_H
#define EMULATOR_CTYPE_H

int isdigit(int c);
int islower(int c);
int isupper(int c);
int isalpha(int c);
int isalnum(int c);
int isxdigit(int c);
int isspace(int c);
int isblank(int c);
int iscntrl(int c);
int isprint(int c);
int isgraph(int c);
int ispunct(int c);
int isascii(int c);
int tolower(int c);
int toupper(int c);

#endif
