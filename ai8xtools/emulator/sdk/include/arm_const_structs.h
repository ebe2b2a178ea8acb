#include "arm_math.h"
