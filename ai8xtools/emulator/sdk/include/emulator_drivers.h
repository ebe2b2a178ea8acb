/*
 * Drivers of the vendor's SDK: types and constants, and the functions that do something here.
 * Functions that are not declared do nothing; the emulator stands in for them and says so.
 * Parameter lists are left open where they differ between generations of the SDK.
 */
#ifndef EMULATOR_DRIVERS_H
#define EMULATOR_DRIVERS_H

#include "emulator_registers.h"

/* Error numbers */
#define E_NO_ERROR 0
#define E_SUCCESS 0
#define E_NULL_PTR (-1)
#define E_NO_DEVICE (-2)
#define E_BAD_PARAM (-3)
#define E_INVALID (-4)
#define E_UNINITIALIZED (-5)
#define E_BUSY (-6)
#define E_BAD_STATE (-7)
#define E_UNKNOWN (-8)
#define E_COMM_ERR (-9)
#define E_TIME_OUT (-10)
#define E_NO_RESPONSE (-11)
#define E_OVERFLOW (-12)
#define E_UNDERFLOW (-13)
#define E_NONE_AVAIL (-14)
#define E_SHUTDOWN (-15)
#define E_ABORT (-16)
#define E_NOT_SUPPORTED (-17)
#define E_FAIL (-255)
#define MXC_ASSERT(condition) assert(condition)
#define MXC_ASSERT_FAIL() assert(0)
#define MXC_SETFIELD(reg, mask, value) ((reg) = ((reg) & ~(mask)) | ((value) & (mask)))
typedef void (*mxc_callback_t)(void *request, int error);

/* Pins */
typedef enum {
    MXC_GPIO_FUNC_IN, MXC_GPIO_FUNC_OUT, MXC_GPIO_FUNC_ALT1, MXC_GPIO_FUNC_ALT2, MXC_GPIO_FUNC_ALT3,
    MXC_GPIO_FUNC_ALT4
} mxc_gpio_func_t;
typedef enum {
    MXC_GPIO_PAD_NONE, MXC_GPIO_PAD_PULL_UP, MXC_GPIO_PAD_PULL_DOWN, MXC_GPIO_PAD_WEAK_PULL_UP,
    MXC_GPIO_PAD_WEAK_PULL_DOWN
} mxc_gpio_pad_t;
typedef enum { MXC_GPIO_VSSEL_VDDIO, MXC_GPIO_VSSEL_VDDIOH } mxc_gpio_vssel_t;
typedef enum {
    MXC_GPIO_DRVSTR_0, MXC_GPIO_DRVSTR_1, MXC_GPIO_DRVSTR_2, MXC_GPIO_DRVSTR_3
} mxc_gpio_drvstr_t;
typedef enum { MXC_GPIO_INT_LEVEL, MXC_GPIO_INT_EDGE } mxc_gpio_int_mode_t;
typedef enum {
    MXC_GPIO_INT_FALLING, MXC_GPIO_INT_HIGH, MXC_GPIO_INT_LOW, MXC_GPIO_INT_RISING, MXC_GPIO_INT_BOTH
} mxc_gpio_int_pol_t;
typedef struct {
    mxc_gpio_regs_t *port;
    uint32_t mask;
    mxc_gpio_func_t func;
    mxc_gpio_pad_t pad;
    mxc_gpio_vssel_t vssel;
    mxc_gpio_drvstr_t drvstr;
} mxc_gpio_cfg_t;
typedef void (*mxc_gpio_callback_fn)(void *argument);
#define MXC_GPIO_PIN_0 (1u << 0)
#define MXC_GPIO_PIN_1 (1u << 1)
#define MXC_GPIO_PIN_2 (1u << 2)
#define MXC_GPIO_PIN_3 (1u << 3)
#define MXC_GPIO_PIN_4 (1u << 4)
#define MXC_GPIO_PIN_5 (1u << 5)
#define MXC_GPIO_PIN_6 (1u << 6)
#define MXC_GPIO_PIN_7 (1u << 7)
#define MXC_GPIO_PIN_8 (1u << 8)
#define MXC_GPIO_PIN_9 (1u << 9)
#define MXC_GPIO_PIN_10 (1u << 10)
#define MXC_GPIO_PIN_11 (1u << 11)
#define MXC_GPIO_PIN_12 (1u << 12)
#define MXC_GPIO_PIN_13 (1u << 13)
#define MXC_GPIO_PIN_14 (1u << 14)
#define MXC_GPIO_PIN_15 (1u << 15)
#define MXC_GPIO_PIN_16 (1u << 16)
#define MXC_GPIO_PIN_17 (1u << 17)
#define MXC_GPIO_PIN_18 (1u << 18)
#define MXC_GPIO_PIN_19 (1u << 19)
#define MXC_GPIO_PIN_20 (1u << 20)
#define MXC_GPIO_PIN_21 (1u << 21)
#define MXC_GPIO_PIN_22 (1u << 22)
#define MXC_GPIO_PIN_23 (1u << 23)
#define MXC_GPIO_PIN_24 (1u << 24)
#define MXC_GPIO_PIN_25 (1u << 25)
#define MXC_GPIO_PIN_26 (1u << 26)
#define MXC_GPIO_PIN_27 (1u << 27)
#define MXC_GPIO_PIN_28 (1u << 28)
#define MXC_GPIO_PIN_29 (1u << 29)
#define MXC_GPIO_PIN_30 (1u << 30)
#define MXC_GPIO_PIN_31 (1u << 31)
int MXC_GPIO_Config(const mxc_gpio_cfg_t *cfg);
void MXC_GPIO_OutSet(mxc_gpio_regs_t *port, uint32_t mask);
void MXC_GPIO_OutClr(mxc_gpio_regs_t *port, uint32_t mask);
void MXC_GPIO_OutToggle(mxc_gpio_regs_t *port, uint32_t mask);
void MXC_GPIO_OutPut(mxc_gpio_regs_t *port, uint32_t mask, uint32_t value);
uint32_t MXC_GPIO_OutGet(mxc_gpio_regs_t *port, uint32_t mask);
uint32_t MXC_GPIO_InGet(mxc_gpio_regs_t *port, uint32_t mask);
#define MXC_GPIO_GET_IDX(p) \
    ((p) == MXC_GPIO0 ? 0 : (p) == MXC_GPIO1 ? 1 : (p) == MXC_GPIO2 ? 2 : (p) == MXC_GPIO3 ? 3 : -1)
#ifdef __riscv
#define MXC_GPIO_GET_IRQ(i) ((i) == 0 ? GPIO0_IRQn : (i) == 1 ? GPIO1_IRQn : GPIO2_IRQn)
#else
#define MXC_GPIO_GET_IRQ(i) ((IRQn_Type) (GPIO0_IRQn + (i)))
#endif
void MXC_GPIO_RegisterCallback(const mxc_gpio_cfg_t *cfg, mxc_gpio_callback_fn callback, void *argument);
int MXC_GPIO_IntConfig(const mxc_gpio_cfg_t *cfg, mxc_gpio_int_pol_t polarity);
void MXC_GPIO_EnableInt(mxc_gpio_regs_t *port, uint32_t mask);
void MXC_GPIO_DisableInt(mxc_gpio_regs_t *port, uint32_t mask);
uint32_t MXC_GPIO_GetFlags(mxc_gpio_regs_t *port);
void MXC_GPIO_ClearFlags(mxc_gpio_regs_t *port, uint32_t flags);
void MXC_GPIO_Handler(unsigned int port);
void MXC_GPIO_SetWakeEn(mxc_gpio_regs_t *port, uint32_t mask);
void MXC_GPIO_ClearWakeEn(mxc_gpio_regs_t *port, uint32_t mask);

/* Board: lamps, buttons, console */
#define LED1 0
#define LED2 1
#define LED_RED 0
#define LED_GREEN 1
#define LED_BLUE 2
#define LED_OFF 0
#define LED_ON 1
#define BUTTON_NOT_PRESSED 0
#define BUTTON_PRESSED 1
#define CONSOLE_UART 0
#define CONSOLE_BAUD 115200
typedef void (*pb_callback)(void *argument);
extern const unsigned int num_leds, num_pbs;
extern const mxc_gpio_cfg_t led_pin[], pb_pin[];
int LED_Init(void);
void LED_On(unsigned int idx);
void LED_Off(unsigned int idx);
void LED_Toggle(unsigned int idx);
int PB_Init(void);
int PB_Get(unsigned int idx);
int PB_RegisterCallback(unsigned int idx, pb_callback callback);
void PB_IntEnable(unsigned int idx);
void PB_IntDisable(unsigned int idx);
void PB_IntClear(unsigned int idx);
int PB_IsPressedAny(void);
int Board_Init(void);
int Console_Init(void);
#define POWER_OFF 0
#define POWER_ON 1
int Camera_Power(int on);
int Microphone_Power(int on);

/* Clocks */
typedef enum {
    MXC_SYS_CLOCK_IPO, MXC_SYS_CLOCK_ISO, MXC_SYS_CLOCK_IPLL, MXC_SYS_CLOCK_IBRO, MXC_SYS_CLOCK_ERFO,
    MXC_SYS_CLOCK_INRO, MXC_SYS_CLOCK_ERTCO, MXC_SYS_CLOCK_EBO, MXC_SYS_CLOCK_EXTCLK
} mxc_sys_system_clock_t;
typedef enum {
    MXC_SYS_PERIPH_CLOCK_GPIO0 = 0, MXC_SYS_PERIPH_CLOCK_GPIO1 = 1, MXC_SYS_PERIPH_CLOCK_DMA = 5,
    MXC_SYS_PERIPH_CLOCK_SPI1 = 6, MXC_SYS_PERIPH_CLOCK_UART0 = 9, MXC_SYS_PERIPH_CLOCK_UART1 = 10,
    MXC_SYS_PERIPH_CLOCK_I2C0 = 13, MXC_SYS_PERIPH_CLOCK_TMR0 = 15, MXC_SYS_PERIPH_CLOCK_TMR1 = 16,
    MXC_SYS_PERIPH_CLOCK_TMR2 = 17, MXC_SYS_PERIPH_CLOCK_TMR3 = 18, MXC_SYS_PERIPH_CLOCK_ADC = 23,
    MXC_SYS_PERIPH_CLOCK_CNN = 25, MXC_SYS_PERIPH_CLOCK_I2C1 = 28, MXC_SYS_PERIPH_CLOCK_PT = 29,
    MXC_SYS_PERIPH_CLOCK_UART2 = 33, MXC_SYS_PERIPH_CLOCK_TRNG = 34, MXC_SYS_PERIPH_CLOCK_SMPHR = 41,
    MXC_SYS_PERIPH_CLOCK_SDHC = 42, MXC_SYS_PERIPH_CLOCK_OWIRE = 45, MXC_SYS_PERIPH_CLOCK_CRC = 46,
    MXC_SYS_PERIPH_CLOCK_AES = 47, MXC_SYS_PERIPH_CLOCK_SPI0 = 48, MXC_SYS_PERIPH_CLOCK_PCIF = 50,
    MXC_SYS_PERIPH_CLOCK_I2S = 55, MXC_SYS_PERIPH_CLOCK_I2C2 = 56, MXC_SYS_PERIPH_CLOCK_WDT0 = 59,
    MXC_SYS_PERIPH_CLOCK_CPU1 = 63
} mxc_sys_periph_clock_t;
#define MXC_SYS_PERIPH_CLOCK_CAMERAIF MXC_SYS_PERIPH_CLOCK_PCIF
/* Names of the first SDKs */
#define MXC_SYS_PERIPH_CLOCK_AI MXC_SYS_PERIPH_CLOCK_CNN
#define SYS_PERIPH_CLOCK_AI MXC_SYS_PERIPH_CLOCK_CNN
#define SYS_PERIPH_CLOCK_CNN MXC_SYS_PERIPH_CLOCK_CNN
#define SYS_ClockEnable MXC_SYS_ClockEnable
#define SYS_ClockDisable MXC_SYS_ClockDisable
typedef enum {
    MXC_SYS_RESET0_DMA = 0, MXC_SYS_RESET0_SYS = 31, MXC_SYS_RESET1_SMPHR = 48, MXC_SYS_RESET1_CPU1 = 63
} mxc_sys_reset_t;
int MXC_SYS_Clock_Select(mxc_sys_system_clock_t clock, ...);
int MXC_SYS_ClockSourceEnable(mxc_sys_system_clock_t clock, ...);
int MXC_SYS_ClockSourceDisable(mxc_sys_system_clock_t clock, ...);
void MXC_SYS_ClockEnable(mxc_sys_periph_clock_t clock);
void MXC_SYS_ClockDisable(mxc_sys_periph_clock_t clock);
int MXC_SYS_IsClockEnabled(mxc_sys_periph_clock_t clock);
void MXC_SYS_Reset_Periph(mxc_sys_reset_t reset);
extern uint32_t PeripheralClock;
#define MXC_F_GCR_CLKCTRL_SYSCLK_SEL_POS 9
#define MXC_F_GCR_CLKCTRL_SYSCLK_SEL (7u << 9)
#define MXC_F_GCR_CLKCTRL_SYSCLK_DIV (7u << 6)
#define MXC_F_GCR_CLKCTRL_SYSCLK_RDY (1u << 13)
#define MXC_F_GCR_CLKCTRL_ERFO_EN (1u << 16)
#define MXC_F_GCR_CLKCTRL_ERTCO_EN (1u << 17)
#define MXC_F_GCR_CLKCTRL_ISO_EN (1u << 18)
#define MXC_F_GCR_CLKCTRL_IPO_EN (1u << 19)
#define MXC_F_GCR_CLKCTRL_IBRO_EN (1u << 20)
#define MXC_F_GCR_CLKCTRL_ERFO_RDY (1u << 24)
#define MXC_F_GCR_CLKCTRL_ERTCO_RDY (1u << 25)
#define MXC_F_GCR_CLKCTRL_ISO_RDY (1u << 26)
#define MXC_F_GCR_CLKCTRL_IPO_RDY (1u << 27)
#define MXC_F_GCR_CLKCTRL_IBRO_RDY (1u << 28)
#define MXC_F_GCR_CLKCTRL_INRO_RDY (1u << 29)
#define MXC_S_GCR_CLKCTRL_SYSCLK_SEL_ISO (0u << 9)
#define MXC_S_GCR_CLKCTRL_SYSCLK_SEL_ERFO (2u << 9)
#define MXC_S_GCR_CLKCTRL_SYSCLK_SEL_INRO (3u << 9)
#define MXC_S_GCR_CLKCTRL_SYSCLK_SEL_IPO (4u << 9)
#define MXC_S_GCR_CLKCTRL_SYSCLK_SEL_IBRO (5u << 9)
#define MXC_S_GCR_CLKCTRL_SYSCLK_SEL_ERTCO (6u << 9)
#ifdef TARGET_MAX78002
#define IPO_FREQ 120000000
#else
#define IPO_FREQ 100000000
#endif
#define ISO_FREQ 60000000
#define IBRO_FREQ 7372800
#define HIRC_FREQ 60000000

/* Caches */
void MXC_ICC_Enable(mxc_icc_regs_t *icc);
void MXC_ICC_Disable(mxc_icc_regs_t *icc);
void MXC_ICC_Flush(mxc_icc_regs_t *icc);

/* Sleep: until an interrupt comes */
void MXC_LP_EnterSleepMode(void);
void MXC_LP_EnterDeepSleepMode(void);
void MXC_LP_EnterLowPowerMode(void);
void MXC_LP_EnterMicroPowerMode(void);
void MXC_LP_EnterStandbyMode(void);
void MXC_LP_EnterBackupMode(EMULATOR_OPEN);
void MXC_LP_EnterPowerDownMode(void);

/* Waiting and time */
#define SEC(s) (((uint32_t) (s)) * 1000000UL)
#define MSEC(ms) ((ms) * 1000UL)
#define USEC(us) (us)
#define MXC_DELAY_SEC(s) SEC(s)
#define MXC_DELAY_MSEC(ms) MSEC(ms)
#define MXC_DELAY_USEC(us) (us)
typedef void (*mxc_delay_complete_t)(int result);
int MXC_Delay(uint32_t us);
int MXC_DelayAsync(EMULATOR_OPEN);
int MXC_DelayCheck(void);
void MXC_DelayAbort(void);
void MXC_DelayHandler(void);
typedef enum {
    TMR_MODE_ONESHOT, TMR_MODE_CONTINUOUS, TMR_MODE_COUNTER, TMR_MODE_PWM, TMR_MODE_CAPTURE,
    TMR_MODE_COMPARE, TMR_MODE_GATED, TMR_MODE_CAPTURE_COMPARE
} mxc_tmr_mode_t;
typedef enum {
    TMR_PRES_1 = 0, TMR_PRES_2 = 1 << 3, TMR_PRES_4 = 2 << 3, TMR_PRES_8 = 3 << 3, TMR_PRES_16 = 4 << 3,
    TMR_PRES_32 = 5 << 3, TMR_PRES_64 = 6 << 3, TMR_PRES_128 = 7 << 3, TMR_PRES_256 = 8 << 3,
    TMR_PRES_512 = 9 << 3, TMR_PRES_1024 = 10 << 3, TMR_PRES_2048 = 11 << 3, TMR_PRES_4096 = 12 << 3
} mxc_tmr_pres_t;
typedef enum { TMR_BIT_MODE_32, TMR_BIT_MODE_16A, TMR_BIT_MODE_16B } mxc_tmr_bit_mode_t;
typedef enum {
    MXC_TMR_APB_CLK, MXC_TMR_EXT_CLK, MXC_TMR_60M_CLK, MXC_TMR_8M_CLK, MXC_TMR_32K_CLK, MXC_TMR_8K_CLK,
    MXC_TMR_ISO_CLK, MXC_TMR_IBRO_CLK, MXC_TMR_ERTCO_CLK, MXC_TMR_INRO_CLK
} mxc_tmr_clock_t;
typedef enum {
    TMR_UNIT_NANOSEC, TMR_UNIT_MICROSEC, TMR_UNIT_MILLISEC, TMR_UNIT_SEC,
    MXC_TMR_UNIT_NANOSEC = TMR_UNIT_NANOSEC, MXC_TMR_UNIT_MICROSEC = TMR_UNIT_MICROSEC,
    MXC_TMR_UNIT_MILLISEC = TMR_UNIT_MILLISEC, MXC_TMR_UNIT_SEC = TMR_UNIT_SEC
} mxc_tmr_unit_t;
typedef struct {
    mxc_tmr_pres_t pres;
    mxc_tmr_mode_t mode;
    mxc_tmr_bit_mode_t bitMode;
    mxc_tmr_clock_t clock;
    uint32_t cmp_cnt;
    unsigned int pol;
} mxc_tmr_cfg_t;
void MXC_TMR_Delay(mxc_tmr_regs_t *tmr, uint32_t us, ...);
void MXC_TMR_SW_Start(mxc_tmr_regs_t *tmr);
unsigned int MXC_TMR_SW_Stop(mxc_tmr_regs_t *tmr);
int MXC_TMR_Init(mxc_tmr_regs_t *tmr, mxc_tmr_cfg_t *cfg, ...);
void MXC_TMR_Shutdown(mxc_tmr_regs_t *tmr);
void MXC_TMR_Start(mxc_tmr_regs_t *tmr);
void MXC_TMR_Stop(mxc_tmr_regs_t *tmr);
void MXC_TMR_SetCompare(mxc_tmr_regs_t *tmr, uint32_t compare);
uint32_t MXC_TMR_GetCompare(mxc_tmr_regs_t *tmr);
void MXC_TMR_SetCount(mxc_tmr_regs_t *tmr, uint32_t count);
uint32_t MXC_TMR_GetCount(mxc_tmr_regs_t *tmr);
uint32_t MXC_TMR_GetFlags(mxc_tmr_regs_t *tmr);
void MXC_TMR_ClearFlags(mxc_tmr_regs_t *tmr);
void MXC_TMR_EnableInt(mxc_tmr_regs_t *tmr);
void MXC_TMR_DisableInt(mxc_tmr_regs_t *tmr);
void MXC_TMR_EnableWakeup(mxc_tmr_regs_t *tmr, ...);
void MXC_TMR_DisableWakeup(mxc_tmr_regs_t *tmr, ...);
int MXC_TMR_GetTicks(mxc_tmr_regs_t *tmr, uint32_t time, mxc_tmr_unit_t units, uint32_t *ticks);
int MXC_TMR_GetTime(mxc_tmr_regs_t *tmr, uint32_t ticks, uint32_t *time, mxc_tmr_unit_t *units);
void MXC_TMR_TO_Start(mxc_tmr_regs_t *tmr, unsigned long us);
int MXC_TMR_TO_Check(mxc_tmr_regs_t *tmr);
unsigned int MXC_TMR_TO_Elapsed(mxc_tmr_regs_t *tmr);
unsigned int MXC_TMR_TO_Remaining(mxc_tmr_regs_t *tmr);
void MXC_TMR_TO_Stop(mxc_tmr_regs_t *tmr);
void MXC_TMR_TO_Clear(mxc_tmr_regs_t *tmr);
#define MXC_RTC_MAX_SSEC 4096
#define MXC_F_RTC_CTRL_TOD_ALARM_IE (1u << 1)
#define MXC_F_RTC_CTRL_SSEC_ALARM_IE (1u << 2)
#define MXC_F_RTC_CTRL_RDY_IE (1u << 5)
#define MXC_F_RTC_CTRL_TOD_ALARM (1u << 6)
#define MXC_F_RTC_CTRL_SSEC_ALARM (1u << 7)
#define MXC_RTC_INT_EN_LONG MXC_F_RTC_CTRL_TOD_ALARM_IE
#define MXC_RTC_INT_EN_SHORT MXC_F_RTC_CTRL_SSEC_ALARM_IE
#define MXC_RTC_INT_EN_READY MXC_F_RTC_CTRL_RDY_IE
#define MXC_RTC_INT_FL_LONG MXC_F_RTC_CTRL_TOD_ALARM
#define MXC_RTC_INT_FL_SHORT MXC_F_RTC_CTRL_SSEC_ALARM
int MXC_RTC_Init(EMULATOR_OPEN);
int MXC_RTC_SetTimeofdayAlarm(uint32_t second);
int MXC_RTC_SetSubsecondAlarm(uint32_t count);
int MXC_RTC_EnableInt(uint32_t mask);
int MXC_RTC_DisableInt(uint32_t mask);
int MXC_RTC_GetFlags(void);
int MXC_RTC_ClearFlags(int flags);
int MXC_RTC_GetBusyFlag(void);
void MXC_LP_EnableRTCAlarmWakeup(void);
void MXC_LP_DisableRTCAlarmWakeup(void);
int MXC_RTC_Start(void);
int MXC_RTC_Stop(void);
int MXC_RTC_GetSecond(void);
int MXC_RTC_GetSubSecond(void);
int MXC_RTC_GetSeconds(uint32_t *seconds);
int MXC_RTC_GetSubSeconds(uint32_t *subseconds);
int MXC_RTC_GetTime(uint32_t *seconds, uint32_t *subseconds);

/* Wake-up timer, 32,768 ticks a second, and watchdog */
typedef enum {
    MXC_WUT_PRES_1, MXC_WUT_PRES_2, MXC_WUT_PRES_4, MXC_WUT_PRES_8, MXC_WUT_PRES_16, MXC_WUT_PRES_32,
    MXC_WUT_PRES_64, MXC_WUT_PRES_128, MXC_WUT_PRES_256, MXC_WUT_PRES_512, MXC_WUT_PRES_1024,
    MXC_WUT_PRES_2048, MXC_WUT_PRES_4096
} mxc_wut_pres_t;
typedef enum { MXC_WUT_MODE_ONESHOT, MXC_WUT_MODE_CONTINUOUS, MXC_WUT_MODE_COUNTER } mxc_wut_mode_t;
typedef enum {
    MXC_WUT_UNIT_NANOSEC, MXC_WUT_UNIT_MICROSEC, MXC_WUT_UNIT_MILLISEC, MXC_WUT_UNIT_SEC
} mxc_wut_unit_t;
typedef struct {
    mxc_wut_mode_t mode;
    uint32_t cmp_cnt;
} mxc_wut_cfg_t;
void MXC_WUT_Init(mxc_wut_pres_t pres);
void MXC_WUT_Config(const mxc_wut_cfg_t *cfg);
void MXC_WUT_Enable(void);
void MXC_WUT_Disable(void);
int MXC_WUT_GetTicks(uint32_t time, mxc_wut_unit_t units, uint32_t *ticks);
int MXC_WUT_GetTime(uint32_t ticks, uint32_t *time, mxc_wut_unit_t *units);
uint32_t MXC_WUT_GetCount(void);
void MXC_WUT_ClearFlags(void);
void MXC_WUT_IntClear(void);
uint32_t MXC_WUT_GetFlags(void);
void MXC_WUT_Delay_MS(uint32_t ms);
void MXC_LP_EnableWUTAlarmWakeup(void);
void MXC_LP_DisableWUTAlarmWakeup(void);
typedef enum { MXC_WDT_COMPATIBILITY, MXC_WDT_WINDOWED } mxc_wdt_mode_t;
typedef enum {
    MXC_WDT_PERIOD_2_31, MXC_WDT_PERIOD_2_30, MXC_WDT_PERIOD_2_29, MXC_WDT_PERIOD_2_28,
    MXC_WDT_PERIOD_2_27, MXC_WDT_PERIOD_2_26, MXC_WDT_PERIOD_2_25, MXC_WDT_PERIOD_2_24,
    MXC_WDT_PERIOD_2_23, MXC_WDT_PERIOD_2_22, MXC_WDT_PERIOD_2_21, MXC_WDT_PERIOD_2_20,
    MXC_WDT_PERIOD_2_19, MXC_WDT_PERIOD_2_18, MXC_WDT_PERIOD_2_17, MXC_WDT_PERIOD_2_16
} mxc_wdt_period_t;
typedef struct {
    mxc_wdt_mode_t mode;
    mxc_wdt_period_t upperResetPeriod, lowerResetPeriod, upperIntPeriod, lowerIntPeriod;
} mxc_wdt_cfg_t;
int MXC_WDT_Init(EMULATOR_OPEN);
void MXC_WDT_SetResetPeriod(EMULATOR_OPEN);
void MXC_WDT_SetIntPeriod(EMULATOR_OPEN);
void MXC_WDT_Enable(mxc_wdt_regs_t *wdt);
void MXC_WDT_Disable(mxc_wdt_regs_t *wdt);
void MXC_WDT_EnableInt(mxc_wdt_regs_t *wdt);
void MXC_WDT_EnableReset(mxc_wdt_regs_t *wdt);
void MXC_WDT_ResetTimer(mxc_wdt_regs_t *wdt);
int MXC_WDT_GetResetFlag(mxc_wdt_regs_t *wdt);
void MXC_WDT_ClearResetFlag(mxc_wdt_regs_t *wdt);
int MXC_WDT_GetIntFlag(mxc_wdt_regs_t *wdt);
void MXC_WDT_ClearIntFlag(mxc_wdt_regs_t *wdt);

/* UART. What is sent to the console appears there. */
typedef enum { MXC_UART_PARITY_DISABLE, MXC_UART_PARITY_EVEN_0, MXC_UART_PARITY_ODD_0 } mxc_uart_parity_t;
typedef enum { MXC_UART_STOP_1, MXC_UART_STOP_2 } mxc_uart_stop_t;
typedef enum { MXC_UART_FLOW_DIS, MXC_UART_FLOW_EN } mxc_uart_flow_t;
typedef enum {
    MXC_UART_APB_CLK, MXC_UART_EXT_CLK, MXC_UART_IBRO_CLK, MXC_UART_ERFO_CLK, MXC_UART_ERTCO_CLK,
    MXC_UART_INRO_CLK
} mxc_uart_clock_t;
typedef struct mxc_uart_req_t mxc_uart_req_t;
typedef void (*mxc_uart_complete_cb_t)(mxc_uart_req_t *request, int result);
struct mxc_uart_req_t {
    mxc_uart_regs_t *uart;
    uint8_t *txData, *rxData;
    uint32_t txLen, rxLen;
    volatile uint32_t txCnt, rxCnt;
    mxc_uart_complete_cb_t callback;
};
int MXC_UART_Init(EMULATOR_OPEN);
int MXC_UART_WriteCharacter(mxc_uart_regs_t *uart, uint8_t character);
int MXC_UART_WriteCharacterRaw(mxc_uart_regs_t *uart, uint8_t character);
int MXC_UART_Write(mxc_uart_regs_t *uart, const uint8_t *bytes, int *length);
unsigned int MXC_UART_WriteTXFIFO(mxc_uart_regs_t *uart, const unsigned char *bytes, unsigned int length);
int MXC_UART_ReadCharacter(mxc_uart_regs_t *uart);
int MXC_UART_ReadCharacterRaw(mxc_uart_regs_t *uart);
unsigned int MXC_UART_GetTXFIFOAvailable(mxc_uart_regs_t *uart);
unsigned int MXC_UART_GetRXFIFOAvailable(mxc_uart_regs_t *uart);
unsigned int MXC_UART_ReadRXFIFO(mxc_uart_regs_t *uart, unsigned char *bytes, unsigned int length);
int MXC_UART_Read(mxc_uart_regs_t *uart, uint8_t *bytes, int *length);
int MXC_UART_ClearRXFIFO(mxc_uart_regs_t *uart);
int MXC_UART_ClearTXFIFO(mxc_uart_regs_t *uart);
int MXC_UART_SetRXThreshold(mxc_uart_regs_t *uart, unsigned int bytes);
int MXC_UART_EnableInt(mxc_uart_regs_t *uart, unsigned int flags);
int MXC_UART_DisableInt(mxc_uart_regs_t *uart, unsigned int flags);
unsigned int MXC_UART_GetFlags(mxc_uart_regs_t *uart);
int MXC_UART_ClearFlags(mxc_uart_regs_t *uart, unsigned int flags);
int MXC_UART_AbortAsync(mxc_uart_regs_t *uart);
int MXC_UART_AsyncHandler(mxc_uart_regs_t *uart);
int MXC_UART_Transaction(mxc_uart_req_t *request);
int MXC_UART_TransactionAsync(mxc_uart_req_t *request);
int MXC_UART_TransactionDMA(mxc_uart_req_t *request);
int MXC_UART_ReadyForSleep(mxc_uart_regs_t *uart);
int MXC_UART_GetActive(mxc_uart_regs_t *uart);

/* Other serial interfaces: transfers end at once; nothing answers */
typedef enum { SPI_WIDTH_3WIRE, SPI_WIDTH_STANDARD, SPI_WIDTH_DUAL, SPI_WIDTH_QUAD } mxc_spi_width_t;
typedef enum { SPI_MODE_0, SPI_MODE_1, SPI_MODE_2, SPI_MODE_3 } mxc_spi_mode_t;
typedef struct {
    bool clock, ss0, ss1, ss2, miso, mosi, sdio2, sdio3;
    mxc_gpio_vssel_t vddioh;
    mxc_gpio_drvstr_t drvstr;
} mxc_spi_pins_t;
typedef struct mxc_spi_req_t mxc_spi_req_t;
typedef void (*spi_complete_cb_t)(void *request, int result);
struct mxc_spi_req_t {
    mxc_spi_regs_t *spi;
    int ssIdx, ssDeassert;
    uint8_t *txData, *rxData;
    uint32_t txLen, rxLen, txCnt, rxCnt;
    spi_complete_cb_t completeCB;
};
int MXC_SPI_MasterTransaction(mxc_spi_req_t *request);
int MXC_SPI_MasterTransactionAsync(mxc_spi_req_t *request);
int MXC_SPI_MasterTransactionDMA(EMULATOR_OPEN);
typedef struct mxc_i2c_req_t mxc_i2c_req_t;
typedef void (*mxc_i2c_complete_cb_t)(mxc_i2c_req_t *request, int result);
struct mxc_i2c_req_t {
    mxc_i2c_regs_t *i2c;
    unsigned int addr;
    unsigned char *tx_buf;
    unsigned int tx_len;
    unsigned char *rx_buf;
    unsigned int rx_len;
    int restart;
    mxc_i2c_complete_cb_t callback;
};
#define MXC_I2C_STD_MODE 100000
#define MXC_I2C_FAST_SPEED 400000
int MXC_I2C_Init(mxc_i2c_regs_t *i2c, int masterMode, unsigned int slaveAddr);
int MXC_I2C_SetFrequency(mxc_i2c_regs_t *i2c, unsigned int hz);
int MXC_I2C_MasterTransaction(mxc_i2c_req_t *req);
int MXC_I2C_MasterTransactionAsync(mxc_i2c_req_t *req);
void MXC_I2C_AsyncHandler(mxc_i2c_regs_t *i2c);

/* I2S: a microphone */
typedef enum {
    MXC_I2S_WSIZE_BYTE, MXC_I2S_WSIZE_HALFWORD, MXC_I2S_WSIZE_WORD,
    MXC_I2S_DATASIZE_BYTE = MXC_I2S_WSIZE_BYTE, MXC_I2S_DATASIZE_HALFWORD = MXC_I2S_WSIZE_HALFWORD,
    MXC_I2S_DATASIZE_WORD = MXC_I2S_WSIZE_WORD
} mxc_i2s_wsize_t;
#define MXC_I2S_SAMPLESIZE_EIGHT 8
#define MXC_I2S_SAMPLESIZE_SIXTEEN 16
#define MXC_I2S_SAMPLESIZE_TWENTY 20
#define MXC_I2S_SAMPLESIZE_TWENTYFOUR 24
#define MXC_I2S_SAMPLESIZE_THIRTYTWO 32
typedef uint8_t mxc_i2s_samplesize_t;
typedef enum { MXC_I2S_MSB_JUSTIFY, MXC_I2S_LSB_JUSTIFY } mxc_i2s_justify_t;
typedef enum { MXC_I2S_ADJUST_LEFT, MXC_I2S_ADJUST_RIGHT } mxc_i2s_adjust_t;
typedef enum { MXC_I2S_STEREO, MXC_I2S_MONO_LEFT_CH = 2, MXC_I2S_MONO_RIGHT_CH = 3 } mxc_i2s_stereo_t;
typedef enum { MXC_I2S_POL_NORMAL, MXC_I2S_POL_INVERSE } mxc_i2s_polarity_t;
typedef enum { MXC_I2S_MSB_FIRST, MXC_I2S_LSB_FIRST } mxc_i2s_bitorder_t;
typedef enum {
    MXC_I2S_INTERNAL_SCK_WS_0, MXC_I2S_INTERNAL_SCK_WS_1, MXC_I2S_EXTERNAL_SCK_INTERNAL_WS,
    MXC_I2S_EXTERNAL_SCK_EXTERNAL_WS
} mxc_i2s_ch_mode_t;
typedef enum { MXC_I2S_CLKSRC_ERFO, MXC_I2S_CLKSRC_EXT } mxc_i2s_clksrc_t;
typedef enum { MXC_I2S_WSPOL_NORMAL, MXC_I2S_WSPOL_INVERSE } mxc_i2s_wspol_t;
typedef struct {
    mxc_i2s_ch_mode_t channelMode;
    mxc_i2s_stereo_t stereoMode;
    mxc_i2s_wsize_t wordSize;
    mxc_i2s_justify_t justify;
    mxc_i2s_bitorder_t bitOrder;
    mxc_i2s_polarity_t wsPolarity;
    mxc_i2s_samplesize_t sampleSize;
    uint16_t clkdiv;
    mxc_i2s_adjust_t adjust;
    uint8_t bitsWord;
    mxc_i2s_clksrc_t clkSrc;
    void *rawData, *txData, *rxData;
    uint32_t length;
} mxc_i2s_req_t;
int MXC_I2S_Init(mxc_i2s_req_t *req);
int MXC_I2S_Shutdown(void);
void MXC_I2S_RXEnable(void);
void MXC_I2S_RXDisable(void);
int MXC_I2S_SetRXThreshold(uint8_t threshold);
void MXC_I2S_Flush(void);
int MXC_I2S_ReadRXFIFO(void *rxData, mxc_i2s_wsize_t wordSize, int len, int smpl_cnt);
void MXC_I2S_EnableInt(uint32_t flags);
void MXC_I2S_DisableInt(uint32_t flags);
int MXC_I2S_GetFlags(void);
void MXC_I2S_ClearFlags(uint32_t flags);
int MXC_I2S_RXDMAConfig(void *dest_addr, int len);
void MXC_I2S_RegisterDMACallback(void (*callback)(int ch, int reason));
typedef mxc_i2s_req_t mxc_i2s_config_t;
#define MXC_F_I2S_CTRL0CH0_TX_EN (1u << 6)
#define MXC_F_I2S_CTRL0CH0_RX_EN (1u << 7)
#define MXC_F_I2S_CTRL0CH0_FLUSH (1u << 18)
#define MXC_F_I2S_CTRL0CH0_RST (1u << 19)
#define MXC_F_I2S_DMACH0_DMA_RX_EN (1u << 15)
#define MXC_F_I2S_DMACH0_TX_LVL (0xFFu << 8)
#define MXC_F_I2S_DMACH0_RX_LVL_POS 24
#define MXC_F_I2S_DMACH0_RX_LVL (0xFFu << 24)
#define MXC_F_I2S_INTFL_RX_OV_CH0 (1u << 0)
#define MXC_F_I2S_INTFL_RX_THD_CH0 (1u << 1)
#define MXC_F_I2S_INTFL_TX_OB_CH0 (1u << 2)
#define MXC_F_I2S_INTFL_TX_HE_CH0 (1u << 3)
#define MXC_F_I2S_INTEN_RX_OV_CH0 (1u << 0)
#define MXC_F_I2S_INTEN_RX_THD_CH0 (1u << 1)
#define MXC_F_I2S_INTEN_TX_OB_CH0 (1u << 2)
#define MXC_F_I2S_INTEN_TX_HE_CH0 (1u << 3)

/* DMA: memory is moved at once, samples come in their time, nothing else comes */
typedef enum {
    MXC_DMA_REQUEST_MEMTOMEM, MXC_DMA_REQUEST_UART0RX = 4, MXC_DMA_REQUEST_UART1RX = 5,
    MXC_DMA_REQUEST_UART2RX = 6, MXC_DMA_REQUEST_UART3RX = 7, MXC_DMA_REQUEST_UART0TX = 36,
    MXC_DMA_REQUEST_UART1TX = 37, MXC_DMA_REQUEST_UART2TX = 38,
    MXC_DMA_REQUEST_PCIFRX = 13, MXC_DMA_REQUEST_I2SRX = 30,
    MXC_DMA_REQUEST_I2STX = 62
} mxc_dma_reqsel_t;
typedef enum { MXC_DMA_PRIO_HIGH, MXC_DMA_PRIO_MEDHIGH, MXC_DMA_PRIO_MEDLOW, MXC_DMA_PRIO_LOW } mxc_dma_priority_t;
typedef enum { MXC_DMA_WIDTH_BYTE, MXC_DMA_WIDTH_HALFWORD, MXC_DMA_WIDTH_WORD } mxc_dma_width_t;
typedef struct {
    int ch;
    mxc_dma_reqsel_t reqsel;
    mxc_dma_width_t srcwd, dstwd;
    int srcinc_en, dstinc_en;
} mxc_dma_config_t;
typedef struct {
    int ch;
    void *source, *dest;
    int len;
} mxc_dma_srcdst_t;
typedef struct {
    int ch;
    mxc_dma_priority_t prio;
    unsigned int reqwait_en, tosel, pssel, burst_size;
} mxc_dma_adv_config_t;
typedef void (*mxc_dma_complete_cb_t)(void *dest);
typedef mxc_dma_srcdst_t (*mxc_dma_trans_chain_t)(mxc_dma_srcdst_t dest);
#define MXC_DMA_CHANNELS 4
#define MXC_F_DMA_STATUS_CTZ_IF (1 << 2)
#define MXC_F_DMA_CTRL_DIS_IE (1u << 30)
#define MXC_F_DMA_CTRL_CTZ_IE (1u << 31)
int MXC_DMA_Init(EMULATOR_OPEN);
void MXC_DMA_DeInit(EMULATOR_OPEN);
int MXC_DMA_AcquireChannel(EMULATOR_OPEN);
int MXC_DMA_ReleaseChannel(int ch);
int MXC_DMA_ConfigChannel(mxc_dma_config_t config, mxc_dma_srcdst_t srcdst);
int MXC_DMA_AdvConfigChannel(mxc_dma_adv_config_t config);
int MXC_DMA_SetSrcDst(mxc_dma_srcdst_t srcdst);
int MXC_DMA_SetSrcReload(mxc_dma_srcdst_t srcdst);
int MXC_DMA_SetCallback(int ch, void (*callback)(int ch, int reason));
int MXC_DMA_SetChannelInterruptEn(int ch, bool channel_disables, bool count_to_zero);
int MXC_DMA_ChannelEnableInt(int ch, int flags);
int MXC_DMA_ChannelDisableInt(int ch, int flags);
int MXC_DMA_ChannelGetFlags(int ch);
int MXC_DMA_ChannelClearFlags(int ch, int flags);
int MXC_DMA_EnableInt(int ch);
int MXC_DMA_DisableInt(int ch);
int MXC_DMA_Start(int ch);
int MXC_DMA_Stop(int ch);
void MXC_DMA_Handler(EMULATOR_OPEN);
int MXC_DMA_MemCpy(void *dest, void *src, int len, mxc_dma_complete_cb_t callback);
int MXC_DMA_DoTransfer(mxc_dma_config_t config, mxc_dma_srcdst_t first, mxc_dma_trans_chain_t callback);

/* Converters, keys, noise */
typedef enum { MXC_ADC_CH_0, MXC_ADC_CH_1, MXC_ADC_CH_2, MXC_ADC_CH_3, MXC_ADC_CH_4 } mxc_adc_chsel_t;
typedef struct {
    mxc_adc_chsel_t channel;
    unsigned int scale, rawData;
} mxc_adc_conversion_req_t;
typedef void (*mxc_adc_complete_t)(void *request, int error);
int MXC_ADC_Init(EMULATOR_OPEN);
int MXC_ADC_StartConversion(EMULATOR_OPEN);
int MXC_ADC_StartConversionAsync(mxc_adc_chsel_t channel, mxc_adc_complete_t callback);
int MXC_ADC_GetData(uint16_t *value);
void MXC_ADC_Handler(void);
typedef struct {
    uint32_t *dataBuffer, dataLen, resultCRC;
} mxc_crc_req_t;
typedef enum { CRC_LSB_FIRST, CRC_MSB_FIRST } mxc_crc_bitorder_t;
int MXC_CRC_Init(void);
int MXC_CRC_Shutdown(void);
void MXC_CRC_SetDirection(mxc_crc_bitorder_t order);
mxc_crc_bitorder_t MXC_CRC_GetDirection(void);
void MXC_CRC_SwapDataIn(mxc_crc_bitorder_t order);
void MXC_CRC_SwapDataOut(mxc_crc_bitorder_t order);
uint32_t MXC_CRC_GetResult(void);
void MXC_CRC_SetPoly(uint32_t poly);
uint32_t MXC_CRC_GetPoly(void);
int MXC_CRC_Compute(mxc_crc_req_t *request);
int MXC_CRC_ComputeAsync(mxc_crc_req_t *request);
typedef void (*mxc_aes_complete_t)(void *request, int error);
typedef enum { MXC_AES_128BITS = 0, MXC_AES_192BITS = 1 << 6, MXC_AES_256BITS = 2 << 6 } mxc_aes_keys_t;
typedef enum { MXC_AES_ENCRYPT_EXT_KEY, MXC_AES_DECRYPT_EXT_KEY, MXC_AES_DECRYPT_INT_KEY } mxc_aes_enc_type_t;
typedef struct _mxc_aes_cipher_req_t {
    uint32_t length; /* in words */
    uint32_t *inputData, *resultData;
    mxc_aes_keys_t keySize;
    mxc_aes_enc_type_t encryption;
    mxc_aes_complete_t callback;
} mxc_aes_req_t;
int MXC_AES_Init(void);
int MXC_AES_Shutdown(void);
int MXC_AES_IsBusy(void);
void MXC_AES_EnableInt(uint32_t flags);
void MXC_AES_DisableInt(uint32_t flags);
uint32_t MXC_AES_GetFlags(void);
void MXC_AES_ClearFlags(uint32_t flags);
void MXC_AES_SetKeySize(mxc_aes_keys_t size);
mxc_aes_keys_t MXC_AES_GetKeySize(void);
void MXC_AES_FlushInputFIFO(void);
void MXC_AES_FlushOutputFIFO(void);
void MXC_AES_Start(void);
void MXC_AES_GenerateKey(void);
void MXC_AES_SetExtKey(const void *key, mxc_aes_keys_t size);
int MXC_AES_Generic(mxc_aes_req_t *request);
int MXC_AES_Encrypt(mxc_aes_req_t *request);
int MXC_AES_Decrypt(mxc_aes_req_t *request);
int MXC_AES_EncryptAsync(mxc_aes_req_t *request);
int MXC_AES_DecryptAsync(mxc_aes_req_t *request);
int MXC_TRNG_Init(void);
int MXC_TRNG_Shutdown(void);
int MXC_TRNG_RandomInt(void);
int MXC_TRNG_Random(uint8_t *data, uint32_t length);
#define MXC_SYS_USN_LEN 13
int MXC_SYS_GetUSN(uint8_t *usn, ...);
int MXC_SYS_GetRevision(void);
typedef enum { MXC_PT_SCALE_1, MXC_PT_SCALE_2 } mxc_ptg_scale_t;
typedef struct {
    unsigned int channel, bps, pattern, ptLength, loop, loopDelay;
} mxc_pt_cfg_t;

/* Flash controller */
int MXC_FLC_Init(void);
int MXC_FLC_PageErase(uint32_t address);
int MXC_FLC_Write(uint32_t address, uint32_t length, uint32_t *buffer);
int MXC_FLC_Write32(uint32_t address, uint32_t data);
int MXC_FLC_Write128(uint32_t address, uint32_t *data);
void MXC_FLC_Read(int address, void *buffer, int length);

/* Locks between programs that run at the same time: there is only one */
int MXC_GetLock(uint32_t *lock, uint32_t value);
void MXC_FreeLock(uint32_t *lock);
int MXC_SEMA_Init(void);
int MXC_SEMA_GetSema(unsigned int semaphore);
void MXC_SEMA_FreeSema(unsigned int semaphore);
int MXC_SEMA_CheckSema(unsigned int semaphore);

#endif
