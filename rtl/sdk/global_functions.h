/*
 * Stand-in for the header of the chip's simulation environment, on top of the emulator's SDK
 * (ai8xtools/emulator/sdk): what programs of RTL simulation tests use of the two models, MAX78000 with its
 * older register names and MAX78002. Oscillators are ready as soon as they are enabled.
 */
#ifndef RTL_GLOBAL_FUNCTIONS_H
#define RTL_GLOBAL_FUNCTIONS_H

#include "mxc.h"

/* Results; fail() notes a failure and returns, pass() ends the test */
static inline void pass(void) { printf("*** PASS ***\n"); }
static inline void fail(void) { printf("*** FAIL ***\n"); }

static inline void icache_enable(void) {}
static inline void icache1_enable(void) {}
static inline void invalidate_icache1(void) {}

/* A write starts what waits for it in the test bench */
typedef struct {
    __IO uint32_t trig;
} simulation_t;
#define sim ((simulation_t *) 0x400ff000)

/* Global control: older and newer names of the same registers */
#undef MXC_GCR
typedef struct {
    __IO uint32_t sysctrl, rst0;
    union {
        __IO uint32_t clkcn, clkctrl;
    };
    __IO uint32_t pm;
    union {
        __IO uint32_t ito_ctrl, ipll_ctrl;
    };
    __IO uint32_t rsv_0x14;
    union {
        __IO uint32_t pckdiv, pclkdiv;
    };
    __IO uint32_t rsv_0x1c[2];
    union {
        __IO uint32_t perckcn, pclkdis0;
    };
    __IO uint32_t rsv_0x28[8];
    union {
        __IO uint32_t perckcn1, pclkdis1;
    };
} simulation_gcr_t;
#define MXC_GCR ((simulation_gcr_t *) 0x40000000)
#define MXC_F_GCR_CLKCN_HIRC96M_EN (1u << 19)
#define MXC_F_GCR_CLKCN_HIRC96M_RDY MXC_F_GCR_CLKCN_HIRC96M_EN
#define MXC_S_GCR_CLKCN_CLKSEL_HIRC96 (4u << 9)
#define MXC_F_GCR_PERCKCN1_SMPHRD (1u << 9)
#define MXC_F_GCR_PERCKCN1_CPU1 (1u << 31)
#ifndef MXC_F_GCR_CLKCTRL_IPO_EN
#define MXC_F_GCR_CLKCTRL_IPO_EN (1u << 19)
#define MXC_F_GCR_CLKCTRL_IPO_RDY (1u << 27)
#define MXC_S_GCR_CLKCTRL_SYSCLK_SEL_IPO (4u << 9)
#endif
#define MXC_F_GCR_ITO_CTRL_EN (1u << 0)
#define MXC_F_GCR_ITO_CTRL_RDY (1u << 1)
#ifndef MXC_S_GCR_PCLKDIV_CNNCLKSEL_ITO
#define MXC_S_GCR_PCLKDIV_CNNCLKSEL_ITO (2u << 17)
#endif
#undef MXC_F_GCR_IPLL_CTRL_EN
#undef MXC_F_GCR_IPLL_CTRL_RDY
#undef MXC_S_GCR_PCLKDIV_CNNCLKSEL_IPLL

/* Start address of the RISC-V core in the older model */
typedef struct {
    __IO uint32_t reg0, reg1, reg2, reg3, reg4;
} mxc_nbbfc_regs_t;
#define MXC_NBBFC ((mxc_nbbfc_regs_t *) 0x40000800)

/* Semaphores */
#undef MXC_SEMA
typedef struct {
    __IO uint32_t semaphores[8], rsv_0x20[8];
    union {
        __IO uint32_t irqr0, irq0;
    };
} simulation_sema_t;
#define MXC_SEMA ((simulation_sema_t *) 0x4003e000)
#define MXC_S_SEMA_IRQR_IRQEN_EN (1u << 0)
#define MXC_S_SEMA_IRQR_IRQ_SET (1u << 16)
#define MXC_S_SEMA_IRQR_IRQ_CLR (0u << 16)
#ifndef __riscv
#define RV32_IRQn RISCV_IRQn
#endif

/* Power sequencer */
#undef MXC_PWRSEQ
typedef struct {
    __IO uint32_t lpcn, lpwkst0, lpwken0, lpwkst1, lpwken1, lpwkst2, lpwken2, lpwkst3, lpwken3,
        rsv_0x24[3];
    union {
        __IO uint32_t lpwkst, lppwst;
    };
    union {
        __IO uint32_t lpwken, lppwen;
    };
} simulation_pwrseq_t;
#define MXC_PWRSEQ ((simulation_pwrseq_t *) 0x40006800)

#endif
