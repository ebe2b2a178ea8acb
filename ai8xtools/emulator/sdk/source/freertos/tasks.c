/* Tasks: each has a stack of its own. A blocked one names what it waits for. */
#include "freertos.h"

#define STACK_RESERVE 3072 /* bytes for what handlers and the C library of the emulator need more */
#define PAINT 0xA5A5A5A5u
#define NAME_LENGTH 16
#define NOTIFICATIONS 8

struct emulator_task {
    struct emulator_task *next; /* all tasks form a ring */
    void *position;             /* of its stack */
    TaskFunction_t code;
    void *parameters;
    char name[NAME_LENGTH];
    int priority; /* that of the idle task is -1 */
    uint32_t *stack, words;
    bool suspended, deleted, blocked;
    condition_t condition;
    void *of;
    uint64_t deadline;
    uint32_t values[NOTIFICATIONS];
    bool notified[NOTIFICATIONS];
};
typedef struct emulator_task task_t;

static task_t idle = {.next = &idle, .priority = -1, .name = "IDLE"}, *current = &idle;
static bool started, ended;
static unsigned int suspensions, critical;
static uint64_t started_at;
extern volatile unsigned int emulator_handlers; /* handlers of interrupts that are running */

WEAK void vApplicationIdleHook(void);
WEAK void vApplicationMallocFailedHook(void);
WEAK void vApplicationStackOverflowHook(TaskHandle_t task, char *name);

#ifdef __riscv
#error FreeRTOS runs on the Arm core only
#endif

/* Keep what a function must keep, and go on with another stack where it was left. */
__attribute__((naked, noinline)) static void switch_stacks(void **from, void *to)
{
    __asm__ volatile("push {r4-r11, lr}\n"
                     "mov r2, sp\n"
                     "str r2, [r0]\n"
                     "mov sp, r1\n"
                     "pop {r4-r11, pc}\n");
}
#define SWITCHED_WORDS 9

uint64_t kernel_ticks(void)
{
    return started ? (emulator_microseconds() - started_at) * emulator_tick_rate / 1000000 : 0;
}

static bool is_runnable(task_t *task)
{
    if (task->suspended || task->deleted)
        return false;
    return !task->blocked || (task->condition && task->condition(task->of)) || kernel_ticks() >= task->deadline;
}

/* The task that comes next: of those with the highest priority, the one behind the current. */
static task_t *next_task(void)
{
    task_t *best = &idle;
    for (task_t *task = current->next;; task = task->next) {
        if (task->priority > best->priority && is_runnable(task))
            best = task;
        if (task == current)
            return best;
    }
}

static bool may_switch(void) { return started && !ended && !suspensions && !emulator_handlers; }

static void check_stack(task_t *task)
{
    if (!task->stack || task->stack[0] == PAINT)
        return;
    printf("\nThe stack of the task %s is too small.\n", task->name);
    if (vApplicationStackOverflowHook)
        vApplicationStackOverflowHook(task, task->name);
    abort();
}

static void go_on_with(task_t *next)
{
    task_t *before = current;
    check_stack(before);
    next->blocked = false;
    current = next;
    if (next != before)
        switch_stacks(&before->position, next->position);
}

void emulator_yield(void)
{
    if (may_switch())
        go_on_with(next_task());
}

bool kernel_has_more_urgent(void)
{
    task_t *next = next_task();
    return next->priority > current->priority;
}

void kernel_changed(void)
{
    if (may_switch() && kernel_has_more_urgent())
        emulator_yield();
}

/* After every wait of the program outside of the kernel, and after interrupts that ended it */
void emulator_task_switch(void) { emulator_yield(); }

bool kernel_wait(condition_t condition, void *of, TickType_t ticks)
{
    if (condition && condition(of))
        return true;
    if (!ticks || !may_switch())
        return false;
    current->deadline = ticks == portMAX_DELAY && condition ? NEVER : kernel_ticks() + ticks;
    current->condition = condition;
    current->of = of;
    current->blocked = true;
    go_on_with(next_task());
    return condition && condition(of);
}

/* Microseconds until a task can go on that waits for a time; 0 if there is none. */
uint32_t emulator_until_task(void)
{
    uint64_t first = NEVER;
    if (!started || ended)
        return 0;
    for (task_t *task = idle.next; task != &idle; task = task->next)
        if (task->blocked && !task->suspended && task->deadline < first)
            first = task->deadline;
    if (first == NEVER)
        return 0;
    uint64_t now = kernel_ticks(), ticks = first > now ? first - now : 1;
    return ticks > 1000000 ? 1000000 : (uint32_t) (ticks * 1000000 / emulator_tick_rate) + 1;
}

static void begin(void)
{
    current->code(current->parameters);
    printf("\nThe task %s returns; it has to end with vTaskDelete(NULL).\n", current->name);
    vTaskDelete(NULL);
}

static void prepare_stack(task_t *task)
{
    for (uint32_t i = 0; i < task->words; i++)
        task->stack[i] = PAINT;
    uint32_t *top = task->stack + (task->words & ~1u) - 2 - SWITCHED_WORDS;
    top[SWITCHED_WORDS - 1] = (uint32_t) (uintptr_t) begin;
    task->position = top;
}

static void append(task_t *task)
{
    task_t *last = &idle;
    while (last->next != &idle)
        last = last->next;
    task->next = &idle;
    last->next = task;
}

BaseType_t xTaskCreate(TaskFunction_t code, const char *name, configSTACK_DEPTH_TYPE depth,
                       void *parameters, UBaseType_t priority, TaskHandle_t *created)
{
    task_t *task = calloc(1, sizeof *task);
    uint32_t words = depth + STACK_RESERVE / 4;
    uint32_t *stack = task ? malloc(4 * words) : NULL;
    if (!stack) {
        free(task);
        if (vApplicationMallocFailedHook)
            vApplicationMallocFailedHook();
        return errCOULD_NOT_ALLOCATE_REQUIRED_MEMORY;
    }
    *task = (task_t) {.code = code, .parameters = parameters, .stack = stack, .words = words};
    strncpy(task->name, name ? name : "", NAME_LENGTH - 1);
    task->priority = (int) (priority < emulator_priorities ? priority : emulator_priorities - 1);
    prepare_stack(task);
    append(task);
    if (created)
        *created = task;
    kernel_changed();
    return pdPASS;
}

/* Its stack and the rest are the kernel's own: the C library of the emulator may need more. */
TaskHandle_t xTaskCreateStatic(TaskFunction_t code, const char *name, uint32_t depth, void *parameters,
                               UBaseType_t priority, StackType_t *stack, StaticTask_t *task)
{
    TaskHandle_t created = NULL;
    (void) stack, (void) task;
    xTaskCreate(code, name, depth, parameters, priority, &created);
    return created;
}

static task_t *named(TaskHandle_t task) { return task ? task : current; }

void vTaskDelete(TaskHandle_t task)
{
    named(task)->deleted = true;
    if (named(task) == current)
        emulator_yield();
}

/* The idle task frees what deleted ones had. */
static void free_deleted(void)
{
    for (task_t *task = &idle; task->next != &idle; task = task->next)
        while (task->next->deleted) {
            task_t *gone = task->next;
            task->next = gone->next;
            free(gone->stack);
            free(gone);
        }
}

void __WFI(void);
extern char *emulator_main_stack;

/* The stack on which main() runs is that of the idle task. */
void vTaskStartScheduler(void)
{
    char here;
    emulator_main_stack = &here;
    __enable_irq();
    started_at = emulator_microseconds();
    started = true;
    while (!ended) {
        free_deleted();
        if (vApplicationIdleHook)
            vApplicationIdleHook();
        if (next_task() == &idle)
            __WFI();
        emulator_yield();
    }
    started = false;
}

void vTaskEndScheduler(void)
{
    idle.blocked = false;
    ended = true;
    go_on_with(&idle);
}

void vTaskDelay(TickType_t ticks)
{
    if (ticks)
        kernel_wait(NULL, NULL, ticks);
    else
        emulator_yield();
}

BaseType_t xTaskDelayUntil(TickType_t *previous, TickType_t ticks)
{
    TickType_t now = xTaskGetTickCount(), rest = (*previous += ticks) - now;
    bool late = (int32_t) rest <= 0;
    if (!late)
        kernel_wait(NULL, NULL, rest);
    return !late;
}

BaseType_t xTaskAbortDelay(TaskHandle_t task)
{
    bool blocked = task->blocked;
    task->deadline = 0;
    kernel_changed();
    return blocked;
}

void vTaskSuspend(TaskHandle_t task)
{
    named(task)->suspended = true;
    if (named(task) == current)
        emulator_yield();
}
BaseType_t xTaskResumeFromISR(TaskHandle_t task)
{
    task->suspended = false;
    return kernel_has_more_urgent();
}
void vTaskResume(TaskHandle_t task)
{
    task->suspended = false;
    kernel_changed();
}
void vTaskSuspendAll(void) { suspensions++; }
BaseType_t xTaskResumeAll(void)
{
    suspensions -= suspensions > 0;
    kernel_changed();
    return pdFALSE;
}
void vPortEnterCritical(void)
{
    __disable_irq();
    critical++;
}
void vPortExitCritical(void)
{
    critical -= critical > 0;
    if (!critical)
        __enable_irq();
}
