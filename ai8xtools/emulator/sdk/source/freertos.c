/* FreeRTOS for programs that use it, as one file. */
#include "freertos/tasks.c"

#include "freertos/services.c"

#include "freertos/queues.c"
#include "freertos/signals.c"
