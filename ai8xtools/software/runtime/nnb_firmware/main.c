/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the network that stands in the slot on its test vectors and compares all bytes. Another
 * container in the slot is another network; this program stays as it is.
 *
 * NNB_FIRMWARE_KEY: 32 numbers with commas in braces, for encrypted containers; a container without
 * a tag that this key makes is refused, unless NNB_ACCEPT_UNTAGGED is defined. NNB_FILES: the program
 * takes a container from a file instead (on a computer).
 */
#include <stdio.h>

#include "nnb.h"
#include "nnb_slot.h"

#define SHOWN 16u

uint32_t cnn_arena[(NNB_ARENA_BYTES + 3) / 4];
static uint8_t *output; /* behind what the network takes of the memory */
#ifdef NNB_FIRMWARE_KEY
static const uint8_t key[32] = NNB_FIRMWARE_KEY;
#endif

static int status_of_open;

static const nnb_model *open_slot(const uint8_t *blob, uint32_t size)
{
    const nnb_model *model = nnb_open(blob, size);

    status_of_open = nnb_error();
#if defined(NNB_FIRMWARE_KEY) && !defined(NNB_ACCEPT_UNTAGGED)
    if (model != NULL) {
        status_of_open = nnb_authenticate(model, size, key);
    }
#endif
    return status_of_open == NNB_OK ? model : NULL;
}

#ifdef NNB_FILES
static uint8_t file_bytes[NNB_SLOT_BYTES];

static const nnb_model *open_file(const char *name)
{
    FILE *file = fopen(name, "rb");
    size_t size;

    if (file == NULL) {
        printf("cannot read %s\n", name);
        return NULL;
    }
    size = fread(file_bytes, 1, sizeof file_bytes, file);
    fclose(file);
    return open_slot(file_bytes, (uint32_t)size);
}
#endif

int cnn_run(const nnb_model *model, uint32_t number)
{
    nnb_hooks hooks = {0};

    hooks.arena_bytes = (uint32_t)(output - (uint8_t *)cnn_arena);
#ifdef NNB_FIRMWARE_KEY
    hooks.key = key;
#endif
    return nnb_run(model, nnb_vector_input(model, number), output, cnn_arena, &hooks);
}

static int failed(int status)
{
    printf("%s\n!!! FAIL !!!\n", nnb_name(status));
    return 1;
}

static void show(const nnb_tensor_info *made)
{
    const uint8_t *bytes = output;
    uint32_t size = 1u << made->type, count = made->bytes / size, i, k;

    printf("Output of final layer:\n");
    for (i = 0; i < count && i < SHOWN; i++) {
        uint32_t value = 0;
        for (k = 0; k < size; k++) {
            value |= (uint32_t)bytes[i * size + k] << (8 * k);
        }
        if (size < 4 && (value >> (8 * size - 1))) {
            value |= 0xFFFFFFFFu << (8 * size);
        }
        printf("%ld%s", value < 0x80000000u ? (long)value : -(long)(0xFFFFFFFFu - value) - 1,
               i + 1 == count || i + 1 == SHOWN ? "\n" : " ");
    }
}

static int check(const nnb_model *model)
{
    uint32_t count = nnb_vectors(model), arena = nnb_arena_bytes(model), n, i;
    nnb_tensor_info made;
    int status;

    nnb_tensor(model, nnb_output(model), &made);
    if (arena > sizeof cnn_arena || made.bytes > sizeof cnn_arena - arena) {
        return failed(NNB_MEMORY);
    }
    output = (uint8_t *)cnn_arena + arena;
    for (n = 0; n < count; n++) {
        const uint8_t *expected = nnb_vector_output(model, n);
        status = cnn_run(model, n);
        if (status != NNB_OK) {
            return failed(status);
        }
        for (i = 0; i < made.bytes; i++) {
            if (output[i] != expected[i]) {
                return failed(NNB_VECTORS);
            }
        }
        show(&made);
    }
    if (count == 0) {
        printf("no test vectors\n");
        return 1;
    }
    printf("*** PASS ***\n");
    return 0;
}

int main(int argc, char **argv)
{
    const nnb_model *model = NULL;

#ifdef NNB_FILES
    model = argc > 1 ? open_file(argv[1]) : open_slot(nnb_slot, sizeof nnb_slot);
#else
    (void)argc;
    (void)argv;
    model = open_slot(nnb_slot, sizeof nnb_slot);
#endif
    return model == NULL ? failed(status_of_open) : check(model);
}
