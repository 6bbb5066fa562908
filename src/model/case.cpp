#include "model/case.h"
