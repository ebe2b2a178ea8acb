/* Timers, which a task of their own calls; groups of events; buffers of bytes and messages. */
#include "freertos.h"

struct emulator_timer {
    struct emulator_timer *next;
    const char *name;
    TickType_t period;
    bool reload, active;
    void *id;
    TimerCallbackFunction_t callback;
    uint64_t expires;
};
static TimerHandle_t timers;
static TaskHandle_t timer_task;

static TimerHandle_t expired(void)
{
    for (TimerHandle_t timer = timers; timer; timer = timer->next)
        if (timer->active && kernel_ticks() >= timer->expires)
            return timer;
    return NULL;
}
static bool any_expired(void *of) { return (void) of, expired() != NULL; }

static TickType_t until_first(void)
{
    uint64_t now = kernel_ticks(), first = NEVER;
    for (TimerHandle_t timer = timers; timer; timer = timer->next)
        if (timer->active && timer->expires < first)
            first = timer->expires;
    return first == NEVER ? portMAX_DELAY : first > now ? (TickType_t) (first - now) : 1;
}

static void run_timers(void *parameters)
{
    (void) parameters;
    for (;;) {
        TimerHandle_t timer = expired();
        if (!timer) {
            kernel_wait(any_expired, NULL, until_first());
            continue;
        }
        timer->active = timer->reload;
        timer->expires += timer->period;
        timer->callback(timer);
    }
}

TimerHandle_t xTimerCreate(const char *name, TickType_t period, BaseType_t reload, void *id,
                           TimerCallbackFunction_t callback)
{
    TimerHandle_t timer = pvPortMalloc(sizeof *timer);
    if (!timer)
        return NULL;
    *timer = (struct emulator_timer) {timers, name, period, reload != 0, false, id, callback, 0};
    timers = timer;
    if (!timer_task)
        xTaskCreate(run_timers, "Tmr Svc", 256, NULL, emulator_priorities - 1, &timer_task);
    return timer;
}
BaseType_t emulator_timer(TimerHandle_t timer, TickType_t period, bool active)
{
    if (period)
        timer->period = period;
    timer->active = active;
    timer->expires = kernel_ticks() + timer->period;
    if (timer_task != xTaskGetCurrentTaskHandle())
        xTaskAbortDelay(timer_task); /* it finds out anew how long to wait */
    return pdPASS;
}
BaseType_t xTimerIsTimerActive(TimerHandle_t timer) { return timer->active; }
void *pvTimerGetTimerID(TimerHandle_t timer) { return timer->id; }
void vTimerSetTimerID(TimerHandle_t timer, void *id) { timer->id = id; }
const char *pcTimerGetName(TimerHandle_t timer) { return timer->name; }
TickType_t xTimerGetPeriod(TimerHandle_t timer) { return timer->period; }

struct emulator_events {
    EventBits_t bits;
};
struct condition {
    EventGroupHandle_t group;
    EventBits_t bits;
    bool all;
};
static bool has_bits(void *of)
{
    struct condition *condition = of;
    EventBits_t bits = condition->group->bits & condition->bits;
    return condition->all ? bits == condition->bits : bits != 0;
}

EventGroupHandle_t xEventGroupCreate(void)
{
    EventGroupHandle_t group = pvPortMalloc(sizeof *group);
    if (group)
        group->bits = 0;
    return group;
}
void vEventGroupDelete(EventGroupHandle_t group) { vPortFree(group); }
EventBits_t xEventGroupSetBits(EventGroupHandle_t group, EventBits_t bits)
{
    group->bits |= bits;
    kernel_changed();
    return group->bits;
}
EventBits_t xEventGroupClearBits(EventGroupHandle_t group, EventBits_t bits)
{
    EventBits_t before = group->bits;
    group->bits &= ~bits;
    return before;
}
EventBits_t xEventGroupWaitBits(EventGroupHandle_t group, EventBits_t bits, BaseType_t clear, BaseType_t all,
                                TickType_t ticks)
{
    struct condition condition = {group, bits, all != 0};
    bool came = kernel_wait(has_bits, &condition, ticks);
    EventBits_t before = group->bits;
    if (came && clear)
        group->bits &= ~bits;
    return before;
}

/* A message is stored behind its length. */
struct emulator_stream {
    size_t size, count, first, trigger;
    bool messages;
    uint8_t bytes[];
};
struct room {
    StreamBufferHandle_t stream;
    size_t size;
};

StreamBufferHandle_t emulator_stream(size_t size, size_t trigger, bool messages)
{
    StreamBufferHandle_t stream = pvPortMalloc(sizeof *stream + size);
    if (stream)
        *stream = (struct emulator_stream) {size, 0, 0, trigger ? trigger : 1, messages};
    return stream;
}
void vStreamBufferDelete(StreamBufferHandle_t stream) { vPortFree(stream); }
size_t xStreamBufferBytesAvailable(StreamBufferHandle_t stream) { return stream->count; }
size_t xStreamBufferSpacesAvailable(StreamBufferHandle_t stream) { return stream->size - stream->count; }
BaseType_t xStreamBufferReset(StreamBufferHandle_t stream)
{
    stream->count = 0;
    return pdPASS;
}
static bool has_space(void *of)
{
    struct room *room = of;
    return xStreamBufferSpacesAvailable(room->stream) >= room->size;
}
static bool has_bytes(void *of)
{
    StreamBufferHandle_t stream = of;
    return stream->count >= (stream->messages ? 1 : stream->trigger);
}
static void push(StreamBufferHandle_t stream, const void *data, size_t size)
{
    for (size_t i = 0; i < size; i++)
        stream->bytes[(stream->first + stream->count++) % stream->size] = ((const uint8_t *) data)[i];
}
static void pull(StreamBufferHandle_t stream, void *data, size_t size)
{
    for (size_t i = 0; i < size; i++, stream->count--) {
        ((uint8_t *) data)[i] = stream->bytes[stream->first];
        stream->first = (stream->first + 1) % stream->size;
    }
}
size_t xStreamBufferSend(StreamBufferHandle_t stream, const void *data, size_t size, TickType_t ticks)
{
    size_t head = stream->messages ? sizeof size : 0;
    struct room room = {stream, size + head};
    if (!kernel_wait(has_space, &room, ticks)) {
        if (stream->messages)
            return 0;
        size = xStreamBufferSpacesAvailable(stream) < size ? xStreamBufferSpacesAvailable(stream) : size;
    }
    push(stream, &size, head);
    push(stream, data, size);
    kernel_changed();
    return size;
}
size_t xStreamBufferReceive(StreamBufferHandle_t stream, void *data, size_t size, TickType_t ticks)
{
    kernel_wait(has_bytes, stream, ticks);
    if (!stream->count)
        return 0;
    size_t first = stream->first, there = stream->count;
    if (stream->messages)
        pull(stream, &there, sizeof there);
    if (stream->messages && there > size) { /* it stays where it is */
        stream->first = first;
        stream->count += sizeof there;
        return 0;
    }
    size = there < size ? there : size;
    pull(stream, data, size);
    kernel_changed();
    return size;
}
