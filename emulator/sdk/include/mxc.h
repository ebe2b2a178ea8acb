/*
 * Stand-in for the vendor's SDK: what generated projects use, for the emulated Cortex-M4.
 * Every SDK header name forwards to this file. Registers stand at the addresses of the chip;
 * functions are in runtime.c. Interrupts and sleep go through the emulator's own port.
 */
#ifndef EMULATOR_MXC_H
#define EMULATOR_MXC_H

#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>

#define __IO volatile
#define __I volatile const
#define __O volatile
#define __WEAK __attribute__((weak))
#define E_NO_ERROR 0

/* Global control: clocks */
typedef struct {
    __IO uint32_t sysctrl, rst0, clkctrl, pm, ipll_ctrl, rsv_0x14, pclkdiv, rsv_0x1c, rsv_0x20,
        pclkdis0, memctrl, memz, rsv_0x30[4], sysst, rst1, pclkdis1, eventen, revision, sysie;
} mxc_gcr_regs_t;
#define MXC_GCR ((mxc_gcr_regs_t *) 0x40000000)
#define MXC_F_GCR_IPLL_CTRL_EN (1u << 0)
#define MXC_F_GCR_IPLL_CTRL_RDY (1u << 1)
#define MXC_F_GCR_PCLKDIV_CNNCLKDIV (7u << 14)
#define MXC_S_GCR_PCLKDIV_CNNCLKDIV_DIV2 (0u << 14)
#define MXC_S_GCR_PCLKDIV_CNNCLKDIV_DIV4 (1u << 14)
#define MXC_S_GCR_PCLKDIV_CNNCLKDIV_DIV8 (2u << 14)
#define MXC_S_GCR_PCLKDIV_CNNCLKDIV_DIV16 (3u << 14)
#define MXC_S_GCR_PCLKDIV_CNNCLKDIV_DIV1 (4u << 14)
#define MXC_F_GCR_PCLKDIV_CNNCLKSEL (3u << 17)
#define MXC_S_GCR_PCLKDIV_CNNCLKSEL_PCLK (0u << 17)
#define MXC_S_GCR_PCLKDIV_CNNCLKSEL_ISO (1u << 17)
#define MXC_S_GCR_PCLKDIV_CNNCLKSEL_ITO (2u << 17)
#define MXC_S_GCR_PCLKDIV_CNNCLKSEL_IPLL (3u << 17)
#define MXC_F_GCR_PCLKDIS0_CNN (1u << 25)

/* Power of the accelerator */
typedef struct {
    __IO uint32_t reg0, reg1, reg2, reg3;
} mxc_gcfr_regs_t;
#define MXC_GCFR ((mxc_gcfr_regs_t *) 0x40005800)
typedef mxc_gcfr_regs_t mxc_bbfc_regs_t;
#define MXC_BBFC ((mxc_bbfc_regs_t *) 0x40005800)

/* Function control: start address of the RISC-V core */
typedef struct {
    __IO uint32_t fctrl0, autocal0, autocal1, autocal2, urvbootaddr, urvctrl;
} mxc_fcr_regs_t;
#define MXC_FCR ((mxc_fcr_regs_t *) 0x40000800)

/* Semaphores between the cores */
typedef struct {
    __IO uint32_t semaphores[8], rsv_0x20[8], irq0, mail0, irq1, mail1;
} mxc_sema_regs_t;
#define MXC_SEMA ((mxc_sema_regs_t *) 0x4003E000)
#define MXC_F_SEMA_IRQ0_EN (1u << 0)
#define MXC_F_SEMA_IRQ0_CM4_IRQ (1u << 16)

/* Power sequencer */
typedef struct {
    __IO uint32_t lpcn, lpwkst0, lpwken0, lpwkst1, lpwken1, lpwkst2, lpwken2, lpwkst3, lpwken3,
        rsv_0x24[3], lppwst, lppwen;
} mxc_pwrseq_regs_t;
#define MXC_PWRSEQ ((mxc_pwrseq_regs_t *) 0x40006800)
#define MXC_F_PWRSEQ_LPPWEN_CPU1 (1u << 10)

/* System control of the core */
typedef struct {
    __IO uint32_t CPUID, ICSR, VTOR, AIRCR, SCR, CCR;
} SCB_Type;
#define SCB ((SCB_Type *) 0xE000ED00)
#define SCB_SCR_SLEEPDEEP_Msk (1u << 2)

/* Pins */
typedef struct {
    __IO uint32_t en0, en0_set, en0_clr, outen, outen_set, outen_clr, out, out_set, out_clr, in;
} mxc_gpio_regs_t;
#define MXC_GPIO0 ((mxc_gpio_regs_t *) 0x40008000)
#define MXC_GPIO1 ((mxc_gpio_regs_t *) 0x40009000)
#define MXC_GPIO2 ((mxc_gpio_regs_t *) 0x40080400)
#define MXC_GPIO3 ((mxc_gpio_regs_t *) 0x4000B000)
typedef enum { MXC_GPIO_FUNC_IN, MXC_GPIO_FUNC_OUT, MXC_GPIO_FUNC_ALT1 } mxc_gpio_func_t;
typedef enum { MXC_GPIO_PAD_NONE, MXC_GPIO_PAD_PULL_UP, MXC_GPIO_PAD_PULL_DOWN } mxc_gpio_pad_t;
typedef enum { MXC_GPIO_VSSEL_VDDIO, MXC_GPIO_VSSEL_VDDIOH } mxc_gpio_vssel_t;
typedef enum { MXC_GPIO_DRVSTR_0, MXC_GPIO_DRVSTR_1 } mxc_gpio_drvstr_t;
typedef struct {
    mxc_gpio_regs_t *port;
    uint32_t mask;
    mxc_gpio_func_t func;
    mxc_gpio_pad_t pad;
    mxc_gpio_vssel_t vssel;
    mxc_gpio_drvstr_t drvstr;
} mxc_gpio_cfg_t;
enum {
    MXC_GPIO_PIN_0 = 1 << 0, MXC_GPIO_PIN_1 = 1 << 1, MXC_GPIO_PIN_2 = 1 << 2,
    MXC_GPIO_PIN_3 = 1 << 3, MXC_GPIO_PIN_4 = 1 << 4, MXC_GPIO_PIN_5 = 1 << 5,
    MXC_GPIO_PIN_6 = 1 << 6, MXC_GPIO_PIN_7 = 1 << 7, MXC_GPIO_PIN_8 = 1 << 8,
    MXC_GPIO_PIN_9 = 1 << 9, MXC_GPIO_PIN_10 = 1 << 10, MXC_GPIO_PIN_11 = 1 << 11,
    MXC_GPIO_PIN_12 = 1 << 12, MXC_GPIO_PIN_13 = 1 << 13, MXC_GPIO_PIN_14 = 1 << 14,
    MXC_GPIO_PIN_15 = 1 << 15, MXC_GPIO_PIN_16 = 1 << 16, MXC_GPIO_PIN_17 = 1 << 17,
    MXC_GPIO_PIN_18 = 1 << 18, MXC_GPIO_PIN_19 = 1 << 19, MXC_GPIO_PIN_20 = 1 << 20,
    MXC_GPIO_PIN_21 = 1 << 21, MXC_GPIO_PIN_22 = 1 << 22, MXC_GPIO_PIN_23 = 1 << 23,
    MXC_GPIO_PIN_24 = 1 << 24, MXC_GPIO_PIN_25 = 1 << 25, MXC_GPIO_PIN_26 = 1 << 26,
    MXC_GPIO_PIN_27 = 1 << 27, MXC_GPIO_PIN_28 = 1 << 28, MXC_GPIO_PIN_29 = 1 << 29,
    MXC_GPIO_PIN_30 = 1 << 30
};
#define MXC_GPIO_PIN_31 (1u << 31)
int MXC_GPIO_Config(const mxc_gpio_cfg_t *cfg);
void MXC_GPIO_OutSet(mxc_gpio_regs_t *port, uint32_t mask);
void MXC_GPIO_OutClr(mxc_gpio_regs_t *port, uint32_t mask);
void LED_On(unsigned int idx);
void LED_Off(unsigned int idx);
void LED_Toggle(unsigned int idx);
int PB_Get(unsigned int idx);
#define LED1 0
#define LED2 1

/* Timers and cache */
typedef struct {
    __IO uint32_t cnt, cmp, pwm, intfl, ctrl0;
} mxc_tmr_regs_t;
#define MXC_TMR0 ((mxc_tmr_regs_t *) 0x40010000)
#define MXC_TMR1 ((mxc_tmr_regs_t *) 0x40011000)
#define MXC_TMR2 ((mxc_tmr_regs_t *) 0x40012000)
#define MXC_TMR3 ((mxc_tmr_regs_t *) 0x40013000)
#define MXC_TMR4 ((mxc_tmr_regs_t *) 0x40080C00)
#define MXC_TMR5 ((mxc_tmr_regs_t *) 0x40081000)
typedef struct {
    __IO uint32_t info, sz;
} mxc_icc_regs_t;
#define MXC_ICC0 ((mxc_icc_regs_t *) 0x4002A000)
#define MXC_ICC1 ((mxc_icc_regs_t *) 0x4002A800)
#define SEC(s) (((uint32_t) (s)) * 1000000UL)
#define MSEC(ms) ((ms) * 1000UL)
#define USEC(us) (us)
void MXC_ICC_Enable(mxc_icc_regs_t *icc);
int MXC_Delay(uint32_t us);
void MXC_TMR_Delay(mxc_tmr_regs_t *tmr, uint32_t us);
void MXC_TMR_SW_Start(mxc_tmr_regs_t *tmr);
unsigned int MXC_TMR_SW_Stop(mxc_tmr_regs_t *tmr);

/* Clocks and sleep */
typedef enum { MXC_SYS_CLOCK_IPO, MXC_SYS_CLOCK_ISO, MXC_SYS_CLOCK_IPLL } mxc_sys_system_clock_t;
typedef enum {
    MXC_SYS_PERIPH_CLOCK_CNN = 25,
    MXC_SYS_PERIPH_CLOCK_SMPHR = 41,
    MXC_SYS_PERIPH_CLOCK_CPU1 = 63
} mxc_sys_periph_clock_t;
int MXC_SYS_Clock_Select(mxc_sys_system_clock_t clock);
int MXC_SYS_ClockSourceEnable(mxc_sys_system_clock_t clock);
void MXC_SYS_ClockEnable(mxc_sys_periph_clock_t clock);
void MXC_SYS_ClockDisable(mxc_sys_periph_clock_t clock);
void SystemCoreClockUpdate(void);
void MXC_LP_EnterSleepMode(void);
void MXC_LP_EnterLowPowerMode(void);
void __WFI(void);

/* Interrupts: setting a vector also enables it */
#ifdef __riscv
typedef enum { CNN_FIFO_IRQn = 56, CNN_IRQn = 57 } IRQn_Type;
#else
typedef enum { RISCV_IRQn = 63, CNN_FIFO_IRQn = 100, CNN_IRQn = 101 } IRQn_Type;
#endif
void MXC_NVIC_SetVector(IRQn_Type irq, void (*handler)(void));
void NVIC_SetVector(IRQn_Type irq, void (*handler)(void));

void NVIC_EnableIRQ(IRQn_Type irq);
void NVIC_DisableIRQ(IRQn_Type irq);
void NVIC_SetPriority(IRQn_Type irq, uint32_t priority);
void __enable_irq(void);
#define __NOP() __asm__ volatile("nop")
#define __DSB() __asm__ volatile("" : : : "memory")
#define __DMB() __DSB()
#define __ISB() __DSB()
void __disable_irq(void);

/* Called by programs for the RISC-V core only */
int Debug_Init(void);
void NVIC_EnableEVENT(IRQn_Type irq);
void NVIC_ClearPendingIRQ(IRQn_Type irq);
void NVIC_ClearPendingEVENT(IRQn_Type irq);

/* C library: the part that generated projects use */
typedef int8_t q7_t;
#define assert(condition) ((condition) ? (void) 0 : abort())
#define static_assert _Static_assert
_Noreturn void abort(void);
int printf(const char *format, ...) __attribute__((format(printf, 1, 2)));
int puts(const char *text);
int putchar(int character);
void *memcpy(void *destination, const void *source, size_t count);
void *memmove(void *destination, const void *source, size_t count);
void *memset(void *destination, int value, size_t count);
int memcmp(const void *left, const void *right, size_t count);
size_t strlen(const char *text);

#endif
