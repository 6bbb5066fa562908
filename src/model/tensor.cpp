#include "model/tensor.h"
