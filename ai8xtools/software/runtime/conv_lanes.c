#include "nn_kernels.h"

/* Convolution with two products per multiplication, for cores without SIMD instructions: blocks of
 * two pixels by two filters on Armv6-M, of four pixels elsewhere.
 *
 * Two pixels share a word, v = x0 + x1 * 2^16, so a sum of v * w modulo 2^32 holds a sum of each
 * pixel in its halves. Both must be 16-bit numbers whenever they are taken out, which happens at the
 * end of each run of inputs; that they are is proven from the weights when these are packed. Sums
 * begin with 2^15 in both halves, so that the lower one never borrows from the upper one.
 *
 * Weights: int8_t; of each pair of filters the weights of both for one input after the other, in the
 * order kernel row, kernel column, channel, and the lengths of their runs (1 to 16), which 0 ends. On
 * Armv6-M the first half of the inputs and the second have runs of their own, and four bytes stand
 * together: the weights of both filters for an input of the first half, and for one of the second.
 * So they are as far apart as words of pixels, and one register counts for all. In place of a length
 * (1 to 18) stands where the code of such a run begins, and 2 behind the runs of the first half.
 * Scratch: a word for each input and two pixels.
 */

#define NN_LANES_HALF 0x8000u
#define NN_LANES_BIAS 0x80008000u

typedef uint32_t NN_ALIAS nn_lanes;

/* Of a word of two pixels and a filter: the sum of all words that were taken out, and of their upper
 * halves. */
typedef struct {
    uint32_t words, uppers;
} nn_lanes_sum;

#if defined(NN_ARMV6M) || defined(NN_FOR_CORTEX_M0PLUS)

#define NN_LANES_WORDS 1 /* of two pixels */
#define NN_LANES_LISTS 2 /* of runs */
/* The code of the longest run begins at 4, and has 14 bytes for each input. */
#define NN_LANES_LENGTH(begin) (18 - ((uint32_t)(uint8_t)(begin) - 4) / 14)

#if !defined(NN_ARMV6M)

/* The same in plain C, so that a program for Armv6-M runs on any computer too. */
static const int8_t *nn_lanes_block(const nn_lanes *data, const int8_t *weights, uint32_t length,
                                    const int8_t *runs, nn_lanes_sum *sums)
{
    uint32_t list, filter, left;

    (void)length;
    sums[0].words = sums[0].uppers = sums[1].words = sums[1].uppers = 0;
    for (list = 0; list < 2; list++, runs++) {
        const int8_t *weight = weights + 2 * list;

        for (; (uint8_t)*runs > 2; runs++) {
            const uint32_t run = NN_LANES_LENGTH(*runs);

            for (filter = 0; filter < 2; filter++) {
                uint32_t sum = NN_LANES_BIAS;

                for (left = 0; left < run; left++) {
                    const uint32_t factor = (uint32_t)(int32_t)weight[4 * left + filter];

                    sum += data[left] * factor;
                }
                sums[filter].words += sum;
                sums[filter].uppers += sum >> 16;
            }
            data += run;
            weight += 4 * run;
        }
    }
    return runs;
}

#else

/* Pairs of filters of two pixels. `data` and each filter have `list_bytes` bytes of a list's words.
 * Results of `pairs` are stored, or the sums of one if there are none. */
typedef struct {
    const nn_lanes *data;
    const int8_t *weights; /* at the end those that follow */
    uint32_t list_bytes;
    uint32_t pairs;
    int8_t *out;
    const int32_t *start;
    uint32_t filters;
    int32_t right;
    int32_t low;
    nn_lanes_sum *sums; /* of both filters */
} nn_lanes_job;

__attribute__((naked, noinline)) static void nn_lanes_work(nn_lanes_job *job NN_READ)
{
    __asm__ volatile(
#define NN_LANES_STEP                                                                              \
    "ldmia r0!, {r4}\n"                                                                            \
    "ldrsb r5, [r0, r1]\n"                                                                         \
    "muls r5, r4, r5\n"                                                                            \
    "adds r6, r6, r5\n"                                                                            \
    "ldrsb r5, [r0, r3]\n"                                                                         \
    "muls r5, r4, r5\n"                                                                            \
    "adds r7, r7, r5\n"
#define NN_LANES_6_STEPS                                                                           \
    NN_LANES_STEP NN_LANES_STEP NN_LANES_STEP NN_LANES_STEP NN_LANES_STEP NN_LANES_STEP
#define NN_LANES_LIMIT(value)                                                                      \
    "asrs " value ", " value ", r4\n"                                                              \
    "cmp " value ", r1\n"                                                                          \
    "bge 2f\n"                                                                                     \
    "movs " value ", r1\n"                                                                         \
    "2: cmp " value ", #127\n"                                                                     \
    "ble 2f\n"                                                                                     \
    "movs " value ", #127\n"                                                                       \
    "2:\n"
        ".syntax unified\n" /* GNU compilers begin with the older one */
        "push {r4, r5, r6, r7, lr}\n"
        "mov r4, r8\n"
        "mov r5, r9\n"
        "mov r6, r10\n"
        "mov r7, r11\n"
        "push {r0, r4, r5, r6, r7}\n"
        "ldr r4, 4f\n"
        "mov r12, r4\n"
        "movs r4, #2\n"
        "ldr r5, [r0, #8]\n"
        "subs r4, r4, r5\n"
        "mov lr, r4\n" /* from the first half to the second */
        "1:\n"
        "ldmia r0, {r0, r1, r2}\n"
        "adds r2, r1, r2\n"
        "subs r1, r1, r0\n"
        "subs r1, r1, #4\n"
        "adds r3, r1, #1\n"
        "movs r4, #0\n"
        "mov r8, r4\n"
        "mov r9, r4\n"
        "mov r10, r4\n"
        "mov r11, r4\n"
        "b 6f\n"
        ".balign 4\n"
        "4: .word 5f + 1\n"
        "5: b 3f\n"
        "b 9f\n" NN_LANES_6_STEPS NN_LANES_6_STEPS NN_LANES_6_STEPS
        "add r8, r6\n"
        "lsrs r5, r6, #16\n"
        "add r9, r5\n"
        "add r10, r7\n"
        "lsrs r5, r7, #16\n"
        "add r11, r5\n"
        "6:\n"
        "ldrb r4, [r2]\n"
        "adds r2, r2, #1\n"
        "ldr r6, 7f\n"
        "mov r7, r6\n"
        "add r4, r12\n"
        "bx r4\n"
        ".balign 4\n"
        "7: .word 0x80008000\n"
        "9:\n"
        "add r1, lr\n"
        "add r3, lr\n"
        "b 6b\n"
        "3:\n"
        "ldr r0, [sp]\n"
        "ldr r1, [r0, #4]\n"
        "ldr r3, [r0, #8]\n"
        "ldr r5, [r0, #12]\n"
        "str r2, [r0, #4]\n"
        "cmp r5, #0\n"
        "beq 8f\n"
        "adds r1, r1, r3\n"
        "subs r2, r2, r1\n"
        "subs r2, r2, #2\n"
        "lsls r2, r2, #15\n" /* what sums began with */
        "ldr r4, [r0, #20]\n"
        "ldmia r4!, {r5, r6}\n"
        "str r4, [r0, #20]\n"
        "subs r5, r5, r2\n"
        "subs r6, r6, r2\n"
        "mov r1, r9\n"
        "adds r7, r5, r1\n"
        "lsls r1, r1, #16\n"
        "subs r5, r5, r1\n"
        "add r5, r8\n"
        "mov r1, r11\n"
        "adds r3, r6, r1\n"
        "lsls r1, r1, #16\n"
        "subs r6, r6, r1\n"
        "add r6, r10\n"
        "ldr r4, [r0, #28]\n"
        "ldr r1, [r0, #32]\n"
        NN_LANES_LIMIT("r5") NN_LANES_LIMIT("r6") NN_LANES_LIMIT("r7") NN_LANES_LIMIT("r3")
        "ldr r2, [r0, #16]\n"
        "ldr r4, [r0, #24]\n"
        "strb r5, [r2]\n"
        "strb r7, [r2, r4]\n"
        "adds r2, r2, #1\n"
        "strb r6, [r2]\n"
        "strb r3, [r2, r4]\n"
        "adds r2, r2, #1\n"
        "str r2, [r0, #16]\n"
        "ldr r4, [r0, #12]\n"
        "subs r4, r4, #1\n"
        "str r4, [r0, #12]\n"
        "beq 9f\n"
        "b 1b\n"
        "8:\n"
        "ldr r0, [r0, #36]\n"
        "mov r4, r8\n"
        "mov r5, r9\n"
        "mov r6, r10\n"
        "mov r7, r11\n"
        "stmia r0!, {r4, r5, r6, r7}\n"
        "9:\n"
        "pop {r0, r4, r5, r6, r7}\n"
        "mov r8, r4\n"
        "mov r9, r5\n"
        "mov r10, r6\n"
        "mov r11, r7\n"
        "pop {r4, r5, r6, r7, pc}\n");
#undef NN_LANES_LIMIT
#undef NN_LANES_6_STEPS
#undef NN_LANES_STEP
}

/* Runs of two filters; `data` and each filter have `length` inputs. Returns what follows the runs. */
static const int8_t *nn_lanes_block(const nn_lanes *data, const int8_t *weights, uint32_t length,
                                    const int8_t *runs, nn_lanes_sum *sums)
{
    nn_lanes_job job;

    (void)runs;
    job.data = data;
    job.weights = weights;
    job.list_bytes = (length + 1) / 2 * 4;
    job.pairs = 0;
    job.sums = sums;
    nn_lanes_work(&job);
    return job.weights;
}

#endif

#else

#define NN_LANES_WORDS 2
#define NN_LANES_LISTS 1
#if defined(__GNUC__)
#define NN_LANES_APART __attribute__((noinline)) /* a function of its own gets all registers */
#else
#define NN_LANES_APART
#endif

/* Runs of two filters. The steps of 16 inputs follow each other; a run begins as many steps in front
 * of their end as it has inputs, and pointers are those behind its inputs. */
#if defined(__thumb2__)

/* A step has 28 bytes. Stack: what `sums` gets of the second filter, and the last of the first one,
 * registers, `sums`. */
__attribute__((naked, noinline)) static const int8_t *
nn_lanes_block(const nn_lanes *data NN_READ, const int8_t *weights NN_READ, uint32_t length NN_READ,
               const int8_t *runs NN_READ, nn_lanes_sum *sums NN_READ)
{
    __asm__ volatile(
#define NN_LANES_STEP(left)                                                                        \
    "ldrd r8, r9, [r0, #-8 * " #left "]\n"                                                         \
    "ldrsb r3, [r1, #-2 * " #left "]\n"                                                            \
    "mla r4, r8, r3, r4\n"                                                                         \
    "mla r5, r9, r3, r5\n"                                                                         \
    "ldrsb r10, [r1, #1 - 2 * " #left "]\n"                                                        \
    "mla r6, r8, r10, r6\n"                                                                        \
    "mla r7, r9, r10, r7\n"
#define NN_LANES_BEGIN(left) ".byte (2f - 1b) / 2 + 14 * (16 - " #left ")\n"
        ".syntax unified\n" /* GNU compilers begin with the older one */
        "push {r4, r5, r6, r7, r8, r9, r10, r11, lr}\n"
        "sub sp, sp, #20\n"
        "mov r2, r3\n"
        "movs r3, #0\n"
        "mov.w r11, #0\n"
        "mov.w r12, #0\n"
        "mov.w lr, #0\n"
        "strd r3, r3, [sp]\n"
        "strd r3, r3, [sp, #8]\n"
        "str r3, [sp, #16]\n"
        "4:\n"
        "mov.w r4, #0x80008000\n"
        "mov r5, r4\n"
        "mov r6, r4\n"
        "mov r7, r4\n"
        "ldrb r3, [r2], #1\n"
        "add.w r0, r0, r3, lsl #3\n"
        "add.w r1, r1, r3, lsl #1\n"
        "tbb [pc, r3]\n"
        "1:\n"
        ".byte (3f - 1b) / 2\n"
        NN_LANES_BEGIN(1) NN_LANES_BEGIN(2) NN_LANES_BEGIN(3) NN_LANES_BEGIN(4)
        NN_LANES_BEGIN(5) NN_LANES_BEGIN(6) NN_LANES_BEGIN(7) NN_LANES_BEGIN(8)
        NN_LANES_BEGIN(9) NN_LANES_BEGIN(10) NN_LANES_BEGIN(11) NN_LANES_BEGIN(12)
        NN_LANES_BEGIN(13) NN_LANES_BEGIN(14) NN_LANES_BEGIN(15) NN_LANES_BEGIN(16)
        ".byte 0\n"
        "3:\n"
        "ldr r3, [sp, #56]\n"
        "strd r11, r12, [r3]\n"
        "ldr r4, [sp, #16]\n"
        "strd lr, r4, [r3, #8]\n"
        "ldm.w sp, {r4, r5, r6, r7}\n"
        "strd r4, r5, [r3, #16]\n"
        "strd r6, r7, [r3, #24]\n"
        "mov r0, r2\n"
        "add sp, sp, #20\n"
        "pop {r4, r5, r6, r7, r8, r9, r10, r11, pc}\n"
        "2:\n"
        NN_LANES_STEP(16) NN_LANES_STEP(15) NN_LANES_STEP(14) NN_LANES_STEP(13)
        NN_LANES_STEP(12) NN_LANES_STEP(11) NN_LANES_STEP(10) NN_LANES_STEP(9)
        NN_LANES_STEP(8) NN_LANES_STEP(7) NN_LANES_STEP(6) NN_LANES_STEP(5)
        NN_LANES_STEP(4) NN_LANES_STEP(3) NN_LANES_STEP(2) NN_LANES_STEP(1)
        "add r11, r4\n"
        "add.w r12, r12, r4, lsr #16\n"
        "add lr, r5\n"
        "ldr r3, [sp, #16]\n"
        "add.w r3, r3, r5, lsr #16\n"
        "str r3, [sp, #16]\n"
        "ldm.w sp, {r3, r8, r9, r10}\n"
        "add r3, r6\n"
        "add.w r8, r8, r6, lsr #16\n"
        "add r9, r7\n"
        "add.w r10, r10, r7, lsr #16\n"
        "stm.w sp, {r3, r8, r9, r10}\n"
        "b 4b\n");
#undef NN_LANES_BEGIN
#undef NN_LANES_STEP
}

#elif defined(__riscv_mul) && __riscv_xlen == 32 && !defined(__riscv_32e)

/* The first step of a run comes by itself, since it gives sums their beginning. */
__attribute__((naked, noinline)) static const int8_t *
nn_lanes_block(const nn_lanes *data NN_READ, const int8_t *weights NN_READ, uint32_t length NN_READ,
               const int8_t *runs NN_READ, nn_lanes_sum *sums NN_READ)
{
    __asm__ volatile(
#if defined(__riscv_compressed)
#define NN_LANES_BYTES_OF_STEP "36"
#else
#define NN_LANES_BYTES_OF_STEP "48"
#endif
#define NN_LANES_PRODUCTS(word, other, place, next, sum0, sum1, sum2, sum3)                        \
    "lw a2, " word "(a0)\n"                                                                        \
    "lb a6, " place "(a1)\n"                                                                       \
    "lw a5, " other "(a0)\n"                                                                       \
    "lb a7, " next "(a1)\n"                                                                        \
    "mul t0, a2, a6\n"                                                                             \
    "mul a6, a5, a6\n"                                                                             \
    "mul a2, a2, a7\n"                                                                             \
    "mul a5, a5, a7\n"                                                                             \
    "add t1, " sum0 ", t0\n"                                                                       \
    "add t2, " sum1 ", a6\n"                                                                       \
    "add t3, " sum2 ", a2\n"                                                                       \
    "add t4, " sum3 ", a5\n"
/* Distances of words are 0 to 124, for which loads take 2 bytes. */
#define NN_LANES_STEP(left)                                                                        \
    NN_LANES_PRODUCTS("128 - 8 * " #left, "132 - 8 * " #left, "-2 * " #left, "1 - 2 * " #left,     \
                      "t1", "t2", "t3", "t4")
#define NN_LANES_ADD(sum, word, upper)                                                             \
    "add " word ", " word ", " sum "\n"                                                            \
    "srli t0, " sum ", 16\n"                                                                       \
    "add " upper ", " upper ", t0\n"
#define NN_LANES_SAVED(how)                                                                        \
    how " s0, 0(sp)\n" how " s1, 4(sp)\n" how " s2, 8(sp)\n" how " s3, 12(sp)\n"                   \
    how " s4, 16(sp)\n" how " s5, 20(sp)\n" how " s6, 24(sp)\n" how " s7, 28(sp)\n"                \
    how " s8, 32(sp)\n" how " s9, 36(sp)\n"
        "addi sp, sp, -48\n" NN_LANES_SAVED("sw")
        "addi a0, a0, -128\n"
        "li s0, " NN_LANES_BYTES_OF_STEP "\n"
        "lla s1, 2f\n"
        "add s1, s1, s0\n"
        "li t5, 0x80008000\n"
        "li s2, 0\nli s3, 0\nli s4, 0\nli s5, 0\nli s6, 0\nli s7, 0\nli s8, 0\nli s9, 0\n"
        "j 1f\n"
        NN_LANES_STEP(15) NN_LANES_STEP(14) NN_LANES_STEP(13) NN_LANES_STEP(12)
        NN_LANES_STEP(11) NN_LANES_STEP(10) NN_LANES_STEP(9) NN_LANES_STEP(8) NN_LANES_STEP(7)
        NN_LANES_STEP(6) NN_LANES_STEP(5) NN_LANES_STEP(4) NN_LANES_STEP(3) NN_LANES_STEP(2)
        NN_LANES_STEP(1)
        "2:\n"
        NN_LANES_ADD("t1", "s2", "s6") NN_LANES_ADD("t2", "s3", "s7")
        NN_LANES_ADD("t3", "s4", "s8") NN_LANES_ADD("t4", "s5", "s9")
        "1:\n"
        "lbu t6, 0(a3)\n"
        "addi a3, a3, 1\n"
        "beqz t6, 3f\n"
        NN_LANES_PRODUCTS("128", "132", "0", "1", "t5", "t5", "t5", "t5")
        "slli t0, t6, 3\n"
        "add a0, a0, t0\n"
        "add a1, a1, t6\n"
        "add a1, a1, t6\n"
        "mul t6, t6, s0\n"
        "sub t6, s1, t6\n"
        "jr t6\n"
        "3:\n"
        "sw s2, 0(a4)\nsw s6, 4(a4)\nsw s3, 8(a4)\nsw s7, 12(a4)\n"
        "sw s4, 16(a4)\nsw s8, 20(a4)\nsw s5, 24(a4)\nsw s9, 28(a4)\n"
        "mv a0, a3\n" NN_LANES_SAVED("lw")
        "addi sp, sp, 48\n"
        "ret\n");
#undef NN_LANES_SAVED
#undef NN_LANES_ADD
#undef NN_LANES_STEP
#undef NN_LANES_PRODUCTS
#undef NN_LANES_BYTES_OF_STEP
}

#else

/* Keeps compilers from loading ahead more than the registers hold; spares a comparison; says that a
 * case goes on in the next. */
#if defined(__GNUC__)
#define NN_LANES_IN_ORDER __asm__ volatile("" : "+r"(sum0), "+r"(sum1) : : "memory")
#define NN_LANES_NO_OTHER __builtin_unreachable()
#define NN_LANES_ON __attribute__((fallthrough))
#else
#define NN_LANES_IN_ORDER (void)0
#define NN_LANES_NO_OTHER break
#define NN_LANES_ON (void)0
#endif

#define NN_LANES_STEP(left)                                                                        \
    case left: {                                                                                   \
        const uint32_t weight = (uint32_t)(int32_t)weights[-2 * (left)];                           \
                                                                                                   \
        sum0 += data[-2 * (left)] * weight;                                                        \
        sum1 += data[1 - 2 * (left)] * weight;                                                     \
        NN_LANES_IN_ORDER;                                                                         \
    }

/* A filter: registers do not suffice for two. */
NN_LANES_APART static const int8_t *nn_lanes_filter(const nn_lanes *data, const int8_t *weights,
                                                    const int8_t *runs, nn_lanes_sum *sums)
{
    uint32_t words0 = 0, words1 = 0, uppers0 = 0, uppers1 = 0;

    for (;;) {
        const unsigned length = (unsigned)*runs++;
        uint32_t sum0 = NN_LANES_BIAS, sum1 = NN_LANES_BIAS;

        data += 2 * length;
        weights += 2 * length;
        NN_LANES_IN_ORDER;
        switch (length) {
            NN_LANES_STEP(16) NN_LANES_ON;
            NN_LANES_STEP(15) NN_LANES_ON;
            NN_LANES_STEP(14) NN_LANES_ON;
            NN_LANES_STEP(13) NN_LANES_ON;
            NN_LANES_STEP(12) NN_LANES_ON;
            NN_LANES_STEP(11) NN_LANES_ON;
            NN_LANES_STEP(10) NN_LANES_ON;
            NN_LANES_STEP(9) NN_LANES_ON;
            NN_LANES_STEP(8) NN_LANES_ON;
            NN_LANES_STEP(7) NN_LANES_ON;
            NN_LANES_STEP(6) NN_LANES_ON;
            NN_LANES_STEP(5) NN_LANES_ON;
            NN_LANES_STEP(4) NN_LANES_ON;
            NN_LANES_STEP(3) NN_LANES_ON;
            NN_LANES_STEP(2) NN_LANES_ON;
            NN_LANES_STEP(1) break;
        case 0:
            sums[0].words = words0;
            sums[0].uppers = uppers0;
            sums[1].words = words1;
            sums[1].uppers = uppers1;
            return runs;
        default:
            NN_LANES_NO_OTHER;
        }
        words0 += sum0;
        words1 += sum1;
        uppers0 += sum0 >> 16;
        uppers1 += sum1 >> 16;
    }
}

static inline const int8_t *nn_lanes_block(const nn_lanes *data, const int8_t *weights,
                                           uint32_t length, const int8_t *runs, nn_lanes_sum *sums)
{
    (void)length;
    nn_lanes_filter(data, weights, runs, sums);
    return nn_lanes_filter(data, weights + 1, runs, sums + 2);
}

#endif
#endif

#define NN_LANES_PIXELS (2 * NN_LANES_WORDS)
/* Inputs of a list of runs, and bytes of two filters' weights. */
#define NN_LANES_INPUTS(length) (((length) + NN_LANES_LISTS - 1) / NN_LANES_LISTS)
#define NN_LANES_BYTES(length) (2 * NN_LANES_LISTS * NN_LANES_INPUTS(length))

static nn_lanes *nn_lanes_zeros(nn_lanes *to, uint32_t size)
{
    nn_lanes *end = to + NN_LANES_WORDS * size;

    while (to != end) {
        *to++ = 0;
    }
    return to;
}

/* Joins `size` values, not 0, of pixels that are `distance` apart. */
#if defined(NN_ARMV6M)
__attribute__((naked, noinline)) static nn_lanes *
nn_lanes_join(nn_lanes *to NN_READ, const int8_t *from NN_READ, uint32_t size NN_READ,
              uint32_t distance NN_READ)
{
    __asm__ volatile(
#define NN_LANES_WORD(to)                                                                          \
    "ldrsb " to ", [r1, r2]\n"                                                                     \
    "ldrsb r6, [r3, r2]\n"                                                                         \
    "lsls r6, r6, #16\n"                                                                           \
    "adds " to ", " to ", r6\n"                                                                    \
    "adds r2, r2, #1\n"
        ".syntax unified\n"
        "push {r4, r5, r6, lr}\n"
        "adds r3, r3, r1\n"
        "adds r1, r1, r2\n"
        "adds r3, r3, r2\n"
        "rsbs r2, r2, #0\n"
        "lsrs r4, r2, #1\n"
        "bcc 1f\n" NN_LANES_WORD("r4")
        "stmia r0!, {r4}\n"
        "beq 2f\n"
        "1:\n" NN_LANES_WORD("r4") NN_LANES_WORD("r5")
        "stmia r0!, {r4, r5}\n"
        "bne 1b\n"
        "2: pop {r4, r5, r6, pc}\n");
#undef NN_LANES_WORD
}
#elif NN_LANES_WORDS == 1
static nn_lanes *nn_lanes_join(nn_lanes *to, const int8_t *from, uint32_t size, uint32_t distance)
{
    const int8_t *second = from + distance;
    nn_lanes *end = to + size;

    while (to != end) {
        *to++ = (uint32_t)(int32_t)*from++ + ((uint32_t)(int32_t)*second++ << 16);
    }
    return to;
}
#else
/* Two values for each comparison. */
NN_LANES_APART static nn_lanes *nn_lanes_join(nn_lanes *to, const int8_t *from, uint32_t size,
                                              uint32_t distance)
{
    nn_lanes *end = to + 2 * size;
    const int8_t *second = from + distance, *third = second + distance, *fourth = third + distance;

#define NN_LANES_JOIN(number)                                                                      \
    to[2 * (number)] =                                                                             \
        (uint32_t)(int32_t)from[number] + ((uint32_t)(int32_t)second[number] << 16);               \
    to[2 * (number) + 1] =                                                                         \
        (uint32_t)(int32_t)third[number] + ((uint32_t)(int32_t)fourth[number] << 16);
    if (size % 2) {
        NN_LANES_JOIN(0)
        to += 2, from++, second++, third++, fourth++;
    }
    for (; to != end; to += 4, from += 2, second += 2, third += 2, fourth += 2) {
        NN_LANES_JOIN(0)
        NN_LANES_JOIN(1)
    }
    return to;
}
#endif

/* The same from place `first` of a row on where some pixels are no part of it; bit p of `inside`
 * tells that pixel p is. */
static nn_lanes *nn_lanes_join_some(nn_lanes *to, const int8_t *row, int32_t first,
                                    const nn_conv *conv, unsigned inside)
{
    const int32_t distance = (int32_t)(conv->channels * conv->stride);
    nn_lanes *end = to + NN_LANES_WORDS * conv->channels;

    for (; to != end; first++) {
        int32_t place = first;
        unsigned bit;

        for (bit = 1; bit < 1u << NN_LANES_PIXELS; bit <<= 2) {
            uint32_t word = inside & bit ? (uint32_t)(int32_t)row[place] : 0;

            place += distance;
            word += inside & (bit << 1) ? (uint32_t)(int32_t)row[place] << 16 : 0;
            place += distance;
            *to++ = word;
        }
    }
    return to;
}

/* Joins one column after the other of a row at the border, or where columns are apart. */
static nn_lanes *nn_lanes_columns(nn_lanes *to, const int8_t *row, const nn_conv *conv,
                                  int32_t place, unsigned pixels)
{
    const int32_t stride = conv->stride, width = conv->width, channels = (int32_t)conv->channels;
    unsigned column;

    for (column = 0; column < conv->kernel_columns; column++, place += conv->dilation) {
        unsigned inside = 0, pixel;
        int32_t at = place;

        for (pixel = 0; pixel < pixels; pixel++, at += stride) {
            inside |= (unsigned)((uint32_t)at < (uint32_t)width) << pixel;
        }
        if (inside == (1u << NN_LANES_PIXELS) - 1) {
            to = nn_lanes_join(to, row + place * channels, conv->channels,
                               conv->channels * conv->stride);
        } else {
            to = nn_lanes_join_some(to, row, place * channels, conv, inside);
        }
    }
    return to;
}

/* Gathers the patches under the kernel from input column `x` on, and at those that follow. */
static void nn_lanes_patch(const nn_conv *conv, const int8_t *const *rows, int32_t x,
                           nn_lanes *to, unsigned pixels)
{
    const uint32_t size = conv->kernel_columns * conv->channels;
    const uint32_t distance = conv->channels * conv->stride;
    const int32_t first = x * (int32_t)conv->channels;
    const int32_t end = x + conv->kernel_columns + (int32_t)(pixels - 1) * conv->stride;
    const int together = conv->dilation == 1 && pixels == NN_LANES_PIXELS && x >= 0 &&
                         end <= (int32_t)conv->width;
    unsigned row;

    for (row = 0; row < conv->kernel_rows; row++) {
        if (rows[row] == NULL) {
            to = nn_lanes_zeros(to, size);
        } else if (together) {
            to = nn_lanes_join(to, rows[row] + first, size, distance);
        } else {
            to = nn_lanes_columns(to, rows[row], conv, x, pixels);
        }
    }
}

#if !defined(NN_ARMV6M)

static inline int8_t nn_lanes_narrow(uint32_t sum, int32_t right, int32_t low)
{
    int32_t value = (int32_t)sum >> right;

    if ((uint32_t)value - (uint32_t)low > (uint32_t)(127 - low)) { /* one comparison for most */
        value = value < low ? low : 127;
    }
    return (int8_t)value;
}

/* Stores what two filters give for all pixels of a block, where shifts are to the right and nothing
 * else is to be done; `halves` is what sums began with. */
#if defined(__GNUC__)
__attribute__((noinline))
#endif
static void nn_lanes_put_all(const nn_conv *conv, const nn_lanes_sum *sums, const int32_t *start,
                             uint32_t halves, int8_t *pixel)
{
    const int32_t right = conv->right, low = conv->low;
    const uint32_t size = conv->filters;
    const nn_lanes_sum *end = sums + 2 * NN_LANES_WORDS;

    for (; sums != end; pixel++) {
        const uint32_t begin = (uint32_t)*start++ - halves;
        int8_t *at = pixel;
        unsigned word;

        for (word = 0; word < NN_LANES_WORDS; word++, sums++, at += 2 * size) {
            const uint32_t uppers = sums->uppers;

            at[0] = nn_lanes_narrow(begin + sums->words - (uppers << 16), right, low);
            at[size] = nn_lanes_narrow(begin + uppers, right, low);
        }
    }
}

#endif

/* Computes as many pairs of filters as there are, where shifts are to the right and nothing else is
 * to be done; returns what follows their weights. */
#if defined(NN_ARMV6M)
static const int8_t *nn_lanes_pairs(const nn_conv *conv, const nn_lanes *data, uint32_t length,
                                    int8_t *pixel)
{
    nn_lanes_job job;

    job.data = data;
    job.weights = (const int8_t *)conv->weights;
    job.list_bytes = NN_LANES_INPUTS(length) * 4;
    job.pairs = conv->filters / 2;
    job.out = pixel;
    job.start = conv->start;
    job.filters = conv->filters;
    job.right = conv->right;
    job.low = conv->low;
    if (job.pairs) {
        nn_lanes_work(&job);
    }
    return job.weights;
}
#else
static const int8_t *nn_lanes_pairs(const nn_conv *conv, const nn_lanes *data, uint32_t length,
                                    int8_t *pixel)
{
    const int8_t *weights = (const int8_t *)conv->weights;
    uint32_t filter;

    for (filter = 0; filter + 1 < conv->filters; filter += 2) {
        nn_lanes_sum sums[2 * NN_LANES_WORDS];
        const int8_t *runs = weights + NN_LANES_BYTES(length);

        weights = nn_lanes_block(data, weights, length, runs, sums);
        nn_lanes_put_all(conv, sums, conv->start + filter,
                         (uint32_t)(weights - runs - NN_LANES_LISTS) * NN_LANES_HALF,
                         pixel + filter);
    }
    return weights;
}
#endif

/* Stores what two filters, or the last one, give for some pixels, whatever becomes of sums. */
static void nn_lanes_put(const nn_conv *conv, const nn_lanes_sum *sums, uint32_t filter,
                         uint32_t halves, int8_t *out, unsigned pixels)
{
    const uint32_t size = conv->filters * (conv->flags & NN_WIDE ? 4u : 1u);
    unsigned part, number;

    for (part = 0; part < 2 && filter < conv->filters; part++, filter++) {
        const uint32_t start = (uint32_t)conv->start[filter] - halves;
        const nn_lanes_sum *of_pixels = sums + part * NN_LANES_WORDS;
        int8_t *pixel = out;

        for (number = 0; number < pixels; number++, pixel += size) {
            uint32_t sum = start + of_pixels->uppers;

            if (number % 2 == 0) {
                sum = start + of_pixels->words - (of_pixels->uppers << 16);
            } else {
                of_pixels++;
            }
            nn_store(conv, pixel, filter, (int32_t)sum);
        }
    }
}

/* One pixel: its data are numbers in words of their own, which need no lanes. */
static void nn_lanes_single(const nn_conv *conv, const nn_lanes *data, uint32_t length,
                            int8_t *pixel)
{
    const int8_t *weights = (const int8_t *)conv->weights;
    uint32_t filter;

    for (filter = 0; filter < conv->filters; filter++) {
        uint32_t sum = (uint32_t)conv->start[filter], i = 0, list;

        if (filter && filter % 2 == 0) {
            weights += NN_LANES_BYTES(length);
            while (*weights++) { /* past the runs */
            }
        }
        for (list = 0; list < NN_LANES_LISTS; list++) {
            const uint32_t end = list + 1 < NN_LANES_LISTS ? NN_LANES_INPUTS(length) : length;
            const int8_t *weight = weights + 2 * list + filter % 2;

            for (; i < end; i++, weight += 2 * NN_LANES_LISTS) {
                const uint32_t factor = (uint32_t)(int32_t)*weight;

                sum += data[NN_LANES_WORDS * i] * factor;
            }
        }
        nn_store(conv, pixel, filter, (int32_t)sum);
    }
}

void nn_conv_lanes(const nn_conv *conv, const int8_t *const *rows, unsigned x, unsigned count,
                   void *out, void *scratch)
{
    const uint32_t size = conv->filters * (conv->flags & NN_WIDE ? 4u : 1u);
    const uint32_t inputs = conv->channels * conv->kernel_rows * conv->kernel_columns;
    const int simple = conv->flags == 0 && conv->right >= 0;
    nn_lanes *data = (nn_lanes *)scratch;
    int8_t *pixel = (int8_t *)out;

    while (count) {
        const int8_t *weights = (const int8_t *)conv->weights;
        const unsigned pixels = count < NN_LANES_PIXELS ? count : NN_LANES_PIXELS;
        uint32_t filter = 0;

        nn_lanes_patch(conv, rows, (int32_t)(x * conv->stride) - conv->pad, data, pixels);
        if (pixels == 1) {
            nn_lanes_single(conv, data, inputs, pixel);
            filter = conv->filters;
        } else if (simple && pixels == NN_LANES_PIXELS) {
            weights = nn_lanes_pairs(conv, data, inputs, pixel);
            filter = conv->filters & ~(uint32_t)1;
        }
        for (; filter < conv->filters; filter += 2) {
            nn_lanes_sum sums[2 * NN_LANES_WORDS];
            const int8_t *runs = weights + NN_LANES_BYTES(inputs);

            weights = nn_lanes_block(data, weights, inputs, runs, sums);
            nn_lanes_put(conv, sums, filter,
                         (uint32_t)(weights - runs - NN_LANES_LISTS) * NN_LANES_HALF, pixel,
                         pixels);
        }
        x += pixels;
        count -= pixels;
        pixel += pixels * size;
    }
}
