/*
 * UART: what the console's sends appears, unless somebody is at the other end of it. What is received
 * comes over whichever UART the program looks at.
 */
#include "emulator.h"
#include "mxc.h"
#include "sensors.h"

#define LOOK_MICROSECONDS 100
static void send(mxc_uart_regs_t *uart, uint8_t character)
{
    if (uart != MXC_UART_GET_UART(CONSOLE_UART))
        emulator_stand_in("MXC_UART_Write");
    else if (SENSORS->line)
        SENSORS->line_byte = character;
    else
        putchar(character);
}
static int receive(void)
{
    while (!SENSORS->line_level)
        SENSORS->line_wait = 1;
    return (int) SENSORS->line_byte;
}
int emulator_received(void) { return receive(); }

WEAK int MXC_UART_Init() { return E_NO_ERROR; }
WEAK int MXC_UART_WriteCharacter(mxc_uart_regs_t *uart, uint8_t character)
{
    send(uart, character);
    return E_NO_ERROR;
}
WEAK int MXC_UART_WriteCharacterRaw(mxc_uart_regs_t *uart, uint8_t character)
{
    return MXC_UART_WriteCharacter(uart, character);
}
WEAK unsigned int MXC_UART_WriteTXFIFO(mxc_uart_regs_t *uart, const unsigned char *bytes, unsigned int length)
{
    for (unsigned int i = 0; i < length; i++)
        send(uart, bytes[i]);
    return length;
}
WEAK int MXC_UART_Write(mxc_uart_regs_t *uart, const uint8_t *bytes, int *length)
{
    MXC_UART_WriteTXFIFO(uart, bytes, (unsigned int) *length);
    return E_NO_ERROR;
}
WEAK unsigned int MXC_UART_GetTXFIFOAvailable(mxc_uart_regs_t *uart)
{
    (void) uart;
    return 8;
}
WEAK unsigned int MXC_UART_GetRXFIFOAvailable(mxc_uart_regs_t *uart)
{
    (void) uart;
    uint32_t level = SENSORS->line_level;
    if (!level && !SENSORS->line && !emulator_handlers)
        emulator_pass_time(LOOK_MICROSECONDS);
    return level;
}
WEAK int MXC_UART_ReadCharacterRaw(mxc_uart_regs_t *uart)
{
    return MXC_UART_GetRXFIFOAvailable(uart) ? (int) SENSORS->line_byte : E_UNDERFLOW;
}
WEAK int MXC_UART_ReadCharacter(mxc_uart_regs_t *uart)
{
    (void) uart;
    return receive();
}
WEAK unsigned int MXC_UART_ReadRXFIFO(mxc_uart_regs_t *uart, unsigned char *bytes, unsigned int length)
{
    unsigned int count = 0;
    while (count < length && MXC_UART_GetRXFIFOAvailable(uart))
        bytes[count++] = (unsigned char) SENSORS->line_byte;
    return count;
}
WEAK int MXC_UART_Read(mxc_uart_regs_t *uart, uint8_t *bytes, int *length)
{
    (void) uart;
    for (int i = 0; i < *length; i++)
        bytes[i] = (uint8_t) receive();
    return E_NO_ERROR;
}
/* What a terminal sends comes after the program has cleared what there was. */
WEAK int MXC_UART_ClearRXFIFO(mxc_uart_regs_t *uart) { return MXC_UART_ReadyForSleep(uart); }
WEAK int MXC_UART_ClearTXFIFO(mxc_uart_regs_t *uart) { return MXC_UART_ReadyForSleep(uart); }
WEAK int MXC_UART_SetRXThreshold(mxc_uart_regs_t *uart, unsigned int bytes)
{
    (void) uart;
    return bytes && bytes <= 8 ? E_NO_ERROR : E_BAD_PARAM;
}
WEAK int MXC_UART_EnableInt(mxc_uart_regs_t *uart, unsigned int flags)
{
    uart->int_en |= flags;
    return E_NO_ERROR;
}
WEAK int MXC_UART_DisableInt(mxc_uart_regs_t *uart, unsigned int flags)
{
    uart->int_en &= ~flags;
    return E_NO_ERROR;
}
WEAK unsigned int MXC_UART_GetFlags(mxc_uart_regs_t *uart) { return uart->int_fl; }
WEAK int MXC_UART_ClearFlags(mxc_uart_regs_t *uart, unsigned int flags)
{
    uart->int_fl = flags;
    return E_NO_ERROR;
}
WEAK int MXC_UART_ReadyForSleep(mxc_uart_regs_t *uart)
{
    (void) uart;
    return E_NO_ERROR;
}
WEAK int MXC_UART_GetActive(mxc_uart_regs_t *uart) { return MXC_UART_ReadyForSleep(uart); }

/* Transfers: what is sent goes at once */
APART(requests) static mxc_uart_req_t *requests[4];
static unsigned int uart_number(mxc_uart_regs_t *uart)
{
    unsigned int i = 0;
    while (i < 3 && MXC_UART_GET_UART(i) != uart)
        i++;
    return i;
}
static void begin(mxc_uart_req_t *request)
{
    for (request->txCnt = 0; request->txCnt < request->txLen; request->txCnt++)
        send(request->uart, request->txData[request->txCnt]);
    request->rxCnt = 0;
}
static int end(mxc_uart_req_t *request, int result)
{
    if (request->callback)
        request->callback(request, result);
    return E_NO_ERROR;
}
WEAK int MXC_UART_Transaction(mxc_uart_req_t *request)
{
    begin(request);
    for (; request->rxCnt < request->rxLen; request->rxCnt++)
        request->rxData[request->rxCnt] = (uint8_t) receive();
    return E_NO_ERROR;
}
WEAK int MXC_UART_TransactionAsync(mxc_uart_req_t *request)
{
    mxc_uart_req_t **place = &requests[uart_number(request->uart)];
    if (*place)
        return E_BUSY;
    begin(request);
    if (!request->rxLen)
        return end(request, E_NO_ERROR);
    *place = request;
    return MXC_UART_EnableInt(request->uart, MXC_F_UART_INT_EN_RX_THD);
}
WEAK int MXC_UART_AbortAsync(mxc_uart_regs_t *uart)
{
    mxc_uart_req_t **place = &requests[uart_number(uart)], *request = *place;
    *place = NULL;
    MXC_UART_DisableInt(uart, MXC_F_UART_INT_EN_RX_THD);
    return request ? end(request, E_ABORT) : E_BAD_STATE;
}
WEAK int MXC_UART_AsyncHandler(mxc_uart_regs_t *uart)
{
    mxc_uart_req_t **place = &requests[uart_number(uart)], *request = *place;
    if (!request)
        return E_INVALID;
    while (request->rxCnt < request->rxLen && SENSORS->line_level)
        request->rxData[request->rxCnt++] = (uint8_t) SENSORS->line_byte;
    if (request->rxCnt < request->rxLen)
        return E_NO_ERROR;
    *place = NULL;
    MXC_UART_DisableInt(uart, MXC_F_UART_INT_EN_RX_THD);
    return end(request, E_NO_ERROR);
}
static void copied(int request) { end((mxc_uart_req_t *) (uintptr_t) request, E_NO_ERROR); }
WEAK int MXC_UART_TransactionDMA(mxc_uart_req_t *request)
{
    begin(request);
    request->rxCnt = request->rxLen;
    if (!request->rxLen)
        return end(request, E_NO_ERROR);
    emulator_copy_bytes(request->rxData, request->rxLen, copied, (int) (uintptr_t) request);
    return E_NO_ERROR;
}

/* One byte has come: for DMA, or an interrupt. */
void emulator_copy_bytes(void *to, uint32_t count, void (*done)(int argument), int argument)
{
    SENSORS->line_to = (uint32_t) (uintptr_t) to;
    SENSORS->line_done = (uint32_t) (uintptr_t) done;
    SENSORS->line_argument = (uint32_t) argument;
    SENSORS->line_left = count;
}
void emulator_bytes_came(void (*handle)(unsigned int irq))
{
    uint32_t left = SENSORS->line_left;
    emulator_handlers++; /* time passes outside of handlers only */
    if (left) {
        uint8_t *to = (uint8_t *) (uintptr_t) SENSORS->line_to;
        for (; left && SENSORS->line_level; left--)
            *to++ = (uint8_t) SENSORS->line_byte;
        SENSORS->line_to = (uint32_t) (uintptr_t) to;
        SENSORS->line_left = left;
        if (!left)
            ((void (*)(int argument)) (uintptr_t) SENSORS->line_done)((int) SENSORS->line_argument);
    } else {
        for (unsigned int i = 0; i < 4; i++)
            if (MXC_UART_GET_UART(i)->int_en & MXC_F_UART_INT_EN_RX_THD)
                handle((unsigned int) MXC_UART_GET_IRQ(i));
    }
    emulator_handlers--;
}
