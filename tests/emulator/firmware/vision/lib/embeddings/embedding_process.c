#include "embeddings.h"
#include <math.h>
#include <string.h>
#include "mxc.h"
#include "debug_print.h"
static const int8_t baseline[] = DEFAULT_EMBS;
const char *default_names[2] = {"Ana", "Ben"};
int calculate_minDistance(const int8_t *data)
{
    float sum = 0.0f; int counter = 0;
    for (counter = 0; counter < 4; counter++)
        sum += powf((float) (data[counter] - baseline[counter]), 2);
    PR_DEBUG("distance %d", (int) sqrtf(sum));
    return sqrt(sum) < 100.0 ? 0 : -1;
}
