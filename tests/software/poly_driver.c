/* Prints the Poly1305 tag of each pair KEY MESSAGE of its arguments, all in hexadecimal digits. */
#include "nnb_records.h"

#include <stdio.h>

static uint32_t bytes_of(const char *digits, uint8_t *bytes)
{
    uint32_t count = 0;
    unsigned value;

    while (sscanf(digits + 2 * count, "%2x", &value) == 1) {
        bytes[count++] = (uint8_t)value;
    }
    return count;
}

int main(int argc, char **argv)
{
    static uint8_t key[64], message[4096], tag[16];
    nnb_poly poly;
    uint32_t size, first;
    int i, k;

    for (i = 1; i + 1 < argc; i += 2) {
        bytes_of(argv[i], key);
        size = bytes_of(argv[i + 1], message);
        first = size / 32 * 16; /* in two parts */
        nnb_poly_start(&poly, key);
        nnb_poly_add(&poly, message, first);
        nnb_poly_add(&poly, message + first, size - first);
        nnb_poly_finish(&poly, tag);
        for (k = 0; k < 16; k++) {
            printf("%02x", tag[k]);
        }
        printf("\n");
    }
    return 0;
}
