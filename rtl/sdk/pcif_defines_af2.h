/* Pins of the camera in the simulation environment: nothing that the stand-in needs. */
#include "cameraif_regs.h"
