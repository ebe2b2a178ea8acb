/*
 * FreeRTOS: types, constants and functions of all its headers. The kernel is the emulator's own, in
 * ../source/freertos; settings come from the project's FreeRTOSConfig.h.
 */
#ifndef INC_FREERTOS_H
#define INC_FREERTOS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* Types, also by their names before version 8 */
typedef uint32_t TickType_t, StackType_t, EventBits_t, configSTACK_DEPTH_TYPE;
typedef long BaseType_t;
typedef unsigned long UBaseType_t;
#define portTickType TickType_t
#define portBASE_TYPE BaseType_t
#define portSTACK_TYPE StackType_t
#define portCHAR char
#define portLONG long
#define portSHORT short
#define xTaskHandle TaskHandle_t
#define xQueueHandle QueueHandle_t
#define xSemaphoreHandle SemaphoreHandle_t
#define xTimerHandle TimerHandle_t
#define pdTASK_CODE TaskFunction_t

#if defined(__has_include)
#if __has_include("FreeRTOSConfig.h")
#include "FreeRTOSConfig.h"
#endif
#endif
#ifndef configTICK_RATE_HZ
#define configTICK_RATE_HZ 1000
#endif
#ifndef configMINIMAL_STACK_SIZE
#define configMINIMAL_STACK_SIZE 128
#endif
#ifndef configMAX_PRIORITIES
#define configMAX_PRIORITIES 5
#endif
#ifndef configMAX_TASK_NAME_LEN
#define configMAX_TASK_NAME_LEN 16
#endif
#ifndef configTOTAL_HEAP_SIZE
#define configTOTAL_HEAP_SIZE 0x6000
#endif
#ifndef configTIMER_TASK_PRIORITY
#define configTIMER_TASK_PRIORITY (configMAX_PRIORITIES - 1)
#endif
#ifndef configASSERT
#define configASSERT(condition) ((void) (condition))
#endif

#ifdef __cplusplus
extern "C" {
#endif
#ifndef EMULATOR_FREERTOS
/* What the kernel knows of the settings */
extern const uint32_t emulator_tick_rate, emulator_priorities;
const uint32_t emulator_tick_rate __attribute__((weak)) = configTICK_RATE_HZ;
const uint32_t emulator_priorities __attribute__((weak)) = configMAX_PRIORITIES;
#endif

#define pdFALSE ((BaseType_t) 0)
#define pdTRUE ((BaseType_t) 1)
#define pdFAIL pdFALSE
#define pdPASS pdTRUE
#define errQUEUE_EMPTY ((BaseType_t) 0)
#define errQUEUE_FULL ((BaseType_t) 0)
#define errCOULD_NOT_ALLOCATE_REQUIRED_MEMORY (-1)
#define portMAX_DELAY ((TickType_t) 0xffffffffu)
#define portTICK_PERIOD_MS ((TickType_t) 1000 / configTICK_RATE_HZ)
#define portTICK_RATE_MS portTICK_PERIOD_MS
#define portBYTE_ALIGNMENT 8
#define tskKERNEL_VERSION_NUMBER "V10.4.6"
#define tskKERNEL_VERSION_MAJOR 10
#define tskKERNEL_VERSION_MINOR 4
#ifndef pdMS_TO_TICKS
#define pdMS_TO_TICKS(ms) ((TickType_t) ((uint64_t) (ms) * configTICK_RATE_HZ / 1000u))
#endif
#define pdTICKS_TO_MS(ticks) ((TickType_t) ((uint64_t) (ticks) * 1000u / configTICK_RATE_HZ))

/* Tasks */
typedef struct emulator_task *TaskHandle_t;
typedef void (*TaskFunction_t)(void *parameters);
typedef struct {
    uint32_t reserved[24];
} StaticTask_t;
typedef enum { eRunning, eReady, eBlocked, eSuspended, eDeleted, eInvalid } eTaskState;
typedef enum {
    eNoAction, eSetBits, eIncrement, eSetValueWithOverwrite, eSetValueWithoutOverwrite
} eNotifyAction;
#define tskIDLE_PRIORITY ((UBaseType_t) 0)
#define taskSCHEDULER_SUSPENDED ((BaseType_t) 0)
#define taskSCHEDULER_NOT_STARTED ((BaseType_t) 1)
#define taskSCHEDULER_RUNNING ((BaseType_t) 2)
BaseType_t xTaskCreate(TaskFunction_t code, const char *name, configSTACK_DEPTH_TYPE depth,
                       void *parameters, UBaseType_t priority, TaskHandle_t *created);
TaskHandle_t xTaskCreateStatic(TaskFunction_t code, const char *name, uint32_t depth, void *parameters,
                               UBaseType_t priority, StackType_t *stack, StaticTask_t *task);
void vTaskDelete(TaskHandle_t task);
void vTaskDelay(TickType_t ticks);
BaseType_t xTaskDelayUntil(TickType_t *previous, TickType_t ticks);
#define vTaskDelayUntil(previous, ticks) ((void) xTaskDelayUntil(previous, ticks))
BaseType_t xTaskAbortDelay(TaskHandle_t task);
void vTaskStartScheduler(void);
void vTaskEndScheduler(void);
void vTaskSuspend(TaskHandle_t task);
void vTaskResume(TaskHandle_t task);
BaseType_t xTaskResumeFromISR(TaskHandle_t task);
void vTaskSuspendAll(void);
BaseType_t xTaskResumeAll(void);
UBaseType_t uxTaskPriorityGet(TaskHandle_t task);
void vTaskPrioritySet(TaskHandle_t task, UBaseType_t priority);
TickType_t xTaskGetTickCount(void);
#define xTaskGetTickCountFromISR xTaskGetTickCount
TaskHandle_t xTaskGetCurrentTaskHandle(void);
TaskHandle_t xTaskGetHandle(const char *name);
char *pcTaskGetName(TaskHandle_t task);
#define pcTaskGetTaskName pcTaskGetName
UBaseType_t uxTaskGetNumberOfTasks(void);
UBaseType_t uxTaskGetStackHighWaterMark(TaskHandle_t task);
eTaskState eTaskGetState(TaskHandle_t task);
BaseType_t xTaskGetSchedulerState(void);
void vTaskList(char *text);
void vTaskGetRunTimeStats(char *text);
typedef enum { eAbortSleep, eStandardSleep, eNoTasksWaitingTimeout } eSleepModeStatus;
eSleepModeStatus eTaskConfirmSleepModeStatus(void);
void vTaskStepTick(TickType_t ticks);
BaseType_t xTaskIncrementTick(void);
void emulator_yield(void);
#define taskYIELD() emulator_yield()
#define portYIELD() emulator_yield()
#define portYIELD_WITHIN_API() emulator_yield()
#define portYIELD_FROM_ISR(woken) ((void) (woken)) /* at the end of the wait that was interrupted */
#define portEND_SWITCHING_ISR(woken) portYIELD_FROM_ISR(woken)
void vPortEnterCritical(void);
void vPortExitCritical(void);
#define taskENTER_CRITICAL() vPortEnterCritical()
#define taskEXIT_CRITICAL() vPortExitCritical()
#define taskENTER_CRITICAL_FROM_ISR() 0
#define taskEXIT_CRITICAL_FROM_ISR(status) ((void) (status))
#define taskDISABLE_INTERRUPTS() __disable_irq()
#define taskENABLE_INTERRUPTS() __enable_irq()
#define portENTER_CRITICAL() vPortEnterCritical()
#define portEXIT_CRITICAL() vPortExitCritical()
#define portDISABLE_INTERRUPTS() __disable_irq()
#define portENABLE_INTERRUPTS() __enable_irq()
#define portSET_INTERRUPT_MASK_FROM_ISR() 0
#define portCLEAR_INTERRUPT_MASK_FROM_ISR(status) ((void) (status))
#define portTASK_FUNCTION(function, parameters) void function(void *parameters)
#define portTASK_FUNCTION_PROTO(function, parameters) void function(void *parameters)
#define portMEMORY_BARRIER() __asm__ volatile("" : : : "memory")
void __disable_irq(void);
void __enable_irq(void);
void *pvPortMalloc(size_t size);
void vPortFree(void *memory);
size_t xPortGetFreeHeapSize(void);
size_t xPortGetMinimumEverFreeHeapSize(void);

/* Notifications */
#ifndef configTASK_NOTIFICATION_ARRAY_ENTRIES
#define configTASK_NOTIFICATION_ARRAY_ENTRIES 1
#endif
#define tskDEFAULT_INDEX_TO_NOTIFY 0
BaseType_t emulator_notify(TaskHandle_t task, UBaseType_t index, uint32_t value, eNotifyAction action,
                           uint32_t *previous, BaseType_t *woken);
BaseType_t xTaskNotifyWaitIndexed(UBaseType_t index, uint32_t clear_at_entry, uint32_t clear_at_exit,
                                  uint32_t *value, TickType_t ticks);
uint32_t ulTaskNotifyTakeIndexed(UBaseType_t index, BaseType_t clear, TickType_t ticks);
BaseType_t xTaskNotifyStateClear(TaskHandle_t task);
uint32_t ulTaskNotifyValueClear(TaskHandle_t task, uint32_t bits);
#define xTaskNotify(task, value, action) emulator_notify(task, 0, value, action, NULL, NULL)
#define xTaskNotifyIndexed(task, index, value, action) \
    emulator_notify(task, index, value, action, NULL, NULL)
#define xTaskNotifyAndQuery(task, value, action, previous) \
    emulator_notify(task, 0, value, action, previous, NULL)
#define xTaskNotifyFromISR(task, value, action, woken) emulator_notify(task, 0, value, action, NULL, woken)
#define xTaskNotifyIndexedFromISR(task, index, value, action, woken) \
    emulator_notify(task, index, value, action, NULL, woken)
#define xTaskNotifyGive(task) emulator_notify(task, 0, 0, eIncrement, NULL, NULL)
#define xTaskNotifyGiveIndexed(task, index) emulator_notify(task, index, 0, eIncrement, NULL, NULL)
#define vTaskNotifyGiveFromISR(task, woken) ((void) emulator_notify(task, 0, 0, eIncrement, NULL, woken))
#define vTaskNotifyGiveIndexedFromISR(task, index, woken) \
    ((void) emulator_notify(task, index, 0, eIncrement, NULL, woken))
#define xTaskNotifyWait(entry, exit, value, ticks) xTaskNotifyWaitIndexed(0, entry, exit, value, ticks)
#define ulTaskNotifyTake(clear, ticks) ulTaskNotifyTakeIndexed(0, clear, ticks)

/* Queues and semaphores */
typedef struct emulator_queue *QueueHandle_t;
typedef QueueHandle_t SemaphoreHandle_t, QueueSetHandle_t, QueueSetMemberHandle_t;
typedef struct {
    uint32_t reserved[20];
} StaticQueue_t;
typedef StaticQueue_t StaticSemaphore_t;
QueueHandle_t emulator_queue(UBaseType_t length, UBaseType_t size, UBaseType_t filled, bool mutex);
BaseType_t emulator_send(QueueHandle_t queue, const void *item, TickType_t ticks, bool front, bool over);
BaseType_t emulator_receive(QueueHandle_t queue, void *item, TickType_t ticks, bool keep);
BaseType_t emulator_send_from_isr(QueueHandle_t queue, const void *item, bool front, bool over,
                                  BaseType_t *woken);
BaseType_t emulator_receive_from_isr(QueueHandle_t queue, void *item, BaseType_t *woken);
void vQueueDelete(QueueHandle_t queue);
UBaseType_t uxQueueMessagesWaiting(QueueHandle_t queue);
UBaseType_t uxQueueSpacesAvailable(QueueHandle_t queue);
BaseType_t xQueueReset(QueueHandle_t queue);
#define uxQueueMessagesWaitingFromISR uxQueueMessagesWaiting
#define xQueueIsQueueEmptyFromISR(queue) (uxQueueMessagesWaiting(queue) == 0)
#define xQueueIsQueueFullFromISR(queue) (uxQueueSpacesAvailable(queue) == 0)
#define vQueueAddToRegistry(queue, name) ((void) (queue))
#define vQueueUnregisterQueue(queue) ((void) (queue))
#define xQueueCreate(length, size) emulator_queue(length, size, 0, false)
#define xQueueCreateStatic(length, size, storage, queue) emulator_queue(length, size, 0, false)
#define xQueueSend(queue, item, ticks) emulator_send(queue, item, ticks, false, false)
#define xQueueSendToBack(queue, item, ticks) emulator_send(queue, item, ticks, false, false)
#define xQueueSendToFront(queue, item, ticks) emulator_send(queue, item, ticks, true, false)
#define xQueueOverwrite(queue, item) emulator_send(queue, item, 0, false, true)
#define xQueueSendFromISR(queue, item, woken) emulator_send_from_isr(queue, item, false, false, woken)
#define xQueueSendToBackFromISR(queue, item, woken) emulator_send_from_isr(queue, item, false, false, woken)
#define xQueueSendToFrontFromISR(queue, item, woken) emulator_send_from_isr(queue, item, true, false, woken)
#define xQueueOverwriteFromISR(queue, item, woken) emulator_send_from_isr(queue, item, false, true, woken)
#define xQueueReceive(queue, item, ticks) emulator_receive(queue, item, ticks, false)
#define xQueuePeek(queue, item, ticks) emulator_receive(queue, item, ticks, true)
#define xQueueReceiveFromISR(queue, item, woken) emulator_receive_from_isr(queue, item, woken)

#define xSemaphoreCreateBinary() emulator_queue(1, 0, 0, false)
#define xSemaphoreCreateBinaryStatic(semaphore) emulator_queue(1, 0, 0, false)
#define vSemaphoreCreateBinary(semaphore) ((void) ((semaphore) = emulator_queue(1, 0, 1, false)))
#define xSemaphoreCreateCounting(most, first) emulator_queue(most, 0, first, false)
#define xSemaphoreCreateCountingStatic(most, first, semaphore) emulator_queue(most, 0, first, false)
#define xSemaphoreCreateMutex() emulator_queue(1, 0, 1, true)
#define xSemaphoreCreateMutexStatic(semaphore) emulator_queue(1, 0, 1, true)
#define xSemaphoreCreateRecursiveMutex() emulator_queue(1, 0, 1, true)
#define xSemaphoreCreateRecursiveMutexStatic(semaphore) emulator_queue(1, 0, 1, true)
#define xSemaphoreTake(semaphore, ticks) emulator_receive(semaphore, NULL, ticks, false)
#define xSemaphoreGive(semaphore) emulator_send(semaphore, NULL, 0, false, false)
#define xSemaphoreGiveFromISR(semaphore, woken) emulator_send_from_isr(semaphore, NULL, false, false, woken)
#define xSemaphoreTakeFromISR(semaphore, woken) emulator_receive_from_isr(semaphore, NULL, woken)
BaseType_t xSemaphoreTakeRecursive(SemaphoreHandle_t mutex, TickType_t ticks);
BaseType_t xSemaphoreGiveRecursive(SemaphoreHandle_t mutex);
TaskHandle_t xSemaphoreGetMutexHolder(SemaphoreHandle_t mutex);
#define uxSemaphoreGetCount(semaphore) uxQueueMessagesWaiting(semaphore)
#define vSemaphoreDelete(semaphore) vQueueDelete(semaphore)

/* Timers */
typedef struct emulator_timer *TimerHandle_t;
typedef void (*TimerCallbackFunction_t)(TimerHandle_t timer);
typedef struct {
    uint32_t reserved[12];
} StaticTimer_t;
TimerHandle_t xTimerCreate(const char *name, TickType_t period, BaseType_t reload, void *id,
                           TimerCallbackFunction_t callback);
#define xTimerCreateStatic(name, period, reload, id, callback, timer) \
    xTimerCreate(name, period, reload, id, callback)
BaseType_t emulator_timer(TimerHandle_t timer, TickType_t period, bool active);
#define xTimerStart(timer, ticks) emulator_timer(timer, 0, true)
#define xTimerReset(timer, ticks) emulator_timer(timer, 0, true)
#define xTimerStop(timer, ticks) emulator_timer(timer, 0, false)
#define xTimerDelete(timer, ticks) emulator_timer(timer, 0, false)
#define xTimerChangePeriod(timer, period, ticks) emulator_timer(timer, period, true)
#define xTimerStartFromISR(timer, woken) emulator_timer(timer, 0, true)
#define xTimerResetFromISR(timer, woken) emulator_timer(timer, 0, true)
#define xTimerStopFromISR(timer, woken) emulator_timer(timer, 0, false)
#define xTimerChangePeriodFromISR(timer, period, woken) emulator_timer(timer, period, true)
BaseType_t xTimerIsTimerActive(TimerHandle_t timer);
void *pvTimerGetTimerID(TimerHandle_t timer);
void vTimerSetTimerID(TimerHandle_t timer, void *id);
const char *pcTimerGetName(TimerHandle_t timer);
TickType_t xTimerGetPeriod(TimerHandle_t timer);

/* Groups of events */
typedef struct emulator_events *EventGroupHandle_t;
typedef struct {
    uint32_t reserved[8];
} StaticEventGroup_t;
EventGroupHandle_t xEventGroupCreate(void);
#define xEventGroupCreateStatic(group) xEventGroupCreate()
void vEventGroupDelete(EventGroupHandle_t group);
EventBits_t xEventGroupSetBits(EventGroupHandle_t group, EventBits_t bits);
EventBits_t xEventGroupClearBits(EventGroupHandle_t group, EventBits_t bits);
EventBits_t xEventGroupWaitBits(EventGroupHandle_t group, EventBits_t bits, BaseType_t clear, BaseType_t all,
                                TickType_t ticks);
#define xEventGroupGetBits(group) xEventGroupClearBits(group, 0)
#define xEventGroupGetBitsFromISR(group) xEventGroupClearBits(group, 0)
#define xEventGroupClearBitsFromISR(group, bits) xEventGroupClearBits(group, bits)
#define xEventGroupSetBitsFromISR(group, bits, woken) (xEventGroupSetBits(group, bits), pdPASS)

/* Buffers of bytes and of messages */
typedef struct emulator_stream *StreamBufferHandle_t;
typedef StreamBufferHandle_t MessageBufferHandle_t;
StreamBufferHandle_t emulator_stream(size_t size, size_t trigger, bool messages);
size_t xStreamBufferSend(StreamBufferHandle_t stream, const void *data, size_t size, TickType_t ticks);
size_t xStreamBufferReceive(StreamBufferHandle_t stream, void *data, size_t size, TickType_t ticks);
size_t xStreamBufferBytesAvailable(StreamBufferHandle_t stream);
size_t xStreamBufferSpacesAvailable(StreamBufferHandle_t stream);
BaseType_t xStreamBufferReset(StreamBufferHandle_t stream);
void vStreamBufferDelete(StreamBufferHandle_t stream);
#define xStreamBufferCreate(size, trigger) emulator_stream(size, trigger, false)
#define xStreamBufferIsEmpty(stream) (xStreamBufferBytesAvailable(stream) == 0)
#define xStreamBufferSendFromISR(stream, data, size, woken) xStreamBufferSend(stream, data, size, 0)
#define xStreamBufferReceiveFromISR(stream, data, size, woken) xStreamBufferReceive(stream, data, size, 0)
#define xMessageBufferCreate(size) emulator_stream(size, 1, true)
#define xMessageBufferSend(stream, data, size, ticks) xStreamBufferSend(stream, data, size, ticks)
#define xMessageBufferReceive(stream, data, size, ticks) xStreamBufferReceive(stream, data, size, ticks)
#define xMessageBufferSendFromISR(stream, data, size, woken) xStreamBufferSend(stream, data, size, 0)
#define xMessageBufferReceiveFromISR(stream, data, size, woken) xStreamBufferReceive(stream, data, size, 0)
#define vMessageBufferDelete(stream) vStreamBufferDelete(stream)

#ifdef __cplusplus
}
#endif
#endif
