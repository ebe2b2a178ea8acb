/* What tasks ask and tell each other, and memory. It is read behind tasks.c. */
#include "freertos.h"

UBaseType_t uxTaskPriorityGet(TaskHandle_t task) { return (UBaseType_t) named(task)->priority; }
void vTaskPrioritySet(TaskHandle_t task, UBaseType_t priority)
{
    named(task)->priority = (int) priority;
    kernel_changed();
}
TickType_t xTaskGetTickCount(void) { return (TickType_t) kernel_ticks(); }
TaskHandle_t xTaskGetCurrentTaskHandle(void) { return current; }
TaskHandle_t xTaskGetHandle(const char *name)
{
    for (task_t *task = idle.next; task != &idle; task = task->next)
        if (!task->deleted && !strncmp(task->name, name, NAME_LENGTH - 1))
            return task;
    return NULL;
}
char *pcTaskGetName(TaskHandle_t task) { return named(task)->name; }
UBaseType_t uxTaskGetNumberOfTasks(void)
{
    UBaseType_t count = 1; /* the idle task */
    for (task_t *task = idle.next; task != &idle; task = task->next)
        count += !task->deleted;
    return count;
}
UBaseType_t uxTaskGetStackHighWaterMark(TaskHandle_t task)
{
    uint32_t unused = 0;
    while (unused < named(task)->words && named(task)->stack[unused] == PAINT)
        unused++;
    return unused > STACK_RESERVE / 4 ? unused - STACK_RESERVE / 4 : 0;
}
eTaskState eTaskGetState(TaskHandle_t task)
{
    if (task->deleted)
        return eDeleted;
    if (task->suspended)
        return eSuspended;
    return task == current ? eRunning : task->blocked ? eBlocked : eReady;
}
BaseType_t xTaskGetSchedulerState(void)
{
    return !started ? taskSCHEDULER_NOT_STARTED : suspensions ? taskSCHEDULER_SUSPENDED : taskSCHEDULER_RUNNING;
}
void vTaskList(char *text)
{
    for (task_t *task = idle.next; task != &idle; task = task->next)
        text += sprintf(text, "%s\t%c\t%d\t%u\r\n", task->name, "XRBSD"[eTaskGetState(task)], task->priority,
                        (unsigned int) uxTaskGetStackHighWaterMark(task));
    *text = '\0';
}
void vTaskGetRunTimeStats(char *text) { *text = '\0'; }

/* Time is not counted by ticks, so that sleeping without them needs nothing */
eSleepModeStatus eTaskConfirmSleepModeStatus(void) { return eStandardSleep; }
void vTaskStepTick(TickType_t ticks) { (void) ticks; }
BaseType_t xTaskIncrementTick(void) { return pdFALSE; }

/* Notifications */
BaseType_t emulator_notify(TaskHandle_t task, UBaseType_t index, uint32_t value, eNotifyAction action,
                           uint32_t *previous, BaseType_t *woken)
{
    bool was = task->notified[index];
    if (previous)
        *previous = task->values[index];
    if (action == eSetValueWithoutOverwrite && was)
        return pdFAIL;
    if (action == eSetBits)
        task->values[index] |= value;
    else if (action == eIncrement)
        task->values[index]++;
    else if (action != eNoAction)
        task->values[index] = value;
    task->notified[index] = true;
    if (woken)
        *woken = kernel_has_more_urgent();
    kernel_changed();
    return pdPASS;
}
static bool is_set(void *flag) { return *(bool *) flag; }
static bool is_positive(void *value) { return *(uint32_t *) value != 0; }
BaseType_t xTaskNotifyWaitIndexed(UBaseType_t index, uint32_t clear_at_entry, uint32_t clear_at_exit,
                                  uint32_t *value, TickType_t ticks)
{
    task_t *task = current;
    if (!task->notified[index])
        task->values[index] &= ~clear_at_entry;
    bool came = kernel_wait(is_set, &task->notified[index], ticks);
    if (value)
        *value = task->values[index];
    if (came)
        task->values[index] &= ~clear_at_exit;
    task->notified[index] = false;
    return came;
}
uint32_t ulTaskNotifyTakeIndexed(UBaseType_t index, BaseType_t clear, TickType_t ticks)
{
    task_t *task = current;
    kernel_wait(is_positive, &task->values[index], ticks);
    uint32_t value = task->values[index];
    if (value)
        task->values[index] = clear ? 0 : value - 1;
    task->notified[index] = false;
    return value;
}
BaseType_t xTaskNotifyStateClear(TaskHandle_t task)
{
    bool was = named(task)->notified[0];
    named(task)->notified[0] = false;
    return was;
}
uint32_t ulTaskNotifyValueClear(TaskHandle_t task, uint32_t bits)
{
    uint32_t was = named(task)->values[0];
    named(task)->values[0] &= ~bits;
    return was;
}

/* Memory */
void *pvPortMalloc(size_t size)
{
    void *memory = malloc(size);
    if (!memory && vApplicationMallocFailedHook)
        vApplicationMallocFailedHook();
    return memory;
}
void vPortFree(void *memory) { free(memory); }
size_t xPortGetFreeHeapSize(void) { return 0x4000; } /* a number that is enough */
size_t xPortGetMinimumEverFreeHeapSize(void) { return 0x4000; }
