#pragma once
#include <stdint.h>
#define DEFAULT_EMBS {1, -2, 3, 4}
int calculate_minDistance(const int8_t *data);
extern const char *default_names[2];
