/* Opens the containers of a bundle and runs their test vectors, each in memory of exactly its size.
 *
 *     driver BUNDLE [KEY]     prints a line for each: what nnb_open and nnb_verify said
 *     driver BUNDLE tag KEY   prints what nnb_authenticate says of each
 *     driver BUNDLE tell      prints what the reader tells: arena, input, output, vectors, tensors
 *     driver BUNDLE run       prints what nnb_open says, and the output for one input, or why not
 *     driver BUNDLE bytes N   damages every byte of each in N ways, prints how many were accepted
 *
 * A bundle is a file of (32-bit size, bytes). KEY is 64 hexadecimal digits. */
#include "nnb.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_BYTES (1u << 20)

static uint8_t key[32];

static void verify(const nnb_model *model, const char *opened)
{
    nnb_hooks hooks = {NULL, NULL, NULL, 0};
    nnb_tensor_info made;
    uint32_t arena_bytes = nnb_arena_bytes(model);
    uint8_t *out, *arena;

    nnb_tensor(model, nnb_output(model), &made);
    if (arena_bytes > MOST_BYTES || made.bytes > MOST_BYTES) {
        printf("%s too large\n", opened);
        return;
    }
    out = malloc(made.bytes);
    arena = malloc(arena_bytes ? arena_bytes : 1);
    hooks.key = key;
    hooks.arena_bytes = arena_bytes;
    printf("%s %s\n", opened, nnb_name(nnb_verify(model, out, arena, &hooks)));
    free(out);
    free(arena);
}

/* The input is what `pattern` of nnb_in_c.py makes. */
static void run(const nnb_model *model)
{
    nnb_hooks hooks = {NULL, NULL, NULL, 0};
    nnb_tensor_info given, made;
    uint32_t i, arena_bytes = nnb_arena_bytes(model);
    uint8_t *in, *out, *arena;
    int status;

    nnb_tensor(model, nnb_input(model), &given);
    nnb_tensor(model, nnb_output(model), &made);
    if (arena_bytes > MOST_BYTES || made.bytes > MOST_BYTES || given.bytes > MOST_BYTES) {
        printf("ok large\n");
        return;
    }
    in = malloc(given.bytes);
    out = malloc(made.bytes);
    arena = malloc(arena_bytes ? arena_bytes : 1);
    for (i = 0; i < given.bytes; i++) {
        in[i] = (uint8_t)(i * 89 + (i >> 8) * 31 + 7);
    }
    hooks.key = key;
    hooks.arena_bytes = arena_bytes;
    status = nnb_run(model, in, out, arena, NULL); /* only encrypted files need hooks */
    if (status == NNB_KEY) {
        status = nnb_run(model, in, out, arena, &hooks);
    }
    printf("ok ");
    for (i = 0; status == NNB_OK && i < made.bytes; i++) {
        printf("%02x", out[i]);
    }
    printf("%s\n", status == NNB_OK ? "" : nnb_name(status));
    free(in);
    free(out);
    free(arena);
}

/* All that the reader tells of a file, in numbers. */
static void tell(const nnb_model *model)
{
    nnb_tensor_info info;
    uint32_t number;

    printf("%lu %lu %lu %lu", (unsigned long)nnb_arena_bytes(model),
           (unsigned long)nnb_input(model), (unsigned long)nnb_output(model),
           (unsigned long)nnb_vectors(model));
    for (number = 0; nnb_tensor(model, number, &info) == NNB_OK; number++) {
        printf(" %d %d %d %d %d %d %d %d %lu %lu %lu %d %d", info.type, info.order, info.fraction,
               info.encoding, info.rows, info.columns, info.channels, info.count,
               (unsigned long)info.data, (unsigned long)info.bytes, (unsigned long)info.arena,
               info.first, info.last);
    }
    printf("\n");
}

static unsigned long damaged(uint8_t *blob, uint32_t size, int ways)
{
    unsigned long accepted = 0;
    uint32_t i;
    int way;

    for (i = 0; i < size; i++) {
        for (way = 1; way <= ways; way++) {
            uint8_t mask = (uint8_t)(ways == 255 ? way : 1 << (way - 1));
            blob[i] ^= mask;
            accepted += nnb_open(blob, size) != NULL;
            blob[i] ^= mask;
        }
    }
    return accepted;
}

int main(int argc, char **argv)
{
    FILE *file = fopen(argv[1], "rb");
    unsigned value;
    uint32_t size;
    int i;

    int tags = argc > 3 && strcmp(argv[2], "tag") == 0;
    int runs = argc > 2 && strcmp(argv[2], "run") == 0;
    int tells = argc > 2 && strcmp(argv[2], "tell") == 0;
    const char *digits = tags ? argv[3] : argc == 3 && !runs && !tells ? argv[2] : "";

    for (i = 0; i < 32 && sscanf(digits + 2 * i, "%2x", &value) == 1; i++) {
        key[i] = (uint8_t)value;
    }
    while (file != NULL && fread(&size, sizeof size, 1, file) == 1) {
        uint8_t *blob = malloc(size ? size : 1);
        const nnb_model *model;
        if (fread(blob, 1, size, file) != size) {
            return 1;
        }
        if (tags) {
            model = nnb_open(blob, size);
            printf("%s\n", nnb_name(model ? nnb_authenticate(model, size, key) : nnb_error()));
        } else if (argc > 3) {
            printf("%lu of %lu\n", damaged(blob, size, atoi(argv[3])),
                   (unsigned long)size * (unsigned long)atoi(argv[3]));
        } else {
            model = nnb_open(blob, size);
            if (model == NULL) {
                printf("%s\n", nnb_name(nnb_error()));
            } else if (tells) {
                tell(model);
            } else if (runs) {
                run(model);
            } else {
                verify(model, nnb_name(nnb_error()));
            }
        }
        free(blob);
    }
    return file == NULL || fclose(file) != 0;
}
