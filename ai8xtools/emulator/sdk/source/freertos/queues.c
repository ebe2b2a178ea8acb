/* Queues. A semaphore is a queue of items without bytes; a mutex knows who has taken it. */
#include "freertos.h"

struct emulator_queue {
    uint32_t length, size, count, first;
    bool mutex;
    TaskHandle_t holder;
    uint32_t depth; /* how often the holder of a recursive mutex has taken it */
    uint8_t items[];
};
typedef struct emulator_queue queue_t;

QueueHandle_t emulator_queue(UBaseType_t length, UBaseType_t size, UBaseType_t filled, bool mutex)
{
    queue_t *queue = pvPortMalloc(sizeof *queue + length * size);
    if (queue)
        *queue = (queue_t) {.length = length, .size = size, .count = filled, .mutex = mutex};
    return queue;
}
void vQueueDelete(QueueHandle_t queue) { vPortFree(queue); }
UBaseType_t uxQueueMessagesWaiting(QueueHandle_t queue) { return queue->count; }
UBaseType_t uxQueueSpacesAvailable(QueueHandle_t queue) { return queue->length - queue->count; }
BaseType_t xQueueReset(QueueHandle_t queue)
{
    queue->count = queue->first = 0;
    kernel_changed();
    return pdPASS;
}

static bool has_room(void *queue) { return ((queue_t *) queue)->count < ((queue_t *) queue)->length; }
static bool has_item(void *queue) { return ((queue_t *) queue)->count > 0; }
static uint8_t *place(queue_t *queue, uint32_t number)
{
    return queue->items + (queue->first + number) % queue->length * queue->size;
}

static void put(queue_t *queue, const void *item, bool front)
{
    if (front)
        queue->first = (queue->first + queue->length - 1) % queue->length;
    if (queue->size)
        memcpy(place(queue, front ? 0 : queue->count), item, queue->size);
    queue->count++;
    queue->holder = NULL;
}
static void take(queue_t *queue, void *item, bool keep)
{
    if (queue->size)
        memcpy(item, place(queue, 0), queue->size);
    if (keep)
        return;
    queue->first = (queue->first + 1) % queue->length;
    queue->count--;
    if (queue->mutex)
        queue->holder = xTaskGetCurrentTaskHandle();
}

BaseType_t emulator_send(QueueHandle_t queue, const void *item, TickType_t ticks, bool front, bool over)
{
    if (over && queue->count)
        queue->count--;
    if (!kernel_wait(has_room, queue, ticks))
        return errQUEUE_FULL;
    put(queue, item, front);
    kernel_changed();
    return pdPASS;
}
BaseType_t emulator_receive(QueueHandle_t queue, void *item, TickType_t ticks, bool keep)
{
    if (!kernel_wait(has_item, queue, ticks))
        return errQUEUE_EMPTY;
    take(queue, item, keep);
    kernel_changed();
    return pdPASS;
}
BaseType_t emulator_send_from_isr(QueueHandle_t queue, const void *item, bool front, bool over,
                                  BaseType_t *woken)
{
    BaseType_t sent = emulator_send(queue, item, 0, front, over);
    if (woken && sent)
        *woken = kernel_has_more_urgent();
    return sent;
}
BaseType_t emulator_receive_from_isr(QueueHandle_t queue, void *item, BaseType_t *woken)
{
    BaseType_t received = emulator_receive(queue, item, 0, false);
    if (woken && received)
        *woken = kernel_has_more_urgent();
    return received;
}

BaseType_t xSemaphoreTakeRecursive(SemaphoreHandle_t mutex, TickType_t ticks)
{
    if (mutex->holder != xTaskGetCurrentTaskHandle() && !emulator_receive(mutex, NULL, ticks, false))
        return pdFAIL;
    mutex->depth++;
    return pdPASS;
}
BaseType_t xSemaphoreGiveRecursive(SemaphoreHandle_t mutex)
{
    if (mutex->holder != xTaskGetCurrentTaskHandle())
        return pdFAIL;
    return --mutex->depth ? pdPASS : emulator_send(mutex, NULL, 0, false, false);
}
TaskHandle_t xSemaphoreGetMutexHolder(SemaphoreHandle_t mutex) { return mutex->holder; }
