#include "cameraif_regs.h"
