#include "camera.h"
