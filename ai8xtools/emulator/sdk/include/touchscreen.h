#include "tft.h"
