/* Copies between levels of memory by the emulator's engine, in place of nn_copies.c of a project. */
#include <stdint.h>

#define ENGINE ((volatile uint32_t *)0xF0010000u) /* ai8xtools/emulator/plain/engine.py */
#define CHANNEL 0
#define TO 1
#define TO_STEP 2
#define FROM 3
#define FROM_STEP 4
#define ROW_BYTES 5
#define ROWS 6
#define START 7
#define WAIT 8

void nn_copy_start(int channel, void *to, const void *from, uint32_t bytes);
void nn_copy_start_2d(int channel, void *to, uint32_t to_step, const void *from,
                      uint32_t from_step, uint32_t row_bytes, uint32_t rows);
void nn_copy_wait(int channel);

void nn_copy_start_2d(int channel, void *to, uint32_t to_step, const void *from,
                      uint32_t from_step, uint32_t row_bytes, uint32_t rows)
{
    ENGINE[CHANNEL] = (uint32_t)channel;
    ENGINE[TO] = (uint32_t)(uintptr_t)to;
    ENGINE[TO_STEP] = to_step;
    ENGINE[FROM] = (uint32_t)(uintptr_t)from;
    ENGINE[FROM_STEP] = from_step;
    ENGINE[ROW_BYTES] = row_bytes;
    ENGINE[ROWS] = rows;
    ENGINE[START] = 0;
}

void nn_copy_start(int channel, void *to, const void *from, uint32_t bytes)
{
    nn_copy_start_2d(channel, to, bytes, from, bytes, bytes, 1);
}

void nn_copy_wait(int channel)
{
    ENGINE[CHANNEL] = (uint32_t)channel;
    ENGINE[WAIT] = 0;
}
