#include "model/schema.h"
