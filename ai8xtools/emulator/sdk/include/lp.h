#include "mxc.h"
