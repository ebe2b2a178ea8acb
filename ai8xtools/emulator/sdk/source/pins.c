/* Pins, lamps and buttons. Outputs are read back. Nobody is there, so that a button is pressed, or an input
   changes, only when the program waits for nothing else: ai8xtools/emulator/sensors/buttons.py. */
#include "emulator.h"
#include "mxc.h"
#include "sensors.h"

typedef struct {
    mxc_gpio_regs_t *port; /* none: a button */
    uint32_t mask;
    void (*called)(void *argument);
    void *argument;
    bool enabled;
} pin_t;
#define PINS 16
APART(pins) static pin_t pins[PINS];
static unsigned int pin_count, last_pin;

static pin_t *pin_of(mxc_gpio_regs_t *port, uint32_t mask)
{
    unsigned int i = 0;
    while (i < pin_count && (pins[i].port != port || pins[i].mask != mask))
        i++;
    if (i == PINS)
        return &pins[PINS - 1];
    pins[i].port = port;
    pins[i].mask = mask;
    pin_count += i == pin_count;
    return &pins[i];
}
/* The next of the pins that may interrupt does so. */
static void press(void)
{
    for (unsigned int i = 0; i < pin_count; i++) {
        pin_t *pin = &pins[last_pin = (last_pin + 1) % pin_count];
        if (!pin->enabled)
            continue;
        if (pin->port) {
            unsigned int port = (unsigned int) MXC_GPIO_GET_IDX(pin->port);
            pin->port->intfl |= pin->mask;
            if (NVIC_GetEnableIRQ(MXC_GPIO_GET_IRQ(port)))
                NVIC_SetPendingIRQ(MXC_GPIO_GET_IRQ(port));
            else
                MXC_GPIO_Handler(port);
        } else if (pin->called) {
            pin->called(pin->argument);
        }
        return;
    }
}

static void count_enabled(void)
{
    uint32_t count = 0;
    for (unsigned int i = 0; i < pin_count; i++)
        count += pins[i].enabled;
    SENSORS->pins = count;
    emulator_press = press;
}
static void enable_pin(mxc_gpio_regs_t *port, uint32_t mask, bool on)
{
    pin_of(port, mask)->enabled = on;
    count_enabled();
}

WEAK int MXC_GPIO_Config(const mxc_gpio_cfg_t *cfg)
{
    if (!cfg || !cfg->port)
        return E_NULL_PTR;
    if (cfg->func == MXC_GPIO_FUNC_OUT)
        cfg->port->outen_set = cfg->mask;
    if (cfg->pad == MXC_GPIO_PAD_PULL_UP || cfg->pad == MXC_GPIO_PAD_WEAK_PULL_UP)
        cfg->port->in |= cfg->mask;
    return E_NO_ERROR;
}
WEAK void MXC_GPIO_OutSet(mxc_gpio_regs_t *port, uint32_t mask)
{
    port->out_set = mask;
    port->out |= mask;
}
WEAK void MXC_GPIO_OutClr(mxc_gpio_regs_t *port, uint32_t mask)
{
    port->out_clr = mask;
    port->out &= ~mask;
}
WEAK void MXC_GPIO_OutToggle(mxc_gpio_regs_t *port, uint32_t mask) { port->out ^= mask; }
WEAK void MXC_GPIO_OutPut(mxc_gpio_regs_t *port, uint32_t mask, uint32_t value)
{
    port->out = (port->out & ~mask) | (value & mask);
}
WEAK uint32_t MXC_GPIO_OutGet(mxc_gpio_regs_t *port, uint32_t mask) { return port->out & mask; }
WEAK uint32_t MXC_GPIO_InGet(mxc_gpio_regs_t *port, uint32_t mask)
{
    emulator_stand_in("MXC_GPIO_InGet");
    return (port->in ^ (SENSORS->button ? mask : 0)) & mask;
}
WEAK void MXC_GPIO_RegisterCallback(const mxc_gpio_cfg_t *cfg, mxc_gpio_callback_fn callback, void *argument)
{
    pin_t *pin = pin_of(cfg->port, cfg->mask);
    pin->called = callback;
    pin->argument = argument;
}
WEAK int MXC_GPIO_IntConfig(const mxc_gpio_cfg_t *cfg, mxc_gpio_int_pol_t polarity)
{
    (void) polarity;
    return cfg ? E_NO_ERROR : E_NULL_PTR;
}
WEAK void MXC_GPIO_EnableInt(mxc_gpio_regs_t *port, uint32_t mask)
{
    emulator_stand_in("MXC_GPIO_EnableInt");
    port->inten |= mask;
    enable_pin(port, mask, true);
}
WEAK void MXC_GPIO_DisableInt(mxc_gpio_regs_t *port, uint32_t mask)
{
    port->inten &= ~mask;
    enable_pin(port, mask, false);
}
WEAK uint32_t MXC_GPIO_GetFlags(mxc_gpio_regs_t *port) { return port->intfl; }
WEAK void MXC_GPIO_ClearFlags(mxc_gpio_regs_t *port, uint32_t flags) { port->intfl &= ~flags; }
WEAK void MXC_GPIO_Handler(unsigned int port)
{
    mxc_gpio_regs_t *registers = MXC_GPIO_GET_GPIO(port);
    uint32_t flags = registers->intfl;
    registers->intfl = 0;
    for (unsigned int i = 0; i < pin_count; i++)
        if (pins[i].port == registers && flags & pins[i].mask && pins[i].called)
            pins[i].called(pins[i].argument);
}
WEAK void MXC_GPIO_SetWakeEn(mxc_gpio_regs_t *port, uint32_t mask) { port->wken |= mask; }
WEAK void MXC_GPIO_ClearWakeEn(mxc_gpio_regs_t *port, uint32_t mask) { port->wken &= ~mask; }

/* Lamps and buttons; they are said to exist, since most programs have them */
const unsigned int num_leds __attribute__((weak)) = 2, num_pbs __attribute__((weak)) = 2;
const mxc_gpio_cfg_t led_pin[2] __attribute__((weak)) = {
    {MXC_GPIO2, MXC_GPIO_PIN_0, MXC_GPIO_FUNC_OUT, MXC_GPIO_PAD_NONE, MXC_GPIO_VSSEL_VDDIOH, 0},
    {MXC_GPIO2, MXC_GPIO_PIN_1, MXC_GPIO_FUNC_OUT, MXC_GPIO_PAD_NONE, MXC_GPIO_VSSEL_VDDIOH, 0},
};
const mxc_gpio_cfg_t pb_pin[2] __attribute__((weak)) = {
    {MXC_GPIO0, MXC_GPIO_PIN_2, MXC_GPIO_FUNC_IN, MXC_GPIO_PAD_PULL_UP, MXC_GPIO_VSSEL_VDDIOH, 0},
    {MXC_GPIO1, MXC_GPIO_PIN_7, MXC_GPIO_FUNC_IN, MXC_GPIO_PAD_PULL_UP, MXC_GPIO_VSSEL_VDDIOH, 0},
};
WEAK int LED_Init(void) { return E_NO_ERROR; }
WEAK void LED_On(unsigned int idx) { (void) idx; }
WEAK void LED_Off(unsigned int idx) { (void) idx; }
WEAK void LED_Toggle(unsigned int idx) { (void) idx; }
WEAK int PB_Init(void) { return E_NO_ERROR; }
WEAK int PB_Get(unsigned int idx)
{
    (void) idx;
    emulator_stand_in("PB_Get");
    return (int) SENSORS->button;
}
WEAK int PB_IsPressedAny(void) { return PB_Get(0); }
WEAK int PB_RegisterCallback(unsigned int idx, pb_callback callback)
{
    pin_t *pin = pin_of(NULL, 1u << (idx & 31));
    emulator_stand_in("PB_RegisterCallback");
    pin->called = callback;
    pin->argument = (void *) (uintptr_t) idx;
    pin->enabled = callback != NULL;
    count_enabled();
    return E_NO_ERROR;
}
WEAK void PB_IntEnable(unsigned int idx) { enable_pin(NULL, 1u << (idx & 31), true); }
WEAK void PB_IntDisable(unsigned int idx) { enable_pin(NULL, 1u << (idx & 31), false); }
WEAK void PB_IntClear(unsigned int idx) { (void) idx; }
