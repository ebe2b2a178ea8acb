#include "nn_kernels.h"

/* Depthwise convolution: each channel has a filter of its own. Where a 3x3 kernel lies within the
 * image, three neighbouring pixels at a time (up to six on Armv6-M, at borders too), so that weights
 * and columns are loaded once for them; elsewhere four channels at a time.
 *
 * Weights: int8_t in the order four channels, kernel row, kernel column, channel, with zeros at the
 * end. Scratch: two pointers for each place of the kernel. */

/* A place of the kernel that lies within the image: its pixel and its first weights. */
typedef struct {
    const int8_t *data, *weights;
}
#if defined(__GNUC__)
__attribute__((packed, aligned(4), may_alias)) /* as scratch is, where pointers are longer, too */
#endif
nn_depthwise_tap;

/* Four channels at a time of a pixel. */
typedef struct {
    const nn_depthwise_tap *taps, *end; /* at least one */
    const int32_t *start;
    int8_t *out;
    uint32_t channels; /* a multiple of four, not 0 */
    int32_t right;
    int32_t low;
    uint32_t by_three; /* the taps are a multiple of three */
    uint32_t step;     /* bytes from the weights of four channels to those of the next */
} nn_depthwise_pixel;

#if defined(__ARM_FEATURE_DSP) && !defined(__ARM_BIG_ENDIAN)
#define NN_DEPTHWISE_DSP
#elif defined(__riscv_mul) && __riscv_xlen == 32 && !defined(__riscv_32e)
#define NN_DEPTHWISE_RISCV
#endif

#if defined(NN_DEPTHWISE_DSP) || defined(NN_DEPTHWISE_RISCV)
#define NN_DEPTHWISE_FOURS

/* Four channels at a time of three neighbouring pixels whose 3x3 windows lie within the image, but
 * for one row. */
typedef struct {
    const int8_t *rows[3]; /* at the first column; the last may be NULL */
    const int8_t *weights; /* of the first of them */
    const int32_t *start;
    int8_t *end;       /* of `out` of the first pixel, behind its last four channels */
    uint32_t channels; /* of a pixel */
    int8_t *out;
    int32_t right;
    int32_t low;
} nn_depthwise_pixels;

#endif

/* Keep compilers from loading ahead more than the registers hold, and from unrolling short loops. */
#if defined(__GNUC__)
#define NN_DEPTHWISE_SLOWLY(count) __asm__ volatile("" : "+r"(count))
#define NN_DEPTHWISE_IN_ORDER __asm__ volatile("" ::: "memory")
#define NN_DEPTHWISE_APART __attribute__((noinline)) /* a function of its own gets all registers */
#else
#define NN_DEPTHWISE_SLOWLY(count) (void)0
#define NN_DEPTHWISE_IN_ORDER (void)0
#define NN_DEPTHWISE_APART
#endif

/* The output of a sum; in this order compilers take fewer instructions than for nn_clip. */
static inline int8_t nn_depthwise_narrow(int32_t sum, int32_t right, int32_t low)
{
    int32_t value = sum >> right;

    if (value > 127) {
        value = 127;
    }
    return (int8_t)(value < low ? low : value);
}

#if defined(NN_DEPTHWISE_DSP)

/* SXTB16 takes words apart to channels (0, 2) and (1, 3). Stack: the structure. */
__attribute__((naked, noinline)) static void
nn_depthwise_quads(const nn_depthwise_pixel *pixel NN_READ)
{
    __asm__ volatile(
#define NN_DEPTHWISE_TAP                                                                           \
    "ldrd r0, r1, [r3], #8\n"                                                                      \
    "ldr r0, [r0, r2]\n"                                                                           \
    "ldr r1, [r1, lr]\n"                                                                           \
    "sxtb16 r8, r0\n"                                                                              \
    "sxtb16 r0, r0, ror #8\n"                                                                      \
    "sxtb16 r9, r1\n"                                                                              \
    "sxtb16 r1, r1, ror #8\n"                                                                      \
    "smlabb r4, r8, r9, r4\n"                                                                      \
    "smlabb r5, r0, r1, r5\n"                                                                      \
    "smlatt r6, r8, r9, r6\n"                                                                      \
    "smlatt r7, r0, r1, r7\n"
        "push {r4, r5, r6, r7, r8, r9, r10, r11, lr}\n"
        "sub sp, sp, #28\n"
        "ldmia r0!, {r4, r5, r6, r7, r8, r9, r10, r11}\n"
        "ldr r0, [r0]\n"
        "strd r4, r11, [sp]\n"
        "strd r8, r10, [sp, #8]\n"
        "strd r9, r0, [sp, #16]\n"
        "mov r12, r5\n"
        "mov r10, r6\n"
        "mov r11, r7\n"
        "mov.w lr, #0\n"
        "movs r2, #0\n"
        "1:\n"
        "ldmia r10!, {r4, r5, r6, r7}\n"
        "ldrd r3, r0, [sp]\n"
        "cbnz r0, 3f\n"
        "2:\n" NN_DEPTHWISE_TAP
        "cmp r3, r12\n"
        "bne 2b\n"
        "b 4f\n"
        "3:\n" NN_DEPTHWISE_TAP NN_DEPTHWISE_TAP NN_DEPTHWISE_TAP
        "cmp r3, r12\n"
        "bne.w 3b\n"
        "4:\n"
        "ldrd r1, r0, [sp, #8]\n"
        "ldrd r3, r8, [sp, #16]\n"
        "add lr, lr, r8\n"
        "asr r4, r4, r3\n"
        "asr r5, r5, r3\n"
        "asr r6, r6, r3\n"
        "asr r7, r7, r3\n"
        "cbz r0, 5f\n"
        "ssat r4, #8, r4\n"
        "ssat r5, #8, r5\n"
        "ssat r6, #8, r6\n"
        "ssat r7, #8, r7\n"
        "b 6f\n"
        "5:\n"
        "usat r4, #7, r4\n"
        "usat r5, #7, r5\n"
        "usat r6, #7, r6\n"
        "usat r7, #7, r7\n"
        "6:\n"
        "strb r4, [r11], #1\n"
        "strb r5, [r11], #1\n"
        "strb r6, [r11], #1\n"
        "strb r7, [r11], #1\n"
        "adds r2, r2, #4\n"
        "cmp r2, r1\n"
        "bne.w 1b\n"
        "add sp, sp, #28\n"
        "pop {r4, r5, r6, r7, r8, r9, r10, r11, pc}\n");
#undef NN_DEPTHWISE_TAP
}

/* Even channels first, then odd ones: SXTB16 takes two of a word's. The column that all pixels need
 * is the first, so that each sum begins without a copy. Stack: the structure, then where each half
 * goes on behind two rows. */
__attribute__((naked, noinline)) static void
nn_depthwise_three_quads(const nn_depthwise_pixels *pixels NN_READ)
{
    __asm__ volatile(
#define NN_DEPTHWISE_COLUMN(place, turned) "ldr r6, [r0" place "]\nsxtb16 r6, r6" turned "\n"
#define NN_DEPTHWISE_FIRST(weight) "smlabb r7, r6, " weight ", r7\nsmlatt r8, r6, " weight ", r8\n"
#define NN_DEPTHWISE_SECOND(weight)                                                                \
    "smlabb r9, r6, " weight ", r9\nsmlatt r10, r6, " weight ", r10\n"
#define NN_DEPTHWISE_THIRD(weight)                                                                 \
    "smlabb r11, r6, " weight ", r11\nsmlatt r12, r6, " weight ", r12\n"
#define NN_DEPTHWISE_WEIGHTS(row, turned)                                                          \
    "ldr r0, [sp, #" row "]\n"                                                                     \
    "ldmia r1!, {r3, r4, r5}\n"                                                                    \
    "sxtb16 r3, r3" turned "\n"                                                                    \
    "sxtb16 r4, r4" turned "\n"                                                                    \
    "sxtb16 r5, r5" turned "\n"
#define NN_DEPTHWISE_TOP(turned)                                                                   \
    NN_DEPTHWISE_WEIGHTS("0", turned) NN_DEPTHWISE_COLUMN(", r2, lsl #1", turned)                  \
    "smlabb r11, r6, r3, r7\nsmlatt r12, r6, r3, r8\n"                                             \
    "smlabb r9, r6, r4, r7\nsmlatt r10, r6, r4, r8\n" NN_DEPTHWISE_FIRST("r5")                     \
    NN_DEPTHWISE_COLUMN("", turned) NN_DEPTHWISE_FIRST("r3")                                       \
    NN_DEPTHWISE_COLUMN(", r2", turned) NN_DEPTHWISE_FIRST("r4") NN_DEPTHWISE_SECOND("r3")         \
    NN_DEPTHWISE_COLUMN(", lr", turned) NN_DEPTHWISE_SECOND("r5") NN_DEPTHWISE_THIRD("r4")         \
    NN_DEPTHWISE_COLUMN(", r2, lsl #2", turned) NN_DEPTHWISE_THIRD("r5")
#define NN_DEPTHWISE_WINDOW(row, turned)                                                           \
    NN_DEPTHWISE_WEIGHTS(row, turned) NN_DEPTHWISE_COLUMN("", turned) NN_DEPTHWISE_FIRST("r3")                                       \
    NN_DEPTHWISE_COLUMN(", r2", turned) NN_DEPTHWISE_FIRST("r4") NN_DEPTHWISE_SECOND("r3")         \
    NN_DEPTHWISE_COLUMN(", r2, lsl #1", turned) NN_DEPTHWISE_FIRST("r5")                           \
    NN_DEPTHWISE_SECOND("r4") NN_DEPTHWISE_THIRD("r3")                                             \
    NN_DEPTHWISE_COLUMN(", lr", turned) NN_DEPTHWISE_SECOND("r5") NN_DEPTHWISE_THIRD("r4")         \
    NN_DEPTHWISE_COLUMN(", r2, lsl #2", turned) NN_DEPTHWISE_THIRD("r5")
#define NN_DEPTHWISE_HALF(start, other, next, behind, turned)                                      \
    "ldrd r1, r3, [sp, #12]\n"                                                                    \
    "ldr r7, [r3, #" start "]\n"                                                                   \
    "ldr r8, [r3, #" other "]\n"                                                                   \
    NN_DEPTHWISE_TOP(turned) NN_DEPTHWISE_WINDOW("4", turned)                                      \
    "ldr pc, [sp, #" next "]\n"                                                                    \
    ".balign 4\n" behind "4:\n" NN_DEPTHWISE_WINDOW("8", turned)                                  \
    ".balign 4\n" behind "5:\n"                                                                    \
    "ldr r0, [sp, #28]\n"                                                                          \
    "ldrd r3, r4, [sp, #32]\n"                                                                     \
    "asr r7, r7, r3\n"                                                                             \
    "asr r8, r8, r3\n"                                                                             \
    "asr r9, r9, r3\n"                                                                             \
    "asr r10, r10, r3\n"                                                                           \
    "asr r11, r11, r3\n"                                                                           \
    "asr r12, r12, r3\n"                                                                           \
    "cbz r4, 2f\n"                                                                                 \
    "ssat r7, #8, r7\n"                                                                            \
    "ssat r8, #8, r8\n"                                                                            \
    "ssat r9, #8, r9\n"                                                                            \
    "ssat r10, #8, r10\n"                                                                          \
    "ssat r11, #8, r11\n"                                                                          \
    "ssat r12, #8, r12\n"                                                                          \
    "b 3f\n"                                                                                       \
    "2:\n"                                                                                         \
    "usat r7, #7, r7\n"                                                                            \
    "usat r8, #7, r8\n"                                                                            \
    "usat r9, #7, r9\n"                                                                            \
    "usat r10, #7, r10\n"                                                                          \
    "usat r11, #7, r11\n"                                                                          \
    "usat r12, #7, r12\n"                                                                          \
    "3:\n"                                                                                         \
    "strb r7, [r0, #" behind "]!\n"                                                                \
    "strb r9, [r0, r2]\n"                                                                          \
    "strb r11, [r0, r2, lsl #1]\n"                                                                 \
    "strb r8, [r0, #2]!\n"                                                                         \
    "strb r10, [r0, r2]\n"                                                                         \
    "strb r12, [r0, r2, lsl #1]\n"
        "push {r4, r5, r6, r7, r8, r9, r10, r11, lr}\n"
        "sub sp, sp, #52\n"
        "ldmia r0, {r1, r2, r3, r4, r5, r6, r7, r8, r9, r10}\n"
        "subs r6, r6, #1\n" /* `out` is a byte ahead of its channels, and so is its end */
        "subs.w r8, r8, #1\n"
        "stmia.w sp, {r1, r2, r3, r4, r5, r6, r7, r8, r9, r10}\n"
        "mov r2, r7\n"
        "add lr, r2, r2, lsl #1\n"
        "adr.w r4, 14f\n"
        "adr.w r5, 24f\n"
        "cbnz r3, 6f\n"
        "adr.w r4, 15f\n"
        "adr.w r5, 25f\n"
        "6:\n"
        "orr r4, r4, #1\n"
        "orr r5, r5, #1\n"
        "strd r4, r5, [sp, #40]\n"
        "1:\n" NN_DEPTHWISE_HALF("0", "8", "40", "1", "")
        NN_DEPTHWISE_HALF("4", "12", "44", "2", ", ror #8")
        "ldmia.w sp, {r3, r4, r5, r6, r7, r8}\n"
        "adds r3, r3, #4\n"
        "adds r4, r4, #4\n"
        "adds r5, r5, #4\n"
        "adds r6, r6, #36\n"
        "adds r7, r7, #16\n"
        "stmia.w sp, {r3, r4, r5, r6, r7}\n"
        "str r0, [sp, #28]\n"
        "cmp r0, r8\n"
        "bne.w 1b\n"
        "add sp, sp, #52\n"
        "pop {r4, r5, r6, r7, r8, r9, r10, r11, pc}\n");
#undef NN_DEPTHWISE_HALF
#undef NN_DEPTHWISE_WINDOW
#undef NN_DEPTHWISE_TOP
#undef NN_DEPTHWISE_WEIGHTS
#undef NN_DEPTHWISE_THIRD
#undef NN_DEPTHWISE_SECOND
#undef NN_DEPTHWISE_FIRST
#undef NN_DEPTHWISE_COLUMN
}

#else

static void nn_depthwise_quads(const nn_depthwise_pixel *pixel)
{
    const nn_depthwise_tap *const taps = pixel->taps, *const end = pixel->end;
    const uint32_t channels = pixel->channels, step = pixel->step;
    const int32_t right = pixel->right, low = pixel->low, *start = pixel->start;
    int8_t *out = pixel->out;
    uint32_t channel = 0, place = 0;

    do {
        int32_t sum0 = start[0], sum1 = start[1], sum2 = start[2], sum3 = start[3];
        const nn_depthwise_tap *tap = taps;

        do {
            const int8_t *data = tap->data + channel, *weights = tap->weights + place;

            sum0 += (int32_t)data[0] * weights[0];
            sum1 += (int32_t)data[1] * weights[1];
            sum2 += (int32_t)data[2] * weights[2];
            sum3 += (int32_t)data[3] * weights[3];
        } while (++tap != end);
        out[0] = nn_depthwise_narrow(sum0, right, low);
        out[1] = nn_depthwise_narrow(sum1, right, low);
        out[2] = nn_depthwise_narrow(sum2, right, low);
        out[3] = nn_depthwise_narrow(sum3, right, low);
        channel += 4;
        place += step;
        start += 4;
        out += 4;
    } while (channel != channels);
}

#if defined(NN_DEPTHWISE_RISCV)

/* Four channels at a time, whose twelve sums are in s0 to s11: each row's columns are addressed once.
 * Stack: registers, bytes of weights of a row that is not there, the next start values. */
__attribute__((naked, noinline)) static void
nn_depthwise_three_quads(const nn_depthwise_pixels *pixels NN_READ)
{
    __asm__ volatile(
#define NN_DEPTHWISE_CHANNEL(first, second, third, weight, centre, other, channel)                 \
    "lb a4, " weight "(a2)\nlb a7, " channel "(t1)\nlb a5, " centre "(a2)\n"                       \
    "mul t0, a7, a4\nlb a7, " channel "(t2)\nadd " first ", " first ", t0\n"                       \
    "mul t0, a7, a5\nmul a7, a7, a4\nlb a6, " other "(a2)\n"                                       \
    "add " second ", " second ", a7\nlb a7, " channel "(t3)\nadd " first ", " first ", t0\n"       \
    "mul t0, a7, a6\nadd " first ", " first ", t0\nmul t0, a7, a5\nmul a4, a7, a4\n"               \
    "lb a7, " channel "(t4)\nadd " second ", " second ", t0\nadd " third ", " third ", a4\n"       \
    "mul t0, a7, a6\nmul a5, a7, a5\nlb a7, " channel "(t5)\n"                                     \
    "add " second ", " second ", t0\nadd " third ", " third ", a5\n"                               \
    "mul a6, a7, a6\nadd " third ", " third ", a6\n"
#define NN_DEPTHWISE_OUT(sum, place)                                                               \
    "sra " sum ", " sum ", a4\n"                                                                   \
    "bge " sum ", a5, 3f\n"                                                                        \
    "mv " sum ", a5\n"                                                                             \
    "3:\n"                                                                                         \
    "bge a6, " sum ", 3f\n"                                                                        \
    "mv " sum ", a6\n"                                                                             \
    "3:\n"                                                                                         \
    "sb " sum ", " place "(t0)\n"
#define NN_DEPTHWISE_PIXEL(sum0, sum1, sum2, sum3)                                                 \
    NN_DEPTHWISE_OUT(sum0, "0") NN_DEPTHWISE_OUT(sum1, "1") NN_DEPTHWISE_OUT(sum2, "2")            \
    NN_DEPTHWISE_OUT(sum3, "3")
#define NN_DEPTHWISE_SAVED(how)                                                                    \
    how " s0, 0(sp)\n" how " s1, 4(sp)\n" how " s2, 8(sp)\n" how " s3, 12(sp)\n"                   \
    how " s4, 16(sp)\n" how " s5, 20(sp)\n" how " s6, 24(sp)\n" how " s7, 28(sp)\n"                \
    how " s8, 32(sp)\n" how " s9, 36(sp)\n" how " s10, 40(sp)\n" how " s11, 44(sp)\n"              \
    how " ra, 48(sp)\n"
        "addi sp, sp, -64\n" NN_DEPTHWISE_SAVED("sw")
        "lw t0, 16(a0)\n"
        "lw a2, 12(a0)\n"
        "lw a1, 24(a0)\n"
        "sw t0, 56(sp)\n"
        "lw t0, 8(a0)\n"
        "li a3, 0\n"
        "addi ra, a0, 12\n"
        "sw zero, 52(sp)\n"
        "bnez t0, 1f\n"
        "addi ra, a0, 8\n"
        "li t0, 12\n"
        "sw t0, 52(sp)\n"
        "1:\n"
        "lw t0, 56(sp)\n"
        "mv t6, a0\n"
        "lw s0, 0(t0)\n"
        "lw s3, 4(t0)\n"
        "lw s6, 8(t0)\n"
        "lw s9, 12(t0)\n"
        "addi t0, t0, 16\n"
        "sw t0, 56(sp)\n"
        "mv s1, s0\nmv s2, s0\nmv s4, s3\nmv s5, s3\n"
        "mv s7, s6\nmv s8, s6\nmv s10, s9\nmv s11, s9\n"
        "2:\n"
        "lw t1, 0(t6)\n"
        "addi t6, t6, 4\n"
        "add t1, t1, a3\n"
        "add t2, t1, a1\n"
        "add t3, t2, a1\n"
        "add t4, t3, a1\n"
        "add t5, t4, a1\n"
        NN_DEPTHWISE_CHANNEL("s0", "s1", "s2", "0", "4", "8", "0")
        NN_DEPTHWISE_CHANNEL("s3", "s4", "s5", "1", "5", "9", "1")
        NN_DEPTHWISE_CHANNEL("s6", "s7", "s8", "2", "6", "10", "2")
        NN_DEPTHWISE_CHANNEL("s9", "s10", "s11", "3", "7", "11", "3")
        "addi a2, a2, 12\n"
        "bne t6, ra, 2b\n"
        "lw t0, 28(a0)\n"
        "lw a4, 32(a0)\n"
        "lw a5, 36(a0)\n"
        "lw t1, 52(sp)\n"
        "lw t2, 20(a0)\n"
        "li a6, 127\n"
        "add a2, a2, t1\n"
        "add t0, t0, a3\n"
        "addi a3, a3, 4\n"
        "addi t3, t0, 4\n" NN_DEPTHWISE_PIXEL("s0", "s3", "s6", "s9")
        "add t0, t0, a1\n" NN_DEPTHWISE_PIXEL("s1", "s4", "s7", "s10")
        "add t0, t0, a1\n" NN_DEPTHWISE_PIXEL("s2", "s5", "s8", "s11")
        "bne t3, t2, 1b\n" NN_DEPTHWISE_SAVED("lw")
        "addi sp, sp, 64\n"
        "ret\n");
#undef NN_DEPTHWISE_SAVED
#undef NN_DEPTHWISE_PIXEL
#undef NN_DEPTHWISE_OUT
#undef NN_DEPTHWISE_CHANNEL
}

#endif
#endif

#if defined(NN_ARMV6M)

/* Up to six neighbouring pixels of a 3x3 kernel, the last of them in the last place; what is computed
 * in front of the first one is not used. */
typedef struct {
    int8_t *out; /* of the first pixel */
    const int32_t *start;
    const int8_t *data; /* one or two pixels in front of the first column, in the first row */
    const int8_t *end;  /* of `out` of the first pixel, behind its channels */
    uint32_t channels;
    const int8_t *weights; /* of the first row that there is */
    int32_t second, third; /* from behind a row to the next one */
    uint32_t whole;        /* there are three rows, not two */
    int32_t right;
    int32_t low;
    uint32_t columns, border, pixels; /* bytes of code that are skipped: in front of the first column,
                                       * of the last column, in front of the first pixel */
} nn_depthwise_six;

/* r8 to r12 and lr are sums. Stack: the structure. */
__attribute__((naked, noinline)) static void
nn_depthwise_compute(const nn_depthwise_six *pixels NN_READ)
{
    __asm__ volatile(
#define NN_DEPTHWISE_SKIP(place) "ldr r7, [sp, #" place "]\nadd pc, r7\nnop\n"
#define NN_DEPTHWISE_ODD "ldrsb r6, [r0, r2]\n"
#define NN_DEPTHWISE_EVEN "ldrsb r6, [r0, r1]\nadds r0, r0, r1\n"
#define NN_DEPTHWISE_KEEP(weight, sum) "mov r7, r6\nmuls r7, " weight ", r7\nadd " sum ", r7\n"
#define NN_DEPTHWISE_LAST(weight, sum) "muls " weight ", r6, " weight "\nadd " sum ", " weight "\n"
#define NN_DEPTHWISE_END(weight, sum) "muls r6, " weight ", r6\nadd " sum ", r6\n"
#define NN_DEPTHWISE_THREE(first, second, third)                                                   \
    NN_DEPTHWISE_KEEP("r5", first) NN_DEPTHWISE_KEEP("r4", second) NN_DEPTHWISE_END("r3", third)
#define NN_DEPTHWISE_ROW(ahead, first, second, third)                                              \
    "ldr r6, [sp, #20]\n" ahead                                                                    \
    "ldrb r3, [r6, #" first "]\n"                                                                  \
    "ldrb r4, [r6, #" second "]\n"                                                                 \
    "ldrb r5, [r6, #" third "]\n"                                                                  \
    "sxtb r3, r3\n"                                                                                \
    "sxtb r4, r4\n"                                                                                \
    "sxtb r5, r5\n" NN_DEPTHWISE_SKIP("44")                                                        \
    NN_DEPTHWISE_ODD NN_DEPTHWISE_END("r3", "r8")                                                  \
    NN_DEPTHWISE_EVEN NN_DEPTHWISE_KEEP("r4", "r8") NN_DEPTHWISE_END("r3", "r9")                   \
    NN_DEPTHWISE_ODD NN_DEPTHWISE_THREE("r8", "r9", "r10")                                         \
    NN_DEPTHWISE_EVEN NN_DEPTHWISE_THREE("r9", "r10", "r11")                                       \
    NN_DEPTHWISE_ODD NN_DEPTHWISE_THREE("r10", "r11", "r12")                                       \
    NN_DEPTHWISE_EVEN NN_DEPTHWISE_LAST("r3", "lr") NN_DEPTHWISE_KEEP("r4", "r12")                 \
    NN_DEPTHWISE_END("r5", "r11")                                                                  \
    NN_DEPTHWISE_ODD NN_DEPTHWISE_LAST("r4", "lr") NN_DEPTHWISE_END("r5", "r12")                   \
    NN_DEPTHWISE_SKIP("48") NN_DEPTHWISE_EVEN NN_DEPTHWISE_END("r5", "lr")
#define NN_DEPTHWISE_OUT(sum)                                                                      \
    "mov r6, " sum "\n"                                                                            \
    "asrs r6, r6, r3\n"                                                                            \
    "cmp r6, r4\n"                                                                                 \
    "bge 2f\n"                                                                                     \
    "mov r6, r4\n"                                                                                 \
    "2: cmp r6, #127\n"                                                                            \
    "ble 2f\n"                                                                                     \
    "movs r6, #127\n"                                                                              \
    "2: strb r6, [r0]\n"                                                                           \
    "adds r0, r0, r2\n"
        ".syntax unified\n"
        "push {r4, r5, r6, r7, lr}\n"
        "mov r4, r8\n"
        "mov r5, r9\n"
        "mov r6, r10\n"
        "mov r7, r11\n"
        "push {r4, r5, r6, r7}\n"
        "sub sp, sp, #56\n"
        "mov r1, sp\n"
        "ldmia r0!, {r2, r3, r4, r5, r6, r7}\n"
        "stmia r1!, {r2, r3, r4, r5, r6, r7}\n"
        "ldmia r0!, {r2, r3, r4, r5}\n"
        "stmia r1!, {r2, r3, r4, r5}\n"
        "ldmia r0!, {r2, r3, r4, r5}\n"
        "stmia r1!, {r2, r3, r4, r5}\n"
        "ldr r2, [sp, #16]\n"
        "lsls r1, r2, #1\n"
        "1:\n"
        "ldr r6, [sp, #4]\n"
        "ldmia r6!, {r7}\n"
        "str r6, [sp, #4]\n"
        "mov r8, r7\n"
        "mov r9, r7\n"
        "mov r10, r7\n"
        "mov r11, r7\n"
        "mov r12, r7\n"
        "mov lr, r7\n"
        "ldr r0, [sp, #8]\n"
        "adds r6, r0, #1\n"
        "str r6, [sp, #8]\n" NN_DEPTHWISE_ROW("", "0", "4", "8")
        "ldr r7, [sp, #24]\n"
        "adds r0, r0, r7\n" NN_DEPTHWISE_ROW("", "12", "16", "20")
        "ldr r7, [sp, #32]\n"
        "cmp r7, #0\n"
        "beq 3f\n"
        "ldr r7, [sp, #28]\n"
        "adds r0, r0, r7\n" NN_DEPTHWISE_ROW("adds r6, r6, #4\n", "20", "24", "28")
        "3:\n"
        "ldr r6, [sp, #20]\n"
        "adds r6, r6, #1\n"
        "lsls r7, r6, #30\n"
        "bne 2f\n"
        "adds r6, r6, #32\n" /* the next four channels */
        "2:\n"
        "str r6, [sp, #20]\n"
        "ldr r0, [sp]\n"
        "adds r5, r0, #1\n"
        "str r5, [sp]\n"
        "ldr r3, [sp, #36]\n"
        "ldr r4, [sp, #40]\n"
        NN_DEPTHWISE_SKIP("52") NN_DEPTHWISE_OUT("r8") NN_DEPTHWISE_OUT("r9")
        NN_DEPTHWISE_OUT("r10") NN_DEPTHWISE_OUT("r11") NN_DEPTHWISE_OUT("r12")
        NN_DEPTHWISE_OUT("lr")
        "ldr r7, [sp, #12]\n"
        "cmp r5, r7\n"
        "beq 2f\n"
        "b 1b\n"
        "2:\n"
        "add sp, sp, #56\n"
        "pop {r4, r5, r6, r7}\n"
        "mov r8, r4\n"
        "mov r9, r5\n"
        "mov r10, r6\n"
        "mov r11, r7\n"
        "pop {r4, r5, r6, r7, pc}\n");
#undef NN_DEPTHWISE_OUT
#undef NN_DEPTHWISE_ROW
#undef NN_DEPTHWISE_THREE
#undef NN_DEPTHWISE_END
#undef NN_DEPTHWISE_LAST
#undef NN_DEPTHWISE_KEEP
#undef NN_DEPTHWISE_EVEN
#undef NN_DEPTHWISE_ODD
#undef NN_DEPTHWISE_SKIP
}

/* Computes pixels of a 3x3 kernel from input column `x` on together, if that can be; returns how
 * many. */
static unsigned nn_depthwise_near(const nn_conv *conv, const int8_t *const *rows, int32_t x,
                                  unsigned count, int8_t *out)
{
    static const uint8_t columns[] = {0, 6, 20, 38, 58, 76, 94}; /* where their code begins */
    const int32_t channels = (int32_t)conv->channels;
    const unsigned pixels = count > 11 ? 6 : count > 6 ? (count + 1) / 2 : count;
    const int32_t behind = (int32_t)conv->width - x - (int32_t)pixels; /* the last pixel's column */
    const unsigned first = 6 - pixels + (x < 0), border = behind < 2;
    const int32_t width = 2 * channels * (int32_t)((8 - border) / 2 - first / 2);
    const int8_t *const *row = rows[0] == NULL ? rows + 1 : rows;
    nn_depthwise_six six;

    if (conv->kernel_rows != 3 || conv->kernel_columns != 3 || conv->dilation != 1 ||
        conv->stride != 1 || conv->flags || conv->right < 0 || rows[1] == NULL ||
        (rows[0] == NULL && rows[2] == NULL) || x < -1 || behind < 1) {
        return 0;
    }
    six.out = out;
    six.start = conv->start;
    six.data = row[0] + (x + (x < 0) - 1 - (int32_t)(first & 1)) * channels;
    six.end = out + channels;
    six.channels = conv->channels;
    six.weights = (const int8_t *)conv->weights + 12 * (row - rows);
    six.second = (int32_t)((uintptr_t)row[1] - (uintptr_t)row[0]) - width;
    six.whole = row == rows && rows[2] != NULL;
    six.third = (int32_t)((uintptr_t)row[2] - (uintptr_t)row[1]) - width;
    six.right = conv->right;
    six.low = conv->low;
    six.columns = columns[first];
    six.border = 8 * border;
    six.pixels = 20 * (6 - pixels);
    nn_depthwise_compute(&six);
    return pixels;
}

#else

/* Whether the windows of `count` pixels from input column `x` on are 3x3 and lie within the image, but
 * for the first or the last row. */
static int nn_depthwise_inside(const nn_conv *conv, const int8_t *const *rows, int32_t x,
                               unsigned count)
{
    return x >= 0 && x + (int32_t)count + 2 <= (int32_t)conv->width && conv->kernel_rows == 3 &&
           conv->kernel_columns == 3 && conv->dilation == 1 && conv->stride == 1 &&
           conv->flags == 0 && conv->right >= 0 && rows[1] != NULL &&
           (rows[0] != NULL || rows[2] != NULL);
}

/* Three pixels whose windows lie within the image, but for the first or the last row; `place` is that
 * of the first column's bytes. */
NN_DEPTHWISE_APART static void nn_depthwise_three(const nn_conv *conv, const int8_t *const *rows,
                                                  uint32_t place, int8_t *out)
{
    const uint32_t channels = conv->channels;
    const int whole = rows[0] != NULL && rows[2] != NULL;
    const int8_t *weights = (const int8_t *)conv->weights + (rows[0] != NULL ? 0 : 12);
    const int32_t right = conv->right, low = conv->low, *start = conv->start;
#if defined(NN_DEPTHWISE_FOURS)
    nn_depthwise_pixels pixels;
    const int8_t **const present = pixels.rows;
    uint32_t channel = channels & ~(uint32_t)3;
#else
    const int8_t *present[3];
    uint32_t channel = 0;
#endif

    present[0] = (rows[0] != NULL ? rows[0] : rows[1]) + place;
    present[1] = (rows[0] != NULL ? rows[1] : rows[2]) + place;
    present[2] = whole ? rows[2] + place : NULL;
#if defined(NN_DEPTHWISE_FOURS)
    if (channel) {
        pixels.weights = weights;
        pixels.start = start;
        pixels.end = out + channel;
        pixels.channels = channels;
        pixels.out = out;
        pixels.right = right;
        pixels.low = low;
        nn_depthwise_three_quads(&pixels);
        start += channel;
        present[0] += channel;
        present[1] += channel;
        weights += 9 * channel;
        present[2] += whole ? channel : 0;
        out += channel;
    }
#endif
    for (; channel < channels; channel += 4, weights += 32) {
        const int8_t *const stop = weights + (channels - channel < 4 ? channels - channel : 4);

        for (; weights != stop; weights++, out++) {
            const int8_t *weight = weights, *data = present[0]++;
            int32_t sum0 = *start++, sum1 = sum0, sum2 = sum0;
            int32_t left, centre, other, value;

#define NN_DEPTHWISE_ROW                                                                           \
    left = weight[0];                                                                              \
    centre = weight[4];                                                                            \
    other = weight[8];                                                                             \
    NN_DEPTHWISE_IN_ORDER;                                                                         \
    value = *data;                                                                                 \
    data += channels;                                                                              \
    sum0 += value * left;                                                                          \
    NN_DEPTHWISE_IN_ORDER;                                                                         \
    value = *data;                                                                                 \
    data += channels;                                                                              \
    sum0 += value * centre;                                                                        \
    sum1 += value * left;                                                                          \
    NN_DEPTHWISE_IN_ORDER;                                                                         \
    value = *data;                                                                                 \
    data += channels;                                                                              \
    sum0 += value * other;                                                                         \
    sum1 += value * centre;                                                                        \
    sum2 += value * left;                                                                          \
    NN_DEPTHWISE_IN_ORDER;                                                                         \
    value = *data;                                                                                 \
    data += channels;                                                                              \
    sum1 += value * other;                                                                         \
    sum2 += value * centre;                                                                        \
    NN_DEPTHWISE_IN_ORDER;                                                                         \
    value = *data;                                                                                 \
    sum2 += value * other;
            NN_DEPTHWISE_ROW
            weight += 12;
            data = present[1]++;
            NN_DEPTHWISE_ROW
            if (whole) {
                weight += 12;
                data = present[2]++;
                NN_DEPTHWISE_ROW
            }
#undef NN_DEPTHWISE_ROW
            out[0] = nn_depthwise_narrow(sum0, right, low);
            out[channels] = nn_depthwise_narrow(sum1, right, low);
            out[2 * channels] = nn_depthwise_narrow(sum2, right, low);
        }
    }
}

/* Computes three pixels from input column `x` on together, if that can be; returns how many. */
static unsigned nn_depthwise_near(const nn_conv *conv, const int8_t *const *rows, int32_t x,
                                  unsigned count, int8_t *out)
{
    if (count < 3 || !nn_depthwise_inside(conv, rows, x, 3)) {
        return 0;
    }
    nn_depthwise_three(conv, rows, (uint32_t)x * conv->channels, out);
    return 3;
}

#endif

/* Lists the places of the kernel from input column `x` on that lie within the image; returns the end. */
static nn_depthwise_tap *nn_depthwise_list(const nn_conv *conv, const int8_t *const *rows,
                                           int32_t x, nn_depthwise_tap *tap)
{
    const int8_t *weights = (const int8_t *)conv->weights;
    const uint32_t channels = conv->channels, columns = conv->kernel_columns;
    const uint32_t step = conv->dilation * channels;
    const int8_t *const *const end = rows + conv->kernel_rows;
    unsigned count = columns;
    int32_t last = x + (int32_t)((columns - 1) * conv->dilation);

    for (; count && x < 0; count--) {
        x += conv->dilation;
        weights += 4;
        NN_DEPTHWISE_SLOWLY(count);
    }
    for (; count && last >= (int32_t)conv->width; count--) {
        last -= conv->dilation;
        NN_DEPTHWISE_SLOWLY(count);
    }
    for (; count && rows != end; rows++, weights += 4 * columns) {
        const int8_t *data = *rows, *weight = weights;
        unsigned left = count;

        if (data == NULL) {
            continue;
        }
        data += (uint32_t)x * channels;
        do {
            tap->data = data;
            tap->weights = weight;
            tap++;
            data += step;
            weight += 4;
            NN_DEPTHWISE_SLOWLY(left);
        } while (--left);
    }
    return tap;
}

void nn_depthwise(const nn_conv *conv, const int8_t *const *rows, unsigned x, unsigned count,
                  void *out, void *scratch)
{
    const uint32_t channels = conv->channels;
    const uint32_t size = channels << (conv->flags & NN_WIDE ? 2 : 0);
    const int simple = conv->flags == 0 && conv->right >= 0;
    nn_depthwise_tap *const taps = (nn_depthwise_tap *)scratch;
    nn_depthwise_pixel pixel;

    pixel.taps = taps;
    pixel.start = conv->start;
    pixel.out = (int8_t *)out;
    pixel.channels = simple ? channels & ~(uint32_t)3 : 0;
    pixel.right = conv->right;
    pixel.low = conv->low;
    pixel.step = 4 * (uint32_t)conv->kernel_rows * conv->kernel_columns;
    while (count) {
        const int32_t at = (int32_t)(x * conv->stride) - conv->pad;
        const unsigned near = nn_depthwise_near(conv, rows, at, count, pixel.out);
        const nn_depthwise_tap *tap;
        uint32_t channel = 0;

        if (near) {
            x += near;
            count -= near;
            pixel.out += near * size;
            continue;
        }
        pixel.end = nn_depthwise_list(conv, rows, at, taps);
        pixel.by_three = (uint32_t)(pixel.end - taps) % 3 == 0;
        if (pixel.channels && pixel.end != taps) {
            nn_depthwise_quads(&pixel);
            channel = pixel.channels;
        }
        for (; channel < channels; channel++) {
            const uint32_t place = channel / 4 * pixel.step + channel % 4;
            int32_t sum = conv->start[channel];

            for (tap = taps; tap != pixel.end; tap++) {
                sum += (int32_t)tap->data[channel] * tap->weights[place];
            }
            nn_store(conv, pixel.out, channel, sum);
        }
        x++;
        count--;
        pixel.out += size;
    }
}
