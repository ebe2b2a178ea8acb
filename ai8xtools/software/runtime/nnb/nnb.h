/* SPDX-License-Identifier: Apache-2.0
 *
 * Networks from one binary file (.nnb), used in place: nothing is parsed, copied or allocated.
 *
 *     const nnb_model *model = nnb_open(blob, size);
 *     if (model == NULL) report(nnb_name(nnb_error()));
 *     else status = nnb_run(model, in, out, arena, NULL);
 *
 * Activations are rows of pixels, a pixel is its channels; values of 16 and 32 bits are stored least
 * significant byte first. C99; no heap, no recursion, no alignment is required.
 */
#ifndef NNB_H
#define NNB_H

#include <stdint.h>

/* Layers that are compiled in: one bit per operation of the file, 13: weights of few bits,
 * 14: decryption; the operations 13 and 14 have the bits 15 and 16. A file that needs another one is refused with NNB_UNSUPPORTED. */
#ifndef NNB_KERNELS
#define NNB_KERNELS 0x1FFFFu
#endif

typedef enum {
    NNB_OK = 0,
    /* the file is damaged or is none: checks of the format, in their order */
    NNB_TRUNCATED,
    NNB_MAGIC,
    NNB_VERSION,
    NNB_HEADER_CRC,
    NNB_SIZE,
    NNB_BODY_CRC,
    NNB_TABLE,
    NNB_TENSOR,
    NNB_LAYER,
    NNB_ARENA,
    /* the file is sound, but cannot be computed here */
    NNB_UNSUPPORTED,
    NNB_OVERFLOW,
    NNB_OVERLAP,
    /* of a run */
    NNB_KEY,
    NNB_MEMORY,
    NNB_VECTORS,
    NNB_ARGUMENT,
    NNB_TAG
} nnb_status;

typedef struct nnb_model nnb_model;

/* What a run may use; a NULL pointer to it, or zeros in it, mean: memcpy, no key, enough memory. */
typedef struct {
    /* weights of encrypted files go through channel 1; copies of a channel complete in order */
    void (*copy_start)(int channel, void *to, const void *from, uint32_t bytes);
    void (*copy_wait)(int channel);
    const uint8_t *key;   /* 32 bytes, for encrypted files */
    uint32_t arena_bytes; /* of the arena that is given */
} nnb_hooks;

/* A tensor, as the file describes it. */
typedef struct {
    uint8_t type; /* 0 int8, 1 int16, 2 int32, 3 packed */
    uint8_t order;
    int8_t fraction; /* bits behind the binary point */
    uint8_t encoding;
    uint16_t rows, columns, channels, count;
    uint32_t data; /* offset in the file, 0 for activations */
    uint32_t bytes;
    uint32_t arena; /* offset, 0xFFFFFFFF for none */
    uint16_t first, last;
} nnb_tensor_info;

/* Check a file in full; NULL if it is refused, and nnb_error() tells why. Reads at most `size` bytes
 * from `blob`, which must stay where it is while the model is used. */
const nnb_model *nnb_open(const void *blob, uint32_t size);

/* Check that a file is as the holder of the key (32 bytes) wrote it; `size` as given to nnb_open, so
 * that the tag behind the file is found. NNB_TAG: it was changed, the key is another one, or there is
 * no tag, as without encryption. */
int nnb_authenticate(const nnb_model *model, uint32_t size, const uint8_t *key);

/* The status of the last nnb_open. */
int nnb_error(void);

/* A status in a word. */
const char *nnb_name(int status);

/* Bytes that nnb_run needs as arena. */
uint32_t nnb_arena_bytes(const nnb_model *model);

/* Tensors of the file by number; those of the input and the output of the network. */
int nnb_tensor(const nnb_model *model, uint32_t number, nnb_tensor_info *info);
uint32_t nnb_input(const nnb_model *model);
uint32_t nnb_output(const nnb_model *model);

/* Compute the output for an input. `in` is not changed, nothing may overlap. Returns a status; unless
 * it is NNB_OK nothing has been written. */
int nnb_run(const nnb_model *model, const void *in, void *out, void *arena, const nnb_hooks *hooks);

/* The test vectors of the file: their number, and one of them. */
uint32_t nnb_vectors(const nnb_model *model);
const void *nnb_vector_input(const nnb_model *model, uint32_t number);
const void *nnb_vector_output(const nnb_model *model, uint32_t number);

/* Run all test vectors into `out`; NNB_VECTORS if a result differs, as it does with a wrong key, or
 * if they are none of this network. */
int nnb_verify(const nnb_model *model, void *out, void *arena, const nnb_hooks *hooks);

#endif
