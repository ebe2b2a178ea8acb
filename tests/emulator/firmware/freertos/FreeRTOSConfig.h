#ifndef FREERTOS_CONFIG_H
#define FREERTOS_CONFIG_H
#include "mxc_device.h"
#define configTICK_RATE_HZ ((portTickType) 100)
#define configMINIMAL_STACK_SIZE ((uint16_t) 128)
#define configMAX_PRIORITIES 5
#define configASSERT(x) if ((x) == 0) { taskDISABLE_INTERRUPTS(); for (;;) {} }
#define xPortSysTickHandler SysTick_Handler
#endif
