/* Receives over UARTs in all ways, and prints what it got. */
#include <stdio.h>
#include <string.h>
#include "mxc.h"
#include "uart.h"
#include "dma.h"
static uint8_t bytes[16];
static volatile int got;
static volatile uint8_t last;
static void done(mxc_uart_req_t *request, int error) { got = error == E_NO_ERROR; }
static void copied(int channel, int reason) { got = 1; }
void UART1_IRQHandler(void) { MXC_UART_AsyncHandler(MXC_UART1); }
void DMA0_IRQHandler(void) { MXC_DMA_Handler(); }
void UART2_IRQHandler(void)
{
    if (!(MXC_UART_GetFlags(MXC_UART2) & MXC_F_UART_INT_FL_RX_THD))
        return;
    last = MXC_UART2->fifo;
    MXC_UART_ClearFlags(MXC_UART2, MXC_F_UART_INT_FL_RX_THD);
    MXC_UART_DisableInt(MXC_UART2, MXC_F_UART_INT_EN_RX_THD);
    got = 1;
}
static void tell(const char *how) { printf("%s:%s\n", how, (char *) bytes); memset(bytes, 0, sizeof bytes); }
int main(void)
{
    int number = 0;
    MXC_UART_ClearRXFIFO(MXC_UART0);
    while (MXC_UART0->status & MXC_F_UART_STATUS_RX_EM)
        ;
    bytes[0] = MXC_UART0->fifo; tell("registers");
    bytes[0] = (uint8_t) MXC_UART_ReadCharacter(MXC_UART1); tell("character");
    if (MXC_UART_ReadRXFIFO(MXC_UART2, bytes, 3) == 3) tell("fifo");
    if (scanf("%d %15s", &number, (char *) bytes) == 2 && number == 12) tell("scanf");
    if (getchar() == '\n' && fgets((char *) bytes, sizeof bytes, stdin)) tell("fgets");
    mxc_uart_req_t request = {.uart = MXC_UART1, .rxData = bytes, .rxLen = 4, .callback = done};
    if (MXC_UART_Transaction(&request) == E_NO_ERROR && request.rxCnt == 4) tell("transaction");
    NVIC_EnableIRQ(UART1_IRQn);
    MXC_UART_TransactionAsync(&request);
    if (MXC_UART_TransactionAsync(&request) != E_BUSY) return 1;
    while (!got) __WFI();
    tell("async");
    got = 0;
    MXC_UART_TransactionDMA(&request);
    while (!got) __WFI();
    tell("transaction by DMA");
    got = 0;
    NVIC_EnableIRQ(DMA0_IRQn);
    int channel = MXC_DMA_AcquireChannel();
    mxc_dma_config_t config = {.ch = channel, .reqsel = MXC_DMA_REQUEST_UART0RX, .dstinc_en = 1};
    mxc_dma_srcdst_t place = {.ch = channel, .dest = bytes, .len = 4};
    MXC_DMA_ConfigChannel(config, place);
    MXC_DMA_SetCallback(channel, copied);
    MXC_DMA_SetChannelInterruptEn(channel, false, true);
    MXC_DMA_Start(channel);
    while (!got) __WFI();
    tell("DMA");
    got = 0;
    NVIC_EnableIRQ(MXC_UART_GET_IRQ(2));
    MXC_UART_EnableInt(MXC_UART2, MXC_F_UART_INT_EN_RX_THD);
    while (!got)
        ;
    bytes[0] = last; tell("interrupt");
    MXC_UART0->fifo = '!';
    while (!MXC_UART_GetRXFIFOAvailable(MXC_UART0))
        ;
    return 0;
}
