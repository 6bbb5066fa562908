#include "model/dtype.h"
