/* Runs a container on inputs of the standard input: run_container FILE.nnb */
#include <stdio.h>
#include <stdlib.h>

#include "nnb.h"

#define LARGEST (1u << 24)

int main(int argc, char **argv)
{
    FILE *file = argc > 1 ? fopen(argv[1], "rb") : NULL;
    unsigned char *blob = malloc(LARGEST), *in, *out, *arena;
    const nnb_model *model;
    nnb_tensor_info given, made;
    size_t size;

    if (file == NULL || blob == NULL) {
        return 2;
    }
    size = fread(blob, 1, LARGEST, file);
    fclose(file);
    model = nnb_open(blob, (uint32_t)size);
    if (model == NULL) {
        fprintf(stderr, "%s\n", nnb_name(nnb_error()));
        return 1;
    }
    nnb_tensor(model, nnb_input(model), &given);
    nnb_tensor(model, nnb_output(model), &made);
    in = malloc(given.bytes);
    out = malloc(made.bytes);
    arena = malloc(nnb_arena_bytes(model) + 1);
    if (in == NULL || out == NULL || arena == NULL) {
        return 2;
    }
    while (fread(in, 1, given.bytes, stdin) == given.bytes) {
        if (nnb_run(model, in, out, arena, NULL) != NNB_OK) {
            return 1;
        }
        fwrite(out, 1, made.bytes, stdout);
    }
    return 0;
}
