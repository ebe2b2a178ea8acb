/* Tasks around the network of tests/emulator/project, as demonstrations with FreeRTOS have them. */
#include <stdio.h>
#include <string.h>
#include "mxc.h"
#include "cnn.h"
#include "FreeRTOS.h"
#include "FreeRTOSConfig.h"
#include "task.h"
#include "queue.h"
#include "semphr.h"
#include "timers.h"
#include "event_groups.h"
#include "message_buffer.h"

void load_input(void);
int check_output(void);
void fail(void);

static QueueHandle_t frames;
static SemaphoreHandle_t done, console, credit;
static EventGroupHandle_t events;
static MessageBufferHandle_t lines;
static TaskHandle_t network, logger;
static StaticTask_t blink_memory;
static StackType_t blink_stack[configMINIMAL_STACK_SIZE];
static unsigned int beats;

void finished(void)
{
    BaseType_t woken = pdFALSE;
    CNN_ISR();
    xSemaphoreGiveFromISR(done, &woken);
    portYIELD_FROM_ISR(woken);
}

static void infer(void *parameters)
{
    char line[32];
    uint32_t frame;
    (void) parameters;
    cnn_enable(MXC_S_GCR_PCLKDIV_CNNCLKSEL_PCLK, MXC_S_GCR_PCLKDIV_CNNCLKDIV_DIV1);
    MXC_NVIC_SetVector(CNN_IRQn, finished);
    cnn_init();
    cnn_load_weights();
    cnn_load_bias();
    cnn_configure();
    while (xQueueReceive(frames, &frame, pdMS_TO_TICKS(2000)) == pdTRUE) {
        load_input();
        cnn_start();
        if (xSemaphoreTake(done, portMAX_DELAY) != pdTRUE || check_output() != CNN_OK)
            fail();
        sprintf(line, "frame %u at %u", (unsigned int) frame, (unsigned int) xTaskGetTickCount());
        xMessageBufferSend(lines, line, strlen(line) + 1, portMAX_DELAY);
        xTaskNotify(logger, 1u << frame, eSetBits);
        xSemaphoreGive(credit);
    }
    xEventGroupSetBits(events, 1);
    vTaskDelete(NULL);
}

static void capture(void *count)
{
    TickType_t last = xTaskGetTickCount();
    for (uint32_t frame = 0; frame < (uint32_t) (uintptr_t) count; frame++) {
        vTaskDelayUntil(&last, pdMS_TO_TICKS(500));
        xSemaphoreTake(credit, portMAX_DELAY);
        xQueueSend(frames, &frame, portMAX_DELAY);
    }
    vTaskSuspend(NULL);
}

static void show(void *parameters)
{
    uint32_t bits = 0, all = 0;
    char line[32];
    (void) parameters;
    while (all != 7) {
        xTaskNotifyWait(0, ~0u, &bits, portMAX_DELAY);
        all |= bits;
        while (xMessageBufferReceive(lines, line, sizeof line, 0)) {
            xSemaphoreTake(console, portMAX_DELAY);
            printf("%s\n", line);
            xSemaphoreGive(console);
        }
    }
    xEventGroupWaitBits(events, 3, pdTRUE, pdTRUE, portMAX_DELAY);
    printf("%u beats, %d tasks, priority %d, %s\n", beats, (int) uxTaskGetNumberOfTasks(),
           (int) uxTaskPriorityGet(NULL), pcTaskGetName(NULL));
    printf("\n*** PASS ***\n\n");
    vTaskDelay(portMAX_DELAY);
}

static void blink(void *parameters)
{
    (void) parameters;
    for (;;) {
        LED_Toggle(0);
        vTaskDelay(configTICK_RATE_HZ / 4);
    }
}

static void beat(TimerHandle_t timer)
{
    if (++beats == 4) {
        xTimerStop(timer, 0);
        xEventGroupSetBits(events, 2);
    }
}

int main(void)
{
    frames = xQueueCreate(2, sizeof(uint32_t));
    done = xSemaphoreCreateBinary();
    credit = xSemaphoreCreateCounting(2, 2);
    console = xSemaphoreCreateMutex();
    events = xEventGroupCreate();
    lines = xMessageBufferCreate(128);
    xTimerStart(xTimerCreate("beat", pdMS_TO_TICKS(250), pdTRUE, NULL, beat), 0);
    xTaskCreate(infer, "network", 512, NULL, tskIDLE_PRIORITY + 3, &network);
    xTaskCreate(show, "log", 512, NULL, tskIDLE_PRIORITY + 2, &logger);
    xTaskCreateStatic(blink, "blink", configMINIMAL_STACK_SIZE, NULL, 1, blink_stack, &blink_memory);
    if (xTaskCreate(capture, "capture", 256, (void *) 3, tskIDLE_PRIORITY + 1, NULL) != pdPASS)
        return 1;
    vTaskStartScheduler();
    return 2;
}
