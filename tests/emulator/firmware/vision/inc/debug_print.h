#ifndef D
#define D
#include <stdio.h>
#define S_MODULE_NAME "main"
#define PR_DEBUG(fmt, args...) if (0) printf("D[%s:%4d] " fmt "\r\n", S_MODULE_NAME, __LINE__, ##args)
#define PR_INFO(fmt, args...) printf("I[%-5s:%4d] " fmt "\r\n", S_MODULE_NAME, __LINE__, ##args)
#define PR_ERROR(fmt, args...) printf("E[%-5s:%4d] " fmt "\r\n", S_MODULE_NAME, __LINE__, ##args)
#endif
