/* What CMSIS gives every Cortex-M program: interrupts, system registers, intrinsic functions. */
#ifndef EMULATOR_CORE_H
#define EMULATOR_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define EMULATOR_OPEN ... /* in parentheses: any arguments */
#else
#define EMULATOR_OPEN
#endif
#define __IO volatile
#define __I volatile const
#define __O volatile
#define __IM volatile const
#define __OM volatile
#define __IOM volatile
#define __R volatile const
#define __WEAK __attribute__((weak))
#ifndef __weak
#define __weak __attribute__((weak))
#endif
#define __INLINE inline
#define __STATIC_INLINE static inline
#define __STATIC_FORCEINLINE static inline
#define __FORCEINLINE inline
#define __PACKED __attribute__((packed))
#define __ALIGNED(n) __attribute__((aligned(n)))
#define __USED __attribute__((used))
#define __NO_RETURN _Noreturn
#define __ASM __asm__
#define __CM4_REV 1
#define __FPU_PRESENT 1
#define __NVIC_PRIO_BITS 3
#define __CORTEX_M 4

/* Interrupts. Setting a vector also enables it. */
#ifdef __riscv
typedef enum {
    PF_IRQn = 1, GPIO0_IRQn = 4, GPIO1_IRQn = 5, TMR0_IRQn = 8, TMR1_IRQn = 9, TMR2_IRQn = 10,
    TMR3_IRQn = 11, DMA0_IRQn = 12, DMA1_IRQn = 13, DMA2_IRQn = 14, DMA3_IRQn = 15, UART0_IRQn = 18,
    UART1_IRQn = 19, I2C0_IRQn = 22, I2C1_IRQn = 23, SPI1_IRQn = 24, I2S_IRQn = 28, PCIF_IRQn = 30,
    RTC_IRQn = 34, WUT_IRQn = 36, ADC_IRQn = 38, SPI0_IRQn = 40, GPIO2_IRQn = 42, WDT0_IRQn = 44,
    CNN_FIFO_IRQn = 56, CNN_IRQn = 57, MXC_IRQ_COUNT = 64
} IRQn_Type;
#else
typedef enum {
    NonMaskableInt_IRQn = -14, HardFault_IRQn = -13, MemoryManagement_IRQn = -12,
    BusFault_IRQn = -11, UsageFault_IRQn = -10, SVCall_IRQn = -5, DebugMonitor_IRQn = -4,
    PendSV_IRQn = -2, SysTick_IRQn = -1, PF_IRQn = 0, WDT0_IRQn = 1, RTC_IRQn = 3, TRNG_IRQn = 4,
    TMR0_IRQn = 5, TMR1_IRQn = 6, TMR2_IRQn = 7, TMR3_IRQn = 8, TMR4_IRQn = 9, TMR5_IRQn = 10,
    I2C0_IRQn = 13, UART0_IRQn = 14, UART1_IRQn = 15, SPI1_IRQn = 16, ADC_IRQn = 20,
    FLC0_IRQn = 23, GPIO0_IRQn = 24, GPIO1_IRQn = 25, GPIO2_IRQn = 26, GPIO3_IRQn = 27,
    DMA0_IRQn = 28, DMA1_IRQn = 29, DMA2_IRQn = 30, DMA3_IRQn = 31, UART2_IRQn = 34,
    I2C1_IRQn = 36, WUT_IRQn = 53, GPIOWAKE_IRQn = 54, SPI0_IRQn = 56, WDT1_IRQn = 57,
    PT_IRQn = 59, I2C2_IRQn = 62, RISCV_IRQn = 63, SDHC_IRQn = 66, OWM_IRQn = 67, DMA4_IRQn = 68,
    DMA5_IRQn = 69, DMA6_IRQn = 70, DMA7_IRQn = 71, DMA8_IRQn = 72, USB_IRQn = 2, PCIF_IRQn = 91,
    CSI2_IRQn = 92, DVS_IRQn = 83, SIMO_IRQn = 84, UART3_IRQn = 88, AES_IRQn = 97, ECC_IRQn = 98,
    I2S_IRQn = 99, CNN_FIFO_IRQn = 100, CNN_IRQn = 101, LPCMP_IRQn = 103, MXC_IRQ_COUNT = 120
} IRQn_Type;
#define CAMERAIF_IRQn PCIF_IRQn
#endif
void MXC_NVIC_SetVector(IRQn_Type irq, void (*handler)(void));
void NVIC_SetVector(IRQn_Type irq, void (*handler)(void));
void NVIC_EnableIRQ(IRQn_Type irq);
void NVIC_DisableIRQ(IRQn_Type irq);
void NVIC_SetPriority(IRQn_Type irq, uint32_t priority);
uint32_t NVIC_GetPriority(IRQn_Type irq);
void NVIC_SetPriorityGrouping(uint32_t grouping);
void NVIC_SetPendingIRQ(IRQn_Type irq);
void NVIC_ClearPendingIRQ(IRQn_Type irq);
uint32_t NVIC_GetPendingIRQ(IRQn_Type irq);
uint32_t NVIC_GetEnableIRQ(IRQn_Type irq);
_Noreturn void NVIC_SystemReset(void);
void __enable_irq(void);
void __disable_irq(void);
uint32_t __get_PRIMASK(void);
void __set_PRIMASK(uint32_t mask);
void __WFI(void);
void __WFE(void);

/* The RISC-V core's own */
int Debug_Init(void);
void NVIC_EnableEVENT(IRQn_Type irq);
void NVIC_DisableEVENT(IRQn_Type irq);
void NVIC_ClearPendingEVENT(IRQn_Type irq);

/* System control, timer, debugging: plain memory */
typedef struct {
    __IO uint32_t CPUID, ICSR, VTOR, AIRCR, SCR, CCR;
    __IO uint8_t SHP[12];
    __IO uint32_t SHCSR, CFSR, HFSR, DFSR, MMFAR, BFAR, AFSR, PFR[2], DFR, ADR, MMFR[4], ISAR[5],
        rsv[5], CPACR;
} SCB_Type;
#define SCB ((SCB_Type *) 0xE000ED00)
#define SCB_SCR_SLEEPONEXIT_Msk (1u << 1)
#define SCB_SCR_SLEEPDEEP_Msk (1u << 2)
#define SCB_SCR_SEVONPEND_Msk (1u << 4)
#define SCB_AIRCR_VECTKEY_Pos 16
#define SCB_AIRCR_SYSRESETREQ_Msk (1u << 2)
typedef struct {
    __IO uint32_t CTRL, LOAD, VAL, CALIB;
} SysTick_Type;
#define SysTick ((SysTick_Type *) 0xE000E010)
#define SysTick_CTRL_ENABLE_Msk (1u << 0)
#define SysTick_CTRL_TICKINT_Msk (1u << 1)
#define SysTick_CTRL_CLKSOURCE_Msk (1u << 2)
#define SysTick_CTRL_COUNTFLAG_Msk (1u << 16)
#define SysTick_LOAD_RELOAD_Msk 0xFFFFFFu
#define SysTick_VAL_CURRENT_Msk 0xFFFFFFu
uint32_t SysTick_Config(uint32_t ticks);
typedef struct {
    __IO uint32_t ISER[8], rsv0[24], ICER[8], rsv1[24], ISPR[8], rsv2[24], ICPR[8], rsv3[24],
        IABR[8], rsv4[56];
    __IO uint8_t IP[240];
} NVIC_Type;
#define NVIC ((NVIC_Type *) 0xE000E100)
typedef struct {
    __IO uint32_t CTRL, CYCCNT, CPICNT, EXCCNT, SLEEPCNT, LSUCNT, FOLDCNT, PCSR;
} DWT_Type;
#define DWT ((DWT_Type *) 0xE0001000)
#define DWT_CTRL_CYCCNTENA_Msk 1u
typedef struct {
    union {
        __IO uint8_t u8;
        __IO uint16_t u16;
        __IO uint32_t u32;
    } PORT[32];
    __IO uint32_t rsv0[864], TER, rsv1[15], TPR, rsv2[15], TCR, rsv3[75], LAR, LSR;
} ITM_Type;
#define ITM ((ITM_Type *) 0xE0000000)
#define ITM_TCR_ITMENA_Msk 1u
static inline uint32_t ITM_SendChar(uint32_t character) { return character; }
typedef struct {
    __IO uint32_t rsv, FPCCR, FPCAR, FPDSCR;
} FPU_Type;
#define FPU ((FPU_Type *) 0xE000EF30)
static inline void SCB_EnableICache(void) {}
static inline void SCB_EnableDCache(void) {}
typedef struct {
    __IO uint32_t DHCSR, DCRSR, DCRDR, DEMCR;
} CoreDebug_Type;
#define CoreDebug ((CoreDebug_Type *) 0xE000EDF0)
#define CoreDebug_DEMCR_TRCENA_Msk (1u << 24)
extern uint32_t SystemCoreClock;
void SystemCoreClockUpdate(void);
void SystemInit(void);

/* Intrinsic functions */
#define __NOP() __asm__ volatile("nop")
#define __DSB() __asm__ volatile("" : : : "memory")
#define __DMB() __DSB()
#define __ISB() __DSB()
#define __SEV() __DSB()
#define __COMPILER_BARRIER() __DSB()
#define __BKPT(value) abort()
#define __CLREX() __DSB()
#define __enable_fault_irq() __enable_irq()
#define __disable_fault_irq() __disable_irq()
/* Registers of the core that say nothing here */
#define EMULATOR_CORE_REGISTER(name) \
    static inline uint32_t __get_##name(void) { return 0; } \
    static inline void __set_##name(uint32_t value) { (void) value; }
EMULATOR_CORE_REGISTER(BASEPRI)
EMULATOR_CORE_REGISTER(BASEPRI_MAX)
EMULATOR_CORE_REGISTER(CONTROL)
EMULATOR_CORE_REGISTER(FAULTMASK)
EMULATOR_CORE_REGISTER(FPSCR)
EMULATOR_CORE_REGISTER(PSP)
EMULATOR_CORE_REGISTER(IPSR)
EMULATOR_CORE_REGISTER(APSR)
EMULATOR_CORE_REGISTER(xPSR)
static inline uint32_t __get_MSP(void) { return (uint32_t) (uintptr_t) __builtin_frame_address(0); }
static inline void __set_MSP(uint32_t top) { (void) top; }
/* Exclusive access: nothing comes between */
#define EMULATOR_EXCLUSIVE(suffix, type) \
    static inline type __LDREX##suffix(volatile type *address) { return *address; } \
    static inline uint32_t __STREX##suffix(type value, volatile type *address) \
    { \
        *address = value; \
        return 0; \
    }
EMULATOR_EXCLUSIVE(B, uint8_t)
EMULATOR_EXCLUSIVE(H, uint16_t)
EMULATOR_EXCLUSIVE(W, uint32_t)
static inline uint32_t __REV(uint32_t value) { return __builtin_bswap32(value); }
static inline uint32_t __REV16(uint32_t value)
{
    return (value & 0x00FF00FFu) << 8 | (value >> 8 & 0x00FF00FFu);
}
static inline int16_t __REVSH(int16_t value) { return (int16_t) __builtin_bswap16((uint16_t) value); }
static inline uint8_t __CLZ(uint32_t value) { return value ? (uint8_t) __builtin_clz(value) : 32; }
static inline uint32_t __ROR(uint32_t value, uint32_t count)
{
    count &= 31;
    return count ? value >> count | value << (32 - count) : value;
}
static inline uint32_t __RBIT(uint32_t value)
{
    uint32_t result = 0;
    for (int i = 0; i < 32; i++, value >>= 1)
        result = result << 1 | (value & 1);
    return result;
}
static inline int32_t __SSAT(int32_t value, uint32_t bits)
{
    int32_t highest = (int32_t) ((1u << (bits - 1)) - 1);
    return value > highest ? highest : value < -highest - 1 ? -highest - 1 : value;
}
static inline uint32_t __USAT(int32_t value, uint32_t bits)
{
    int32_t highest = (int32_t) ((1u << bits) - 1);
    return (uint32_t) (value > highest ? highest : value < 0 ? 0 : value);
}
static inline int32_t __QADD(int32_t a, int32_t b)
{
    int64_t sum = (int64_t) a + b;
    return sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : (int32_t) sum;
}
static inline int32_t __QSUB(int32_t a, int32_t b)
{
    int64_t sum = (int64_t) a - b;
    return sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : (int32_t) sum;
}
static inline uint32_t __SXTB16(uint32_t value)
{
    return (uint16_t) (int8_t) value | (uint32_t) (uint16_t) (int8_t) (value >> 16) << 16;
}
static inline uint32_t __SMLAD(uint32_t a, uint32_t b, uint32_t sum)
{
    return sum + (uint32_t) ((int16_t) a * (int16_t) b) +
           (uint32_t) ((int16_t) (a >> 16) * (int16_t) (b >> 16));
}
static inline uint32_t __SMUAD(uint32_t a, uint32_t b) { return __SMLAD(a, b, 0); }
static inline uint32_t __PKHBT(uint32_t a, uint32_t b, uint32_t shift)
{
    return (a & 0xFFFF) | (b << shift & 0xFFFF0000u);
}
static inline uint32_t __PKHTB(uint32_t a, uint32_t b, uint32_t shift)
{
    return (a & 0xFFFF0000u) | (b >> shift & 0xFFFF);
}

#endif
