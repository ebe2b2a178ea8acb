/* setjmp() and longjmp(): what a function must keep, its stack and where it goes on. */
#include <setjmp.h>

#ifdef __riscv
__asm__(".weak setjmp, longjmp\n"
        ".section .text.setjmp, \"ax\", @progbits\n"
        "setjmp:\n"
        "sw ra, 0(a0)\n sw sp, 4(a0)\n sw s0, 8(a0)\n sw s1, 12(a0)\n sw s2, 16(a0)\n"
        "sw s3, 20(a0)\n sw s4, 24(a0)\n sw s5, 28(a0)\n sw s6, 32(a0)\n sw s7, 36(a0)\n"
        "sw s8, 40(a0)\n sw s9, 44(a0)\n sw s10, 48(a0)\n sw s11, 52(a0)\n"
        "li a0, 0\n ret\n"
        "longjmp:\n"
        "lw ra, 0(a0)\n lw sp, 4(a0)\n lw s0, 8(a0)\n lw s1, 12(a0)\n lw s2, 16(a0)\n"
        "lw s3, 20(a0)\n lw s4, 24(a0)\n lw s5, 28(a0)\n lw s6, 32(a0)\n lw s7, 36(a0)\n"
        "lw s8, 40(a0)\n lw s9, 44(a0)\n lw s10, 48(a0)\n lw s11, 52(a0)\n"
        "seqz a0, a1\n add a0, a0, a1\n ret\n"
        ".text\n");
#else
__asm__(".weak setjmp, longjmp\n"
        ".section .text.setjmp, \"ax\", %progbits\n"
        ".syntax unified\n .thumb\n"
        ".type setjmp, %function\n .type longjmp, %function\n"
        ".thumb_func\n"
        "setjmp:\n"
        "mov r2, sp\n stmia r0!, {r2, r4-r11, lr}\n movs r0, #0\n bx lr\n"
        ".thumb_func\n"
        "longjmp:\n"
        "ldmia r0!, {r2, r4-r11, lr}\n mov sp, r2\n movs r0, r1\n it eq\n moveq r0, #1\n bx lr\n"
        ".text\n");
#endif
