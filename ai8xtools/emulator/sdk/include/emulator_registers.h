/* Register blocks of the chips at their addresses. Most are memory that nothing reads. */
#ifndef EMULATOR_REGISTERS_H
#define EMULATOR_REGISTERS_H

#include "emulator_core.h"

/* Global control: clocks */
typedef struct {
    __IO uint32_t sysctrl, rst0, clkctrl, pm, ipll_ctrl, rsv_0x14, pclkdiv, rsv_0x1c, rsv_0x20,
        pclkdis0, memctrl, memz, rsv_0x30[4], sysst, rst1, pclkdis1, eventen, revision, sysie,
        rsv_0x58[3], eccerr, ecced, eccie, eccaddr, rsv_0x74[5], gpr;
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
    __IO uint32_t semaphores[8], rsv_0x20[8], irq0, mail0, irq1, mail1, rsv_0x50[44], status;
} mxc_sema_regs_t;
#define MXC_SEMA ((mxc_sema_regs_t *) 0x4003E000)
#define MXC_F_SEMA_IRQ0_EN (1u << 0)
#define MXC_F_SEMA_IRQ0_CM4_IRQ (1u << 16)
#define MXC_F_SEMA_IRQ1_EN (1u << 0)
#define MXC_F_SEMA_IRQ1_RV32_IRQ (1u << 16)

/* Power */
typedef struct {
    __IO uint32_t lpcn, lpwkst0, lpwken0, lpwkst1, lpwken1, lpwkst2, lpwken2, lpwkst3, lpwken3,
        rsv_0x24[3], lppwst, lppwen, rsv_0x38[2], gp0, gp1, lpmemsd, lpvddpd;
} mxc_pwrseq_regs_t;
#define MXC_PWRSEQ ((mxc_pwrseq_regs_t *) 0x40006800)
#define MXC_F_PWRSEQ_LPPWEN_CPU1 (1u << 10)
typedef struct {
    __IO uint32_t eccen, ipo_mtrim, outen, cmp_ctrl, ctrl, rsv_0x14[3], gpio3_ctrl, rsv_0x24[20],
        bypass0;
} mxc_mcr_regs_t;
#define MXC_MCR ((mxc_mcr_regs_t *) 0x40006C00)
typedef struct {
    __IO uint32_t rsv_0x0, rsv_0x4, rst, pclkdis;
} mxc_lpgcr_regs_t;
#define MXC_LPGCR ((mxc_lpgcr_regs_t *) 0x40080000)
typedef struct {
    __IO uint32_t rsv_0x0, vrego_a, vrego_b, vrego_c, vrego_d, ipka, ipkb, maxton, iload_a, iload_b,
        iload_c, iload_d, buck_alert_thr_a, buck_alert_thr_b, buck_alert_thr_c, buck_alert_thr_d,
        buck_out_ready, zero_cross_cal_a;
} mxc_simo_regs_t;
#define MXC_SIMO ((mxc_simo_regs_t *) 0x40004400)
typedef struct {
    __IO uint32_t rsv_0x0[8], ctrl, rsv_0x24[7], inro, rsv_0x44[2], ipolo;
} mxc_trimsir_regs_t;
#define MXC_TRIMSIR ((mxc_trimsir_regs_t *) 0x40005400)
typedef struct {
    __IO uint32_t sistat, addr, rsv_0x8[62], fstat, sfstat;
} mxc_sir_regs_t;
#define MXC_SIR ((mxc_sir_regs_t *) 0x40000400)

/* Pins */
typedef struct {
    __IO uint32_t en0, en0_set, en0_clr, outen, outen_set, outen_clr, out, out_set, out_clr, in,
        intmode, intpol, inen, inten, inten_set, inten_clr, intfl, rsv_0x44, intfl_clr, wken,
        wken_set, wken_clr, rsv_0x58, dualedge, padctrl0, padctrl1, en1, en1_set, en1_clr, en2,
        en2_set, en2_clr, rsv_0x80[10], hysen, srsel, ds0, ds1, ps, rsv_0xbc, vssel;
} mxc_gpio_regs_t;
#define MXC_GPIO0 ((mxc_gpio_regs_t *) 0x40008000)
#define MXC_GPIO1 ((mxc_gpio_regs_t *) 0x40009000)
#define MXC_GPIO2 ((mxc_gpio_regs_t *) 0x40080400)
#define MXC_GPIO3 ((mxc_gpio_regs_t *) 0x4000B000)
#define MXC_GPIO_GET_GPIO(i) \
    ((i) == 0 ? MXC_GPIO0 : (i) == 1 ? MXC_GPIO1 : (i) == 2 ? MXC_GPIO2 : MXC_GPIO3)

/* Timers */
typedef struct {
    __IO uint32_t cnt, cmp, pwm, intfl, ctrl0, nolcmp, ctrl1, wkfl;
} mxc_tmr_regs_t;
#define MXC_TMR0 ((mxc_tmr_regs_t *) 0x40010000)
#define MXC_TMR1 ((mxc_tmr_regs_t *) 0x40011000)
#define MXC_TMR2 ((mxc_tmr_regs_t *) 0x40012000)
#define MXC_TMR3 ((mxc_tmr_regs_t *) 0x40013000)
#define MXC_TMR4 ((mxc_tmr_regs_t *) 0x40080C00)
#define MXC_TMR5 ((mxc_tmr_regs_t *) 0x40081000)
typedef struct {
    __IO uint32_t sec, ssec, toda, sseca, ctrl, trim, oscctrl;
} mxc_rtc_regs_t;
#define MXC_RTC ((mxc_rtc_regs_t *) 0x40006000)
typedef struct {
    __IO uint32_t cnt, cmp, pwm, intfl, ctrl, nolcmp, preset, reload, snapshot;
} mxc_wut_regs_t;
#define MXC_WUT ((mxc_wut_regs_t *) 0x40006400)
#define MXC_WUT0 MXC_WUT
typedef struct {
    __IO uint32_t ctrl, rst, clksel, cnt;
} mxc_wdt_regs_t;
#define MXC_WDT0 ((mxc_wdt_regs_t *) 0x40003000)
#define MXC_WDT1 ((mxc_wdt_regs_t *) 0x40080800)

/* Memories and data movers */
typedef struct {
    __IO uint32_t info, sz, rsv_0x8[62], ctrl, rsv_0x104[383], invalidate;
} mxc_icc_regs_t;
#define MXC_ICC0 ((mxc_icc_regs_t *) 0x4002A000)
#define MXC_ICC1 ((mxc_icc_regs_t *) 0x4002A800)
#define MXC_ICC MXC_ICC0
typedef struct {
    __IO uint32_t addr, clkdiv, ctrl, rsv_0xc[6], intr, eccdata, rsv_0x2c, data[4], actrl;
} mxc_flc_regs_t;
#define MXC_FLC0 ((mxc_flc_regs_t *) 0x40029000)
#define MXC_FLC MXC_FLC0
typedef struct {
    __IO uint32_t ctrl, status, src, dst, cnt, srcrld, dstrld, cntrld;
} mxc_dma_ch_regs_t;
typedef struct {
    __IO uint32_t inten, intfl, rsv_0x8[62];
    mxc_dma_ch_regs_t ch[8];
} mxc_dma_regs_t;
#define MXC_DMA ((mxc_dma_regs_t *) 0x40028000)
#define MXC_DMA0 MXC_DMA

/* Serial interfaces */
typedef struct {
    __IO uint32_t ctrl, status, int_en, int_fl, clkdiv, osr, txpeek, pnr, fifo, dma, wken, wkfl;
} mxc_uart_regs_t;
#define MXC_UART0 ((mxc_uart_regs_t *) 0x40042000)
#define MXC_UART1 ((mxc_uart_regs_t *) 0x40043000)
#define MXC_UART2 ((mxc_uart_regs_t *) 0x40044000)
#define MXC_UART3 ((mxc_uart_regs_t *) 0x40081400)
#define MXC_F_UART_CTRL_RX_THD_VAL (0xFu << 0)
#define MXC_F_UART_CTRL_TX_FLUSH (1u << 8)
#define MXC_F_UART_CTRL_RX_FLUSH (1u << 9)
#define MXC_F_UART_STATUS_TX_BUSY (1u << 0)
#define MXC_F_UART_STATUS_RX_BUSY (1u << 1)
#define MXC_F_UART_STATUS_RX_EM (1u << 4)
#define MXC_F_UART_STATUS_RX_FULL (1u << 5)
#define MXC_F_UART_STATUS_TX_EM (1u << 6)
#define MXC_F_UART_STATUS_TX_FULL (1u << 7)
#define MXC_F_UART_STATUS_RX_LVL_POS 8
#define MXC_F_UART_STATUS_RX_LVL (0xFu << 8)
#define MXC_F_UART_STATUS_TX_LVL_POS 12
#define MXC_F_UART_STATUS_TX_LVL (0xFu << 12)
#define MXC_F_UART_INT_EN_RX_THD (1u << 4)
#define MXC_F_UART_INT_EN_TX_OB (1u << 5)
#define MXC_F_UART_INT_EN_TX_HE (1u << 6)
#define MXC_F_UART_INT_FL_RX_THD (1u << 4)
#define MXC_F_UART_INT_FL_TX_OB (1u << 5)
#define MXC_F_UART_INT_FL_TX_HE (1u << 6)
#define MXC_UART_GET_IDX(p) \
    ((p) == MXC_UART0 ? 0 : (p) == MXC_UART1 ? 1 : (p) == MXC_UART2 ? 2 : (p) == MXC_UART3 ? 3 : -1)
#ifdef __riscv
#define MXC_UART_GET_IRQ(i) ((i) == 0 ? UART0_IRQn : UART1_IRQn)
#else
#define MXC_UART_GET_IRQ(i) \
    ((i) == 0 ? UART0_IRQn : (i) == 1 ? UART1_IRQn : (i) == 2 ? UART2_IRQn : UART3_IRQn)
#endif
#define MXC_UART_GET_UART(i) \
    ((i) == 0 ? MXC_UART0 : (i) == 1 ? MXC_UART1 : (i) == 2 ? MXC_UART2 : MXC_UART3)
typedef struct {
    __IO uint32_t ctrl, status, intfl0, inten0, intfl1, inten1, fifolen, rxctrl0, rxctrl1, txctrl0,
        txctrl1, fifo, mstctrl, clklo, clkhi, hsclk, timeout, rsv_0x44, dma, slave_multi[4];
} mxc_i2c_regs_t;
#define MXC_I2C0 ((mxc_i2c_regs_t *) 0x4001D000)
#define MXC_I2C1 ((mxc_i2c_regs_t *) 0x4001E000)
#define MXC_I2C2 ((mxc_i2c_regs_t *) 0x4001F000)
typedef struct {
    union {
        __IO uint32_t fifo32, fifo16[2], fifo8[4];
    };
    __IO uint32_t ctrl0, ctrl1, ctrl2, sstime, clkctrl, rsv_0x18, dma, intfl, inten, wkfl, wken, stat;
} mxc_spi_regs_t;
#define MXC_SPI0 ((mxc_spi_regs_t *) 0x400BE000)
#define MXC_SPI1 ((mxc_spi_regs_t *) 0x40046000)
typedef struct {
    __IO uint32_t ctrl0ch0, rsv_0x4[3], ctrl1ch0, rsv_0x14[3], filtch0, rsv_0x24[3], dmach0,
        rsv_0x34[3], fifoch0, rsv_0x44[3], intfl, inten, extsetup, wken, wkfl;
} mxc_i2s_regs_t;
#define MXC_I2S ((mxc_i2s_regs_t *) 0x40060000)

/* The rest */
typedef struct {
    __IO uint32_t ctrl, status, data, intr, limit[4];
} mxc_adc_regs_t;
#define MXC_ADC ((mxc_adc_regs_t *) 0x40034000)
typedef struct {
    __IO uint32_t ctrl, status, data;
} mxc_trng_regs_t;
#define MXC_F_TRNG_STATUS_RDY (1u << 0)
#define MXC_TRNG ((mxc_trng_regs_t *) 0x4004D000)
typedef struct {
    __IO uint32_t ctrl;
    union {
        __IO uint32_t datain32;
        __IO uint16_t datain16[2];
        __IO uint8_t datain8[4];
    };
    __IO uint32_t poly, val;
} mxc_crc_regs_t;
#define MXC_F_CRC_CTRL_EN (1u << 0)
#define MXC_F_CRC_CTRL_MSB (1u << 2)
#define MXC_F_CRC_CTRL_BYTE_SWAP_IN (1u << 3)
#define MXC_F_CRC_CTRL_BYTE_SWAP_OUT (1u << 4)
#define MXC_F_CRC_CTRL_BUSY (1u << 16)
#define MXC_CRC ((mxc_crc_regs_t *) 0x4000F000)
typedef struct {
    __IO uint32_t ctrl, status, intfl, inten, fifo;
} mxc_aes_regs_t;
#define MXC_F_AES_CTRL_EN (1u << 0)
#define MXC_F_AES_CTRL_START (1u << 3)
#define MXC_F_AES_CTRL_INPUT_FLUSH (1u << 4)
#define MXC_F_AES_CTRL_OUTPUT_FLUSH (1u << 5)
#define MXC_F_AES_CTRL_KEY_SIZE_POS 6
#define MXC_F_AES_CTRL_KEY_SIZE (3u << 6)
#define MXC_F_AES_CTRL_TYPE_POS 8
#define MXC_F_AES_CTRL_TYPE (3u << 8)
#define MXC_F_AES_STATUS_BUSY (1u << 0)
#define MXC_F_AES_STATUS_INPUT_EM (1u << 1)
#define MXC_F_AES_STATUS_INPUT_FULL (1u << 2)
#define MXC_F_AES_STATUS_OUTPUT_EM (1u << 3)
#define MXC_F_AES_STATUS_OUTPUT_FULL (1u << 4)
#define MXC_F_AES_INTFL_DONE (1u << 0)
#define MXC_F_AES_INTEN_DONE (1u << 0)
#define MXC_AES ((mxc_aes_regs_t *) 0x40007400)
typedef struct {
    __IO uint32_t key0, key1, key2, key3, key4, key5, key6, key7;
} mxc_aeskeys_regs_t;
#define MXC_AESKEYS ((mxc_aeskeys_regs_t *) 0x40005000)
#define MXC_AESKEY MXC_AESKEYS
typedef struct {
    __IO uint32_t ctrl[4];
} mxc_lpcmp_regs_t;
#define MXC_LPCMP ((mxc_lpcmp_regs_t *) 0x40088000)
typedef struct {
    __IO uint32_t rate_length, train, loop, restart;
} mxc_pt_regs_t;
typedef struct {
    __IO uint32_t enable, resync, intfl, inten, safe_en, safe_dis, ready_intfl, ready_inten;
} mxc_ptg_regs_t;
#define MXC_PTG ((mxc_ptg_regs_t *) 0x4003C000)
#define MXC_PT0 ((mxc_pt_regs_t *) 0x4003C020)
#define MXC_PT1 ((mxc_pt_regs_t *) 0x4003C030)
#define MXC_PT2 ((mxc_pt_regs_t *) 0x4003C040)
#define MXC_PT3 ((mxc_pt_regs_t *) 0x4003C050)
typedef struct {
    __IO uint32_t cfg, clk_div_1us, ctrl_stat, data, intfl, inten;
} mxc_owm_regs_t;
#define MXC_OWM ((mxc_owm_regs_t *) 0x4003D000)

/* Sizes of the memories; the firmware's own view of them, whatever the chip */
#define MXC_FLASH_MEM_BASE 0x10000000u
#define MXC_FLASH0_MEM_BASE MXC_FLASH_MEM_BASE
#define MXC_SRAM_MEM_BASE 0x20000000u
#ifdef TARGET_MAX78002
#define MXC_FLASH_MEM_SIZE 0x280000u
#define MXC_FLASH_PAGE_SIZE 0x4000u
#define MXC_SRAM_MEM_SIZE 0x60000u
#else
#define MXC_FLASH_MEM_SIZE 0x80000u
#define MXC_FLASH_PAGE_SIZE 0x2000u
#define MXC_SRAM_MEM_SIZE 0x20000u
#endif
#define MXC_INFO0_MEM_BASE 0x10800000u

#endif
