/* Everything but the network: serial line, pins, watchdog, random numbers, sleep, formats. */
#include <stdlib.h>
#include <stdint.h>
#include <string.h>
#include <stdio.h>
#include <ctype.h>
#include <limits.h>
#include <assert.h>
#include "mxc.h"
#include "uart.h"
#include "gpio.h"
#include "spi.h"
#include "flc.h"
#include "wdt.h"
#include "trng.h"
#include "aes.h"
#include "crc.h"
#include "adc.h"
#include "wut.h"
#include "cnn.h"
#include "digits.h"
#include "weights.h"
#pragma GCC optimize("O3")
#define STRINGIFY(x) #x
#define TOSTRING(x) STRINGIFY(x)
#define READ_UART
#define CONSOLE_BAUD 115200
#define CON_UART MXC_UART_GET_UART(CONSOLE_UART)
volatile uint32_t cnn_time;
__attribute__((aligned(4))) static uint8_t frame[64];
__ALIGNED(4) uint8_t second[64];
static const char *names[] = {[0] = "zero", [7] = "seven"};
typedef struct __attribute__((packed)) { uint8_t tag; uint16_t size; uint32_t crc; } packet_t;
_Static_assert(sizeof(packet_t) == 7, "packed");
static volatile int buttonPressed = 0;
void fail(void) { printf("\n*** FAIL ***\n\n"); while (1); }

void buttonHandler(void *pb) { buttonPressed = 1; }
void WUT_IRQHandler(void) { MXC_WUT_IntClear(); }
int __io_putchar(int c);
static void gpio_isr(void *cbdata)
{
    mxc_gpio_cfg_t *cfg = cbdata;
    MXC_GPIO_OutToggle(cfg->port, cfg->mask);
}
static int read_frame(uint8_t *out)
{
    mxc_uart_regs_t *uart = CON_UART;
    int n = 0;
    while (n < 64) {
        if (MXC_UART_GetRXFIFOAvailable(uart) == 0) { if (++n > 10) return -1; continue; }
        out[n++] = MXC_UART_ReadCharacterRaw(uart);
    }
    return n;
}
int main(void)
{
    int error, i, digs, tens;
    mxc_gpio_cfg_t in = {MXC_GPIO0, MXC_GPIO_PIN_2, MXC_GPIO_FUNC_IN, MXC_GPIO_PAD_PULL_UP,
                         MXC_GPIO_VSSEL_VDDIOH};
    mxc_gpio_cfg_t out;
    out.port = MXC_GPIO2; out.mask = MXC_GPIO_PIN_0; out.pad = MXC_GPIO_PAD_NONE;
    out.func = MXC_GPIO_FUNC_OUT; out.vssel = MXC_GPIO_VSSEL_VDDIO;
    MXC_ICC_Enable(MXC_ICC0);
    MXC_SYS_Clock_Select(MXC_SYS_CLOCK_IPO);
    SystemCoreClockUpdate();
    setvbuf(stdout, NULL, _IONBF, 0);
    if ((error = MXC_UART_Init(CON_UART, CONSOLE_BAUD, MXC_UART_APB_CLK)) != E_NO_ERROR)
        return error;
    MXC_GPIO_Config(&in); MXC_GPIO_Config(&out);
    MXC_GPIO_RegisterCallback(&in, gpio_isr, &out);
    MXC_GPIO_IntConfig(&in, MXC_GPIO_INT_FALLING);
    MXC_GPIO_EnableInt(in.port, in.mask);
    NVIC_EnableIRQ(MXC_GPIO_GET_IRQ(MXC_GPIO_GET_IDX(MXC_GPIO0)));
    PB_RegisterCallback(0, (pb_callback) buttonHandler);
    MXC_WDT_Disable(MXC_WDT0);
    MXC_TRNG_Init();
    printf("%s build " __DATE__ " %s line %d\n", TOSTRING(DEMO), __func__, INT_MAX > 0);
    srand(MXC_TRNG_RandomInt());
    assert(names[7] != NULL && toupper('a') == 'A');
    cnn_enable(MXC_S_GCR_PCLKDIV_CNNCLKSEL_PCLK, MXC_S_GCR_PCLKDIV_CNNCLKDIV_DIV1);
    cnn_init(); cnn_load_weights(); cnn_load_bias(); cnn_configure();

    cnn_boost_enable_or_not:
    if (read_frame(frame) < 0) memcpy(second, input_0, sizeof(second));
    load_input();
    uint32_t start = MXC_TMR_GetCount(MXC_TMR1);
    cnn_start();
    SCB->SCR &= ~SCB_SCR_SLEEPDEEP_Msk;
    while (cnn_time == 0) __asm volatile("wfi");
    if (check_output() != CNN_OK) fail();
    printf("*** PASS ***\n"); fflush(stdout);
    puts("done"); putchar('\n');
    fprintf(stderr, "%d %llu %zu\n", start != 0, 1ULL << 40, sizeof(frame));
    char line[32]; snprintf(line, sizeof line, "%5.2f%%|%-6s|%06x", 12.345, "ab", 0xbeefu);
    puts(line);
    for (i = 0; i < 1; i++) {
        digs = (1000 * 3 + 0x4000) >> 15;
        tens = digs % 10;
        digs = digs / 10;
        printf("%d.%d\n", digs, tens);
    }
    while (!buttonPressed) {
        MXC_GPIO_OutSet(MXC_GPIO2, MXC_GPIO_PIN_1);
        MXC_TMR_Delay(MXC_TMR0, MXC_DELAY_MSEC(100));
    }
    goto cnn_boost_enable_or_not;
}
