#include "mipi_camera.h"
