#ifndef BC
#define BC
#if defined(BOARD_FTHR_REVA)
#define BUTTON 0
#define PRINT_TIME 1
#else
#error "select a board"
#endif
#endif
