#include "model/values.h"
