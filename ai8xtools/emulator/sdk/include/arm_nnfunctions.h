/* CMSIS-NN: the functions that programs call behind a network. */
#ifndef EMULATOR_ARM_NNFUNCTIONS_H
#define EMULATOR_ARM_NNFUNCTIONS_H

#include "arm_math.h"

void arm_softmax_q7(const q7_t *in, const uint16_t count, q7_t *out);
void arm_softmax_q15(const q15_t *in, const uint16_t count, q15_t *out);
void arm_softmax_q7_q15(const q7_t *in, const uint16_t count, q15_t *out);
void arm_relu_q7(q7_t *data, uint16_t count);
void arm_relu_q15(q15_t *data, uint16_t count);
arm_status arm_fully_connected_q7(const q7_t *in, const q7_t *weights, const uint16_t inputs,
                                  const uint16_t outputs, const uint16_t bias_shift,
                                  const uint16_t out_shift, const q7_t *bias, q7_t *out, q15_t *buffer);
arm_status arm_fully_connected_q15(const q15_t *in, const q15_t *weights, const uint16_t inputs,
                                   const uint16_t outputs, const uint16_t bias_shift,
                                   const uint16_t out_shift, const q15_t *bias, q15_t *out, q15_t *buffer);

#endif
